//! The list of filters that `show_filters` prints.
//!
//! It is a constant, as in HBase's shell, since the server has no call that lists them.

use super::arguments::Arguments;
use super::session::{Outcome, Session};
use super::value::Value;

/// The filter language: names, arguments, and the cells that pass.
const FILTERS: [[&str; 3]; 19] = [
    ["ColumnCountGetFilter", "limit", "the first columns of a row"],
    [
        "ColumnPaginationFilter",
        "limit, offset",
        "columns of a row from an offset on",
    ],
    ["ColumnPrefixFilter", "'prefix'", "columns that begin so"],
    [
        "ColumnRangeFilter",
        "'from', isFromIncluded, 'to', isToIncluded",
        "columns between two names",
    ],
    [
        "ColumnValueFilter",
        "'family', 'qualifier', operator, 'comparator'",
        "a column whose value compares so",
    ],
    [
        "DependentColumnFilter",
        "'family', 'qualifier' [, drop [, operator, 'comparator']]",
        "cells with the timestamp of a column's cell",
    ],
    [
        "FamilyFilter",
        "operator, 'comparator'",
        "families whose name compares so",
    ],
    ["FirstKeyOnlyFilter", "", "the first cell of a row"],
    [
        "InclusiveStopFilter",
        "'row'",
        "rows up to this one, which is included",
    ],
    ["KeyOnlyFilter", "", "cells without their values"],
    [
        "MultipleColumnPrefixFilter",
        "'prefix', 'prefix', ...",
        "columns that begin with one of these",
    ],
    ["PageFilter", "rows", "at most so many rows of a region"],
    ["PrefixFilter", "'prefix'", "rows that begin so"],
    [
        "QualifierFilter",
        "operator, 'comparator'",
        "columns whose qualifier compares so",
    ],
    [
        "RowFilter",
        "operator, 'comparator'",
        "rows whose key compares so",
    ],
    [
        "SingleColumnValueExcludeFilter",
        "'family', 'qualifier', operator, 'comparator' [, ifMissing, latestOnly]",
        "rows with a column whose value compares so, without that column",
    ],
    [
        "SingleColumnValueFilter",
        "'family', 'qualifier', operator, 'comparator' [, ifMissing, latestOnly]",
        "rows with a column whose value compares so",
    ],
    [
        "TimestampsFilter",
        "timestamp, timestamp, ...",
        "cells with these timestamps",
    ],
    [
        "ValueFilter",
        "operator, 'comparator'",
        "cells whose value compares so",
    ],
];

impl Session {
    pub(super) fn show_filters(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        for [name, parameters, passes] in FILTERS {
            let text = format!("{name}\n    ({parameters}): {passes}");
            let fields = [
                ("name", Value::text(name)),
                ("arguments", Value::text(parameters)),
                ("passes", Value::text(passes)),
            ];
            self.output.record(&[&text], &fields)?;
        }
        self.output.note(
            "\nOperators are <, <=, =, !=, > and >=; comparators binary:, binaryprefix:, regexstring: and substring:.\n\
             Filters are joined by AND, OR, SKIP and WHILE: FILTER => \"PrefixFilter('a') AND ValueFilter(=, 'binary:x')\"",
        )?;
        Ok(None)
    }
}

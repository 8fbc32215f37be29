//! Printing a filter in the filter language.
//!
//! Filters that the language can express are printed so that [`FilterSpec::parse`] gives the same filter
//! back. The rest (protobuf only) is printed in the same style for logs. The language knows no escapes: bytes
//! stand as they are, so the exact form is bytes ([`FilterSpec::to_filter_string`]) and `Display` replaces
//! what is not text.

use std::fmt;

use super::column::PageStart;
use super::spec::Node;
use super::{Comparator, Comparison, FilterSpec, ListOperator};

impl FilterSpec {
    /// The filter in the filter language.
    pub fn to_filter_string(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.print(&mut out);
        out
    }

    fn print(&self, out: &mut Vec<u8>) {
        match &self.node {
            Node::Skip(filter) => print_wrapped(out, b"SKIP ", filter),
            Node::WhileMatch(filter) => print_wrapped(out, b"WHILE ", filter),
            Node::List { operator, filters } if filters.len() >= 2 => {
                let between: &[u8] = match operator {
                    ListOperator::MustPassAll => b" AND ",
                    ListOperator::MustPassOne => b" OR ",
                };
                for (index, filter) in filters.iter().enumerate() {
                    if index > 0 {
                        out.extend_from_slice(between);
                    }
                    print_wrapped(out, b"", filter);
                }
            }
            node => print_simple(out, node),
        }
    }
}

impl fmt::Display for FilterSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.to_filter_string()))
    }
}

/// A filter inside another, in parentheses where it is a list.
fn print_wrapped(out: &mut Vec<u8>, before: &[u8], filter: &FilterSpec) {
    out.extend_from_slice(before);
    let is_list = matches!(&filter.node, Node::List { filters, .. } if filters.len() >= 2);
    if is_list {
        out.push(b'(');
    }
    filter.print(out);
    if is_list {
        out.push(b')');
    }
}

/// `Name(argument, ...)` under construction.
struct Call<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Call<'o> {
    fn begin(out: &'o mut Vec<u8>, name: &str) -> Self {
        out.extend_from_slice(name.as_bytes());
        out.push(b'(');
        Self { out, first: true }
    }

    fn raw(mut self, text: &str) -> Self {
        self.separate();
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    fn separate(&mut self) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.extend_from_slice(b", ");
        }
    }

    /// In quotes, each quote inside twice.
    fn quoted(self, bytes: &[u8]) -> Self {
        self.quoted_with_prefix(b"", bytes)
    }

    fn quoted_with_prefix(mut self, prefix: &[u8], bytes: &[u8]) -> Self {
        self.separate();
        self.out.push(b'\'');
        self.out.extend_from_slice(prefix);
        for byte in bytes {
            if *byte == b'\'' {
                self.out.push(b'\'');
            }
            self.out.push(*byte);
        }
        self.out.push(b'\'');
        self
    }

    fn quoted_each(self, list: &[Vec<u8>]) -> Self {
        list.iter().fold(self, |call, item| call.quoted(item))
    }

    fn comparison(self, comparison: &Comparison) -> Self {
        let call = self.raw(comparison.op.symbol());
        match &*comparison.comparator {
            Comparator::Binary(value) => call.quoted_with_prefix(b"binary:", value),
            Comparator::BinaryPrefix(value) => call.quoted_with_prefix(b"binaryprefix:", value),
            Comparator::Regex(regex) => call.quoted_with_prefix(b"regexstring:", regex.pattern().as_bytes()),
            Comparator::Substring(needle) => call.quoted_with_prefix(b"substring:", needle.as_bytes()),
            Comparator::Long(number) => call.quoted_with_prefix(b"long:", number.to_string().as_bytes()),
            Comparator::BigDecimal(number) => {
                let text = number.encoded().escape_ascii().to_string();
                call.quoted_with_prefix(b"bigdecimal:", text.as_bytes())
            }
            Comparator::Bit { value, operator } => {
                let text = format!("{operator:?} {}", value.escape_ascii());
                call.quoted_with_prefix(b"bit:", text.as_bytes())
            }
            Comparator::BinaryComponent { value, offset } => {
                let text = format!("{} at {offset}", value.escape_ascii());
                call.quoted_with_prefix(b"binarycomponent:", text.as_bytes())
            }
            Comparator::Null => call.quoted(b"null:"),
        }
    }

    fn end(self) {
        self.out.push(b')');
    }
}

fn print_simple(out: &mut Vec<u8>, node: &Node) {
    let call = |name: &str, out| Call::begin(out, name);
    match node {
        Node::KeyOnly { len_as_value: false } => call("KeyOnlyFilter", out),
        Node::KeyOnly { len_as_value: true } => call("KeyOnlyFilter", out).raw("true"),
        Node::FirstKeyOnly => call("FirstKeyOnlyFilter", out),
        Node::FirstKeyValueMatchingQualifiers(qualifiers) => {
            call("FirstKeyValueMatchingQualifiersFilter", out).quoted_each(qualifiers)
        }
        Node::Prefix(prefix) => call("PrefixFilter", out).quoted(prefix),
        Node::ColumnPrefix(prefix) => call("ColumnPrefixFilter", out).quoted(prefix),
        Node::MultipleColumnPrefix(prefixes) => call("MultipleColumnPrefixFilter", out).quoted_each(prefixes),
        Node::ColumnCountGet { limit } => call("ColumnCountGetFilter", out).raw(&limit.to_string()),
        Node::Page { rows } => call("PageFilter", out).raw(&rows.to_string()),
        Node::ColumnPagination { limit, start } => {
            let call = call("ColumnPaginationFilter", out).raw(&limit.to_string());
            match start {
                PageStart::Offset(offset) => call.raw(&offset.to_string()),
                PageStart::Column(column) => call.quoted(column),
            }
        }
        Node::InclusiveStop(row) => call("InclusiveStopFilter", out).quoted(row),
        Node::Timestamps { timestamps, can_hint } => {
            let call = call("TimestampsFilter", out);
            let call = timestamps
                .iter()
                .fold(call, |call, timestamp| call.raw(&timestamp.to_string()));
            if *can_hint { call.raw("can_hint") } else { call }
        }
        Node::Row(comparison) => call("RowFilter", out).comparison(comparison),
        Node::Family(comparison) => call("FamilyFilter", out).comparison(comparison),
        Node::Qualifier(comparison) => call("QualifierFilter", out).comparison(comparison),
        Node::Value(comparison) => call("ValueFilter", out).comparison(comparison),
        Node::ColumnRange(range) => call("ColumnRangeFilter", out)
            .quoted(range.min.as_deref().unwrap_or_default())
            .raw(&range.min_inclusive.to_string())
            .quoted(range.max.as_deref().unwrap_or_default())
            .raw(&range.max_inclusive.to_string()),
        Node::SingleColumnValue { test, exclude } => {
            let name = if *exclude {
                "SingleColumnValueExcludeFilter"
            } else {
                "SingleColumnValueFilter"
            };
            call(name, out)
                .quoted(&test.family)
                .quoted(&test.qualifier)
                .comparison(&test.comparison)
                .raw(&test.filter_if_missing.to_string())
                .raw(&test.latest_version_only.to_string())
        }
        Node::DependentColumn {
            family,
            qualifier,
            drop_dependent,
            comparison,
        } => {
            let call = call("DependentColumnFilter", out)
                .quoted(family)
                .quoted(qualifier)
                .raw(&drop_dependent.to_string());
            match comparison {
                Some(comparison) => call.comparison(comparison),
                None => call,
            }
        }
        Node::ColumnValue {
            family,
            qualifier,
            comparison,
        } => call("ColumnValueFilter", out)
            .quoted(family)
            .quoted(qualifier)
            .comparison(comparison),
        Node::FuzzyRow(keys) => keys.iter().fold(call("FuzzyRowFilter", out), |call, key| {
            call.quoted(key.key())
                .quoted(key.mask().escape_ascii().to_string().as_bytes())
        }),
        Node::MultiRowRange(ranges) => ranges
            .iter()
            .fold(call("MultiRowRangeFilter", out), |call, range| {
                call.quoted(&range.start)
                    .raw(&range.start_inclusive.to_string())
                    .quoted(&range.stop)
                    .raw(&range.stop_inclusive.to_string())
            }),
        Node::RandomRow { chance, .. } => call("RandomRowFilter", out).raw(&chance.to_string()),
        Node::FilterAll => call("FilterAllFilter", out),
        Node::UserCode(filter) => call(&filter.class, out),
        Node::Skip(filter) => call("SkipFilter", out).raw(&filter.to_string()),
        Node::WhileMatch(filter) => call("WhileMatchFilter", out).raw(&filter.to_string()),
        // Lists that AND and OR cannot say: of no filter, or of one.
        Node::List { operator, filters } => {
            let call = call("FilterList", out).raw(match operator {
                ListOperator::MustPassAll => "MUST_PASS_ALL",
                ListOperator::MustPassOne => "MUST_PASS_ONE",
            });
            filters
                .iter()
                .fold(call, |call, filter| call.raw(&filter.to_string()))
        }
    }
    .end();
}

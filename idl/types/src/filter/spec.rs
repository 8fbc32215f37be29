//! A filter before it is used: an immutable, validated tree.
//!
//! Made by a parser or by the constructors here, which check what HBase's constructors check. Shared by all
//! regions of a scan; each takes an instance of its own with [`FilterSpec::create`]. Long lists are behind an
//! `Arc`, so that instances are cheap.

use std::sync::Arc;

use super::column::{self, ColumnRange, PageStart};
use super::java_regex::JavaRegex;
use super::multi_range::{self, RowRange};
use super::single_column::{self, SingleColumnValue};
use super::{
    Comparator, Comparison, DEPTH_MAX, Filter, FuzzyKey, dependent, fuzzy, key_only, list, row, user_code,
    value, wrap,
};
use crate::{Error, Result};

/// How a list combines its filters. The codes are HBase's on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOperator {
    /// AND.
    MustPassAll = 1,
    /// OR.
    MustPassOne = 2,
}

/// A description of a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterSpec {
    pub(super) node: Node,
    /// Levels, this one included.
    pub(super) depth: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    KeyOnly {
        len_as_value: bool,
    },
    FirstKeyOnly,
    /// Sorted.
    FirstKeyValueMatchingQualifiers(Arc<[Vec<u8>]>),
    Prefix(Vec<u8>),
    ColumnPrefix(Vec<u8>),
    /// Sorted, each once.
    MultipleColumnPrefix(Arc<[Vec<u8>]>),
    ColumnCountGet {
        limit: i32,
    },
    Page {
        rows: i64,
    },
    ColumnPagination {
        limit: i32,
        start: PageStart,
    },
    InclusiveStop(Vec<u8>),
    /// Timestamps sorted, each once.
    Timestamps {
        timestamps: Arc<[i64]>,
        can_hint: bool,
    },
    Row(Comparison),
    Family(Comparison),
    Qualifier(Comparison),
    Value(Comparison),
    ColumnRange(ColumnRange),
    SingleColumnValue {
        test: SingleColumnValue,
        exclude: bool,
    },
    DependentColumn {
        family: Vec<u8>,
        qualifier: Vec<u8>,
        drop_dependent: bool,
        comparison: Option<Comparison>,
    },
    ColumnValue {
        family: Vec<u8>,
        qualifier: Vec<u8>,
        comparison: Comparison,
    },
    FuzzyRow(Arc<[FuzzyKey]>),
    /// Sorted, disjoint.
    MultiRowRange(Arc<[RowRange]>),
    RandomRow {
        chance: f32,
        seed: u64,
    },
    FilterAll,
    Skip(Box<FilterSpec>),
    WhileMatch(Box<FilterSpec>),
    List {
        operator: ListOperator,
        filters: Vec<FilterSpec>,
    },
    UserCode(UserFilter),
}

/// A filter tree with a class that HBase does not bring along.
#[derive(Clone, Debug, PartialEq)]
pub struct UserFilter {
    /// The first such class of the tree, escaped and cut: for errors.
    pub class: Arc<str>,
    /// The whole tree as a serialised `hbase.pb.Filter`.
    pub message: Arc<[u8]>,
    /// The sender of the call.
    pub sender: FilterSender,
}

/// The sender of a filter, as far as a host of user code needs to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterSender {
    /// Its user, if it is known.
    pub user: Option<Arc<str>>,
    /// True if the host may load classes for it that are not loaded yet.
    pub may_load: bool,
}

impl From<Node> for FilterSpec {
    fn from(node: Node) -> Self {
        Self { node, depth: 1 }
    }
}

fn not_negative(filter: &str, what: &str, number: i64) -> Result<()> {
    if number < 0 {
        return Err(Error::InvalidArgument(format!(
            "{filter}: {what} must be positive {number}"
        )));
    }
    Ok(())
}

/// Plain filters.
impl FilterSpec {
    /// Every cell without its value; with `len_as_value` the value's length stands in for it.
    pub fn key_only(len_as_value: bool) -> Self {
        Node::KeyOnly { len_as_value }.into()
    }

    /// The first cell of each row.
    pub fn first_key_only() -> Self {
        Node::FirstKeyOnly.into()
    }

    /// The cells of each row up to the first with one of these qualifiers.
    pub fn first_key_value_matching_qualifiers(mut qualifiers: Vec<Vec<u8>>) -> Self {
        qualifiers.sort_unstable();
        qualifiers.dedup();
        Node::FirstKeyValueMatchingQualifiers(qualifiers.into()).into()
    }

    /// Rows that begin with the prefix.
    pub fn prefix(prefix: Vec<u8>) -> Self {
        Node::Prefix(prefix).into()
    }

    /// Columns that begin with the prefix.
    pub fn column_prefix(prefix: Vec<u8>) -> Self {
        Node::ColumnPrefix(prefix).into()
    }

    /// Columns that begin with one of the prefixes, which must differ. Without any, every cell passes.
    pub fn multiple_column_prefix(mut prefixes: Vec<Vec<u8>>) -> Result<Self> {
        prefixes.sort_unstable();
        if let Some(twice) = prefixes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::InvalidArgument(format!(
                "MultipleColumnPrefixFilter: prefixes must be distinct: {}",
                twice[0].escape_ascii()
            )));
        }
        Ok(Node::MultipleColumnPrefix(prefixes.into()).into())
    }

    /// The first `limit` columns of a row (for Get).
    pub fn column_count_get(limit: i32) -> Result<Self> {
        not_negative("ColumnCountGetFilter", "limit", limit.into())?;
        Ok(Node::ColumnCountGet { limit }.into())
    }

    /// The first `rows` rows of a region.
    pub fn page(rows: i64) -> Result<Self> {
        not_negative("PageFilter", "page size", rows)?;
        Ok(Node::Page { rows }.into())
    }

    /// `limit` columns of each row, behind the first `offset`.
    pub fn column_pagination(limit: i32, offset: i32) -> Result<Self> {
        not_negative("ColumnPaginationFilter", "limit", limit.into())?;
        not_negative("ColumnPaginationFilter", "offset", offset.into())?;
        Ok(Node::ColumnPagination {
            limit,
            start: PageStart::Offset(offset),
        }
        .into())
    }

    /// `limit` columns of each row, from `column` on.
    pub fn column_pagination_from(limit: i32, column: Vec<u8>) -> Result<Self> {
        not_negative("ColumnPaginationFilter", "limit", limit.into())?;
        Ok(Node::ColumnPagination {
            limit,
            start: PageStart::Column(column),
        }
        .into())
    }

    /// Rows up to this one.
    pub fn inclusive_stop(stop_row: Vec<u8>) -> Self {
        Node::InclusiveStop(stop_row).into()
    }

    /// Cells with these timestamps. With `can_hint` it seeks between them, and may show what tombstones in
    /// between delete.
    pub fn timestamps(mut timestamps: Vec<i64>, can_hint: bool) -> Result<Self> {
        timestamps.sort_unstable();
        timestamps.dedup();
        if let Some(first) = timestamps.first() {
            not_negative("TimestampsFilter", "timestamp", *first)?;
        }
        Ok(Node::Timestamps {
            timestamps: timestamps.into(),
            can_hint,
        }
        .into())
    }

    /// Rows whose key compares.
    pub fn row(comparison: Comparison) -> Self {
        Node::Row(comparison).into()
    }

    /// Families whose name compares.
    pub fn family(comparison: Comparison) -> Self {
        Node::Family(comparison).into()
    }

    /// Columns whose qualifier compares.
    pub fn qualifier(comparison: Comparison) -> Self {
        Node::Qualifier(comparison).into()
    }

    /// Cells whose value compares.
    pub fn value(comparison: Comparison) -> Self {
        Node::Value(comparison).into()
    }

    /// Columns of a range.
    pub fn column_range(range: ColumnRange) -> Self {
        Node::ColumnRange(range).into()
    }

    /// Rows in which a column's value compares; `exclude` leaves that column out of the result.
    pub fn single_column_value(test: SingleColumnValue, exclude: bool) -> Self {
        Node::SingleColumnValue { test, exclude }.into()
    }

    /// Cells written with the timestamp of a reference column.
    pub fn dependent_column(
        family: Vec<u8>,
        qualifier: Vec<u8>,
        drop_dependent: bool,
        comparison: Option<Comparison>,
    ) -> Self {
        Node::DependentColumn {
            family,
            qualifier,
            drop_dependent,
            comparison,
        }
        .into()
    }

    /// Cells of one column whose value compares.
    pub fn column_value(family: Vec<u8>, qualifier: Vec<u8>, comparison: Comparison) -> Self {
        Node::ColumnValue {
            family,
            qualifier,
            comparison,
        }
        .into()
    }

    /// Rows that match a key with wildcards.
    pub fn fuzzy_row(keys: Vec<FuzzyKey>) -> Self {
        Node::FuzzyRow(keys.into()).into()
    }

    /// Rows of several ranges.
    pub fn multi_row_range(ranges: Vec<RowRange>) -> Result<Self> {
        Ok(Node::MultiRowRange(multi_range::sort_and_merge(ranges)?.into()).into())
    }

    /// A share of the rows, drawn by a hash of their key under `seed`.
    pub fn random_row(chance: f32, seed: u64) -> Self {
        Node::RandomRow { chance, seed }.into()
    }

    /// Nothing.
    pub fn filter_all() -> Self {
        Node::FilterAll.into()
    }
}

/// Filters around filters.
impl FilterSpec {
    /// Whether it is a plain filter that compares with a regular expression. The parsers count these.
    pub(super) fn regex(&self) -> Option<&JavaRegex> {
        let comparison = match &self.node {
            Node::Row(comparison)
            | Node::Family(comparison)
            | Node::Qualifier(comparison)
            | Node::Value(comparison)
            | Node::ColumnValue { comparison, .. } => Some(comparison),
            Node::SingleColumnValue { test, .. } => Some(&test.comparison),
            Node::DependentColumn { comparison, .. } => comparison.as_ref(),
            _ => None,
        };
        match &*comparison?.comparator {
            Comparator::Regex(regex) => Some(regex),
            _ => None,
        }
    }

    pub(super) fn of_user_code(class: String, message: &[u8], sender: &FilterSender) -> Self {
        Node::UserCode(UserFilter {
            class: class.into(),
            message: message.into(),
            sender: sender.clone(),
        })
        .into()
    }

    /// The tree, if a class in it is one of a user: then only a host of user code can apply it.
    pub fn user_code(&self) -> Option<&UserFilter> {
        match &self.node {
            Node::UserCode(filter) => Some(filter),
            _ => None,
        }
    }

    /// Memory of the filter and of those in it, with their compiled regular expressions: a short
    /// pattern may need a lot.
    pub fn memory_bytes(&self) -> usize {
        let below: usize = match &self.node {
            Node::Skip(filter) | Node::WhileMatch(filter) => filter.memory_bytes(),
            Node::List { filters, .. } => filters.iter().map(Self::memory_bytes).sum(),
            Node::UserCode(filter) => filter.message.len(),
            _ => 0,
        };
        size_of::<Self>() + below + self.regex().map_or(0, JavaRegex::memory_bytes)
    }

    fn above(node: Node, depth_below: usize) -> Result<Self> {
        if depth_below >= DEPTH_MAX {
            return Err(Error::InvalidArgument(format!(
                "filters are nested deeper than {DEPTH_MAX} levels"
            )));
        }
        Ok(Self {
            node,
            depth: depth_below + 1,
        })
    }

    /// SKIP: the row, if each of its cells passes.
    pub fn skip(filter: Self) -> Result<Self> {
        let depth = filter.depth;
        Self::above(Node::Skip(Box::new(filter)), depth)
    }

    /// WHILE: rows until something does not pass.
    pub fn while_match(filter: Self) -> Result<Self> {
        let depth = filter.depth;
        Self::above(Node::WhileMatch(Box::new(filter)), depth)
    }

    /// AND or OR. An empty list lets everything pass.
    pub fn list(operator: ListOperator, filters: Vec<Self>) -> Result<Self> {
        let depth = filters.iter().map(|filter| filter.depth).max().unwrap_or(0);
        Self::above(Node::List { operator, filters }, depth)
    }

    /// A filter in its starting state, for one region and one scan.
    pub fn create(&self) -> Box<dyn Filter> {
        match &self.node {
            Node::KeyOnly { len_as_value } => Box::new(key_only::KeyOnlyFilter {
                len_as_value: *len_as_value,
            }),
            Node::FirstKeyOnly => Box::new(key_only::FirstKeyOnlyFilter::default()),
            Node::FirstKeyValueMatchingQualifiers(qualifiers) => Box::new(
                key_only::FirstKeyValueMatchingQualifiersFilter::new(qualifiers.clone()),
            ),
            Node::Prefix(prefix) => Box::new(row::PrefixFilter::new(prefix.clone())),
            Node::ColumnPrefix(prefix) => Box::new(column::ColumnPrefixFilter(prefix.clone())),
            Node::MultipleColumnPrefix(prefixes) => {
                Box::new(column::MultipleColumnPrefixFilter::new(prefixes.clone()))
            }
            Node::ColumnCountGet { limit } => Box::new(column::ColumnCountGetFilter::new(*limit)),
            Node::Page { rows } => Box::new(row::PageFilter::new(*rows)),
            Node::ColumnPagination { limit, start } => {
                Box::new(column::ColumnPaginationFilter::new(*limit, start.clone()))
            }
            Node::InclusiveStop(stop_row) => Box::new(row::InclusiveStopFilter::new(stop_row.clone())),
            Node::Timestamps { timestamps, can_hint } => {
                Box::new(value::TimestampsFilter::new(timestamps.clone(), *can_hint))
            }
            Node::Row(comparison) => Box::new(row::RowFilter::new(comparison.clone())),
            Node::Family(comparison) => Box::new(column::FamilyFilter(comparison.clone())),
            Node::Qualifier(comparison) => Box::new(column::QualifierFilter(comparison.clone())),
            Node::Value(comparison) => Box::new(value::ValueFilter(comparison.clone())),
            Node::ColumnRange(range) => Box::new(column::ColumnRangeFilter(range.clone())),
            Node::SingleColumnValue { test, exclude } => Box::new(
                single_column::SingleColumnValueFilter::new(test.clone(), *exclude),
            ),
            Node::DependentColumn {
                family,
                qualifier,
                drop_dependent,
                comparison,
            } => Box::new(dependent::DependentColumnFilter::new(
                family.clone(),
                qualifier.clone(),
                *drop_dependent,
                comparison.clone(),
            )),
            Node::ColumnValue {
                family,
                qualifier,
                comparison,
            } => Box::new(value::ColumnValueFilter::new(
                family.clone(),
                qualifier.clone(),
                comparison.clone(),
            )),
            Node::FuzzyRow(keys) => Box::new(fuzzy::FuzzyRowFilter::new(keys.clone())),
            Node::MultiRowRange(ranges) => Box::new(multi_range::MultiRowRangeFilter::new(ranges.clone())),
            Node::RandomRow { chance, seed } => Box::new(row::RandomRowFilter::new(*chance, *seed)),
            Node::FilterAll => Box::new(row::FilterAllFilter),
            Node::Skip(filter) => Box::new(wrap::SkipFilter::new(filter.create())),
            Node::WhileMatch(filter) => Box::new(wrap::WhileMatchFilter::new(filter.create())),
            Node::List { operator, filters } => {
                let children = filters.iter().map(Self::create).collect();
                match operator {
                    ListOperator::MustPassAll => Box::new(list::AndList::new(children)),
                    ListOperator::MustPassOne => Box::new(list::OrList::new(children)),
                }
            }
            Node::UserCode(filter) => Box::new(user_code::NotApplicable(filter.class.clone())),
        }
    }
}

//! Conditions of writes: a column's value or a filter that the row must pass.

use std::sync::Arc;

use basalt_engine::Result;
use basalt_engine::filter::{Comparator, FilterSender, FilterSpec, UserFilter};
use basalt_engine::op::{CompareOp, Expected, Judged, RowCondition, Test, TimeRange};
use basalt_idl::native::messages;
use bytes::Bytes;
use prost::Message as _;

use super::request::{self, do_not_retry};

/// Memory of a decoded condition, and of its form for the engine.
pub(super) const CONDITION_BYTES: usize = size_of::<Condition>() + size_of::<RowCondition<'_>>();

/// A condition, decoded.
#[derive(Debug)]
pub struct Condition {
    row: Bytes,
    test: Decoded,
    time_range: TimeRange,
}

#[derive(Debug)]
enum Decoded {
    Column {
        family: Bytes,
        qualifier: Bytes,
        op: CompareOp,
        comparator: Comparator,
    },
    Filter(Arc<FilterSpec>),
    /// Of a user's class: judged before the row is locked.
    UserCode(UserFilter),
}

impl Condition {
    /// Decodes a condition: a filter if it has one, else the test of a column.
    pub fn decode(condition: &messages::Condition) -> Result<Self> {
        Self::decode_of(condition, None)
    }

    /// Decodes a condition as [`Self::decode`] does. With a sender, it may be one of a user's class.
    pub(crate) fn decode_of(condition: &messages::Condition, sender: Option<&FilterSender>) -> Result<Self> {
        let test = if let Some(filter) = &condition.filter {
            let filter = request::decode_filter_of(filter, sender)?;
            match filter.user_code() {
                None => Decoded::Filter(filter),
                Some(filter) => Decoded::UserCode(filter.clone()),
            }
        } else {
            let comparator = condition
                .comparator
                .as_ref()
                .ok_or_else(|| do_not_retry("the condition has neither filter nor comparator"))?;
            Decoded::Column {
                family: condition.family.clone().unwrap_or_default(),
                qualifier: condition.qualifier.clone().unwrap_or_default(),
                op: compare_op(condition),
                comparator: Comparator::decode(&comparator.encode_to_vec())?,
            }
        };
        Ok(Self {
            row: condition.row.clone(),
            test,
            time_range: request::time_range(condition.time_range.as_ref())?,
        })
    }

    /// The filter that user code is to judge the row by, if it is one; with the row, and the timestamps to
    /// look at.
    pub(crate) fn user_code(&self) -> Option<(&UserFilter, &Bytes, TimeRange)> {
        match &self.test {
            Decoded::UserCode(filter) => Some((filter, &self.row, self.time_range)),
            Decoded::Column { .. } | Decoded::Filter(_) => None,
        }
    }

    /// Memory of its filter or regular expression.
    pub fn memory_bytes(&self) -> usize {
        match &self.test {
            Decoded::Column { comparator, .. } => comparator.memory_bytes(),
            Decoded::Filter(filter) => filter.memory_bytes(),
            Decoded::UserCode(filter) => filter.message.len(),
        }
    }

    /// The condition in the engine's form. One of a user's class must be judged first ([`Self::user_code`]):
    /// until then no row passes it.
    pub fn for_engine(&self) -> RowCondition<'_> {
        let test = match &self.test {
            Decoded::Column {
                family,
                qualifier,
                op,
                comparator,
            } => Test::Column {
                family,
                qualifier,
                op: *op,
                expected: Expected::Comparator(comparator),
            },
            Decoded::Filter(filter) => Test::Filter(filter),
            Decoded::UserCode(_) => Test::Judged(Judged::Refused),
        };
        RowCondition {
            row: &self.row,
            test,
            time_range: self.time_range,
        }
    }
}

/// Whether a condition may have a regular expression.
pub fn has_regex(condition: &messages::Condition) -> bool {
    let comparator = condition.comparator.as_ref();
    condition.filter.as_ref().is_some_and(request::has_regex)
        || comparator.is_some_and(|comparator| comparator.name.ends_with("RegexStringComparator"))
}

fn compare_op(condition: &messages::Condition) -> CompareOp {
    match condition.compare_type() {
        messages::CompareType::Less => CompareOp::Less,
        messages::CompareType::LessOrEqual => CompareOp::LessOrEqual,
        messages::CompareType::Equal => CompareOp::Equal,
        messages::CompareType::NotEqual => CompareOp::NotEqual,
        messages::CompareType::GreaterOrEqual => CompareOp::GreaterOrEqual,
        messages::CompareType::Greater => CompareOp::Greater,
        messages::CompareType::NoOp => CompareOp::NoOp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The class of a regular expression is found in a comparator, and in the encoded filter.
    #[test]
    fn conditions_with_regular_expressions_are_recognised() {
        let class = |name: &str| format!("org.apache.hadoop.hbase.filter.{name}");
        let compared = |name| messages::Condition {
            comparator: Some(messages::Comparator {
                name: class(name),
                ..messages::Comparator::default()
            }),
            ..messages::Condition::default()
        };
        assert!(has_regex(&compared("RegexStringComparator")));
        assert!(!has_regex(&compared("BinaryComparator")));
        let filtered = |name| messages::Condition {
            filter: Some(messages::Filter {
                name: class("RowFilter"),
                serialized_filter: Some(class(name).into()),
            }),
            ..messages::Condition::default()
        };
        assert!(has_regex(&filtered("RegexStringComparator")));
        assert!(!has_regex(&filtered("BinaryComparator")));
    }
}

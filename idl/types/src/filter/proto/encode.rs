//! Filters to messages.

use prost::Message;
use prost::bytes::Bytes;

use super::PACKAGE;
use super::messages as pb;
use crate::filter::column::PageStart;
use crate::filter::spec::Node;
use crate::filter::{Comparator, Comparison, FilterSpec, SingleColumnValue};

#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
fn bytes(slice: &[u8]) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(slice))
}

fn named(class: &str, message: &impl Message) -> pb::Filter {
    pb::Filter {
        name: Some(format!("{PACKAGE}{class}")),
        serialized_filter: Some(message.encode_to_vec().into()),
    }
}

fn one_value(class: &str, value: &[u8]) -> pb::Filter {
    named(class, &pb::OneValue { value: bytes(value) })
}

fn many_values(class: &str, values: &[Vec<u8>]) -> pb::Filter {
    let values = values.iter().map(|value| Bytes::copy_from_slice(value)).collect();
    named(class, &pb::ManyValues { values })
}

fn compare_filter(comparison: &Comparison) -> pb::CompareFilter {
    pb::CompareFilter {
        compare_op: Some(comparison.op as i32),
        comparator: Some(comparator(&comparison.comparator)),
    }
}

fn part(class: &str, comparison: &Comparison) -> pb::Filter {
    named(
        class,
        &pb::PartFilter {
            compare_filter: Some(compare_filter(comparison)),
        },
    )
}

fn wrapper(class: &str, inner: &FilterSpec) -> pb::Filter {
    named(
        class,
        &pb::Wrapper {
            filter: Some(filter(inner)),
        },
    )
}

fn single_column_value(test: &SingleColumnValue) -> pb::SingleColumnValueFilter {
    pb::SingleColumnValueFilter {
        column_family: bytes(&test.family),
        column_qualifier: bytes(&test.qualifier),
        compare_op: Some(test.comparison.op as i32),
        comparator: Some(comparator(&test.comparison.comparator)),
        filter_if_missing: Some(test.filter_if_missing),
        latest_version_only: Some(test.latest_version_only),
    }
}

pub(super) fn filter(spec: &FilterSpec) -> pb::Filter {
    match &spec.node {
        Node::KeyOnly { len_as_value } => named(
            "KeyOnlyFilter",
            &pb::KeyOnlyFilter {
                len_as_val: Some(*len_as_value),
            },
        ),
        Node::FirstKeyOnly => named("FirstKeyOnlyFilter", &()),
        Node::FilterAll => named("FilterAllFilter", &()),
        // The bytes were decoded when the filter came.
        Node::UserCode(filter) => pb::Filter::decode(&filter.message[..]).unwrap_or_default(),
        Node::FirstKeyValueMatchingQualifiers(qualifiers) => {
            many_values("FirstKeyValueMatchingQualifiersFilter", qualifiers)
        }
        Node::MultipleColumnPrefix(prefixes) => many_values("MultipleColumnPrefixFilter", prefixes),
        Node::Prefix(prefix) => one_value("PrefixFilter", prefix),
        Node::ColumnPrefix(prefix) => one_value("ColumnPrefixFilter", prefix),
        Node::InclusiveStop(row) => one_value("InclusiveStopFilter", row),
        Node::ColumnCountGet { limit } => named(
            "ColumnCountGetFilter",
            &pb::ColumnCountGetFilter { limit: Some(*limit) },
        ),
        Node::Page { rows } => named(
            "PageFilter",
            &pb::PageFilter {
                page_size: Some(*rows),
            },
        ),
        Node::ColumnPagination { limit, start } => {
            let (offset, column_offset) = match start {
                PageStart::Offset(offset) => (Some(*offset), None),
                PageStart::Column(column) => (None, bytes(column)),
            };
            let message = pb::ColumnPaginationFilter {
                limit: Some(*limit),
                offset,
                column_offset,
            };
            named("ColumnPaginationFilter", &message)
        }
        Node::Timestamps { timestamps, can_hint } => {
            let message = pb::TimestampsFilter {
                timestamps: timestamps.to_vec(),
                can_hint: Some(*can_hint),
            };
            named("TimestampsFilter", &message)
        }
        Node::Row(comparison) => part("RowFilter", comparison),
        Node::Family(comparison) => part("FamilyFilter", comparison),
        Node::Qualifier(comparison) => part("QualifierFilter", comparison),
        Node::Value(comparison) => part("ValueFilter", comparison),
        Node::ColumnRange(range) => named(
            "ColumnRangeFilter",
            &pb::ColumnRangeFilter {
                min_column: range.min.as_deref().and_then(bytes),
                min_column_inclusive: Some(range.min_inclusive),
                max_column: range.max.as_deref().and_then(bytes),
                max_column_inclusive: Some(range.max_inclusive),
            },
        ),
        Node::SingleColumnValue { test, exclude: false } => {
            named("SingleColumnValueFilter", &single_column_value(test))
        }
        Node::SingleColumnValue { test, exclude: true } => {
            let message = pb::SingleColumnValueExcludeFilter {
                single_column_value_filter: Some(single_column_value(test)),
            };
            named("SingleColumnValueExcludeFilter", &message)
        }
        Node::DependentColumn {
            family,
            qualifier,
            drop_dependent,
            comparison,
        } => {
            let no_test = pb::CompareFilter {
                compare_op: Some(6),
                comparator: None,
            };
            let message = pb::DependentColumnFilter {
                compare_filter: Some(comparison.as_ref().map_or(no_test, compare_filter)),
                column_family: bytes(family),
                column_qualifier: bytes(qualifier),
                drop_dependent_column: Some(*drop_dependent),
            };
            named("DependentColumnFilter", &message)
        }
        Node::ColumnValue {
            family,
            qualifier,
            comparison,
        } => {
            let message = pb::ColumnValueFilter {
                family: bytes(family),
                qualifier: bytes(qualifier),
                compare_op: Some(comparison.op as i32),
                comparator: Some(comparator(&comparison.comparator)),
            };
            named("ColumnValueFilter", &message)
        }
        Node::FuzzyRow(keys) => {
            let pair = |key: &crate::filter::FuzzyKey| pb::BytesBytesPair {
                first: bytes(key.key()),
                second: bytes(&key.mask()),
            };
            named(
                "FuzzyRowFilter",
                &pb::FuzzyRowFilter {
                    fuzzy_keys: keys.iter().map(pair).collect(),
                    is_mask_v2: Some(true),
                },
            )
        }
        Node::MultiRowRange(ranges) => {
            let range = |range: &crate::filter::RowRange| pb::RowRange {
                start_row: bytes(&range.start),
                start_row_inclusive: Some(range.start_inclusive),
                stop_row: bytes(&range.stop),
                stop_row_inclusive: Some(range.stop_inclusive),
            };
            let message = pb::MultiRowRangeFilter {
                row_range_list: ranges.iter().map(range).collect(),
            };
            named("MultiRowRangeFilter", &message)
        }
        Node::RandomRow { chance, .. } => named(
            "RandomRowFilter",
            &pb::RandomRowFilter {
                chance: Some(*chance),
            },
        ),
        Node::Skip(inner) => wrapper("SkipFilter", inner),
        Node::WhileMatch(inner) => wrapper("WhileMatchFilter", inner),
        Node::List { operator, filters } => {
            let filters = filters.iter().map(filter).collect();
            named(
                "FilterList",
                &pb::FilterList {
                    operator: Some(*operator as i32),
                    filters,
                },
            )
        }
    }
}

fn comparator(comparator: &Comparator) -> pb::Comparator {
    let value = |value: &[u8]| Some(pb::OneValue { value: bytes(value) });
    let comparable = |bytes: &[u8]| {
        pb::Comparable {
            comparable: value(bytes),
        }
        .encode_to_vec()
    };
    let serialized = match comparator {
        Comparator::Binary(bytes) | Comparator::BinaryPrefix(bytes) => comparable(bytes),
        Comparator::Long(number) => comparable(&number.to_be_bytes()),
        Comparator::BigDecimal(number) => comparable(number.encoded()),
        Comparator::Bit {
            value: bytes,
            operator,
        } => pb::BitComparator {
            comparable: value(bytes),
            bitwise_op: Some(*operator as i32),
        }
        .encode_to_vec(),
        Comparator::Regex(regex) => pb::RegexStringComparator {
            pattern: Some(regex.pattern().to_owned()),
            pattern_flags: Some(regex.flags()),
            charset: Some(regex.charset_name().to_owned()),
            engine: Some("JAVA".into()),
        }
        .encode_to_vec(),
        Comparator::Substring(needle) => pb::SubstringComparator {
            substr: Some(needle.clone()),
        }
        .encode_to_vec(),
        Comparator::BinaryComponent { value, offset } => {
            // An offset comes from a u32 and goes back into one; a greater one, made by hand, is beyond any
            // part alike.
            let offset = u32::try_from(*offset).unwrap_or(u32::MAX);
            pb::BinaryComponentComparator {
                value: bytes(value),
                offset: Some(offset),
            }
            .encode_to_vec()
        }
        Comparator::Null => Vec::new(),
    };
    pb::Comparator {
        name: Some(format!("{PACKAGE}{}", comparator.class_name())),
        serialized_comparator: Some(serialized.into()),
    }
}

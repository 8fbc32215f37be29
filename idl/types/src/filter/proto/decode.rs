//! Messages to filters.

use prost::Message;
use prost::bytes::Bytes;

use super::PACKAGE;
use super::messages as pb;
use crate::filter::decimal::BigDecimal;
use crate::filter::java_regex::{JavaRegex, Taken};
use crate::filter::{
    BitOperator, ColumnRange, Comparator, CompareOp, Comparison, DEPTH_MAX, FilterSpec, FuzzyKey,
    ListOperator, MaskForm, RowRange, SingleColumnValue,
};
use crate::{Error, Result};

/// A class name in an error: cut, since it comes from a client.
fn shown(name: &str) -> String {
    name.chars()
        .take(200)
        .collect::<String>()
        .escape_default()
        .to_string()
}

fn inner<M: Message + Default>(class: &str, bytes: Option<&Bytes>) -> Result<M> {
    M::decode(bytes.cloned().unwrap_or_default())
        .map_err(|error| Error::DoNotRetry(format!("malformed {class}: {error}")))
}

fn required<T>(class: &str, field: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::DoNotRetry(format!("malformed {class}: required field {field} is missing")))
}

/// Bytes that Java reads as empty when they are missing.
fn owned(bytes: Option<&Bytes>) -> Vec<u8> {
    bytes.map(|bytes| bytes.to_vec()).unwrap_or_default()
}

fn owned_each(list: &[Bytes]) -> Vec<Vec<u8>> {
    list.iter().map(|bytes| bytes.to_vec()).collect()
}

pub(super) struct Decoder {
    /// For the next `RandomRowFilter`: several in one tree must not draw the same rows.
    seed: u64,
    /// Regular expressions so far.
    regexes: Taken,
}

impl Decoder {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            regexes: Taken::default(),
        }
    }

    /// The filter of a message that stands on level `depth`, the root's being 1.
    pub(super) fn filter(&mut self, message: &pb::Filter, depth: usize) -> Result<FilterSpec> {
        if depth > DEPTH_MAX {
            return Err(Error::DoNotRetry(format!(
                "filters are nested deeper than {DEPTH_MAX} levels"
            )));
        }
        let name = required("hbase.pb.Filter", "name", message.name.as_deref())?;
        let bytes = message.serialized_filter.as_ref();
        let class = name.strip_prefix(PACKAGE).unwrap_or_default();
        match class {
            "FilterList" => self.list(bytes, depth),
            "SkipFilter" => FilterSpec::skip(self.wrapped(class, bytes, depth)?),
            "WhileMatchFilter" => FilterSpec::while_match(self.wrapped(class, bytes, depth)?),
            "FilterWrapper" => self.wrapped(class, bytes, depth),
            "RandomRowFilter" => {
                let message: pb::RandomRowFilter = inner(class, bytes)?;
                self.seed = self.seed.wrapping_add(1);
                Ok(FilterSpec::random_row(
                    required(class, "chance", message.chance)?,
                    self.seed,
                ))
            }
            _ => {
                let filter = simple(class, name, bytes)?;
                if let Some(regex) = filter.regex() {
                    self.regexes.add(regex).map_err(Error::DoNotRetry)?;
                }
                Ok(filter)
            }
        }
    }

    fn list(&mut self, bytes: Option<&Bytes>, depth: usize) -> Result<FilterSpec> {
        let message: pb::FilterList = inner("FilterList", bytes)?;
        let operator = match required("FilterList", "operator", message.operator)? {
            1 => ListOperator::MustPassAll,
            2 => ListOperator::MustPassOne,
            other => return Err(Error::DoNotRetry(format!("FilterList: unknown operator {other}"))),
        };
        let filters = message
            .filters
            .iter()
            .map(|filter| self.filter(filter, depth + 1));
        FilterSpec::list(operator, filters.collect::<Result<_>>()?)
    }

    fn wrapped(&mut self, class: &str, bytes: Option<&Bytes>, depth: usize) -> Result<FilterSpec> {
        let message: pb::Wrapper = inner(class, bytes)?;
        let filter = required(class, "filter", message.filter)?;
        self.filter(&filter, depth + 1)
    }
}

/// Filters without filters inside.
fn simple(class: &str, name: &str, bytes: Option<&Bytes>) -> Result<FilterSpec> {
    match class {
        "KeyOnlyFilter" => {
            let message: pb::KeyOnlyFilter = inner(class, bytes)?;
            Ok(FilterSpec::key_only(required(
                class,
                "len_as_val",
                message.len_as_val,
            )?))
        }
        "FirstKeyOnlyFilter" => Ok(FilterSpec::first_key_only()),
        "FilterAllFilter" => Ok(FilterSpec::filter_all()),
        "FirstKeyValueMatchingQualifiersFilter" => {
            let message: pb::ManyValues = inner(class, bytes)?;
            Ok(FilterSpec::first_key_value_matching_qualifiers(owned_each(
                &message.values,
            )))
        }
        "MultipleColumnPrefixFilter" => {
            let message: pb::ManyValues = inner(class, bytes)?;
            FilterSpec::multiple_column_prefix(owned_each(&message.values))
        }
        "PrefixFilter" => {
            let message: pb::OneValue = inner(class, bytes)?;
            Ok(FilterSpec::prefix(owned(message.value.as_ref())))
        }
        "InclusiveStopFilter" => {
            let message: pb::OneValue = inner(class, bytes)?;
            Ok(FilterSpec::inclusive_stop(owned(message.value.as_ref())))
        }
        "ColumnPrefixFilter" => {
            let message: pb::OneValue = inner(class, bytes)?;
            Ok(FilterSpec::column_prefix(
                required(class, "prefix", message.value)?.to_vec(),
            ))
        }
        "ColumnCountGetFilter" => {
            let message: pb::ColumnCountGetFilter = inner(class, bytes)?;
            FilterSpec::column_count_get(required(class, "limit", message.limit)?)
        }
        "PageFilter" => {
            let message: pb::PageFilter = inner(class, bytes)?;
            FilterSpec::page(required(class, "page_size", message.page_size)?)
        }
        "ColumnPaginationFilter" => {
            let message: pb::ColumnPaginationFilter = inner(class, bytes)?;
            let limit = required(class, "limit", message.limit)?;
            match message.column_offset {
                Some(column) => FilterSpec::column_pagination_from(limit, column.to_vec()),
                None => FilterSpec::column_pagination(limit, message.offset.unwrap_or(0)),
            }
        }
        "TimestampsFilter" => {
            let message: pb::TimestampsFilter = inner(class, bytes)?;
            FilterSpec::timestamps(message.timestamps, message.can_hint.unwrap_or(false))
        }
        "ColumnRangeFilter" => {
            let message: pb::ColumnRangeFilter = inner(class, bytes)?;
            Ok(FilterSpec::column_range(ColumnRange {
                min: message.min_column.map(|bytes| bytes.to_vec()),
                min_inclusive: message.min_column_inclusive.unwrap_or(false),
                max: message.max_column.map(|bytes| bytes.to_vec()),
                max_inclusive: message.max_column_inclusive.unwrap_or(false),
            }))
        }
        "FuzzyRowFilter" => {
            let message: pb::FuzzyRowFilter = inner(class, bytes)?;
            let form = match message.is_mask_v2 {
                Some(true) => MaskForm::Two,
                _ => MaskForm::One,
            };
            let keys = message.fuzzy_keys.iter().map(|pair| {
                let key = required(class, "first", pair.first.as_ref())?;
                FuzzyKey::new(key, required(class, "second", pair.second.as_ref())?, form)
            });
            Ok(FilterSpec::fuzzy_row(keys.collect::<Result<_>>()?))
        }
        "MultiRowRangeFilter" => {
            let message: pb::MultiRowRangeFilter = inner(class, bytes)?;
            let ranges = message.row_range_list.iter().map(|range| RowRange {
                start: owned(range.start_row.as_ref()),
                start_inclusive: range.start_row_inclusive.unwrap_or(false),
                stop: owned(range.stop_row.as_ref()),
                stop_inclusive: range.stop_row_inclusive.unwrap_or(false),
            });
            FilterSpec::multi_row_range(ranges.collect())
        }
        _ => comparing(class, name, bytes),
    }
}

/// Filters with a comparison.
fn comparing(class: &str, name: &str, bytes: Option<&Bytes>) -> Result<FilterSpec> {
    let part = || -> Result<Comparison> {
        let message: pb::PartFilter = inner(class, bytes)?;
        let filter = required(class, "compare_filter", message.compare_filter)?;
        comparison(class, filter.compare_op, filter.comparator.as_ref())
    };
    match class {
        "RowFilter" => Ok(FilterSpec::row(part()?)),
        "FamilyFilter" => Ok(FilterSpec::family(part()?)),
        "QualifierFilter" => Ok(FilterSpec::qualifier(part()?)),
        "ValueFilter" => Ok(FilterSpec::value(part()?)),
        "SingleColumnValueFilter" => {
            let message: pb::SingleColumnValueFilter = inner(class, bytes)?;
            Ok(FilterSpec::single_column_value(
                single_column_value(class, &message)?,
                false,
            ))
        }
        "SingleColumnValueExcludeFilter" => {
            let message: pb::SingleColumnValueExcludeFilter = inner(class, bytes)?;
            let message = required(
                class,
                "single_column_value_filter",
                message.single_column_value_filter,
            )?;
            Ok(FilterSpec::single_column_value(
                single_column_value(class, &message)?,
                true,
            ))
        }
        "ColumnValueFilter" => {
            let message: pb::ColumnValueFilter = inner(class, bytes)?;
            Ok(FilterSpec::column_value(
                required(class, "family", message.family)?.to_vec(),
                required(class, "qualifier", message.qualifier)?.to_vec(),
                comparison(class, message.compare_op, message.comparator.as_ref())?,
            ))
        }
        "DependentColumnFilter" => {
            let message: pb::DependentColumnFilter = inner(class, bytes)?;
            let filter = required(class, "compare_filter", message.compare_filter)?;
            compare_op(class, filter.compare_op)?;
            let comparison = match &filter.comparator {
                Some(_) => Some(comparison(class, filter.compare_op, filter.comparator.as_ref())?),
                None => None,
            };
            Ok(FilterSpec::dependent_column(
                owned(message.column_family.as_ref()),
                owned(message.column_qualifier.as_ref()),
                message.drop_dependent_column.unwrap_or(false),
                comparison,
            ))
        }
        _ => Err(Error::UnknownClass {
            what: "Filter class",
            class: shown(name),
        }),
    }
}

/// In protobuf a missing `latest_version_only` is false, unlike in the filter language.
fn single_column_value(class: &str, message: &pb::SingleColumnValueFilter) -> Result<SingleColumnValue> {
    Ok(SingleColumnValue {
        family: owned(message.column_family.as_ref()),
        qualifier: owned(message.column_qualifier.as_ref()),
        comparison: comparison(class, message.compare_op, message.comparator.as_ref())?,
        filter_if_missing: message.filter_if_missing.unwrap_or(false),
        latest_version_only: message.latest_version_only.unwrap_or(false),
    })
}

fn compare_op(class: &str, code: Option<i32>) -> Result<CompareOp> {
    Ok(match required(class, "compare_op", code)? {
        0 => CompareOp::Less,
        1 => CompareOp::LessOrEqual,
        2 => CompareOp::Equal,
        3 => CompareOp::NotEqual,
        4 => CompareOp::GreaterOrEqual,
        5 => CompareOp::Greater,
        6 => CompareOp::NoOp,
        other => return Err(Error::DoNotRetry(format!("{class}: unknown compare_op {other}"))),
    })
}

fn comparison(class: &str, op: Option<i32>, message: Option<&pb::Comparator>) -> Result<Comparison> {
    let op = compare_op(class, op)?;
    let message = required(class, "comparator", message)?;
    Ok(Comparison::new(op, comparator(message)?))
}

pub(super) fn comparator(message: &pb::Comparator) -> Result<Comparator> {
    let name = required("hbase.pb.Comparator", "name", message.name.as_deref())?;
    let bytes = message.serialized_comparator.as_ref();
    let class = name.strip_prefix(PACKAGE).unwrap_or_default();
    let value = || -> Result<Vec<u8>> {
        let message: pb::Comparable = inner(class, bytes)?;
        Ok(owned(
            required(class, "comparable", message.comparable)?.value.as_ref(),
        ))
    };
    Ok(match class {
        "BinaryComparator" => Comparator::Binary(value()?),
        "BinaryPrefixComparator" => Comparator::BinaryPrefix(value()?),
        "BigDecimalComparator" => Comparator::BigDecimal(BigDecimal::decode(&value()?)?),
        "LongComparator" => {
            let value = value()?;
            let number = value.as_slice().try_into().map(i64::from_be_bytes);
            Comparator::Long(number.map_err(|_| {
                Error::DoNotRetry(format!(
                    "LongComparator: Wrong length: {}, expected 8",
                    value.len()
                ))
            })?)
        }
        "BitComparator" => {
            let message: pb::BitComparator = inner(class, bytes)?;
            let operator = match required(class, "bitwise_op", message.bitwise_op)? {
                1 => BitOperator::And,
                2 => BitOperator::Or,
                3 => BitOperator::Xor,
                other => {
                    return Err(Error::DoNotRetry(format!(
                        "BitComparator: unknown bitwise_op {other}"
                    )));
                }
            };
            let value = owned(required(class, "comparable", message.comparable)?.value.as_ref());
            Comparator::Bit { value, operator }
        }
        "RegexStringComparator" => Comparator::Regex(regex(class, &inner(class, bytes)?)?),
        "SubstringComparator" => {
            let message: pb::SubstringComparator = inner(class, bytes)?;
            Comparator::substring(&required(class, "substr", message.substr)?)
        }
        "BinaryComponentComparator" => {
            let message: pb::BinaryComponentComparator = inner(class, bytes)?;
            Comparator::BinaryComponent {
                value: required(class, "value", message.value)?.to_vec(),
                offset: required(class, "offset", message.offset)? as usize,
            }
        }
        "NullComparator" => Comparator::Null,
        _ => {
            return Err(Error::UnknownClass {
                what: "Comparator class",
                class: shown(name),
            });
        }
    })
}

/// Java's engine and JONI answer alike for what we support.
fn regex(class: &str, message: &pb::RegexStringComparator) -> Result<JavaRegex> {
    if let Some(engine) = &message.engine
        && !matches!(engine.as_str(), "JAVA" | "JONI")
    {
        return Err(Error::DoNotRetry(format!(
            "{class}: unknown engine {}",
            shown(engine)
        )));
    }
    JavaRegex::with_flags(
        required(class, "pattern", message.pattern.as_deref())?,
        required(class, "pattern_flags", message.pattern_flags)?,
        required(class, "charset", message.charset.as_deref())?,
    )
}

//! Filters of scanners: HBase's JSON in a string.
//!
//! A filter is an object with `type`, the name of its class without package, and the fields that this class
//! takes. Bytes are base64; values of comparators with text, and page sizes, are plain. HBase's client sends
//! all fields, those that mean nothing as null.

use basalt_types::filter::{
    BitOperator, ColumnRange, Comparator, CompareOp, Comparison, FilterSpec, FuzzyKey, ListOperator,
    MaskForm, RowRange, SingleColumnValue,
};
use serde::Deserialize;

use crate::encoding::{decode_base64, shown};
use crate::model::json::{Base64, Number, Scalar};
use crate::{Malformed, Result};

/// Longest text of a filter, as of the filter language.
pub const FILTER_TEXT_MAX_BYTES: usize = 64 * 1024;
/// Most regular expressions in one filter, and most memory of all of them.
const REGEXES_MAX: usize = 64;
const REGEX_BYTES_MAX: usize = 2 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Model {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    op: Option<String>,
    #[serde(default)]
    value: Option<Scalar>,
    #[serde(default)]
    family: Option<Base64>,
    #[serde(default)]
    qualifier: Option<Base64>,
    #[serde(default)]
    comparator: Option<ComparatorModel>,
    #[serde(default)]
    limit: Option<Number>,
    #[serde(default)]
    offset: Option<Number>,
    #[serde(default)]
    chance: Option<f32>,
    #[serde(default)]
    prefixes: Option<Vec<Base64>>,
    #[serde(default)]
    if_missing: Option<bool>,
    #[serde(default)]
    latest_version: Option<bool>,
    #[serde(default)]
    min_column: Option<Base64>,
    #[serde(default)]
    min_column_inclusive: Option<bool>,
    #[serde(default)]
    max_column: Option<Base64>,
    #[serde(default)]
    max_column_inclusive: Option<bool>,
    #[serde(default)]
    drop_dependent_column: Option<bool>,
    #[serde(default)]
    filters: Option<Vec<Model>>,
    #[serde(default)]
    ranges: Option<Vec<RangeModel>>,
    #[serde(default)]
    fuzzy_keys: Option<Vec<FuzzyKeyModel>>,
    #[serde(default)]
    timestamps: Option<Vec<Number>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComparatorModel {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    op: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RangeModel {
    #[serde(default)]
    start_row: Option<Base64>,
    #[serde(default)]
    start_row_inclusive: Option<bool>,
    #[serde(default)]
    stop_row: Option<Base64>,
    #[serde(default)]
    stop_row_inclusive: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FuzzyKeyModel {
    #[serde(default)]
    key: Base64,
    #[serde(default)]
    mask: Base64,
}

/// Reads a filter. `seed` is for filters that draw rows by chance.
pub fn parse(text: &str, seed: u64) -> Result<FilterSpec> {
    if text.len() > FILTER_TEXT_MAX_BYTES {
        return Err(Malformed(format!(
            "the filter has {} bytes, and at most {FILTER_TEXT_MAX_BYTES} are allowed",
            text.len()
        )));
    }
    let model = serde_json::from_str(text)
        .map_err(|error| Malformed::unread("the filter is not JSON of this kind", &error))?;
    Builder {
        seed,
        regexes: 0,
        regex_bytes: 0,
    }
    .filter(model)
}

/// Whether the text may name a regular expression, which takes long to compile.
pub fn may_have_regex(text: &str) -> bool {
    text.contains("Regex")
}

struct Builder {
    seed: u64,
    regexes: usize,
    regex_bytes: usize,
}

impl Builder {
    fn filter(&mut self, model: Model) -> Result<FilterSpec> {
        let kind = model.kind.clone();
        let missing = |field: &str| {
            Malformed(format!(
                "a {} of the filter needs {field}",
                shown(kind.as_bytes())
            ))
        };
        let bytes =
            |value: Option<Scalar>| decode_base64(value.ok_or_else(|| missing("value"))?.0.as_bytes());
        let owned = |bytes: Option<Base64>| bytes.unwrap_or_default().0;
        Ok(match &kind[..] {
            "ColumnCountGetFilter" => {
                FilterSpec::column_count_get(number(model.limit, || missing("limit"))?)?
            }
            "ColumnPaginationFilter" => FilterSpec::column_pagination(
                number(model.limit, || missing("limit"))?,
                model.offset.map_or(0, Number::to_i32),
            )?,
            "ColumnPrefixFilter" => FilterSpec::column_prefix(bytes(model.value)?),
            "PrefixFilter" => FilterSpec::prefix(bytes(model.value)?),
            "InclusiveStopFilter" => FilterSpec::inclusive_stop(bytes(model.value)?),
            "PageFilter" => {
                let text = model.value.ok_or_else(|| missing("value"))?.0;
                let rows = text.parse().map_err(|_| {
                    Malformed(format!(
                        "the value of a PageFilter must be a number of rows, not {}",
                        shown(text.as_bytes())
                    ))
                })?;
                FilterSpec::page(rows)?
            }
            "ColumnRangeFilter" => FilterSpec::column_range(ColumnRange {
                min: model.min_column.map(|column| column.0),
                min_inclusive: model.min_column_inclusive.unwrap_or(true),
                max: model.max_column.map(|column| column.0),
                max_inclusive: model.max_column_inclusive.unwrap_or(false),
            }),
            "MultipleColumnPrefixFilter" => {
                let prefixes = model.prefixes.ok_or_else(|| missing("prefixes"))?;
                FilterSpec::multiple_column_prefix(prefixes.into_iter().map(|prefix| prefix.0).collect())?
            }
            "FamilyFilter" => FilterSpec::family(self.comparison(&kind, model.op, model.comparator)?),
            "QualifierFilter" => FilterSpec::qualifier(self.comparison(&kind, model.op, model.comparator)?),
            "RowFilter" => FilterSpec::row(self.comparison(&kind, model.op, model.comparator)?),
            "ValueFilter" => FilterSpec::value(self.comparison(&kind, model.op, model.comparator)?),
            "SingleColumnValueFilter" | "SingleColumnValueExcludeFilter" => {
                let test = SingleColumnValue {
                    family: model.family.ok_or_else(|| missing("family"))?.0,
                    qualifier: owned(model.qualifier),
                    comparison: self.comparison(&kind, model.op, model.comparator)?,
                    filter_if_missing: model.if_missing.unwrap_or(false),
                    latest_version_only: model.latest_version.unwrap_or(true),
                };
                FilterSpec::single_column_value(test, kind == "SingleColumnValueExcludeFilter")
            }
            "DependentColumnFilter" => {
                let comparison = match model.comparator {
                    None => None,
                    comparator => Some(self.comparison(&kind, model.op, comparator)?),
                };
                FilterSpec::dependent_column(
                    model.family.ok_or_else(|| missing("family"))?.0,
                    owned(model.qualifier),
                    model.drop_dependent_column.unwrap_or(false),
                    comparison,
                )
            }
            "FilterList" => {
                let operator = match model.op.as_deref() {
                    Some("MUST_PASS_ALL") => ListOperator::MustPassAll,
                    Some("MUST_PASS_ONE") => ListOperator::MustPassOne,
                    _ => return Err(missing("op, MUST_PASS_ALL or MUST_PASS_ONE")),
                };
                let filters = model.filters.unwrap_or_default().into_iter();
                FilterSpec::list(
                    operator,
                    filters.map(|filter| self.filter(filter)).collect::<Result<_>>()?,
                )?
            }
            "SkipFilter" | "WhileMatchFilter" => {
                let first = model.filters.and_then(|filters| filters.into_iter().next());
                let filter = self.filter(first.ok_or_else(|| missing("filters"))?)?;
                if kind == "SkipFilter" {
                    FilterSpec::skip(filter)?
                } else {
                    FilterSpec::while_match(filter)?
                }
            }
            "MultiRowRangeFilter" => {
                let ranges = model.ranges.ok_or_else(|| missing("ranges"))?.into_iter();
                let range = |range: RangeModel| RowRange {
                    start: owned(range.start_row),
                    start_inclusive: range.start_row_inclusive.unwrap_or(true),
                    stop: owned(range.stop_row),
                    stop_inclusive: range.stop_row_inclusive.unwrap_or(false),
                };
                FilterSpec::multi_row_range(ranges.map(range).collect())?
            }
            "FuzzyRowFilter" => {
                let keys = model.fuzzy_keys.ok_or_else(|| missing("fuzzyKeys"))?;
                let keys = keys
                    .iter()
                    .map(|key| FuzzyKey::new(&key.key.0, &key.mask.0, MaskForm::Two));
                FilterSpec::fuzzy_row(keys.collect::<Result<_, _>>()?)
            }
            "TimestampsFilter" => {
                let times = model.timestamps.ok_or_else(|| missing("timestamps"))?;
                FilterSpec::timestamps(times.into_iter().map(|time| time.0).collect(), false)?
            }
            "RandomRowFilter" => {
                // Several in one tree must not draw the same rows.
                self.seed = self.seed.wrapping_add(1);
                FilterSpec::random_row(model.chance.ok_or_else(|| missing("chance"))?, self.seed)
            }
            "FirstKeyOnlyFilter" => FilterSpec::first_key_only(),
            "KeyOnlyFilter" => FilterSpec::key_only(false),
            _ => {
                return Err(Malformed(format!(
                    "the filter {} is not known",
                    shown(kind.as_bytes())
                )));
            }
        })
    }

    fn comparison(
        &mut self,
        kind: &str,
        op: Option<String>,
        comparator: Option<ComparatorModel>,
    ) -> Result<Comparison> {
        let missing = |field: &str| Malformed(format!("a {kind} of the filter needs {field}"));
        let op = op.ok_or_else(|| missing("op"))?;
        let op = match &op[..] {
            "LESS" => CompareOp::Less,
            "LESS_OR_EQUAL" => CompareOp::LessOrEqual,
            "EQUAL" => CompareOp::Equal,
            "NOT_EQUAL" => CompareOp::NotEqual,
            "GREATER_OR_EQUAL" => CompareOp::GreaterOrEqual,
            "GREATER" => CompareOp::Greater,
            "NO_OP" => CompareOp::NoOp,
            _ => {
                return Err(Malformed(format!(
                    "the op {} of a {kind} is not known",
                    shown(op.as_bytes())
                )));
            }
        };
        let comparator = self.comparator(&comparator.ok_or_else(|| missing("comparator"))?)?;
        Ok(Comparison::new(op, comparator))
    }

    fn comparator(&mut self, model: &ComparatorModel) -> Result<Comparator> {
        let kind = &model.kind[..];
        let missing = |field: &str| {
            Malformed(format!(
                "a {} of the filter needs {field}",
                shown(kind.as_bytes())
            ))
        };
        let text = || model.value.as_deref().ok_or_else(|| missing("value"));
        let bytes = || decode_base64(text()?.as_bytes());
        Ok(match kind {
            "BinaryComparator" => Comparator::Binary(bytes()?),
            "BinaryPrefixComparator" => Comparator::BinaryPrefix(bytes()?),
            "BitComparator" => Comparator::Bit {
                value: bytes()?,
                operator: match model.op.as_deref() {
                    Some("AND") => BitOperator::And,
                    Some("OR") => BitOperator::Or,
                    Some("XOR") => BitOperator::Xor,
                    _ => return Err(missing("op, AND, OR or XOR")),
                },
            },
            "NullComparator" => Comparator::Null,
            "SubstringComparator" => Comparator::substring(text()?),
            "RegexStringComparator" => {
                let regex = Comparator::regex(text()?)?;
                self.regexes += 1;
                self.regex_bytes += regex.memory_bytes();
                if self.regexes > REGEXES_MAX || self.regex_bytes > REGEX_BYTES_MAX {
                    return Err(Malformed(format!(
                        "the regular expressions of one filter may be {REGEXES_MAX}, and take {REGEX_BYTES_MAX} bytes compiled"
                    )));
                }
                regex
            }
            _ => {
                return Err(Malformed(format!(
                    "the comparator {} is not known",
                    shown(kind.as_bytes())
                )));
            }
        })
    }
}

fn number(number: Option<Number>, missing: impl FnOnce() -> Malformed) -> Result<i32> {
    Ok(number.ok_or_else(missing)?.to_i32())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> FilterSpec {
        parse(text, 1).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Goal: each type means the filter of its name in HBase's filter language, where that has it.
    #[test]
    fn each_type_is_the_filter_of_its_name() {
        let binary = r#""comparator":{"type":"BinaryComparator","value":"dg=="}"#;
        for (json, language) in [
            (
                r#"{"type":"ColumnCountGetFilter","limit":3}"#,
                "ColumnCountGetFilter(3)",
            ),
            (
                r#"{"type":"ColumnPaginationFilter","limit":"3","offset":1}"#,
                "ColumnPaginationFilter(3,1)",
            ),
            (r#"{"type":"PrefixFilter","value":"cg=="}"#, "PrefixFilter('r')"),
            (
                r#"{"type":"ColumnPrefixFilter","value":"cg=="}"#,
                "ColumnPrefixFilter('r')",
            ),
            (
                r#"{"type":"InclusiveStopFilter","value":"cg=="}"#,
                "InclusiveStopFilter('r')",
            ),
            (r#"{"type":"PageFilter","value":"5"}"#, "PageFilter(5)"),
            (r#"{"type":"PageFilter","value":5}"#, "PageFilter(5)"),
            (
                r#"{"type":"ColumnRangeFilter","minColumn":"YQ==","minColumnInclusive":true,"maxColumn":"Yg==","maxColumnInclusive":false}"#,
                "ColumnRangeFilter('a',true,'b',false)",
            ),
            (
                r#"{"type":"MultipleColumnPrefixFilter","prefixes":["YQ==","Yg=="]}"#,
                "MultipleColumnPrefixFilter('a','b')",
            ),
            (
                &format!(r#"{{"type":"RowFilter","op":"EQUAL",{binary}}}"#),
                "RowFilter(=,'binary:v')",
            ),
            (
                &format!(r#"{{"type":"FamilyFilter","op":"LESS",{binary}}}"#),
                "FamilyFilter(<,'binary:v')",
            ),
            (
                &format!(r#"{{"type":"QualifierFilter","op":"GREATER_OR_EQUAL",{binary}}}"#),
                "QualifierFilter(>=,'binary:v')",
            ),
            (
                r#"{"type":"ValueFilter","op":"NOT_EQUAL","comparator":{"type":"SubstringComparator","value":"Abc"}}"#,
                "ValueFilter(!=,'substring:Abc')",
            ),
            (
                r#"{"type":"ValueFilter","op":"EQUAL","comparator":{"type":"RegexStringComparator","value":"a.c"}}"#,
                "ValueFilter(=,'regexstring:a.c')",
            ),
            (
                &format!(
                    r#"{{"type":"SingleColumnValueFilter","op":"EQUAL","family":"Zg==","qualifier":"cQ==","ifMissing":true,"latestVersion":false,{binary}}}"#
                ),
                "SingleColumnValueFilter('f','q',=,'binary:v',true,false)",
            ),
            (
                &format!(
                    r#"{{"type":"SingleColumnValueExcludeFilter","op":"EQUAL","family":"Zg==","qualifier":"cQ==",{binary}}}"#
                ),
                "SingleColumnValueExcludeFilter('f','q',=,'binary:v',false,true)",
            ),
            (
                &format!(
                    r#"{{"type":"DependentColumnFilter","op":"EQUAL","family":"Zg==","qualifier":"cQ==","dropDependentColumn":true,{binary}}}"#
                ),
                "DependentColumnFilter('f','q',true,=,'binary:v')",
            ),
            (
                r#"{"type":"TimestampsFilter","timestamps":["2",1]}"#,
                "TimestampsFilter(1,2)",
            ),
            (r#"{"type":"FirstKeyOnlyFilter"}"#, "FirstKeyOnlyFilter()"),
            (r#"{"type":"KeyOnlyFilter"}"#, "KeyOnlyFilter()"),
            (
                r#"{"type":"FilterList","op":"MUST_PASS_ONE","filters":[{"type":"KeyOnlyFilter"},{"type":"PageFilter","value":1}]}"#,
                "KeyOnlyFilter() OR PageFilter(1)",
            ),
            (
                r#"{"type":"SkipFilter","filters":[{"type":"KeyOnlyFilter"}]}"#,
                "SKIP KeyOnlyFilter()",
            ),
            (
                r#"{"type":"WhileMatchFilter","filters":[{"type":"KeyOnlyFilter"}]}"#,
                "WHILE KeyOnlyFilter()",
            ),
        ] {
            assert_eq!(
                read(json),
                FilterSpec::parse(language.as_bytes()).unwrap(),
                "{json}"
            );
        }
    }

    #[test]
    fn types_that_the_filter_language_lacks() {
        let ranges =
            read(r#"{"type":"MultiRowRangeFilter","ranges":[{"startRow":"YQ==","stopRow":"Yg=="}]}"#);
        let range = RowRange {
            start: b"a".to_vec(),
            start_inclusive: true,
            stop: b"b".to_vec(),
            stop_inclusive: false,
        };
        assert_eq!(ranges, FilterSpec::multi_row_range(vec![range]).unwrap());
        let fuzzy = read(r#"{"type":"FuzzyRowFilter","fuzzyKeys":[{"key":"YWI=","mask":"AAE="}]}"#);
        let key = FuzzyKey::new(b"ab", &[0, 1], MaskForm::Two).unwrap();
        assert_eq!(fuzzy, FilterSpec::fuzzy_row(vec![key]));
        assert_eq!(
            read(r#"{"type":"RandomRowFilter","chance":0.5}"#),
            FilterSpec::random_row(0.5, 2)
        );
        for (comparator, expected) in [
            (r#"{"type":"NullComparator"}"#, Comparator::Null),
            (
                r#"{"type":"BinaryPrefixComparator","value":"dg=="}"#,
                Comparator::BinaryPrefix(b"v".to_vec()),
            ),
            (
                r#"{"type":"BitComparator","value":"AQ==","op":"XOR"}"#,
                Comparator::Bit {
                    value: vec![1],
                    operator: BitOperator::Xor,
                },
            ),
        ] {
            let filter = read(&format!(
                r#"{{"type":"ValueFilter","op":"NO_OP","comparator":{comparator}}}"#
            ));
            assert_eq!(
                filter,
                FilterSpec::value(Comparison::new(CompareOp::NoOp, expected))
            );
        }
    }

    /// HBase's client sends every field of its class, those without meaning as null.
    #[test]
    fn fields_that_are_null_mean_nothing() {
        let text = r#"{"type":"PrefixFilter","op":null,"family":null,"qualifier":null,"value":"cg==","filters":null,"limit":null,
            "offset":null,"comparator":null,"prefixes":null,"timestamps":null,"ranges":null,"fuzzyKeys":null,"chance":null,
            "ifMissing":null,"latestVersion":null,"minColumn":null,"minColumnInclusive":null,"maxColumn":null,
            "maxColumnInclusive":null,"dropDependentColumn":null}"#;
        assert_eq!(read(text), FilterSpec::prefix(b"r".to_vec()));
    }

    #[test]
    fn malformed_filters_are_refused_in_one_line() {
        let deep = format!(
            "{}{{\"type\":\"KeyOnlyFilter\"}}{}",
            "{\"type\":\"SkipFilter\",\"filters\":[".repeat(70),
            "]}".repeat(70)
        );
        let regex =
            r#"{"type":"RowFilter","op":"EQUAL","comparator":{"type":"RegexStringComparator","value":"a"}}"#;
        let many = format!(
            "{{\"type\":\"FilterList\",\"op\":\"MUST_PASS_ONE\",\"filters\":[{}]}}",
            vec![regex; 65].join(",")
        );
        for text in [
            "",
            "x",
            "[]",
            "{}",
            r#"{"type":"NoSuchFilter"}"#,
            r#"{"type":"PrefixFilter"}"#,
            r#"{"type":"PrefixFilter","value":"?"}"#,
            r#"{"type":"PrefixFilter","value":"cg==","other":1}"#,
            r#"{"type":"PageFilter","value":"x"}"#,
            r#"{"type":"PageFilter","value":-1}"#,
            r#"{"type":"RowFilter","op":"LIKE","comparator":{"type":"NullComparator"}}"#,
            r#"{"type":"RowFilter","op":"EQUAL"}"#,
            r#"{"type":"RowFilter","op":"EQUAL","comparator":{"type":"LongComparator"}}"#,
            r#"{"type":"RowFilter","op":"EQUAL","comparator":{"type":"RegexStringComparator","value":"("}}"#,
            r#"{"type":"FilterList","filters":[]}"#,
            r#"{"type":"SkipFilter","filters":[]}"#,
            r#"{"type":"FuzzyRowFilter","fuzzyKeys":[{"key":"YWI=","mask":"AA=="}]}"#,
            &deep,
            &many,
            &"x".repeat(FILTER_TEXT_MAX_BYTES + 1),
        ] {
            let error = parse(text, 1).unwrap_err();
            assert!(!error.0.contains('\n') && error.0.len() < 400, "{text}: {error}");
        }
    }
}

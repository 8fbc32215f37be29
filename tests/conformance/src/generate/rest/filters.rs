//! Filters of scanners: JSON in a string. `super::super::filter_bytes` says which filters are never made.
//! None of them is made here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use super::super::Generator;

/// Filters nested in each other at most.
const DEPTH_MAX: u32 = 2;

fn base64(bytes: impl AsRef<[u8]>) -> Json {
    STANDARD.encode(bytes).into()
}

impl Generator {
    /// A filter in JSON; rarely a text that is none.
    pub(super) fn rest_filter(&mut self) -> String {
        match self.int(0..=99) {
            0 => r#"{"type":"NoSuchFilter"}"#.to_owned(),
            1 => "PrefixFilter ('a')".to_owned(),
            _ => self.json_tree(DEPTH_MAX, false).to_string(),
        }
    }

    /// `skipped`: inside SkipFilter, where MultiRowRangeFilter fails in HBase.
    fn json_tree(&mut self, depth: u32, skipped: bool) -> Json {
        if depth == 0 || self.chance(0.6) {
            return self.json_leaf(depth == DEPTH_MAX, skipped);
        }
        match self.int(0..=9) {
            0 => json!({"type": "SkipFilter", "filters": [self.json_tree(depth - 1, true)]}),
            1 => {
                let inner = self.inside_while(|this| this.json_tree(depth - 1, skipped));
                json!({"type": "WhileMatchFilter", "filters": [inner]})
            }
            choice => {
                let op = if choice < 7 {
                    "MUST_PASS_ALL"
                } else {
                    "MUST_PASS_ONE"
                };
                let filters = self.list(1..=3, |this| this.json_tree(depth - 1, skipped));
                json!({"type": "FilterList", "op": op, "filters": filters})
            }
        }
    }

    fn json_op(&mut self) -> &'static str {
        self.one_of(&[
            "LESS",
            "LESS_OR_EQUAL",
            "EQUAL",
            "NOT_EQUAL",
            "GREATER_OR_EQUAL",
            "GREATER",
        ])
    }

    /// Operator and comparator that go together.
    fn json_comparison(&mut self, part: &[u8]) -> (&'static str, Json) {
        let op = self.json_op();
        let equality = self.one_of(&["EQUAL", "NOT_EQUAL"]);
        match self.int(0..=17) {
            0..=7 => (op, json!({"type": "BinaryComparator", "value": base64(part)})),
            8..=11 => (
                op,
                json!({"type": "BinaryPrefixComparator", "value": base64(part)}),
            ),
            12 | 13 => {
                let text = String::from_utf8_lossy(part).into_owned();
                (equality, json!({"type": "SubstringComparator", "value": text}))
            }
            14 | 15 => {
                let pattern = self.one_of(&["v[12]", "^b", ".*1$", "[a-c]", "b0?1?$", "(a|b).*", "\\d"]);
                (
                    equality,
                    json!({"type": "RegexStringComparator", "value": pattern}),
                )
            }
            16 => (op, json!({"type": "NullComparator"})),
            _ => {
                let bits = self.one_of(&["AND", "OR", "XOR"]);
                (
                    equality,
                    json!({"type": "BitComparator", "value": base64(part), "op": bits}),
                )
            }
        }
    }

    /// A filter with nothing but a comparison.
    fn json_comparing(&mut self, kind: &str, part: &[u8]) -> Json {
        let (op, comparator) = self.json_comparison(part);
        json!({"type": kind, "op": op, "comparator": comparator})
    }

    /// `alone`: not inside a list or another filter.
    fn json_leaf(&mut self, alone: bool, skipped: bool) -> Json {
        // Filters that seek, and filters that judge rows by their keys.
        let choice = match self.int(0..=20) {
            3..=5 if self.empty_qualifiers => 0,
            2 | 11 if self.in_while => 0,
            choice => choice,
        };
        match choice {
            1 => json!({"type": "FirstKeyOnlyFilter"}),
            2 => json!({"type": "PrefixFilter", "value": base64(self.row_prefix())}),
            3 => json!({"type": "ColumnPrefixFilter", "value": base64(self.qualifier_name())}),
            4 => {
                let prefixes = self.distinct(1..=3, Self::qualifier_name, |name| *name);
                let prefixes: Vec<Json> = prefixes.iter().map(base64).collect();
                json!({"type": "MultipleColumnPrefixFilter", "prefixes": prefixes})
            }
            5 => json!({
                "type": "ColumnRangeFilter",
                "minColumn": base64(self.qualifier_name()), "minColumnInclusive": self.chance(0.5),
                "maxColumn": base64(self.qualifier_name()), "maxColumnInclusive": self.chance(0.5),
            }),
            6 => {
                json!({"type": "ColumnPaginationFilter", "limit": self.int(0..=3), "offset": self.int(0..=2)})
            }
            7 => json!({"type": "ColumnCountGetFilter", "limit": self.int(0..=4)}),
            8 => json!({"type": "PageFilter", "value": self.int(0..=5).to_string()}),
            9 => json!({"type": "InclusiveStopFilter", "value": base64(self.row_bytes())}),
            10 => {
                json!({"type": "TimestampsFilter", "timestamps": self.list(1..=4, |this| this.int(0..=12))})
            }
            11 => {
                let part = self.row_bytes();
                self.json_comparing("RowFilter", &part)
            }
            12 => {
                let part = self.family_name();
                self.json_comparing("FamilyFilter", part.as_bytes())
            }
            13 => {
                let part = self.qualifier_name();
                self.json_comparing("QualifierFilter", part.as_bytes())
            }
            14 => {
                let part = self.value_bytes();
                self.json_comparing("ValueFilter", &part)
            }
            15 | 16 => self.json_single_column_value(),
            17 => self.json_dependent_column(),
            18 if alone => self.json_fuzzy_row(),
            19 if !skipped => self.json_multi_row_range(),
            _ => json!({"type": "KeyOnlyFilter"}),
        }
    }

    fn json_single_column_value(&mut self) -> Json {
        let kind = self.one_of(&["SingleColumnValueFilter", "SingleColumnValueExcludeFilter"]);
        let value = self.value_bytes();
        let mut filter = self.json_comparing(kind, &value);
        filter["family"] = base64(self.family_name());
        filter["qualifier"] = base64(self.qualifier_name());
        filter["ifMissing"] = self.chance(0.5).into();
        filter["latestVersion"] = self.chance(0.5).into();
        filter
    }

    fn json_dependent_column(&mut self) -> Json {
        let value = self.value_bytes();
        let mut filter = self.json_comparing("DependentColumnFilter", &value);
        filter["family"] = base64(self.family_name());
        filter["qualifier"] = base64(self.qualifier_name());
        filter["dropDependentColumn"] = self.chance(0.5).into();
        filter
    }

    fn json_fuzzy_row(&mut self) -> Json {
        let keys = self.list(1..=2, |this| {
            // One byte: HBase skips some rows that are shorter than a key.
            let mut key = this.row_bytes();
            key.truncate(1);
            let mask = [u8::from(this.chance(0.4))];
            json!({"key": base64(key), "mask": base64(mask)})
        });
        json!({"type": "FuzzyRowFilter", "fuzzyKeys": keys})
    }

    fn json_multi_row_range(&mut self) -> Json {
        let from_inclusive = self.chance(0.7);
        let ranges = self.list(1..=3, |this| {
            let mut rows = [this.row_bytes(), this.row_bytes()];
            rows.sort();
            let [start, stop] = rows;
            json!({
                "startRow": base64(start), "startRowInclusive": from_inclusive,
                "stopRow": base64(stop), "stopRowInclusive": this.chance(0.5),
            })
        });
        json!({"type": "MultiRowRangeFilter", "ranges": ranges})
    }
}

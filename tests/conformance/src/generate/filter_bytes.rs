//! Filters as HBase's protobuf, in the form in which its Java client sends them: every filter and comparator
//! that it has.
//!
//! Not there: `RandomRowFilter` draws lots, `BinaryComponentComparator` and `LongComparator` read
//! bytes behind a part that is too short in HBase (the latter stands where there are numbers only),
//! `BigDecimalComparator` fails there, `FilterAllFilter` is in HBase's tests and not in its server,
//! and `FilterWrapper`, which HBase's server puts around every filter by itself, asks the wrapped
//! filter twice about each row when a client sends one.

use super::Generator;
use super::protobuf::Message;
use super::universe::NUMBERS;

/// Filters nested in each other at most.
const DEPTH_MAX: u32 = 2;

/// Package of HBase's filters and comparators.
const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";

/// `hbase.pb.Filter` and `hbase.pb.Comparator`: the name of a class and its message.
fn named(class: &str, inner: &Message) -> Message {
    Message::new()
        .bytes(1, format!("{PACKAGE}{class}"))
        .message(2, inner)
}

/// A message whose one field, or each value of it, is bytes.
fn values<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> Message {
    let message = Message::new();
    values
        .into_iter()
        .fold(message, |message, value| message.bytes(1, value))
}

/// `ByteArrayComparable`.
fn comparable(value: impl AsRef<[u8]>) -> Message {
    Message::new().message(1, &values([value]))
}

/// Codes of `CompareType`.
const EQUAL: i64 = 2;
const NOT_EQUAL: i64 = 3;
const NO_OP: i64 = 6;

/// Codes of `FilterList.Operator`.
const MUST_PASS_ALL: i64 = 1;
const MUST_PASS_ONE: i64 = 2;

impl Generator {
    /// A filter in bytes; rarely something that is none.
    pub(super) fn filter_bytes(&mut self) -> Vec<u8> {
        match self.int(0..=99) {
            0 => named("NoSuchFilter", &Message::new()).into_bytes(),
            1 => b"\x0a\xff".to_vec(),
            // Without the field that it cannot do without.
            2 => named("PageFilter", &Message::new()).into_bytes(),
            _ => self.message_tree(DEPTH_MAX, false).into_bytes(),
        }
    }

    /// `skipped`: inside SKIP, where MultiRowRangeFilter fails in HBase, for want of a call that comes first.
    fn message_tree(&mut self, depth: u32, skipped: bool) -> Message {
        if depth == 0 || self.chance(0.6) {
            return self.message_leaf(depth == DEPTH_MAX, skipped);
        }
        match self.int(0..=9) {
            0 => {
                let inner = self.message_tree(depth - 1, true);
                named("SkipFilter", &Message::new().message(1, &inner))
            }
            1 => {
                let inner = self.inside_while(|this| this.message_tree(depth - 1, skipped));
                named("WhileMatchFilter", &Message::new().message(1, &inner))
            }
            choice => {
                let operator = if choice < 7 { MUST_PASS_ALL } else { MUST_PASS_ONE };
                let filters = self.list(0..=3, |this| this.message_tree(depth - 1, skipped));
                let list = Message::new().int(1, operator);
                let list = filters.iter().fold(list, |list, filter| list.message(2, filter));
                named("FilterList", &list)
            }
        }
    }

    /// Operator and comparator that go together.
    fn message_comparison(&mut self, part: &[u8]) -> (i64, Message) {
        let operator = if self.chance(0.02) { NO_OP } else { self.int(0..=5) };
        let equality = self.one_of(&[EQUAL, NOT_EQUAL]);
        match self.int(0..=17) {
            0..=7 => (operator, named("BinaryComparator", &comparable(part))),
            8..=11 => (operator, named("BinaryPrefixComparator", &comparable(part))),
            12 | 13 => {
                let text = String::from_utf8_lossy(part).into_owned();
                (
                    equality,
                    named("SubstringComparator", &Message::new().bytes(1, text)),
                )
            }
            14 | 15 => (equality, self.regex_comparator()),
            16 => (operator, named("NullComparator", &Message::new())),
            _ => {
                let bits = comparable(part).int(2, self.int(1..=3));
                (equality, named("BitComparator", &bits))
            }
        }
    }

    /// A qualifier, an operator and a comparator for the column's values.
    fn column_comparison(&mut self) -> (&'static str, i64, Message) {
        if self.chance(0.2) {
            let number = self.int(-3..=9).to_be_bytes();
            let comparator = named("LongComparator", &comparable(number));
            return (NUMBERS, self.int(0..=5), comparator);
        }
        let value = self.value_bytes();
        let (operator, comparator) = self.message_comparison(&value);
        // In a filter of one column HBase does not know NO_OP and fails.
        let operator = if operator == NO_OP { EQUAL } else { operator };
        (self.qualifier_name(), operator, comparator)
    }

    fn regex_comparator(&mut self) -> Message {
        /// Bits of `java.util.regex.Pattern`.
        const CASE_INSENSITIVE: i64 = 2;
        const DOTALL: i64 = 32;
        let pattern = self.one_of(&["v[12]", "^B", ".*1$", "[A-C]", "b0?1?$", "(a|b).*", "\\d"]);
        let message = Message::new()
            .bytes(1, pattern)
            .int(2, self.one_of(&[DOTALL, DOTALL | CASE_INSENSITIVE]))
            .bytes(3, "UTF-8")
            .maybe(self.maybe(0.5, |_| "JAVA"), |message, engine| {
                message.bytes(4, engine)
            });
        named("RegexStringComparator", &message)
    }

    /// A filter with nothing but a comparison.
    fn comparing(&mut self, class: &str, part: &[u8]) -> Message {
        let (operator, comparator) = self.message_comparison(part);
        let comparison = Message::new().int(1, operator).message(2, &comparator);
        named(class, &Message::new().message(1, &comparison))
    }

    fn single_column_value(&mut self) -> Message {
        let (qualifier, operator, comparator) = self.column_comparison();
        let if_missing = self.chance(0.5) && !self.reversed;
        Message::new()
            .bytes(1, self.family_name())
            .bytes(2, qualifier)
            .int(3, operator)
            .message(4, &comparator)
            .bool(5, if_missing)
            .bool(6, self.chance(0.5))
    }

    /// `alone`: not inside a list or another filter.
    fn message_leaf(&mut self, alone: bool, skipped: bool) -> Message {
        // Filters that seek, and filters that judge rows by their keys.
        let choice = match self.int(0..=26) {
            3..=6 if self.empty_qualifiers => 0,
            2 | 12 if self.in_while => 0,
            choice => choice,
        };
        match choice {
            0 => named("KeyOnlyFilter", &Message::new().bool(1, self.chance(0.5))),
            1 => named("FirstKeyOnlyFilter", &Message::new()),
            2 => named("PrefixFilter", &values([self.row_prefix()])),
            3 => named("ColumnPrefixFilter", &values([self.qualifier_name()])),
            4 => {
                let prefixes = self.distinct(0..=3, Self::qualifier_name, |name| *name);
                named("MultipleColumnPrefixFilter", &values(prefixes))
            }
            5 => {
                let (low, high) = (self.qualifier_name(), self.qualifier_name());
                let range = Message::new()
                    .maybe(self.maybe(0.8, |_| low), |range, low| range.bytes(1, low))
                    .bool(2, self.chance(0.5))
                    .maybe(self.maybe(0.8, |_| high), |range, high| range.bytes(3, high))
                    .bool(4, self.chance(0.5));
                named("ColumnRangeFilter", &range)
            }
            6 => {
                let page = Message::new()
                    .int(1, self.int(0..=3))
                    .bytes(3, self.qualifier_name());
                named("ColumnPaginationFilter", &page)
            }
            7 => {
                let page = Message::new().int(1, self.int(0..=3)).int(2, self.int(0..=2));
                named("ColumnPaginationFilter", &page)
            }
            8 => named("ColumnCountGetFilter", &Message::new().int(1, self.int(0..=4))),
            9 => named("PageFilter", &Message::new().int(1, self.int(0..=5))),
            10 => named("InclusiveStopFilter", &values([self.row_bytes()])),
            11 => {
                let stamps = self.list(0..=4, |this| this.int(0..=12));
                named("TimestampsFilter", &Message::new().packed(1, &stamps))
            }
            12 => {
                let part = self.row_bytes();
                self.comparing("RowFilter", &part)
            }
            13 => {
                let part = self.family_name();
                self.comparing("FamilyFilter", part.as_bytes())
            }
            14 => {
                let part = self.qualifier_name();
                self.comparing("QualifierFilter", part.as_bytes())
            }
            15 => {
                let part = self.value_bytes();
                self.comparing("ValueFilter", &part)
            }
            16 | 17 => {
                let filter = self.single_column_value();
                named("SingleColumnValueFilter", &filter)
            }
            18 => {
                let filter = self.single_column_value();
                named(
                    "SingleColumnValueExcludeFilter",
                    &Message::new().message(1, &filter),
                )
            }
            19 | 20 => self.dependent_column(),
            // In lists HBase may miss the hint of one that has found its last row, and fails with a null
            // pointer; in reversed scans it jumps over rows that are longer than a key.
            21 | 22 if alone && !self.reversed => self.fuzzy_row(),
            23 | 24 if !skipped => self.multi_row_range(),
            25 if !self.reversed => {
                let (qualifier, operator, comparator) = self.column_comparison();
                let filter = Message::new()
                    .bytes(1, self.family_name())
                    .bytes(2, qualifier)
                    .int(3, operator)
                    .message(4, &comparator);
                named("ColumnValueFilter", &filter)
            }
            _ => {
                let qualifiers = self.list(1..=2, Self::qualifier_name);
                named("FirstKeyValueMatchingQualifiersFilter", &values(qualifiers))
            }
        }
    }

    fn dependent_column(&mut self) -> Message {
        let comparison = if self.chance(0.4) {
            let value = self.value_bytes();
            let (operator, comparator) = self.message_comparison(&value);
            Message::new().int(1, operator).message(2, &comparator)
        } else {
            Message::new().int(1, NO_OP)
        };
        let filter = Message::new()
            .message(1, &comparison)
            .bytes(2, self.family_name())
            .bytes(3, self.qualifier_name())
            .bool(4, self.chance(0.5));
        named("DependentColumnFilter", &filter)
    }

    /// Masks in all forms in which clients send them: as given to the constructor, 0 for a byte that must
    /// match, or as Java's client makes of it, whose keys have zeros where any byte will do.
    fn fuzzy_row(&mut self) -> Message {
        let [is_v2, fixed, free] = self.one_of(&[[1, 0, 1], [1, 0xff, 2], [0, 0xff, 2], [0, 0xff, 0]]);
        let pairs = self.list(1..=2, |this| {
            // One byte: a row that is shorter than a key is found in HBase by where the search for the row
            // before it went on.
            let mut key = this.row_bytes();
            key.truncate(1);
            let mut mask = vec![fixed; key.len()];
            for (byte, mask) in key.iter_mut().zip(&mut mask) {
                if this.chance(0.4) {
                    *mask = free;
                    *byte = if fixed == 0xff { 0 } else { *byte };
                }
            }
            Message::new().bytes(1, key).bytes(2, mask)
        });
        let filter = Message::new();
        let filter = pairs.iter().fold(filter, |filter, pair| filter.message(1, pair));
        let filter = filter.maybe((is_v2 == 1).then_some(true), |filter, is_v2| {
            filter.bool(2, is_v2)
        });
        named("FuzzyRowFilter", &filter)
    }

    /// Over native RPC some ranges exclude their first row and others include it.
    fn multi_row_range(&mut self) -> Message {
        let from_inclusive = self.chance(0.7);
        let ranges = self.list(1..=4, |this| {
            let mut rows = [this.row_bytes(), this.row_bytes()];
            let differs = this.native && this.chance(0.2);
            // A range that ends before it starts is an error.
            if this.chance(0.97) {
                rows.sort();
            }
            let [start, stop] = rows;
            Message::new()
                .bytes(1, start)
                .bool(2, from_inclusive != differs)
                .bytes(3, stop)
                .bool(4, this.chance(0.5))
        });
        let filter = Message::new();
        let filter = ranges
            .iter()
            .fold(filter, |filter, range| filter.message(1, range));
        named("MultiRowRangeFilter", &filter)
    }
}

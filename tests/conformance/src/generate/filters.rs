//! Filter strings.

use super::Generator;

/// Filters nested in each other at most.
const DEPTH_MAX: u32 = 2;

/// An argument in quotes, as filter strings have them.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![b'\''];
    for &byte in bytes {
        text.push(byte);
        if byte == b'\'' {
            text.push(byte);
        }
    }
    text.push(b'\'');
    text
}

/// `Name(argument, argument)`.
fn filter(name: &str, arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut text = name.as_bytes().to_vec();
    text.extend_from_slice(b" (");
    text.extend_from_slice(&arguments.join(&b", "[..]));
    text.push(b')');
    text
}

impl Generator {
    /// A filter string; rarely one that is none.
    pub(super) fn filter(&mut self) -> Vec<u8> {
        match self.int(0..=99) {
            0 => b"PrefixFilter ('a'".to_vec(),
            1 => b"NoSuchFilter ()".to_vec(),
            2 => b"PageFilter ('1')".to_vec(),
            _ => self.tree(DEPTH_MAX),
        }
    }

    fn tree(&mut self, depth: u32) -> Vec<u8> {
        if depth == 0 || self.chance(0.55) {
            return self.leaf();
        }
        match self.int(0..=9) {
            0 => self.wrapped("SKIP", depth),
            1 => self.inside_while(|this| this.wrapped("WHILE", depth)),
            choice => {
                let operator = if choice < 6 { " AND " } else { " OR " };
                let filters = self.list(2..=3, |this| this.tree(depth - 1));
                let filters: Vec<_> = filters
                    .into_iter()
                    .map(|text| [b"(", &text[..], b")"].concat())
                    .collect();
                filters.join(operator.as_bytes())
            }
        }
    }

    /// Makes a filter that ends a scan at the first mismatch.
    pub(super) fn inside_while<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.in_while, true);
        let made = make(self);
        self.in_while = outer;
        made
    }

    fn wrapped(&mut self, word: &str, depth: u32) -> Vec<u8> {
        [word.as_bytes(), b" (", &self.tree(depth - 1), b")"].concat()
    }

    fn operator(&mut self) -> Vec<u8> {
        self.one_of(&["<", "<=", "=", "!=", ">", ">="])
            .as_bytes()
            .to_vec()
    }

    /// Operator and comparator that go together.
    fn comparison(&mut self, bytes: &[u8]) -> [Vec<u8>; 2] {
        let (operator, kind) = match self.int(0..=9) {
            0..=4 => (self.operator(), "binary"),
            5..=7 => (self.operator(), "binaryprefix"),
            8 => (self.equality(), "substring"),
            _ => return [self.equality(), self.regular_expression()],
        };
        [operator, quoted(&[kind.as_bytes(), b":", bytes].concat())]
    }

    fn equality(&mut self) -> Vec<u8> {
        self.one_of(&["=", "!="]).as_bytes().to_vec()
    }

    fn regular_expression(&mut self) -> Vec<u8> {
        let expression = self.one_of(&["v[12]", "^b", ".*1$", "[a-c]", "b0?1?$", "(a|b).*", "\\d"]);
        quoted(format!("regexstring:{expression}").as_bytes())
    }

    fn bool_text(&mut self) -> Vec<u8> {
        self.one_of(&["true", "false"]).as_bytes().to_vec()
    }

    fn int_text(&mut self, range: std::ops::RangeInclusive<i64>) -> Vec<u8> {
        self.int(range).to_string().into_bytes()
    }

    fn leaf(&mut self) -> Vec<u8> {
        let (family, qualifier) = (self.family_name(), self.qualifier_name());
        let (family, qualifier) = (family.as_bytes(), qualifier.as_bytes());
        let (row, value) = (self.row_bytes(), self.value_bytes());
        match self.int(0..=18) {
            3 | 4 | 14 if self.empty_qualifiers => filter("KeyOnlyFilter", &[]),
            2 | 10 if self.in_while => filter("KeyOnlyFilter", &[]),
            18 if self.reversed => filter("FirstKeyOnlyFilter", &[]),
            0 => filter("KeyOnlyFilter", &[]),
            1 => filter("FirstKeyOnlyFilter", &[]),
            2 => filter("PrefixFilter", &[quoted(&row)]),
            3 => filter("ColumnPrefixFilter", &[quoted(qualifier)]),
            4 => filter("MultipleColumnPrefixFilter", &[quoted(b"b"), quoted(b"n")]),
            5 => {
                let limit = self.int_text(0..=4);
                filter("ColumnCountGetFilter", &[limit])
            }
            6 => {
                let size = self.int_text(0..=5);
                filter("PageFilter", &[size])
            }
            7 => {
                let (limit, offset) = (self.int_text(0..=3), self.int_text(0..=2));
                filter("ColumnPaginationFilter", &[limit, offset])
            }
            8 => filter("InclusiveStopFilter", &[quoted(&row)]),
            9 => {
                let stamps = self.list(1..=4, |this| this.int_text(0..=12));
                filter("TimestampsFilter", &stamps)
            }
            10 => {
                let comparison = self.comparison(&row);
                filter("RowFilter", &comparison)
            }
            11 => {
                let comparison = self.comparison(family);
                filter("FamilyFilter", &comparison)
            }
            12 => {
                let comparison = self.comparison(qualifier);
                filter("QualifierFilter", &comparison)
            }
            13 => {
                let comparison = self.comparison(&value);
                filter("ValueFilter", &comparison)
            }
            14 => {
                let from = quoted(qualifier);
                let to = quoted(self.qualifier_name().as_bytes());
                let (from_inclusive, to_inclusive) = (self.bool_text(), self.bool_text());
                filter("ColumnRangeFilter", &[from, from_inclusive, to, to_inclusive])
            }
            choice @ (15 | 16) => {
                let [operator, comparator] = self.comparison(&value);
                let mut arguments = vec![quoted(family), quoted(qualifier), operator, comparator];
                if self.chance(0.5) {
                    let if_missing = if self.reversed {
                        b"false".to_vec()
                    } else {
                        self.bool_text()
                    };
                    arguments.extend([if_missing, self.bool_text()]);
                }
                if choice == 15 {
                    filter("SingleColumnValueFilter", &arguments)
                } else {
                    filter("SingleColumnValueExcludeFilter", &arguments)
                }
            }
            17 => {
                let mut arguments = vec![quoted(family), quoted(qualifier)];
                if self.chance(0.6) {
                    arguments.push(self.bool_text());
                    if self.chance(0.6) {
                        arguments.extend(self.comparison(&value));
                    }
                }
                filter("DependentColumnFilter", &arguments)
            }
            _ => {
                let [operator, comparator] = self.comparison(&value);
                let arguments = [quoted(family), quoted(qualifier), operator, comparator];
                filter("ColumnValueFilter", &arguments)
            }
        }
    }
}

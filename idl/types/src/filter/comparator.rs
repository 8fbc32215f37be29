//! Comparators: what the parts of a cell are compared with.
//!
//! The comparator is the left operand of [`Comparator::compare`], as in HBase's `compareTo`; read together
//! with the operator ([`Comparison::rejects`]) it comes out as people expect: `ValueFilter(<, 'binary:m')`
//! keeps values below `m`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::decimal::BigDecimal;
use super::java_regex::JavaRegex;
use crate::{Error, Result};

/// How a filter compares: `cell OP comparator`. The codes are HBase's `CompareType` on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// cell < comparator
    Less = 0,
    /// cell <= comparator
    LessOrEqual = 1,
    /// cell = comparator
    Equal = 2,
    /// cell != comparator
    NotEqual = 3,
    /// cell >= comparator
    GreaterOrEqual = 4,
    /// cell > comparator
    Greater = 5,
    /// Nothing passes. Has no form in the filter language.
    NoOp = 6,
}

impl CompareOp {
    /// Its form in the filter language.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::GreaterOrEqual => ">=",
            Self::Greater => ">",
            Self::NoOp => "no_op",
        }
    }

    /// The operator of that form; `NoOp` has none.
    pub fn from_symbol(symbol: &[u8]) -> Option<Self> {
        Some(match symbol {
            b"<" => Self::Less,
            b"<=" => Self::LessOrEqual,
            b"=" => Self::Equal,
            b"!=" => Self::NotEqual,
            b">=" => Self::GreaterOrEqual,
            b">" => Self::Greater,
            _ => return None,
        })
    }
}

/// How a bit comparator combines bytes. The codes are HBase's on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperator {
    /// Bits set in both.
    And = 1,
    /// Bits set in either.
    Or = 2,
    /// Bits that differ.
    Xor = 3,
}

/// Value that the part of a cell is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparator {
    /// All bytes, unsigned.
    Binary(Vec<u8>),
    /// The bytes with as many first bytes of the part.
    BinaryPrefix(Vec<u8>),
    /// A Java regular expression that must be found somewhere in the part.
    Regex(JavaRegex),
    /// Text that must occur in the part, in any letter case. Held in lower case.
    Substring(String),
    /// Equal when `value OP part` has a bit set and both are of one length.
    Bit {
        /// The bytes.
        value: Vec<u8>,
        /// How they are combined.
        operator: BitOperator,
    },
    /// A big-endian signed 64-bit number.
    Long(i64),
    /// A decimal number in HBase's encoding.
    BigDecimal(BigDecimal),
    /// The bytes with those of the part that begin at `offset`. A part that ends early is compared with the
    /// bytes it has.
    BinaryComponent {
        /// The bytes.
        value: Vec<u8>,
        /// Where the part's bytes begin.
        offset: usize,
    },
    /// Equal to a missing part only, and greater than any other. No part of a cell is ever missing.
    Null,
}

impl Comparator {
    /// A substring comparator.
    pub fn substring(needle: &str) -> Self {
        Self::Substring(needle.to_lowercase())
    }

    /// A regular expression with HBase's defaults: DOTALL, UTF-8.
    pub fn regex(pattern: &str) -> Result<Self> {
        Ok(Self::Regex(JavaRegex::new(pattern)?))
    }

    /// Memory of a compiled regular expression; 0 for other comparators, which take no more than their
    /// message.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Regex(regex) => regex.memory_bytes(),
            _ => 0,
        }
    }

    /// Compares itself, on the left, with a part of a cell.
    pub fn compare(&self, part: &[u8]) -> Result<Ordering> {
        Ok(match self {
            Self::Binary(value) => value.as_slice().cmp(part),
            Self::BinaryPrefix(value) => value.as_slice().cmp(&part[..part.len().min(value.len())]),
            Self::Regex(regex) => found(regex.is_found_in(part)),
            Self::Substring(needle) => found(contains_any_case(part, needle)),
            Self::Bit { value, operator } => found(any_bit(value, *operator, part)),
            Self::Long(value) => {
                let stored = part.try_into().map(i64::from_be_bytes).map_err(|_| {
                    Error::DoNotRetry(format!(
                        "LongComparator: Wrong length: {}, expected 8",
                        part.len()
                    ))
                })?;
                value.cmp(&stored)
            }
            Self::BigDecimal(value) => value.cmp(&BigDecimal::decode(part)?),
            Self::BinaryComponent { value, offset } => {
                let start = part.len().min(*offset);
                let end = part.len().min(offset.saturating_add(value.len()));
                value.as_slice().cmp(&part[start..end])
            }
            Self::Null => Ordering::Greater,
        })
    }

    /// Whether its value has no bytes. A condition with such a comparator asks whether the column is
    /// absent, as in HBase.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Binary(value)
            | Self::BinaryPrefix(value)
            | Self::Bit { value, .. }
            | Self::BinaryComponent { value, .. } => value.is_empty(),
            Self::Regex(regex) => regex.pattern().is_empty(),
            Self::Substring(needle) => needle.is_empty(),
            Self::Long(_) | Self::BigDecimal(_) => false,
            Self::Null => true,
        }
    }

    /// HBase's class name, without the package.
    pub fn class_name(&self) -> &'static str {
        match self {
            Self::Binary(_) => "BinaryComparator",
            Self::BinaryPrefix(_) => "BinaryPrefixComparator",
            Self::Regex(_) => "RegexStringComparator",
            Self::Substring(_) => "SubstringComparator",
            Self::Bit { .. } => "BitComparator",
            Self::Long(_) => "LongComparator",
            Self::BigDecimal(_) => "BigDecimalComparator",
            Self::BinaryComponent { .. } => "BinaryComponentComparator",
            Self::Null => "NullComparator",
        }
    }
}

/// HBase's comparators that only know yes and no answer 0 for yes and 1 for no.
fn found(yes: bool) -> Ordering {
    if yes { Ordering::Equal } else { Ordering::Greater }
}

/// `needle` is in lower case already. Malformed UTF-8 is replaced, as Java's decoding does.
fn contains_any_case(part: &[u8], needle: &str) -> bool {
    String::from_utf8_lossy(part).to_lowercase().contains(needle)
}

fn any_bit(value: &[u8], operator: BitOperator, part: &[u8]) -> bool {
    value.len() == part.len()
        && value.iter().zip(part).any(|(left, right)| match operator {
            BitOperator::And => left & right != 0,
            BitOperator::Or => left | right != 0,
            BitOperator::Xor => left ^ right != 0,
        })
}

/// An operator and its right side. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The operator.
    pub op: CompareOp,
    /// The right side.
    pub comparator: Arc<Comparator>,
}

impl Comparison {
    /// Puts the two together.
    pub fn new(op: CompareOp, comparator: Comparator) -> Self {
        Self {
            op,
            comparator: Arc::new(comparator),
        }
    }

    /// Whether a cell with this part is to be left out.
    pub fn rejects(&self, part: &[u8]) -> Result<bool> {
        if self.op == CompareOp::NoOp {
            return Ok(true);
        }
        let order = self.comparator.compare(part)?;
        Ok(match self.op {
            CompareOp::Less => order.is_le(),
            CompareOp::LessOrEqual => order.is_lt(),
            CompareOp::Equal => order.is_ne(),
            CompareOp::NotEqual => order.is_eq(),
            CompareOp::GreaterOrEqual => order.is_gt(),
            CompareOp::Greater => order.is_ge(),
            CompareOp::NoOp => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(comparator: &Comparator, part: &[u8]) -> i8 {
        comparator.compare(part).expect("comparable") as i8
    }

    /// The comparator stands on the left; the numbers are HBase's `compareTo`.
    #[test]
    fn comparators() {
        let long = Comparator::Long(-5);
        let decimal = |unscaled: &[u8], scale: i32| {
            let mut bytes = scale.to_be_bytes().to_vec();
            bytes.extend_from_slice(unscaled);
            bytes
        };
        let tenth = Comparator::BigDecimal(BigDecimal::decode(&decimal(&[1], 1)).unwrap());
        let bits = |operator| Comparator::Bit {
            value: vec![0b01, 0],
            operator,
        };
        let component = Comparator::BinaryComponent {
            value: b"bc".to_vec(),
            offset: 1,
        };
        let cases: &[(&Comparator, &[u8], i8)] = &[
            (&Comparator::Binary(b"b".to_vec()), b"a", 1),
            (&Comparator::Binary(b"b".to_vec()), b"b", 0),
            (&Comparator::Binary(b"b".to_vec()), b"ba", -1),
            (&Comparator::Binary(vec![0x7f]), &[0x80], -1),
            (&Comparator::BinaryPrefix(b"ab".to_vec()), b"abc", 0),
            (&Comparator::BinaryPrefix(b"ab".to_vec()), b"a", 1),
            (&Comparator::BinaryPrefix(b"ab".to_vec()), b"b", -1),
            (&Comparator::substring("Needle"), b"hay nEEDle hay", 0),
            (&Comparator::substring("needle"), b"hay", 1),
            (&Comparator::substring("\u{e9}"), "CAF\u{c9}".as_bytes(), 0),
            (&Comparator::regex("b.d").unwrap(), b"ab\ndc", 0),
            (&Comparator::regex("b.d").unwrap(), b"bd", 1),
            (&bits(BitOperator::And), &[0b11, 0], 0),
            (&bits(BitOperator::And), &[0b10, 0xff], 1),
            (&bits(BitOperator::Or), &[0, 0], 0),
            (&bits(BitOperator::Xor), &[1, 0], 1),
            (&bits(BitOperator::Xor), &[1, 1], 0),
            (&bits(BitOperator::Or), &[1], 1),
            (&long, &(-6i64).to_be_bytes(), 1),
            (&long, &(-5i64).to_be_bytes(), 0),
            (&long, &5i64.to_be_bytes(), -1),
            (&tenth, &decimal(&[10], 2), 0),
            (&tenth, &decimal(&[11], 2), -1),
            (&tenth, &decimal(&[0xff], 0), 1),
            (&component, b"abcd", 0),
            (&component, b"ab", 1),
            (&component, b"", 1),
            (&component, b"zc", -1),
            (&Comparator::Null, b"", 1),
            (&Comparator::Null, b"a", 1),
        ];
        for (comparator, part, expected) in cases {
            assert_eq!(order(comparator, part), *expected, "{comparator:?} {part:?}");
        }
    }

    #[test]
    fn parts_that_cannot_be_compared_are_errors() {
        let text = Comparator::Long(1).compare(b"abc").unwrap_err().to_string();
        assert!(text.contains("Wrong length: 3, expected 8"), "{text}");
    }

    /// `cell OP comparator`, and NO_OP keeps nothing.
    #[test]
    fn operators() {
        let kept = |op| -> String {
            let comparison = Comparison::new(op, Comparator::Binary(b"b".to_vec()));
            let keep = |part: &&str| !comparison.rejects(part.as_bytes()).unwrap();
            ["a", "b", "c"].into_iter().filter(keep).collect()
        };
        assert_eq!(kept(CompareOp::Less), "a");
        assert_eq!(kept(CompareOp::LessOrEqual), "ab");
        assert_eq!(kept(CompareOp::Equal), "b");
        assert_eq!(kept(CompareOp::NotEqual), "ac");
        assert_eq!(kept(CompareOp::GreaterOrEqual), "bc");
        assert_eq!(kept(CompareOp::Greater), "c");
        assert_eq!(kept(CompareOp::NoOp), "");
    }
}

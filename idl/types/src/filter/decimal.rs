//! Decimal numbers as HBase stores them, for comparing only.
//!
//! ```text
//! +-----------+---------------------------+
//! | scale     | unscaled, two's complement|
//! |  i32 BE   |  big-endian, 1 byte up    |
//! +-----------+---------------------------+      number = unscaled / 10^scale
//! ```
//!
//! Comparing by scaling up would take memory in proportion to 10^scale, and the scale comes from a client. So
//! a number is held as sign, decimal digits and the place of the point, and compared digit by digit.

use std::cmp::Ordering;

use crate::{Error, Result};

/// Longest unscaled number, in bytes. Turning it into digits takes time in the square of it.
const UNSCALED_MAX_BYTES: usize = 1024;

/// Decimal digits in one step of the conversion: the most that fit in 32 bits.
const STEP: u64 = 1_000_000_000;

/// A decimal number.
#[derive(Clone, Debug)]
pub struct BigDecimal {
    /// As it was encoded.
    encoded: Vec<u8>,
    /// -1, 0 or 1.
    sign: i8,
    /// The number is `0.digits * 10^exponent`.
    exponent: i64,
    /// Significant digits without zeros at either end; none for zero.
    digits: Vec<u8>,
}

impl BigDecimal {
    /// Reads the encoded form.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = || {
            Error::DoNotRetry(format!(
                "BigDecimalComparator: {} bytes are no decimal number: expected 5 to {}",
                bytes.len(),
                4 + UNSCALED_MAX_BYTES
            ))
        };
        let (scale, unscaled) = bytes.split_first_chunk::<4>().ok_or_else(bad)?;
        if unscaled.is_empty() || unscaled.len() > UNSCALED_MAX_BYTES {
            return Err(bad());
        }
        let negative = unscaled[0] & 0x80 != 0;
        let mut digits = decimal_digits(&magnitude(unscaled, negative));
        let exponent = digits.len() as i64 - i64::from(i32::from_be_bytes(*scale));
        let significant = digits
            .iter()
            .rposition(|digit| *digit != 0)
            .map_or(0, |last| last + 1);
        digits.truncate(significant);
        Ok(Self {
            encoded: bytes.to_vec(),
            sign: match (digits.is_empty(), negative) {
                (true, _) => 0,
                (false, true) => -1,
                (false, false) => 1,
            },
            exponent: if digits.is_empty() { 0 } else { exponent },
            digits,
        })
    }

    /// The bytes it was read from.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

/// The absolute value of a two's complement number.
fn magnitude(unscaled: &[u8], negative: bool) -> Vec<u8> {
    let mut bytes = unscaled.to_vec();
    if negative {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            let (sum, overflow) = (!*byte).overflowing_add(u8::from(carry));
            *byte = sum;
            carry = overflow;
        }
    }
    bytes
}

/// Digits of a big-endian number, first not zero.
fn decimal_digits(bytes: &[u8]) -> Vec<u8> {
    // Base 10^9, least significant first.
    let mut limbs: Vec<u64> = Vec::new();
    for byte in bytes {
        let mut carry = u64::from(*byte);
        for limb in &mut limbs {
            let value = *limb * 256 + carry;
            *limb = value % STEP;
            carry = value / STEP;
        }
        if carry != 0 {
            limbs.push(carry);
        }
    }
    let mut digits = Vec::with_capacity(limbs.len() * 9);
    for mut limb in limbs {
        for _ in 0..9 {
            digits.push((limb % 10) as u8);
            limb /= 10;
        }
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    digits.reverse();
    digits
}

impl Ord for BigDecimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sign.cmp(&other.sign).then_with(|| {
            // Without zeros at the end a shorter prefix is the smaller number, which is the order of slices.
            let size = self
                .exponent
                .cmp(&other.exponent)
                .then_with(|| self.digits.cmp(&other.digits));
            if self.sign < 0 { size.reverse() } else { size }
        })
    }
}

impl PartialOrd for BigDecimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for BigDecimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for BigDecimal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(unscaled: i128, scale: i32) -> BigDecimal {
        let mut bytes = scale.to_be_bytes().to_vec();
        bytes.extend_from_slice(&unscaled.to_be_bytes());
        BigDecimal::decode(&bytes).expect("a decimal number")
    }

    /// Each number is smaller than the next, whatever its scale; scales at the ends of i32 cost nothing.
    #[test]
    fn order_of_numbers() {
        let sorted = [
            number(-1, i32::MIN),
            number(i128::MIN, 0),
            number(-1000, 0),
            number(-999, 0),
            number(-1, 0),
            number(-99, 2),
            number(-1, i32::MAX),
            number(0, 7),
            number(1, i32::MAX),
            number(1, 1),
            number(101, 3),
            number(11, 2),
            number(1, 0),
            number(123_456_789_012_345_678_901, 10),
            number(i128::MAX, 0),
            number(1, i32::MIN),
        ];
        for (index, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(left.cmp(right), index.cmp(&other), "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn equal_numbers_of_different_scale() {
        assert_eq!(number(10, 1), number(1, 0));
        assert_eq!(number(0, -5), number(0, 5));
        assert_eq!(number(-500, 0), number(-5, -2));
    }

    #[test]
    fn texts_that_are_no_numbers() {
        for bytes in [vec![], vec![0; 4], vec![0; 5 + UNSCALED_MAX_BYTES]] {
            let text = BigDecimal::decode(&bytes).unwrap_err().to_string();
            assert!(text.contains("no decimal number"), "{text}");
        }
    }
}

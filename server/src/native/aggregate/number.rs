//! Values of columns as HBase's column interpreters read them.
//!
//! | interpreter | a cell's value | other values |
//! | --- | --- | --- |
//! | `LongColumnInterpreter` | 8 bytes, big-endian | ignored |
//! | `DoubleColumnInterpreter` | 8 bytes, IEEE 754, big-endian | ignored |
//! | `BigDecimalColumnInterpreter` | 4 bytes scale, then two's complement, big-endian | shorter ones ignored |
//!
//! Longs overflow as in Java. A decimal is rounded to two decimal places (half even) when it is
//! read and when it is multiplied, so every decimal here is a whole number of hundredths.
//!
//! The scale of a decimal comes from a client: one that would need more than [`DIGITS_MAX`] digits
//! is refused before it takes memory.

use std::cmp::Ordering;

use basalt_idl::native::messages::{BigDecimalMsg, DoubleMsg, LongMsg};
use bytes::Bytes;
use num_bigint::{BigInt, Sign};
use prost::Message;

use crate::service::Failure;

/// Package of the interpreters.
const PACKAGE: &str = "org.apache.hadoop.hbase.client.coprocessor.";
/// Decimal places of every decimal.
const PLACES: i64 = 2;
/// Longest unscaled part of a stored decimal, in bytes. It has fewer than [`DIGITS_MAX`] digits.
const UNSCALED_MAX_BYTES: usize = 1024;
/// Most digits by which a decimal is scaled.
const DIGITS_MAX: i64 = 2_500;

/// How the values of a column are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interpreter {
    Long,
    Double,
    Decimal,
}

/// A value or a sum of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    Long(i64),
    Double(f64),
    /// In hundredths.
    Decimal(BigInt),
}

impl Interpreter {
    /// The interpreter of that Java class.
    pub(super) fn named(class: &str) -> Result<Self, Failure> {
        match class.strip_prefix(PACKAGE) {
            Some("LongColumnInterpreter") => Ok(Self::Long),
            Some("DoubleColumnInterpreter") => Ok(Self::Double),
            Some("BigDecimalColumnInterpreter") => Ok(Self::Decimal),
            _ => Err(Failure::do_not_retry(format!(
                "java.lang.ClassNotFoundException: {class}; the server has LongColumnInterpreter, \
                 DoubleColumnInterpreter and BigDecimalColumnInterpreter of {PACKAGE}*"
            ))),
        }
    }

    /// Reads a cell's value; `None` for one that the interpreter ignores.
    pub(super) fn value(self, value: &[u8]) -> Result<Option<Number>, Failure> {
        match self {
            Self::Long => Ok(eight(value).map(|bytes| Number::Long(i64::from_be_bytes(bytes)))),
            Self::Double => Ok(eight(value).map(|bytes| Number::Double(f64::from_be_bytes(bytes)))),
            Self::Decimal => match value.split_first_chunk::<4>() {
                Some((scale, unscaled)) if !unscaled.is_empty() => {
                    decimal(i32::from_be_bytes(*scale), unscaled).map(Some)
                }
                _ => Ok(None),
            },
        }
    }

    pub(super) fn zero(self) -> Number {
        match self {
            Self::Long => Number::Long(0),
            Self::Double => Number::Double(0.0),
            Self::Decimal => Number::Decimal(BigInt::ZERO),
        }
    }

    /// HBase's `getMinValue`, encoded. For the latter two it is Java's `Double.MIN_VALUE`, the
    /// smallest number above zero.
    pub(super) fn least(self) -> Bytes {
        match self {
            Self::Long => Number::Long(i64::MIN).encode(),
            Self::Double => Number::Double(f64::from_bits(1)).encode(),
            // Java prints Double.MIN_VALUE as 4.9E-324.
            Self::Decimal => encode_decimal(325, &BigInt::from(49)),
        }
    }
}

fn eight(value: &[u8]) -> Option<[u8; 8]> {
    value.try_into().ok()
}

/// Reads a decimal and rounds it to hundredths.
fn decimal(scale: i32, unscaled: &[u8]) -> Result<Number, Failure> {
    let up = PLACES - i64::from(scale);
    if unscaled.len() > UNSCALED_MAX_BYTES || up > DIGITS_MAX {
        return Err(Failure::do_not_retry(format!(
            "a decimal of {} bytes and scale {scale} is too large to be added up; the limits are \
             {UNSCALED_MAX_BYTES} bytes and scale {}",
            unscaled.len(),
            PLACES - DIGITS_MAX
        )));
    }
    let unscaled = BigInt::from_signed_bytes_be(unscaled);
    Ok(Number::Decimal(if up >= 0 {
        unscaled * power_of_ten(up)
    } else if up < -DIGITS_MAX {
        // Less than half a hundredth, however many digits it has.
        BigInt::ZERO
    } else {
        divide_half_even(&unscaled, &power_of_ten(-up))
    }))
}

fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).expect("exponents are between 0 and DIGITS_MAX"))
}

/// Divides by a positive number and rounds half to even.
fn divide_half_even(number: &BigInt, by: &BigInt) -> BigInt {
    let (quotient, rest) = (number / by, number % by);
    let twice = BigInt::from_biguint(Sign::Plus, rest.magnitude() * 2_u32);
    let away = match twice.cmp(by) {
        Ordering::Less => false,
        Ordering::Equal => quotient.bit(0),
        Ordering::Greater => true,
    };
    match (away, number.sign()) {
        (false, _) => quotient,
        (true, Sign::Minus) => quotient - 1,
        (true, _) => quotient + 1,
    }
}

impl Number {
    /// REQUIRES: both are of one interpreter, as in the other functions.
    pub(super) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Long(left), Self::Long(right)) => Self::Long(left.wrapping_add(right)),
            (Self::Double(left), Self::Double(right)) => Self::Double(left + right),
            (Self::Decimal(left), Self::Decimal(right)) => Self::Decimal(left + right),
            _ => unreachable!("an aggregate has one interpreter"),
        }
    }

    pub(super) fn squared(&self) -> Self {
        match self {
            Self::Long(number) => Self::Long(number.wrapping_mul(*number)),
            Self::Double(number) => Self::Double(number * number),
            Self::Decimal(number) => {
                Self::Decimal(divide_half_even(&(number * number), &power_of_ten(PLACES)))
            }
        }
    }

    /// The order of Java's `compareTo`: NaN is the greatest double, and -0.0 is less than 0.0.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Long(left), Self::Long(right)) => left.cmp(right),
            (Self::Double(left), Self::Double(right)) => match (left.is_nan(), right.is_nan()) {
                (false, false) => left.total_cmp(right),
                (left, right) => left.cmp(&right),
            },
            (Self::Decimal(left), Self::Decimal(right)) => left.cmp(right),
            _ => unreachable!("an aggregate has one interpreter"),
        }
    }

    /// The message in which HBase sends the number.
    pub(super) fn encode(&self) -> Bytes {
        match self {
            Self::Long(number) => LongMsg { long_msg: *number }.encode_to_vec().into(),
            Self::Double(number) => DoubleMsg { double_msg: *number }.encode_to_vec().into(),
            Self::Decimal(number) => encode_decimal(PLACES as i32, number),
        }
    }
}

fn encode_decimal(scale: i32, unscaled: &BigInt) -> Bytes {
    let mut bytes = scale.to_be_bytes().to_vec();
    bytes.extend_from_slice(&unscaled.to_signed_bytes_be());
    let message = BigDecimalMsg {
        bigdecimal_msg: bytes.into(),
    };
    message.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(unscaled: i128, scale: i32) -> Vec<u8> {
        let mut bytes = scale.to_be_bytes().to_vec();
        bytes.extend_from_slice(&unscaled.to_be_bytes());
        bytes
    }

    fn hundredths(unscaled: i128, scale: i32) -> BigInt {
        match Interpreter::Decimal.value(&stored(unscaled, scale)).unwrap() {
            Some(Number::Decimal(number)) => number,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn decimals_are_rounded_half_even_to_hundredths() {
        for (unscaled, scale, expected) in [
            (5, 0, 500),
            (-5, 1, -50),
            (123, 2, 123),
            (1_005, 3, 100),
            (1_015, 3, 102),
            (1_025, 3, 102),
            (-1_015, 3, -102),
            (-1_025, 3, -102),
            (10_251, 4, 103),
            (7, -3, 700_000),
            (i128::MAX, 4_000, 0),
            (1, i32::MAX, 0),
        ] {
            assert_eq!(
                hundredths(unscaled, scale),
                BigInt::from(expected),
                "{unscaled} {scale}"
            );
        }
    }

    #[test]
    fn a_decimal_that_would_take_much_memory_is_refused() {
        for value in [
            stored(1, i32::MIN),
            stored(1, -2_499),
            vec![1; 5 + UNSCALED_MAX_BYTES],
        ] {
            let failure = Interpreter::Decimal.value(&value).unwrap_err();
            assert!(failure.message().contains("too large"), "{}", failure.message());
        }
        assert_eq!(hundredths(1, -2_498).to_string().len(), 2_501);
    }

    #[test]
    fn values_of_another_length_are_ignored() {
        for interpreter in [Interpreter::Long, Interpreter::Double] {
            for length in [0, 7, 9] {
                assert_eq!(interpreter.value(&vec![1; length]).unwrap(), None);
            }
        }
        assert_eq!(Interpreter::Decimal.value(&[0; 4]).unwrap(), None);
    }

    #[test]
    fn numbers_are_ordered_as_in_java() {
        let sorted = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        for (index, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                let (left, right) = (Number::Double(*left), Number::Double(*right));
                assert_eq!(left.compare(&right), index.cmp(&other), "{left:?} {right:?}");
            }
        }
        let negative_nan = Number::Double(-f64::NAN);
        assert_eq!(negative_nan.compare(&Number::Double(1.0)), Ordering::Greater);
    }

    #[test]
    fn sums_overflow_as_in_java() {
        let sum = Number::Long(i64::MAX).plus(Number::Long(1));
        assert_eq!(sum, Number::Long(i64::MIN));
        assert_eq!(Number::Long(1 << 32).squared(), Number::Long(0));
        let squared = Number::Decimal(BigInt::from(-105)).squared();
        assert_eq!(squared, Number::Decimal(BigInt::from(110)), "1.1025 is rounded");
    }

    /// The bytes are those of `Bytes.toBytes(new BigDecimal("4.9E-324"))` and of `Double.MIN_VALUE`.
    #[test]
    fn the_least_numbers_are_those_of_hbase() {
        let decimal = BigDecimalMsg::decode(Interpreter::Decimal.least()).unwrap();
        assert_eq!(decimal.bigdecimal_msg, &[0, 0, 1, 69, 49][..]);
        let double = DoubleMsg::decode(Interpreter::Double.least()).unwrap();
        assert_eq!(double.double_msg.to_bits(), 4.9e-324_f64.to_bits());
    }

    #[test]
    fn interpreters_are_found_by_their_class() {
        let named = |name: &str| Interpreter::named(&format!("{PACKAGE}{name}"));
        assert_eq!(named("DoubleColumnInterpreter").unwrap(), Interpreter::Double);
        let failure = Interpreter::named("com.example.Own").unwrap_err();
        assert!(
            failure
                .message()
                .contains("ClassNotFoundException: com.example.Own")
        );
    }
}

//! Values in JSON of a client, as HBase's library reads them: base64 as bytes, and numbers and
//! booleans that may be strings.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::encoding::decode_base64;

/// Bytes in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base64(pub(crate) Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Base64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 in a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Base64, E> {
                decode_base64(text.as_bytes()).map(Base64).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A number, or a string with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) i64);

impl Number {
    /// The number as a 32-bit one; greater ones are the greatest.
    pub(crate) fn to_i32(self) -> i32 {
        self.0.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of 64 bits")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Number, E> {
                i64::try_from(number)
                    .map(Number)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                text.trim()
                    .parse()
                    .map(Number)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A text, or a number or boolean as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalar(pub(crate) String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, number or boolean")
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Scalar {
    /// Whether the text is `true`, as Java reads it.
    pub(crate) fn is_true(&self) -> bool {
        self.0.eq_ignore_ascii_case("true")
    }
}

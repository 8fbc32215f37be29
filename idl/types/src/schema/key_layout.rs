//! The layout of a table's row keys, for people: which bytes mean what.
//!
//! The table attribute [`ATTRIBUTE`] has the fields in order, each a name and a length in bytes: `salt:1,
//! user:8, reversed_time:8`. The last one may be `name:rest`. Pages, the slow log and tools show keys by it,
//! and `basalt-bench model` makes keys by it; the engine does not use it.
//!
//! How a field is shown follows from its name and its bytes:
//! - A field of eight bytes or fewer is a number, big-endian, unless all its bytes are printable.
//! - A name that begins with `reversed_` is a number that was taken from the greatest one: `Long.MAX_VALUE`
//!   for eight bytes, all bits one for fewer.
//! - A number of eight bytes whose name ends in `time` is milliseconds since 1970, shown as a time.
//! - Everything else is bytes, as HBase prints them.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use super::TableDescriptor;
use crate::text::Escaped;

/// Name of the table attribute.
pub const ATTRIBUTE: &str = "basalt.key_layout";

/// Most fields of a layout.
const FIELDS_MAX: usize = 16;
/// Most bytes of a field.
const FIELD_BYTES_MAX: usize = 32_767;
/// Longest number.
const NUMBER_BYTES_MAX: usize = 8;
/// The year 9999, the last one that is shown as a time.
const TIME_MAX_MS: u64 = 253_402_300_799_999;

/// Beginning of the names of fields whose numbers are subtracted from the greatest one.
const REVERSED: &str = "reversed_";

/// A field of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    name: String,
    /// `None`: the rest of the key.
    bytes: Option<usize>,
}

/// The fields of a table's row keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    fields: Vec<KeyField>,
}

impl KeyLayout {
    /// Reads `salt:1, user:8, reversed_time:8`. The error says what is wrong and what is right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts.len() > FIELDS_MAX {
            return Err(format!(
                "it has {} fields, and may have {FIELDS_MAX}",
                parts.len()
            ));
        }
        let last = parts.len() - 1;
        let mut fields: Vec<KeyField> = Vec::with_capacity(parts.len());
        for (index, part) in parts.into_iter().enumerate() {
            let field = KeyField::parse(part)?;
            if field.bytes.is_none() && index < last {
                return Err(format!(
                    "only the last field may be the rest of the key, and {part} is not"
                ));
            }
            if fields.iter().any(|other| other.name == field.name) {
                return Err(format!("two fields have the name {}", field.name));
            }
            fields.push(field);
        }
        Ok(Self { fields })
    }

    /// The fields in the order of the key, at least one.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// Length of a key; `None` if the last field is the rest of it.
    pub fn bytes(&self) -> Option<usize> {
        self.fields.iter().map(|field| field.bytes).sum()
    }

    /// Displays a key by its fields.
    pub fn show<'a>(&'a self, key: &'a [u8]) -> Shown<'a> {
        Shown { layout: self, key }
    }
}

impl KeyField {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("the field {text:?} is not name:bytes, such as user:8, or name:rest");
        let (name, bytes) = text.split_once(':').ok_or_else(wrong)?;
        let (name, bytes) = (name.trim(), bytes.trim());
        let is_name = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "the name of the field {text:?} must have letters, digits, _ and - only"
            ));
        }
        let bytes = match bytes {
            "rest" => None,
            bytes => Some(bytes.parse::<usize>().map_err(|_| wrong())?),
        };
        if let Some(bytes) = bytes
            && !(1..=FIELD_BYTES_MAX).contains(&bytes)
        {
            return Err(format!(
                "the field {text:?} must have from 1 to {FIELD_BYTES_MAX} bytes"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            bytes,
        })
    }

    /// Name, `reversed_` included.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the value: without `reversed_`.
    pub fn value_name(&self) -> &str {
        self.name.strip_prefix(REVERSED).unwrap_or(&self.name)
    }

    /// Whether its number is subtracted from the greatest one.
    pub fn is_reversed(&self) -> bool {
        self.name.starts_with(REVERSED)
    }

    /// Length; `None` for the rest of the key.
    pub fn bytes(&self) -> Option<usize> {
        self.bytes
    }

    /// The greatest number that its bytes hold: `Long.MAX_VALUE` for eight. `None` if it has more bytes, or
    /// any number of them.
    pub fn greatest(&self) -> Option<u64> {
        greatest(self.bytes?)
    }

    /// The bytes of a number, reversed if the name says so; `None` if it does not fit.
    pub fn encode_number(&self, number: u64) -> Option<Vec<u8>> {
        let bytes = self.bytes?;
        let greatest = greatest(bytes)?;
        let left = greatest.checked_sub(number)?;
        let number = if self.is_reversed() { left } else { number };
        Some(number.to_be_bytes()[NUMBER_BYTES_MAX - bytes..].to_vec())
    }

    fn show(&self, bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.name)?;
        let is_number = self
            .bytes
            .is_some_and(|whole| whole == bytes.len() && whole <= NUMBER_BYTES_MAX);
        let is_text = bytes
            .iter()
            .all(|byte| (b'!'..=b'~').contains(byte) && *byte != b'\\');
        let is_reversed = self.is_reversed();
        if !is_number || (is_text && !is_reversed) {
            return write!(f, "{}", Escaped(bytes));
        }
        let mut number = bytes
            .iter()
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        if is_reversed {
            let Some(turned) = greatest(bytes.len()).and_then(|greatest| greatest.checked_sub(number)) else {
                return write!(f, "{}", Escaped(bytes));
            };
            number = turned;
        }
        if bytes.len() == NUMBER_BYTES_MAX && self.name.ends_with("time") && number <= TIME_MAX_MS {
            let time = UNIX_EPOCH + Duration::from_millis(number);
            return write!(f, "{}", humantime::format_rfc3339_millis(time));
        }
        write!(f, "{number}")
    }
}

/// The greatest number of that many bytes, from which reversed ones are subtracted.
fn greatest(bytes: usize) -> Option<u64> {
    match bytes {
        NUMBER_BYTES_MAX => Some(i64::MAX as u64),
        1..NUMBER_BYTES_MAX => Some((1 << (8 * bytes)) - 1),
        _ => None,
    }
}

/// A key by the fields of its layout: `salt=3 user=ann reversed_time=2026-11-29T12:00:00.000Z`.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    layout: &'a KeyLayout,
    key: &'a [u8],
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.key;
        for (index, field) in self.layout.fields.iter().enumerate() {
            if rest.is_empty() && index > 0 {
                return Ok(());
            }
            let bytes = field.bytes.unwrap_or(rest.len()).min(rest.len());
            let (own, after) = rest.split_at(bytes);
            if index > 0 {
                f.write_str(" ")?;
            }
            field.show(own, f)?;
            rest = after;
        }
        if rest.is_empty() {
            return Ok(());
        }
        write!(f, " and {}", Escaped(rest))
    }
}

impl TableDescriptor {
    /// The layout of its row keys, if it declares a sound one.
    pub fn key_layout(&self) -> Option<KeyLayout> {
        let text = self.attributes.get(ATTRIBUTE.as_bytes())?;
        KeyLayout::parse(std::str::from_utf8(text).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(layout: &str, key: &[u8]) -> String {
        KeyLayout::parse(layout).unwrap().show(key).to_string()
    }

    #[test]
    fn keys_are_shown_by_their_fields() {
        let layout = "salt:1, user:8, reversed_time:8";
        let time = (i64::MAX as u64 - 1_700_000_000_123).to_be_bytes();
        let key = [&b"\x03ann00001"[..], &time].concat();
        assert_eq!(
            shown(layout, &key),
            "salt=3 user=ann00001 reversed_time=2023-11-14T22:13:20.123Z"
        );
        let number = [&b"\x03"[..], &77_u64.to_be_bytes(), &time, b"!x\x00"].concat();
        assert_eq!(
            shown(layout, &number),
            "salt=3 user=77 reversed_time=2023-11-14T22:13:20.123Z and !x\\x00"
        );
        // Shorter keys, as boundaries of regions are, and none at all.
        assert_eq!(shown(layout, b"\x03an"), "salt=3 user=an");
        assert_eq!(shown(layout, b"\x03"), "salt=3");
        assert_eq!(shown(layout, b""), "salt=");
        assert_eq!(shown("a:2,b:rest", b"\x01\x00text\x01"), "a=256 b=text\\x01");
        assert_eq!(shown("reversed_day:2", b"\xff\xf0"), "reversed_day=15");
        assert_eq!(
            shown("time:8", &u64::MAX.to_be_bytes()),
            format!("time={}", u64::MAX)
        );
        assert_eq!(
            shown("reversed_time:8", &u64::MAX.to_be_bytes()),
            "reversed_time=\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF"
        );
        assert_eq!(shown("id:16", &[0; 16]), format!("id={}", "\\x00".repeat(16)));
    }

    #[test]
    fn numbers_are_encoded_as_they_are_shown() {
        let layout = KeyLayout::parse("salt:1, user:8, reversed_time:8, id:16").unwrap();
        let [salt, user, time, id] = layout.fields() else {
            panic!("four fields")
        };
        assert_eq!((layout.bytes(), time.value_name()), (Some(33), "time"));
        let key = [
            salt.encode_number(3).unwrap(),
            user.encode_number(77).unwrap(),
            time.encode_number(1_700_000_000_123).unwrap(),
        ]
        .concat();
        assert_eq!(
            layout.show(&key).to_string(),
            "salt=3 user=77 reversed_time=2023-11-14T22:13:20.123Z"
        );
        assert_eq!((salt.greatest(), salt.encode_number(256)), (Some(255), None));
        assert_eq!((user.encode_number(1 << 63), id.encode_number(1)), (None, None));
        assert_eq!(KeyLayout::parse("a:1, b:rest").unwrap().bytes(), None);
    }

    #[test]
    fn malformed_layouts_are_refused_by_name() {
        let many = vec!["f:1"; 17].join(",");
        for (text, words) in [
            ("", "the field \"\" is not name:bytes"),
            ("salt", "\"salt\" is not name:bytes, such as user:8"),
            ("salt:x", "\"salt:x\" is not name:bytes"),
            ("salt:-1", "\"salt:-1\" is not"),
            ("salt:0", "from 1 to 32767 bytes"),
            ("salt:40000", "from 1 to 32767 bytes"),
            ("a b:1", "letters, digits, _ and - only"),
            (":1", "letters, digits"),
            ("a:1,,b:1", "the field \"\""),
            ("a:rest, b:1", "only the last field may be the rest"),
            ("a:1, a:2", "two fields have the name a"),
            (&many, "it has 17 fields, and may have 16"),
        ] {
            let refused = KeyLayout::parse(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}

//! How `get` and `scan` print bytes: HBase's converters behind a column (`f:n:toLong`), and the
//! options FORMATTER and MAXLENGTH.
//!
//! 1. A column may end in `:converter`. HBase calls the method of that name on
//!    `org.apache.hadoop.hbase.util.Bytes`, or on a class of the user (`c(my.Class).method`). This
//!    shell implements the methods of `Bytes` and refuses other classes.
//! 2. `FORMATTER` names a converter for all other values. A converter that accepts bytes of any
//!    length also prints row keys, families and qualifiers.
//! 3. Without either, bytes are printed as `toStringBinary` prints them.
//!
//! Invariant: a last part that looks like a converter is one, or is refused. If it were taken as
//! part of the qualifier, the read would find nothing and give no reason.

use super::escape::{printable, timestamp};
use super::meta::SystemTable;
use super::output::Field;
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::{Cell, CellKind};

/// The names of the class whose methods are implemented.
const CLASSES: [&str; 2] = ["org.apache.hadoop.hbase.util.Bytes", "Bytes"];

/// A method of `Bytes` that converts bytes to text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Converter {
    StringBinary,
    Text,
    Hex,
    Short,
    Int,
    Long,
    Float,
    Double,
    Boolean,
}

const NAMES: [(&str, Converter); 9] = [
    ("toStringBinary", Converter::StringBinary),
    ("toString", Converter::Text),
    ("toHex", Converter::Hex),
    ("toShort", Converter::Short),
    ("toInt", Converter::Int),
    ("toLong", Converter::Long),
    ("toFloat", Converter::Float),
    ("toDouble", Converter::Double),
    ("toBoolean", Converter::Boolean),
];

impl Converter {
    /// Looks up a converter by its method name.
    pub(super) fn from_name(name: &str) -> ShellResult<Converter> {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, converter)| *converter).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            ShellError::Arguments(format!("{name} is no converter; known are {}", names.join(", ")))
        })
    }

    /// Parses the last part of a column as a converter; `None` if the part belongs to the
    /// qualifier.
    pub(super) fn from_part(part: &[u8]) -> ShellResult<Option<Converter>> {
        let Ok(part) = std::str::from_utf8(part) else {
            return Ok(None);
        };
        if let Some((class, method)) = part.strip_prefix("c(").and_then(|rest| rest.split_once(").")) {
            check_class(class)?;
            return Converter::from_name(method).map(Some);
        }
        let behind = part.strip_prefix("to").unwrap_or_default();
        let is_method = behind.starts_with(|first: char| first.is_ascii_uppercase())
            && behind.chars().all(|c| c.is_ascii_alphanumeric());
        if is_method {
            return Converter::from_name(part).map(Some);
        }
        Ok(None)
    }

    /// Whether it accepts bytes of any length, so that keys can be printed with it too.
    fn is_text(self) -> bool {
        matches!(self, Converter::StringBinary | Converter::Text | Converter::Hex)
    }

    /// Converts a value to text; `None` if it has too few bytes. Numbers are big-endian, and bytes
    /// behind a number are ignored, as in HBase.
    pub(super) fn text(self, value: &[u8]) -> Option<String> {
        Some(match self {
            Converter::StringBinary => printable(value),
            Converter::Text => plain(value),
            Converter::Hex => hex(value),
            Converter::Short => i16::from_be_bytes(*value.first_chunk()?).to_string(),
            Converter::Int => i32::from_be_bytes(*value.first_chunk()?).to_string(),
            Converter::Long => i64::from_be_bytes(*value.first_chunk()?).to_string(),
            Converter::Float => format!("{:?}", f32::from_be_bytes(*value.first_chunk()?)),
            Converter::Double => format!("{:?}", f64::from_be_bytes(*value.first_chunk()?)),
            Converter::Boolean => (*value.first()? != 0).to_string(),
        })
    }

    fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(_, converter)| *converter == self);
        named.map_or("", |(name, _)| name)
    }
}

/// Refuses classes other than `Bytes`: they would need a Java virtual machine.
pub(super) fn check_class(class: &str) -> ShellResult<()> {
    if CLASSES.contains(&class) {
        return Ok(());
    }
    Err(ShellError::Arguments(format!(
        "the class {class} is not available: this shell is not Java and has only the converters of {}",
        CLASSES[0]
    )))
}

/// Returns UTF-8 text unchanged, but escapes invalid bytes and control characters, which could
/// reprogram a terminal.
fn plain(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.push_str(&printable(character.encode_utf8(&mut [0; 4]).as_bytes()));
            } else {
                text.push(character);
            }
        }
        text.push_str(&printable(chunk.invalid()));
    }
    text
}

/// How the rows of one command are printed.
#[derive(Debug, Default)]
pub(super) struct Format {
    /// Converters of columns, by family and qualifier.
    pub(super) columns: Vec<(Vec<u8>, Vec<u8>, Converter)>,
    /// Converter of all other values.
    pub(super) formatter: Option<Converter>,
    /// Maximum number of characters of a cell's text.
    pub(super) max_length: Option<usize>,
    /// The system table that is read.
    pub(super) system: Option<SystemTable>,
}

impl Format {
    /// Formats a row key, family or qualifier.
    pub(super) fn key(&self, key: &[u8]) -> String {
        let formatter = self.formatter.filter(|formatter| formatter.is_text());
        formatter
            .and_then(|formatter| formatter.text(key))
            .unwrap_or_else(|| printable(key))
    }

    /// Formats the column of a cell as `family:qualifier`.
    pub(super) fn column(&self, cell: &Cell) -> String {
        format!("{}:{}", self.key(&cell.family), self.key(&cell.qualifier))
    }

    /// Formats the timestamp, and the value or the kind of tombstone, of a cell in this row.
    pub(super) fn cell(&self, row: &[u8], cell: &Cell) -> ShellResult<String> {
        let time = timestamp(cell.timestamp);
        let text = match cell.kind {
            CellKind::Put => format!("timestamp={time}, value={}", self.value(row, cell)?),
            kind => format!("timestamp={time}, type={kind:?}"),
        };
        Ok(match self.max_length {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        })
    }

    /// The fields of a cell in this row, for programs. The value is cut as [`Self::cell`] cuts its text.
    pub(super) fn fields(&self, row: &[u8], cell: &Cell) -> ShellResult<[Field; 5]> {
        let mut value = match cell.kind {
            CellKind::Put => self.value(row, cell)?,
            _ => String::new(),
        };
        if let Some(most) = self.max_length {
            value = value.chars().take(most).collect();
        }
        Ok([
            ("row", Value::text(self.key(row))),
            ("column", Value::text(self.column(cell))),
            ("timestamp", Value::Integer(cell.timestamp)),
            ("type", Value::text(format!("{:?}", cell.kind))),
            ("value", Value::text(value)),
        ])
    }

    fn value(&self, row: &[u8], cell: &Cell) -> ShellResult<String> {
        let mut columns = self.columns.iter();
        let own =
            columns.find(|(family, qualifier, _)| *family == cell.family && *qualifier == cell.qualifier);
        let converter = own.map(|(_, _, converter)| *converter).or(self.formatter);
        if let (None, Some(system)) = (converter, self.system)
            && let Some(text) = system.value(row, cell)
        {
            return Ok(text);
        }
        let converter = converter.unwrap_or(Converter::StringBinary);
        converter.text(&cell.value).ok_or_else(|| {
            ShellError::Arguments(format!(
                "{} needs more bytes than the {} of {}:{}",
                converter.name(),
                cell.value.len(),
                printable(&cell.family),
                printable(&cell.qualifier)
            ))
        })
    }
}

/// Formats each byte as two hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(digit.into(), 16));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Result<Option<Converter>, String> {
        Converter::from_part(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_last_part_is_a_converter_or_refused_or_of_the_qualifier() {
        assert_eq!(part("toLong"), Ok(Some(Converter::Long)));
        assert_eq!(
            part("c(org.apache.hadoop.hbase.util.Bytes).toInt"),
            Ok(Some(Converter::Int))
        );
        for qualifier in ["", "to", "tomorrow", "toLong more", "Long", "c(x"] {
            assert_eq!(part(qualifier), Ok(None), "{qualifier}");
        }
        let refused = part("toStrnig").unwrap_err();
        assert!(
            refused.contains("toStrnig") && refused.contains("toStringBinary"),
            "{refused}"
        );
        assert!(part("c(my.Class).format").unwrap_err().contains("my.Class"));
    }

    #[test]
    fn values_are_converted_as_javas_bytes_does() {
        for (converter, value, expected) in [
            (Converter::Long, &13i64.to_be_bytes()[..], Some("13")),
            (Converter::Int, b"\xff\xff\xff\xfe", Some("-2")),
            (Converter::Int, b"\0\0\0\x05more", Some("5")),
            (Converter::Int, b"\0\0\x05", None),
            (Converter::Short, b"\x01\x00", Some("256")),
            (Converter::Double, &1.5f64.to_be_bytes(), Some("1.5")),
            (Converter::Float, &(-2f32).to_be_bytes(), Some("-2.0")),
            (Converter::Boolean, b"\xff", Some("true")),
            (Converter::Boolean, b"", None),
            (Converter::Hex, b"\x0aZ", Some("0a5a")),
            (
                Converter::Text,
                "\u{e9}\x1b[2J\\".as_bytes(),
                Some("\u{e9}\\x1B[2J\\"),
            ),
            (Converter::Text, b"a\xffb", Some("a\\xFFb")),
            (Converter::StringBinary, b"a\xff", Some("a\\xFF")),
        ] {
            assert_eq!(
                converter.text(value).as_deref(),
                expected,
                "{converter:?} {value:?}"
            );
        }
    }

    #[test]
    fn a_columns_converter_wins_over_the_formatter() {
        let cell = |qualifier: &'static str, value: &'static [u8], kind| Cell {
            family: "f".into(),
            qualifier: qualifier.into(),
            value: value.into(),
            timestamp: 0,
            kind,
            tags: "".into(),
        };
        let mut format = Format {
            columns: vec![(b"f".to_vec(), b"n".to_vec(), Converter::Int)],
            formatter: Some(Converter::Hex),
            max_length: None,
            system: None,
        };
        let number = cell("n", b"\0\0\0\x07", CellKind::Put);
        assert_eq!(
            format.cell(b"r", &number).unwrap(),
            "timestamp=1970-01-01T00:00, value=7"
        );
        assert_eq!(format.column(&number), "66:6e");
        let other = cell("o", b"\x07", CellKind::Put);
        assert_eq!(
            format.cell(b"r", &other).unwrap(),
            "timestamp=1970-01-01T00:00, value=07"
        );
        let gone = cell("n", b"", CellKind::DeleteColumn);
        assert_eq!(
            format.cell(b"r", &gone).unwrap(),
            "timestamp=1970-01-01T00:00, type=DeleteColumn"
        );
        format.max_length = Some(4);
        assert_eq!(format.cell(b"r", &number).unwrap(), "time");
        let short = format.cell(b"r", &cell("n", b"\x07", CellKind::Put)).unwrap_err();
        assert!(
            short.to_string().contains("toInt") && short.to_string().contains("f:n"),
            "{short}"
        );
    }
}

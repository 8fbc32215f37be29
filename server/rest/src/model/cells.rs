//! Cells of rows that a client sends: the model CellSet.

use prost::Message;
use prost::bytes::Bytes;
use serde::Deserialize;

use super::json::{Base64, Number};
use super::xml::{self, Part};
use super::{from_json, from_protobuf};
use crate::encoding::decode_base64;
use crate::media::Media;
use crate::{Malformed, Result};

/// A row with cells. Without a key it is the row of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: Option<Vec<u8>>,
    /// Its cells, in order.
    pub cells: Vec<Cell>,
}

/// A cell. Without a column it is one of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// `family:qualifier`.
    pub column: Option<Vec<u8>>,
    /// Milliseconds; `None` for the server's time, also where HBase's greatest time was sent.
    pub timestamp: Option<i64>,
    /// The value.
    pub value: Vec<u8>,
}

/// HBase's word for the server's time.
const LATEST_TIMESTAMP: i64 = i64::MAX;

/// Memory of a cell beside its bytes: as decoded from each form, and here.
const CELL_BYTES: usize = size_of::<Cell>() + size_of::<PbCell>() + 32;

/// An upper bound on the memory of a decoded body. Each cell and each row takes a character or byte that
/// is counted here.
pub fn decoded_bytes(media: Media, body: &[u8]) -> usize {
    let marks: &[u8] = match media {
        Media::Json => b"{",
        Media::Xml => b"<",
        // The fields 1 (a row) and 2 (a cell) with the wire type of a length.
        Media::Protobuf | Media::ProtobufIetf => &[0x0a, 0x12],
        Media::Text | Media::Binary => return body.len(),
    };
    let marks = body.iter().filter(|byte| marks.contains(byte)).count();
    2 * body.len() + (marks + 1) * CELL_BYTES
}

/// The rows of a body.
pub fn decode(media: Media, body: &[u8]) -> Result<Vec<Row>> {
    match media {
        Media::Json => Ok(from_json::<JsonCellSet>(body)?.into()),
        Media::Xml => from_xml(body),
        Media::Protobuf | Media::ProtobufIetf => Ok(from_protobuf::<PbCellSet>(body)?.into()),
        Media::Text | Media::Binary => Err(Malformed(format!("{} has no cells", media.name()))),
    }
}

fn timestamp(number: i64) -> Option<i64> {
    (number != LATEST_TIMESTAMP).then_some(number)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCellSet {
    #[serde(default, rename = "Row")]
    rows: Option<Vec<JsonRow>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRow {
    #[serde(default)]
    key: Option<Base64>,
    #[serde(default, rename = "Cell")]
    cells: Option<Vec<JsonCell>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCell {
    #[serde(default)]
    column: Option<Base64>,
    #[serde(default)]
    timestamp: Option<Number>,
    #[serde(default, rename = "$")]
    value: Option<Base64>,
}

impl From<JsonCellSet> for Vec<Row> {
    fn from(set: JsonCellSet) -> Self {
        let cell = |cell: JsonCell| Cell {
            column: cell.column.map(|column| column.0),
            timestamp: cell.timestamp.and_then(|number| timestamp(number.0)),
            value: cell.value.unwrap_or_default().0,
        };
        let row = |row: JsonRow| Row {
            key: row.key.map(|key| key.0),
            cells: row.cells.into_iter().flatten().map(cell).collect(),
        };
        set.rows.into_iter().flatten().map(row).collect()
    }
}

#[derive(Clone, PartialEq, Message)]
struct PbCellSet {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<PbRow>,
}

#[derive(Clone, PartialEq, Message)]
struct PbRow {
    #[prost(bytes = "vec", optional, tag = "1")]
    key: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    values: Vec<PbCell>,
}

#[derive(Clone, PartialEq, Message)]
struct PbCell {
    #[prost(bytes = "bytes", optional, tag = "1")]
    row: Option<Bytes>,
    #[prost(bytes = "vec", optional, tag = "2")]
    column: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "3")]
    timestamp: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "4")]
    data: Option<Vec<u8>>,
}

impl From<PbCellSet> for Vec<Row> {
    fn from(set: PbCellSet) -> Self {
        let cell = |cell: PbCell| Cell {
            column: cell.column,
            timestamp: cell.timestamp.and_then(timestamp),
            value: cell.data.unwrap_or_default(),
        };
        let row = |row: PbRow| Row {
            key: row.key,
            cells: row.values.into_iter().map(cell).collect(),
        };
        set.rows.into_iter().map(row).collect()
    }
}

fn from_xml(body: &[u8]) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let bytes = |text: Option<String>| text.map(|text| decode_text(&text)).transpose();
    xml::read(body, "CellSet", |part| {
        match part {
            Part::Begin(element, 2) if element.name() == "Row" => rows.push(Row {
                key: bytes(element.attribute("key")?)?,
                cells: Vec::new(),
            }),
            Part::Begin(element, 3) if element.name() == "Cell" => {
                if let Some(row) = rows.last_mut() {
                    row.cells.push(Cell {
                        column: bytes(element.attribute("column")?)?,
                        timestamp: element
                            .attribute("timestamp")?
                            .map(|text| time(&text))
                            .transpose()?
                            .flatten(),
                        value: Vec::new(),
                    });
                }
            }
            Part::End(name, 3, text) if name == "Cell" => {
                if let Some(cell) = rows.last_mut().and_then(|row| row.cells.last_mut()) {
                    cell.value = decode_text(&text)?;
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(rows)
}

fn time(text: &str) -> Result<Option<i64>> {
    let number = text.trim().parse();
    number
        .map(timestamp)
        .map_err(|_| Malformed(format!("the timestamp {text:?} is not a whole number of 64 bits")))
}

/// Base64, between whose letters XML may have blanks and line ends.
pub(super) fn decode_text(text: &str) -> Result<Vec<u8>> {
    if text.contains(|letter: char| letter.is_ascii_whitespace()) {
        let text: String = text.split_ascii_whitespace().collect();
        return decode_base64(text.as_bytes());
    }
    decode_base64(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Vec<Row> {
        vec![Row {
            key: Some(b"k".to_vec()),
            cells: vec![
                Cell {
                    column: Some(b"f:a".to_vec()),
                    timestamp: Some(5),
                    value: b"v".to_vec(),
                },
                Cell {
                    column: None,
                    timestamp: None,
                    value: Vec::new(),
                },
            ],
        }]
    }

    #[test]
    fn cells_are_read_from_each_form() {
        let json = r#"{"Row":[{"key":"aw==","Cell":[{"column":"Zjph","timestamp":"5","$":"dg"},{"$":null,"timestamp":9223372036854775807}]}]}"#;
        assert_eq!(decode(Media::Json, json.as_bytes()).unwrap(), expected());
        let xml = "<?xml version='1.0' encoding='UTF-8' standalone='yes'?><CellSet><Row key='aw==' other='x'>\
                   <Cell column='Zjph' timestamp='5'>\n  dg= =\n</Cell><Cell/><Other><Cell/></Other></Row></CellSet>";
        assert_eq!(decode(Media::Xml, xml.as_bytes()).unwrap(), expected());
        let protobuf = PbCellSet {
            rows: vec![PbRow {
                key: Some(b"k".to_vec()),
                values: vec![
                    PbCell {
                        row: Some(Bytes::from_static(b"unused")),
                        column: Some(b"f:a".to_vec()),
                        timestamp: Some(5),
                        data: Some(b"v".to_vec()),
                    },
                    PbCell::default(),
                ],
            }],
        };
        let body = protobuf.encode_to_vec();
        assert_eq!(decode(Media::ProtobufIetf, &body).unwrap(), expected());
        for media in [Media::Json, Media::Xml] {
            let empty: &[u8] = if media == Media::Json {
                b"{}"
            } else {
                b"<CellSet/>"
            };
            assert_eq!(decode(media, empty).unwrap(), []);
        }
    }

    #[test]
    fn malformed_bodies_are_refused_in_one_line() {
        for (media, body) in [
            (Media::Json, &b"{"[..]),
            (Media::Json, b"[]"),
            (Media::Json, br#"{"Row":{}}"#),
            (Media::Json, br#"{"row":[]}"#),
            (Media::Json, br#"{"Row":[{"key":"a b"}]}"#),
            (Media::Json, br#"{"Row":[{"Cell":[{"timestamp":"x"}]}]}"#),
            (Media::Xml, b"<Rows/>"),
            (Media::Xml, b"<CellSet><Row key='?'/></CellSet>"),
            (Media::Xml, b"<CellSet><Row><Cell timestamp='x'/></Row></CellSet>"),
            (Media::Protobuf, b"\xff\xff"),
            (Media::Text, b""),
        ] {
            let error = decode(media, body).unwrap_err();
            assert!(
                !error.0.contains('\n') && !error.0.is_empty(),
                "{body:?}: {error}"
            );
        }
    }

    /// Goal: the smallest cells take no more memory than was reserved for them.
    #[test]
    fn the_bound_on_memory_holds_for_the_smallest_cells() {
        let cells = 1_000;
        let json = format!(r#"{{"Row":[{{"Cell":[{}]}}]}}"#, vec!["{}"; cells].join(","));
        let xml = format!("<CellSet><Row>{}</Row></CellSet>", "<Cell/>".repeat(cells));
        let row = [&[0x0a, 0xd0, 0x0f][..], &[0x12, 0].repeat(cells)].concat();
        for (media, body) in [
            (Media::Json, json.as_bytes()),
            (Media::Xml, xml.as_bytes()),
            (Media::Protobuf, &row),
        ] {
            let rows = decode(media, body).unwrap();
            assert_eq!(rows[0].cells.len(), cells);
            assert!(
                decoded_bytes(media, body) > 2 * cells * size_of::<Cell>(),
                "{media:?}"
            );
        }
    }
}

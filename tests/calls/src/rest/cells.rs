//! Sets of cells in each media type.

use prost::Message;
use serde_json::{Value as Json, json};

use super::media::Media;
use super::messages::{Cell, CellSet, Row};
use super::path::{base64, unbase64};
use super::xml::Element;
use crate::Value;
use crate::connection::NoAnswer;
use crate::fields::Fields;

/// Bytes of the length in front of each frame of a stateless scan in protobuf.
const FRAME_LENGTH_BYTES: usize = 2;

/// The rows of a call.
pub(super) fn of_call(rows: &[Fields<'_>]) -> Result<CellSet, NoAnswer> {
    let cell = |cell: Fields<'_>| {
        Ok(Cell {
            column: cell.optional_bytes("column")?.map(Into::into),
            timestamp: cell.int("timestamp")?,
            data: Some(cell.bytes("value")?.into()),
        })
    };
    let row = |row: &Fields<'_>| {
        Ok(Row {
            key: row.optional_bytes("key")?.map(Into::into),
            values: row
                .list("cells")?
                .into_iter()
                .map(cell)
                .collect::<Result<_, NoAnswer>>()?,
        })
    };
    Ok(CellSet {
        rows: rows.iter().map(row).collect::<Result<_, NoAnswer>>()?,
    })
}

/// The body for a set of cells.
pub(super) fn encode(cells: &CellSet, media: Media) -> Vec<u8> {
    match media {
        Media::Protobuf => cells.encode_to_vec(),
        Media::Xml => to_xml(cells).document(),
        _ => to_json(cells).to_string().into_bytes(),
    }
}

fn to_xml(cells: &CellSet) -> Element {
    let cell = |cell: &Cell| {
        let mut element = Element::of_text("Cell", base64(cell.data.as_deref().unwrap_or_default()));
        element.set("column", cell.column.as_deref().map(base64));
        element.set("timestamp", cell.timestamp);
        element
    };
    let row = |row: &Row| {
        let mut element = Element::new("Row");
        element.set("key", row.key.as_deref().map(base64));
        element.elements = row.values.iter().map(cell).collect();
        element
    };
    let mut root = Element::new("CellSet");
    root.elements = cells.rows.iter().map(row).collect();
    root
}

fn to_json(cells: &CellSet) -> Json {
    let cell = |cell: &Cell| {
        let mut object = json!({"$": base64(cell.data.as_deref().unwrap_or_default())});
        if let Some(column) = &cell.column {
            object["column"] = base64(column).into();
        }
        if let Some(timestamp) = cell.timestamp {
            object["timestamp"] = timestamp.into();
        }
        object
    };
    let row = |row: &Row| {
        let mut object = json!({"Cell": row.values.iter().map(cell).collect::<Vec<_>>()});
        if let Some(key) = &row.key {
            object["key"] = base64(key).into();
        }
        object
    };
    json!({"Row": cells.rows.iter().map(row).collect::<Vec<_>>()})
}

/// The rows of an answer. `framed`: protobuf is a sequence of frames.
pub(super) fn decode(body: &[u8], media: Media, framed: bool) -> Result<Value, String> {
    let cells = match media {
        Media::Protobuf if framed => of_frames(body)?,
        Media::Protobuf => CellSet::decode(body).map_err(|error| error.to_string())?,
        Media::Xml => of_xml(&Element::parse(body)?)?,
        Media::Json => of_json(&serde_json::from_slice(body).map_err(|error| error.to_string())?)?,
        Media::Text | Media::Binary => return Err("cells in a media type that has none".to_owned()),
    };
    Ok(to_value(cells))
}

fn to_value(cells: CellSet) -> Value {
    let bytes = |bytes: Option<Vec<u8>>| bytes.map(Value::Bytes);
    let cell = |cell: Cell| {
        super::record([
            ("column", bytes(cell.column)),
            ("timestamp", cell.timestamp.map(Value::Int)),
            ("value", bytes(Some(cell.data.unwrap_or_default()))),
        ])
    };
    let row = |row: Row| {
        let cells: Vec<Value> = row.values.into_iter().map(cell).collect();
        super::record([("key", bytes(row.key)), ("cells", Some(cells.into()))])
    };
    Value::List(cells.rows.into_iter().map(row).collect())
}

fn of_frames(mut body: &[u8]) -> Result<CellSet, String> {
    let mut all = CellSet::default();
    while let Some((length, rest)) = body.split_first_chunk::<FRAME_LENGTH_BYTES>() {
        let length = usize::from(u16::from_be_bytes(*length));
        let (frame, rest) = rest.split_at_checked(length).ok_or("a frame is cut off")?;
        let cells = CellSet::decode(frame).map_err(|error| error.to_string())?;
        all.rows.extend(cells.rows);
        body = rest;
    }
    if body.is_empty() {
        Ok(all)
    } else {
        Err("a frame is cut off".to_owned())
    }
}

fn of_xml(root: &Element) -> Result<CellSet, String> {
    if root.name != "CellSet" {
        return Err(format!("the root is {}", root.name));
    }
    let bytes = |element: &Element, name| element.attribute(name).map(unbase64).transpose();
    let cell = |cell: &Element| {
        let timestamp = cell.attribute("timestamp").map(str::parse).transpose();
        Ok(Cell {
            column: bytes(cell, "column")?,
            timestamp: timestamp.map_err(|_| "a timestamp is no number".to_owned())?,
            data: Some(unbase64(&cell.text)?),
        })
    };
    let row = |row: &Element| {
        Ok(Row {
            key: bytes(row, "key")?,
            values: row.all("Cell").map(cell).collect::<Result<_, String>>()?,
        })
    };
    Ok(CellSet {
        rows: root.all("Row").map(row).collect::<Result<_, String>>()?,
    })
}

fn of_json(json: &Json) -> Result<CellSet, String> {
    let list = |json: &Json, name: &str| match &json[name] {
        Json::Array(values) => Ok(values.clone()),
        other => Err(format!("{name} is {other}")),
    };
    let bytes = |json: &Json, name: &str| json[name].as_str().map(unbase64).transpose();
    let cell = |cell: &Json| {
        Ok(Cell {
            column: bytes(cell, "column")?,
            timestamp: cell["timestamp"].as_i64(),
            data: bytes(cell, "$")?,
        })
    };
    let row = |row: &Json| {
        let cells = list(row, "Cell")?;
        Ok(Row {
            key: bytes(row, "key")?,
            values: cells.iter().map(cell).collect::<Result<_, String>>()?,
        })
    };
    let rows = list(json, "Row")?;
    Ok(CellSet {
        rows: rows.iter().map(row).collect::<Result<_, String>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_the_same_in_each_media_type() {
        let cells = CellSet {
            rows: vec![Row {
                key: Some(b"r\xff".to_vec()),
                values: vec![Cell {
                    column: Some(b"f:a".to_vec()),
                    timestamp: Some(5),
                    data: Some(b"<v>".to_vec()),
                }],
            }],
        };
        let expected = to_value(cells.clone());
        for media in [Media::Json, Media::Xml, Media::Protobuf] {
            assert_eq!(
                decode(&encode(&cells, media), media, false),
                Ok(expected.clone()),
                "{media:?}"
            );
        }
        let frame = cells.encode_to_vec();
        let length = u16::try_from(frame.len()).expect("a short frame").to_be_bytes();
        let framed = [&length[..], &frame].concat();
        assert_eq!(decode(&framed, Media::Protobuf, true), Ok(expected));
        assert_eq!(decode(b"", Media::Protobuf, true), Ok(Value::List(Vec::new())));
        assert!(decode(&framed[1..], Media::Protobuf, true).is_err());
    }
}

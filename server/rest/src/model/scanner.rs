//! The description of a scanner that a client sends.

use prost::Message;
use serde::Deserialize;

use super::json::{Base64, Number, Scalar};
use super::xml::{self, Part};
use super::{cells, from_json, from_protobuf};
use crate::media::Media;
use crate::row_path::Column;
use crate::{Malformed, Result};

/// A scanner. Labels and the hint `caching` have no meaning here and are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScannerModel {
    /// First row; empty for the first of the table.
    pub start_row: Vec<u8>,
    /// The row behind the last one; empty for the end.
    pub end_row: Vec<u8>,
    /// Columns; none for all.
    pub columns: Vec<Column>,
    /// Most cells of an answer, if there is a limit.
    pub batch: Option<usize>,
    /// First time.
    pub start_time: Option<i64>,
    /// The time behind the last one.
    pub end_time: Option<i64>,
    /// A filter in JSON ([`crate::filter`]).
    pub filter: Option<String>,
    /// Versions of a column; all without it.
    pub max_versions: Option<i32>,
    /// Whether blocks that are read go into the cache.
    pub keeps_blocks: bool,
    /// Whether the first row is part of the scan (HBase 3).
    pub excludes_start: bool,
    /// Whether the row behind the last one is part of the scan (HBase 3).
    pub includes_end: bool,
}

impl ScannerModel {
    /// The scanner of a body. An empty body, and an empty string in JSON, mean a scanner of the whole table.
    pub fn decode(media: Media, body: &[u8]) -> Result<Self> {
        let text = body.trim_ascii();
        if text.is_empty() || media == Media::Json && (text == b"\"\"" || text == b"null") {
            return Ok(Self {
                keeps_blocks: true,
                ..Self::default()
            });
        }
        match media {
            Media::Json => Ok(from_json::<Json>(body)?.into()),
            Media::Xml => from_xml(body),
            Media::Protobuf | Media::ProtobufIetf => Ok(from_protobuf::<Pb>(body)?.into()),
            Media::Text | Media::Binary => Err(Malformed(format!("{} has no scanner", media.name()))),
        }
    }
}

/// A limit; nothing, zero and negative numbers mean none.
fn limit(number: i64) -> Option<usize> {
    // HBase's default is the greatest number.
    (1..i64::from(i32::MAX))
        .contains(&number)
        .then_some(number as usize)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Json {
    #[serde(default)]
    start_row: Option<Base64>,
    #[serde(default)]
    end_row: Option<Base64>,
    #[serde(default)]
    column: Option<Vec<Base64>>,
    #[serde(default)]
    batch: Option<Number>,
    #[serde(default)]
    start_time: Option<Number>,
    #[serde(default)]
    end_time: Option<Number>,
    #[serde(default)]
    filter: Option<String>,
    #[serde(default)]
    max_versions: Option<Number>,
    #[serde(default, rename = "caching")]
    _caching: Option<Number>,
    #[serde(default, rename = "labels")]
    _labels: Option<Vec<String>>,
    #[serde(default)]
    cache_blocks: Option<Scalar>,
    #[serde(default)]
    include_start_row: Option<Scalar>,
    #[serde(default)]
    include_stop_row: Option<Scalar>,
}

impl From<Json> for ScannerModel {
    fn from(json: Json) -> Self {
        Self {
            start_row: json.start_row.unwrap_or_default().0,
            end_row: json.end_row.unwrap_or_default().0,
            columns: json
                .column
                .into_iter()
                .flatten()
                .map(|column| Column::of(&column.0))
                .collect(),
            batch: json.batch.and_then(|number| limit(number.0)),
            start_time: json.start_time.map(|number| number.0),
            end_time: json.end_time.map(|number| number.0),
            filter: json.filter.filter(|filter| !filter.is_empty()),
            max_versions: json.max_versions.map(Number::to_i32),
            keeps_blocks: json.cache_blocks.is_none_or(|flag| flag.is_true()),
            excludes_start: json.include_start_row.is_some_and(|flag| !flag.is_true()),
            includes_end: json.include_stop_row.is_some_and(|flag| flag.is_true()),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct Pb {
    #[prost(bytes = "vec", optional, tag = "1")]
    start_row: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    end_row: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    columns: Vec<Vec<u8>>,
    #[prost(int32, optional, tag = "4")]
    batch: Option<i32>,
    #[prost(int64, optional, tag = "5")]
    start_time: Option<i64>,
    #[prost(int64, optional, tag = "6")]
    end_time: Option<i64>,
    #[prost(int32, optional, tag = "7")]
    max_versions: Option<i32>,
    #[prost(string, optional, tag = "8")]
    filter: Option<String>,
    #[prost(int32, optional, tag = "9")]
    caching: Option<i32>,
    #[prost(string, repeated, tag = "10")]
    labels: Vec<String>,
    #[prost(bool, optional, tag = "11")]
    cache_blocks: Option<bool>,
}

impl From<Pb> for ScannerModel {
    fn from(message: Pb) -> Self {
        Self {
            start_row: message.start_row.unwrap_or_default(),
            end_row: message.end_row.unwrap_or_default(),
            columns: message.columns.iter().map(|column| Column::of(column)).collect(),
            batch: message.batch.and_then(|number| limit(number.into())),
            start_time: message.start_time,
            end_time: message.end_time,
            filter: message.filter.filter(|filter| !filter.is_empty()),
            max_versions: message.max_versions,
            keeps_blocks: message.cache_blocks.unwrap_or(true),
            excludes_start: false,
            includes_end: false,
        }
    }
}

fn from_xml(body: &[u8]) -> Result<ScannerModel> {
    let mut scanner = ScannerModel {
        keeps_blocks: true,
        ..ScannerModel::default()
    };
    xml::read(body, "Scanner", |part| {
        match part {
            Part::Begin(element, 1) => {
                for (name, value) in element.attributes()? {
                    attribute(&mut scanner, &name, &value)?;
                }
            }
            Part::End(name, 2, text) if name == "column" => {
                scanner.columns.push(Column::of(&cells::decode_text(&text)?));
            }
            Part::End(name, 2, text) if name == "filter" => {
                scanner.filter = Some(text).filter(|filter| !filter.trim().is_empty());
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(scanner)
}

fn attribute(scanner: &mut ScannerModel, name: &str, value: &str) -> Result<()> {
    let number = || {
        value.trim().parse::<i64>().map_err(|_| {
            Malformed(format!(
                "the scanner's {name} must be a whole number of 64 bits, not {value:?}"
            ))
        })
    };
    let is_true = || value.trim().eq_ignore_ascii_case("true") || value.trim() == "1";
    match name {
        "startRow" => scanner.start_row = cells::decode_text(value)?,
        "endRow" => scanner.end_row = cells::decode_text(value)?,
        "batch" => scanner.batch = limit(number()?),
        "startTime" => scanner.start_time = Some(number()?),
        "endTime" => scanner.end_time = Some(number()?),
        "maxVersions" => scanner.max_versions = Some(Number(number()?).to_i32()),
        "cacheBlocks" => scanner.keeps_blocks = is_true(),
        "includeStartRow" => scanner.excludes_start = !is_true(),
        "includeStopRow" => scanner.includes_end = is_true(),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> ScannerModel {
        ScannerModel {
            start_row: b"a".to_vec(),
            end_row: b"b".to_vec(),
            columns: vec![Column::of(b"f:a"), Column::of(b"g")],
            batch: Some(3),
            start_time: Some(1),
            end_time: Some(9),
            filter: Some("{\"type\":\"X\"}".to_owned()),
            max_versions: Some(2),
            keeps_blocks: false,
            ..ScannerModel::default()
        }
    }

    #[test]
    fn scanners_are_read_from_each_form() {
        let json = br#"{"startRow":"YQ==","endRow":"Yg==","column":["Zjph","Zw=="],"batch":3,"startTime":1,"endTime":"9",
            "filter":"{\"type\":\"X\"}","maxVersions":2,"caching":-1,"labels":[],"cacheBlocks":false}"#;
        assert_eq!(ScannerModel::decode(Media::Json, json).unwrap(), expected());
        let xml = b"<Scanner startRow='YQ==' endRow='Yg==' batch='3' startTime='1' endTime='9' maxVersions='2' cacheBlocks='false' \
                    columns='x'><column>Zjph</column><column>Zw==</column><filter>{\"type\":&quot;X\"}</filter></Scanner>";
        assert_eq!(ScannerModel::decode(Media::Xml, xml).unwrap(), expected());
        let message = Pb {
            start_row: Some(b"a".to_vec()),
            end_row: Some(b"b".to_vec()),
            columns: vec![b"f:a".to_vec(), b"g".to_vec()],
            batch: Some(3),
            start_time: Some(1),
            end_time: Some(9),
            max_versions: Some(2),
            filter: Some("{\"type\":\"X\"}".to_owned()),
            caching: Some(10),
            labels: Vec::new(),
            cache_blocks: Some(false),
        };
        assert_eq!(
            ScannerModel::decode(Media::Protobuf, &message.encode_to_vec()).unwrap(),
            expected()
        );
    }

    #[test]
    fn an_empty_body_is_the_whole_table() {
        let whole = ScannerModel {
            keeps_blocks: true,
            ..ScannerModel::default()
        };
        for (media, body) in [
            (Media::Json, &b""[..]),
            (Media::Json, b"\"\""),
            (Media::Json, b" {} "),
            (Media::Xml, b"<Scanner/>"),
            (Media::Protobuf, b""),
        ] {
            assert_eq!(ScannerModel::decode(media, body).unwrap(), whole);
        }
        for batch in ["-1", "0", "2147483647"] {
            let json = format!("{{\"batch\":{batch}}}");
            assert_eq!(ScannerModel::decode(Media::Json, json.as_bytes()).unwrap(), whole);
        }
        let inclusive = br#"{"includeStartRow":false,"includeStopRow":true}"#;
        let read = ScannerModel::decode(Media::Json, inclusive).unwrap();
        assert!(read.excludes_start && read.includes_end);
        assert!(ScannerModel::decode(Media::Json, br#"{"columns":[]}"#).is_err());
        assert!(ScannerModel::decode(Media::Xml, b"<Scanner batch='x'/>").is_err());
    }
}

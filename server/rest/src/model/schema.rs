//! The schema of a table: families and options, all values as texts.
//!
//! In protobuf, some options have fields of their own beside the list of options. They repeat the list in
//! answers, and win over it in a request.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use prost::Message;
use serde::Deserialize;
use serde_json::Value;

use super::json::Scalar;
use super::xml::{self, Document, Part};
use super::{from_json, from_protobuf};
use crate::media::Media;
use crate::{Malformed, Result};

/// Options by name.
pub type Options = BTreeMap<String, String>;

/// The schema of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSchema {
    /// Name of the table; the path's wins over it in a request.
    pub name: String,
    /// Options of the table.
    pub options: Options,
    /// The families.
    pub families: Vec<FamilySchema>,
}

/// The schema of a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilySchema {
    /// Name of the family.
    pub name: String,
    /// Options of the family.
    pub options: Options,
}

impl TableSchema {
    /// The schema of a body.
    pub fn decode(media: Media, body: &[u8]) -> Result<Self> {
        let schema = match media {
            Media::Json => from_json::<JsonTable>(body)?.into(),
            Media::Xml => from_xml(body)?,
            Media::Protobuf | Media::ProtobufIetf => from_protobuf::<PbTable>(body)?.into(),
            Media::Text | Media::Binary => return Err(Malformed(format!("{} has no schema", media.name()))),
        };
        if schema.families.iter().any(|family| family.name.is_empty()) {
            return Err(Malformed::new("a family of the schema has no name"));
        }
        Ok(schema)
    }

    /// The body of an answer.
    pub fn encode(&self, media: Media) -> Vec<u8> {
        match media {
            Media::Json => self.to_json().to_string().into_bytes(),
            Media::Xml => self.to_xml().into_bytes(),
            Media::Protobuf | Media::ProtobufIetf => PbTable::from(self).encode_to_vec(),
            Media::Text | Media::Binary => self.to_string().into_bytes(),
        }
    }

    /// Name and families come before the options, whose order is theirs.
    fn to_json(&self) -> Ordered {
        let families = self.families.iter().map(|family| {
            let mut parts = vec![("name".to_owned(), Value::from(&family.name[..]).to_string())];
            parts.extend(texts(&family.options));
            Ordered(parts).to_string()
        });
        let families: Vec<String> = families.collect();
        let mut parts = vec![
            ("name".to_owned(), Value::from(&self.name[..]).to_string()),
            ("ColumnSchema".to_owned(), format!("[{}]", families.join(","))),
        ];
        parts.extend(texts(&self.options));
        Ordered(parts)
    }

    fn to_xml(&self) -> String {
        let mut document = Document::new();
        document.begin("TableSchema", &attributes(&&self.name[..], &self.options));
        for family in &self.families {
            document.empty("ColumnSchema", &attributes(&&family.name[..], &family.options));
        }
        document.end("TableSchema");
        document.finish()
    }
}

/// A JSON object whose members keep their order; each value is encoded already.
struct Ordered(Vec<(String, String)>);

impl Display for Ordered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, (name, value)) in self.0.iter().enumerate() {
            f.write_char(if number == 0 { '{' } else { ',' })?;
            write!(f, "{}:{value}", Value::from(&name[..]))?;
        }
        f.write_char('}')
    }
}

fn texts(options: &Options) -> impl Iterator<Item = (String, String)> {
    options
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(&value[..]).to_string()))
}

fn attributes<'s>(name: &'s &str, options: &'s Options) -> Vec<(&'s str, &'s dyn Display)> {
    let name = std::iter::once(("name", name as &dyn Display));
    name.chain(
        options
            .iter()
            .map(|(name, value)| (&name[..], value as &dyn Display)),
    )
    .collect()
}

/// HBase's form of a descriptor.
impl Display for TableSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{ NAME=> '{}'", self.name)?;
        for (name, value) in &self.options {
            write!(f, ", {name} => '{value}'")?;
        }
        f.write_str(", COLUMNS => [ ")?;
        for (number, family) in self.families.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}{{ NAME => '{}'", family.name)?;
            for (name, value) in &family.options {
                write!(f, ", {name} => '{value}'")?;
            }
            f.write_str(" }")?;
        }
        f.write_str(" ] }")
    }
}

#[derive(Deserialize)]
struct JsonTable {
    #[serde(default)]
    name: Option<String>,
    #[serde(default, rename = "ColumnSchema")]
    families: Option<Vec<JsonFamily>>,
    #[serde(flatten)]
    options: BTreeMap<String, Option<Scalar>>,
}

#[derive(Deserialize)]
struct JsonFamily {
    #[serde(default)]
    name: Option<String>,
    #[serde(flatten)]
    options: BTreeMap<String, Option<Scalar>>,
}

fn scalars(options: BTreeMap<String, Option<Scalar>>) -> Options {
    let set = options.into_iter();
    set.filter_map(|(name, value)| Some((name, value?.0))).collect()
}

impl From<JsonTable> for TableSchema {
    fn from(table: JsonTable) -> Self {
        let family = |family: JsonFamily| FamilySchema {
            name: family.name.unwrap_or_default(),
            options: scalars(family.options),
        };
        Self {
            name: table.name.unwrap_or_default(),
            options: scalars(table.options),
            families: table.families.into_iter().flatten().map(family).collect(),
        }
    }
}

fn from_xml(body: &[u8]) -> Result<TableSchema> {
    let mut table = TableSchema::default();
    xml::read(body, "TableSchema", |part| {
        match part {
            Part::Begin(element, 1) => (table.name, table.options) = named(element.attributes()?),
            Part::Begin(element, 2) if element.name() == "ColumnSchema" => {
                let (name, options) = named(element.attributes()?);
                table.families.push(FamilySchema { name, options });
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(table)
}

fn named(attributes: Vec<(String, String)>) -> (String, Options) {
    let mut options: Options = attributes.into_iter().collect();
    (options.remove("name").unwrap_or_default(), options)
}

#[derive(Clone, PartialEq, Message)]
struct PbTable {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    attrs: Vec<PbAttribute>,
    #[prost(message, repeated, tag = "3")]
    columns: Vec<PbFamily>,
    #[prost(bool, optional, tag = "4")]
    in_memory: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    read_only: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct PbAttribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct PbFamily {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    attrs: Vec<PbAttribute>,
    #[prost(int32, optional, tag = "3")]
    ttl: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    max_versions: Option<i32>,
    #[prost(string, optional, tag = "5")]
    compression: Option<String>,
}

fn pairs(attrs: Vec<PbAttribute>) -> Options {
    attrs.into_iter().map(|attr| (attr.name, attr.value)).collect()
}

fn to_pairs(options: &Options) -> Vec<PbAttribute> {
    let pair = |(name, value): (&String, &String)| PbAttribute {
        name: name.clone(),
        value: value.clone(),
    };
    options.iter().map(pair).collect()
}

/// Sets an option that is given.
fn set(options: &mut Options, name: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        options.insert(name.to_owned(), value.to_string());
    }
}

impl From<PbTable> for TableSchema {
    fn from(table: PbTable) -> Self {
        let family = |family: PbFamily| {
            let mut options = pairs(family.attrs);
            set(&mut options, "TTL", family.ttl);
            set(&mut options, "VERSIONS", family.max_versions);
            set(&mut options, "COMPRESSION", family.compression);
            FamilySchema {
                name: family.name.unwrap_or_default(),
                options,
            }
        };
        let mut options = pairs(table.attrs);
        set(&mut options, "READONLY", table.read_only);
        Self {
            name: table.name.unwrap_or_default(),
            options,
            families: table.columns.into_iter().map(family).collect(),
        }
    }
}

impl From<&TableSchema> for PbTable {
    fn from(table: &TableSchema) -> Self {
        let family = |family: &FamilySchema| PbFamily {
            name: Some(family.name.clone()),
            attrs: to_pairs(&family.options),
            ttl: family.options.get("TTL").and_then(|ttl| ttl.parse().ok()),
            max_versions: family
                .options
                .get("VERSIONS")
                .and_then(|count| count.parse().ok()),
            compression: family.options.get("COMPRESSION").cloned(),
        };
        Self {
            name: Some(table.name.clone()),
            attrs: to_pairs(&table.options),
            columns: table.families.iter().map(family).collect(),
            in_memory: None,
            read_only: table
                .options
                .get("READONLY")
                .map(|value| value.eq_ignore_ascii_case("true")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> TableSchema {
        let options = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        TableSchema {
            name: "t".to_owned(),
            options: options(&[("IS_META", "false"), ("READONLY", "true")]),
            families: vec![FamilySchema {
                name: "f".to_owned(),
                options: options(&[
                    ("COMPRESSION", "GZ"),
                    ("TTL", "60"),
                    ("VERSIONS", "3"),
                    ("X", "a \"b\""),
                ]),
            }],
        }
    }

    #[test]
    fn schemas_are_written_and_read_back() {
        let schema = schema();
        let text = |media| String::from_utf8(schema.encode(media)).unwrap();
        assert_eq!(
            text(Media::Json),
            r#"{"name":"t","ColumnSchema":[{"name":"f","COMPRESSION":"GZ","TTL":"60","VERSIONS":"3","X":"a \"b\""}],"IS_META":"false","READONLY":"true"}"#
        );
        assert!(text(Media::Xml).ends_with(
            "<TableSchema name=\"t\" IS_META=\"false\" READONLY=\"true\"><ColumnSchema name=\"f\" COMPRESSION=\"GZ\" TTL=\"60\" \
             VERSIONS=\"3\" X=\"a &quot;b&quot;\"/></TableSchema>"
        ));
        assert_eq!(
            text(Media::Text),
            "{ NAME=> 't', IS_META => 'false', READONLY => 'true', COLUMNS => [ { NAME => 'f', COMPRESSION => 'GZ', TTL => \
             '60', VERSIONS => '3', X => 'a \"b\"' } ] }"
        );
        for media in [Media::Json, Media::Xml, Media::Protobuf] {
            assert_eq!(
                TableSchema::decode(media, &schema.encode(media)).unwrap(),
                schema,
                "{media:?}"
            );
        }
    }

    #[test]
    fn fields_of_protobuf_win_and_json_has_numbers_and_booleans() {
        let mut message = PbTable::from(&schema());
        message.columns[0].ttl = Some(7);
        message.columns[0].compression = Some("LZ4".to_owned());
        let read = TableSchema::decode(Media::Protobuf, &message.encode_to_vec()).unwrap();
        assert_eq!(read.families[0].options["TTL"], "7");
        assert_eq!(read.families[0].options["COMPRESSION"], "LZ4");
        let json = br#"{"name":null,"ColumnSchema":[{"name":"f","VERSIONS":3,"IN_MEMORY":true,"TTL":null}]}"#;
        let read = TableSchema::decode(Media::Json, json).unwrap();
        assert_eq!(read.families[0].options["VERSIONS"], "3");
        assert_eq!(read.families[0].options["IN_MEMORY"], "true");
        assert!(!read.families[0].options.contains_key("TTL"));
        assert!(TableSchema::decode(Media::Json, br#"{"ColumnSchema":[{"VERSIONS":"3"}]}"#).is_err());
        assert!(TableSchema::decode(Media::Json, br#"{"ColumnSchema":[{"name":"f","X":[]}]}"#).is_err());
        assert!(TableSchema::decode(Media::Xml, b"<TableSchema><ColumnSchema/></TableSchema>").is_err());
        assert_eq!(
            TableSchema::decode(Media::Json, b"{}").unwrap(),
            TableSchema::default()
        );
    }
}

//! Namespaces: their names, and the properties of one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prost::Message;
use serde::{Deserialize, Serialize};

use super::json::Scalar;
use super::xml::{self, Document, Part};
use super::{from_json, from_protobuf};
use crate::media::Media;
use crate::{Malformed, Result};

/// The names of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(pub Vec<String>);

/// The properties of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(pub BTreeMap<String, String>);

#[derive(Serialize)]
struct JsonNamespaces<'n> {
    #[serde(rename = "Namespace")]
    names: &'n [String],
}

#[derive(Clone, PartialEq, Message)]
struct PbNamespaces {
    #[prost(string, repeated, tag = "1")]
    namespace: Vec<String>,
}

impl Namespaces {
    /// The body of an answer.
    pub fn encode(&self, media: Media) -> Vec<u8> {
        match media {
            Media::Json => to_json(&JsonNamespaces { names: &self.0 }),
            Media::Xml => {
                let mut document = Document::new();
                document.begin("Namespaces", &[]);
                self.0.iter().for_each(|name| document.text("Namespace", name));
                document.end("Namespaces");
                document.finish().into_bytes()
            }
            Media::Protobuf | Media::ProtobufIetf => {
                let namespace = self.0.clone();
                PbNamespaces { namespace }.encode_to_vec()
            }
            Media::Text | Media::Binary => lines(&self.0).into_bytes(),
        }
    }
}

/// A line for each text.
pub(super) fn lines(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [&text[..], "\n"]).collect()
}

/// JSON of a value that has no maps with keys other than texts.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonProperties {
    #[serde(default)]
    properties: Option<BTreeMap<String, Option<Scalar>>>,
}

#[derive(Serialize)]
struct JsonPropertiesOut<'p> {
    properties: Option<&'p BTreeMap<String, String>>,
}

#[derive(Clone, PartialEq, Message)]
struct PbProperties {
    #[prost(message, repeated, tag = "1")]
    props: Vec<PbProperty>,
}

#[derive(Clone, PartialEq, Message)]
struct PbProperty {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

impl Properties {
    /// The properties of a body; none of an empty one.
    pub fn decode(media: Media, body: &[u8]) -> Result<Self> {
        if body.is_empty() || media == Media::Json && body.trim_ascii() == b"null" {
            return Ok(Self::default());
        }
        match media {
            Media::Json => {
                let properties = from_json::<JsonProperties>(body)?.properties;
                let set = properties.into_iter().flatten();
                Ok(Self(
                    set.filter_map(|(key, value)| Some((key, value?.0))).collect(),
                ))
            }
            Media::Xml => from_xml(body),
            Media::Protobuf | Media::ProtobufIetf => {
                let props = from_protobuf::<PbProperties>(body)?.props;
                Ok(Self(
                    props.into_iter().map(|pair| (pair.key, pair.value)).collect(),
                ))
            }
            Media::Text | Media::Binary => Err(Malformed(format!("{} has no properties", media.name()))),
        }
    }

    /// The body of an answer; `name` is that of the namespace.
    pub fn encode(&self, name: &str, media: Media) -> Vec<u8> {
        match media {
            Media::Json => to_json(&JsonPropertiesOut {
                properties: (!self.0.is_empty()).then_some(&self.0),
            }),
            Media::Xml => {
                let mut document = Document::new();
                document.begin("NamespaceProperties", &[]);
                if !self.0.is_empty() {
                    document.begin("properties", &[]);
                    for (key, value) in &self.0 {
                        document.begin("entry", &[]);
                        document.text("key", key);
                        document.text("value", value);
                        document.end("entry");
                    }
                    document.end("properties");
                }
                document.end("NamespaceProperties");
                document.finish().into_bytes()
            }
            Media::Protobuf | Media::ProtobufIetf => {
                let pairs = self.0.iter().map(|(key, value)| PbProperty {
                    key: key.clone(),
                    value: value.clone(),
                });
                PbProperties {
                    props: pairs.collect(),
                }
                .encode_to_vec()
            }
            Media::Text | Media::Binary => {
                let mut text = format!("{{NAME => '{name}'");
                for (key, value) in &self.0 {
                    // Writing to a string cannot fail.
                    let _ = write!(text, ", {key} => '{value}'");
                }
                text.push('}');
                text.into_bytes()
            }
        }
    }
}

fn from_xml(body: &[u8]) -> Result<Properties> {
    let (mut properties, mut key) = (BTreeMap::new(), None);
    xml::read(body, "NamespaceProperties", |part| {
        if let Part::End(name, 4, text) = part {
            match (&name[..], key.take()) {
                ("key", _) => key = Some(text),
                ("value", Some(key)) => drop(properties.insert(key, text)),
                ("value", None) => {
                    return Err(Malformed::new(
                        "an entry of the properties has no key before its value",
                    ));
                }
                (_, before) => key = before,
            }
        }
        Ok(())
    })?;
    Ok(Properties(properties))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_four_forms() {
        let names = Namespaces(vec!["default".to_owned(), "a".to_owned()]);
        assert_eq!(names.encode(Media::Json), br#"{"Namespace":["default","a"]}"#);
        assert_eq!(names.encode(Media::Text), b"default\na\n");
        assert_eq!(names.encode(Media::Protobuf), b"\n\x07default\n\x01a");
        let xml = String::from_utf8(names.encode(Media::Xml)).unwrap();
        assert!(
            xml.ends_with("<Namespaces><Namespace>default</Namespace><Namespace>a</Namespace></Namespaces>")
        );
    }

    #[test]
    fn properties_are_written_and_read_back() {
        let properties = Properties([("k".to_owned(), "<v>".to_owned())].into());
        for media in [Media::Json, Media::Xml, Media::Protobuf] {
            let body = properties.encode("n", media);
            assert_eq!(Properties::decode(media, &body).unwrap(), properties, "{media:?}");
            assert_eq!(Properties::decode(media, b"").unwrap(), Properties::default());
        }
        assert_eq!(
            properties.encode("n", Media::Json),
            br#"{"properties":{"k":"<v>"}}"#
        );
        assert_eq!(properties.encode("n", Media::Text), b"{NAME => 'n', k => '<v>'}");
        assert_eq!(
            Properties::default().encode("n", Media::Json),
            br#"{"properties":null}"#
        );
        assert!(Properties::decode(Media::Json, br#"{"other":{}}"#).is_err());
    }
}

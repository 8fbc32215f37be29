//! Lists of names, regions, properties of namespaces, and the description of a scanner.

use prost::Message;
use serde_json::{Map, Value as Json, json};

use super::media::Media;
use super::messages::{Names, NamespaceProperties, Region, Scanner, TableInfo};
use super::path::{base64, byte_list, text, unbase64};
use super::schema::{Options, to_map};
use super::xml::Element;
use crate::Value;
use crate::connection::NoAnswer;
use crate::fields::Fields;

/// The scanner of a call.
pub(super) fn scanner(of: Fields<'_>) -> Result<Scanner, NoAnswer> {
    Ok(Scanner {
        start_row: of.optional_bytes("startRow")?.map(Into::into),
        end_row: of.optional_bytes("endRow")?.map(Into::into),
        columns: byte_list(of, "columns")?,
        batch: of.int("batch")?,
        start_time: of.int("startTime")?,
        end_time: of.int("endTime")?,
        max_versions: of.int("maxVersions")?,
        filter: text(of, "filter")?,
        caching: of.int("caching")?,
        cache_blocks: of.flag("cacheBlocks")?,
    })
}

/// The body for a scanner.
pub(super) fn encode_scanner(scanner: &Scanner, media: Media) -> Vec<u8> {
    match media {
        Media::Protobuf => scanner.encode_to_vec(),
        Media::Xml => scanner_to_xml(scanner).document(),
        _ => scanner_to_json(scanner).to_string().into_bytes(),
    }
}

fn scanner_to_xml(scanner: &Scanner) -> Element {
    let mut root = Element::new("Scanner");
    root.set("startRow", scanner.start_row.as_deref().map(base64));
    root.set("endRow", scanner.end_row.as_deref().map(base64));
    root.set("batch", scanner.batch);
    root.set("startTime", scanner.start_time);
    root.set("endTime", scanner.end_time);
    root.set("maxVersions", scanner.max_versions);
    root.set("caching", scanner.caching);
    root.set("cacheBlocks", scanner.cache_blocks);
    let columns = scanner
        .columns
        .iter()
        .map(|column| Element::of_text("column", base64(column)));
    root.elements.extend(columns);
    root.elements.extend(
        scanner
            .filter
            .iter()
            .map(|filter| Element::of_text("filter", filter)),
    );
    root
}

fn scanner_to_json(scanner: &Scanner) -> Json {
    let columns = (!scanner.columns.is_empty()).then(|| {
        scanner
            .columns
            .iter()
            .map(|column| base64(column))
            .collect::<Vec<_>>()
    });
    let fields: [(&str, Option<Json>); 10] = [
        (
            "startRow",
            scanner.start_row.as_deref().map(|row| base64(row).into()),
        ),
        ("endRow", scanner.end_row.as_deref().map(|row| base64(row).into())),
        ("column", columns.map(Into::into)),
        ("batch", scanner.batch.map(Into::into)),
        ("startTime", scanner.start_time.map(Into::into)),
        ("endTime", scanner.end_time.map(Into::into)),
        ("maxVersions", scanner.max_versions.map(Into::into)),
        ("filter", scanner.filter.clone().map(Into::into)),
        ("caching", scanner.caching.map(Into::into)),
        ("cacheBlocks", scanner.cache_blocks.map(Into::into)),
    ];
    let set = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Json::Object(set.collect::<Map<_, _>>())
}

/// The names of an answer, in its order.
pub(super) fn names(body: &[u8], media: Media, of_namespaces: bool) -> Result<Value, String> {
    let names: Vec<String> = match media {
        Media::Protobuf => Names::decode(body).map_err(|error| error.to_string())?.names,
        Media::Text => String::from_utf8_lossy(body).lines().map(str::to_owned).collect(),
        Media::Xml if of_namespaces => {
            let root = Element::parse(body)?;
            root.all("Namespace")
                .map(|element| element.text.clone())
                .collect()
        }
        Media::Xml => {
            let root = Element::parse(body)?;
            let named = root
                .all("table")
                .map(|table| table.attribute("name").unwrap_or_default().to_owned());
            named.collect()
        }
        Media::Json => names_of_json(body, of_namespaces)?,
        Media::Binary => return Err("names in a media type that has none".to_owned()),
    };
    Ok(Value::List(names.into_iter().map(Value::bytes).collect()))
}

fn names_of_json(body: &[u8], of_namespaces: bool) -> Result<Vec<String>, String> {
    let json: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let list = if of_namespaces {
        &json["Namespace"]
    } else {
        &json["table"]
    };
    let list = list.as_array().ok_or("there is no list of names")?;
    let name = |entry: &Json| {
        let name = if of_namespaces { entry } else { &entry["name"] };
        name.as_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("{entry} is no name"))
    };
    list.iter().map(name).collect()
}

/// The regions of an answer. Those of a text are its lines.
pub(super) fn regions(body: &[u8], media: Media) -> Result<Value, String> {
    let regions = match media {
        Media::Protobuf => {
            TableInfo::decode(body)
                .map_err(|error| error.to_string())?
                .regions
        }
        Media::Xml => {
            let root = Element::parse(body)?;
            root.all("Region").map(region_of_xml).collect::<Result<_, _>>()?
        }
        Media::Json => {
            let json: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            let list = json["Region"].as_array().ok_or("there is no list Region")?;
            list.iter().map(region_of_json).collect::<Result<_, _>>()?
        }
        Media::Text | Media::Binary => return Err("regions in a media type that has none".to_owned()),
    };
    let bytes = |bytes: Option<Vec<u8>>| Some(Value::Bytes(bytes.unwrap_or_default()));
    let region = |region: Region| {
        super::record([
            ("name", region.name.map(Value::bytes)),
            ("id", region.id.map(Value::Int)),
            ("startKey", bytes(region.start_key)),
            ("endKey", bytes(region.end_key)),
            ("location", region.location.map(Value::bytes)),
        ])
    };
    Ok(Value::List(regions.into_iter().map(region).collect()))
}

fn region_of_xml(region: &Element) -> Result<Region, String> {
    let text = |name| region.attribute(name).map(str::to_owned);
    let key = |name| region.attribute(name).map(unbase64).transpose();
    Ok(Region {
        name: text("name"),
        start_key: key("startKey")?,
        end_key: key("endKey")?,
        id: text("id").and_then(|id| id.parse().ok()),
        location: text("location"),
    })
}

fn region_of_json(region: &Json) -> Result<Region, String> {
    let text = |name: &str| region[name].as_str().map(str::to_owned);
    let key = |name: &str| region[name].as_str().map(unbase64).transpose();
    Ok(Region {
        name: text("name"),
        start_key: key("startKey")?,
        end_key: key("endKey")?,
        id: region["id"].as_i64(),
        location: text("location"),
    })
}

/// The body for properties of a namespace.
pub(super) fn encode_properties(properties: &Options, media: Media) -> Vec<u8> {
    match media {
        Media::Protobuf => {
            let pair = |(name, value): &(String, String)| super::messages::Attribute {
                name: name.clone(),
                value: value.clone(),
            };
            let props = properties.iter().map(pair).collect();
            NamespaceProperties { props }.encode_to_vec()
        }
        Media::Xml => {
            let entry = |(name, value): &(String, String)| {
                let mut entry = Element::new("entry");
                entry.elements = vec![Element::of_text("key", name), Element::of_text("value", value)];
                entry
            };
            let mut map = Element::new("properties");
            map.elements = properties.iter().map(entry).collect();
            let mut root = Element::new("NamespaceProperties");
            root.elements = vec![map];
            root.document()
        }
        _ => {
            let pairs = properties
                .iter()
                .map(|(name, value)| (name.clone(), Json::from(value.clone())));
            json!({"properties": Json::Object(pairs.collect())})
                .to_string()
                .into_bytes()
        }
    }
}

/// The properties of an answer. In a text they are for people, and not read.
pub(super) fn properties(body: &[u8], media: Media) -> Result<Value, String> {
    let options: Options = match media {
        Media::Protobuf => {
            let message = NamespaceProperties::decode(body).map_err(|error| error.to_string())?;
            message
                .props
                .into_iter()
                .map(|pair| (pair.name, pair.value))
                .collect()
        }
        Media::Xml => {
            let root = Element::parse(body)?;
            let maps = root.all("properties");
            let part = |entry: &Element, name| entry.all(name).map(|part| part.text.clone()).collect();
            let entries = maps.flat_map(|map| map.all("entry"));
            entries
                .map(|entry| (part(entry, "key"), part(entry, "value")))
                .collect()
        }
        Media::Json => {
            let json: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            match &json["properties"] {
                Json::Null => Vec::new(),
                Json::Object(map) => {
                    let pairs = map
                        .iter()
                        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                    pairs.collect()
                }
                other => return Err(format!("properties are {other}")),
            }
        }
        Media::Text | Media::Binary => return Err("properties in a media type that has none".to_owned()),
    };
    Ok(to_map(options))
}

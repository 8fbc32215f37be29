//! Schemas of tables in each media type.

use prost::Message;
use serde_json::{Map, Value as Json};

use super::media::Media;
use super::messages::{Attribute, ColumnSchema, TableSchema};
use super::path::text;
use super::xml::Element;
use crate::Value;
use crate::connection::NoAnswer;
use crate::fields::Fields;

/// Names and values.
pub(super) type Options = Vec<(String, String)>;

/// A table or a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Named {
    name: Option<String>,
    options: Options,
}

/// A schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Schema {
    table: Named,
    families: Vec<Named>,
}

/// The map of a field; none if it is absent.
pub(super) fn options(of: Fields<'_>, name: &str) -> Result<Options, NoAnswer> {
    let Some(value) = of.optional(name) else {
        return Ok(Vec::new());
    };
    let Value::Map(pairs) = value.0 else {
        return Err(of.wrong(name));
    };
    let text = |value: &Value| match value {
        Value::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => Err(of.wrong(name)),
    };
    pairs
        .iter()
        .map(|(name, value)| Ok((text(name)?, text(value)?)))
        .collect()
}

/// Options as a map of answers, which have them in any order.
pub(super) fn to_map(options: Options) -> Value {
    let pair = |(name, value): (String, String)| (Value::bytes(name), Value::bytes(value));
    let mut pairs: Vec<_> = options.into_iter().map(pair).collect();
    pairs.sort();
    Value::Map(pairs)
}

fn named(of: Fields<'_>) -> Result<Named, NoAnswer> {
    Ok(Named {
        name: text(of, "name")?,
        options: options(of, "options")?,
    })
}

/// The schema of a call.
pub(super) fn of_call(schema: Fields<'_>) -> Result<Schema, NoAnswer> {
    Ok(Schema {
        table: named(schema)?,
        families: schema
            .list("families")?
            .into_iter()
            .map(named)
            .collect::<Result<_, NoAnswer>>()?,
    })
}

/// The body for a schema.
pub(super) fn encode(schema: &Schema, media: Media) -> Vec<u8> {
    match media {
        Media::Protobuf => to_message(schema).encode_to_vec(),
        Media::Xml => to_xml(schema).document(),
        _ => to_json(schema).to_string().into_bytes(),
    }
}

fn to_message(schema: &Schema) -> TableSchema {
    let pair = |(name, value): &(String, String)| Attribute {
        name: name.clone(),
        value: value.clone(),
    };
    let family = |family: &Named| ColumnSchema {
        name: family.name.clone(),
        attrs: family.options.iter().map(pair).collect(),
        ..ColumnSchema::default()
    };
    TableSchema {
        name: schema.table.name.clone(),
        attrs: schema.table.options.iter().map(pair).collect(),
        columns: schema.families.iter().map(family).collect(),
        read_only: None,
    }
}

fn to_xml(schema: &Schema) -> Element {
    let element = |name: &str, of: &Named| {
        let mut element = Element::new(name);
        element.set("name", of.name.as_ref());
        element.attributes.extend(of.options.iter().cloned());
        element
    };
    let mut root = element("TableSchema", &schema.table);
    let families = schema.families.iter();
    root.elements = families.map(|family| element("ColumnSchema", family)).collect();
    root
}

fn to_json(schema: &Schema) -> Json {
    let object = |of: &Named| {
        let mut object = Map::new();
        object.extend(
            of.name
                .iter()
                .map(|name| ("name".to_owned(), name.clone().into())),
        );
        object.extend(
            of.options
                .iter()
                .map(|(name, value)| (name.clone(), value.clone().into())),
        );
        object
    };
    let mut table = object(&schema.table);
    let families = schema.families.iter().map(|family| Json::Object(object(family)));
    table.insert("ColumnSchema".to_owned(), families.collect());
    Json::Object(table)
}

/// The schema of an answer: families by name, options with those that protobuf repeats.
pub(super) fn decode(body: &[u8], media: Media) -> Result<Value, String> {
    let mut schema = match media {
        Media::Protobuf => of_message(TableSchema::decode(body).map_err(|error| error.to_string())?),
        Media::Xml => of_xml(&Element::parse(body)?),
        Media::Json => of_json(&serde_json::from_slice(body).map_err(|error| error.to_string())?)?,
        Media::Text => of_text(&String::from_utf8_lossy(body))?,
        Media::Binary => return Err("a schema in a media type that has none".to_owned()),
    };
    schema.families.sort_by(|one, other| one.name.cmp(&other.name));
    let value = |named: Named, families: Option<Value>| {
        super::record([
            ("name", named.name.map(Value::bytes)),
            ("options", Some(to_map(named.options))),
            ("families", families),
        ])
    };
    let families: Vec<Value> = schema
        .families
        .into_iter()
        .map(|family| value(family, None))
        .collect();
    Ok(value(schema.table, Some(families.into())))
}

/// Fields beside the list of options repeat it: one that differs is an option by another name.
fn of_message(message: TableSchema) -> Schema {
    let pairs = |attrs: Vec<Attribute>| -> Options {
        attrs.into_iter().map(|attr| (attr.name, attr.value)).collect()
    };
    let add = |options: &mut Options, name: &str, value: Option<String>| {
        let listed = options
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.clone());
        let differs = value.as_ref().map(|value| value.to_ascii_lowercase())
            != listed.map(|value| value.to_ascii_lowercase());
        if differs {
            options.push((format!("field of {name}"), format!("{value:?}")));
        }
    };
    let family = |family: ColumnSchema| {
        let mut options = pairs(family.attrs);
        add(&mut options, "TTL", family.ttl.map(|ttl| ttl.to_string()));
        add(
            &mut options,
            "VERSIONS",
            family.max_versions.map(|count| count.to_string()),
        );
        add(&mut options, "COMPRESSION", family.compression);
        Named {
            name: family.name,
            options,
        }
    };
    let mut options = pairs(message.attrs);
    add(
        &mut options,
        "READONLY",
        message.read_only.map(|flag| flag.to_string()),
    );
    Schema {
        table: Named {
            name: message.name,
            options,
        },
        families: message.columns.into_iter().map(family).collect(),
    }
}

fn of_xml(root: &Element) -> Schema {
    let named = |element: &Element| Named {
        name: element.attribute("name").map(str::to_owned),
        options: element
            .attributes
            .iter()
            .filter(|(name, _)| name != "name")
            .cloned()
            .collect(),
    };
    Schema {
        table: named(root),
        families: root.all("ColumnSchema").map(named).collect(),
    }
}

fn of_json(json: &Json) -> Result<Schema, String> {
    let named = |json: &Json| {
        let object = json.as_object().ok_or("a schema is no object")?;
        let others = object
            .iter()
            .filter(|(name, _)| !matches!(&name[..], "name" | "ColumnSchema"));
        let options = others.map(|(name, value)| match value {
            Json::String(text) => Ok((name.clone(), text.clone())),
            other => Err(format!("{name} is {other}, no text")),
        });
        Ok::<_, String>(Named {
            name: object.get("name").and_then(Json::as_str).map(str::to_owned),
            options: options.collect::<Result<_, _>>()?,
        })
    };
    let families = json["ColumnSchema"]
        .as_array()
        .ok_or("there is no list ColumnSchema")?;
    Ok(Schema {
        table: named(json)?,
        families: families.iter().map(named).collect::<Result<_, _>>()?,
    })
}

/// `{ NAME=> 't', A => 'x', COLUMNS => [ { NAME => 'f', B => 'y' }, … ] }`; values of tests have no quotes.
fn of_text(text: &str) -> Result<Schema, String> {
    let (table, families) = text.split_once(", COLUMNS => [").ok_or("there are no COLUMNS")?;
    let named = |text: &str| {
        let mut options: Options = Vec::new();
        for part in text
            .trim_matches([' ', '{', '}', ',', ']', '\r', '\n'])
            .split("', ")
        {
            let (name, value) = part
                .split_once("=> '")
                .ok_or_else(|| format!("no option: {part}"))?;
            options.push((name.trim().to_owned(), value.trim_end_matches('\'').to_owned()));
        }
        let name = options
            .iter()
            .position(|(name, _)| name == "NAME")
            .map(|at| options.remove(at).1);
        Ok::<_, String>(Named { name, options })
    };
    let families = families.split('{').skip(1);
    Ok(Schema {
        table: named(table)?,
        families: families.map(named).collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_the_same_in_each_media_type() {
        let options = |pairs: &[(&str, &str)]| {
            let owned = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            owned.collect::<Options>()
        };
        let schema = Schema {
            table: Named {
                name: Some("t".to_owned()),
                options: options(&[("IS_META", "false")]),
            },
            families: vec![Named {
                name: Some("f".to_owned()),
                options: options(&[("BLOOMFILTER", "ROW"), ("IN_MEMORY", "false")]),
            }],
        };
        let json = decode(&encode(&schema, Media::Json), Media::Json).expect("a schema");
        for media in [Media::Xml, Media::Protobuf] {
            assert_eq!(
                decode(&encode(&schema, media), media),
                Ok(json.clone()),
                "{media:?}"
            );
        }
        let text = "{ NAME=> 't', IS_META => 'false', COLUMNS => [ { NAME => 'f', BLOOMFILTER => 'ROW', \
                    IN_MEMORY => 'false' } ] }";
        assert_eq!(decode(text.as_bytes(), Media::Text), Ok(json));
    }
}

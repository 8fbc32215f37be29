//! Tables: names, schemas, regions.

use axum::http::StatusCode;
use basalt_engine::schema::{Attributes, FamilyDescriptor, TableDescriptor, TableName, TableState};
use basalt_rest::media::Media;
use basalt_rest::model::listing::{Region, TableRegions, Tables};
use basalt_rest::model::schema::{FamilySchema, Options, TableSchema};

use super::answer::Reply;
use super::faults::Refusal;
use super::methods::Method;
use super::request::{Request, Result, table, unsupported_media};
use crate::service::admin::tables;
use crate::service::listing::Listing;
use crate::service::schema::{family_attributes, table_attributes};
use crate::service::{AdminCall, Failure};

/// The user tables.
pub(super) async fn list(asked: &mut Request) -> Result<Reply> {
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    asked.reserve_listing(Listing::Names).await?;
    let found = asked.ask(|call| tables::list_matching(call, None, false))?;
    let names = found.iter().map(|table| table.name.to_string());
    Ok(Reply::of(media, Tables(names.collect()).encode(media)))
}

pub(super) fn exists(asked: &Request, name: &[u8]) -> Result<Reply> {
    let table = table(name)?;
    match asked.ask(|call| tables::find(call, &table))? {
        Some(_) => Ok(Reply::empty(StatusCode::OK)),
        None => Err(missing(&table)),
    }
}

fn missing(table: &TableName) -> Refusal {
    Refusal::not_found(format!("there is no table {table}"))
}

pub(super) async fn regions(asked: &mut Request, name: &[u8]) -> Result<Reply> {
    let table = table(name)?;
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    asked.reserve_listing(Listing::RegionsOf(&table)).await?;
    let regions = asked.ask(|call| {
        let regions = tables::regions(call, &table)?;
        let shown = regions.iter().map(|region| {
            let server = tables::server_of(call, region)?;
            Ok(Region {
                name: String::from_utf8_lossy(&region.name()).into_owned(),
                id: region.created_ms,
                start_key: region.start.clone(),
                end_key: region.end.clone(),
                location: format!("{}:{}", server.host, server.port),
            })
        });
        shown.collect::<Result<Vec<_>, Failure>>()
    })?;
    let regions = TableRegions {
        name: table.to_string(),
        regions,
    };
    Ok(Reply::of(media, regions.encode(media)))
}

pub(super) async fn get(asked: &mut Request, name: &[u8]) -> Result<Reply> {
    let table = table(name)?;
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    asked.reserve_listing(Listing::Table(&table)).await?;
    let (found, _) = asked.ask(|call| tables::describe(call, &table))?;
    Ok(Reply::of(media, to_schema(&found).encode(media)))
}

/// The schema of a table, with HBase's defaults of what is not set.
fn to_schema(table: &TableDescriptor) -> TableSchema {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let options = |attributes: std::collections::BTreeMap<bytes::Bytes, bytes::Bytes>| {
        let pairs = attributes.iter().map(|(name, value)| (text(name), text(value)));
        pairs.collect::<Options>()
    };
    let family = |family: &FamilyDescriptor| FamilySchema {
        name: text(&family.name),
        options: options(family_attributes(family)),
    };
    TableSchema {
        name: table.name.to_string(),
        options: options(table_attributes(table)),
        families: table.families.iter().map(family).collect(),
    }
}

fn attributes(options: Options) -> Attributes {
    let pairs = options.into_iter();
    pairs
        .map(|(name, value)| (name.into_bytes(), value.into_bytes()))
        .collect()
}

/// Creates a table, or replaces its schema (PUT), or adds and changes families of it (POST).
pub(super) async fn put(asked: &mut Request, name: &[u8]) -> Result<Reply> {
    let table = table(name)?;
    let media = match asked.content_type()? {
        media @ (Media::Text | Media::Binary) => return Err(unsupported_media(media.name())),
        media => media,
    };
    let schema = TableSchema::decode(media, &asked.body)?;
    let families = schema.families.into_iter().map(|family| {
        FamilyDescriptor::from_attributes(family.name.as_bytes(), attributes(family.options))
            .map_err(Failure::from)
    });
    let mut descriptor = TableDescriptor::new(table, families.collect::<Result<_, Failure>>()?);
    descriptor.attributes = attributes(schema.options);
    let replaces = asked.method == Method::ReplaceSchema;
    let is_new = asked
        .change(move |call| change(call, descriptor, replaces))
        .await?;
    if replaces || is_new {
        Reply::created(&asked.location(&asked.path))
    } else {
        Ok(Reply::empty(StatusCode::OK))
    }
}

/// Applies a schema; returns whether the table is new.
fn change(call: &AdminCall, wanted: TableDescriptor, replaces: bool) -> Result<bool, Failure> {
    let Some((found, _)) = tables::find(call, &wanted.name)? else {
        tables::create(call, wanted, Vec::new())?;
        return Ok(true);
    };
    if replaces {
        tables::alter(call, wanted)?;
        return Ok(false);
    }
    for family in wanted.families {
        if found.family(&family.name).is_some() {
            tables::alter_family(call, &wanted.name, family)?;
        } else {
            tables::add_family(call, &wanted.name, family)?;
        }
    }
    Ok(false)
}

/// Drops a table, which is disabled first.
pub(super) async fn delete(asked: &mut Request, name: &[u8]) -> Result<Reply> {
    let table = table(name)?;
    asked
        .change(move |call| {
            let (_, state) = tables::describe(call, &table)?;
            if state == TableState::Enabled {
                tables::disable(call, &table)?;
            }
            tables::drop(call, &table)
        })
        .await?;
    Ok(Reply::empty(StatusCode::OK))
}

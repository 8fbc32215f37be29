//! Namespaces.
//!
//! Statuses are HBase's, which its clients and tests know: 403 for creating one that exists and for changing
//! one that does not, 503 for deleting one that cannot be deleted.

use axum::http::StatusCode;
use basalt_engine::schema::NamespaceDescriptor;
use basalt_rest::media::Media;
use basalt_rest::model::listing::Tables;
use basalt_rest::model::namespace::{Namespaces, Properties};

use super::answer::{Content, Reply};
use super::faults::Refusal;
use super::methods::Method;
use super::request::{Request, Result, unsupported_media};
use crate::service::admin::{namespaces, tables};
use crate::service::listing::Listing;

pub(super) async fn list(asked: &mut Request) -> Result<Reply> {
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    asked.reserve_listing(Listing::Namespaces).await?;
    let found = asked.ask(namespaces::list)?;
    let names = found.into_iter().map(|namespace| namespace.name);
    Ok(Reply::of(media, Namespaces(names.collect()).encode(media)).cached())
}

/// The tables of a namespace, by their names without it.
pub(super) async fn tables(asked: &mut Request, name: &str) -> Result<Reply> {
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    asked.reserve_listing(Listing::Names).await?;
    let found = asked.ask(|call| tables::list_of_namespace(call, name))?;
    let names = found.iter().map(|table| table.name.qualifier().to_owned());
    Ok(Reply::of(media, Tables(names.collect()).encode(media)).cached())
}

pub(super) async fn get(asked: &mut Request, name: &str) -> Result<Reply> {
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    asked.reserve_listing(Listing::Namespaces).await?;
    let found = asked.ask(|call| namespaces::describe(call, name))?;
    Ok(Reply::of(media, Properties(found.configuration).encode(name, media)).cached())
}

/// Creates, changes or deletes a namespace.
pub(super) async fn change(asked: &mut Request, name: String) -> Result<Reply> {
    if asked.method == Method::DeleteNamespace {
        return delete(asked, name).await;
    }
    let media = match asked.content_type()? {
        Media::Binary | Media::Text if asked.body.is_empty() => Media::Json,
        media @ (Media::Text | Media::Binary) => return Err(unsupported_media(media.name())),
        media => media,
    };
    let namespace = NamespaceDescriptor {
        name,
        configuration: Properties::decode(media, &asked.body)?.0,
    };
    let location = asked.location(&asked.path);
    if asked.method == Method::CreateNamespace {
        asked
            .change(move |call| namespaces::create(call, namespace))
            .await?;
        return Ok(Reply::created(&location)?.cached());
    }
    asked
        .change(move |call| namespaces::alter(call, namespace))
        .await
        .map_err(|refusal| match refusal.class {
            "NamespaceNotFoundException" => Refusal {
                status: StatusCode::FORBIDDEN,
                ..refusal
            },
            _ => refusal,
        })?;
    let body = Content::Whole(location.into_bytes());
    Ok(Reply::empty(StatusCode::OK).with_body(Media::Text, body).cached())
}

async fn delete(asked: &Request, name: String) -> Result<Reply> {
    let dropped = asked.change(move |call| namespaces::drop(call, &name)).await;
    dropped.map_err(|refusal| match refusal.class {
        "ConstraintException" => Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..refusal
        },
        _ => refusal,
    })?;
    Ok(Reply::empty(StatusCode::OK).cached())
}

//! Calls to requests: path, headers and body.

use super::http::Request;
use super::media::Media;
use super::path::{Encoding, Query, percent, text};
use super::{cells, listings, schema};
use crate::connection::NoAnswer;
use crate::fields::Fields;

type Made<T> = Result<T, NoAnswer>;

/// The request of a call; `scanner` is the path of the scanner that it uses.
pub(super) fn of_call(method: &str, call: Fields<'_>, scanner: &str) -> Made<Request> {
    let mut request = match method {
        "get" => get(call)?,
        "getRows" => get_rows(call)?,
        "put" => put(call)?,
        "putValue" => put_value(call)?,
        "delete" => delete(call)?,
        "scan" => scan(call)?,
        "openScanner" => open_scanner(call)?,
        "getScanner" => fetch(call, scanner)?,
        "closeScanner" => plain("DELETE", scanner.to_owned()),
        "putSchema" => put_schema(call)?,
        "createNamespace" => namespace("POST", call)?,
        "modifyNamespace" => namespace("PUT", call)?,
        "send" => return send(call),
        _ => described(method, call)?,
    };
    if let Some(accept) = text(call, "accept")? {
        request
            .headers
            .push(("Accept", Media::header(&accept).to_owned()));
    }
    request.gzip = call.flag("gzip")? == Some(true);
    Ok(request)
}

fn plain(method: &str, path: String) -> Request {
    Request {
        method: method.to_owned(),
        path,
        ..Request::default()
    }
}

/// The name of a table or namespace in a path. A colon stays, as clients write it.
fn name(call: Fields<'_>, field: &str) -> Made<String> {
    Ok(percent(&call.bytes(field)?).replace("%3A", ":"))
}

/// Requests that have only a path.
fn described(method: &str, call: Fields<'_>) -> Made<Request> {
    let path = match method {
        "listTables" => "/".to_owned(),
        "listNamespaces" => "/namespaces".to_owned(),
        "exists" => format!("/{}/exists", name(call, "name")?),
        "getRegions" => format!("/{}/regions", name(call, "name")?),
        "getSchema" | "deleteTable" => format!("/{}/schema", name(call, "name")?),
        "getNamespace" | "deleteNamespace" => format!("/namespaces/{}", name(call, "name")?),
        "listNamespaceTables" => format!("/namespaces/{}/tables", name(call, "name")?),
        _ => return Err(NoAnswer::Script(format!("there is no method {method}"))),
    };
    let http = if method.starts_with("delete") {
        "DELETE"
    } else {
        "GET"
    };
    Ok(plain(http, path))
}

/// `/table/rows[/columns[/times]]`.
fn row_path(call: Fields<'_>, encoding: &Encoding) -> Made<String> {
    let path = encoding.row_path(call.message("path")?)?;
    Ok(format!("/{}/{path}", name(call, "table")?))
}

fn get(call: Fields<'_>) -> Made<Request> {
    let encoding = Encoding::of(call)?;
    let mut query = Query::default();
    query.int("v", call, "versions")?;
    if call.flag("nocache")? == Some(true) {
        query.add("nocache", "");
    }
    let in_header = call.flag("encodingHeader")? == Some(true);
    let method = if call.flag("head")? == Some(true) {
        "HEAD"
    } else {
        "GET"
    };
    let mut request = plain(method, String::new());
    match encoding.name() {
        Some(name) if in_header => request.headers.push(("Encoding", name.to_owned())),
        Some(name) => query.add("e", name),
        None => {}
    }
    request.path = format!("{}{}", row_path(call, &encoding)?, query.text());
    Ok(request)
}

fn get_rows(call: Fields<'_>) -> Made<Request> {
    let encoding = Encoding::of(call)?;
    let mut query = Query::default();
    for row in call.list("rows")? {
        query.add("row", encoding.row_path(row)?);
    }
    query.int("v", call, "versions")?;
    query.filter(call)?;
    if let Some(name) = encoding.name() {
        query.add("e", name);
    }
    let columns = Encoding::PLAIN.columns(call)?;
    let columns = if columns.is_empty() {
        columns
    } else {
        format!("/{columns}")
    };
    Ok(plain(
        "GET",
        format!("/{}/multiget{columns}{}", name(call, "table")?, query.text()),
    ))
}

fn put_or_post(call: Fields<'_>) -> Made<&'static str> {
    Ok(if call.flag("post")? == Some(true) {
        "POST"
    } else {
        "PUT"
    })
}

/// The header and media type of a field `body`.
fn body_type(call: Fields<'_>) -> Made<(String, Media)> {
    let body = text(call, "body")?.ok_or_else(|| call.wrong("body"))?;
    let media = Media::of(&body).ok_or_else(|| call.wrong("body"))?;
    Ok((Media::header(&body).to_owned(), media))
}

fn with_body(mut request: Request, kind: String, body: Vec<u8>) -> Request {
    request.headers.push(("Content-Type", kind));
    request.body = Some(body);
    request
}

fn put(call: Fields<'_>) -> Made<Request> {
    let encoding = Encoding::of(call)?;
    let mut query = Query::default();
    if let Some(check) = text(call, "check")? {
        query.add("check", check);
    }
    query.flag("rr", call, "returns")?;
    if let Some(name) = encoding.name() {
        query.add("e", name);
    }
    let path = format!("{}{}", row_path(call, &encoding)?, query.text());
    let (kind, media) = body_type(call)?;
    let body = cells::encode(&cells::of_call(&call.list("rows")?)?, media);
    Ok(with_body(plain(put_or_post(call)?, path), kind, body))
}

fn put_value(call: Fields<'_>) -> Made<Request> {
    let encoding = Encoding::of(call)?;
    let mut query = Query::default();
    if let Some(name) = encoding.name() {
        query.add("e", name);
    }
    let path = format!("{}{}", row_path(call, &encoding)?, query.text());
    let mut request = plain(put_or_post(call)?, path);
    for (header, field) in [("X-Row", "xRow"), ("X-Column", "xColumn")] {
        let value = text(call, field)?;
        request.headers.extend(value.map(|value| (header, value)));
    }
    let timestamp = call.int::<i64>("xTimestamp")?;
    request
        .headers
        .extend(timestamp.map(|time| ("X-Timestamp", time.to_string())));
    request.body = Some(call.bytes("value")?.into());
    request
        .headers
        .push(("Content-Type", Media::header("binary").to_owned()));
    Ok(request)
}

fn delete(call: Fields<'_>) -> Made<Request> {
    let encoding = Encoding::of(call)?;
    let mut query = Query::default();
    if let Some(check) = text(call, "check")? {
        query.add("check", check);
    }
    if let Some(name) = encoding.name() {
        query.add("e", name);
    }
    Ok(plain(
        "DELETE",
        format!("{}{}", row_path(call, &encoding)?, query.text()),
    ))
}

fn scan(call: Fields<'_>) -> Made<Request> {
    let mut query = Query::default();
    for (parameter, field) in [("startrow", "startRow"), ("endrow", "endRow")] {
        if let Some(row) = call.optional_bytes(field)? {
            query.add(parameter, &row);
        }
    }
    for column in super::path::byte_list(call, "columns")? {
        query.add("column", &column);
    }
    query.int("limit", call, "limit")?;
    query.int("batchsize", call, "batchSize")?;
    query.int("maxversions", call, "maxVersions")?;
    query.int("starttime", call, "startTime")?;
    query.int("endtime", call, "endTime")?;
    query.flag("cacheblocks", call, "cacheBlocks")?;
    query.flag("reversed", call, "reversed")?;
    query.filter(call)?;
    let prefix = percent(&call.bytes("prefix")?);
    Ok(plain(
        "GET",
        format!("/{}/{prefix}*{}", name(call, "table")?, query.text()),
    ))
}

fn open_scanner(call: Fields<'_>) -> Made<Request> {
    let (kind, media) = body_type(call)?;
    let body = listings::encode_scanner(&listings::scanner(call.message("scanner")?)?, media);
    let path = format!("/{}/scanner", name(call, "table")?);
    Ok(with_body(plain(put_or_post(call)?, path), kind, body))
}

fn fetch(call: Fields<'_>, scanner: &str) -> Made<Request> {
    let mut query = Query::default();
    query.int("n", call, "rows")?;
    query.int("c", call, "cells")?;
    Ok(plain("GET", format!("{scanner}{}", query.text())))
}

fn put_schema(call: Fields<'_>) -> Made<Request> {
    let (kind, media) = body_type(call)?;
    let body = schema::encode(&schema::of_call(call.message("schema")?)?, media);
    let path = format!("/{}/schema", name(call, "name")?);
    Ok(with_body(plain(put_or_post(call)?, path), kind, body))
}

fn namespace(method: &str, call: Fields<'_>) -> Made<Request> {
    let request = plain(method, format!("/namespaces/{}", name(call, "name")?));
    if call.optional("body").is_none() {
        return Ok(request);
    }
    let (kind, media) = body_type(call)?;
    let body = listings::encode_properties(&schema::options(call, "properties")?, media);
    Ok(with_body(request, kind, body))
}

fn send(call: Fields<'_>) -> Made<Request> {
    let wanted = |field: &str| text(call, field)?.ok_or_else(|| call.wrong(field));
    let mut request = plain(&wanted("method")?, wanted("path")?);
    for (header, field) in [("Accept", "accept"), ("Content-Type", "type")] {
        let value = text(call, field)?;
        request
            .headers
            .extend(value.map(|value| (header, Media::header(&value).to_owned())));
    }
    request.body = call.optional_bytes("body")?.map(Into::into);
    Ok(request)
}

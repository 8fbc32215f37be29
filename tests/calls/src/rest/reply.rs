//! Responses to values.

use super::http::Response;
use super::media::Media;
use super::path::unbase64;
use super::{cells, listings, record, schema};
use crate::text::first_line;
use crate::{Answer, Value};

/// The answer that a response is: one with a status of success, or the exception `http`.
pub(super) fn answer(method: &str, response: &Response) -> Answer {
    if !(200..300).contains(&response.status) {
        let failure = record([
            ("status", Some(status(response))),
            ("message", Some(Value::Bytes(first_line(&response.body)))),
        ]);
        return Answer::Thrown("http", failure);
    }
    let mut fields = vec![("status", status(response))];
    let mut add = |name, value: Option<Value>| fields.extend(value.map(|value| (name, value)));
    let kind = response.header("content-type");
    // An answer without a body has no type in HBase, and an empty one of a HEAD has.
    add("type", kind.map(Value::bytes));
    add(
        "location",
        response.header("location").map(|url| Value::bytes(path_of(url))),
    );
    // Without a body there is nothing to keep.
    let cached = response
        .header("cache-control")
        .filter(|_| !response.body.is_empty());
    add(
        "noCache",
        cached.map(|value| Value::Bool(value.contains("no-cache"))),
    );
    if method == "send" {
        return Answer::Success(Value::Struct(fields));
    }
    let timestamp = response.header("x-timestamp").and_then(|time| time.parse().ok());
    add("timestamp", timestamp.map(Value::Int));
    for (field, header) in [("row", "x-row"), ("column", "x-column")] {
        match response.header(header).map(unbase64) {
            None => {}
            Some(Ok(bytes)) => add(field, Some(Value::Bytes(bytes))),
            Some(Err(error)) => add("unreadable", Some(Value::bytes(error))),
        }
    }
    match body(method, response) {
        None => {}
        Some(Ok((name, value))) => add(name, Some(value)),
        Some(Err(error)) => add("unreadable", Some(Value::bytes(error))),
    }
    Answer::Success(Value::Struct(fields))
}

fn status(response: &Response) -> Value {
    i64::from(response.status).into()
}

/// The path of an absolute URL.
pub(super) fn path_of(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    behind.find('/').map_or("", |slash| &behind[slash..])
}

/// The field that the body is, if there is one.
fn body(method: &str, response: &Response) -> Option<Result<(&'static str, Value), String>> {
    let bytes = &response.body[..];
    let media = response.header("content-type").and_then(Media::of);
    let media = match (media, bytes) {
        (None, []) => return None,
        (None, _) => return Some(Err("the body has no known type".to_owned())),
        (Some(media), _) => media,
    };
    let named = |name: &'static str, value: Result<Value, String>| Some(value.map(|value| (name, value)));
    match (method, media) {
        ("get" | "getRows" | "scan" | "getScanner" | "put", Media::Binary | Media::Text) => {
            Some(Ok(("value", Value::bytes(bytes))))
        }
        // An answer of protobuf may be empty: a scan without rows.
        ("scan", media) => named("rows", cells::decode(bytes, media, true)),
        (_, _) if bytes.is_empty() => None,
        ("get" | "getRows" | "getScanner" | "put", media) => {
            named("rows", cells::decode(bytes, media, false))
        }
        ("getSchema", media) => named("schema", schema::decode(bytes, media)),
        ("listTables" | "listNamespaceTables", media) => named("names", listings::names(bytes, media, false)),
        ("listNamespaces", media) => named("names", listings::names(bytes, media, true)),
        ("getRegions" | "getNamespace", Media::Text) => None,
        ("getRegions", media) => named("regions", listings::regions(bytes, media)),
        ("getNamespace", media) => named("properties", listings::properties(bytes, media)),
        // The body is the address of the namespace.
        ("modifyNamespace", _) => {
            let url = String::from_utf8_lossy(bytes);
            Some(Ok(("location", Value::bytes(path_of(&url)))))
        }
        _ => Some(Ok(("value", Value::bytes(bytes)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_paths() {
        assert_eq!(path_of("http://localhost:1/t/scanner/1"), "/t/scanner/1");
        assert_eq!(path_of("/t/scanner/1"), "/t/scanner/1");
        assert_eq!(path_of("http://localhost:1"), "");
    }
}

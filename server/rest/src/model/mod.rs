//! Bodies: what they say, and their forms as JSON, XML, protobuf and text.
//!
//! | module | bodies |
//! | --- | --- |
//! | [`cells`] | cells of rows that clients send |
//! | [`writer`] | cells of rows in answers, row by row |
//! | [`schema`] | the schema of a table, both ways |
//! | [`scanner`] | the description of a scanner that clients send |
//! | [`namespace`] | namespaces, both ways |
//! | [`listing`] | tables, regions, versions and the status of the cluster, in answers |
//!
//! JSON has no spaces, and lists are always arrays. In JSON that clients send, numbers may be strings,
//! anything may be null, and a field that is not known is refused; parts of XML that are not known are left
//! out, and namespaces and DTDs are refused.

pub mod cells;
pub mod listing;
pub mod namespace;
pub mod scanner;
pub mod schema;
pub mod writer;

pub(crate) mod json;
mod xml;

use prost::Message;

use crate::{Malformed, Result};

/// Decodes JSON of a client: an object.
fn from_json<'b, T: serde::Deserialize<'b>>(body: &'b [u8]) -> Result<T> {
    // The library would take a list for an object without names.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Malformed::new(
            "the body is not JSON of this kind: it must be an object",
        ));
    }
    serde_json::from_slice(body)
        .map_err(|error| Malformed::unread("the body is not JSON of this kind", &error))
}

/// Decodes protobuf of a client.
fn from_protobuf<M: Message + Default>(body: &[u8]) -> Result<M> {
    M::decode(body).map_err(|error| Malformed::unread("the body is not protobuf of this kind", &error))
}

/// A number of protobuf's `int32` from a greater type, at its bound if it does not fit.
fn to_i32(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

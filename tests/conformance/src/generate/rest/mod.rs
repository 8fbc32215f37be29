//! Calls over REST: every resource, in every media type and encoding of keys.
//!
//! [`writes`] and [`reads`] make calls about data, [`scanners`] those with state, [`filters`] filters as
//! scanners have them, [`tables`] makes calls about tables, namespaces and the server.
//!
//! Left out, because HBase damages data in silence where Basalt refuses, and all later answers would differ
//! (`docs/compatibility.md`; a case `known_rest_…` has each with both answers):
//!
//! - `DELETE` with `check=`, with times `a,b`, or of `prefix*`;
//! - keys that are not UTF-8 without `e=`.
//!
//! `limit` of a stateless scan in protobuf is left out, too: HBase's REST server forgets the scanner behind
//! the limit, whose read point then keeps versions and tombstones through flushes and compactions until its
//! lease ends (`known_rest_limit_keeps_versions`).
//!
//! Left out, because HBase's answer is not the same on all machines: a value without `Content-Type`, which
//! was 200 on one and 415 on another. Two methods fit it, and the JVM lists them in an order of its own. A
//! GET of a row whose `Accept` fits a value and cells has two methods, too, and is left out with it.
//!
//! Left out for what holds over Thrift, too (`super`): several rows of one call name families that exist,
//! one increment or append names no column twice, a scan has a batch or a filter.

mod filters;
mod reads;
mod scanners;
mod tables;
mod writes;

use basalt_calls::{Api, Value};

use super::{Generator, record};

/// Names of media types that have cells.
const CELLS: [&str; 4] = ["json", "xml", "protobuf", "protobuf-ietf"];

/// Names of media types that have descriptions.
const DESCRIPTIONS: [&str; 5] = ["json", "xml", "protobuf", "protobuf-ietf", "text"];

/// Names of encodings of keys: the first four are one, as are the last two.
const ENCODINGS: [&str; 6] = ["b64", "base64", "b64url", "base64url", "b64basic", "base64basic"];

impl Generator {
    fn rest_call<const N: usize>(&mut self, method: &str, args: [(&'static str, Option<Value>); N]) {
        let Value::Struct(args) = record(args) else {
            unreachable!("a record is a struct")
        };
        self.call(Api::Rest, method, args);
    }

    /// The media type of a body with cells, a schema or a scanner.
    fn rest_body(&mut self) -> Value {
        self.one_of(&CELLS).into()
    }

    /// A header Accept for cells; rarely one that nothing can answer.
    #[expect(clippy::unnecessary_wraps, reason = "as all arguments of calls")]
    fn rest_accept(&mut self) -> Option<Value> {
        match self.int(0..=99) {
            0 => Some("text/html".into()),
            1 => Some("text/*".into()),
            2 => Some("application/json;q=0.5, text/xml".into()),
            3 => Some("application/xml, application/json".into()),
            _ => Some(self.one_of(&CELLS).into()),
        }
    }

    /// A header Accept for a description.
    fn rest_accept_description(&mut self) -> Option<Value> {
        match self.int(0..=19) {
            0 => None,
            1 => Some("any".into()),
            2 => Some("binary".into()),
            _ => Some(self.one_of(&DESCRIPTIONS).into()),
        }
    }

    fn rest_gzip(&mut self) -> Option<Value> {
        self.maybe(0.1, |_| true.into())
    }

    /// The encoding of the keys of a call.
    fn rest_encoding(&mut self) -> Option<Value> {
        self.maybe(0.2, |this| this.one_of(&ENCODINGS).into())
    }

    /// A row as it may stand in a path: any bytes in base64, otherwise text.
    fn rest_row(&mut self, encoded: bool) -> Vec<u8> {
        loop {
            let row = self.row_bytes();
            let is_text = row.iter().all(u8::is_ascii_graphic);
            if encoded || is_text {
                return row;
            }
        }
    }

    /// Columns of a path, often whole families.
    fn rest_columns(&mut self, len: std::ops::RangeInclusive<i64>) -> Value {
        self.list(len, Self::read_column).into()
    }
}

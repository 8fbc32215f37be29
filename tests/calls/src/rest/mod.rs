//! A client of HBase's REST interface for scripts: plain, and independent of the crate `basalt-rest`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`service`] | its calls, described as those of a Thrift service |
//! | [`request`] | calls to requests |
//! | [`reply`] | responses to values |
//! | [`http`] | a connection |
//! | [`path`] | paths and parameters |
//! | [`media`] | media types by their names in scripts |
//! | [`cells`], [`schema`], [`listings`] | bodies in each media type |
//! | [`messages`], [`xml`] | protobuf and XML of bodies |
//!
//! Both servers are called by the same code. A reply keeps status, media type, `Cache-Control` and the path
//! of `Location`, and the body as the values that it stands for: two bodies with other spaces or another
//! order of attributes are the same.

mod cells;
mod http;
mod listings;
pub mod media;
mod messages;
mod path;
mod reply;
mod request;
mod schema;
pub mod service;
mod xml;

use std::net::SocketAddr;

use basalt_idl::call::MethodDescriptor;

use crate::connection::NoAnswer;
use crate::fields::Fields;
use crate::{Answer, Value};

use http::Http;

/// The path of a scanner that no server has.
const UNKNOWN_SCANNER: &str = "/tblx/scanner/0";

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    http: Http,
    /// Paths of the scanners that were opened; the number of one is its place.
    scanners: Vec<String>,
}

impl Client {
    /// A client that connects when it makes its first call.
    pub fn new(server: SocketAddr) -> Self {
        Client {
            http: Http::new(server),
            scanners: Vec::new(),
        }
    }

    /// Makes a call of [`service::SERVICE`].
    pub fn call(
        &mut self,
        method: &'static MethodDescriptor,
        args: &[(&'static str, Value)],
    ) -> Result<Answer, NoAnswer> {
        let args = Value::Struct(args.to_vec());
        let args = Fields(&args);
        let scanner = match args.0.field("scanner") {
            Some(Value::Int(_)) => args.int::<usize>("scanner")?,
            _ => None,
        };
        let scanner = scanner.and_then(|number| self.scanners.get(number));
        let scanner = scanner.map_or(UNKNOWN_SCANNER, String::as_str);
        let request = request::of_call(method.name, args, scanner)?;
        let response = self.http.send(&request)?;
        if method.name == "openScanner" && response.status == 201 {
            let location = response.header("location").unwrap_or_default();
            self.scanners.push(reply::path_of(location).to_owned());
            return Ok(Answer::Success(Value::from(self.scanners.len() as i64 - 1)));
        }
        Ok(reply::answer(method.name, &response))
    }
}

/// A struct without the fields that are `None`.
fn record<const N: usize>(fields: [(&'static str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter();
    Value::Struct(fields.filter_map(|(name, value)| Some((name, value?))).collect())
}

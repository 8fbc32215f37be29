//! A native client for scripts: independent of the crate `basalt-client`, and as plain as possible.
//!
//! | module | contents |
//! | --- | --- |
//! | [`service`] | its calls, described as those of a Thrift service |
//! | [`connection`] | one connection: preamble, header, one call at a time |
//! | [`regions`] | regions of a table, read from `hbase:meta` |
//! | [`request`] | values of a script to protobuf messages |
//! | [`response`] | messages of a server to values |
//! | [`multi`] | a Multi over several regions |
//! | [`scan`] | a scan over several regions |
//!
//! [`Client::call`] looks regions up for each call, so that no answer depends on a cache. Both
//! servers are called by the same code; a result keeps the details that Thrift hides: class and
//! retry flag of an exception, `processed`, `exists`, partial flags, the end of regions, cell
//! types.

pub mod connection;
mod multi;
pub mod regions;
mod request;
mod response;
mod scan;
pub mod service;

use std::net::SocketAddr;

use basalt_idl::call::MethodDescriptor;
use basalt_idl::native::messages::{GetRequest, GetResponse, MutateRequest, MutateResponse};

use crate::connection::NoAnswer;
use crate::fields::Fields;
use crate::{Answer, Value};

use connection::{Connection, Reply};
use regions::Regions;
use request::CellsOut;
use service::ClientKind;

/// A client of one server, with a connection for each [`ClientKind`] that scripts use.
#[derive(Debug)]
pub struct Client {
    server: SocketAddr,
    connections: [Option<Connection>; ClientKind::ALL.len()],
}

/// The outcome of a call: its result, or the exception of its response.
type Outcome = Result<Result<Value, Value>, NoAnswer>;

impl Client {
    /// A client that connects when it makes its first call.
    pub fn new(server: SocketAddr) -> Self {
        Client {
            server,
            connections: ClientKind::ALL.map(|_| None),
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
        let code = args.u32("client")?.unwrap_or_default() as usize;
        let kind = *ClientKind::ALL.get(code).ok_or_else(|| args.wrong("client"))?;
        let connection = self.connection(kind)?;
        let table = args.bytes("table")?;
        let regions = Regions::of(connection, &table)?;
        let outcome = match method.name {
            "get" => get(connection, &regions, args)?,
            "mutate" => mutate(connection, &regions, args)?,
            "multi" => multi::call(connection, &regions, args)?,
            "scan" => scan::call(connection, &regions, args)?,
            name => return Err(NoAnswer::Malformed(name, "is no native call".to_owned())),
        };
        Ok(match outcome {
            Ok(result) => Answer::Success(result),
            Err(exception) => Answer::Thrown("rpc", exception),
        })
    }

    fn connection(&mut self, kind: ClientKind) -> Result<&mut Connection, NoAnswer> {
        let connection = &mut self.connections[kind as usize];
        if connection.is_none() {
            *connection = Some(Connection::open(self.server, kind)?);
        }
        Ok(connection.as_mut().expect("opened above"))
    }
}

fn get(connection: &mut Connection, regions: &Regions, args: Fields<'_>) -> Outcome {
    let get = args.message("get")?;
    let request = GetRequest {
        region: regions.serving(&get.bytes("row")?).specifier(),
        get: request::get(get)?,
    };
    match connection.call::<GetResponse>("Get", &request, b"")? {
        Reply::Exception(exception) => Ok(Err(exception)),
        Reply::Success(answer, cells) => {
            let mut cells = response::CellsIn::new("Get", &cells);
            let result = match answer.result {
                Some(result) => cells.result(&result)?,
                None => Value::Void,
            };
            cells.end()?;
            Ok(Ok(result))
        }
    }
}

fn mutate(connection: &mut Connection, regions: &Regions, args: Fields<'_>) -> Outcome {
    let mutation = args.message("mutation")?;
    let mut cells = CellsOut::new(connection.kind());
    let request = MutateRequest {
        region: regions.serving(&mutation.bytes("row")?).specifier(),
        nonce_group: Some(regions.nonce_group()),
        mutation: request::mutation(mutation, &mut cells)?,
        condition: args.optional("condition").map(request::condition).transpose()?,
    };
    match connection.call::<MutateResponse>("Mutate", &request, &cells.block)? {
        Reply::Exception(exception) => Ok(Err(exception)),
        Reply::Success(answer, cells) => {
            let mut cells = response::CellsIn::new("Mutate", &cells);
            let result = answer.result.map(|result| cells.result(&result)).transpose()?;
            cells.end()?;
            Ok(Ok(response::record([
                ("processed", answer.processed.map(Value::Bool)),
                ("result", result),
            ])))
        }
    }
}

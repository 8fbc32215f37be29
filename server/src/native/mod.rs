//! HBase's native RPC: the protocol of the Java client, the HBase shell, MapReduce, gohbase and
//! asynchbase.
//!
//! | module | contents |
//! | --- | --- |
//! | `connection` | one connection: preamble, connection header, concurrent calls, responses |
//! | `compress` | compressed cell blocks, within the memory for calls |
//! | `deadline` | how long a client waits for an answer |
//! | `reply` | one response, with its cells in a block or inside the message |
//! | `request` | protobuf requests to engine requests |
//! | `region` | region names to regions |
//! | `client`, `multi`, `scan` | ClientService |
//! | `group` | its writes that read first or are applied together |
//! | `coprocessor`, `aggregate`, `multi_row` | endpoints that ExecService calls |
//! | `load`, `staging` | bulk load, and the files that it may read |
//! | `master`, `admin` | MasterService and AdminService; `schema`, `status` and `quota` convert for them |
//! | `faults` | faults that a test has armed |
//! | `places` | moves, assignment and the balancer, which `master` serves |
//! | `slow_log` | the slow log: recording native calls, and the calls that read it |
//! | `procedures` | ids of finished master operations, which clients poll |
//! | `registry` | ClientMetaService: the locations of the master and of `hbase:meta` |
//!
//! The folder `decode` belongs to the library `basalt_server`, so that fuzzers can call it: connection
//! headers, the memory of a call's arguments, and requests of ClientService.
//!
//! To a native client, Basalt is a cluster of one master and one region server. This module
//! contains no engine logic: it converts requests and calls the same functions as the Thrift
//! services.

use basalt_idl::native::messages::ServerName;
use basalt_server::native_decode::{arguments, peer};

use crate::api::Server;
use peer::Service;

mod admin;
mod aggregate;
mod client;
mod compress;
mod connection;
mod coprocessor;
mod deadline;
mod faults;
mod group;
mod load;
mod master;
mod multi;
mod multi_row;
mod places;
mod procedures;
mod quota;
mod region;
mod registry;
mod reply;
mod request;
mod scan;
mod schema;
mod slow_log;
mod staging;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use connection::run;
pub(crate) use master::MasterState;

/// HBase version reported to clients, which choose their calls by it.
const HBASE_VERSION: &str = "2.6.1";

/// The methods of all services, in the order in which metrics number them.
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    Service::ALL.into_iter().flat_map(Service::methods)
}

/// Host, port and start code under which clients know this server.
pub(crate) fn server_name(server: &Server) -> ServerName {
    let (host, port) = server.advertised();
    ServerName {
        host_name: host.to_owned(),
        port: Some(u32::from(port)),
        start_code: Some(server.start_code().unsigned_abs()),
    }
}

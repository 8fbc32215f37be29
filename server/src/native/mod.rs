//! HBase's native RPC: the protocol of the Java client, the HBase shell, MapReduce, gohbase and asynchbase.
//!
//! | module | contents |
//! | --- | --- |
//! | `connection` | a connection's life: preamble, connection header, calls in any order, responses |
//! | `peer` | what a connection header says: service, codec, version |
//! | `reply` | one response, with its cells in a block or inside the message |
//! | `request` | protobuf requests to engine requests |
//! | `region` | region names to regions |
//! | `client` | ClientService: get and mutate; `multi` and `scan` have files of their own |
//! | `master`, `admin` | MasterService and AdminService; `schema` and `status` convert for them |
//! | `procedures` | ids of finished master operations, which clients ask for |
//! | `registry` | ClientMetaService: where the master and `hbase:meta` are |
//!
//! Basalt is the master and the only region server of the cluster that native clients see. The module knows no engine
//! internals: it converts, and calls the same functions as the Thrift services.

use basalt_idl::native::messages::ServerName;

use crate::api::Server;
use peer::Service;

mod admin;
mod client;
mod connection;
mod master;
mod multi;
mod peer;
mod procedures;
mod region;
mod registry;
mod reply;
mod request;
mod scan;
mod schema;
mod status;

pub(crate) use connection::run;
pub(crate) use master::MasterState;

/// The version of HBase that clients are told; tools choose their calls by it.
const HBASE_VERSION: &str = "2.6.1";

/// The methods of all services, as metrics number them.
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    Service::ALL.into_iter().flat_map(Service::methods)
}

/// What clients connect to.
pub(crate) fn server_name(server: &Server) -> ServerName {
    let (host, port) = server.advertised();
    ServerName {
        host_name: host.to_owned(),
        port: Some(u32::from(port)),
        start_code: Some(server.start_code().unsigned_abs()),
    }
}

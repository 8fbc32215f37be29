//! HBase's native RPC: the protocol of the Java client, the HBase shell, MapReduce, gohbase and
//! asynchbase.
//!
//! | module | contents |
//! | --- | --- |
//! | `connection` | one connection: preamble, connection header, calls in flight, responses |
//! | `state` | a connection between calls |
//! | `arrived` | a call that has arrived |
//! | `compress` | compressed cell blocks, within the memory for calls |
//! | `deadline` | how long a client waits for an answer |
//! | `reply` | one response, with its cells in a block or inside the message |
//! | `request` | protobuf requests to engine requests |
//! | `region` | region names to regions |
//! | `client`, `single`, `multi`, `scan` | ClientService; `scanners` has the state of open scanners |
//! | `group` | its writes that read first or are applied together |
//! | `coprocessor`, `aggregate`, `multi_row`, `tokens` | endpoints that ExecService calls |
//! | `rights` | rights of users, for `master` and as an endpoint |
//! | `sink` | edits that another cluster replicates to this one |
//! | `load`, `staging` | bulk load, and the files that it may read |
//! | `master`, `admin` | MasterService and AdminService; `status` and `quota` convert for them |
//! | `listed` | what answers of these two list, whose memory is reserved first |
//! | `faults` | faults that a test has armed |
//! | `peers` | replication peers |
//! | `places` | moves, assignment and the balancer, which `master` serves |
//! | `upkeep`, `procedures` | truncation of a region, store files, compaction times; procedures by name |
//! | `trackers` | trackers of store files, of tables and clones |
//! | `slow_log` | the slow log: recording native calls, and the calls that read it |
//! | `registry` | ClientMetaService: the locations of the master and of `hbase:meta` |
//!
//! `decode` is public, so that fuzzers can call it: connection headers, the memory of a call's
//! arguments, and requests of ClientService.
//!
//! To a native client, Basalt is a cluster of one master and one region server. This module
//! contains no engine logic: it converts requests and calls the same functions as the Thrift
//! services.

use crate::server::{Instance, Server};
use crate::service::remote::messages as schema;
use basalt_idl::native::messages::ServerName;

use crate::service::admin::cluster;
use crate::service::{AdminCall, Failure};
use decode::arguments;
use decode::peer::{self, Service};

mod admin;
mod aggregate;
mod arrived;
mod client;
mod compress;
mod connection;
mod coprocessor;
mod deadline;
pub mod decode;
mod faults;
mod group;
mod listed;
mod load;
mod master;
mod multi;
mod multi_row;
mod normalizer;
mod peers;
#[cfg(test)]
mod permissions;
mod places;
mod procedures;
mod quota;
#[cfg(test)]
mod refusals;
mod region;
mod registry;
mod reply;
mod request;
mod rights;
mod scan;
mod scanners;
mod single;
mod sink;
mod slow_log;
mod staging;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod tokens;
mod trackers;
mod upkeep;

pub(crate) use connection::run;
pub(crate) use peers::description;

/// The methods of all services, in the order in which metrics number them.
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    Service::ALL.into_iter().flat_map(Service::methods)
}

/// The failure of a method that is not served.
fn unsupported(call: &AdminCall, method: &'static str) -> Failure {
    let refused = cluster::operate(call, |_| Err::<(), _>(Failure::unsupported(method)));
    refused.err().unwrap_or_else(|| Failure::unsupported(method))
}

/// The name of the primary: this server, or the one that clients of a standby are sent to.
pub(crate) fn primary_name(server: &Server) -> ServerName {
    let standing = &server.copies().standing;
    match standing.leader().filter(|_| !standing.is_primary()) {
        None => server_name(server.instance()),
        Some(leader) => ServerName {
            host_name: leader.host,
            port: Some(u32::from(leader.port)),
            start_code: Some(leader.start_code),
        },
    }
}

/// The name of the server that has `hbase:meta`: the primary, or a standby that serves reads while that is
/// away.
pub(crate) fn meta_name(server: &Server) -> ServerName {
    if server.placement().stands_in() {
        return server_name(server.instance());
    }
    primary_name(server)
}

/// Host, port and start code under which clients know this server.
pub(crate) fn server_name(instance: &Instance) -> ServerName {
    let (host, port) = instance.advertised();
    ServerName {
        host_name: host.to_owned(),
        port: Some(u32::from(port)),
        start_code: Some(instance.start_code().unsigned_abs()),
    }
}

//! The slow log's record of a call, and the two calls that read the slow log.
//!
//! A remarkable call is described after it was answered, from the message that it came in: other
//! calls only keep the message until their end. The walk over the message follows the interface's
//! own declarations, so every method is described, and none needs code of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use basalt_engine::schema::TableName;
use basalt_idl::call::MethodDescriptor;
use basalt_idl::schema::StructDescriptor;
use basalt_idl::thrift2::{self, TFilterByOperator, TLogType};
use basalt_idl::wire::Reader;
use bytes::Bytes;

use super::codec::Codec;
use crate::cluster::regions;
use crate::observe::slow_log::{
    Combine, Kind, Query, Record, Remarkable, SERVER_CLASS, began_ms, condition, table_condition,
};
use crate::server::Server;
use crate::service::Failure;

mod describe;

use describe::Summary;

/// A call that was found remarkable, as far as its caller knows it.
pub(super) struct Call<'a> {
    /// Number of the call in log lines.
    pub(super) request: u64,
    pub(super) remarkable: Remarkable,
    pub(super) took: Duration,
    pub(super) answer_bytes: usize,
    pub(super) client: Option<SocketAddr>,
    pub(super) method: &'static MethodDescriptor,
    /// The whole message.
    pub(super) message: &'a Bytes,
    /// The table of the scanner that the call fetched from.
    pub(super) scanned: Option<TableName>,
}

/// Records a remarkable call.
pub(super) fn record<P: Codec>(server: &Server, call: Call<'_>) {
    let mut summary = Summary::default();
    let mut reader = P::reader(call.message.clone());
    // The message was decoded once already; if it were not readable, the result up to there would
    // do.
    let _ = reader
        .message_begin()
        .and_then(|_| summary.put_struct(&mut reader, call.method.args));
    let table = call
        .scanned
        .or_else(|| TableName::parse(&summary.table.take()?).ok());
    let region = table
        .as_ref()
        .zip(summary.row.as_ref())
        .and_then(|(table, row)| server.engine().region_of(table, row).ok());
    server.slow_log().add(Record {
        request: call.request,
        remarkable: call.remarkable,
        began_ms: began_ms(call.took),
        took: call.took,
        answer_bytes: call.answer_bytes as u64,
        client: call.client.map(|client| client.to_string()).unwrap_or_default(),
        service: call.method.service,
        method: call.method.name,
        table: table.map(|table| table.to_string()),
        region: region.map(|region| regions::printed(&region)),
        arguments: summary.text,
        gets: summary.gets,
        mutations: summary.mutations,
    });
}

/// The first table that a call's arguments name. `reader` is at them.
pub(super) fn table_named<R: Reader>(reader: &mut R, args: &StructDescriptor) -> Option<Vec<u8>> {
    let mut summary = Summary::default();
    summary.put_struct(reader, args).ok()?;
    summary.table
}

/// `getSlowLogResponses`. No server named: no records, as in HBase.
pub(super) fn responses(
    server: &Server,
    servers: Option<&BTreeSet<thrift2::TServerName>>,
    filter: &thrift2::TLogQueryFilter,
) -> Result<Vec<thrift2::TOnlineLogRecord>, Failure> {
    let query = query(filter)?;
    if servers_named(server, servers)? == 0 {
        return Ok(Vec::new());
    }
    let records = server.slow_log().find(&query);
    Ok(records.iter().map(|record| to_record(record)).collect())
}

/// `clearSlowLogResponses`: an answer for each server named.
pub(super) fn clear(
    server: &Server,
    servers: Option<&BTreeSet<thrift2::TServerName>>,
) -> Result<Vec<bool>, Failure> {
    let count = servers_named(server, servers)?;
    let cleared = count > 0 && server.slow_log().clear();
    Ok(vec![cleared; count])
}

/// Number of named servers, all of which must be this one. Which of the machine's names the client
/// uses does not matter; the port and the start code, if given, must be those in region locations.
fn servers_named(
    server: &Server,
    servers: Option<&BTreeSet<thrift2::TServerName>>,
) -> Result<usize, Failure> {
    let own = (i32::from(server.thrift_address().port()), server.start_code());
    for name in servers.into_iter().flatten() {
        let (port, start_code) = (name.port.unwrap_or(0), name.start_code.unwrap_or(0));
        if ![0, own.0].contains(&port) || ![0, own.1].contains(&start_code) {
            return Err(Failure::plain_io(format!(
                "no server {},{port},{start_code}: there is one server, with port {} and start code {}",
                name.host_name, own.0, own.1
            )));
        }
    }
    Ok(servers.map_or(0, BTreeSet::len))
}

fn query(filter: &thrift2::TLogQueryFilter) -> Result<Query, Failure> {
    Ok(Query {
        kind: if filter.log_type == TLogType::LARGE_LOG {
            Kind::Large
        } else {
            Kind::Slow
        },
        combine: if filter.filter_by_operator == TFilterByOperator::AND {
            Combine::All
        } else {
            Combine::Any
        },
        region: condition(filter.region_name.as_ref()),
        client: condition(filter.client_address.as_ref()),
        table: table_condition(filter.table_name.as_ref()),
        user: condition(filter.user_name.as_ref()),
        limit: usize::try_from(filter.limit).map_err(|_| {
            Failure::illegal_argument(format!("limit must not be negative, but is {}", filter.limit))
        })?,
    })
}

/// A record as the interface has it. Calls do not queue: waiting for a thread counts as processing.
/// Calls are not authenticated, so there is no user's name.
fn to_record(record: &Record) -> thrift2::TOnlineLogRecord {
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    thrift2::TOnlineLogRecord {
        start_time: record.began_ms,
        processing_time: i32::try_from(record.took.as_millis()).unwrap_or(i32::MAX),
        queue_time: 0,
        response_size: i64::try_from(record.answer_bytes).unwrap_or(i64::MAX),
        client_address: record.client.clone(),
        server_class: SERVER_CLASS.into(),
        method_name: record.method.into(),
        call_details: format!("{}({})", record.method, record.service),
        param: record.printed_arguments(),
        user_name: String::new(),
        multi_gets_count: count(record.gets),
        multi_mutations_count: count(record.mutations),
        multi_service_calls: 0,
        region_name: record.region.clone(),
        block_bytes_scanned: None,
        fs_read_time: None,
    }
}

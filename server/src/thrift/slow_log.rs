//! The two calls that read the slow log.

use std::collections::BTreeSet;

use basalt_idl::thrift2::{self, TFilterByOperator, TLogType};

use crate::observe::slow_log::{Combine, Kind, Query, Record, SERVER_CLASS, condition, table_condition};
use crate::server::Server;
use crate::service::admin::cluster;
use crate::service::{AdminCall, Failure};

/// `getSlowLogResponses`. No server named: no records, as in HBase.
pub(super) fn responses(
    call: &AdminCall,
    servers: Option<&BTreeSet<thrift2::TServerName>>,
    filter: &thrift2::TLogQueryFilter,
) -> Result<Vec<thrift2::TOnlineLogRecord>, Failure> {
    let query = query(filter)?;
    let records = cluster::slow_log(call, &query)?;
    if servers_named(call.server(), servers)? == 0 {
        return Ok(Vec::new());
    }
    Ok(records.iter().map(|record| to_record(record)).collect())
}

/// `clearSlowLogResponses`: an answer for each server named.
pub(super) fn clear(
    call: &AdminCall,
    servers: Option<&BTreeSet<thrift2::TServerName>>,
) -> Result<Vec<bool>, Failure> {
    let count = cluster::operate(call, |server| servers_named(server, servers))?;
    let cleared = count > 0 && cluster::clear_slow_log(call)?;
    Ok(vec![cleared; count])
}

/// Number of named servers, all of which must be this one. Which of the machine's names the client
/// uses does not matter; the port and the start code, if given, must be those in region locations.
fn servers_named(
    server: &Server,
    servers: Option<&BTreeSet<thrift2::TServerName>>,
) -> Result<usize, Failure> {
    let own = (
        i32::from(server.instance().main_address().port()),
        server.instance().start_code(),
    );
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
/// Thrift names no user.
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
        user_name: record.user.clone(),
        multi_gets_count: count(record.gets),
        multi_mutations_count: count(record.mutations),
        multi_service_calls: 0,
        region_name: record.region.clone(),
        block_bytes_scanned: None,
        fs_read_time: None,
    }
}

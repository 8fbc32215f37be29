//! The slow log for native clients: HBase's `getSlowLogResponses` and `clearSlowLogResponses`.
//!
//! Clients since 2.5 ask with GetLogEntries, which wraps request and response in messages that name
//! their class; older ones have a call for each kind of log.

use basalt_engine::schema::TableName;
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::slow_log_response_request::{FilterByOperator, LogType};
use bytes::Bytes;
use prost::Message;

use super::request::decode;
use crate::api::{Failure, Server};
use crate::slow_log::{Combine, Kind, Query, Record};

/// Package and outer class of the messages.
const ADMIN_PROTOS: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$";

/// Answers GetLogEntries.
pub(super) fn entries(server: &Server, call: &pb::LogRequest) -> Result<pb::LogEntry, Failure> {
    let class = call.log_class_name.strip_prefix(ADMIN_PROTOS);
    if class != Some("SlowLogResponseRequest") {
        return Err(Failure::do_not_retry(format!(
            "Invalid request params: a region server has no log for {}",
            call.log_class_name
        )));
    }
    let wanted: pb::SlowLogResponseRequest = decode(call.log_message.clone())?;
    let kind = match wanted.log_type() {
        LogType::SlowLog => Kind::Slow,
        LogType::LargeLog => Kind::Large,
    };
    Ok(pb::LogEntry {
        log_class_name: format!("{ADMIN_PROTOS}SlowLogResponses"),
        log_message: Bytes::from(responses(server, kind, wanted).encode_to_vec()),
    })
}

/// The calls that the request asks for, newest first.
pub(super) fn responses(
    server: &Server,
    kind: Kind,
    wanted: pb::SlowLogResponseRequest,
) -> pb::SlowLogResponses {
    let records = server.slow_log().find(&query(kind, wanted));
    pb::SlowLogResponses {
        slow_log_payloads: records.iter().map(|record| payload(record)).collect(),
    }
}

fn query(kind: Kind, wanted: pb::SlowLogResponseRequest) -> Query {
    let combine = match wanted.filter_by_operator() {
        FilterByOperator::And => Combine::All,
        FilterByOperator::Or => Combine::Any,
    };
    let limit = wanted.limit() as usize;
    // HBase takes an empty text for one that is not set.
    let set = |text: Option<String>| text.filter(|text| !text.is_empty());
    Query {
        kind,
        combine,
        region: set(wanted.region_name),
        client: set(wanted.client_address),
        // `default:t` is the table `t`.
        table: set(wanted.table_name)
            .map(|name| TableName::parse(name.as_bytes()).map_or(name, |table| table.to_string())),
        user: set(wanted.user_name),
        limit,
    }
}

fn payload(record: &Record) -> pb::SlowLogPayload {
    let kind = match (record.remarkable.slow, record.remarkable.large) {
        (true, true) => pb::slow_log_payload::Type::All,
        (_, false) => pb::slow_log_payload::Type::SlowLog,
        (false, true) => pb::slow_log_payload::Type::LargeLog,
    };
    let count = |actions: usize| Some(i32::try_from(actions).unwrap_or(i32::MAX));
    pb::SlowLogPayload {
        start_time: record.began_ms,
        processing_time: i32::try_from(record.took.as_millis()).unwrap_or(i32::MAX),
        response_size: record.answer_bytes as i64,
        client_address: record.client.clone(),
        server_class: record.service.to_owned(),
        method_name: record.method.to_owned(),
        call_details: record.arguments.clone(),
        region_name: record.region.clone(),
        multi_gets: count(record.gets),
        multi_mutations: count(record.mutations),
        r#type: kind.into(),
        ..pb::SlowLogPayload::default()
    }
}

//! The calls that read the slow log.

use basalt_engine::schema::limits::Brief;
use basalt_idl::native::messages::{
    self as pb, SlowLogPayload, SlowLogResponseRequest, SlowLogResponses, slow_log_payload,
    slow_log_response_request::{FilterByOperator, LogType},
};
use prost::Message;

use super::request::decode;
use crate::observe::slow_log::{
    Combine, Kind, Query, Record, Remarkable, SERVER_CLASS, condition, table_condition,
};
use crate::service::admin::cluster;
use crate::service::{AdminCall, Failure};

/// Names of the messages in [`pb::LogRequest`] and [`pb::LogEntry`], as HBase's clients expect them.
const REQUEST_CLASS: &str = "SlowLogResponseRequest";
const RESPONSE_CLASS: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponses";
/// `GetLogEntries`: the entries that the request inside `call` asks for.
pub(super) fn entries(admin: &AdminCall, call: pb::LogRequest) -> Result<pb::LogEntry, Failure> {
    cluster::ask(admin, |_| ())?;
    if !call.log_class_name.ends_with(REQUEST_CLASS) {
        let class = call.log_class_name.rsplit(['.', '$']).next().unwrap_or_default();
        return Err(Failure::do_not_retry(format!(
            "Invalid request params: no log is read with {}; the slow log is read with {REQUEST_CLASS}",
            Brief(class.as_bytes())
        )));
    }
    let found = responses(admin, &decode(call.log_message)?, None)?;
    Ok(pb::LogEntry {
        log_class_name: RESPONSE_CLASS.to_owned(),
        log_message: found.encode_to_vec().into(),
    })
}

/// `GetSlowLogResponses` and `GetLargeLogResponses`, which name the kind by the method.
pub(super) fn responses(
    admin: &AdminCall,
    call: &SlowLogResponseRequest,
    kind: Option<Kind>,
) -> Result<SlowLogResponses, Failure> {
    let found = cluster::slow_log(admin, &query(call, kind))?;
    Ok(SlowLogResponses {
        slow_log_payloads: found.iter().map(|record| payload(record)).collect(),
    })
}

fn query(call: &SlowLogResponseRequest, kind: Option<Kind>) -> Query {
    let wanted = match call.log_type() {
        LogType::SlowLog => Kind::Slow,
        LogType::LargeLog => Kind::Large,
    };
    Query {
        kind: kind.unwrap_or(wanted),
        combine: match call.filter_by_operator() {
            FilterByOperator::And => Combine::All,
            FilterByOperator::Or => Combine::Any,
        },
        region: condition(call.region_name.as_ref()),
        client: condition(call.client_address.as_ref()),
        table: table_condition(call.table_name.as_ref()),
        user: condition(call.user_name.as_ref()),
        limit: call.limit() as usize,
    }
}

fn payload(record: &Record) -> SlowLogPayload {
    let count = |count: usize| Some(i32::try_from(count).unwrap_or(i32::MAX));
    let kind = match record.remarkable {
        Remarkable {
            slow: true,
            large: true,
            ..
        } => slow_log_payload::Type::All,
        Remarkable { large: true, .. } => slow_log_payload::Type::LargeLog,
        Remarkable { .. } => slow_log_payload::Type::SlowLog,
    };
    SlowLogPayload {
        start_time: record.began_ms,
        processing_time: i32::try_from(record.took.as_millis()).unwrap_or(i32::MAX),
        queue_time: 0,
        response_size: i64::try_from(record.answer_bytes).unwrap_or(i64::MAX),
        client_address: record.client.clone(),
        server_class: SERVER_CLASS.to_owned(),
        method_name: record.method.to_owned(),
        call_details: format!("{}({})", record.method, record.service),
        param: Some(record.printed_arguments()),
        user_name: record.user.clone(),
        region_name: record.region.clone(),
        multi_gets: count(record.gets),
        multi_mutations: count(record.mutations),
        r#type: kind.into(),
        ..SlowLogPayload::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_those_of_the_client() {
        let call = SlowLogResponseRequest {
            table_name: Some("default:t".into()),
            region_name: Some(String::new()),
            log_type: Some(LogType::LargeLog.into()),
            ..SlowLogResponseRequest::default()
        };
        let found = query(&call, None);
        assert_eq!(
            (found.kind, found.combine, found.limit),
            (Kind::Large, Combine::Any, 10)
        );
        assert_eq!((found.table.as_deref(), found.region), (Some("t"), None));
        assert_eq!(query(&call, Some(Kind::Slow)).kind, Kind::Slow);
    }
}

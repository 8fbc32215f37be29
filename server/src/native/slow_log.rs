//! The slow log of native calls: its record of a call, and the calls that read and clear it.
//!
//! A call beyond a threshold is described after it was answered, from its message, which is decoded
//! a second time, within the reservation for its arguments. Other calls cost two comparisons.

use std::fmt::Write as _;
use std::time::Duration;

use basalt_engine::schema::{Escaped, TableName};
use basalt_idl::native::messages::{
    self as pb, Action, ClientServiceMethod, GetRequest, MultiRequest, MutateRequest, RegionSpecifier,
    ScanRequest, SlowLogPayload, SlowLogResponseRequest, SlowLogResponses, slow_log_payload,
    slow_log_response_request::{FilterByOperator, LogType},
};
use bytes::Bytes;
use prost::Message;

use super::peer::Method;
use super::request::decode;
use super::state::Connection;
use crate::observe::slow_log::{
    Combine, Kind, Query, Record, Remarkable, SERVER_CLASS, began_ms, condition, table_condition,
};
use crate::server::Server;
use crate::service::Failure;

/// Names of the messages in [`pb::LogRequest`] and [`pb::LogEntry`], as HBase's clients expect them.
const REQUEST_CLASS: &str = "SlowLogResponseRequest";
const RESPONSE_CLASS: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponses";
/// Most bytes of a row that are printed.
const ROW_BYTES_MAX: usize = 64;

/// A call that has been answered.
#[derive(Debug)]
pub(super) struct Answered<'a> {
    pub(super) method: Method,
    pub(super) parameter: &'a Bytes,
    pub(super) took: Duration,
    pub(super) answer_bytes: usize,
    /// The table of the scanner that the call fetched from.
    pub(super) scanned: Option<TableName>,
}

/// Records a call if it was slow or its answer large.
pub(super) fn judge(connection: &Connection, call: Answered<'_>) {
    let log = connection.server.slow_log();
    if let Some(remarkable) = log.judge(call.took, call.answer_bytes) {
        record(connection, call, remarkable);
    }
}

#[cold]
fn record(connection: &Connection, call: Answered<'_>, remarkable: Remarkable) {
    let server = &connection.server;
    let (request, service, method) = (
        server.next_request(),
        connection.peer.service.name(),
        call.method.name(),
    );
    let client = connection.address().map(|address| address.to_string());
    tracing::info!(
        request,
        service,
        method,
        client,
        took = ?call.took,
        answer_bytes = call.answer_bytes,
        slow = remarkable.slow,
        large = remarkable.large,
        "call is in the slow log"
    );
    let described = Described::of(call.method, call.parameter);
    server.slow_log().add(Record {
        request,
        remarkable,
        began_ms: began_ms(call.took),
        took: call.took,
        answer_bytes: call.answer_bytes as u64,
        client: client.unwrap_or_default(),
        service,
        method,
        table: described.table.or(call.scanned).map(|table| table.to_string()),
        region: described.region,
        arguments: described.arguments,
        gets: described.gets,
        mutations: described.mutations,
    });
}

/// A short description of a call's arguments.
#[derive(Debug, Default)]
struct Described {
    table: Option<TableName>,
    /// Printed name of the first region that the call names.
    region: Option<String>,
    gets: usize,
    mutations: usize,
    arguments: String,
}

impl Described {
    /// Describes a call from its message. A message that cannot be decoded leaves the description
    /// empty.
    fn of(method: Method, parameter: &Bytes) -> Self {
        let mut described = Self::default();
        let parameter = parameter.clone();
        let Method::Client(method) = method else {
            return described;
        };
        match method {
            ClientServiceMethod::Get => described.get(GetRequest::decode(parameter)),
            ClientServiceMethod::Mutate => described.mutate(MutateRequest::decode(parameter)),
            ClientServiceMethod::Multi => described.multi(MultiRequest::decode(parameter)),
            ClientServiceMethod::Scan => described.scan(ScanRequest::decode(parameter)),
            _ => {}
        }
        described
    }

    fn get(&mut self, call: Result<GetRequest, prost::DecodeError>) {
        if let Ok(call) = call {
            self.in_region(&call.region);
            self.row("row", &call.get.row);
        }
    }

    fn mutate(&mut self, call: Result<MutateRequest, prost::DecodeError>) {
        if let Ok(call) = call {
            self.in_region(&call.region);
            self.put("type", call.mutation.mutate_type().as_str_name());
            self.row("row", call.mutation.row.as_deref().unwrap_or_default());
        }
    }

    fn multi(&mut self, call: Result<MultiRequest, prost::DecodeError>) {
        let Ok(call) = call else { return };
        if let Some(group) = call.region_action.first() {
            self.in_region(&group.region);
        }
        let count = |has: fn(&Action) -> bool| -> usize {
            let groups = call.region_action.iter();
            groups
                .map(|group| group.action.iter().filter(|action| has(action)).count())
                .sum()
        };
        self.gets = count(|action| action.get.is_some());
        self.mutations = count(|action| action.mutation.is_some());
        self.put("regions", call.region_action.len());
    }

    fn scan(&mut self, call: Result<ScanRequest, prost::DecodeError>) {
        let Ok(call) = call else { return };
        if let Some(region) = &call.region {
            self.in_region(region);
        }
        if let Some(id) = call.scanner_id {
            self.put("scanner", id);
        }
        if let Some(scan) = &call.scan {
            self.row("startRow", scan.start_row.as_deref().unwrap_or_default());
            self.row("stopRow", scan.stop_row.as_deref().unwrap_or_default());
        }
        if let Some(rows) = call.number_of_rows {
            self.put("rows", rows);
        }
    }

    fn in_region(&mut self, region: &RegionSpecifier) {
        let name = &region.value[..];
        let table = name.split(|byte| *byte == b',').next();
        self.table = table.and_then(|table| TableName::parse(table).ok());
        self.region = Some(Escaped(name).to_string());
    }

    fn row(&mut self, name: &str, row: &[u8]) {
        let shown = &row[..row.len().min(ROW_BYTES_MAX)];
        let rest = if shown.len() < row.len() { "..." } else { "" };
        self.put(name, format_args!("{}{rest}", Escaped(shown)));
    }

    fn put(&mut self, name: &str, value: impl std::fmt::Display) {
        let separator = if self.arguments.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(self.arguments, "{separator}{name}={value}");
    }
}

/// `GetLogEntries`: the entries that the request inside `parameter` asks for.
pub(super) fn entries(server: &Server, parameter: Bytes) -> Result<pb::LogEntry, Failure> {
    let call: pb::LogRequest = decode(parameter)?;
    if !call.log_class_name.ends_with(REQUEST_CLASS) {
        return Err(Failure::do_not_retry(format!(
            "Invalid request params: no log is read with {}; the slow log is read with {REQUEST_CLASS}",
            call.log_class_name
        )));
    }
    let found = responses(server, call.log_message, None)?;
    Ok(pb::LogEntry {
        log_class_name: RESPONSE_CLASS.to_owned(),
        log_message: found.encode_to_vec().into(),
    })
}

/// `GetSlowLogResponses` and `GetLargeLogResponses`, which name the kind by the method.
pub(super) fn responses(
    server: &Server,
    parameter: Bytes,
    kind: Option<Kind>,
) -> Result<SlowLogResponses, Failure> {
    let call: SlowLogResponseRequest = decode(parameter)?;
    let found = server.slow_log().find(&query(&call, kind));
    Ok(SlowLogResponses {
        slow_log_payloads: found.iter().map(|record| payload(record)).collect(),
    })
}

/// `ClearSlowLogsResponses`.
pub(super) fn clear(server: &Server) -> pb::ClearSlowLogResponses {
    pb::ClearSlowLogResponses {
        is_cleaned: server.slow_log().clear(),
    }
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
        user_name: String::new(),
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

    fn of(method: ClientServiceMethod, call: &impl Message) -> Described {
        Described::of(Method::Client(method), &call.encode_to_vec().into())
    }

    fn region() -> RegionSpecifier {
        RegionSpecifier {
            r#type: 1,
            value: Bytes::from_static(b"ns:t,a\0,1.ab."),
        }
    }

    #[test]
    fn calls_are_described_by_their_messages() {
        let get = GetRequest {
            region: region(),
            get: pb::Get {
                row: vec![b'r'; 100].into(),
                ..pb::Get::default()
            },
        };
        let described = of(ClientServiceMethod::Get, &get);
        assert_eq!(described.table.unwrap().to_string(), "ns:t");
        assert_eq!(described.region.as_deref(), Some("ns:t,a\\x00,1.ab."));
        assert_eq!(
            described.arguments,
            format!("row={}...", "r".repeat(ROW_BYTES_MAX))
        );

        let action = |mutation, get| Action {
            mutation,
            get,
            ..Action::default()
        };
        let multi = MultiRequest {
            region_action: vec![pb::RegionAction {
                region: region(),
                action: vec![
                    action(Some(Box::default()), None),
                    action(None, Some(Box::default())),
                    action(Some(Box::default()), None),
                ],
                ..pb::RegionAction::default()
            }],
            ..MultiRequest::default()
        };
        let described = of(ClientServiceMethod::Multi, &multi);
        assert_eq!((described.gets, described.mutations), (1, 2));
        assert_eq!(described.arguments, "regions=1");

        let fetch = ScanRequest {
            scanner_id: Some(7),
            number_of_rows: Some(10),
            ..ScanRequest::default()
        };
        let described = of(ClientServiceMethod::Scan, &fetch);
        assert_eq!(
            (described.region, &described.arguments[..]),
            (None, "scanner=7, rows=10")
        );
        let garbage = Described::of(
            Method::Client(ClientServiceMethod::Get),
            &Bytes::from_static(b"\xff"),
        );
        assert_eq!(garbage.arguments, "");
    }

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

//! Coprocessor endpoints: AggregateService, MultiRowMutationService, and services that do not exist.

use basalt_idl::native::messages::{
    Action, AggregateRequest, AggregateResponse, BigDecimalMsg, Column, CompareType, Condition,
    CoprocessorServiceCall, CoprocessorServiceRequest, CoprocessorServiceResponse, DoubleMsg, LongMsg,
    MultiResponse, MutateRowsRequest, MutateRowsResponse, MutationProto, RegionSpecifier, Scan,
    mutation_proto::MutationType,
};
use basalt_test_support::Server;
use bytes::Bytes;
use prost::Message;

use super::client::{Client, create, create_split, region, specifier};
use super::groups::{is, matches};
use super::requests::{action, inline, multi, value_of, write};

const INTERPRETERS: &str = "org.apache.hadoop.hbase.client.coprocessor.";

pub(super) fn call(
    region: &RegionSpecifier,
    service: &str,
    method: &str,
    request: &impl Message,
) -> CoprocessorServiceRequest {
    CoprocessorServiceRequest {
        region: region.clone(),
        call: CoprocessorServiceCall {
            row: Bytes::new(),
            service_name: service.to_owned(),
            method_name: method.to_owned(),
            request: request.encode_to_vec().into(),
        },
    }
}

/// A scan of columns of family `f`.
fn columns(qualifiers: &[&str]) -> Scan {
    Scan {
        column: vec![Column {
            family: Bytes::from_static(b"f"),
            qualifier: qualifiers
                .iter()
                .map(|name| Bytes::copy_from_slice(name.as_bytes()))
                .collect(),
        }],
        ..Scan::default()
    }
}

/// A connection, a region, and how an aggregate is asked for.
struct Aggregates {
    client: Client,
    region: RegionSpecifier,
}

impl Aggregates {
    fn ask(&mut self, method: &str, interpreter: &str, scan: &Scan) -> AggregateResponse {
        let request = AggregateRequest {
            interpreter_class_name: format!("{INTERPRETERS}{interpreter}"),
            scan: scan.clone(),
            ..AggregateRequest::default()
        };
        let call = call(&self.region, "AggregateService", method, &request);
        let answer: CoprocessorServiceResponse = self.client.ask("ExecService", &call);
        assert_eq!(answer.region, self.region);
        assert!(answer.value.name.ends_with("AggregateProtos$AggregateResponse"));
        AggregateResponse::decode(answer.value.value.unwrap()).unwrap()
    }

    /// The numbers of the first part, as longs.
    fn longs(&mut self, method: &str, scan: &Scan) -> (Vec<i64>, Option<i64>) {
        let answer = self.ask(method, "LongColumnInterpreter", scan);
        let first = answer.first_part.into_iter();
        let rows = answer.second_part;
        (
            first
                .map(|part| LongMsg::decode(part).unwrap().long_msg)
                .collect(),
            rows.map(|rows| i64::from_be_bytes(rows[..].try_into().unwrap())),
        )
    }

    fn put(&mut self, row: &'static str, values: &[(&str, &[u8])]) {
        write(&mut self.client, &self.region, row, values);
    }
}

fn start(server: &Server) -> Aggregates {
    create(server, "t");
    Aggregates {
        region: region(server, "t"),
        client: Client::connect(server, "ClientService"),
    }
}

/// The totals of longs are HBase's: values that are not eight bytes count as rows and nothing else.
#[test]
fn longs_are_added_up_as_hbase_does() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut table = start(&server);
    let both = columns(&["a", "b"]);
    let a = columns(&["a"]);
    assert_eq!(table.longs("GetSum", &a), (vec![], None));
    assert_eq!(table.longs("GetAvg", &a), (vec![], None));
    assert_eq!(table.longs("GetStd", &a), (vec![], None));
    assert_eq!(table.longs("GetMedian", &a), (vec![0, i64::MIN], None));
    for (row, a, b) in [("1", 5_i64, 10_i64), ("2", -7, 20), ("3", 40, 30)] {
        table.put(row, &[("a", &a.to_be_bytes()), ("b", &b.to_be_bytes())]);
    }
    table.put("4", &[("a", b"short")]);
    assert_eq!(table.longs("GetMax", &a), (vec![40], None));
    assert_eq!(table.longs("GetMin", &a), (vec![-7], None));
    assert_eq!(table.longs("GetSum", &a), (vec![38], None));
    assert_eq!(table.longs("GetAvg", &a), (vec![38], Some(4)));
    assert_eq!(table.longs("GetStd", &a), (vec![38, 25 + 49 + 1600], Some(4)));
    assert_eq!(table.longs("GetMedian", &a), (vec![38, i64::MIN], None));
    // With two columns a row's sum is squared, and the values are also the weights.
    let squares = 15 * 15 + 13 * 13 + 70 * 70;
    assert_eq!(table.longs("GetStd", &both), (vec![98, squares], Some(4)));
    assert_eq!(table.longs("GetMedian", &both), (vec![98, 98], None));
    let rows = |answer: AggregateResponse| i64::from_be_bytes(answer.first_part[0][..].try_into().unwrap());
    let counted = table.ask("GetRowNum", "LongColumnInterpreter", &Scan::default());
    assert_eq!(rows(counted), 4);
    let range = Scan {
        start_row: Some(Bytes::from_static(b"2")),
        stop_row: Some(Bytes::from_static(b"4")),
        ..columns(&["b"])
    };
    let counted = table.ask("GetRowNum", "LongColumnInterpreter", &range);
    assert_eq!(rows(counted), 2);
    assert_eq!(table.longs("GetSum", &range), (vec![50], None));
    server.stop();
}

#[test]
fn doubles_and_decimals_are_added_up() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut table = start(&server);
    for (row, double, unscaled) in [("1", 0.5_f64, 1_005_i16), ("2", -2.0, 1_015)] {
        let mut decimal = 3_i32.to_be_bytes().to_vec();
        decimal.extend_from_slice(&unscaled.to_be_bytes());
        table.put(row, &[("d", &double.to_be_bytes()), ("n", &decimal)]);
    }
    let answer = table.ask("GetStd", "DoubleColumnInterpreter", &columns(&["d"]));
    let doubles: Vec<f64> = answer
        .first_part
        .into_iter()
        .map(|part| DoubleMsg::decode(part).unwrap().double_msg)
        .collect();
    assert_eq!(doubles, [-1.5, 4.25]);
    // 1.005 and 1.015 are 1.00 and 1.02, rounded half to even.
    let answer = table.ask("GetSum", "BigDecimalColumnInterpreter", &columns(&["n"]));
    let sum = BigDecimalMsg::decode(answer.first_part[0].clone()).unwrap();
    assert_eq!(sum.bigdecimal_msg, &[0, 0, 0, 2, 0, 202][..]);
    server.stop();
}

/// An aggregate over more cells than one part holds sees each row once.
#[test]
fn a_long_aggregate_is_read_in_parts() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &["scanner.fetch_max_bytes=65536"]);
    let mut table = start(&server);
    let pad = vec![7; 200_000];
    for row in ["a", "b", "c", "d", "e"] {
        table.put(row, &[("n", &1_i64.to_be_bytes()), ("pad", &pad)]);
    }
    assert_eq!(table.longs("GetAvg", &columns(&[])), (vec![5], Some(5)));
    server.stop();
}

/// Each refusal has HBase's class and text, and the connection goes on.
#[test]
fn unknown_endpoints_are_refused_with_hbase_texts() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut table = start(&server);
    let (region, client) = (table.region.clone(), &mut table.client);
    let request = AggregateRequest {
        interpreter_class_name: "com.example.Own".to_owned(),
        scan: columns(&["a"]),
        ..AggregateRequest::default()
    };
    let mut refused = |method: &str, call: &CoprocessorServiceRequest, class: &str, text: &str| {
        let refusal = client.refusal(method, call, b"");
        assert_eq!(refusal.0, class);
        assert!(refusal.1.contains(text), "{} lacks {text}", refusal.1);
    };
    let unknown = "UnknownProtocolException";
    let export = call(&region, "ExportService", "Export", &request);
    let name = String::from_utf8_lossy(&region.value).into_owned();
    refused(
        "ExecService",
        &export,
        unknown,
        &format!("No registered coprocessor service found for ExportService in region {name}"),
    );
    refused(
        "ExecRegionServerService",
        &export,
        unknown,
        "No registered coprocessor executorService found for ExportService",
    );
    let method = call(&region, "AggregateService", "GetMode", &request);
    refused(
        "ExecService",
        &method,
        unknown,
        "Unknown method GetMode called on service hbase.pb.AggregateService",
    );
    let final_error = "DoNotRetryIOException";
    let own = call(&region, "AggregateService", "GetMax", &request);
    refused(
        "ExecService",
        &own,
        final_error,
        "ClassNotFoundException: com.example.Own",
    );
    let no_family = AggregateRequest {
        scan: Scan::default(),
        ..request.clone()
    };
    let no_family = call(&region, "AggregateService", "GetMax", &no_family);
    refused("ExecService", &no_family, final_error, "a scan of one family");
    let family = AggregateRequest {
        interpreter_class_name: format!("{INTERPRETERS}LongColumnInterpreter"),
        scan: Scan {
            column: vec![Column {
                family: Bytes::from_static(b"nof"),
                qualifier: Vec::new(),
            }],
            ..Scan::default()
        },
        ..AggregateRequest::default()
    };
    let family = call(&region, "AggregateService", "GetMax", &family);
    refused("ExecService", &family, "NoSuchColumnFamilyException", "nof");
    let elsewhere = call(&specifier(b"t,,1.0123."), "AggregateService", "GetMax", &request);
    refused(
        "ExecService",
        &elsewhere,
        "NotServingRegionException",
        "t,,1.0123.",
    );
    let mut master = Client::connect(&server, "MasterService");
    let (class, text) = master.refusal("ExecMasterService", &export, b"");
    assert_eq!(class, unknown);
    let text_of_hbase =
        "No registered Master Coprocessor Endpoint found for ExportService. Has it been enabled?";
    assert!(text.contains(text_of_hbase), "{text}");
    server.stop();
}

fn rows_of(mutations: Vec<MutationProto>) -> MutateRowsRequest {
    MutateRowsRequest {
        mutation_request: mutations,
        ..MutateRowsRequest::default()
    }
}

/// A call writes all of its rows, which are of one region, or none, and each refusal is HBase's.
#[test]
fn rows_of_a_region_are_mutated_together() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create_split(&server, "t", &["m"]);
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    let service = "MultiRowMutationService";
    let (put, delete) = (MutationType::Put, MutationType::Delete);
    let both = rows_of(vec![inline(put, "n", "q", b"1"), inline(put, "o", "q", b"2")]);
    let answer: CoprocessorServiceResponse =
        client.ask("ExecService", &call(&region, service, "MutateRows", &both));
    let done = MutateRowsResponse::decode(answer.value.value.unwrap()).unwrap();
    assert_eq!(done.processed, Some(true));
    assert_eq!(value_of(&mut client, &region, "n").as_deref(), Some(&b"1"[..]));
    let swap = rows_of(vec![inline(delete, "n", "q", b""), inline(put, "o", "q", b"3")]);
    client.ask::<CoprocessorServiceResponse>("ExecService", &call(&region, service, "MutateRows", &swap));
    assert_eq!(value_of(&mut client, &region, "n"), None);
    let mut other_family = inline(put, "p", "q", b"5");
    other_family.column_value[0].family = Bytes::from_static(b"nof");
    let outside = "Requested row out of range 'a'";
    for (request, class, text) in [
        (
            rows_of(vec![inline(put, "a", "q", b"4")]),
            "WrongRegionException",
            outside,
        ),
        (
            rows_of(vec![inline(put, "n", "q", b"4"), inline(put, "a", "q", b"4")]),
            "DoNotRetryIOException",
            outside,
        ),
        (
            rows_of(vec![
                inline(put, "n", "q", b"4"),
                inline(MutationType::Increment, "o", "q", b"12345678"),
            ]),
            "DoNotRetryIOException",
            "Field is not a long, it's 1 bytes wide",
        ),
        (
            rows_of(vec![inline(put, "n", "q", b"4"), other_family]),
            "NoSuchColumnFamilyException",
            "nof",
        ),
    ] {
        let refusal = client.refusal(
            "ExecService",
            &call(&region, service, "MutateRows", &request),
            b"",
        );
        assert_eq!(refusal.0, class, "{}", refusal.1);
        assert!(refusal.1.contains(text), "{}", refusal.1);
        assert_eq!(value_of(&mut client, &region, "n"), None, "{text}");
    }
    assert_eq!(value_of(&mut client, &region, "o").as_deref(), Some(&b"3"[..]));
    server.stop();
}

/// An endpoint is called by an action of a batch: its answer, or its exception, is that action's. As in
/// HBase, the puts of a batch are collected and applied behind its gets and endpoints, which do not
/// see them.
#[test]
fn endpoints_are_called_in_a_batch() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut table = start(&server);
    let request = AggregateRequest::default();
    let service = |index, service: &str| Action {
        index: Some(index),
        service_call: Some(Box::new(call(&table.region, service, "GetRowNum", &request).call)),
        ..Action::default()
    };
    let actions = vec![
        action(5, inline(MutationType::Put, "r", "q", b"v")),
        service(7, "AggregateService"),
        action(6, inline(MutationType::Put, "s", "q", b"v")),
        service(9, "ExportService"),
        Action {
            index: Some(8),
            ..Action::default()
        },
    ];
    let answer: MultiResponse = table.client.ask("Multi", &multi(&table.region, actions));
    let results = &answer.region_action_result[0].result_or_exception;
    assert_eq!(
        results.iter().map(|result| result.index).collect::<Vec<_>>(),
        [7, 9, 8, 5, 6].map(Some)
    );
    let counted = results[0]
        .service_result
        .clone()
        .expect("an answer")
        .value
        .unwrap();
    assert!(counted.name.ends_with("AggregateProtos$AggregateResponse"));
    let counted = AggregateResponse::decode(counted.value.unwrap()).unwrap();
    assert_eq!(counted.first_part[0], 0_i64.to_be_bytes()[..]);
    for (result, class, text) in [
        (&results[1], "UnknownProtocolException", "ExportService"),
        (
            &results[2],
            "DoNotRetryIOException",
            "neither mutation, get nor service call",
        ),
    ] {
        let exception = result.exception.as_ref().expect("an exception");
        assert!(exception.name.ends_with(class), "{exception:?}");
        let shown = String::from_utf8_lossy(exception.value.as_deref().unwrap_or_default());
        assert!(shown.contains(text), "{shown}");
    }
    assert_eq!(
        value_of(&mut table.client, &table.region, "s").as_deref(),
        Some(&b"v"[..])
    );
    server.stop();
}

/// A region, and calls of MutateRows on it.
struct Rows {
    client: Client,
    region: RegionSpecifier,
}

impl Rows {
    fn call(&self, request: &MutateRowsRequest) -> CoprocessorServiceRequest {
        call(&self.region, "MultiRowMutationService", "MutateRows", request)
    }

    fn mutate(&mut self, request: &MutateRowsRequest) -> bool {
        let call = self.call(request);
        let answer: CoprocessorServiceResponse = self.client.ask("ExecService", &call);
        let done = MutateRowsResponse::decode(answer.value.value.unwrap()).unwrap();
        done.processed.expect("HBase says whether it was processed")
    }

    /// The mutations, under these conditions.
    fn processed(&mut self, condition: Vec<Condition>, mutations: Vec<MutationProto>) -> bool {
        self.mutate(&MutateRowsRequest {
            condition,
            ..rows_of(mutations)
        })
    }

    fn value(&mut self, row: &'static str) -> Option<Vec<u8>> {
        value_of(&mut self.client, &self.region, row)
    }
}

/// The last region of a table of two, which has the rows from "m" on.
fn rows_from_m(server: &Server) -> Rows {
    create_split(server, "t", &["m"]);
    Rows {
        region: region(server, "t"),
        client: Client::connect(server, "ClientService"),
    }
}

/// Conditions are on any rows of the region, by column or by filter, and all of them must hold.
#[test]
fn conditions_of_several_rows_decide_together() {
    use CompareType::{Equal, Greater};
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut rows = rows_from_m(&server);
    let put = |row: &str, value: &[u8]| inline(MutationType::Put, row, "q", value);
    let absent = |row| is(row, Equal, "");
    let both = vec![put("n", b"1"), put("o", b"2")];
    assert!(rows.processed(vec![absent("n"), absent("o")], both.clone()));
    assert!(!rows.processed(vec![is("n", Equal, "1"), absent("o")], vec![put("n", b"9")]));
    assert_eq!(rows.value("n").as_deref(), Some(&b"1"[..]));
    let hold = vec![
        is("n", Equal, "1"),
        matches("o", "ValueFilter(=, 'binary:2')"),
        absent("z"),
    ];
    let swap = vec![inline(MutationType::Delete, "n", "q", b""), put("p", b"3")];
    assert!(rows.processed(hold, swap));
    assert_eq!((rows.value("n"), rows.value("p")), (None, Some(b"3".to_vec())));
    // Conditions alone are tested.
    assert!(rows.processed(vec![is("o", Greater, "3")], Vec::new()));
    assert!(!rows.processed(vec![is("o", Greater, "1")], Vec::new()));
    // More conditions than a network thread tests.
    let many = vec![absent("z"); 1_000];
    assert!(rows.processed(many.clone(), vec![put("q", b"4")]));
    assert!(!rows.processed([many, vec![absent("q")]].concat(), vec![put("q", b"5")]));
    assert_eq!(rows.value("q").as_deref(), Some(&b"4"[..]));
    server.stop();
}

/// Conditions that cannot be tested are refused, and nothing is applied.
#[test]
fn bad_conditions_of_mutate_rows_are_refused() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut rows = rows_from_m(&server);
    let of_family = |family: &'static str| Condition {
        family: Some(Bytes::from_static(family.as_bytes())),
        ..is("n", CompareType::Equal, "")
    };
    let neither = Condition {
        comparator: None,
        ..of_family("f")
    };
    for (condition, class, text) in [
        (is("a", CompareType::Equal, ""), "WrongRegionException", "row a"),
        (of_family("nof"), "NoSuchColumnFamilyException", "nof"),
        (neither, "DoNotRetryIOException", "neither filter nor comparator"),
    ] {
        let request = MutateRowsRequest {
            condition: vec![condition],
            ..rows_of(vec![inline(MutationType::Put, "n", "q", b"1")])
        };
        let call = rows.call(&request);
        let refusal = rows.client.refusal("ExecService", &call, b"");
        assert_eq!(refusal.0, class, "{}", refusal.1);
        assert!(refusal.1.contains(text), "{}", refusal.1);
        assert_eq!(rows.value("n"), None);
    }
    server.stop();
}

/// Increments and appends are applied with the puts, once for each nonce of a call.
#[test]
fn rows_are_incremented_together() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut rows = rows_from_m(&server);
    let mutations = vec![
        inline(MutationType::Increment, "n", "q", &5_i64.to_be_bytes()),
        inline(MutationType::Append, "o", "q", b"x"),
        inline(MutationType::Put, "p", "q", b"1"),
    ];
    let with_nonce = |nonce| MutateRowsRequest {
        nonce_group: Some(7),
        nonce: Some(nonce),
        ..rows_of(mutations.clone())
    };
    for nonce in [1, 1, 2] {
        assert!(rows.mutate(&with_nonce(nonce)));
    }
    assert_eq!(rows.value("n").as_deref(), Some(&10_i64.to_be_bytes()[..]));
    assert_eq!(rows.value("o").as_deref(), Some(&b"xx"[..]));
    assert_eq!(rows.value("p").as_deref(), Some(&b"1"[..]));
    server.stop();
}

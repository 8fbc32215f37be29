//! The slow log: native calls are in it, and AdminService reads and clears it.

use basalt_client::Client as Thrift;
use basalt_idl::native::messages::{
    ClearSlowLogResponseRequest, ClearSlowLogResponses, GetResponse, LogEntry, LogRequest, Scan, ScanRequest,
    ScanResponse, SlowLogPayload, SlowLogResponseRequest, SlowLogResponses, slow_log_payload,
    slow_log_response_request::{FilterByOperator, LogType},
};
use basalt_test_support::Server;
use bytes::Bytes;
use prost::Message;

use super::client::{Client, create, start_with_table};
use super::requests::{get, write};

const REQUEST: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponseRequest";
const RESPONSE: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponses";

fn request(log_message: &impl Message) -> LogRequest {
    LogRequest {
        log_class_name: REQUEST.to_owned(),
        log_message: log_message.encode_to_vec().into(),
    }
}

fn entries(admin: &mut Client, query: &SlowLogResponseRequest) -> Vec<SlowLogPayload> {
    let entry: LogEntry = admin.ask("GetLogEntries", &request(query));
    assert_eq!(entry.log_class_name, RESPONSE);
    SlowLogResponses::decode(entry.log_message)
        .unwrap()
        .slow_log_payloads
}

/// Every call is slow, and one answer is large: both are found with their table, region, client and
/// size, until the log is cleared.
#[test]
fn native_calls_are_in_the_slow_log() {
    let settings = ["slow_log.threshold_ms=0", "slow_log.large_bytes=5000"];
    let (_dir, server, region, mut client) = start_with_table(&settings);
    let name = String::from_utf8(region.value.to_vec()).unwrap();
    let address = client.socket.local_addr().unwrap().to_string();
    write(&mut client, &region, "r", &[("q", "v".repeat(6_000))]);
    client.ask::<GetResponse>("Get", &get(&region, "r"));
    let open = ScanRequest {
        region: Some(region),
        scan: Some(Scan::default()),
        number_of_rows: Some(0),
        ..ScanRequest::default()
    };
    let opened: ScanResponse = client.ask("Scan", &open);
    let fetch = ScanRequest {
        scanner_id: opened.scanner_id,
        number_of_rows: Some(5),
        ..ScanRequest::default()
    };
    client.ask::<ScanResponse>("Scan", &fetch);

    let mut admin = Client::connect(&server, "AdminService");
    let of_client = SlowLogResponseRequest {
        client_address: Some(address.clone()),
        ..SlowLogResponseRequest::default()
    };
    let slow = entries(&mut admin, &of_client);
    let methods: Vec<_> = slow.iter().map(|entry| &entry.method_name[..]).collect();
    assert_eq!(
        methods,
        ["Scan", "Scan", "Get", "Mutate"],
        "the newest comes first"
    );
    let (fetched, read) = (&slow[0], &slow[2]);
    assert_eq!(fetched.region_name.as_ref(), Some(&name));
    let id = opened.scanner_id.unwrap();
    assert_eq!(
        fetched.param,
        Some(format!("startRow=, stopRow=, scanner={id}, rows=5"))
    );
    assert_eq!(
        (read.region_name.as_ref(), read.param.as_deref()),
        (Some(&name), Some("row=r"))
    );
    assert_eq!(
        (&read.client_address, &read.call_details[..]),
        (&address, "Get(ClientService)")
    );
    assert!(
        read.response_size > 6_000 && read.start_time > 1_500_000_000_000,
        "{read:?}"
    );
    assert_eq!(read.r#type, i32::from(slow_log_payload::Type::All));
    assert_eq!(slow[3].r#type, i32::from(slow_log_payload::Type::SlowLog));

    let large_of_table = SlowLogResponseRequest {
        table_name: Some("t".to_owned()),
        log_type: Some(LogType::LargeLog.into()),
        filter_by_operator: Some(FilterByOperator::And.into()),
        ..of_client
    };
    assert_eq!(
        entries(&mut admin, &large_of_table).len(),
        2,
        "the get and the fetch"
    );
    let found: SlowLogResponses = admin.ask(
        "GetLargeLogResponses",
        &SlowLogResponseRequest {
            limit: Some(1),
            ..large_of_table.clone()
        },
    );
    assert_eq!(found.slow_log_payloads.len(), 1);
    let found: SlowLogResponses = admin.ask("GetSlowLogResponses", &large_of_table);
    assert_eq!(found.slow_log_payloads.len(), 4, "the method names the kind");

    let cleared: ClearSlowLogResponses = admin.ask("ClearSlowLogsResponses", &ClearSlowLogResponseRequest {});
    assert!(cleared.is_cleaned);
    assert_eq!(entries(&mut admin, &large_of_table), []);
    let other = LogRequest {
        log_class_name: "org.example.Log".to_owned(),
        log_message: Bytes::new(),
    };
    let (class, text) = admin.refusal("GetLogEntries", &other, b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("Invalid request params"), "{text}");
    server.stop();
}

/// The call of older clients and that of newer ones read the same entries, until they are cleared.
#[test]
fn old_and_new_calls_read_the_same_slow_log() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &["slow_log.large_bytes=1000"]);
    create(&server, "t");
    large_read(&server);
    let mut admin = Client::connect(&server, "AdminService");
    let wanted = SlowLogResponseRequest {
        table_name: Some("t".to_owned()),
        limit: Some(5),
        log_type: Some(LogType::LargeLog.into()),
        ..SlowLogResponseRequest::default()
    };
    let since_2_5 = entries(&mut admin, &wanted);
    let before: SlowLogResponses = admin.ask("GetLargeLogResponses", &wanted);
    assert_eq!(since_2_5, before.slow_log_payloads);
    let payload = &before.slow_log_payloads[0];
    assert_eq!(
        (before.slow_log_payloads.len(), &payload.method_name[..]),
        (1, "get")
    );
    assert!(payload.response_size > 2_000, "{payload:?}");

    let other = LogRequest {
        log_class_name: REQUEST.replace("SlowLogResponseRequest", "OtherRequest"),
        ..request(&wanted)
    };
    let (class, text) = admin.refusal("GetLogEntries", &other, b"");
    assert!(
        class == "DoNotRetryIOException" && text.contains("OtherRequest"),
        "{text}"
    );

    let cleared: ClearSlowLogResponses = admin.ask("ClearSlowLogsResponses", &ClearSlowLogResponseRequest {});
    assert!(cleared.is_cleaned);
    let none: SlowLogResponses = admin.ask("GetLargeLogResponses", &wanted);
    assert_eq!(none.slow_log_payloads, []);
    server.stop();
}

/// Reads a value of 2,000 bytes of the table `t` through Thrift.
fn large_read(server: &Server) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Thrift::connect(&server.thrift.to_string()).await.unwrap();
        let table = client.table("t").unwrap();
        table
            .put(basalt_client::Put::new("r").cell("f", "q", vec![b'v'; 2_000]))
            .await
            .unwrap();
        table
            .get(basalt_client::Get::new("r"))
            .await
            .unwrap()
            .expect("the row");
    });
}

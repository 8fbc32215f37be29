//! AdminService: what Java's client does not show of it.

use basalt_client::{Get, Put};
use basalt_idl::native::messages::get_region_info_response::CompactionState;
use basalt_idl::native::messages::slow_log_response_request::LogType;
use basalt_idl::native::messages::{
    ClearSlowLogResponseRequest, ClearSlowLogResponses, CompactRegionRequest, CompactRegionResponse,
    CompactionSwitchRequest, CompactionSwitchResponse, FlushRegionRequest, FlushRegionResponse,
    GetRegionInfoRequest, GetRegionInfoResponse, LogEntry, LogRequest, RegionSpecifier,
    SlowLogResponseRequest, SlowLogResponses,
};
use basalt_tests::{Server, until};
use prost::Message;

use super::client::{Client, create, region};
use super::requests::write;

fn state(admin: &mut Client, region: &RegionSpecifier) -> CompactionState {
    let call = GetRegionInfoRequest {
        region: region.clone(),
        compaction_state: Some(true),
        ..GetRegionInfoRequest::default()
    };
    admin
        .ask::<GetRegionInfoResponse>("GetRegionInfo", &call)
        .compaction_state()
}

fn switch(admin: &mut Client, enabled: bool) -> bool {
    let call = CompactionSwitchRequest { enabled };
    admin
        .ask::<CompactionSwitchResponse>("CompactionSwitch", &call)
        .prev_state
}

/// A compaction that was requested shows in the region's state until it is done.
#[test]
fn a_requested_compaction_shows_until_it_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut admin = Client::connect(&server, "AdminService");
    let mut client = Client::connect(&server, "ClientService");
    for value in ["1", "2"] {
        write(&mut client, &region, "r", &[("q", value)]);
        let flush = FlushRegionRequest {
            region: region.clone(),
            ..FlushRegionRequest::default()
        };
        admin.ask::<FlushRegionResponse>("FlushRegion", &flush);
    }
    until("the policy's own compaction", || {
        state(&mut admin, &region) == CompactionState::None
    });
    assert!(switch(&mut admin, false));
    let compact = CompactRegionRequest {
        region: region.clone(),
        major: Some(true),
        ..CompactRegionRequest::default()
    };
    admin.ask::<CompactRegionResponse>("CompactRegion", &compact);
    assert_eq!(state(&mut admin, &region), CompactionState::Major);
    assert!(!switch(&mut admin, true));
    until("the major compaction", || {
        state(&mut admin, &region) == CompactionState::None
    });
    server.stop();
}

/// Native clients read the slow log, each in the way of its version, and clear it.
#[test]
fn the_slow_log_is_read_and_cleared() {
    const PROTOS: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$";
    let dir = tempfile::tempdir().unwrap();
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
    let call = LogRequest {
        log_class_name: format!("{PROTOS}SlowLogResponseRequest"),
        log_message: wanted.encode_to_vec().into(),
    };
    let entry: LogEntry = admin.ask("GetLogEntries", &call);
    assert_eq!(entry.log_class_name, format!("{PROTOS}SlowLogResponses"));
    let since_2_5 = SlowLogResponses::decode(entry.log_message).unwrap();
    let before: SlowLogResponses = admin.ask("GetLargeLogResponses", &wanted);
    assert_eq!(since_2_5, before);
    let payload = &before.slow_log_payloads[0];
    assert_eq!(
        (before.slow_log_payloads.len(), &payload.method_name[..]),
        (1, "get")
    );
    assert!(payload.response_size > 2_000, "{payload:?}");

    let other = LogRequest {
        log_class_name: format!("{PROTOS}OtherRequest"),
        ..call
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
        let client = basalt_client::Client::connect(&server.thrift.to_string())
            .await
            .unwrap();
        let table = client.table("t").unwrap();
        table
            .put(Put::new("r").cell("f", "q", vec![b'v'; 2_000]))
            .await
            .unwrap();
        table.get(Get::new("r")).await.unwrap().expect("the row");
    });
}

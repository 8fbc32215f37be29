//! Faults on demand of an ephemeral server, as native clients meet them. `client_native` shows that
//! HBase's own client survives them.

use basalt_idl::native::messages::mutation_proto::MutationType;
use basalt_idl::native::messages::{
    GetResponse, MultiResponse, MutateResponse, RegionSpecifier, Scan, ScanRequest, ScanResponse,
};
use basalt_test_support::Server;
use tempfile::TempDir;

use super::client::{Client, create, exception, region};
use super::requests::{action, get, inline, multi, mutate, value_of};

/// An ephemeral server with the tables `t`, whose row `a` has 1 in `f:q`, and `other`; and a client.
fn start() -> (TempDir, Server, RegionSpecifier, Client) {
    let dir = basalt_test_support::tempdir().unwrap();
    let (server, _) = Server::start_ephemeral(dir.path(), &[]);
    create(&server, "t");
    create(&server, "other");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    client.ask::<MutateResponse>("Mutate", &put(&region, "a"));
    (dir, server, region, client)
}

fn put(region: &RegionSpecifier, row: &str) -> basalt_idl::native::messages::MutateRequest {
    mutate(region, inline(MutationType::Put, row, "q", b"1"))
}

fn arm(server: &Server, faults: &str) {
    let (status, body) = server.http_post("/test/faults", &format!("{{\"faults\": [{faults}]}}"));
    assert_eq!(status, 200, "{body}");
}

fn are_all_used(server: &Server) -> bool {
    server.http_get("/test/faults") == "{\"faults\":[]}\n"
}

/// Goal: exceptions have HBase's class names, by which its clients decide to retry, and only calls of
/// the method and the table that were named meet them.
#[test]
fn calls_fail_with_the_classes_that_clients_retry() {
    let (_dir, server, t, mut client) = start();
    let other = region(&server, "other");
    for (fault, class) in [
        ("region_too_busy", "RegionTooBusyException"),
        ("not_serving_region", "NotServingRegionException"),
    ] {
        arm(
            &server,
            &format!(r#"{{"method": "Get", "fault": "{fault}", "calls": 2, "table": "t"}}"#),
        );
        client.ask::<MutateResponse>("Mutate", &put(&t, "a"));
        client.ask::<GetResponse>("Get", &get(&other, "a"));
        for _ in 0..2 {
            client.call(7, "Get", &get(&t, "a"), b"");
            let response = client.response().unwrap();
            assert_eq!(exception(&response).0, class);
            assert_eq!(response.header.exception.unwrap().do_not_retry, Some(false));
        }
        assert_eq!(value_of(&mut client, &t, "a"), Some(b"1".to_vec()));
        assert!(are_all_used(&server));
    }
    // A look-up of the region meets no fault.
    arm(
        &server,
        r#"{"method": "*", "fault": "region_too_busy", "calls": 1}"#,
    );
    assert_eq!(region(&server, "t"), t);
    assert_eq!(
        client.refusal("Mutate", &put(&t, "a"), b"").0,
        "RegionTooBusyException"
    );
    server.stop();
}

/// Goal: a Multi answers, as in HBase, with an exception for each of its regions, and applies nothing.
#[test]
fn the_regions_of_a_multi_fail() {
    let (_dir, server, t, mut client) = start();
    arm(
        &server,
        r#"{"method": "Multi", "fault": "region_too_busy", "calls": 1}"#,
    );
    let mut call = multi(&t, vec![action(0, inline(MutationType::Put, "b", "q", b"2"))]);
    call.region_action.push(call.region_action[0].clone());
    let refused: MultiResponse = client.ask("Multi", &call);
    assert_eq!(refused.region_action_result.len(), 2);
    for result in refused.region_action_result {
        let exception = result.exception.unwrap();
        assert_eq!(exception.name, "org.apache.hadoop.hbase.RegionTooBusyException");
        assert!(result.result_or_exception.is_empty());
    }
    assert_eq!(value_of(&mut client, &t, "b"), None);
    let done: MultiResponse = client.ask("Multi", &call);
    assert!(done.region_action_result[0].exception.is_none());
    assert_eq!(value_of(&mut client, &t, "b"), Some(b"2".to_vec()));
    server.stop();
}

/// Goal: a dropped connection ends without a response to the call, which was run only where the reply
/// was to be dropped; responses that were ready before are sent.
#[test]
fn a_connection_ends_without_a_response() {
    let (_dir, server, t, mut client) = start();
    for (fault, row) in [("drop_connection", "c"), ("drop_reply", "d")] {
        let mut lost = Client::connect(&server, "ClientService");
        lost.ask::<GetResponse>("Get", &get(&t, "a"));
        arm(
            &server,
            &format!(r#"{{"method": "Mutate", "fault": "{fault}", "calls": 1}}"#),
        );
        lost.call(5, "Mutate", &put(&t, row), b"");
        assert!(lost.response().is_none(), "{fault}");
        let is_applied = value_of(&mut client, &t, row).is_some();
        assert_eq!(is_applied, fault == "drop_reply");
    }
    server.stop();
}

/// Goal: a delay holds one call, and not the others of its connection.
#[test]
fn a_delay_holds_one_call() {
    let (_dir, server, t, mut client) = start();
    arm(
        &server,
        r#"{"method": "Mutate", "fault": "delay", "calls": 1, "delay_ms": 500}"#,
    );
    client.call(1, "Mutate", &put(&t, "a"), b"");
    client.call(2, "Get", &get(&t, "a"), b"");
    let order: Vec<_> = (0..2)
        .map(|_| client.response().unwrap().header.call_id)
        .collect();
    assert_eq!(order, [Some(2), Some(1)]);
    server.stop();
}

/// Goal: between two results of a scan its region is split or moved. The client gets HBase's
/// answer for a closed region, and finds the rest where `hbase:meta` says it is.
#[test]
fn a_scan_loses_its_region() {
    let (_dir, server, t, mut client) = start();
    for row in ["b", "c"] {
        client.ask::<MutateResponse>("Mutate", &put(&t, row));
    }
    let open = ScanRequest {
        region: Some(t.clone()),
        scan: Some(Scan::default()),
        number_of_rows: Some(1),
        ..ScanRequest::default()
    };
    for fault in ["move", "split"] {
        arm(
            &server,
            &format!(r#"{{"method": "Scan", "fault": "{fault}", "calls": 1}}"#),
        );
        let opened: ScanResponse = client.ask("Scan", &open);
        let next = ScanRequest {
            scanner_id: opened.scanner_id,
            number_of_rows: Some(1),
            ..ScanRequest::default()
        };
        // The fault applies to fetches: a call that renews or closes does not meet it.
        let renew = ScanRequest {
            renew: Some(true),
            ..next.clone()
        };
        client.ask::<ScanResponse>("Scan", &renew);
        let (class, text) = client.refusal("Scan", &next, b"");
        assert_eq!(class, "NotServingRegionException", "{text}");
        assert!(are_all_used(&server));
        let (class, _) = client.refusal("Scan", &next, b"");
        assert_eq!(class, "UnknownScannerException");
        // A region that has moved is here again; one that was split is gone.
        if fault == "move" {
            client.ask::<ScanResponse>("Scan", &open);
        }
    }
    assert_eq!(client.refusal("Scan", &open, b"").0, "NotServingRegionException");
    let last = region(&server, "t");
    assert_ne!(last, t);
    assert_eq!(value_of(&mut client, &last, "c"), Some(b"1".to_vec()));
    server.stop();
}

/// Goal: a scanner outlives a busy region: the client repeats the fetch with the same sequence number.
#[test]
fn a_busy_region_leaves_the_scanner() {
    let (_dir, server, t, mut client) = start();
    client.ask::<MutateResponse>("Mutate", &put(&t, "b"));
    let open = ScanRequest {
        region: Some(t.clone()),
        scan: Some(Scan::default()),
        number_of_rows: Some(1),
        next_call_seq: Some(0),
        ..ScanRequest::default()
    };
    let opened: ScanResponse = client.ask("Scan", &open);
    let next = ScanRequest {
        scanner_id: opened.scanner_id,
        number_of_rows: Some(1),
        next_call_seq: Some(0),
        ..ScanRequest::default()
    };
    arm(
        &server,
        r#"{"method": "Scan", "fault": "region_too_busy", "calls": 1}"#,
    );
    assert_eq!(client.refusal("Scan", &next, b"").0, "RegionTooBusyException");
    let rest: ScanResponse = client.ask("Scan", &next);
    assert_eq!(rest.cells_per_result, [1]);
    server.stop();
}

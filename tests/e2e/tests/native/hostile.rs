//! Bad input of each kind gets an exception of HBase's class, and the server keeps serving.

use basalt_idl::native::frame::CONNECTION_CALL_ID;
use basalt_idl::native::messages::{
    Get, GetRequest, GetResponse, MutateRequest, MutationProto, ScanRequest, mutation_proto::MutationType,
};
use basalt_test_support::Server;
use bytes::Bytes;

use super::client::{Client, SIMPLE, create, exception, header, region, specifier, start_with_table};

#[test]
fn bad_greetings_are_refused_by_name() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    for (sent, class) in [
        (&b"HBas\x01\x50"[..], "WrongVersionException"),
        (b"HBas\0\x30", "BadAuthException"),
        (b"Regina", "FatalConnectionException"),
        (b"HBaz\0\x50", "FatalConnectionException"),
        (b"Rogist", "FatalConnectionException"),
    ] {
        let mut client = Client::silent(&server);
        client.send(sent);
        let response = client.response().unwrap();
        assert_eq!(response.header.call_id, Some(CONNECTION_CALL_ID));
        let (found, text) = exception(&response);
        assert_eq!(found, class);
        // Newer clients look for this text.
        assert!(
            class != "FatalConnectionException" || text.contains("Expected HEADER="),
            "{text}"
        );
        assert_eq!(client.response(), None);
    }
    let mut compressed = header("ClientService");
    compressed.cell_block_compressor_class = Some("org.example.Nothing".to_owned());
    let mut codec = header("ClientService");
    codec.cell_block_codec_class = Some("org.example.NoCodec".to_owned());
    for (header, class) in [
        (header("LockService"), "FatalConnectionException"),
        (codec, "UnsupportedCellCodecException"),
        (compressed, "UnsupportedCompressionCodecException"),
    ] {
        let mut client = Client::connect_with(&server, &header);
        assert_eq!(exception(&client.response().unwrap()).0, class);
        assert_eq!(client.response(), None);
    }
    let mut garbage = Client::silent(&server);
    garbage.send(&[SIMPLE, &[0xff, 0xff, 0xff, 0xff]].concat());
    assert_eq!(
        exception(&garbage.response().unwrap()).0,
        "FatalConnectionException"
    );
    server.stop();
}

/// Newer clients send "Regist" or "Securi" before they authenticate. "Securi" leaves the connection
/// open.
#[test]
fn questions_before_the_greeting_are_answered() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut registry = Client::silent(&server);
    registry.send(b"Regist");
    let response = registry.response().unwrap();
    assert_eq!(response.header.call_id, Some(CONNECTION_CALL_ID));
    assert_eq!(response.result.len(), 2 + 36);
    assert_eq!(registry.response(), None);

    let mut client = Client::silent(&server);
    client.send(b"Securi");
    assert_eq!(
        exception(&client.response().unwrap()).0,
        "SecurityNotEnabledException"
    );
    let mut greeting = SIMPLE.to_vec();
    basalt_idl::native::frame::put_connection_header(&header("MasterService"), &mut greeting);
    client.send(&greeting);
    let running: basalt_idl::native::messages::IsMasterRunningResponse = client.ask(
        "IsMasterRunning",
        &basalt_idl::native::messages::IsMasterRunningRequest {},
    );
    assert!(running.is_master_running);
    server.stop();
}

#[test]
fn bad_calls_are_refused_and_the_connection_lives() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    let get = |name: &[u8], family: &'static [u8]| GetRequest {
        region: specifier(name),
        get: Get {
            row: Bytes::from_static(b"r"),
            column: vec![basalt_idl::native::messages::Column {
                family: Bytes::from_static(family),
                qualifier: Vec::new(),
            }],
            ..Get::default()
        },
    };
    let unknown = client.refusal("Gett", &get(&region.value, b"f"), b"");
    assert!(
        unknown
            .1
            .contains("java.lang.UnsupportedOperationException: Gett"),
        "{unknown:?}"
    );
    for name in [
        &b"t,,1.0123456789abcdef0123456789abcdef."[..],
        b"gone,,1.0123456789abcdef0123456789abcdef.",
    ] {
        assert_eq!(
            client.refusal("Get", &get(name, b"f"), b"").0,
            "NotServingRegionException"
        );
    }
    assert_eq!(
        client.refusal("Get", &get(&region.value, b"nof"), b"").0,
        "NoSuchColumnFamilyException"
    );
    let scan = ScanRequest {
        scanner_id: Some(77),
        number_of_rows: Some(1),
        ..ScanRequest::default()
    };
    assert_eq!(client.refusal("Scan", &scan, b"").0, "UnknownScannerException");
    let mutation = MutateRequest {
        region: region.clone(),
        mutation: MutationProto {
            row: Some(Bytes::from_static(b"r")),
            mutate_type: Some(MutationType::Put.into()),
            associated_cell_count: Some(2),
            ..MutationProto::default()
        },
        ..MutateRequest::default()
    };
    let cut = client.refusal("Mutate", &mutation, &[0, 0, 0, 50, 1, 2, 3]);
    assert_eq!(cut.0, "DoNotRetryIOException");
    assert!(cut.1.contains("cell block"), "{cut:?}");
    assert!(
        client
            .ask::<GetResponse>("Get", &get(&region.value, b"f"))
            .result
            .is_some()
    );
    server.stop();
}

/// A frame over the limit is refused with the id of its call before it has arrived. The connection
/// ends, and the server keeps serving.
#[test]
fn a_frame_over_the_limit_is_refused_by_its_call() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    // 300 MiB; header: call id 9.
    let mut begin = (300_u32 << 20).to_be_bytes().to_vec();
    begin.extend_from_slice(&[2, 8, 9]);
    begin.resize(4 + (4 << 10), 0);
    client.send(&begin);
    let response = client.response().unwrap();
    assert_eq!(response.header.call_id, Some(9));
    assert_eq!(exception(&response).0, "RequestTooBigException");
    assert_eq!(client.response(), None);
    let mut garbage = Client::connect(&server, "ClientService");
    garbage.send(&[0, 0, 0, 2, 0xff, 0xff]);
    assert_eq!(garbage.response(), None);
    region(&server, "t");
    server.stop();
}

//! Connections that end with a refusal: the client can read why, whatever it still sends.

use basalt_test_support::Server;

use super::client::{Client, SIMPLE, exception, header};

/// More than the buffers of both sockets hold.
const STILL_SENT: usize = 32 << 20;

/// The client has sent much more than was read when its greeting or call is refused. Without a drain
/// the socket would be reset: the client could neither send the rest nor read the refusal.
#[test]
fn a_refusal_reaches_a_client_that_still_sends() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let rest = vec![0; STILL_SENT];
    let unknown_service = {
        let mut greeting = SIMPLE.to_vec();
        basalt_idl::native::frame::put_connection_header(&header("LockService"), &mut greeting);
        greeting
    };
    for (greeting, class) in [
        (&b"HBas\0\x30"[..], "BadAuthException"),
        (&unknown_service, "FatalConnectionException"),
    ] {
        let mut client = Client::silent(&server);
        client.send(greeting);
        client.send(&rest);
        assert_eq!(exception(&client.response().unwrap()).0, class);
        assert_eq!(client.response(), None);
    }
    let mut client = Client::connect(&server, "ClientService");
    // A frame of 300 MiB; header: call id 9.
    client.send(&[0x12, 0xc0, 0, 0, 2, 8, 9]);
    client.send(&rest);
    let response = client.response().unwrap();
    assert_eq!(response.header.call_id, Some(9));
    assert_eq!(exception(&response).0, "RequestTooBigException");
    assert_eq!(client.response(), None);
    server.stop();
}

//! Logins against a peer with canned bytes.

use basalt_security::Secret;
use basalt_security::sasl::digest::Server;
use basalt_security::token::TokenIdentifier;
use tokio::io::DuplexStream;

use super::*;
use crate::ErrorKind;

/// Room of each direction, in bytes: no message waits for the peer.
const ROOM: usize = 64 << 10;

fn token() -> Token {
    let identifier = TokenIdentifier {
        kind: 0,
        username: b"ada".to_vec(),
        key_id: 1,
        issue_date: Some(1),
        expiration_date: Some(2),
        sequence_number: Some(3),
    };
    Token {
        identifier: identifier.to_bytes(),
        password: Secret::new([7; 20]),
    }
}

fn password() -> Login {
    Login::password("ada", Secret::new("open sesame")).unwrap()
}

/// A login over Thrift against a server that sends `answer` and closes. Also returns the client's
/// bytes.
async fn over_thrift(answer: &[u8]) -> (Result<()>, Vec<u8>) {
    let (mut client, mut server) = tokio::io::duplex(ROOM);
    server.write_all(answer).await.unwrap();
    server.shutdown().await.unwrap();
    let outcome = log_in_thrift(&mut client, "db:1", &password()).await;
    drop(client);
    let mut sent = Vec::new();
    server.read_to_end(&mut sent).await.unwrap();
    (outcome, sent)
}

/// `u32 length | bytes`.
fn message(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn frame(status: u8, text: &str) -> Vec<u8> {
    [&[status][..], &message(text.as_bytes())].concat()
}

#[tokio::test]
async fn plain_over_thrift_sends_two_frames() {
    let (outcome, sent) = over_thrift(&frame(COMPLETE, "")).await;
    outcome.unwrap();
    assert_eq!(sent, b"\x01\0\0\0\x05PLAIN\x02\0\0\0\x10\0ada\0open sesame");
}

/// The bytes behind the last frame are those of the first reply.
#[tokio::test]
async fn nothing_behind_the_login_is_read() {
    let (mut client, mut server) = tokio::io::duplex(ROOM);
    let answer = [frame(COMPLETE, ""), b"reply".to_vec()].concat();
    server.write_all(&answer).await.unwrap();
    log_in_thrift(&mut client, "db:1", &password()).await.unwrap();
    let mut rest = [0; 5];
    client.read_exact(&mut rest).await.unwrap();
    assert_eq!(&rest, b"reply");
}

#[tokio::test]
async fn refusals_over_thrift_name_server_cause_and_remedy() {
    let long = [&[COMPLETE][..], &[0xff; 4]].concat();
    for (answer, parts) in [
        (
            frame(BAD, "authentication failed"),
            ["'authentication failed'", "check user and password"],
        ),
        (frame(ERROR, "no"), ["'no'", "check user and password"]),
        (frame(OK, "and now?"), ["'and now?'", ""]),
        (b"\x80\x01\0\x03".to_vec(), ["not SASL", "give none"]),
        (Vec::new(), ["closed the connection", "its log has the cause"]),
        (frame(BAD, "cut")[..6].to_vec(), ["closed the connection", "log"]),
        (long, ["4294967295 bytes", "the limit is 65536"]),
    ] {
        let error = over_thrift(&answer).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Setup);
        let text = error.to_string();
        assert!(text.starts_with("cannot log in at db:1: "), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains("sesame"), "{text}");
    }
}

async fn receive(server: &mut DuplexStream) -> Vec<u8> {
    let length = server.read_u32().await.unwrap();
    let mut bytes = vec![0; length as usize];
    server.read_exact(&mut bytes).await.unwrap();
    bytes
}

/// The server's side of DIGEST-MD5. `last` makes the answer to the client's message from the right
/// one.
async fn serve_digest(mut server: DuplexStream, last: impl FnOnce(Vec<u8>) -> Vec<u8>) -> DuplexStream {
    assert_eq!(receive(&mut server).await, b"");
    let exchange = Server::new().unwrap();
    let challenge = [&[0; 4][..], &message(&exchange.challenge())].concat();
    server.write_all(&challenge).await.unwrap();
    let response = receive(&mut server).await;
    let find = |user: &str| {
        assert_eq!(user, token().digest_user());
        Ok(((), token().digest_password()))
    };
    let ((), right) = exchange.finish(&response, find).unwrap();
    server.write_all(&last(right)).await.unwrap();
    server
}

#[tokio::test]
async fn a_token_is_proved_and_the_server_proves_that_it_knows_it() {
    let (mut client, server) = tokio::io::duplex(ROOM);
    let token = token();
    let right = |last: Vec<u8>| [&[0; 4][..], &message(&last)].concat();
    let (outcome, _server) = tokio::join!(
        log_in_native(&mut client, "db:1", &token),
        serve_digest(server, right)
    );
    outcome.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_know_the_token_is_refused() {
    let (mut client, server) = tokio::io::duplex(ROOM);
    let token = token();
    let wrong = |_| [&[0; 4][..], &message(b"rspauth=00000000000000000000000000000000")].concat();
    let (outcome, _server) = tokio::join!(
        log_in_native(&mut client, "db:1", &token),
        serve_digest(server, wrong)
    );
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("may be another server"), "{text}");
}

#[tokio::test]
async fn refusals_over_the_native_protocol_name_class_and_remedy() {
    let class = b"org.apache.hadoop.security.token.SecretManager$InvalidToken";
    let refused = [
        &1_u32.to_be_bytes()[..],
        &message(class),
        &message(b"authentication failed"),
    ]
    .concat();
    let simple = [0_i32.to_be_bytes(), (-88_i32).to_be_bytes()].concat();
    let no_md5 = [&[0; 4][..], &message(b"nonce=\"a\",algorithm=sha")].concat();
    for (answer, parts) in [
        (
            refused,
            ["InvalidToken: authentication failed", "create another token"],
        ),
        (simple, ["has no users", "give none"]),
        (no_md5, ["DIGEST-MD5 challenge", ""]),
        (b"HTTP".to_vec(), ["not SASL", ""]),
        (Vec::new(), ["closed the connection", "log"]),
    ] {
        let (mut client, mut server) = tokio::io::duplex(ROOM);
        server.write_all(&answer).await.unwrap();
        server.shutdown().await.unwrap();
        let error = log_in_native(&mut client, "db:1", &token()).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Login { .. }), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

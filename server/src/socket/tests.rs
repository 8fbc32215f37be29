//! Goal: the halves of a socket keep their contract in clear and under TLS. Method: the server's side on
//! a loopback connection, and rustls' own client on the other.

use std::io::{Read as _, Write as _};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::net::TcpListener;

use super::*;

/// Time of a handshake.
const LIMIT: Duration = Duration::from_mins(1);

/// Settings of a server with a certificate for `localhost`, and of a client that trusts it.
fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

type TlsClient = StreamOwned<ClientConnection, std::net::TcpStream>;

async fn accepted() -> (Socket, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (Socket::new(listener.accept().await.unwrap().0), client)
}

/// Both ends of a connection under TLS. The client runs in a thread of its own.
async fn encrypted<T: Send + 'static>(
    talk: impl FnOnce(TlsClient) -> T + Send + 'static,
) -> (Socket, std::thread::JoinHandle<T>) {
    let (server, client) = configs();
    let (mut socket, tcp) = accepted().await;
    let talking = std::thread::spawn(move || {
        let name = ServerName::try_from("localhost").unwrap();
        talk(StreamOwned::new(
            ClientConnection::new(client, name).unwrap(),
            tcp,
        ))
    });
    // As the port does it: the first bytes are read to detect the protocol.
    let mut received = BytesMut::with_capacity(100);
    socket.read.read_buf(&mut received).await.unwrap();
    let stop = CancellationToken::new();
    let socket = socket.accept_tls(&received, server, LIMIT, &stop).await.unwrap();
    (socket, talking)
}

/// More than the buffers of the sockets take, with a period that no record has.
fn many_bytes() -> Vec<u8> {
    (0..8_u32 << 20).map(|number| (number % 251) as u8).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_arrive_whole_in_both_directions() {
    let (mut socket, talking) = encrypted(|mut client| {
        client.write_all(&many_bytes()).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        answer
    })
    .await;
    let (bytes, mut received) = (many_bytes(), BytesMut::new());
    while received.len() < bytes.len() {
        received.reserve(10_000);
        assert_ne!(socket.read.read_buf(&mut received).await.unwrap(), 0);
    }
    assert!(received == bytes);
    socket.write.write_all(&bytes).await.unwrap();
    socket.write.shutdown().await.unwrap();
    assert!(talking.join().unwrap() == bytes);
}

/// Goal: bytes count as written when they have left. Method: a client that reads nothing; what was
/// counted arrives, although nothing is written again.
#[tokio::test(flavor = "multi_thread")]
async fn written_bytes_have_left() {
    let (read_now, may_read) = std::sync::mpsc::channel::<usize>();
    let (socket, talking) = encrypted(move |mut client| {
        client.write_all(b"begin").unwrap();
        let mut answer = vec![0; may_read.recv().unwrap()];
        client.read_exact(&mut answer).unwrap();
        answer
    })
    .await;
    let (bytes, mut written) = (many_bytes(), 0);
    loop {
        match socket.write.try_write(&bytes[written..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(0 < written && written < bytes.len(), "{written} bytes");
    read_now.send(written).unwrap();
    assert!(talking.join().unwrap() == bytes[..written]);
}

/// Decrypted bytes that a small buffer leaves behind make the socket ready.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_were_decrypted_already_are_read() {
    let (mut socket, talking) = encrypted(|mut client| {
        client.write_all(b"0123456789").unwrap();
        client
    })
    .await;
    let _client = talking.join().unwrap();
    for expected in [b"0123", b"4567"] {
        poll_fn(|context| socket.read.poll_read_ready(context))
            .await
            .unwrap();
        let mut some = BytesMut::with_capacity(4);
        let most = 4.min(some.capacity());
        assert_eq!(socket.read.read_buf(&mut some).await.unwrap(), most);
        assert_eq!(&some[..], expected);
    }
}

/// The client reads the end of the connection, and no reset, although it has sent more.
#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_is_no_tls_is_refused() {
    let (server, _) = configs();
    let (socket, mut client) = accepted().await;
    client.write_all(b"more of the same").unwrap();
    let talking = std::thread::spawn(move || client.read_to_end(&mut Vec::new()));
    let stop = CancellationToken::new();
    let refused = socket.accept_tls(b"\x16\x03\x01\x00\x05hello", server, LIMIT, &stop);
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::InvalidData);
    talking.join().unwrap().expect("the connection ends in order");
}

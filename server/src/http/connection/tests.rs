//! Goal: a connection is closed exactly at its timeouts. Method: a real socket, a site of a few
//! lines, and a clock that jumps to the next timer when there is nothing else to do.

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::limits::admission::{MemoryPermit, Purpose, UNCOUNTED_BYTES};
use crate::security::{Security, Stranger};

const LARGE: usize = 64 << 20;

/// A connection to a site, and the task that serves it.
async fn connect(config: config::Server) -> (TcpStream, JoinHandle<Result<(), End>>) {
    connect_with(config, &memory()).await
}

/// The memory for calls of a server with default settings.
fn memory() -> Arc<Memory> {
    Arc::clone(
        crate::rig::server(crate::config::Config::default())
            .admission()
            .memory(),
    )
}

async fn connect_with(
    config: config::Server,
    memory: &Arc<Memory>,
) -> (TcpStream, JoinHandle<Result<(), End>>) {
    let site = Router::new()
        .route("/", get(|| async { "here" }))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_hours(2)).await;
                "late"
            }),
        )
        .route("/large", get(|| async { vec![0_u8; LARGE] }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, peer) = listener.accept().await.unwrap();
    let memory = Arc::clone(memory);
    let served = tokio::spawn(async move {
        let connection = (Socket::new(socket), BytesMut::new());
        let sender = Sender {
            peer,
            is_encrypted: false,
            login: None,
            stranger: Stranger::default(),
            security: Security::open(&crate::config::Config::default()).expect("there are no users"),
        };
        run(
            connection,
            sender,
            site,
            &config,
            &memory,
            CancellationToken::new(),
        )
        .await
    });
    (client, served)
}

async fn ask(client: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: basalt\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until the answer ends with this.
async fn answer(client: &mut TcpStream, end: &str) {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        assert_ne!(client.read_buf(&mut text).await.unwrap(), 0, "closed");
    }
}

/// The setting in the reason for the end.
async fn ended(served: JoinHandle<Result<(), End>>) -> &'static str {
    match served.await.unwrap() {
        Err(End::Silent(_, setting)) => setting,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_lives_for_ever() {
    let (mut client, _served) = connect(config::Server::default()).await;
    for _ in 0..3 {
        ask(&mut client, "/").await;
        answer(&mut client, "here").await;
        tokio::time::advance(Duration::from_hours(24 * 365)).await;
    }
    ask(&mut client, "/slow").await;
    answer(&mut client, "late").await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_lives_as_long_as_configured() {
    let config = config::Server {
        idle_timeout_ms: 60_000,
        ..config::Server::default()
    };
    let (mut client, served) = connect(config).await;
    // A request that is being served may take its time.
    ask(&mut client, "/slow").await;
    answer(&mut client, "late").await;
    let began = Instant::now();
    assert_eq!(ended(served).await, "server.idle_timeout_ms");
    assert!(
        began.elapsed() >= Duration::from_secs(59),
        "{:?}",
        began.elapsed()
    );
}

/// Bytes that come one by one do not give a head more time.
#[tokio::test(start_paused = true)]
async fn the_head_of_a_request_has_its_time_once() {
    let (mut client, served) = connect(config::Server::default()).await;
    ask(&mut client, "/").await;
    answer(&mut client, "here").await;
    let began = Instant::now();
    let sending = tokio::spawn(async move {
        client.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
        // Ends when the server closes.
        while client.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!(ended(served).await, "server.message_timeout_ms");
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(30) && took < Duration::from_secs(33),
        "{took:?}"
    );
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let (mut client, served) = connect(config::Server::default()).await;
    let began = Instant::now();
    ask(&mut client, "/large").await;
    assert_eq!(ended(served).await, "server.write_timeout_ms");
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(30) && took < Duration::from_secs(32),
        "{took:?}"
    );
}

/// One that reads slowly is not: each piece renews its time.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_is_served() {
    let config = config::Server::default();
    let seen = watch::Sender::new(Seen::default());
    let receiver = seen.subscribe();
    let silent = tokio::spawn(async move { silence(receiver, &config).await });
    for _ in 0..10 {
        note(&seen, |seen| seen.stalled = true);
        tokio::time::sleep(Duration::from_secs(29)).await;
        note(&seen, |seen| seen.stalled = false);
    }
    assert!(!silent.is_finished());
    note(&seen, |seen| seen.stalled = true);
    let End::Silent(limit, setting) = silent.await.unwrap() else {
        panic!("not silent")
    };
    assert_eq!(
        (limit, setting),
        (Duration::from_secs(30), "server.write_timeout_ms")
    );
}

/// A large head is counted while it arrives, and its connection ends when others need the memory.
#[tokio::test]
async fn a_large_head_is_in_the_memory_for_calls() {
    const HEAD: usize = 40 << 10;
    let memory = memory();
    let (mut client, served) = connect_with(config::Server::default(), &memory).await;
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: basalt\r\nX: ")
        .await
        .unwrap();
    client.write_all(&vec![b'x'; HEAD]).await.unwrap();
    while memory.used() < (HEAD - UNCOUNTED_BYTES) as u64 {
        tokio::task::yield_now().await;
    }
    client.write_all(b"\r\n\r\n").await.unwrap();
    answer(&mut client, "here").await;
    assert_eq!(memory.used(), 0, "the head was read");

    client
        .write_all(b"GET / HTTP/1.1\r\nHost: basalt\r\nX: ")
        .await
        .unwrap();
    client.write_all(&vec![b'x'; HEAD]).await.unwrap();
    while memory.used() == 0 {
        tokio::task::yield_now().await;
    }
    // Credit is measured by the machine's clock, and lasts for a quarter of a second.
    let mut other = MemoryPermit::empty(&memory);
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while other.add(memory.limit(), Purpose::Serve).await.is_err() {
        assert!(std::time::Instant::now() < until, "the client is not dropped");
    }
    assert!(matches!(served.await.unwrap(), Err(End::Slow)));
}

//! Goal: a connection's resources are its own and are released when it ends, and a port survives
//! errors. Method: the accepting loop on a real socket, with a server on a simulated disk.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::time::Duration;

use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
use basalt_idl::Call;
use basalt_idl::call::{CallError, read_reply, write_call};
use basalt_idl::thrift1::args::GetTableNames;
use basalt_idl::thrift2::{TScan, args};
use basalt_idl::wire::{BinaryReader, BinaryWriter};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::config::Config;
use crate::security::Strangers;

/// A port that is served.
struct Port {
    address: SocketAddr,
    server: Arc<Server>,
    tasks: TaskTracker,
    accepting: JoinHandle<()>,
    stop: CancellationToken,
}

impl Port {
    fn serve(socket: TcpListener, max_connections: usize, descriptors_end: RawFd) -> Self {
        Self::serve_strangers(socket, max_connections, descriptors_end, Strangers::new(None))
    }

    fn serve_strangers(
        socket: TcpListener,
        max_connections: usize,
        descriptors_end: RawFd,
        strangers: Arc<Strangers>,
    ) -> Self {
        let server = crate::rig::server(Config::default());
        let name = TableName::parse(b"t").unwrap();
        let table = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
        server.engine().create_table(table, Vec::new()).unwrap();
        let address = socket.local_addr().unwrap();
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let listener = Listener {
            socket,
            max_connections,
            setting: "server.max_connections",
            descriptors_end,
            port: server.load().connections.main.clone(),
            strangers,
        };
        let accepting = tokio::spawn(serve(listener, Arc::clone(&server), tasks.clone(), stop.clone()));
        Self {
            address,
            server,
            tasks,
            accepting,
            stop,
        }
    }

    async fn bind(max_connections: usize) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(socket, max_connections, RawFd::MAX)
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the port is open")
    }

    /// Returns when the server has this many connections.
    async fn until_open(&self, connections: usize) {
        while self.tasks.len() != connections {
            tokio::task::yield_now().await;
        }
    }
}

async fn call<C: Call>(client: &mut TcpStream, arguments: &C) -> Result<C::Success, CallError<C::Exception>> {
    let mut message = Vec::new();
    write_call(&mut BinaryWriter::new(&mut message), 7, arguments);
    client
        .write_u32(u32::try_from(message.len()).unwrap())
        .await
        .unwrap();
    client.write_all(&message).await.unwrap();
    let length = client.read_u32().await.expect("the connection is open");
    let mut answer = vec![0; length as usize];
    client.read_exact(&mut answer).await.unwrap();
    read_reply::<C, _>(&mut BinaryReader::new(answer.into()), 7).expect("answers are well-formed")
}

/// Connections are never confused: a scanner belongs to its connection, and ends with that one
/// only.
#[tokio::test]
async fn connections_are_told_apart() {
    let port = Port::bind(10).await;
    let (mut owner, mut other) = (port.connect().await, port.connect().await);
    let open = args::OpenScanner {
        table: Bytes::from_static(b"t"),
        tscan: TScan::default(),
    };
    let scanner_id = call(&mut owner, &open).await.expect("a scanner");
    let fetch = args::GetScannerRows {
        scanner_id,
        num_rows: 1,
    };
    call(&mut other, &fetch).await.expect_err("not the owner");
    let close = args::CloseScanner { scanner_id };
    call(&mut other, &close).await.expect("an unknown id is no error");
    assert_eq!(port.server.sessions().len(), 1);
    drop(other);
    port.until_open(1).await;
    assert_eq!(port.server.sessions().len(), 1);
    call(&mut owner, &fetch).await.expect("still there");
    drop(owner);
    port.until_open(0).await;
    assert_eq!(port.server.sessions().len(), 0);
}

/// One connection is allowed. However it ends, the next one is served.
#[tokio::test]
async fn the_place_of_a_connection_is_given_back() {
    let port = Port::bind(1).await;
    for last_words in [
        &b""[..],
        b"\0\0\0\x20half a message",
        b"no Thrift at all",
        b"\xff\xff\xff\xff",
    ] {
        let mut client = port.connect().await;
        call(&mut client, &GetTableNames {}).await.expect("served");
        let mut refused = port.connect().await;
        assert_eq!(refused.read(&mut [0]).await.unwrap(), 0, "closed at once");
        client.write_all(last_words).await.unwrap();
        client.shutdown().await.unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        drop(client);
        port.until_open(0).await;
    }
    call(&mut port.connect().await, &GetTableNames {})
        .await
        .expect("served");
}

/// A port whose accepts fail, as they do without file descriptors, keeps trying. Here the socket
/// does not listen.
#[tokio::test(start_paused = true)]
async fn a_port_outlives_accepts_that_fail() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let port = Port::serve(TcpListener::from_std(socket.into()).unwrap(), 10, RawFd::MAX);
    // The clock jumps from one try to the next.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!port.accepting.is_finished());
    port.stop.cancel();
    port.accepting.await.unwrap();
}

/// Goal: descriptors are left for files. Method: a port whose connections may have none. A call is
/// sent, so that a connection which is served after all gets an answer.
#[tokio::test]
async fn a_connection_that_would_take_a_files_descriptor_is_closed() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = Port::serve(socket, 10, 0);
    let mut refused = port.connect().await;
    let mut message = Vec::new();
    write_call(&mut BinaryWriter::new(&mut message), 7, &GetTableNames {});
    // The system may report the closed peer already here, or at the read.
    if refused.write_all(&message).await.is_ok() {
        let answer = refused.read(&mut [0]).await;
        assert!(matches!(answer, Ok(0) | Err(_)), "{answer:?}");
    }
    assert_eq!(port.tasks.len(), 0);
}

/// Goal: an address has no more connections without a login than it may, and has room again when one ends.
#[tokio::test]
async fn an_address_has_so_many_connections_without_a_login() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = Port::serve_strangers(socket, 10, RawFd::MAX, Strangers::new(Some(2)));
    let (mut first, mut second) = (port.connect().await, port.connect().await);
    for client in [&mut first, &mut second] {
        call(client, &GetTableNames {}).await.expect("served");
    }
    let mut refused = port.connect().await;
    assert_eq!(refused.read(&mut [0]).await.unwrap(), 0, "closed at once");
    drop(first);
    port.until_open(1).await;
    call(&mut port.connect().await, &GetTableNames {})
        .await
        .expect("served");
}

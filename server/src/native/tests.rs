//! Native calls during a flood of others: a real socket, a server on a simulated disk, and a pool with
//! as many threads as the server has.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
use basalt_idl::native::cells::Cells;
use basalt_idl::native::frame::{Request, Response, put_connection_header};
use basalt_idl::native::messages as pb;
use bytes::{Bytes, BytesMut};
use prost::Message;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::run;
use crate::config::Config;
use crate::limits::admission::Class;
use crate::rig;
use crate::security::{Access, Login, Stranger};
use crate::serve::{BLOCKING_THREADS, DATA_THREADS};
use crate::server::Server;
use crate::socket::Socket;

/// Data calls that wait while the pool is full.
const WAITING: usize = 1_000;

/// The preamble of a client without Kerberos.
const SIMPLE: &[u8] = b"HBas\0\x50";

/// A native connection of this test.
pub(super) struct Client(TcpStream);

impl Client {
    pub(super) async fn connect(server: &Arc<Server>, service: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        Self::over(socket, accepted, server, (service, None), None).await
    }

    /// A connection of a client that has logged in.
    pub(super) async fn connect_as(server: &Arc<Server>, service: &str, login: Login) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        Self::over(socket, accepted, server, (service, None), Some(login)).await
    }

    /// A connection of ClientService whose sockets hold little.
    async fn connect_narrow(server: &Arc<Server>, codec: Option<&str>) -> Self {
        const BUFFER_BYTES: u32 = 16 << 10;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(BUFFER_BYTES).unwrap();
        let socket = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let send_buffer = SockRef::from(&accepted).set_send_buffer_size(BUFFER_BYTES as usize);
        send_buffer.unwrap();
        Self::over(socket, accepted, server, ("ClientService", codec), None).await
    }

    /// Serves `accepted`, and sends what begins a connection.
    async fn over(
        socket: TcpStream,
        accepted: TcpStream,
        server: &Arc<Server>,
        (service, codec): (&str, Option<&str>),
        login: Option<Login>,
    ) -> Self {
        let (server, stop) = (Arc::clone(server), CancellationToken::new());
        tokio::spawn(run(
            server,
            Socket::new(accepted),
            BytesMut::new(),
            (1, (login, Stranger::default())),
            stop,
        ));
        let mut client = Self(socket);
        let header = pb::ConnectionHeader {
            service_name: Some(service.to_owned()),
            cell_block_codec_class: codec.map(str::to_owned),
            version_info: codec.map(|_| pb::VersionInfo {
                version_major: Some(2),
                version_minor: Some(6),
                ..pb::VersionInfo::default()
            }),
            ..pb::ConnectionHeader::default()
        };
        let mut out = SIMPLE.to_vec();
        put_connection_header(&header, &mut out);
        client.0.write_all(&out).await.unwrap();
        client
    }

    /// Makes a call. Panics when it is refused, or not answered in time.
    async fn ask<M: Message + Default>(&mut self, method: &str, call: &impl Message) -> M {
        let header = pb::RequestHeader {
            call_id: Some(1),
            method_name: Some(method.to_owned()),
            ..pb::RequestHeader::default()
        };
        let mut out = Vec::new();
        Request::encode(&header, call, b"", &mut out);
        self.0.write_all(&out).await.unwrap();
        let answered = tokio::time::timeout(Duration::from_secs(30), self.response()).await;
        let response = answered.unwrap_or_else(|_| panic!("{method} waits for other calls"));
        assert_eq!(response.header.exception, None, "{method}");
        M::decode(response.result).unwrap()
    }

    /// Makes a call whose request is encoded already. The error is the class of the exception.
    pub(super) async fn answer(&mut self, method: &str, request: Bytes) -> Result<Bytes, String> {
        let header = pb::RequestHeader {
            call_id: Some(1),
            method_name: Some(method.to_owned()),
            request_param: Some(true),
            ..pb::RequestHeader::default()
        };
        let header = header.encode_length_delimited_to_vec();
        let mut message = Vec::new();
        prost::encoding::encode_varint(request.len() as u64, &mut message);
        message.extend_from_slice(&request);
        let length = (header.len() + message.len()) as u32;
        let frame = [&length.to_be_bytes()[..], &header, &message].concat();
        self.0.write_all(&frame).await.unwrap();
        let response = self.response().await;
        match response.header.exception {
            None => Ok(response.result),
            Some(exception) => Err(exception.exception_class_name.unwrap_or_default()),
        }
    }

    async fn response(&mut self) -> Response {
        let length = self.0.read_u32().await.unwrap();
        let mut frame = vec![0; length as usize];
        self.0.read_exact(&mut frame).await.unwrap();
        Response::decode(Bytes::from(frame)).unwrap()
    }
}

/// A server with the table `t`, and queues as long as these tests need.
fn server() -> Arc<Server> {
    let mut config = Config::default();
    config.requests.max_waiting = 4 * WAITING;
    config.scanner.max_sessions_per_connection = 4 * WAITING;
    with_table_t(config, Access::Everybody)
}

/// A server with the table `t`.
pub(super) fn with_table_t(config: Config, access: Access) -> Arc<Server> {
    let engine = crate::rig::engine_on(&SimFs::new(1, SimOptions::default()), &config);
    let server = crate::rig::server_of(engine, config, DATA_THREADS);
    let table = TableName::parse(b"t").unwrap();
    let descriptor = TableDescriptor::new(table, vec![FamilyDescriptor::new(b"f")]);
    rig::engine(&server).create_table(descriptor, Vec::new()).unwrap();
    Arc::new(server.with_access(access))
}

/// Fills the threads of data calls, and the queue in front of them, until the sender is dropped.
async fn flood(server: &Arc<Server>) -> std::sync::mpsc::Sender<()> {
    let (blocked, gate) = std::sync::mpsc::channel();
    let gate = Arc::new(parking_lot::Mutex::new(gate));
    for _ in 0..DATA_THREADS + WAITING {
        let (server, gate) = (Arc::clone(server), Arc::clone(&gate));
        let work = move |_: &Server| {
            // Fails when the test has dropped the sender.
            let _ = gate.lock().recv();
            Ok(())
        };
        tokio::spawn(async move { server.run_queued(Class::User, work).await });
    }
    while server.admission().waiting() < WAITING {
        tokio::task::yield_now().await;
    }
    blocked
}

/// A scan of the regions of `t` as asynchbase sends it: with a batch, for which it needs the pool.
fn regions_of_t() -> pb::ScanRequest {
    pb::ScanRequest {
        region: Some(pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
            value: Bytes::from_static(b"hbase:meta,,1"),
        }),
        scan: Some(pb::Scan {
            start_row: Some(Bytes::from_static(b"t,,")),
            stop_row: Some(Bytes::from_static(b"t ,,")),
            batch_size: Some(4096),
            ..pb::Scan::default()
        }),
        number_of_rows: Some(10),
        ..pb::ScanRequest::default()
    }
}

/// Look-ups of regions, polls of procedures and other calls of the master and of administration are
/// answered while data calls hold all of their threads and wait by the thousand.
#[test]
fn calls_of_meta_and_admin_do_not_wait_for_data_calls() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = server();
        let blocked = flood(&server).await;
        let mut client = Client::connect(&server, "ClientService").await;
        let regions: pb::ScanResponse = client.ask("Scan", &regions_of_t()).await;
        assert_eq!(regions.results.len(), 1);
        let mut master = Client::connect(&server, "MasterService").await;
        let tables: pb::GetTableDescriptorsResponse = master
            .ask("GetTableDescriptors", &pb::GetTableDescriptorsRequest::default())
            .await;
        assert_eq!(tables.table_schema.len(), 1);
        let disabled: pb::DisableTableResponse = master
            .ask(
                "DisableTable",
                &pb::DisableTableRequest {
                    table_name: super::schema::to_table_name(&TableName::parse(b"t").unwrap()),
                    ..pb::DisableTableRequest::default()
                },
            )
            .await;
        let poll = pb::GetProcedureResultRequest {
            proc_id: disabled.proc_id.expect("a procedure"),
        };
        let state: pb::GetProcedureResultResponse = master.ask("getProcedureResult", &poll).await;
        assert_eq!(state.state(), pb::get_procedure_result_response::State::Finished);
        let mut admin = Client::connect(&server, "AdminService").await;
        let online: pb::GetOnlineRegionResponse = admin
            .ask("GetOnlineRegion", &pb::GetOnlineRegionRequest::default())
            .await;
        assert!(!online.region_info.is_empty());
        assert_eq!(server.admission().waiting(), WAITING, "the flood is still there");
        drop(blocked);
    });
}

/// A connection with 1,000 unanswered calls is not read further; other connections are served. When
/// the calls continue, all of them are answered.
#[test]
fn calls_in_flight_on_one_connection_are_bounded() {
    const SENT: u32 = 1_500;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = server();
        let blocked = flood(&server).await;
        let table = TableName::parse(b"t").unwrap();
        let region = rig::engine(&server).regions(&table).unwrap()[0].name();
        let mut call = regions_of_t();
        call.region.as_mut().unwrap().value = region.into();
        let mut client = Client::connect(&server, "ClientService").await;
        let mut frames = Vec::new();
        for id in 0..SENT {
            add_call(id, "Scan", &call, &mut frames);
        }
        let (mut read, mut write) = client.0.split();
        let sent = async { write.write_all(&frames).await.unwrap() };
        let bounded = async {
            let full = WAITING + super::connection::CALLS_IN_FLIGHT;
            while server.admission().waiting() < full {
                tokio::task::yield_now().await;
            }
            let mut other = Client::connect(&server, "MasterService").await;
            for _ in 0..200 {
                let answer: pb::IsMasterRunningResponse =
                    other.ask("IsMasterRunning", &pb::IsMasterRunningRequest {}).await;
                assert!(answer.is_master_running);
            }
            assert_eq!(server.admission().waiting(), full);
            drop(blocked);
        };
        let answered = async {
            let mut ids = std::collections::BTreeSet::new();
            while ids.len() < SENT as usize {
                let mut frame = vec![0; read.read_u32().await.unwrap() as usize];
                read.read_exact(&mut frame).await.unwrap();
                let response = Response::decode(Bytes::from(frame)).unwrap();
                assert_eq!(response.header.exception, None);
                assert!(ids.insert(response.header.call_id.unwrap()), "answered twice");
            }
        };
        let all = async { tokio::join!(sent, bounded, answered) };
        let limit = Duration::from_mins(2);
        tokio::time::timeout(limit, all)
            .await
            .expect("every call is answered");
    });
}

/// Appends the frame of a call.
fn add_call(id: u32, method: &str, call: &impl Message, frames: &mut Vec<u8>) {
    let header = pb::RequestHeader {
        call_id: Some(id),
        method_name: Some(method.to_owned()),
        ..pb::RequestHeader::default()
    };
    Request::encode(&header, call, b"", frames);
}

fn region_of_t(server: &Server) -> pb::RegionSpecifier {
    let table = TableName::parse(b"t").unwrap();
    pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
        value: rig::engine(server).regions(&table).unwrap()[0].name().into(),
    }
}

fn put(region: &pb::RegionSpecifier, row: &'static str, value: Bytes) -> pb::MutateRequest {
    pb::MutateRequest {
        region: region.clone(),
        mutation: pb::MutationProto {
            row: Some(Bytes::from_static(row.as_bytes())),
            mutate_type: Some(pb::mutation_proto::MutationType::Put.into()),
            column_value: vec![pb::mutation_proto::ColumnValue {
                family: Bytes::from_static(b"f"),
                qualifier_value: vec![pb::mutation_proto::column_value::QualifierValue {
                    value: Some(value),
                    ..Default::default()
                }],
            }],
            ..pb::MutationProto::default()
        },
        ..pb::MutateRequest::default()
    }
}

fn get(region: &pb::RegionSpecifier, row: &'static str) -> pb::GetRequest {
    pb::GetRequest {
        region: region.clone(),
        get: pb::Get {
            row: Bytes::from_static(row.as_bytes()),
            ..pb::Get::default()
        },
    }
}

/// A delete of the newest version, which runs on the pool.
fn delete_newest(region: &pb::RegionSpecifier, row: &'static str) -> pb::MutateRequest {
    let mut call = put(region, row, Bytes::new());
    call.mutation.mutate_type = Some(pb::mutation_proto::MutationType::Delete.into());
    let column = &mut call.mutation.column_value[0].qualifier_value[0];
    column.delete_type = Some(pb::mutation_proto::DeleteType::DeleteOneVersion.into());
    call
}

/// A client that reads no responses does not stop its own calls: one that holds a lock or a permit
/// would stop those of others. A delete that has to wait is carried out, and another client sees it.
#[test]
fn calls_go_on_while_their_client_reads_nothing() {
    // More than the buffers of both sockets hold.
    const LARGE: usize = 4 << 20;
    const LARGE_GETS: u32 = 8;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = server();
        let region = region_of_t(&server);
        let mut client = Client::connect(&server, "ClientService").await;
        let large = Bytes::from(vec![b'v'; LARGE]);
        let _: pb::MutateResponse = client.ask("Mutate", &put(&region, "large", large)).await;
        let newest = put(&region, "newest", Bytes::from_static(b"v"));
        let _: pb::MutateResponse = client.ask("Mutate", &newest).await;
        let mut frames = Vec::new();
        for id in 0..LARGE_GETS {
            add_call(id, "Get", &get(&region, "large"), &mut frames);
        }
        let delete = delete_newest(&region, "newest");
        add_call(LARGE_GETS, "Mutate", &delete, &mut frames);
        client.0.write_all(&frames).await.unwrap();
        let mut other = Client::connect(&server, "ClientService").await;
        let applied = async {
            loop {
                let found: pb::GetResponse = other.ask("Get", &get(&region, "newest")).await;
                if found.result.is_some_and(|result| result.cell.is_empty()) {
                    break;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), applied)
            .await
            .expect("the delete is applied");
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..=LARGE_GETS {
            let response = client.response().await;
            assert_eq!(response.header.exception, None);
            ids.insert(response.header.call_id.unwrap());
        }
        assert_eq!(ids, (0..=LARGE_GETS).collect(), "every call is answered once");
    });
}

/// A server with the table `t` and little memory for calls: messages and arguments may have 3.9 MiB of it.
fn with_little_memory() -> Arc<Server> {
    let mut config = Config::default();
    config.server.max_message_bytes = 1 << 20;
    config.requests.memory_bytes = 9 << 19;
    with_table_t(config, Access::Everybody)
}

/// The frame of a put of a large value.
fn large_put(server: &Server, id: u32, row: &'static str, bytes: usize) -> Vec<u8> {
    let call = put(&region_of_t(server), row, Bytes::from(vec![b'v'; bytes]));
    let mut frame = Vec::new();
    add_call(id, "Mutate", &call, &mut frame);
    frame
}

/// Returns when the bytes that calls hold are in this range.
async fn held(server: &Server, bytes: std::ops::Range<u64>) {
    while !bytes.contains(&server.admission().memory().used()) {
        tokio::task::yield_now().await;
    }
}

/// A client that has sent half of a frame, for which the server has reserved memory.
async fn half_sent(server: &Arc<Server>, id: u32, bytes: usize) -> Client {
    let before = server.admission().memory().used();
    let mut client = Client::connect(server, "ClientService").await;
    let frame = large_put(server, id, "half", bytes);
    client.0.write_all(&frame[..frame.len() / 2]).await.unwrap();
    let reserved = before + bytes as u64 - (64 << 10)..before + bytes as u64 + (64 << 10);
    held(server, reserved).await;
    client
}

/// Whether the connection is open, and the server has sent nothing.
fn is_silent(client: &Client) -> bool {
    let read = client.0.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Half-sent frames make way for a whole one: as many as are needed, and their clients receive the reason
/// with the number of the call.
#[tokio::test]
async fn half_a_frame_makes_way_for_a_whole_one() {
    const FRAME_BYTES: usize = 1_000_000;
    let server = with_little_memory();
    let mut dropped = half_sent(&server, 7, FRAME_BYTES).await;
    let others = [
        half_sent(&server, 8, FRAME_BYTES).await,
        half_sent(&server, 9, FRAME_BYTES).await,
    ];
    let mut client = Client::connect(&server, "ClientService").await;
    let whole = large_put(&server, 1, "whole", FRAME_BYTES);
    client.0.write_all(&whole).await.unwrap();
    assert_eq!(client.response().await.header.exception, None);
    let response = dropped.response().await;
    assert_eq!(response.header.call_id, Some(7));
    let exception = response.header.exception.expect("a refusal");
    assert_eq!(
        exception.exception_class_name(),
        "org.apache.hadoop.hbase.RegionTooBusyException"
    );
    let text = exception.stack_trace();
    assert!(text.contains("the client was too slow"), "{text}");
    assert_eq!(dropped.0.read(&mut [0]).await.unwrap(), 0, "the connection ends");
    assert!(others.iter().all(is_silent), "others stay");
}

/// A client that does not read its responses counts as slow with the memory of all of them, so that not
/// more clients are dropped than others need.
#[tokio::test]
async fn unread_responses_count_together() {
    const RESPONSE_BYTES: usize = 400_000;
    const GETS: u32 = 5;
    let server = with_little_memory();
    let mut client = Client::connect(&server, "ClientService").await;
    let large = large_put(&server, 1, "large", RESPONSE_BYTES);
    client.0.write_all(&large).await.unwrap();
    assert_eq!(client.response().await.header.exception, None);
    let mut reader = Client::connect_narrow(&server, None).await;
    let mut frames = Vec::new();
    for id in 0..GETS {
        add_call(id, "Get", &get(&region_of_t(&server), "large"), &mut frames);
    }
    reader.0.write_all(&frames).await.unwrap();
    let all = u64::from(GETS) * RESPONSE_BYTES as u64;
    let memory = server.admission().memory();
    let counted = async {
        while memory.of_slow_clients() < all * 9 / 10 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), counted)
        .await
        .unwrap_or_else(|_| panic!("{} of {} bytes", memory.of_slow_clients(), memory.used()));
    assert_eq!(memory.of_slow_clients(), memory.used());
}

/// Goal: responses with cell blocks of their own leave with small ones in one write, each whole and in the
/// order of the calls, even if the socket takes them in small parts. Method: gets of small and large values
/// in turn, more than one write lists, to a client with a narrow socket.
#[tokio::test]
async fn large_and_small_responses_are_written_together() {
    const GETS: u32 = 200;
    let server = server();
    let region = region_of_t(&server);
    let rows = [("large", 20_000), ("small", 10)];
    let mut client =
        Client::connect_narrow(&server, Some("org.apache.hadoop.hbase.codec.KeyValueCodec")).await;
    for (row, bytes) in rows {
        let put = put(&region, row, Bytes::from(vec![b'v'; bytes]));
        client.ask::<pb::MutateResponse>("Mutate", &put).await;
    }
    let mut frames = Vec::new();
    for id in 0..GETS {
        let (row, _) = rows[id as usize % 2];
        add_call(id, "Get", &get(&region, row), &mut frames);
    }
    let (mut read, mut write) = client.0.into_split();
    let sent = tokio::spawn(async move { write.write_all(&frames).await.map(|()| write) });
    for id in 0..GETS {
        let length = read.read_u32().await.unwrap();
        let mut frame = vec![0; length as usize];
        read.read_exact(&mut frame).await.unwrap();
        let response = Response::decode(Bytes::from(frame)).unwrap();
        assert_eq!(response.header.call_id, Some(id));
        let cells: Vec<_> = Cells::new(&response.cells).collect::<Result<_, _>>().unwrap();
        let (row, bytes) = rows[id as usize % 2];
        assert_eq!((cells[0].row, cells[0].value.len()), (row.as_bytes(), bytes));
    }
    sent.await.unwrap().unwrap();
}

/// Answers about tables and regions are reserved before they are made, and a client that reads none of
/// them holds no more than the memory for calls; it is dropped for a call that needs that.
#[tokio::test]
async fn answers_about_tables_are_reserved() {
    const OPTION_BYTES: usize = 60 << 10;
    let server = with_little_memory();
    for table in 0..4 {
        let name = TableName::parse(format!("described{table}").as_bytes()).unwrap();
        let mut table = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
        table.attributes.insert(b"k".to_vec(), vec![b'v'; OPTION_BYTES]);
        rig::engine(&server).create_table(table, Vec::new()).unwrap();
    }
    let mut reader = Client::connect(&server, "MasterService").await;
    let all = pb::GetTableDescriptorsRequest::default();
    let found: pb::GetTableDescriptorsResponse = reader.ask("GetTableDescriptors", &all).await;
    assert!(found.encoded_len() > 4 * OPTION_BYTES);
    let (memory, mut frames) = (server.admission().memory(), Vec::new());
    let mut silent = Client::connect(&server, "MasterService").await;
    for id in 0..200 {
        add_call(id, "GetTableDescriptors", &all, &mut frames);
    }
    silent.0.write_all(&frames).await.unwrap();
    let full = async {
        while memory.room() > 8 * 4 * OPTION_BYTES as u64 {
            assert!(memory.used() <= memory.limit() * 9 / 8);
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, full)
        .await
        .expect("the answers are counted");
    let served = async {
        let mut call = Vec::new();
        add_call(7, "GetTableDescriptors", &all, &mut call);
        loop {
            reader.0.write_all(&call).await.unwrap();
            if reader.response().await.header.exception.is_none() {
                break;
            }
        }
    };
    tokio::time::timeout(limit, served)
        .await
        .expect("others are served");
}

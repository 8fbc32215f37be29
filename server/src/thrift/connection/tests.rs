//! Goal: a connection ends exactly at its timeouts. Method: a real socket, a server on a simulated
//! disk, and a clock that is moved by hand: a year takes no time.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
use basalt_idl::call::write_call;
use basalt_idl::thrift1::args::GetTableNames;
use basalt_idl::wire::{BinaryWriter, Protocol, Writer as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::config::{self, Config};
use crate::rig;
use crate::security::Owner;

/// Wire formats of connections.
const FRAMED: WireFormat = WireFormat {
    protocol: Protocol::BinaryStrict,
    framed: true,
};
const UNFRAMED: WireFormat = WireFormat {
    protocol: Protocol::BinaryStrict,
    framed: false,
};

/// A connection to a server with these settings, and the task that serves it. Messages are framed.
async fn connect(settings: config::Server) -> (TcpStream, JoinHandle<Result<(), End>>) {
    connect_to(crate::rig::server(Config {
        server: settings,
        ..Config::default()
    }))
    .await
}

pub(super) async fn connect_to(server: Arc<Server>) -> (TcpStream, JoinHandle<Result<(), End>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let served = tokio::spawn(serve(server, socket, FRAMED, CancellationToken::new()));
    (client, served)
}

/// Serves a connection that has sent nothing yet.
async fn serve(
    server: Arc<Server>,
    socket: TcpStream,
    wire_format: WireFormat,
    stop: CancellationToken,
) -> Result<(), End> {
    let first = (wire_format, BytesMut::new());
    let caller = Caller::anonymous(Owner::Connection(1), socket.peer_addr().ok());
    run(server, Socket::new(socket), first, caller, stop).await
}

/// Memory of an idle connection, besides its socket and its buffers. A call's future is a part of
/// it, and is moved several times before its first poll: rare branches are boxed.
#[tokio::test]
async fn the_task_of_a_connection_is_small() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let server = crate::rig::server(Config::default());
    let first = (FRAMED, BytesMut::new());
    let caller = Caller::anonymous(Owner::Connection(1), None);
    let task = run(
        server,
        Socket::new(socket),
        first,
        caller,
        CancellationToken::new(),
    );
    let bytes = size_of_val(&task);
    println!("{bytes} bytes");
    assert!(bytes <= 3584, "{bytes} bytes");
}

fn framed_call() -> Vec<u8> {
    let mut message = vec![0; 4];
    write_call(&mut BinaryWriter::new(&mut message), 7, &GetTableNames {});
    let length = u32::try_from(message.len() - 4).unwrap();
    message[..4].copy_from_slice(&length.to_be_bytes());
    message
}

async fn call(client: &mut TcpStream) {
    client.write_all(&framed_call()).await.unwrap();
    let length = client.read_u32().await.expect("the connection is open");
    let mut answer = vec![0; length as usize];
    client.read_exact(&mut answer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_lives_for_ever() {
    let (mut client, _served) = connect(config::Server::default()).await;
    for days in [1, 365] {
        call(&mut client).await;
        tokio::time::advance(Duration::from_hours(24 * days)).await;
    }
    call(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_lives_as_long_as_configured() {
    let (mut client, served) = connect(config::Server {
        idle_timeout_ms: 60_000,
        ..config::Server::default()
    })
    .await;
    for _ in 0..3 {
        call(&mut client).await;
        // Each call begins the time anew.
        tokio::time::advance(Duration::from_secs(59)).await;
    }
    call(&mut client).await;
    // The clock jumps to the next timer when there is nothing else to do.
    let end = served.await.unwrap().unwrap_err();
    assert!(matches!(end, End::Idle(_)), "{end}");
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "closed");
}

/// A message that has begun must end; bytes that come one by one do not give it more time.
#[tokio::test(start_paused = true)]
async fn a_message_has_its_time_once() {
    let (mut client, served) = connect(config::Server {
        message_timeout_ms: 10_000,
        ..config::Server::default()
    })
    .await;
    // A frame of 1 MiB, of which little comes.
    client.write_all(&[0, 0x10, 0, 0, 0x80, 1, 0, 1]).await.unwrap();
    let began = Instant::now();
    let mut served = std::pin::pin!(served);
    let end = loop {
        tokio::select! {
            end = &mut served => break end.unwrap().unwrap_err(),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        // The server may be gone already.
        let _ = client.write_all(&[0]).await;
    };
    assert!(matches!(end, End::SlowMessage(_)), "{end}");
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(10) && took < Duration::from_secs(13),
        "{took:?}"
    );
}

/// A client that sends calls and reads no answer is waited for up to the timeout, and then closed.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let (client, served) = connect(config::Server {
        write_timeout_ms: 30_000,
        ..config::Server::default()
    })
    .await;
    let began = Instant::now();
    let (_unread, mut sending) = client.into_split();
    let calls = tokio::spawn(async move {
        let calls = framed_call().repeat(1000);
        // Ends when the server closes.
        while sending.write_all(&calls).await.is_ok() {}
    });
    let end = served.await.unwrap().unwrap_err();
    assert!(matches!(end, End::SlowReader(_)), "{end}");
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(30) && took < Duration::from_secs(32),
        "{took:?}"
    );
    calls.await.unwrap();
}

/// Tables of [`with_long_answers`], and bytes of each one's name.
const TABLES: usize = 200;
const NAME_BYTES: usize = 200;
/// Least bytes of an answer with their names.
const LONG_ANSWER_BYTES: usize = TABLES * NAME_BYTES;

/// A server that has long answers to `getTableNames`.
fn with_long_answers() -> Arc<Server> {
    let server = crate::rig::server(Config::default());
    for number in 0..TABLES {
        let name = TableName::parse(format!("{number:0NAME_BYTES$}").as_bytes()).unwrap();
        let table = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
        rig::engine(&server).create_table(table, Vec::new()).unwrap();
    }
    server
}

/// Goal: calls that came together are all answered, also when their answers are too long to leave together.
/// Method: more of them than leave at once, and a client that sends nothing behind them. The paused clock
/// jumps to the end of the time that a message has, if the server waits for one.
#[tokio::test(start_paused = true)]
async fn calls_that_came_together_are_all_answered() {
    const CALLS: usize = 3 * FLUSH_BYTES / LONG_ANSWER_BYTES;
    let (mut client, _served) = connect_to(with_long_answers()).await;
    client.write_all(&framed_call().repeat(CALLS)).await.unwrap();
    for number in 0..CALLS {
        let length = client.read_u32().await;
        let length = length.unwrap_or_else(|error| panic!("answer {number} of {CALLS}: {error}"));
        let mut answer = vec![0; length as usize];
        client.read_exact(&mut answer).await.unwrap();
        assert!(answer.len() > LONG_ANSWER_BYTES);
    }
}

/// Answers to calls that came together leave together, but memory for a client that does not read
/// is bounded: most of its calls are not even begun.
#[tokio::test(start_paused = true)]
async fn answers_are_not_gathered_for_a_client_that_does_not_read() {
    const CALLS: usize = 100;
    const BUFFER_BYTES: u32 = 64 << 10;
    let server = with_long_answers();
    let (accepting, client) = (TcpSocket::new_v4().unwrap(), TcpSocket::new_v4().unwrap());
    accepting.set_send_buffer_size(BUFFER_BYTES).unwrap();
    client.set_recv_buffer_size(BUFFER_BYTES).unwrap();
    accepting.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = accepting.listen(1).unwrap();
    let mut client = client.connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let mut message = Vec::new();
    write_call(&mut BinaryWriter::new(&mut message), 7, &GetTableNames {});
    // All of them arrive before the first is read.
    client.write_all(&message.repeat(CALLS)).await.unwrap();
    let end = serve(Arc::clone(&server), socket, UNFRAMED, CancellationToken::new())
        .await
        .unwrap_err();
    assert!(matches!(end, End::SlowReader(_)), "{end}");
    let answered: u64 = server.load().call_counts().iter().map(|count| count.calls).sum();
    let bytes = usize::try_from(answered).unwrap() * LONG_ANSWER_BYTES;
    assert!(
        (FLUSH_BYTES..4 * FLUSH_BYTES).contains(&bytes),
        "{answered} calls were answered, {bytes} bytes"
    );
}

/// The memory that an idle connection keeps for its next call is freed after a while, and the
/// connection serves on.
#[tokio::test(start_paused = true)]
async fn an_idle_connection_gives_memory_back() {
    let mut messages = Messages::new(&Config::default(), UNFRAMED, BytesMut::new());
    let message = vec![0x80; 1 << 20];
    for piece in message.chunks(8 << 10) {
        messages.space().extend_from_slice(piece);
    }
    messages.space().clear();
    assert!(messages.kept_bytes() > IDLE_KEEP_BYTES);
    messages.release();
    assert!(messages.kept_bytes() <= IDLE_KEEP_BYTES);

    let (mut client, _served) = connect(config::Server::default()).await;
    call(&mut client).await;
    tokio::time::advance(RELEASE_AFTER * 2).await;
    call(&mut client).await;
}

/// A message that arrives while other calls hold all memory is not read to its end. Its sender gets
/// the reason.
#[tokio::test]
async fn a_large_message_that_there_is_no_memory_for_is_refused() {
    let mut config = Config::default();
    config.server.max_message_bytes = 1 << 20;
    config.requests.memory_bytes = 1 << 20;
    let server = crate::rig::server(config);
    let mut message = vec![0; 4];
    write_call(&mut BinaryWriter::new(&mut message), 7, &GetTableNames {});
    message[..4].copy_from_slice(&1_000_000_u32.to_be_bytes());
    message.resize(700_000, 0);

    let mut others = MemoryPermit::empty(server.admission().memory());
    others.set(600_000);
    let before = server.admission().memory().used();
    let (mut client, served) = connect_to(Arc::clone(&server)).await;
    client.write_all(&message).await.unwrap();
    let length = client.read_u32().await.unwrap();
    let mut answer = vec![0; length as usize];
    client.read_exact(&mut answer).await.unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(
        text.contains("getTableNames") && text.contains("requests.memory_bytes is 1048576"),
        "{text}"
    );
    drop(client);
    assert!(matches!(served.await.unwrap(), Err(End::Busy(_))));
    assert_eq!(
        server.admission().memory().used(),
        before,
        "what had arrived is forgotten"
    );

    // A small message is read and answered.
    others.set(2 << 20);
    let (mut client, _served) = connect_to(Arc::clone(&server)).await;
    call(&mut client).await;
}

/// Goal: a client that never pauses does not delay a stop of the server. Method: a thread that
/// writes calls for as long as the socket takes them, far more than are answered meanwhile.
#[tokio::test]
async fn a_client_that_never_pauses_does_not_hold_up_a_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let stop = CancellationToken::new();
    let server = crate::rig::server(Config::default());
    let served = tokio::spawn(serve(Arc::clone(&server), socket, FRAMED, stop.clone()));
    let calls = || {
        server
            .load()
            .call_counts()
            .iter()
            .map(|of_method| of_method.calls)
            .sum::<u64>()
    };

    let (mut writer, mut reader) = (client.try_clone().unwrap(), client);
    let many = framed_call().repeat(10_000);
    let flood = std::thread::spawn(move || while writer.write_all(&many).is_ok() {});
    let (answered, first_answer) = tokio::sync::oneshot::channel();
    let drain = std::thread::spawn(move || {
        let mut answers = vec![0; 64 << 10];
        let mut answered = Some(answered);
        while reader.read(&mut answers).is_ok_and(|count| count > 0) {
            if let Some(answered) = answered.take() {
                answered.send(()).unwrap();
            }
        }
    });
    first_answer.await.unwrap();
    stop.cancel();
    let before = calls();
    let end = timeout(Duration::from_mins(1), served).await;
    assert!(end.expect("it serves on").unwrap().is_ok());
    // The bytes received so far.
    assert!(
        calls() - before < 20_000,
        "{} calls after the stop",
        calls() - before
    );
    flood.join().unwrap();
    drain.join().unwrap();
}

/// A server, a framed call that only a thread of its pool can answer, and all places there.
async fn with_slow_call() -> (Arc<Server>, Vec<u8>, Vec<crate::limits::admission::Permit>) {
    let mut config = Config::default();
    // The paused clock jumps from timer to timer.
    config.server.write_timeout_ms = 86_400_000;
    let server = crate::rig::server(config);
    let table = TableName::parse(b"t").unwrap();
    let descriptor = TableDescriptor::new(table, vec![FamilyDescriptor::new(b"f")]);
    rig::engine(&server).create_table(descriptor, Vec::new()).unwrap();
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(
            server
                .admission()
                .permit(crate::limits::admission::Class::User)
                .await
                .unwrap(),
        );
    }
    let mut slow = vec![0; 4];
    let scan = basalt_idl::thrift2::args::GetScannerResults {
        table: Bytes::from_static(b"t"),
        tscan: basalt_idl::thrift2::TScan {
            filter_string: Some(Bytes::from_static(b"KeyOnlyFilter()")),
            ..Default::default()
        },
        num_rows: 1,
    };
    write_call(&mut BinaryWriter::new(&mut slow), 8, &scan);
    let length = u32::try_from(slow.len() - 4).unwrap();
    slow[..4].copy_from_slice(&length.to_be_bytes());
    (server, slow, places)
}

/// Goal: an answer does not wait for a later call that takes long, and answers that are there together leave
/// together. Method: three calls in one packet, of which the last waits for a thread of the pool, and the
/// test has all of them.
#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_no_slow_call_behind_it() {
    let (server, slow, mut places) = with_slow_call().await;
    let (mut client, _served) = connect_to(Arc::clone(&server)).await;
    let together = [framed_call(), framed_call(), slow].concat();
    client.write_all(&together).await.unwrap();
    let answer = async |client: &mut TcpStream| {
        let length = client.read_u32().await.expect("the connection is open");
        let mut answer = vec![0; length as usize];
        client.read_exact(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    for _ in 0..2 {
        let quick = timeout(Duration::from_mins(1), answer(&mut client)).await;
        assert!(quick.expect("it is held back").contains("getTableNames"));
    }
    let waiting = timeout(Duration::from_mins(1), answer(&mut client)).await;
    assert!(waiting.is_err(), "the scan cannot be answered");
    places.clear();
    assert!(answer(&mut client).await.contains("getScannerResults"));
    // And the connection goes on.
    call(&mut client).await;
}

/// Goal: answers leave once each, also when the call behind them ends while a part of them has left. Method:
/// more answers than the sockets take, a client that reads when the slow call is over, and its bytes beside
/// those of a client that reads at once.
#[tokio::test(start_paused = true)]
async fn answers_that_leave_in_pieces_leave_once() {
    let (server, slow, mut places) = with_slow_call().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpSocket::new_v4().unwrap();
    client.set_recv_buffer_size(4096).unwrap();
    let mut client = client.connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    socket2::SockRef::from(&socket)
        .set_send_buffer_size(4096)
        .unwrap();
    let serving = serve(Arc::clone(&server), socket, FRAMED, CancellationToken::new());
    let _served = tokio::spawn(serving);

    // Answers as long as the names of all tables.
    for number in 0..60 {
        let table = TableName::parse(format!("{number:0>250}").as_bytes()).unwrap();
        let descriptor = TableDescriptor::new(table, vec![FamilyDescriptor::new(b"f")]);
        rig::engine(&server).create_table(descriptor, Vec::new()).unwrap();
    }
    let quick = 10;
    let one = async |client: &mut TcpStream| {
        let length = client.read_u32().await.expect("the connection is open");
        let mut answer = vec![0; length as usize];
        client.read_exact(&mut answer).await.unwrap();
        answer
    };
    let (mut other, _other_served) = connect_to(Arc::clone(&server)).await;
    other.write_all(&framed_call()).await.unwrap();
    let expected = one(&mut other).await;
    assert!(
        quick * (4 + expected.len()) < FLUSH_BYTES,
        "they would leave before"
    );

    let sent_before = server.load().connections.sent_bytes.get();
    client
        .write_all(&[framed_call().repeat(quick), slow].concat())
        .await
        .unwrap();
    // The first piece is there: the answers are leaving, and the rest does not fit.
    client.readable().await.unwrap();
    assert_eq!(server.load().connections.sent_bytes.get(), sent_before);
    places.clear();
    let is_over = || {
        let counts = server.load().call_counts();
        counts
            .iter()
            .any(|of_method| of_method.method == "getScannerResults" && of_method.calls == 1)
    };
    while !is_over() {
        tokio::task::yield_now().await;
    }
    for number in 0..quick {
        assert_eq!(one(&mut client).await, expected, "answer {number}");
    }
    assert!(String::from_utf8_lossy(&one(&mut client).await).contains("getScannerResults"));
}

/// The first `bytes` bytes of a framed call whose length is 1 MiB.
fn large_call(bytes: usize) -> Vec<u8> {
    let mut message = vec![0; 4];
    write_call(&mut BinaryWriter::new(&mut message), 7, &GetTableNames {});
    message[..4].copy_from_slice(&(1_u32 << 20).to_be_bytes());
    message.resize(bytes, 0);
    message
}

fn with_little_memory() -> Arc<Server> {
    let mut config = Config::default();
    config.server.max_message_bytes = 1 << 20;
    config.requests.memory_bytes = 9 << 19;
    crate::rig::server(config)
}

/// Returns when the bytes that calls hold are in this range.
async fn held(server: &Server, bytes: std::ops::Range<u64>) {
    while !bytes.contains(&server.admission().memory().used()) {
        tokio::task::yield_now().await;
    }
}

/// Goal: incomplete messages do not block the memory for others. Method: enough incomplete messages
/// to fill it, then a complete one. The client that was dropped for it receives the reason.
#[tokio::test]
async fn half_a_message_makes_way_for_a_whole_one() {
    let server = with_little_memory();
    let mut stalled = Vec::new();
    for number in 1..=3 {
        let (mut client, served) = connect_to(Arc::clone(&server)).await;
        client.write_all(&large_call(1_000_000)).await.unwrap();
        held(&server, number * 950_000..number * 1_100_000).await;
        stalled.push((client, served));
    }
    let whole = {
        let mut message = vec![0; 4];
        let mut writer = BinaryWriter::new(&mut message);
        writer.message_begin("getTableNames", basalt_idl::wire::MessageKind::Call, 7);
        writer.struct_begin();
        writer.field_begin(9, basalt_idl::wire::WireType::Binary);
        writer.binary(&vec![0; 700_000]);
        writer.struct_end();
        let length = u32::try_from(message.len() - 4).unwrap();
        message[..4].copy_from_slice(&length.to_be_bytes());
        message
    };
    let (mut client, _served) = connect_to(Arc::clone(&server)).await;
    client.write_all(&whole).await.unwrap();
    let length = client.read_u32().await.expect("it is read, and answered");
    let mut answer = vec![0; length as usize];
    client.read_exact(&mut answer).await.unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains("busy"));

    // The client that has made no progress for longest was dropped.
    let (mut client, served) = stalled.remove(0);
    let length = client.read_u32().await.expect("a reason");
    let mut answer = vec![0; length as usize];
    client.read_exact(&mut answer).await.unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    assert!(text.contains("the client was too slow"), "{text}");
    drop(client);
    assert!(matches!(served.await.unwrap(), Err(End::Busy(Busy::Slow { .. }))));
    assert!(
        stalled.iter().all(|(_, served)| !served.is_finished()),
        "others stay"
    );
}

/// A client that does not read its large answer is dropped when another call needs the memory.
#[tokio::test]
async fn an_answer_that_is_not_read_makes_way() {
    let server = with_little_memory();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let memory = Arc::clone(server.admission().memory());
    let mut answers = vec![0; 16 << 20];
    let mut reserved = MemoryPermit::empty(&memory);
    reserved.take_over(memory.room());
    memory.enter(memory.room());
    let sent = tokio::spawn(async move {
        let _reserved = reserved;
        let Socket { read, write } = Socket::new(socket);
        let sent = send(&server, &write, || read.address(), &mut answers).await;
        drop(answers);
        sent
    });
    MemoryPermit::empty(&memory)
        .raise(1 << 20)
        .await
        .expect("room is made");
    assert!(matches!(sent.await.unwrap(), Err(End::Busy(Busy::Slow { .. }))));
    drop(client);
}

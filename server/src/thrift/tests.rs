//! Goal: calls that the server has no room for are refused at once, in the interface's own words, and others
//! are served. Method: a server on a simulated disk whose places on the pool the test takes.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::op::Write;
use basalt_engine::schema::{Durability, FamilyDescriptor, TableDescriptor, TableName};
use basalt_idl::Call;
use basalt_idl::call::{CallError, read_reply, write_call};
use basalt_idl::thrift2::{self, THBaseException, args};
use basalt_idl::wire::{BinaryReader, BinaryWriter};

use super::*;
use crate::config::Config;
use crate::limits::admission::{Class, MemoryPermit, Permit};
use crate::rig;
use crate::security::{Caller, Owner};
use crate::service::writes;

/// A server with table `t` and a queue for one call.
fn crowded() -> Arc<Server> {
    crowded_with(Config::default())
}

fn crowded_with(mut config: Config) -> Arc<Server> {
    config.requests.max_waiting = 1;
    let server = crate::rig::server(config);
    let name = TableName::parse(b"t").unwrap();
    let table = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
    rig::engine(&server).create_table(table, Vec::new()).unwrap();
    server
}

/// The client of a connection.
fn client(number: u64, server: &Server) -> Client {
    let caller = Caller::anonymous(Owner::Connection(number), None);
    Client::of_both(Sender::new(caller, server.admission().memory()))
}

/// One call over a connection of its own.
async fn call<C: Call>(
    server: &Arc<Server>,
    number: u64,
    arguments: C,
) -> Result<C::Success, CallError<C::Exception>> {
    let (mut message, mut answer) = (Vec::new(), Vec::new());
    write_call(&mut BinaryWriter::new(&mut message), 7, &arguments);
    let mut client = client(number, server);
    let protocol = Protocol::BinaryStrict;
    server
        .call(&mut client, protocol, message.into(), &mut answer)
        .await;
    read_reply::<C, _>(&mut BinaryReader::new(answer.into()), 7).expect("answers are well-formed")
}

fn increment() -> args::Increment {
    args::Increment {
        table: Bytes::from_static(b"t"),
        tincrement: thrift2::TIncrement {
            row: Bytes::from_static(b"row"),
            columns: vec![thrift2::TColumnIncrement {
                family: Bytes::from_static(b"f"),
                qualifier: Bytes::from_static(b"q"),
                amount: 1,
            }],
            ..thrift2::TIncrement::default()
        },
    }
}

fn get() -> args::Get {
    args::Get {
        table: Bytes::from_static(b"t"),
        tget: thrift2::TGet {
            row: Bytes::from_static(b"row"),
            ..thrift2::TGet::default()
        },
    }
}

fn scan() -> args::GetScannerResults {
    args::GetScannerResults {
        table: Bytes::from_static(b"t"),
        tscan: thrift2::TScan::default(),
        num_rows: 1,
    }
}

fn open_scanner() -> args::OpenScanner {
    args::OpenScanner {
        table: Bytes::from_static(b"t"),
        tscan: thrift2::TScan::default(),
    }
}

/// A scan that needs the pool, whatever is in memory.
fn filtered_scan() -> args::GetScannerResults {
    let mut scan = scan();
    scan.tscan.filter_string = Some(Bytes::from_static(b"KeyOnlyFilter()"));
    scan
}

/// The text of a TIOError that may be tried again.
fn refusal<T: std::fmt::Debug>(answer: Result<T, CallError<THBaseException>>) -> String {
    match answer {
        Err(CallError::Declared(THBaseException::Io(error))) if error.can_retry == Some(true) => {
            error.message.expect("says why")
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_call_that_would_make_the_line_too_long_is_refused() {
    let server = crowded();
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(server.admission().permit(Class::User).await.unwrap());
    }
    let mut first = pin!(call(&server, 1, filtered_scan()));
    let waits = std::future::poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending()));
    assert!(waits.await);
    assert_eq!(server.admission().waiting(), 1);

    let text = refusal(call(&server, 2, filtered_scan()).await);
    assert!(
        text.contains("1 calls wait for a thread, requests.max_waiting is 1"),
        "{text}"
    );
    // Memory answers these.
    call(&server, 2, get()).await.expect("served");
    call(&server, 2, increment()).await.expect("served");
    call(&server, 2, scan()).await.expect("served");
    // Schema changes have threads of their own.
    let disable = args::DisableTable {
        table_name: thrift2::TTableName {
            ns: None,
            qualifier: Bytes::from_static(b"t"),
        },
    };
    let enable = args::EnableTable {
        table_name: disable.table_name.clone(),
    };
    call(&server, 3, disable).await.expect("served");
    call(&server, 3, enable).await.expect("served");

    drop(places);
    first.await.expect("its turn has come");
    call(&server, 2, filtered_scan())
        .await
        .expect("there is room again");
}

/// Reads of system tables, which clients of any protocol need first, find places when other calls
/// have filled their queue.
#[tokio::test]
async fn reads_of_system_tables_are_served_when_the_line_is_full() {
    let server = crowded();
    let _full = full_line(&server).await;
    refusal(call(&server, 1, filtered_scan()).await);
    let mut meta = filtered_scan();
    meta.table = Bytes::from_static(b"hbase:meta");
    meta.num_rows = 10;
    let rows = call(&server, 1, meta.clone()).await.expect("served");
    assert!(rows.len() >= 2, "{rows:?}");
    let mut get = get();
    get.table = Bytes::from_static(b"hbase:meta");
    get.tget.row = Bytes::from_static(b"t");
    get.tget.filter_string = Some(Bytes::from_static(b"RowFilter(=, 'binary:t')"));
    let found = call(&server, 1, get).await.expect("served");
    assert_eq!(found.row.as_deref(), Some(&b"t"[..]));
}

/// Rows of the table of [`on_disk`].
const ROWS: usize = 40;

fn row(number: usize) -> Bytes {
    format!("r{number:02}").into()
}

/// A server with table `t` on disk, a row to a block, and nothing in the cache. Its queue has room
/// for one call.
fn on_disk() -> Arc<Server> {
    let mut config = Config::default();
    config.requests.max_waiting = 1;
    let disk = SimFs::new(1, SimOptions::default());
    let server = crate::rig::server_on(&disk, config.clone());
    let name = TableName::parse(b"t").unwrap();
    let family = FamilyDescriptor::new(b"f").with("BLOCKSIZE", 1024).unwrap();
    let table = TableDescriptor::new(name.clone(), vec![family]);
    rig::engine(&server).create_table(table, Vec::new()).unwrap();
    for number in 0..ROWS {
        let row = row(number);
        let mut mutation = writes::mutation(&row, Durability::UseDefault);
        mutation.writes.push(Write::Put {
            family: b"f",
            qualifier: b"q",
            timestamp: None,
            value: &[7; 1000],
            ttl_ms: None,
        });
        let commit = rig::engine(&server).mutate(&name, &[mutation]).unwrap();
        commit.wait().unwrap();
    }
    rig::engine(&server).flush(&name).unwrap();
    rig::engine(&server).close().unwrap();
    crate::rig::server_on(&disk, config)
}

/// All places on the pool, and a call that waits for one: the queue is full.
async fn full_line(server: &Arc<Server>) -> (Vec<Permit>, impl Future<Output = Permit>) {
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(server.admission().permit(Class::User).await.unwrap());
    }
    let admission = Arc::clone(server);
    let mut waiting = Box::pin(async move { admission.admission().permit(Class::User).await.unwrap() });
    assert!(is_pending(&mut waiting).await);
    assert_eq!(server.admission().waiting(), 1);
    (places, waiting)
}

/// Polls once.
async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await
}

fn rows_of(results: &[thrift2::TResult]) -> Vec<Bytes> {
    results
        .iter()
        .map(|result| result.row.clone().expect("a row"))
        .collect()
}

#[tokio::test]
async fn a_refused_fetch_from_disk_has_not_lost_the_scan() {
    let server = on_disk();
    let scanner_id = call(&server, 1, open_scanner()).await.expect("a scanner");
    let fetch = |num_rows| args::GetScannerRows { scanner_id, num_rows };
    let (places, waiting) = full_line(&server).await;
    let text = refusal(call(&server, 1, fetch(5)).await);
    assert!(text.contains("requests.max_waiting is 1"), "{text}");
    drop(places);
    drop(waiting.await);
    let mut found = rows_of(&call(&server, 1, fetch(5)).await.expect("served"));
    assert_eq!(found.len(), 5);
    found.extend(rows_of(&call(&server, 1, fetch(100)).await.expect("served")));
    assert_eq!(found, (0..ROWS).map(row).collect::<Vec<_>>());
}

/// If ten scans were charged, the get would wait for them: there is one request a second.
#[tokio::test(start_paused = true)]
async fn a_scan_that_the_line_refuses_pays_nothing() {
    let mut config = Config::default();
    config.rehearsal.servers = 1;
    config.rehearsal.requests_per_second = 1;
    let server = crowded_with(config);
    let _full = full_line(&server).await;
    for _ in 0..10 {
        refusal(call(&server, 1, filtered_scan()).await);
    }
    let began = tokio::time::Instant::now();
    call(&server, 1, get()).await.expect("served");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// Cached results of it are not thrown away: it waits for a place, however long the queue is.
#[tokio::test]
async fn a_fetch_that_has_begun_in_memory_is_not_refused() {
    let server = on_disk();
    for number in 0..5 {
        let mut get = get();
        get.tget.row = row(number);
        call(&server, 1, get).await.expect("served");
    }
    let (places, waiting) = full_line(&server).await;
    let mut all = scan();
    all.num_rows = 100;
    let mut fetch = Box::pin(call(&server, 1, all));
    assert!(is_pending(&mut fetch).await);
    assert_eq!(server.admission().waiting(), 2);
    drop(places);
    drop(waiting.await);
    let found = rows_of(&fetch.await.expect("served"));
    assert_eq!(found, (0..ROWS).map(row).collect::<Vec<_>>());
}

/// Once it is in memory, a scan needs no place.
#[tokio::test]
async fn a_scan_of_memory_passes_a_full_line() {
    let server = on_disk();
    let mut all = scan();
    all.num_rows = 100;
    call(&server, 1, all.clone()).await.expect("served");
    let _full = full_line(&server).await;
    let found = rows_of(&call(&server, 1, all.clone()).await.expect("served"));
    assert_eq!(found.len(), ROWS);
    all.tscan.reversed = Some(true);
    let found = rows_of(&call(&server, 1, all).await.expect("served"));
    assert_eq!(found, (0..ROWS).rev().map(row).collect::<Vec<_>>());
}

const MIB: usize = 1 << 20;

/// A server with 16 MiB for calls. Row `row` has a value of 1 MiB, row `small` a value of one byte.
async fn with_a_large_row() -> Arc<Server> {
    let mut config = Config::default();
    config.requests.memory_bytes = 16 * MIB as u64;
    let server = crowded_with(config);
    for (row, bytes) in [(&b"row"[..], MIB), (b"small", 1)] {
        let put = args::Put {
            table: Bytes::from_static(b"t"),
            tput: thrift2::TPut {
                row: Bytes::from_static(row),
                column_values: vec![thrift2::TColumnValue {
                    family: Bytes::from_static(b"f"),
                    qualifier: Bytes::from_static(b"large"),
                    value: vec![b'v'; bytes].into(),
                    ..thrift2::TColumnValue::default()
                }],
                ..thrift2::TPut::default()
            },
        };
        call(&server, 1, put).await.expect("served");
    }
    server
}

/// Holds all but `bytes` of the memory for calls.
fn leave(server: &Server, memory_permit: &mut MemoryPermit, bytes: usize) {
    memory_permit.set(0);
    let memory = server.admission().memory();
    let rest = usize::try_from(memory.room()).unwrap() - bytes;
    memory_permit.take_over(rest as u64);
    memory.enter(rest as u64);
}

/// Goal: a result is reserved before it is collected. Method: less memory is free than a result of
/// 1 MiB and its reply need.
#[tokio::test]
async fn a_result_that_there_is_no_memory_for_is_refused() {
    let server = with_a_large_row().await;
    let memory = Arc::clone(server.admission().memory());
    let scanner_id = call(&server, 1, open_scanner()).await.expect("served");
    let mut memory_permit = MemoryPermit::empty(&memory);
    leave(&server, &mut memory_permit, MIB + MIB / 2);
    let full = memory.used();

    let fetch = args::GetScannerRows {
        scanner_id,
        num_rows: 1,
    };
    let mut filtered = filtered_scan();
    filtered.tscan.filter_string = Some(Bytes::from_static(b"PrefixFilter('r')"));
    for text in [
        refusal(call(&server, 1, get()).await),
        refusal(call(&server, 1, fetch.clone()).await),
        refusal(call(&server, 1, filtered).await),
    ] {
        assert!(
            text.contains("RegionTooBusyException") && text.contains("requests.memory_bytes is 16777216"),
            "{text}"
        );
        assert_eq!(memory.used(), full, "a refused call gives back what it had");
    }
    let mut small = get();
    small.tget.row = Bytes::from_static(b"small");
    for _ in 0..3 {
        call(&server, 1, small.clone())
            .await
            .expect("needs no memory to speak of");
        call(&server, 1, open_scanner()).await.expect("nor does this");
    }
    let mut counted = increment();
    counted.tincrement.row = Bytes::from_static(b"small");
    call(&server, 1, counted).await.expect("nor this");

    memory_permit.set(0);
    let found = call(&server, 1, fetch)
        .await
        .expect("a refused fetch has not lost the scan");
    assert_eq!(rows_of(&found), [b"row".to_vec()]);
    call(&server, 1, get()).await.expect("there is memory");
    assert_eq!(memory.used(), 0, "answers that are gone hold nothing");
    let close = args::CloseScanner { scanner_id };
    call(&server, 1, close).await.expect("served");
}

/// The reply's reservation outlives the call and passes to the sender.
#[tokio::test]
async fn a_reply_is_handed_over_with_its_memory() {
    let server = with_a_large_row().await;
    let memory = server.admission().memory();
    let (mut message, mut answer) = (Vec::new(), Vec::new());
    write_call(&mut BinaryWriter::new(&mut message), 7, &get());
    let mut client = Client::of_both(Sender::new(Caller::anonymous(Owner::Connection(1), None), memory));
    server
        .call(&mut client, Protocol::BinaryStrict, message.into(), &mut answer)
        .await;
    let permit = client.take_reply().expect("the reply is large");
    let reply = permit.bytes();
    assert!(answer.len() > MIB && answer.capacity() < MIB + 64 * 1024);
    assert!(
        reply >= answer.len() as u64 && reply < answer.len() as u64 + 1024,
        "{reply}"
    );
    assert_eq!(memory.used(), reply);
}

/// Goal: arguments that are small on the wire and large in memory are reserved before they are
/// built. Method: two thousand tiny gets, with and without memory for them.
#[tokio::test]
async fn arguments_that_expand_are_reserved() {
    let server = with_a_large_row().await;
    let gets = args::GetMultiple {
        table: Bytes::from_static(b"t"),
        tgets: vec![
            thrift2::TGet {
                row: Bytes::from_static(b"s"),
                ..thrift2::TGet::default()
            };
            2_000
        ],
    };
    let mut memory_permit = MemoryPermit::empty(server.admission().memory());
    leave(&server, &mut memory_permit, MIB / 2);
    let text = refusal(call(&server, 1, gets.clone()).await);
    assert!(text.contains("requests.memory_bytes is 16777216"), "{text}");
    memory_permit.set(0);
    assert_eq!(
        call(&server, 1, gets).await.expect("there is memory").len(),
        2_000
    );
    assert_eq!(server.admission().memory().used(), 0);
}

/// Goal: filters of open scans and of gets are reserved. Method: many filters with a short pattern
/// that takes much memory once compiled.
#[tokio::test]
async fn filters_that_expand_are_reserved() {
    let server = with_a_large_row().await;
    let memory = server.admission().memory();
    let filter = Bytes::from_static(b"RowFilter(=, 'regexstring:[\\p{L}]{12}')");
    let mut open = open_scanner();
    open.tscan.filter_string = Some(filter.clone());
    call(&server, 1, open.clone()).await.expect("served");
    let each = memory.used();
    assert!(each > 100_000, "{each}");
    let mut refused = None;
    for _ in 0..1_000 {
        if let Err(error) = call(&server, 1, open.clone()).await {
            refused = Some(refusal::<i32>(Err(error)));
            break;
        }
    }
    let text = refused.expect("a thousand of them do not fit");
    assert!(text.contains("quarter of requests.memory_bytes"), "{text}");
    assert!(memory.used() <= memory.limit() / 4);
    server.sessions().close_all();
    assert_eq!(memory.used(), 0);

    let mut get = get().tget;
    get.filter_string = Some(filter);
    let gets = args::GetMultiple {
        table: Bytes::from_static(b"t"),
        tgets: vec![get; 1 + usize::try_from(memory.limit() / each).unwrap()],
    };
    let text = refusal(call(&server, 1, gets).await);
    assert!(text.contains("requests.memory_bytes is 16777216"), "{text}");
    assert_eq!(memory.used(), 0);
}

/// Goal: the decoded form of unchecked arguments stays small. Method: the largest element that a
/// list, a set or a map of any method's arguments can have.
#[test]
fn elements_take_little_memory() {
    use basalt_idl::schema::TypeDescriptor;

    fn largest(ty: &TypeDescriptor) -> usize {
        match ty {
            TypeDescriptor::List(of) | TypeDescriptor::Set(of) => of.memory().max(largest(of)),
            TypeDescriptor::Map(key, of) => {
                let pair = key.memory() + of.memory();
                pair.max(largest(key)).max(largest(of))
            }
            TypeDescriptor::Struct(of) => of
                .fields
                .iter()
                .map(|field| largest(&field.ty))
                .max()
                .unwrap_or(0),
            _ => 0,
        }
    }

    for service in [&thrift1::SERVICE, &thrift2::SERVICE, &admin::SERVICE] {
        for method in service.methods {
            let bytes = method
                .args
                .fields
                .iter()
                .map(|field| largest(&field.ty))
                .max()
                .unwrap_or(0);
            assert!(bytes <= 320, "{}: {bytes}", method.name);
        }
    }
}

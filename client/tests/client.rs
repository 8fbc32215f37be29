//! The client against a server that misbehaves on purpose: which calls are sent, which are retried,
//! which connections are closed.

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use basalt_client::keys::merge::scan_keys;
use basalt_client::keys::{KeyDesign, Salt};
use basalt_client::{
    Check, Client, Codec, CompareOperator, ConnectionOptions, Delete, Error, ErrorKind, Get, Increment,
    PoolOptions, Put, Scan,
};
use basalt_idl::call::Call;
use basalt_idl::thrift2::{TColumnValue, THBaseException, TIOError, TIllegalArgument, TResult, TScan, args};
use bytes::Bytes;
use fake::{Action, FakeServer, Request};

fn row(key: &[u8]) -> TResult {
    TResult {
        row: Some(Bytes::copy_from_slice(key)),
        column_values: vec![TColumnValue {
            family: Bytes::from("f"),
            qualifier: Bytes::from("q"),
            value: Bytes::copy_from_slice(key),
            timestamp: Some(7),
            ..TColumnValue::default()
        }],
        ..TResult::default()
    }
}

/// Answers a get with a row whose value is its key.
fn echo(request: &Request) -> Action {
    let get: args::Get = request.arguments();
    request.reply::<args::Get>(Ok(row(&get.tget.row)))
}

fn one_connection() -> PoolOptions {
    PoolOptions {
        connections_max: 1,
        ..PoolOptions::default()
    }
}

/// Answers a scanner over `rows`, in batches of the requested size, and drops it at the close.
fn scanner(rows: Vec<Vec<u8>>) -> impl Fn(&Request) -> Action + Send + Sync + 'static {
    let open: std::sync::Mutex<std::collections::BTreeMap<i32, Vec<Vec<u8>>>> = std::sync::Mutex::default();
    let next_id = AtomicUsize::new(1);
    move |request| match request.method.as_str() {
        "openScanner" => {
            let scan: TScan = request.arguments::<args::OpenScanner>().tscan;
            let start = scan.start_row.unwrap_or_default();
            let stop = scan.stop_row.unwrap_or_default();
            let inside = |key: &&Vec<u8>| {
                key.as_slice() >= &start[..] && (stop.is_empty() || key.as_slice() < &stop[..])
            };
            let mut found: Vec<Vec<u8>> = rows.iter().filter(inside).cloned().collect();
            found.sort();
            let id = i32::try_from(next_id.fetch_add(1, Ordering::SeqCst)).unwrap();
            open.lock().unwrap().insert(id, found);
            request.reply::<args::OpenScanner>(Ok(id))
        }
        "getScannerRows" => {
            let fetch: args::GetScannerRows = request.arguments();
            match open.lock().unwrap().get_mut(&fetch.scanner_id) {
                None => {
                    let message = Some("Invalid scanner Id".to_owned());
                    request.reply::<args::GetScannerRows>(Err(TIllegalArgument { message }.into()))
                }
                Some(left) => {
                    let count = usize::try_from(fetch.num_rows).unwrap().min(left.len());
                    let batch = left.drain(..count).map(|key| row(&key)).collect();
                    request.reply::<args::GetScannerRows>(Ok(batch))
                }
            }
        }
        "closeScanner" => {
            let close: args::CloseScanner = request.arguments();
            assert!(open.lock().unwrap().remove(&close.scanner_id).is_some());
            request.reply::<args::CloseScanner>(Ok(()))
        }
        _ => request.unknown(),
    }
}

fn keys(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| format!("{number:04}").into_bytes())
        .collect()
}

#[tokio::test]
async fn all_codecs_and_framings_work() {
    for codec in [Codec::Binary, Codec::Compact] {
        for framed in [false, true] {
            let server = FakeServer::start_as(codec, framed, echo).await;
            let table = server.client(one_connection()).table("t").unwrap();
            // Longer than one read, so that the reply arrives in pieces.
            let key = vec![b'k'; 30_000];
            for _ in 0..3 {
                let found = table.get(Get::new(&key)).await.unwrap().unwrap();
                assert_eq!(found.value("f", "q").unwrap(), &key[..]);
                assert_eq!(found.cells[0].timestamp, 7);
            }
            assert_eq!(server.connections(), 1);
        }
    }
}

#[tokio::test]
async fn an_absent_row_is_none() {
    let server = FakeServer::start(|request| request.reply::<args::Get>(Ok(TResult::default()))).await;
    let table = server.client(one_connection()).table("t").unwrap();
    assert_eq!(table.get(Get::new("r")).await.unwrap(), None);
}

#[tokio::test]
async fn server_errors_keep_their_words_and_the_connection() {
    let server = FakeServer::start(|request| {
        let thrown = TIOError {
            message: Some("region is too busy".to_owned()),
            can_retry: Some(true),
        };
        match request.method.as_str() {
            "get" => request.reply::<args::Get>(Err(THBaseException::Io(thrown))),
            _ => request.unknown(),
        }
    })
    .await;
    let table = server.client(one_connection()).table("t").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        ("region is too busy", ErrorKind::Retry)
    );
    let error = table.exists(Get::new("r")).await.unwrap_err();
    assert!(error.is_unknown_method(), "{error}");
    assert_eq!(
        server.calls("get"),
        1,
        "an answer is not followed by a second try"
    );
    assert_eq!(server.connections(), 1);
}

/// Only calls that change nothing are tried again when their connection is lost, and only once.
#[tokio::test]
async fn lost_connections() {
    let failures = Arc::new(AtomicI64::new(0));
    let left = Arc::clone(&failures);
    let server = FakeServer::start(move |request| {
        if left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Action::Close;
        }
        match request.method.as_str() {
            "get" => echo(request),
            _ => request.reply::<args::Put>(Ok(())),
        }
    })
    .await;
    let table = server.client(one_connection()).table("t").unwrap();

    failures.store(1, Ordering::SeqCst);
    assert!(table.get(Get::new("r")).await.unwrap().is_some());
    assert_eq!(server.calls("get"), 2);

    failures.store(2, Ordering::SeqCst);
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert_eq!((server.calls("get"), error.kind()), (4, ErrorKind::Unknown));

    failures.store(1, Ordering::SeqCst);
    let put = Put::new("r").cell("f", "q", "v");
    let error = table.put(put.clone()).await.unwrap_err();
    assert_eq!((server.calls("put"), error.kind()), (1, ErrorKind::Unknown));

    failures.store(0, Ordering::SeqCst);
    table.put(put).await.unwrap();
}

#[tokio::test]
async fn a_timeout_gives_up_the_connection_and_does_not_ask_twice() {
    let server = FakeServer::start(|request| match request.method.as_str() {
        "get" => Action::Silence,
        _ => request.reply::<args::Exists>(Ok(true)),
    })
    .await;
    let options = PoolOptions {
        connection: ConnectionOptions {
            call_timeout: Duration::from_millis(50),
            ..ConnectionOptions::default()
        },
        ..one_connection()
    };
    let table = server.client(options).table("t").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(server.calls("get"), 1);
    assert!(table.exists(Get::new("r")).await.unwrap());
    assert_eq!(server.connections(), 2);
}

/// A caller that goes away in the middle of a call leaves a connection on which another reply may arrive.
#[tokio::test]
async fn a_cancelled_call_gives_up_its_connection() {
    let server = FakeServer::start(|request| match request.method.as_str() {
        "get" => Action::Silence,
        _ => request.reply::<args::Exists>(Ok(true)),
    })
    .await;
    let client = server.client(one_connection());
    let table = client.table("t").unwrap();
    tokio::select! {
        outcome = table.get(Get::new("r")) => panic!("{outcome:?}"),
        () = server.wait_for("get", 1) => {}
    }
    assert_eq!(client.pool().idle_count(), 0);
    assert!(table.exists(Get::new("r")).await.unwrap());
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_reply_to_another_call_is_refused() {
    let server = FakeServer::start(|request| {
        request.reply_to::<args::Get>(request.seqid().wrapping_add(1), &Ok(TResult::default()))
    })
    .await;
    let client = server.client(one_connection());
    let error = client.table("t").unwrap().get(Get::new("r")).await.unwrap_err();
    assert!(
        error.to_string().contains("answered with a reply to call"),
        "{error}"
    );
    assert_eq!(client.pool().idle_count(), 0);
}

#[tokio::test]
async fn replies_are_bounded() {
    for framed in [false, true] {
        let server = FakeServer::start_as(Codec::Binary, framed, echo).await;
        let options = PoolOptions {
            connection: ConnectionOptions {
                reply_bytes_max: 1000,
                ..ConnectionOptions::default()
            },
            ..one_connection()
        };
        let table = server.client(options).table("t").unwrap();
        assert!(table.get(Get::new(vec![b'k'; 100])).await.is_ok());
        let error = table.get(Get::new(vec![b'k'; 1000])).await.unwrap_err();
        assert!(error.to_string().contains("limit of 1000 bytes"), "{error}");
    }
}

/// HTTP instead of Thrift, the most common wrong address.
#[tokio::test]
async fn a_reply_that_is_not_thrift_is_a_protocol_error() {
    let server = FakeServer::start(|_| Action::Reply(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())).await;
    let table = server.client(one_connection()).table("t").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Setup, "{error}");
}

#[tokio::test]
async fn a_busy_pool_says_so() {
    let server = FakeServer::start(|_| Action::Silence).await;
    let options = PoolOptions {
        wait_max: Duration::from_millis(20),
        ..one_connection()
    };
    let table = server.client(options).table("t").unwrap();
    let waiting = tokio::spawn({
        let table = table.clone();
        async move { table.get(Get::new("r")).await }
    });
    server.wait_for("get", 1).await;
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert!(matches!(error, Error::PoolBusy { connections: 1, .. }), "{error}");
    waiting.abort();
}

#[tokio::test]
async fn a_closed_port_is_a_connect_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Client::connect(&address.to_string()).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
}

#[tokio::test]
async fn a_scan_fetches_batches_and_closes() {
    let server = FakeServer::start(scanner(keys(25))).await;
    let table = server.client(one_connection()).table("t").unwrap();
    let rows = table
        .scan(Scan::new().rows_per_fetch(10))
        .unwrap()
        .collect()
        .await
        .unwrap();
    let found: Vec<&[u8]> = rows.iter().map(|row| &row.key[..]).collect();
    assert_eq!(found, keys(25));
    server.wait_for("closeScanner", 1).await;
    assert_eq!(
        server.calls("getScannerRows"),
        4,
        "three batches with rows and the empty one"
    );
}

#[tokio::test]
async fn a_scan_that_is_dropped_closes_its_scanner() {
    let server = FakeServer::start(scanner(keys(1000))).await;
    let table = server.client(one_connection()).table("t").unwrap();
    let mut rows = table.scan(Scan::new().rows_per_fetch(10)).unwrap();
    assert_eq!(rows.next().await.unwrap().unwrap().key, "0000");
    drop(rows);
    server.wait_for("closeScanner", 1).await;
    // Dropped before anything arrived: the scanner may not even be open yet.
    drop(table.scan(Scan::new()).unwrap());
    server.wait_for("closeScanner", 2).await;
    assert_eq!(server.calls("openScanner"), 2);
    assert!(server.calls("getScannerRows") < 10, "the rest was not asked for");
}

#[tokio::test]
async fn a_scanner_that_is_gone_is_an_error_at_the_end() {
    let server = FakeServer::start(|request| match request.method.as_str() {
        "openScanner" => request.reply::<args::OpenScanner>(Ok(1)),
        "getScannerRows" => {
            let message = Some("Invalid scanner Id".to_owned());
            request.reply::<args::GetScannerRows>(Err(TIllegalArgument { message }.into()))
        }
        _ => request.reply::<args::CloseScanner>(Ok(())),
    })
    .await;
    let table = server.client(one_connection()).table("t").unwrap();
    let mut rows = table.scan(Scan::new()).unwrap();
    let error = rows.next().await.unwrap_err();
    assert!(matches!(error, Error::ScannerGone { .. }), "{error}");
    assert_eq!(rows.next().await.unwrap(), None);
}

/// Rows of a salted table come back in the order of their keys, over sixteen scanners at once.
#[tokio::test]
async fn a_salted_range_is_read_in_order() {
    let design = Salt::new(16).unwrap();
    let rows = keys(200).iter().map(|key| design.encode(key).unwrap()).collect();
    let server = FakeServer::start(scanner(rows)).await;
    let table = server.client(one_connection()).table("t").unwrap();
    let range = b"0050".to_vec()..b"0150".to_vec();
    let scan = Scan::new().rows_per_fetch(3);
    let mut merged = scan_keys(&table, design, range, &scan).unwrap();
    let mut found = Vec::new();
    while let Some((key, _)) = merged.next().await.unwrap() {
        found.push(key);
    }
    assert_eq!(found, keys(200)[50..150]);
    server.wait_for("closeScanner", 16).await;
}

/// Each check goes out as the call that every version of HBase understands for it.
#[tokio::test]
async fn checks_choose_their_call() {
    let server = FakeServer::start(|request| match request.method.as_str() {
        "checkAndPut" => {
            let call: args::CheckAndPut = request.arguments();
            request.reply::<args::CheckAndPut>(Ok(call.value.is_none()))
        }
        "checkAndDelete" => request.reply::<args::CheckAndDelete>(Ok(true)),
        _ => {
            let call: args::CheckAndMutate = request.arguments();
            request.reply::<args::CheckAndMutate>(Ok(call.compare_operator == CompareOperator::GREATER))
        }
    })
    .await;
    let table = server.client(one_connection()).table("t").unwrap();
    let put = || Put::new("r").cell("f", "q", "v");
    assert!(table.check_and_put(Check::absent("f", "q"), put()).await.unwrap());
    assert!(
        !table
            .check_and_put(Check::equal("f", "q", "v"), put())
            .await
            .unwrap()
    );
    let greater = Check::compare("f", "q", CompareOperator::GREATER, "v");
    assert!(table.check_and_put(greater.clone(), put()).await.unwrap());
    assert!(
        table
            .check_and_delete(Check::absent("f", "q"), Delete::row("r"))
            .await
            .unwrap()
    );
    assert!(table.check_and_delete(greater, Delete::row("r")).await.unwrap());
    let calls = ["checkAndPut", "checkAndDelete", "checkAndMutate"].map(|method| server.calls(method));
    assert_eq!(calls, [2, 1, 2]);
}

#[tokio::test]
async fn counters_are_eight_bytes() {
    let server = FakeServer::start(|request| {
        let call: args::Increment = request.arguments();
        let mut sums = row(&call.tincrement.row);
        let value = match &call.tincrement.row[..] {
            b"short" => Bytes::from("1"),
            _ => Bytes::copy_from_slice(&(call.tincrement.columns[0].amount + 40).to_be_bytes()),
        };
        sums.column_values[0].value = value;
        request.reply::<args::Increment>(Ok(sums))
    })
    .await;
    let table = server.client(one_connection()).table("t").unwrap();
    assert_eq!(table.increment_column("r", "f", "q", 2).await.unwrap(), 42);
    let error = table.increment_column("short", "f", "q", 2).await.unwrap_err();
    assert!(error.to_string().contains("1 bytes instead of 8"), "{error}");
    let sums = table
        .increment(Increment::new("r").column("f", "q", 2))
        .await
        .unwrap();
    assert_eq!(sums.key, "r");
}

/// A list of another length would shift every result, so it is an error and not a guess.
#[tokio::test]
async fn results_are_counted() {
    let server = FakeServer::start(|request| {
        assert_eq!(request.method, args::GetMultiple::METHOD.name);
        request.reply::<args::GetMultiple>(Ok(vec![row(b"a")]))
    })
    .await;
    let table = server.client(one_connection()).table("t").unwrap();
    assert_eq!(table.get_multiple([Get::new("a")]).await.unwrap().len(), 1);
    let error = table
        .get_multiple([Get::new("a"), Get::new("b")])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("1 results instead of 2"), "{error}");
}

//! The client against fake servers: which calls it repeats, when, and where.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use basalt_idl::native::messages::{
    self, GetRequest, MultiRequest, MultiResponse, MutateRequest, MutateResponse, NameBytesPair,
    RegionActionResult, ResultOrException, ScanRequest, ScanResponse,
};
use bytes::Bytes;
use prost::Message;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::connection::Connection;
use super::connection::Service;
use super::fake::{Answer, Fakes, Seen, Shared, cell, get_response, name};
use super::{Action, Cluster, ClusterOptions, Region, Registry, ServerName};
use crate::error::{Error, ErrorKind};
use crate::security::{Login, Secret, Security};
use crate::{Check, Get, Increment, Put, Scan};

/// A region of the table `t` on no server.
pub(super) fn region(start: &'static str, end: &'static str) -> Region {
    let server = ServerName {
        host: "h".to_owned(),
        port: 1,
        start_code: 1,
    };
    Region {
        name: Bytes::from(name(&(start, end, 0))),
        table: "t".parse().unwrap(),
        id: 1,
        start_key: Bytes::from(start),
        end_key: Bytes::from(end),
        address: server.address().into(),
        server,
    }
}

/// An answer to a get: one cell with this value.
pub(super) fn found(row: &str, value: &str) -> Answer {
    let mut cells = Vec::new();
    cell(row, "f", "q", value.as_bytes()).encode(&mut cells);
    Answer::Message(get_response(1).encode_to_vec(), cells)
}

fn done() -> Answer {
    Answer::message(&MutateResponse {
        processed: Some(true),
        ..MutateResponse::default()
    })
}

pub(super) fn one_region(answers: Vec<Answer>) -> impl Future<Output = Fakes> {
    Fakes::start(&[("", "", 0)], Fakes::in_turn(answers))
}

#[tokio::test]
async fn a_row_is_read_through_registry_and_meta() {
    let fakes = one_region(vec![found("r", "v"), Answer::message(&get_response(0))]).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let row = table.get(Get::new("r")).await.unwrap().unwrap();
    assert_eq!(
        (&row.key[..], row.value("f", "q").unwrap()),
        (&b"r"[..], &Bytes::from("v"))
    );
    assert_eq!(table.get(Get::new("s")).await.unwrap(), None);
    assert_eq!(fakes.log(), ["meta server", "look-up", "Get", "Get"]);
}

#[tokio::test]
async fn a_region_that_is_gone_is_looked_up_again() {
    let gone = Answer::exception("NotServingRegionException", "t,, is not online");
    let fakes = one_region(vec![gone, found("r", "v")]).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    assert!(table.get(Get::new("r")).await.unwrap().is_some());
    assert_eq!(
        fakes.log(),
        ["meta server", "look-up", "Get", "state", "look-up", "Get"]
    );
}

#[tokio::test]
async fn a_disabled_table_is_a_final_error() {
    let fakes = one_region(vec![Answer::exception("NotServingRegionException", "")]).await;
    *fakes.shared.table_state.lock().unwrap() = 1;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert_eq!(error.remote().unwrap().class_name(), "TableNotEnabledException");
    assert_eq!(error.kind(), ErrorKind::Request);
}

#[tokio::test]
async fn a_missing_table_is_a_final_error() {
    let fakes = one_region(Vec::new()).await;
    let table = fakes.cluster(|_| {}).table("u").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert_eq!(error.remote().unwrap().class_name(), "TableNotFoundException");
    assert!(error.to_string().contains("table u"), "{error}");
}

#[tokio::test]
async fn a_server_that_wants_a_login_says_so_at_once() {
    let denied = Answer::exception("security.AccessDeniedException", "Authentication is required");
    let fakes = one_region(vec![denied]).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert!(matches!(error, Error::Login { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Setup);
    assert!(error.to_string().contains("or a token"), "{error}");
    assert_eq!(fakes.log(), ["meta server", "look-up", "Get"]);
}

/// The servers are not reached, since the protocol has no login by password.
#[tokio::test]
async fn a_password_is_refused_before_connecting() {
    let fakes = one_region(Vec::new()).await;
    let login = Login::password("ada", Secret::new("open sesame")).unwrap();
    let cluster = fakes.cluster(|options| options.security = Security::none().login(login));
    let error = cluster.table("t").unwrap().get(Get::new("r")).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("takes no passwords") && !text.contains("sesame"),
        "{text}"
    );
    assert!(fakes.log().is_empty());
}

/// The exception names the new server: neither meta nor a pause is needed.
#[tokio::test]
async fn a_moved_region_is_followed() {
    let port = Arc::new(Mutex::new(0));
    let told = Arc::clone(&port);
    let fakes = Fakes::start_servers(2, &[("", "", 0)], move |seen| match seen.server {
        0 => Answer::exception(
            "exceptions.RegionMovedException",
            &format!(
                "Region moved to: hostname=127.0.0.1 port={} startCode=7. As of locationSeqNum=1.",
                told.lock().unwrap()
            ),
        ),
        _ => found("r", "v"),
    })
    .await;
    *port.lock().unwrap() = fakes.shared.ports[1];
    let table = fakes
        .cluster(|options| options.pause = Duration::from_mins(1))
        .table("t")
        .unwrap();
    assert!(table.get(Get::new("r")).await.unwrap().is_some());
    assert!(table.get(Get::new("r")).await.unwrap().is_some());
    assert_eq!(fakes.log(), ["meta server", "look-up", "Get", "Get", "Get"]);
}

#[tokio::test]
async fn a_final_exception_is_not_repeated() {
    let fakes = one_region(vec![Answer::exception(
        "regionserver.NoSuchColumnFamilyException",
        "no family g",
    )])
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let error = table
        .get(Get::new("r").family("g"))
        .await
        .unwrap_err()
        .to_string();
    for part in [
        "NoSuchColumnFamilyException",
        "no family g",
        "127.0.0.1:",
        "t,,1.",
    ] {
        assert!(error.contains(part), "{error} lacks {part}");
    }
}

/// Only the nonce distinguishes the two attempts.
#[tokio::test]
async fn an_increment_is_repeated_with_its_nonce() {
    let nonces = Arc::new(Mutex::new(Vec::new()));
    let seen_nonces = Arc::clone(&nonces);
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        let request: MutateRequest = seen.parameter();
        let mut nonces = seen_nonces.lock().unwrap();
        nonces.push((request.nonce_group, request.mutation.nonce));
        if nonces.len() == 1 {
            return Answer::Close;
        }
        let mut cells = Vec::new();
        cell("r", "f", "q", &5_i64.to_be_bytes()).encode(&mut cells);
        let response = MutateResponse {
            result: get_response(1).result,
            ..MutateResponse::default()
        };
        Answer::Message(response.encode_to_vec(), cells)
    })
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    assert_eq!(table.increment_column("r", "f", "q", 5).await.unwrap(), 5);
    let row = table
        .increment(Increment::new("r").column("f", "q", 1))
        .await
        .unwrap();
    assert_eq!(row.cells.len(), 1);
    let nonces = nonces.lock().unwrap();
    assert_eq!(nonces[0], nonces[1]);
    assert!(nonces[0].0.is_some() && nonces[0].1.is_some_and(|nonce| nonce != 0));
    assert_ne!(nonces[1].1, nonces[2].1, "another operation");
}

/// A second conditional put would find its own first one and report the opposite.
#[tokio::test]
async fn a_conditional_put_is_not_repeated_after_a_lost_connection() {
    let fakes = one_region(vec![Answer::Close, done()]).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let put = || Put::new("r").cell("f", "q", "v");
    let error = table
        .check_and_put(Check::absent("f", "q"), put())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert!(table.check_and_put(Check::absent("f", "q"), put()).await.unwrap());
    let busy = Answer::exception("RegionTooBusyException", "memstore is full");
    let fakes = one_region(vec![busy, done()]).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    assert!(
        table.check_and_put(Check::absent("f", "q"), put()).await.unwrap(),
        "nothing was done before"
    );
}

#[tokio::test]
async fn a_plain_put_is_repeated_after_a_lost_connection() {
    let fakes = one_region(vec![Answer::Close, done()]).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    table.put(Put::new("r").cell("f", "q", "v")).await.unwrap();
}

/// Goal: calls of other runtimes do not wait for the tasks of a connection that ended with its runtime.
#[test]
fn a_connection_ends_with_its_runtime() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (lasting, short) = (runtime(), runtime());
    let fakes = lasting.block_on(one_region(vec![found("r", "1"), found("r", "2")]));
    let table = lasting.block_on(async { fakes.cluster(|_| {}).table("t").unwrap() });
    let value = |row: Option<crate::Row>| row.unwrap().value("f", "q").unwrap().clone();
    assert_eq!(value(short.block_on(table.get(Get::new("r"))).unwrap()), "1");
    drop(short);
    let get = async { tokio::time::timeout(Duration::from_secs(20), table.get(Get::new("r"))).await };
    assert_eq!(value(lasting.block_on(get).unwrap().unwrap()), "2");
}

#[tokio::test]
async fn retries_end_with_the_last_failure() {
    let fakes = Fakes::start(&[("", "", 0)], |_| {
        Answer::exception("RegionTooBusyException", "full")
    })
    .await;
    let table = fakes.cluster(|options| options.retries = 3).table("t").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert!(matches!(&error, Error::Exhausted { attempts: 4, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Retry);
    let text = error.to_string();
    assert!(
        text.starts_with("Get of row r in table t failed 4 times"),
        "{text}"
    );
    assert!(text.contains("RegionTooBusyException: full"), "{text}");
}

#[tokio::test]
async fn a_silent_server_ends_with_the_deadline() {
    let fakes = Fakes::start(&[("", "", 0)], |_| Answer::Silence).await;
    let cluster = fakes.cluster(|options| {
        options.call_timeout = Duration::from_millis(50);
        options.operation_timeout = Duration::from_millis(200);
    });
    let began = Instant::now();
    let error = cluster.table("t").unwrap().get(Get::new("r")).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert!(error.to_string().contains("Get of row r in table t"), "{error}");
}

/// A port without a listener.
pub(super) fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn wrong_addresses_are_named_within_the_deadline() {
    let address = format!("127.0.0.1:{}", closed_port());
    let registries = [
        Registry::bootstrap(&address).unwrap(),
        Registry::zookeeper(&address, 1, "/hbase").unwrap(),
    ];
    for registry in registries {
        let mut options = ClusterOptions::new(registry);
        options.operation_timeout = Duration::from_millis(300);
        let began = Instant::now();
        let error = Cluster::connect(options).await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert!(
            error
                .to_string()
                .contains(&format!("cannot connect to {address}")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn bytes_that_are_no_response_fail_the_call() {
    let garbage = vec![0, 0, 0, 2, 9, 9];
    let fakes = one_region(vec![
        Answer::Raw(garbage),
        Answer::Raw(vec![0xff; 4]),
        found("r", "v"),
    ])
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    let error = table.get(Get::new("r")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("4294967295 bytes, more than the limit"),
        "{error}"
    );
    assert!(
        table.get(Get::new("r")).await.unwrap().is_some(),
        "on a new connection"
    );
}

/// Each answer reaches its call, in any order and with many calls in flight.
#[tokio::test]
async fn many_calls_share_a_connection() {
    let fakes = Fakes::start(&[("", "", 0)], |seen| {
        let request: GetRequest = seen.parameter();
        let row = String::from_utf8(request.get.row.to_vec()).unwrap();
        found(&row, &row)
    })
    .await;
    let cluster = fakes.cluster(|options| options.calls_in_flight = 16);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..500 {
        let table = cluster.table("t").unwrap();
        calls.spawn(async move {
            let row = format!("r{number}");
            let read = table.get(Get::new(&row)).await.unwrap().unwrap();
            assert_eq!(read.value("f", "q").unwrap(), row.as_bytes());
        });
    }
    calls.join_all().await;
}

/// The answer to a call whose future was dropped is not taken for that of another.
#[tokio::test]
async fn an_abandoned_call_disturbs_no_other() {
    let count = AtomicU32::new(0);
    let fakes = Fakes::start(&[("", "", 0)], move |_| {
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::Silence,
            _ => found("r", "v"),
        }
    })
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let abandoned = table.get(Get::new("q"));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), abandoned)
            .await
            .is_err()
    );
    let row = table.get(Get::new("r")).await.unwrap().unwrap();
    assert_eq!(row.key, "r");
}

/// An answer to a Multi: for each group, for each action, a row with one cell or an exception.
fn multi_response(seen: &Seen<'_>, fails: impl Fn(&str) -> Option<&'static str>) -> Answer {
    let request: MultiRequest = seen.parameter();
    let mut cells = Vec::new();
    let groups = request.region_action.iter().map(|group| {
        let actions = group.action.iter().rev().map(|action| {
            let row = action.get.as_ref().expect("gets only").row.clone();
            let row = std::str::from_utf8(&row).unwrap();
            if let Some(class) = fails(row) {
                return ResultOrException {
                    index: action.index,
                    exception: Some(Box::new(NameBytesPair {
                        name: format!("org.apache.hadoop.hbase.{class}"),
                        value: Some(Bytes::from_static(b"text")),
                    })),
                    ..ResultOrException::default()
                };
            }
            cell(row, "f", "q", row.as_bytes()).encode(&mut cells);
            ResultOrException {
                index: action.index,
                result: get_response(1).result,
                ..ResultOrException::default()
            }
        });
        RegionActionResult {
            result_or_exception: actions.collect(),
            ..RegionActionResult::default()
        }
    });
    let response = MultiResponse {
        region_action_result: groups.collect(),
        ..MultiResponse::default()
    };
    Answer::Message(response.encode_to_vec(), cells)
}

/// Rows of each group of each Multi, with the number of its server.
type Groups = Arc<Mutex<Vec<(usize, Vec<Vec<String>>)>>>;

fn note(groups: &Groups, seen: &Seen<'_>) {
    let request: MultiRequest = seen.parameter();
    let row =
        |action: &messages::Action| String::from_utf8_lossy(&action.get.as_ref().unwrap().row).into_owned();
    let of_call = request.region_action.iter();
    let of_call = of_call
        .map(|group| group.action.iter().map(row).collect())
        .collect();
    groups.lock().unwrap().push((seen.server, of_call));
}

const THREE_REGIONS: [(&str, &str, usize); 3] = [("", "h", 0), ("h", "p", 1), ("p", "", 0)];

#[tokio::test]
async fn a_batch_is_one_call_for_each_server_and_one_group_for_each_region() {
    let groups = Groups::default();
    let noted = Arc::clone(&groups);
    let fakes = Fakes::start(&THREE_REGIONS, move |seen| {
        note(&noted, seen);
        multi_response(seen, |_| None)
    })
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let rows = ["z", "a", "k", "b", "q", "l"];
    let read = table.get_multiple(rows.map(Get::new)).await.unwrap();
    let keys: Vec<_> = read.iter().map(|row| row.as_ref().unwrap().key.clone()).collect();
    assert_eq!(keys, rows);
    let mut groups = groups.lock().unwrap().clone();
    groups.sort();
    let group = |rows: &[&str]| rows.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        groups,
        [
            (0, vec![group(&["z", "q"]), group(&["a", "b"])]),
            (1, vec![group(&["k", "l"])])
        ]
    );
}

#[tokio::test]
async fn only_failed_actions_are_repeated() {
    let groups = Groups::default();
    let (noted, failed) = (Arc::clone(&groups), AtomicU32::new(0));
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        note(&noted, seen);
        let first = failed.fetch_add(1, Ordering::Relaxed) == 0;
        multi_response(seen, |row| match row {
            "b" if first => Some("RegionTooBusyException"),
            "c" => Some("regionserver.NoSuchColumnFamilyException"),
            _ => None,
        })
    })
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let gets = ["a", "b", "c", "d"].map(|row| Action::Get(Get::new(row)));
    let outcomes = table.batch(gets.to_vec()).await.unwrap();
    let shown: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().is_ok_and(Option::is_some))
        .collect();
    assert_eq!(shown, [true, true, false, true]);
    let error = outcomes[2].as_ref().unwrap_err();
    assert_eq!(
        error.remote().unwrap().class_name(),
        "NoSuchColumnFamilyException"
    );
    let calls = groups.lock().unwrap().clone();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].1, [["b"]]);

    let error = table
        .get_multiple(["a", "c", "d"].map(Get::new))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Batch { failed: 1, of: 3, .. }), "{error}");
}

/// Goal: actions that were carried out keep their outcomes when a later round finds no table. Method:
/// the table is dropped while the first round's call is answered.
#[tokio::test]
async fn a_table_that_is_dropped_under_a_batch_leaves_the_outcomes_of_others() {
    let shared = Arc::new(OnceLock::<Arc<Shared>>::new());
    let of_handler = Arc::clone(&shared);
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        of_handler.get().unwrap().regions.lock().unwrap().clear();
        multi_response(seen, |row| (row == "b").then_some("NotServingRegionException"))
    })
    .await;
    assert!(shared.set(Arc::clone(&fakes.shared)).is_ok());
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let gets = ["a", "b"].map(|row| Action::Get(Get::new(row)));
    let outcomes = table.batch(gets.to_vec()).await.unwrap();
    assert_eq!(outcomes[0].as_ref().unwrap().as_ref().unwrap().key, "a");
    let error = outcomes[1].as_ref().unwrap_err();
    assert_eq!(error.remote().unwrap().class_name(), "TableNotFoundException");
}

/// Goal: the socket of an idle connection is closed while its handle exists. Method: the server reads to
/// the end.
#[tokio::test]
async fn an_idle_connection_closes_its_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let mut options = ClusterOptions::new(Registry::bootstrap(&target).unwrap());
    options.idle_timeout = Duration::from_millis(20);
    let opened = Connection::open(target.into(), Service::Client, &options)
        .await
        .unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut received = Vec::new();
    let closed = stream.read_to_end(&mut received);
    tokio::time::timeout(Duration::from_secs(10), closed)
        .await
        .unwrap()
        .unwrap();
    assert!(!opened.is_usable());
}

#[tokio::test]
async fn a_batch_is_cut_by_the_number_of_actions() {
    let groups = Groups::default();
    let noted = Arc::clone(&groups);
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        note(&noted, seen);
        multi_response(seen, |_| None)
    })
    .await;
    let table = fakes
        .cluster(|options| options.batch_actions = 3)
        .table("t")
        .unwrap();
    let rows: Vec<String> = (0..8).map(|number| format!("r{number}")).collect();
    let read = table.get_multiple(rows.iter().map(Get::new)).await.unwrap();
    assert_eq!(read.len(), 8);
    let mut sizes: Vec<_> = groups
        .lock()
        .unwrap()
        .iter()
        .map(|call| call.1[0].len())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 3, 3]);
}

/// A scanner's answer: these rows with one cell each.
pub(super) fn fetched(rows: &[&str], scanner_id: u64, more_in_region: bool) -> Answer {
    let mut cells = Vec::new();
    for row in rows {
        cell(row, "f", "q", b"v").encode(&mut cells);
    }
    let response = ScanResponse {
        cells_per_result: vec![1; rows.len()],
        partial_flag_per_result: vec![false; rows.len()],
        scanner_id: Some(scanner_id),
        more_results: Some(true),
        more_results_in_region: Some(more_in_region),
        ttl: Some(60_000),
        ..ScanResponse::default()
    };
    Answer::Message(response.encode_to_vec(), cells)
}

/// Goal: a scan whose scanner is lost loses and doubles no row. Method: the second fetch fails in each way;
/// the scan must then open behind the last row.
#[tokio::test]
async fn a_scan_goes_on_behind_its_last_row() {
    for failure in [
        || Answer::exception("UnknownScannerException", "lease"),
        || Answer::exception("NotServingRegionException", "moved"),
        || Answer::exception("exceptions.ScannerResetException", "reset"),
        || Answer::Close,
    ] {
        let opened = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&opened);
        let fakes = Fakes::start(&[("", "", 0)], move |seen| {
            let request: ScanRequest = seen.parameter();
            let Some(scan) = request.scan else {
                return failure();
            };
            let mut opened = noted.lock().unwrap();
            opened.push((scan.start_row.unwrap_or_default(), scan.include_start_row));
            match opened.len() {
                1 => fetched(&["a", "b"], 1, true),
                _ => fetched(&["c"], 2, false),
            }
        })
        .await;
        let table = fakes.cluster(|_| {}).table("t").unwrap();
        let rows = table.scan(Scan::new()).unwrap().collect().await.unwrap();
        let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        let opened = opened.lock().unwrap();
        assert_eq!(*opened, [(Bytes::new(), None), (Bytes::from("b"), Some(false))]);
    }
}

/// The scanner of an overloaded server still exists: the same fetch is sent again.
#[tokio::test]
async fn an_overloaded_server_keeps_the_scanner() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        let request: ScanRequest = seen.parameter();
        let mut calls = noted.lock().unwrap();
        calls.push((request.scanner_id, request.next_call_seq));
        match calls.len() {
            1 => fetched(&["a"], 5, true),
            2 => Answer::exception("CallQueueTooBigException", "full"),
            _ => fetched(&["b"], 5, false),
        }
    })
    .await;
    let cluster = fakes.cluster(|options| options.overload_pause = Duration::from_millis(1));
    let rows = cluster
        .table("t")
        .unwrap()
        .scan(Scan::new())
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!(rows.len(), 2);
    let calls = calls.lock().unwrap();
    assert_eq!(*calls, [(None, None), (Some(5), Some(0)), (Some(5), Some(0))]);
}

#[tokio::test]
async fn a_scan_visits_the_regions_of_its_range() {
    for (scan, expected) in [
        (Scan::new(), vec!["", "h", "p"]),
        (Scan::new().start_row("i").stop_row("p"), vec!["i"]),
        (Scan::new().start_row("b").stop_row("q"), vec!["b", "h", "p"]),
        (
            Scan::new().reversed(true).start_row("i").stop_row("c"),
            vec!["i", "h"],
        ),
    ] {
        let opened = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&opened);
        let fakes = Fakes::start(&THREE_REGIONS, move |seen| {
            let scan = seen
                .parameter::<ScanRequest>()
                .scan
                .expect("every region is at its end at once");
            let start = String::from_utf8_lossy(&scan.start_row.unwrap_or_default()).into_owned();
            noted.lock().unwrap().push(start);
            fetched(&[], 1, false)
        })
        .await;
        let table = fakes.cluster(|_| {}).table("t").unwrap();
        assert!(table.scan(scan).unwrap().collect().await.unwrap().is_empty());
        assert_eq!(*opened.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn a_limit_ends_a_scan_and_closes_its_scanner() {
    let closed = Arc::new(AtomicU32::new(0));
    let noted = Arc::clone(&closed);
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        let request: ScanRequest = seen.parameter();
        if request.close_scanner == Some(true) {
            noted.fetch_add(1, Ordering::Relaxed);
            return Answer::message(&ScanResponse::default());
        }
        assert_eq!(
            (request.number_of_rows, request.limit_of_rows),
            (Some(2), Some(2))
        );
        fetched(&["a", "b"], 1, true)
    })
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let rows = table.first_rows(Scan::new(), 2).await.unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(closed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_renewal_counts_as_a_call_of_the_scanner() {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&numbers);
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        let request: ScanRequest = seen.parameter();
        noted.lock().unwrap().push((request.renew, request.next_call_seq));
        match request.renew {
            Some(true) => Answer::message(&ScanResponse::default()),
            _ => fetched(&["a"], 1, request.next_call_seq != Some(1)),
        }
    })
    .await;
    let mut scanner = fakes
        .cluster(|_| {})
        .table("t")
        .unwrap()
        .scanner(Scan::new())
        .unwrap();
    assert!(scanner.next_batch().await.unwrap().is_some());
    assert_eq!(scanner.lease(), Some(Duration::from_mins(1)));
    scanner.renew().await.unwrap();
    assert!(scanner.next_batch().await.unwrap().is_some());
    assert_eq!(scanner.next_batch().await.unwrap(), None);
    assert_eq!(
        *numbers.lock().unwrap(),
        [(None, None), (Some(true), Some(0)), (None, Some(1))]
    );
}

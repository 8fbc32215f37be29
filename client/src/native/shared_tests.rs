//! The client as a gateway uses it: shared look-ups, a cluster that is away, scanners without a waiting
//! caller.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use basalt_idl::native::messages::{ScanRequest, ScanResponse};

use super::fake::{Answer, Fakes};
use super::tests::{closed_port, fetched, found, one_region};
use super::{Cluster, ClusterOptions, Registry};
use crate::error::{Error, ErrorKind};
use crate::{Get, Put, Scan};

/// One look-up serves all callers that miss the same region.
#[tokio::test]
async fn waiting_callers_share_a_look_up() {
    let fakes = Fakes::start(&[("", "", 0)], |_| found("r", "v")).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..50 {
        let table = table.clone();
        callers.spawn(async move { table.get(Get::new(format!("r{number}"))).await.unwrap() });
    }
    assert_eq!(callers.join_all().await.len(), 50);
    let log = fakes.log();
    for call in ["meta server", "look-up"] {
        assert_eq!(log.iter().filter(|method| *method == call).count(), 1, "{call}");
    }
}

/// Counts failed attempts to connect.
#[derive(Debug, Default)]
struct Refusals(AtomicU32);

impl super::Observer for Refusals {
    fn connected(&self, is_open: bool) {
        self.0.fetch_add(u32::from(!is_open), Ordering::Relaxed);
    }
}

/// Callers of a cluster that is away fail together after one round, and at once: nothing is repeated.
#[tokio::test]
async fn callers_of_a_cluster_that_is_away_fail_after_one_round() {
    let refusals = Arc::new(Refusals::default());
    let mut options =
        ClusterOptions::new(Registry::bootstrap(&format!("127.0.0.1:{}", closed_port())).unwrap());
    options.fails_when_away = true;
    options.pause = Duration::from_mins(1);
    options.observer = Some(Arc::clone(&refusals) as _);
    let table = Cluster::new(options).table("t").unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let table = table.clone();
        callers.spawn(async move { table.get(Get::new("r")).await.unwrap_err() });
    }
    for error in callers.join_all().await {
        assert!(matches!(error, Error::Away { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Retry);
    }
    let refusals = refusals.0.load(Ordering::Relaxed);
    assert!((1..5).contains(&refusals), "{refusals} attempts to connect");
}

/// A write whose repetition fails for good says that the first attempt may have been made.
#[tokio::test]
async fn a_write_that_was_sent_has_an_unknown_outcome() {
    let fakes = one_region(vec![found("r", "v"), Answer::Close]).await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    table.get(Get::new("r")).await.unwrap();
    // The location of the put is known; that of its repetition is looked up.
    fakes.shared.regions.lock().unwrap().clear();
    let error = table.put(Put::new("r").cell("f", "q", "v")).await.unwrap_err();
    assert!(matches!(error, Error::Sent { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("outcome is unknown") && text.contains("does not exist"),
        "{text}"
    );
}

/// A scan whose caller goes while it is opened leaves no scanner behind.
#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_opening_closes_its_scanner() {
    let (opened, is_opened) = std::sync::mpsc::channel();
    let (go_on, may_answer) = std::sync::mpsc::channel::<()>();
    let may_answer = Mutex::new(may_answer);
    let closed = Arc::new(Mutex::new(Vec::new()));
    let seen_closed = Arc::clone(&closed);
    let fakes = Fakes::start(&[("", "", 0)], move |seen| {
        let request: ScanRequest = seen.parameter();
        if request.close_scanner == Some(true) {
            seen_closed.lock().unwrap().push(request.scanner_id);
            return Answer::message(&ScanResponse::default());
        }
        opened.send(()).unwrap();
        may_answer.lock().unwrap().recv().unwrap();
        fetched(&["a"], 77, true)
    })
    .await;
    // It keeps the connection open.
    let cluster = fakes.cluster(|_| {});
    let table = cluster.table("t").unwrap();
    let mut scanner = table.scanner(Scan::new().rows_per_fetch(1)).unwrap();
    let opening = tokio::spawn(async move { scanner.next_batch().await.map(drop) });
    tokio::task::spawn_blocking(move || is_opened.recv().unwrap())
        .await
        .unwrap();
    opening.abort();
    assert!(opening.await.unwrap_err().is_cancelled());
    go_on.send(()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while closed.lock().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the scanner is not closed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(*closed.lock().unwrap(), [Some(77)]);
}

/// A scanner that is dropped is closed, and a program can wait for that.
#[tokio::test]
async fn the_close_of_a_dropped_scanner_can_be_awaited() {
    let fakes = Fakes::start(&[("", "", 0)], |seen| {
        let request: ScanRequest = seen.parameter();
        match request.close_scanner {
            Some(true) => Answer::message(&ScanResponse::default()),
            _ => fetched(&["a"], 5, true),
        }
    })
    .await;
    let cluster = fakes.cluster(|_| {});
    let mut scanner = cluster.table("t").unwrap().scanner(Scan::new()).unwrap();
    scanner.next_batch().await.unwrap();
    scanner.renewal().unwrap().send().await.unwrap();
    let before = fakes.log().len();
    drop(scanner);
    cluster.scanners_closed().await;
    assert_eq!(fakes.log().len(), before + 1);
}

/// HBase takes a number of rows above that of a signed integer for a negative one.
#[tokio::test]
async fn requests_name_no_more_rows_than_a_signed_number() {
    let fakes = Fakes::start(&[("", "", 0)], |seen| {
        let request: ScanRequest = seen.parameter();
        assert!(
            request
                .number_of_rows
                .is_some_and(|rows| i32::try_from(rows).is_ok())
        );
        fetched(&["a"], 5, false)
    })
    .await;
    let table = fakes.cluster(|_| {}).table("t").unwrap();
    let mut scanner = table.scanner_by_message(basalt_idl::native::messages::Scan::default(), None);
    assert_eq!(scanner.next_batch().await.unwrap().unwrap().len(), 1);
    scanner.set_rows_per_fetch(u32::MAX);
    assert_eq!(scanner.next_batch().await.unwrap(), None);
}

//! Histories of acknowledged writes: what the next primary must have of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use basalt_client::Client;

use super::*;

/// A client that puts numbered rows one after the other, and knows the last number that was acknowledged.
pub(super) struct Writer {
    acknowledged: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    /// Writes until it is stopped, or a write fails.
    pub(super) fn start(address: SocketAddr, from: u32) -> Self {
        let (acknowledged, stop) = (Arc::new(AtomicU32::new(from)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
            move || {
                let runtime = Runtime::new().expect("a runtime");
                let connecting = async { Client::connect(&address.to_string()).await?.table("t") };
                let table = runtime.block_on(connecting).expect("a connection");
                let mut number = from;
                while !stop.load(Ordering::Acquire) {
                    let put =
                        Put::new(format!("row-{number:06}").as_str()).cell("f", "q", number.to_string());
                    if runtime.block_on(table.put(put)).is_err() {
                        return;
                    }
                    number += 1;
                    acknowledged.store(number, Ordering::Release);
                }
            }
        });
        Self {
            acknowledged,
            stop,
            thread: Some(thread),
        }
    }

    pub(super) fn acknowledged(&self) -> u32 {
        self.acknowledged.load(Ordering::Acquire)
    }

    pub(super) fn await_writes(&self, count: u32) {
        let from = self.acknowledged();
        until("writes are acknowledged", || self.acknowledged() >= from + count);
    }

    /// Ends it; returns how many rows were acknowledged.
    pub(super) fn end(mut self) -> u32 {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it was started");
        thread.join().expect("it does not panic");
        self.acknowledged()
    }
}

/// The number of rows of `t`, which are those from 0 on without a gap.
#[track_caller]
pub(super) fn rows(node: &Node) -> u32 {
    let cells = node.cells("t");
    for (number, cell) in cells.iter().enumerate() {
        assert!(
            cell.starts_with(&format!("row-{number:06} ")),
            "row {number} is missing: {cell}"
        );
    }
    u32::try_from(cells.len()).expect("few rows")
}

/// Goal: with `standby.sync`, no acknowledged write is missing after the primary was killed and the standby
/// took its place, again and again. The one before becomes the standby of the next round, on an empty
/// directory.
#[test]
fn no_acknowledged_write_is_lost_with_a_synchronous_standby() {
    let settings = [
        SMALL[0],
        SMALL[1],
        "standby.sync=\"standby\"",
        "standby.sync_timeout_ms=60000",
    ];
    let mut leader = Node::start(&settings);
    leader.create("t");
    let mut from = 0;
    for round in 0..kills() {
        let standby = Node::follow(&leader, &settings);
        await_standby(&leader, &standby);
        until("writes wait for the standby", || {
            leader.status()["alone"] == json!(false)
        });
        let writer = Writer::start(leader.main, from);
        writer.await_writes(200 + 37 * (round % 7));
        leader.kill();
        let killed = Instant::now();
        let acknowledged = writer.end();
        let promoted = standby.promote();
        assert_eq!(promoted["fenced"], json!(false));
        assert_eq!(promoted["term"], json!(round + 1));
        standby.create(&format!("u{round}"));
        println!(
            "round {round}: promoted in {} ms, a table created {} ms after the kill",
            promoted["took_ms"],
            killed.elapsed().as_millis()
        );
        let found = rows(&standby);
        // One more may have come, whose answer was lost.
        assert!(
            found == acknowledged || found == acknowledged + 1,
            "round {round}: {found} rows, {acknowledged} acknowledged"
        );
        from = found;
        leader = standby;
    }
}

/// Goal: without it, the next primary has the acknowledged writes but some of the last ones.
#[test]
fn a_prefix_is_there_without_a_synchronous_standby() {
    let mut leader = Node::start(&SMALL);
    leader.create("t");
    let mut from = 0;
    for round in 0..kills() {
        let standby = Node::follow(&leader, &SMALL);
        let writer = Writer::start(leader.main, from);
        writer.await_writes(300);
        leader.kill();
        let acknowledged = writer.end();
        standby.promote();
        let found = rows(&standby);
        println!("round {round}: {acknowledged} acknowledged, {found} found");
        assert!(
            found <= acknowledged + 1,
            "round {round}: {found} rows, {acknowledged} acknowledged"
        );
        assert!(
            found + 200 > acknowledged,
            "round {round}: {found} rows, {acknowledged} acknowledged"
        );
        from = found;
        leader = standby;
    }
}

/// Goal: a promotion beside a living primary loses nothing that it has acknowledged, whenever it comes.
#[test]
fn a_switch_under_load_loses_nothing() {
    let mut leader = Node::start(&SMALL);
    leader.create("t");
    let mut from = 0;
    for _ in 0..kills() {
        let standby = Node::follow(&leader, &SMALL);
        let writer = Writer::start(leader.main, from);
        writer.await_writes(300);
        let promoted = standby.promote();
        assert_eq!(promoted["fenced"], json!(true));
        println!("promoted beside a living primary in {} ms", promoted["took_ms"]);
        let acknowledged = writer.end();
        let found = rows(&standby);
        assert!(
            found == acknowledged || found == acknowledged + 1,
            "{found} rows, {acknowledged} acknowledged"
        );
        from = found;
        leader = standby;
    }
}

/// Goal: without its standby a synchronous primary goes on alone after its time, says so, and waits again
/// once the standby is back.
#[test]
fn a_synchronous_primary_goes_on_alone_and_says_so() {
    let settings = ["standby.sync=\"standby\"", "standby.sync_timeout_ms=300"];
    let leader = Node::start(&settings);
    leader.create("t");
    assert_eq!(
        leader.server().metric("basalt_standby_alone"),
        1,
        "there is no standby yet"
    );
    let mut standby = Node::follow(&leader, &[]);
    until("writes wait for the standby", || {
        leader.server().metric("basalt_standby_alone") == 0
    });
    let unconfirmed = leader.server().metric("basalt_standby_unconfirmed_writes_total");
    leader.fill("t", 0..10, "v");
    leader.create("u");
    assert_eq!(
        leader.server().metric("basalt_standby_unconfirmed_writes_total"),
        unconfirmed
    );
    standby.kill();
    leader.fill("t", 10..20, "alone");
    assert_eq!(leader.server().metric("basalt_standby_alone"), 1);
    assert!(leader.server().metric("basalt_standby_unconfirmed_writes_total") > unconfirmed);
    assert_eq!(leader.status()["alone"], json!(true));
    let ready = leader.server().http_get("/readyz");
    assert!(ready.contains("writes wait for no standby"), "{ready}");
    standby.restart();
    until("writes wait for the standby again", || {
        leader.server().metric("basalt_standby_alone") == 0
    });
    leader.fill("t", 20..30, "together");
    leader.server.expect("it runs").kill();
    standby.promote();
    assert_eq!(standby.cells("t").len(), 30);
}

/// Goal: a primary that was away while its standby took its place takes no write when it is back, and one
/// that cannot be asked is told.
#[test]
fn a_primary_that_comes_back_is_fenced() {
    let mut leader = Node::start(&SMALL);
    leader.create("t");
    leader.fill("t", 0..10, "v");
    let mut standby = Node::follow(&leader, &SMALL);
    await_standby(&leader, &standby);
    leader.kill();
    assert_eq!(standby.promote()["fenced"], json!(false));
    standby.fill("t", 10..20, "at the new primary");

    // It asks its standby when it starts.
    leader.restart();
    assert_eq!(leader.status()["role"], json!("fenced"));

    // The new one is down when the old one comes back: the old one is told later.
    let settings = [SMALL[0], SMALL[1], "standby.ask_ms=100"];
    let mut third = Node::follow(&standby, &settings);
    await_standby(&standby, &third);
    standby.kill();
    third.promote();
    third.kill();
    standby.settings.push("standby.ask_ms=100".into());
    standby.restart();
    assert_eq!(standby.status()["role"], json!("primary"), "nobody has told it");
    third.restart();
    until("the primary before is fenced", || {
        standby.status()["role"] == json!("fenced")
    });
    assert_eq!(third.cells("t").len(), 20);
}

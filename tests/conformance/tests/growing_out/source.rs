//! Basalt replicates live into HBase: a peer of Basalt names HBase's ZooKeeper, and HBase's region server
//! gets the edits of Basalt's log.

use basalt_test_support::until;

use crate::rig::Rig;

/// Time for edits to arrive.
const SECONDS: u32 = 60;

const FAILURES: &str = "basalt_replication_failures_total{peer=\"out\"}";

/// Peer `out` of Basalt is HBase.
fn add_peer(rig: &mut Rig) {
    rig.steps
        .run("add_peer b out h replication.source.sleepforretries=100");
}

fn create_both(rig: &mut Rig, table: &str) {
    rig.steps.run(&format!("create b {table}"));
    rig.steps.run(&format!("create h {table} split=row-00000500"));
}

fn await_equal(rig: &mut Rig, table: &str) -> String {
    rig.steps.run(&format!("await_equal {table} {SECONDS}"))
}

/// Check 16: the calls on peers by HBase's Admin, and their refusals.
#[test]
fn check_16_peers_by_the_calls_of_hbases_admin() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    add_peer(&mut rig);
    assert_eq!(rig.steps.run("peers b"), "out ENABLED");
    rig.steps.run("disable_peer b out");
    assert_eq!(rig.steps.run("peers b"), "out DISABLED");
    rig.steps.run("bandwidth b out 1000000");
    let config = rig.steps.run("peer_config b out");
    assert!(config.contains("1000000"), "{config}");
    for (step, text) in [
        ("disable_peer b out", "has already been disabled"),
        ("enable_peer b none", "ReplicationPeerNotFoundException"),
        ("remove_peer b none", "ReplicationPeerNotFoundException"),
        ("peer_config b none", "ReplicationPeerNotFoundException"),
        ("add_peer b out h", "already exists"),
        ("add_peer b self b", "should not replicate to itself"),
        ("add_peer b bad-id h", "Found invalid peer name"),
    ] {
        let refused = rig.steps.attempt(step).unwrap_err();
        assert!(refused.contains(text), "{step}: {refused}");
    }
    assert_eq!(rig.steps.run("peer_modification b off"), "true");
    let refused = rig.steps.attempt("enable_peer b out").unwrap_err();
    assert!(refused.contains("modification disabled"), "{refused}");
    assert_eq!(rig.steps.run("peer_modification b on"), "false");
    rig.kill();
    rig.restart();
    assert_eq!(rig.steps.run("peers b"), "out DISABLED");
    rig.steps.run("remove_peer b out");
    assert_eq!(rig.steps.run("peers b"), "");
}

/// Check 17: puts, versions, tags, times to live, all kinds of tombstones, increments and appends arrive as
/// they are, while regions split; `enable_table_replication` makes the other table.
#[test]
fn check_17_cells_arrive_as_they_are() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    for cluster in ["b", "h"] {
        rig.steps.run(&format!("create_namespace {cluster} ns"));
    }
    for table in ["t", "s"] {
        create_both(&mut rig, table);
    }
    rig.steps.run("create b ns:u local");
    add_peer(&mut rig);
    rig.steps.run("enable_table_replication b ns:u");
    for table in ["t", "ns:u"] {
        rig.steps.run(&format!("variety b {table}"));
        rig.steps.run(&format!("fill b {table} 0 2000 100"));
    }
    // A split flushes, and that drops deleted cells: this table has none.
    rig.steps.run("fill b s 0 2000 100");
    rig.steps.run("split b s row-00001000");
    rig.steps.run("fill b s 500 2000 100");
    await_equal(&mut rig, "s");
    rig.steps.run("count_up b t");
    for table in ["t", "ns:u"] {
        let digest = await_equal(&mut rig, table);
        let cells: u32 = digest.split(' ').next().unwrap().parse().unwrap();
        assert!(cells > 2_340, "{digest}");
    }
    let cells = rig.steps.run("cells h t");
    assert!(
        cells.contains("#\\x00\\x09\\x08"),
        "a time to live is a tag: {cells}"
    );
    until("nothing waits", || {
        rig.steps.run("sources b").starts_with("out lag=0 ")
    });
    let sources = rig.steps.run("sources b");
    assert!(sources.ends_with("running=true"), "{sources}");
}

/// Check 18, shorter: a disabled peer keeps the log, over a start, and catches up.
#[test]
fn check_18_a_disabled_peer_catches_up() {
    let small = ["memstore.flush_bytes=1048576", "wal.segment_bytes=1048576"];
    let Some(mut rig) = Rig::start(&[], &small) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    rig.steps.run("disable_peer b out");
    rig.steps.run("fill b t 0 50000 200");
    rig.steps.run("flush b t");
    let kept = || std::fs::read_dir(rig.data().join("wal/kept")).unwrap().count();
    assert!(kept() > 5, "{} files", kept());
    rig.kill();
    rig.restart();
    rig.steps.run("enable_peer b out");
    let digest = rig.steps.run("await_equal t 180");
    assert!(digest.starts_with("50000 cells"), "{digest}");
}

/// Check 19, with a table that HBase refuses for a while: the position never passes an answer.
#[test]
fn check_19_edits_wait_for_a_disabled_table() {
    let Some(mut rig) = Rig::start(&["hbase.client.retries.number=1"], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    rig.steps.run("fill b t 0 1000 10");
    await_equal(&mut rig, "t");
    rig.steps.run("disable h t");
    let before = rig.server().metric(FAILURES);
    rig.steps.run("fill b t 1000 1000 10");
    until("HBase refuses the edits", || {
        rig.server().metric(FAILURES) > before
    });
    rig.steps.run("enable h t");
    await_equal(&mut rig, "t");
}

/// Check 20: Basalt is killed several times while it ships.
#[test]
fn check_20_kills_lose_nothing() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    rig.steps.run("disable_peer b out");
    rig.steps.run("fill b t 0 60000 100");
    rig.steps.run("enable_peer b out");
    for cells in [1_000, 20_000, 40_000] {
        rig.steps.run(&format!("await_cells h t {cells} {SECONDS}"));
        rig.kill();
        rig.restart();
    }
    let digest = rig.steps.run("await_equal t 120");
    assert!(digest.starts_with("60000 cells"), "{digest}");
}

/// Check 22: the queue waits for a table that HBase lacks; when it is dropped here, its edits are skipped and
/// counted, and the queue goes on.
#[test]
fn check_22_edits_of_a_dropped_table() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    rig.steps.run("create b gone");
    add_peer(&mut rig);
    rig.steps.run("fill b gone 0 1000 100");
    rig.steps.run("fill b t 0 1000 100");
    until("HBase refuses the edits", || rig.server().metric(FAILURES) > 1);
    rig.steps.run("drop b gone");
    await_equal(&mut rig, "t");
    let dropped = "basalt_replication_unsent_edits_total{peer=\"out\",reason=\"dropped_table\"}";
    // The rows of `t` may have arrived before, with an earlier attempt.
    until("they are counted", || rig.server().metric(dropped) > 0);
}

/// Check 10: both are peers of each other. Both end with the same cells, and no edit goes round in a circle.
#[test]
fn check_10_active_active() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    rig.steps.run("add_peer h p b");
    rig.steps.run("fill b t 0 1000 100");
    rig.steps.run("fill h t 1000 1000 100");
    let digest = rig.steps.run("await_cells b t 2000 60");
    assert!(digest.starts_with("2000 cells"), "{digest}");
    await_equal(&mut rig, "t");
    let shipped = "basalt_replication_shipped_edits_total{peer=\"out\"}";
    let sunk = "basalt_replication_sink_edits_total";
    let before = (rig.server().metric(shipped), rig.server().metric(sunk));
    rig.steps.run("put b t of-basalt value");
    await_equal(&mut rig, "t");
    rig.steps.run("put h t of-hbase value");
    await_equal(&mut rig, "t");
    rig.steps.run("put b t again value");
    await_equal(&mut rig, "t");
    let after = (rig.server().metric(shipped), rig.server().metric(sunk));
    assert_eq!(
        after,
        (before.0 + 2, before.1 + 1),
        "edits shipped, and taken from HBase"
    );
}

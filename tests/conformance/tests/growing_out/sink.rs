//! HBase replicates live into Basalt: a peer of HBase names Basalt, and HBase's replication source sends the
//! edits of its log.

use std::time::{Duration, Instant};

use basalt_test_support::until;

use crate::rig::Rig;

/// Time for edits to arrive.
const SECONDS: u32 = 60;

/// Peer `p` of HBase is Basalt.
fn add_peer(rig: &mut Rig) {
    rig.steps.run("add_peer h p b");
}

fn create_both(rig: &mut Rig, table: &str) {
    rig.steps.run(&format!("create h {table}"));
    rig.steps.run(&format!("create b {table} split=row-00000500"));
}

fn await_equal(rig: &mut Rig, table: &str) -> String {
    rig.steps.run(&format!("await_equal {table} {SECONDS}"))
}

/// Checks 1 and 2: HBase accepts Basalt as a peer; it refuses itself, and a server that does not answer.
#[test]
fn check_1_and_2_peers_are_accepted_and_refused() {
    let Some(mut rig) = Rig::start(&["zookeeper.recovery.retry=1"], &[]) else {
        return;
    };
    add_peer(&mut rig);
    assert_eq!(rig.steps.run("peers h"), "p ENABLED");
    let itself = rig.steps.attempt("add_peer h self h").unwrap_err();
    assert!(itself.contains("should not replicate to itself"), "{itself}");
    rig.kill();
    let absent = rig.steps.attempt("add_peer h absent b");
    assert!(absent.is_err(), "{absent:?}");
    assert_eq!(rig.steps.run("peers h"), "p ENABLED");
}

/// Checks 3 and 4: puts, versions, tags, times to live, all kinds of tombstones, increments and appends
/// arrive as they are. So do those of a table in a namespace, and those into a table that is read only.
#[test]
fn check_3_and_4_cells_arrive_as_they_are() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    for cluster in ["h", "b"] {
        rig.steps.run(&format!("create_namespace {cluster} ns"));
    }
    for table in ["t", "ns:u"] {
        create_both(&mut rig, table);
    }
    rig.steps.run("read_only b ns:u true");
    add_peer(&mut rig);
    for table in ["t", "ns:u"] {
        rig.steps.run(&format!("variety h {table}"));
        let digest = await_equal(&mut rig, table);
        let cells: u32 = digest.split(' ').next().unwrap().parse().unwrap();
        assert!(cells > 340, "{digest}");
    }
    let cells = rig.steps.run("cells b t");
    assert!(
        cells.contains("#\\x00\\x09\\x08"),
        "a time to live is a tag: {cells}"
    );
    let refused = rig.steps.attempt("put b ns:u row value").unwrap_err();
    assert!(refused.contains("is read only"), "{refused}");
    // A kill loses nothing that was acknowledged to the source.
    rig.kill();
    rig.restart();
    for table in ["t", "ns:u"] {
        await_equal(&mut rig, table);
    }
}

/// Check 5: a batch of values of 1 MiB, which the source sends as one call of more than
/// `server.max_message_bytes`.
#[test]
fn check_5_a_batch_of_100_mib() {
    let capacity = "replication.source.size.capacity=134217728";
    let Some(mut rig) = Rig::start(&[capacity, "hbase.hregion.memstore.flush.size=268435456"], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    rig.kill();
    rig.steps.run("large h t 100 1048576");
    // By now the source has all of it.
    rig.restart();
    let digest = rig.steps.run("await_equal t 180");
    assert!(digest.starts_with("100 cells"), "{digest}");
    assert_eq!(rig.server().metric("basalt_protocol_errors_total"), 0);
}

/// Check 6: the queue waits for a table that is missing here, and all of its edits arrive once it is created.
/// Nothing of other tables is lost meanwhile.
#[test]
fn check_6_the_queue_waits_for_a_missing_table() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    add_peer(&mut rig);
    rig.steps.run("create h late");
    rig.steps.run("fill h late 0 2000 100");
    await_metric(&rig, "basalt_replication_sink_failed_batches_total", 2);
    rig.steps.run("create b late");
    await_equal(&mut rig, "late");
}

/// Check 7: edits of a table that is missing here and was dropped at the source are dropped by the source,
/// if it is set to do so.
#[test]
fn check_7_edits_of_a_dropped_table() {
    let dropping = "hbase.replication.drop.on.deleted.table=true";
    let Some(mut rig) = Rig::start(&[dropping], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    rig.steps.run("create h gone");
    rig.steps.run("fill h gone 0 1000 100");
    await_metric(&rig, "basalt_replication_sink_failed_batches_total", 2);
    rig.steps.run("drop h gone");
    rig.steps.run("fill h t 0 1000 100");
    await_equal(&mut rig, "t");
}

/// Check 9, smaller: Basalt is killed several times while rows are written.
#[test]
fn check_9_kills_lose_nothing() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    let mut from = 0;
    for _ in 0..4 {
        rig.steps.send(&format!("fill h t {from} 20000 100"));
        let before = rig.server().metric("basalt_replication_sink_edits_total");
        await_metric(&rig, "basalt_replication_sink_edits_total", before + 1);
        rig.kill();
        rig.restart();
        rig.steps.answer().expect("written");
        from += 20_000;
    }
    rig.steps.run("count_up h t");
    let digest = rig.steps.run("await_equal t 120");
    assert!(digest.starts_with("80020 cells"), "{digest}");
}

/// Check 11: a copy that runs beside replication says which cluster it is from, and the log keeps that: no
/// peer of Basalt would send the rows back. Rows of replication have it, too; those of clients have none.
#[test]
fn check_11_the_log_knows_where_edits_come_from() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    rig.steps.run("create h copied local");
    rig.steps.run("create b copied");
    create_both(&mut rig, "replicated");
    rig.steps.run("fill h copied 0 100 10");
    rig.steps.run(
        "tool h org.apache.hadoop.hbase.mapreduce.CopyTable --versions=2147483647 --all.cells --peer.adr={b} copied",
    );
    add_peer(&mut rig);
    rig.steps.run("fill h replicated 0 10 10");
    await_equal(&mut rig, "copied");
    await_equal(&mut rig, "replicated");
    rig.steps.run("create b own");
    rig.steps.run("put b own row value");
    let cluster = rig.steps.run("cluster_id h");
    rig.kill();
    let log = rig.data().join("wal/0000000000000001.wal");
    let printed = Rig::basalt(&["dump", "--cells", &log.display().to_string()]);
    let passed = format!("has passed cluster {cluster}");
    let mut origin_of_own = Vec::new();
    let mut origin = None;
    for line in printed.lines() {
        if line.starts_with("  region ") {
            origin = None;
        } else if line.trim() == passed {
            origin = Some(());
        } else if line.contains(" row/f:q/") {
            origin_of_own.push(origin);
        } else if line.contains(" row-0000") {
            assert_eq!(origin, Some(()), "{line}");
        }
    }
    assert_eq!(origin_of_own, [None], "{printed}");
    assert!(printed.matches(&passed).count() >= 2, "{printed}");
    assert!(printed.contains(" written at "), "{printed}");
}

/// Check 12: notes that HBase writes into its log for its own replication tracker are dropped, and counted.
#[test]
fn check_12_replication_markers_do_no_harm() {
    let markers = [
        "hbase.regionserver.replication.marker.enabled=true",
        "hbase.regionserver.replication.marker.chore.duration=500",
        "hbase.regionserver.replication.sink.tracker.enabled=true",
    ];
    let Some(mut rig) = Rig::start(&markers, &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    rig.steps.run("fill h t 0 100 10");
    await_equal(&mut rig, "t");
    await_metric(&rig, "basalt_replication_sink_dropped_total{kind=\"marker\"}", 2);
    rig.steps.run("fill h t 100 100 10");
    await_equal(&mut rig, "t");
    assert_eq!(
        rig.server()
            .metric("basalt_replication_sink_failed_batches_total"),
        0
    );
}

/// Check 13: bulk loads of HBase are not sent by default. When they are, they are refused with a text that
/// names both settings until Basalt may read the files, and then loaded: over the boundary of two regions,
/// into a table that is read only.
#[test]
fn check_13_bulk_loads() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    add_peer(&mut rig);
    let load = format!("load h t {} 0 10 loaded 1000", rig.folder("offered"));
    rig.steps.run(&load);
    rig.steps.run("put h t after value");
    rig.steps.run(&format!("await_cells b t 1 {SECONDS}"));
    assert!(rig.steps.run("digest b t raw").starts_with("1 cells"));
    drop(rig);

    let enabled = [
        "hbase.replication.bulkload.enabled=true",
        "hbase.replication.cluster.id=h",
    ];
    let Some(mut rig) = Rig::start(&enabled, &[]) else {
        return;
    };
    create_both(&mut rig, "t");
    rig.steps.run("read_only b t true");
    add_peer(&mut rig);
    rig.steps.run("put h t row-00000001 older");
    await_equal(&mut rig, "t");
    let load = format!("load h t {} 400 200 loaded 1000", rig.folder("offered"));
    rig.steps.run(&load);
    await_metric(&rig, "basalt_replication_sink_failed_batches_total", 1);
    assert!(rig.steps.run("digest b t raw").starts_with("1 cells"));
    rig.stop();
    let allowed = format!("bulkload.directories=[\"{}\"]", rig.hbase.dir().display());
    rig.set(allowed);
    rig.restart();
    await_equal(&mut rig, "t");
    assert_eq!(
        rig.server().metric("basalt_replication_sink_loaded_files_total"),
        1
    );
    rig.steps.run("put h t after value");
    await_equal(&mut rig, "t");
}

/// Check 14: HBase's `enable_table_replication` creates the table here with its splits, and then demands
/// equal descriptors.
#[test]
fn check_14_enable_table_replication() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    rig.steps
        .run("create h t local split=row-00000300 split=row-00000600");
    add_peer(&mut rig);
    rig.steps.run("enable_table_replication h t");
    assert_eq!(rig.steps.run("regions b t"), rig.steps.run("regions h t"));
    rig.steps.run("equal_descriptors t");
    rig.steps.run("fill h t 0 1000 10");
    await_equal(&mut rig, "t");
    // Now the table is there.
    rig.steps.run("enable_table_replication h t");
}

/// Check 15: `status 'replication'` shows that the sink waits, then what it has applied, and how late.
#[test]
fn check_15_the_status_shows_the_sink() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    let figures = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let idle = figures(&rig.steps.run("sink b"));
    assert_eq!(
        (&*idle[0], &*idle[1], &*idle[3]),
        ("age=0", "waiting=true", "total=0")
    );
    create_both(&mut rig, "t");
    // Written while Basalt is away: their age is large.
    add_peer(&mut rig);
    rig.kill();
    rig.steps.run("fill h t 0 10 10");
    let begun = Instant::now();
    until("the edits are old", || begun.elapsed() > Duration::from_secs(3));
    rig.restart();
    await_equal(&mut rig, "t");
    let late = figures(&rig.steps.run("sink b"));
    let age = |figures: &[String]| -> u64 { figures[0]["age=".len()..].parse().unwrap() };
    assert_eq!(late[1], "waiting=false");
    assert!(age(&late) >= 3_000, "{late:?}");
    rig.steps.run("put h t row value");
    await_equal(&mut rig, "t");
    let soon = figures(&rig.steps.run("sink b"));
    assert!(age(&soon) < age(&late), "{soon:?} after {late:?}");
    let total = |figures: &[String]| -> u64 { figures[3]["total=".len()..].parse().unwrap() };
    assert_eq!(total(&soon), total(&late) + 1);
}

/// Waits until a metric of Basalt has reached a value.
fn await_metric(rig: &Rig, name: &str, value: u64) {
    until(&format!("{name} is {value}"), || {
        rig.server().metric(name) >= value
    });
}

//! The log that is kept for peers.

use super::*;

/// Segments that a start reads, and those that were set aside.
fn segments(node: &Node) -> (usize, usize) {
    let count = |below: &str| {
        let Ok(files) = std::fs::read_dir(node.data().join(below)) else {
            return 0;
        };
        let names = files.map(|file| file.expect("an entry").file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(".wal"))
            .count()
    };
    (count("wal"), count("wal/kept"))
}

/// Goal: the log is kept for a peer that is disabled, over a start, which reads no more of it than without
/// the peer; the peer catches up, and then the log goes.
#[test]
fn the_log_is_kept_for_a_disabled_peer_and_starts_stay_short() {
    let (mut here, there) = (Node::start(&SMALL), Node::start(&[]));
    here.create("t");
    there.create("t");
    here.replicate_to(&there);
    here.set_enabled("p", false).expect("disabled");
    for round in 0..12_u32 {
        here.fill("t", round * 3_000..(round + 1) * 3_000);
        here.run(here.cluster.flush_table("t"));
    }
    let (read, kept) = segments(&here);
    assert!(kept > 5 && read < 6, "{kept} segments set aside, {read} not");
    until("the bytes are shown", || {
        here.metric("basalt_replication_kept_log_bytes{peer=\"p\"}") > 5 << 20
    });
    until("the lag is shown", || here.source().replication_lag > 0);
    here.kill();
    here.restart();
    assert_eq!(here.peers()[0].state.state(), State::Disabled);
    assert!(segments(&here).1 >= kept);
    here.set_enabled("p", true).expect("enabled");
    await_same(&here, &there, "t");
    until("the log is released", || segments(&here).1 == 0);
}

/// Goal: at the limit of the log that is kept, writes are refused with the peer's name until it has caught up
/// or is removed.
#[test]
fn writes_are_refused_at_the_limit() {
    let settings = [SMALL[0], SMALL[1], "replication.max_log_bytes=16777216"];
    let (here, there) = (Node::start(&settings), Node::start(&[]));
    here.create("t");
    let added = here.add_peer("slow", config_of(&there.key()), State::Disabled);
    added.expect("a peer");
    let registry = Registry::bootstrap(&here.address.to_string()).expect("an address");
    let options = ClusterOptions {
        retries: 0,
        ..ClusterOptions::new(registry)
    };
    let impatient = here.runtime.block_on(async { Cluster::new(options) });
    let table = impatient.table("t").expect("a name");
    let mut number = 0;
    let value = "v".repeat(100_000);
    let refused = loop {
        let put = Put::new(format!("row-{number:06}")).cell("f", "q", &value);
        // A region that splits refuses a put, too, for a moment.
        if let Err(error) = here.runtime.block_on(table.put(put))
            && !error.to_string().contains("NotServingRegionException")
        {
            break error.to_string();
        }
        number += 1;
        assert!(number < 2_000, "the limit is reached");
    };
    assert!(refused.contains("replication peer slow"), "{refused}");
    let request = pb::RemoveReplicationPeerRequest {
        peer_id: "slow".to_owned(),
    };
    here.ask::<pb::RemoveReplicationPeerResponse>(Method::RemoveReplicationPeer, &request)
        .expect("removed");
    here.run(here.table("t").put(Put::new("after").cell("f", "q", "1")));
    assert_eq!(segments(&here).1, 0);
}

/// Goal: with the other policy the peer is removed, and writes go on.
#[test]
fn a_peer_is_dropped_at_the_limit() {
    let settings = [
        SMALL[0],
        SMALL[1],
        "replication.max_log_bytes=16777216",
        "replication.when_log_full=\"drop\"",
    ];
    let (here, there) = (Node::start(&settings), Node::start(&[]));
    let table = here.create("t");
    let added = here.add_peer("slow", config_of(&there.key()), State::Disabled);
    added.expect("a peer");
    let value = "v".repeat(100_000);
    let mut number = 0;
    until("the peer is gone", || {
        let puts = (0..20).map(|_| {
            number += 1;
            Put::new(format!("row-{number:06}")).cell("f", "q", &value)
        });
        here.run(table.put_multiple(puts));
        here.peers().is_empty()
    });
    assert_eq!(here.metric("basalt_replication_dropped_peers_total"), 1);
    until("the log that was kept for it is gone", || segments(&here).1 == 0);
}

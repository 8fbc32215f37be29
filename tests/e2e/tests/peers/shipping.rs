//! Edits at a peer: they arrive, in order, and none goes round in a circle.

use super::*;

/// Goal: puts, versions, tombstones and increments arrive as they are, written before and after kills and
/// restarts of both sides; nothing of a family without the scope; the position survives, so that a restart
/// does not send everything again.
#[test]
fn edits_arrive_over_kills_and_restarts_of_both_sides() {
    let (mut here, mut there) = (Node::start(&[]), Node::start(&[]));
    let table = here.create("t");
    there.create("t");
    here.replicate_to(&there);
    here.fill("t", 0..500);
    for round in 0..4_i64 {
        here.run(table.increment(Increment::new("counter").column("f", "n", round)));
        here.run(table.put(Put::new("versions").cell("f", "q", format!("{round}"))));
    }
    here.run(table.delete(Delete::columns("versions").column("f", "q")));
    here.run(table.delete(Delete::families("row-000001").family("f")));
    await_equal(&here, &there, "t");

    there.kill();
    here.fill("t", 500..2_000);
    there.restart();
    here.fill("t", 2_000..2_500);
    await_equal(&here, &there, "t");

    here.fill("t", 2_500..6_000);
    here.kill();
    here.restart();
    here.fill("t", 6_000..6_500);
    let cells = await_equal(&here, &there, "t");
    assert!(cells.len() > 6_500, "{} cells", cells.len());
    let of_g = Scan::new().family("g").raw(true);
    assert_eq!(there.run(there.table("t").first_rows(of_g, 1)), Vec::new());

    until("everything is shipped", || here.source().replication_lag == 0);
    here.stop();
    here.restart();
    let before = there.metric("basalt_replication_sink_edits_total");
    here.fill("t", 0..10);
    await_same(&here, &there, "t");
    let again = there.metric("basalt_replication_sink_edits_total") - before;
    assert!(
        again < 50,
        "{again} edits after a stop: what was answered is not sent again"
    );
    assert_eq!(here.peers().len(), 1);
}

/// Goal: two clusters that are peers of each other end with equal tables; no edit goes round in a circle.
#[test]
fn edits_of_two_peers_of_each_other_end_after_one_hop() {
    let (here, there) = (Node::start(&[]), Node::start(&[]));
    here.create("t");
    there.create("t");
    here.replicate_to(&there);
    there.replicate_to(&here);
    here.fill("t", 0..100);
    there.fill("t", 100..200);
    await_equal(&here, &there, "t");
    until("nothing waits", || {
        here.source().replication_lag == 0 && there.source().replication_lag == 0
    });
    // Edits of the other side are read once more, and left out.
    let unsent = "basalt_replication_unsent_edits_total{peer=\"p\",reason=\"filtered\"}";
    until("the other's edits were read", || {
        here.metric(unsent) > 0 && there.metric(unsent) > 0
    });
    let shipped = |node: &Node| node.metric("basalt_replication_shipped_edits_total{peer=\"p\"}");
    let before = (shipped(&here), shipped(&there));
    here.run(here.table("t").put(Put::new("last").cell("f", "q", "1")));
    await_equal(&here, &there, "t");
    until("the last edit came round", || {
        there.source().edits_read() > 0 && there.source().replication_lag == 0
    });
    assert_eq!((shipped(&here), shipped(&there)), (before.0 + 1, before.1));
}

/// Goal: the queue waits for a table that the peer lacks, and goes on when the table is dropped here.
#[test]
fn a_missing_table_is_waited_for_and_a_dropped_one_is_skipped() {
    let (here, there) = (Node::start(&[]), Node::start(&[]));
    here.create("late");
    here.create("gone");
    here.create("t");
    there.create("t");
    here.replicate_to(&there);
    let failures = |here: &Node| here.metric("basalt_replication_failures_total{peer=\"p\"}");
    here.fill("late", 0..50);
    until("the peer refuses the edits", || failures(&here) > 1);
    assert!(here.source().replication_lag > 0);
    there.create("late");
    await_equal(&here, &there, "late");

    let before = failures(&here);
    here.fill("gone", 0..50);
    here.fill("t", 0..50);
    until("the peer refuses the edits", || failures(&here) > before);
    here.run(here.cluster.disable_table("gone"));
    here.run(here.cluster.drop_table("gone"));
    await_equal(&here, &there, "t");
    let dropped = "basalt_replication_unsent_edits_total{peer=\"p\",reason=\"dropped_table\"}";
    assert!(here.metric(dropped) > 0);
}

/// Goal: a peer gets the tables and families that it names, of regions that were split meanwhile, too.
#[test]
fn a_peer_gets_what_it_names() {
    let (here, there) = (Node::start(&[]), Node::start(&[]));
    for node in [&here, &there] {
        node.create("t");
        node.create("u");
    }
    let config = pb::ReplicationPeer {
        table_cfs: vec![table_families("t", &["f"])],
        replicate_all: Some(false),
        ..config_of(&format!("hbase+rpc://{}", there.address))
    };
    here.add_peer("p", config, State::Disabled).expect("a peer");
    here.fill("u", 0..100);
    here.fill("t", 0..100);
    here.run(here.cluster.split_region("t", "row-000050"));
    here.fill("t", 100..200);
    here.set_enabled("p", true).expect("enabled");
    await_same(&here, &there, "t");
    until("nothing waits", || here.source().replication_lag == 0);
    assert_eq!(there.cells("u", true), Vec::<String>::new());
}

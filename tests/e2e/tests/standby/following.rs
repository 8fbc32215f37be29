//! Contents of a standby, after whatever was done at the primary, over restarts of both.

use basalt_client::admin::Admin;
use basalt_client::{Client, Get};

use super::*;

/// Goal: the five minutes of an operator: a standby of a server with data, more data and changes of the
/// schema, a promotion with nothing lost, and a primary that stays fenced.
#[test]
fn a_standby_takes_the_place_of_its_primary() {
    let mut leader = Node::start(&SMALL);
    leader.create("before");
    leader.fill("before", 0..2_000, &"v".repeat(300));
    let standby = Node::follow(&leader, &SMALL);
    leader.create("t");
    leader.fill("t", 0..500, "first");
    leader.fill("t", 100..200, "second");
    leader.add("t", "counter", 5);
    await_standby(&leader, &standby);
    let status = leader.status();
    assert_eq!((&status["role"], &status["term"]), (&json!("primary"), &json!(0)));
    assert_eq!(status["standbys"][0]["connected"], json!(true), "{status}");
    assert!(standby.server().metric("basalt_standby_applied_rows_total") > 0);
    let ready = standby.server().http_get("/readyz");
    assert!(ready.contains("standby of 127.0.0.1:"), "{ready}");

    // Native clients are sent to the primary, whomever they ask first.
    let client = cluster_at(&leader.runtime, &[standby.main]);
    let through = client.table("t").expect("a name");
    let count = leader.run(through.increment(Increment::new("counter").column("f", "n", 1)));
    drop(count);

    let before = (leader.cells("before"), leader.cells("t"));
    let promoted = standby.promote();
    assert_eq!(
        (&promoted["fenced"], &promoted["term"]),
        (&json!(true), &json!(1))
    );
    assert_eq!((standby.cells("before"), standby.cells("t")), before);
    standby.fill("t", 500..510, "at the new primary");
    standby.add("t", "counter", 1);

    // The primary before answers no call, also after a restart.
    for _ in 0..2 {
        let status = leader.status();
        assert_eq!((&status["role"], &status["term"]), (&json!("fenced"), &json!(1)));
        let error = thrift_refusal(&leader);
        assert!(
            error.contains(&format!("replaced by the primary, {}", standby.main)),
            "{error}"
        );
        leader.kill();
        leader.restart();
    }
    // Its clients find the new one by themselves.
    let client = cluster_at(&leader.runtime, &[leader.main]);
    let through = client.table("t").expect("a name");
    leader.run(through.put(Put::new("row-000777").cell("f", "q", "by way of the old one")));
    assert!(
        standby
            .cells("t")
            .iter()
            .any(|cell| cell.ends_with("by way of the old one"))
    );
}

/// The refusal of a write over Thrift.
fn thrift_refusal(node: &Node) -> String {
    let put = async {
        let client = Client::connect(&node.main.to_string()).await?;
        client.table("t")?.put(Put::new("a").cell("f", "q", "v")).await
    };
    let refused = node.runtime.block_on(put);
    refused.expect_err("it is refused").to_string()
}

/// Goal: both sides are killed and restarted, apart and together, and the standby goes on where it was,
/// without another copy.
#[test]
fn a_standby_goes_on_after_restarts() {
    let mut leader = Node::start(&SMALL);
    leader.create("t");
    leader.fill("t", 0..1_000, "of before");
    let mut standby = Node::follow(&leader, &SMALL);
    for round in 0..4 {
        leader.fill("t", round * 100..round * 100 + 300, &format!("round {round}"));
        leader.create(&format!("u{round}"));
        // A primary forgets turns when it starts again; a standby that lacks one gets another copy.
        await_standby(&leader, &standby);
        leader.fill("t", 0..20, &format!("round {round} goes on"));
        match round {
            0 => {
                standby.kill();
                leader.fill("t", 0..3_000, "while the standby was away");
                standby.restart();
            }
            1 => {
                leader.kill();
                leader.restart();
            }
            2 => {
                standby.kill();
                leader.kill();
                leader.restart();
                leader.fill("u0", 0..10, "before the standby was back");
                standby.restart();
            }
            _ => {
                standby.stop();
                leader.stop();
                standby.server = None;
                leader.restart();
                standby.restart();
            }
        }
        leader.fill("t", 50..60, &format!("after round {round}"));
        await_standby(&leader, &standby);
    }
    assert_eq!(standby.status()["role"], json!("standby"));
    assert_eq!(
        leader.server().metric("basalt_standby_copies_total"),
        0,
        "since its start"
    );
    let tables = ["t", "u0", "u1", "u2", "u3"];
    let before: Vec<_> = tables.iter().map(|table| leader.cells(table)).collect();
    standby.promote();
    let after: Vec<_> = tables.iter().map(|table| standby.cells(table)).collect();
    assert_eq!(after, before);
}

/// Goal: a change that brings files of its own makes the standby fetch another copy, by itself.
#[test]
fn a_clone_of_a_snapshot_brings_a_new_copy() {
    let leader = Node::start(&SMALL);
    leader.create("t");
    leader.fill("t", 0..100, "v");
    let standby = Node::follow(&leader, &SMALL);
    await_standby(&leader, &standby);
    leader.run(async {
        let client = Client::connect(&leader.main.to_string()).await?;
        let admin = Admin::new(&client);
        admin.snapshot("t", "s", true, 0).await?;
        admin.clone_snapshot("s", "c").await
    });
    leader.fill("c", 100..110, "in the clone");
    until("the standby has a copy with the clone", || {
        leader.server().metric("basalt_standby_copies_total") == 2
            && leader.status()["standbys"][0]["connected"] == json!(true)
    });
    await_standby(&leader, &standby);
    let before = (leader.cells("t"), leader.cells("c"));
    standby.promote();
    assert_eq!((standby.cells("t"), standby.cells("c")), before);
}

/// Goal: a standby that may read answers from what it has, and writes nothing.
#[test]
fn stale_reads_are_answered_when_asked_for() {
    let leader = Node::start(&[]);
    leader.create("t");
    leader.fill("t", 0..10, "v");
    let standby = Node::follow(&leader, &["standby.reads=\"stale\""]);
    await_standby(&leader, &standby);
    let row = standby.run(async {
        let client = Client::connect(&standby.main.to_string()).await?;
        client.table("t")?.get(Get::new("row-000003")).await
    });
    let row = row.expect("the row is there");
    assert_eq!(row.cells[0].value, "3 v");
    let error = thrift_refusal(&standby);
    assert!(
        error.contains(&format!("standby of the primary, {}", leader.main)),
        "{error}"
    );
}

/// Goal: a second standby follows the new primary by itself, with a new copy.
#[test]
fn another_standby_turns_to_the_new_primary() {
    let leader = Node::start(&SMALL);
    leader.create("t");
    leader.fill("t", 0..100, "v");
    let first = Node::follow(&leader, &SMALL);
    let second = Node::follow_as(&leader, "second", "http", &[]);
    await_standby(&leader, &first);
    await_standby(&leader, &second);
    first.promote();
    first.fill("t", 100..120, "at the new primary");
    until("the second standby follows the new primary", || {
        let status = second.try_status();
        status.is_some_and(|status| status["role"] == json!("standby") && status["term"] == json!(1))
    });
    await_standby(&first, &second);

    // A fence that was meant for a primary at this address changes nothing.
    let status = first.status();
    let fence = json!({"cluster_id": status["cluster_id"], "term": 9, "leader": status["leader"]});
    let (status, text) = second.server().http_post("/standby/fence", &fence.to_string());
    assert_eq!(status, 200, "{text}");
    first.fill("t", 120..140, "after the fence");
    await_standby(&first, &second);
    assert_eq!(second.status()["term"], json!(1));
    let before = first.cells("t");
    drop(first);
    assert_eq!(second.promote()["term"], json!(2));
    assert_eq!(second.cells("t"), before);
}

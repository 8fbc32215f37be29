//! `basalt move`: a table goes to another Basalt while a client writes to it, and the program is killed at
//! each step.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use basalt_test_support::binary;
use serde_json::Value;

use super::checker::Checker;
use super::*;

const TABLE: &str = "t";
const PEER: &str = "move_t";

/// `basalt move` of [`TABLE`] with these options.
fn command(here: &Node, dir: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(binary("basalt"));
    command
        .current_dir(dir)
        .args(["move", TABLE, "--from", &here.address.to_string()])
        .args(["--http", &here.server().http.to_string()])
        .args(options);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs it to its end, which is good; its output.
fn moved(here: &Node, dir: &Path, options: &[&str]) -> String {
    let output = command(here, dir, options)
        .output()
        .expect("the binary was built");
    assert!(output.status.success(), "{options:?}: {}", text(&output));
    text(&output)
}

/// Runs it to its end, which is a refusal; its output.
fn refused(here: &Node, dir: &Path, options: &[&str]) -> String {
    let output = command(here, dir, options)
        .output()
        .expect("the binary was built");
    assert_eq!(output.status.code(), Some(1), "{options:?}: {}", text(&output));
    text(&output)
}

/// Runs it until it has printed a line that begins so and a condition holds, and kills it. Returns whether it
/// did: the program may have been faster than the kill of an earlier run, and come to its end without the
/// line.
fn killed(here: &Node, dir: &Path, options: &[&str], line: &str, mut is_so: impl FnMut() -> bool) -> bool {
    let mut child = command(here, dir, options)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the binary was built");
    let stdout = child.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(stdout).lines().map(|line| line.expect("text"));
    let found = lines.any(|printed| printed.starts_with(line));
    if found {
        until(line, &mut is_so);
        child.kill().expect("it runs");
    }
    let status = child.wait().expect("it ends");
    assert!(found || status.success(), "{line}: {status}");
    found
}

fn state(dir: &Path) -> Value {
    let bytes = std::fs::read(dir.join("basalt-move-t.json")).expect("a state");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn registry(node: &Node) -> Registry {
    Registry::bootstrap(&node.address.to_string()).expect("an address")
}

/// A table with four regions, cells of all kinds, and no scope.
fn create(here: &Node) {
    let schema = TableSchema::new(TABLE)
        .expect("a name")
        .family(FamilySchema::new("f").versions(3))
        .family(FamilySchema::new("g").attribute("REPLICATION_SCOPE", "0"));
    let keys = ["row-000500", "row-001000", "row-001500"];
    let keys = keys.map(|key| key.as_bytes().to_vec()).to_vec();
    here.run(here.cluster.create_table_split(schema, keys));
    here.fill(TABLE, 0..2_000);
    // Its time to live is a tag.
    let expires = Put::new("row-000009")
        .cell("f", "ttl", "1")
        .ttl(Duration::from_hours(100));
    here.run(here.table(TABLE).put(expires));
    here.run(
        here.table(TABLE)
            .delete(Delete::columns("row-000007").column("f", "q")),
    );
    here.run(
        here.table(TABLE)
            .delete(Delete::families("row-000008").family("g")),
    );
}

fn scope(node: &Node, family: usize) -> Option<String> {
    let schema = node.run(node.cluster.describe_table(TABLE));
    let attributes = schema.families()[family].attributes.clone().unwrap_or_default();
    let scope = attributes.get("REPLICATION_SCOPE".as_bytes());
    scope.map(|scope| String::from_utf8_lossy(scope).into_owned())
}

/// Panics unless clients may not write to the table.
fn assert_read_only(node: &Node) {
    let write = Put::new("refused").cell("f", "q", "1");
    let outcome = node.runtime.block_on(node.table(TABLE).put(write));
    let error = outcome.expect_err("the table is read only").to_string();
    assert!(error.contains("read only"), "{error}");
}

/// Kills the program at the beginning of each step before the switch, and once in the middle of the copy.
fn kill_at_each_step(here: &Node, dir: &Path, to: &str) {
    let mut kills = 0;
    // The first kills may come before the state is there. At this rate the copy takes several times the time
    // between two notes of its ranges, whatever the machine.
    let slow = ["--to", to, "--max-rate", "20KB", "--parallel", "1"];
    for step in ["1 of 8, check", "2 of 8, peer", "3 of 8, table", "4 of 8, copy"] {
        kills += u32::from(killed(here, dir, &slow, &format!("step {step}"), || true));
    }
    let is_copied = || !state(dir)["copied"].as_array().expect("a list").is_empty();
    assert!(killed(here, dir, &slow, "step 4 of 8, copy", is_copied));
    assert_eq!(state(dir)["step"], "copy");
    for step in ["5 of 8, catch-up", "6 of 8, compare", "7 of 8, back-peer"] {
        kills += u32::from(killed(here, dir, &[], &format!("step {step}"), || true));
    }
    assert!(kills > 4, "{kills} of 7 steps were killed at their beginning");
}

/// Goal: acceptance check 30 between two Basalts. A table moves while a client writes; no acknowledged write
/// is missing, however often the program is killed; before the switch everything can be taken back; after it,
/// clients can come back, and go again.
#[test]
fn a_table_moves_while_it_is_written_to_and_the_program_is_killed() {
    let (here, there) = (Node::start(&[]), Node::start(&[]));
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let dir = dir.path();
    create(&here);
    let scopes = (scope(&here, 0), scope(&here, 1));
    let checker = Checker::start(TABLE, vec![registry(&here), registry(&there)]);
    let to = there.key();

    kill_at_each_step(&here, dir, &to);
    moved(&here, dir, &["--undo"]);
    assert!(here.peers().is_empty() && there.peers().is_empty());
    assert!(!there.run(there.cluster.table_exists(TABLE)));
    assert_eq!((scope(&here, 0), scope(&here, 1)), scopes);
    let ended = refused(&here, dir, &[]);
    assert!(ended.contains("remove basalt-move-t.json"), "{ended}");
    std::fs::remove_file(dir.join("basalt-move-t.json")).expect("it was there");

    let ready = moved(&here, dir, &["--to", &to]);
    assert!(ready.contains("--switch") && ready.contains("equal: "), "{ready}");
    assert_eq!(there.run(there.table(TABLE).regions()).len(), 4);
    // A kill during the switch is taken back by the next run.
    while state(dir)["step"] != "switching" {
        if state(dir)["step"] == "switched" {
            // It was faster than the kill.
            moved(&here, dir, &["--undo"]);
        }
        killed(&here, dir, &["--switch"], "step 8 of 8", || {
            state(dir)["step"] != "ready"
        });
    }
    let ready = moved(&here, dir, &[]);
    assert!(ready.contains("everything is ready"), "{ready}");
    checker.check(0);
    let before = checker.writes();
    until("writes go on here", || checker.writes() > before);

    let switched = moved(&here, dir, &["--switch"]);
    let line = switched.lines().find(|line| line.starts_with("read only for "));
    println!("{}", line.unwrap_or_else(|| panic!("{switched}")));
    // Nothing is acknowledged here any more, and everything that was is there.
    assert_read_only(&here);
    let writes = checker.check(1);
    assert_read_only(&here);
    assert_eq!(checker.writes(), writes);
    checker.go_to(1);
    let before = checker.writes();
    until("writes go on there", || checker.writes() > before + 100);

    let back = moved(&here, dir, &["--undo"]);
    assert!(back.contains("Clients come back now"), "{back}");
    assert_read_only(&there);
    checker.check(0);
    checker.go_to(0);
    let before = checker.writes();
    until("writes go on here", || checker.writes() > before + 100);

    moved(&here, dir, &["--switch"]);
    checker.go_to(1);
    let before = checker.writes();
    until("writes go on there", || checker.writes() > before);
    moved(&here, dir, &["--finish"]);
    assert_read_only(&here);
    assert!(here.peers().is_empty() && there.peers().is_empty());
    assert_eq!((scope(&there, 0), scope(&there, 1)), scopes);
    let writes = checker.check(1);
    assert!(writes > 500, "{writes} writes");
}

/// Goal: what differs is found, named, and ends a comparison and a switch; the table is writable then.
#[test]
fn differences_are_named_and_end_the_switch() {
    let (here, there) = (Node::start(&[]), Node::start(&[]));
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let dir = dir.path();
    create(&here);
    let options = ["--to", &there.key(), "--no-back-peer", "--until", "catch-up"];
    moved(&here, dir, &options);
    let strange = Put::new("row-000601").cell("f", "strange", "1");
    there.run(there.table(TABLE).put(strange));
    let found = refused(&here, dir, &[]);
    for part in [
        "differs: row row-000601: cell ",
        "f:strange at ",
        "1 rows differ, the first is row-000601",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    there.run(
        there
            .table(TABLE)
            .delete(Delete::columns("row-000601").column("f", "strange")),
    );
    // Tombstones and the cells below them are gone on one side only.
    here.run(here.cluster.flush_table(TABLE));
    let ready = moved(&here, dir, &[]);
    assert!(!ready.contains("; 0 rows were looked at again"), "{ready}");

    let late = Put::new("late").cell("f", "q", "1");
    there.run(there.table(TABLE).put(late));
    let found = refused(&here, dir, &["--switch"]);
    for part in [
        "no cells here, 1 there",
        "the first is late",
        "nothing has happened",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    here.run(here.table(TABLE).put(Put::new("late").cell("f", "q", "2")));
    assert_eq!(state(dir)["step"], "ready");
}

/// Goal: a move that cannot begin or go on says why, and has changed nothing.
#[test]
fn refusals_name_the_thing_and_the_remedy() {
    let (here, mut there) = (Node::start(&[]), Node::start(&[]));
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let dir = dir.path();
    let to = there.key();
    let begin = |options: &[&str]| refused(&here, dir, &[&["--to", &to], options].concat());
    let named = |text: String, part: &str| assert!(text.contains(part), "{part}: {text}");
    named(begin(&[]), "table t does not exist here");
    named(refused(&here, dir, &["--undo"]), "there is no move of table t");
    named(refused(&here, dir, &[]), "--to names the other cluster");
    create(&here);
    named(refused(&here, dir, &["--to", &here.key()]), "is this cluster");
    named(refused(&here, dir, &["--to", "nonsense"]), "nonsense is invalid");
    there.create(TABLE);
    named(begin(&[]), "table t is there already");
    there.run(there.cluster.disable_table(TABLE));
    there.run(there.cluster.drop_table(TABLE));
    here.add_peer(PEER, config_of(&to), State::Disabled)
        .expect("a peer");
    named(begin(&[]), "a replication peer move_t here already");
    let request = pb::RemoveReplicationPeerRequest {
        peer_id: PEER.to_owned(),
    };
    here.ask::<pb::RemoveReplicationPeerResponse>(Method::RemoveReplicationPeer, &request)
        .expect("removed");
    assert!(!dir.join("basalt-move-t.json").exists());

    moved(&here, dir, &["--to", &to, "--no-back-peer", "--until", "compare"]);
    named(refused(&here, dir, &["--finish"]), "are not switched");
    named(
        refused(&here, dir, &["--to", "h:1:/hbase"]),
        "is the state of the move of table t",
    );
    there.kill();
    here.fill(TABLE, 0..10);
    named(refused(&here, dir, &["--switch"]), "does not answer");
    here.run(
        here.table(TABLE)
            .put(Put::new("row").cell("f", "q", "still writable")),
    );
    there.restart();
    moved(&here, dir, &["--switch"]);
    named(refused(&here, dir, &["--undo"]), "there is no peer back");
}

/// Goal: `basalt replication wait` returns when a peer has everything, and not before.
#[test]
fn a_peer_is_waited_for() {
    let (here, mut there) = (Node::start(&[]), Node::start(&[]));
    here.create("t");
    there.create("t");
    here.replicate_to(&there);
    let wait = |peer: &str, limit: &str| {
        let output = Command::new(binary("basalt"))
            .args(["replication", "wait", peer, "--limit", limit])
            .args(["--http", &here.server().http.to_string()])
            .output();
        let output = output.expect("the binary was built");
        (output.status.code(), text(&output))
    };
    for round in 0..20 {
        here.fill("t", round * 100..round * 100 + 100);
        let (code, said) = wait("p", "1m");
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(here.cells("t", true), there.cells("t", true));
    }
    there.kill();
    here.fill("t", 0..10);
    let (code, said) = wait("p", "100ms");
    assert!(
        code == Some(1) && said.contains("the last attempt failed"),
        "{said}"
    );
    let (code, said) = wait("none", "1m");
    assert!(
        code == Some(1) && said.contains("ReplicationPeerNotFound"),
        "{said}"
    );
    here.set_enabled("p", false).expect("disabled");
    let (code, said) = wait("p", "1m");
    assert!(code == Some(1) && said.contains("is disabled"), "{said}");
}

//! Snapshots of tables: taken, listed, deleted; tables made of them; refusals; and a server that is killed in
//! the middle.

use std::sync::Arc;

use basalt_idl::admin::args as own;
use basalt_idl::thrift2::args as two;
use basalt_test_support::check;

use crate::client::{Wire, bytes, killed, name, restarted, start, text};

fn take(snapshot: &str, table: &str) -> own::BasaltSnapshot {
    own::BasaltSnapshot {
        name: snapshot.to_owned(),
        table: bytes(table),
        flush: true,
        ttl_seconds: 0,
    }
}

fn clone(snapshot: &str, table: &str) -> own::BasaltCloneSnapshot {
    own::BasaltCloneSnapshot {
        name: snapshot.to_owned(),
        table: bytes(table),
    }
}

fn restore(snapshot: &str) -> own::BasaltRestoreSnapshot {
    own::BasaltRestoreSnapshot {
        name: snapshot.to_owned(),
    }
}

fn delete(snapshot: &str) -> own::BasaltDeleteSnapshot {
    own::BasaltDeleteSnapshot {
        name: snapshot.to_owned(),
    }
}

/// Names of the snapshots that match.
fn listed(wire: &mut Wire, snapshot: Option<&str>, table: Option<&str>) -> Vec<String> {
    let call = own::BasaltListSnapshots {
        name: snapshot.map(str::to_owned),
        table_name: table.map(str::to_owned),
    };
    wire.ok(&call).into_iter().map(|snapshot| snapshot.name).collect()
}

fn disable(wire: &mut Wire, table: &str) {
    let table_name = name(table);
    wire.ok(&two::DisableTable { table_name });
}

fn enable(wire: &mut Wire, table: &str) {
    let table_name = name(table);
    wire.ok(&two::EnableTable { table_name });
}

/// Rows with their values.
fn values(wire: &mut Wire, table: &str) -> Vec<String> {
    let without_times = |row: String| {
        let (before, behind) = row.split_once('@').expect("a cell has a time");
        let (_, value) = behind.split_once('=').expect("a cell has a value");
        format!("{before}={value}")
    };
    wire.rows(table).into_iter().map(without_times).collect()
}

#[test]
fn snapshots_are_taken_listed_and_deleted() {
    let shared = start(&[]);
    let mut wire = Wire::to(Arc::clone(&shared));
    wire.create("t", &["m"]);
    wire.create("u", &[]);
    wire.put("t", "a", "f:q", "v", None);
    wire.put("t", "z", "g:q", "v", None);
    wire.ok(&take("t-1", "t"));
    wire.ok(&own::BasaltSnapshot {
        flush: false,
        ttl_seconds: 3_600,
        ..take("u-1", "u")
    });
    let of_all = wire.ok(&own::BasaltListSnapshots {
        name: None,
        table_name: None,
    });
    let [first, second] = &of_all[..] else {
        panic!("{of_all:?}")
    };
    assert_eq!(
        (first.name.as_str(), text(&first.table_name)),
        ("t-1", "t".into())
    );
    assert_eq!((first.regions, first.files, first.ttl_seconds), (2, 2, 0));
    assert!(
        first.bytes > 0 && first.created_ms > 1_700_000_000_000,
        "{first:?}"
    );
    assert_eq!((second.regions, second.files, second.ttl_seconds), (1, 0, 3_600));
    assert_eq!(listed(&mut wire, Some("t.*"), None), ["t-1"]);
    assert_eq!(
        listed(&mut wire, Some("t"), None),
        [""; 0],
        "the whole name must match"
    );
    assert_eq!(listed(&mut wire, None, Some("[tu]")), ["t-1", "u-1"]);
    assert_eq!(listed(&mut wire, Some(".*1"), Some("u")), ["u-1"]);
    assert_eq!(shared.server.metric("basalt_snapshots"), 2);
    assert_eq!(shared.server.metric("basalt_snapshot_bytes"), first.bytes as u64);
    for (call, words) in [
        (
            take("t-1", "t"),
            "Snapshot 't-1' already stored on the filesystem.",
        ),
        (
            take("x", "none"),
            "Table 'none' doesn't exist, can't take snapshot.",
        ),
        (take("x", "hbase:meta"), "System table snapshots are not allowed"),
        (
            take("../x", "t"),
            "Illegal first character <.> at 0. Snapshot qualifiers",
        ),
        (
            own::BasaltSnapshot {
                ttl_seconds: -1,
                ..take("x", "t")
            },
            "the time to live is -1 s and must be at least 0",
        ),
    ] {
        wire.refused(&call, &[words, "can_retry: Some(false)"]);
    }
    wire.refused(&delete("x"), &["Snapshot 'x' doesn't exist on the filesystem"]);
    drop(wire);
    let shared = restarted(shared, &[]);
    let mut wire = Wire::to(Arc::clone(&shared));
    assert_eq!(listed(&mut wire, None, None), ["t-1", "u-1"]);
    wire.ok(&delete("t-1"));
    assert_eq!(listed(&mut wire, None, None), ["u-1"]);
}

#[test]
fn tables_are_made_of_snapshots() {
    let shared = start(&[]);
    let mut wire = Wire::to(Arc::clone(&shared));
    wire.create("t", &["m"]);
    wire.put("t", "a", "f:q", "first", None);
    wire.put("t", "z", "f:q", "first", None);
    wire.ok(&take("s", "t"));
    wire.put("t", "a", "f:q", "later", None);
    wire.ok(&clone("s", "c"));
    let first = ["a f:q=first", "z f:q=first"];
    assert_eq!(values(&mut wire, "c"), first);
    wire.put("c", "b", "f:q", "of the clone", None);
    for (call, words) in [
        (clone("s", "t"), "\"t\""),
        (clone("x", "d"), "Snapshot 'x' doesn't exist on the filesystem"),
        (clone("s", "nowhere:d"), "Unknown namespace nowhere!"),
    ] {
        wire.refused(&call, &[words]);
    }
    wire.refused(&restore("s"), &["table t must be disabled before it is restored"]);
    disable(&mut wire, "t");
    wire.ok(&restore("s"));
    let table_name = name("t");
    assert!(wire.ok(&two::IsTableDisabled { table_name }));
    enable(&mut wire, "t");
    assert_eq!(values(&mut wire, "t"), first);
    assert_eq!(values(&mut wire, "c").len(), 3);
    drop(wire);
    let shared = restarted(shared, &[]);
    let mut wire = Wire::to(Arc::clone(&shared));
    assert_eq!(values(&mut wire, "t"), first);
    assert_eq!(values(&mut wire, "c").len(), 3);
}

/// Goal: a call in flight when the server is killed is done as a whole or not at all, and
/// acknowledged calls are done. Method: calls of each kind are sent and not waited for; between
/// that and the kill, a few other calls are answered.
#[test]
fn a_kill_leaves_all_or_nothing() {
    let mut shared = start(&[]);
    let mut wire = Wire::to(Arc::clone(&shared));
    wire.create("t", &["m"]);
    for row in ["a", "z"] {
        wire.put("t", row, "f:q", "first", None);
    }
    wire.ok(&take("s", "t"));
    let first = ["a f:q=first", "z f:q=first"];
    let later = ["a f:q=later", "z f:q=first"];
    drop(wire);
    for round in 0..12 {
        let mut wire = Wire::to(Arc::clone(&shared));
        let mut other = Wire::to(Arc::clone(&shared));
        let (kind, calls) = (round % 4, round / 4 * 2);
        wire.put("t", "a", "f:q", "later", None);
        match kind {
            0 => wire.send(&take("new", "t")),
            1 => wire.send(&clone("s", "c")),
            2 => {
                disable(&mut wire, "t");
                wire.send(&restore("s"));
            }
            _ => {
                wire.ok(&take("old", "t"));
                wire.send(&delete("old"));
            }
        }
        for _ in 0..calls {
            other.ok(&own::BasaltServerStatus {});
        }
        drop((wire, other));
        shared = killed(shared);
        let mut wire = Wire::to(Arc::clone(&shared));
        if kind == 2 {
            enable(&mut wire, "t");
            let found = values(&mut wire, "t");
            assert!(found == first || found == later, "{found:?}");
        } else {
            assert_eq!(values(&mut wire, "t"), later);
        }
        let snapshots = listed(&mut wire, None, None);
        assert!(snapshots.contains(&"s".to_owned()), "{snapshots:?}");
        for snapshot in snapshots.iter().filter(|snapshot| *snapshot != "s") {
            wire.ok(&clone(snapshot, "of-snapshot"));
            assert_eq!(values(&mut wire, "of-snapshot"), later, "{snapshot}");
            drop_table(&mut wire, "of-snapshot");
            wire.ok(&delete(snapshot));
        }
        let table_name = Some(name("c"));
        if wire.ok(&two::TableExists { table_name }) {
            assert_eq!(values(&mut wire, "c"), first);
            drop_table(&mut wire, "c");
        }
    }
    let dir = shared.data_dir();
    let shared = Arc::into_inner(shared).expect("all connections are closed");
    let (server, folder) = shared.into_parts();
    server.stop();
    let checked = check(&dir);
    let said = text(&checked.stdout);
    assert!(
        checked.status.success() && said.contains("1 snapshots with 2 files"),
        "{said}"
    );
    drop(folder);
}

fn drop_table(wire: &mut Wire, table: &str) {
    disable(wire, table);
    let table_name = name(table);
    wire.ok(&two::DeleteTable { table_name });
}

//! Writes without a timestamp, whatever the machine's clock shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use basalt_idl::thrift2::{TDeleteType, args as two};
use basalt_test_support::until;
use bytes::Bytes;

use crate::client::{Wire, bytes, delete, put, shut_down, start_with_clock};

const BEHIND: &str = "basalt_clock_behind_seconds";

fn delete_row(wire: &mut Wire, table: &str, row: &str) {
    wire.ok(&two::DeleteSingle {
        table: bytes(table),
        tdelete: delete(row, TDeleteType::DELETE_COLUMNS, &[]),
    });
}

/// The values of a row, newest first.
fn values(wire: &mut Wire, table: &str, row: &str) -> Vec<String> {
    let cells = wire.row(table, row);
    let value = |cell: &String| cell.split_once('=').map(|(_, value)| value.to_owned());
    cells.iter().filter_map(value).collect()
}

/// Goal: a put right after a delete is visible. Method: one client deletes and puts rows without
/// pauses.
#[test]
fn a_put_right_after_a_delete_is_visible() {
    let mut wire = Wire::connect();
    wire.create("clock", &[]);
    for turn in 0..500 {
        let (row, value) = (format!("r{}", turn % 5), turn.to_string());
        delete_row(&mut wire, "clock", &row);
        wire.put("clock", &row, "f:q", &value, None);
        assert_eq!(values(&mut wire, "clock", &row), [value], "turn {turn}");
        if turn % 3 == 0 {
            delete_row(&mut wire, "clock", &row);
            assert!(values(&mut wire, "clock", &row).is_empty(), "turn {turn}");
        }
    }
}

/// Goal: after the clock is set back by an hour, every write is visible, versions have different
/// timestamps, a cell TTL ends within half a minute, and `/readyz`, a metric and the log report the
/// clock.
#[test]
fn a_clock_that_is_set_back_loses_no_write() {
    let Some(shared) = start_with_clock("+0") else {
        return;
    };
    let mut wire = Wire::to(Arc::clone(&shared));
    wire.create("t", &[]);
    wire.put("t", "before", "f:q", "0", None);
    assert_eq!(shared.server.http_get("/readyz"), "ready\n");
    shared.set_clock("-3600");
    for number in 0..20 {
        let row = format!("r{number}");
        delete_row(&mut wire, "t", &row);
        wire.put("t", &row, "f:q", "x", None);
        assert_eq!(values(&mut wire, "t", &row), ["x"]);
    }
    for value in ["1", "2", "3"] {
        wire.put("t", "before", "f:q", value, None);
        // Time has to pass: versions of the same millisecond replace each other.
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(values(&mut wire, "t", "before"), ["3", "2", "1", "0"]);
    let mut brief = put("brief", "f:q", "v", None);
    brief.attributes = Some(BTreeMap::from([(
        bytes("_ttl"),
        Bytes::copy_from_slice(&500_i64.to_be_bytes()),
    )]));
    wire.ok(&two::Put {
        table: bytes("t"),
        tput: brief,
    });
    until("a cell of half a second lives on", || {
        wire.row("t", "brief").is_empty()
    });
    let ready = shared.server.http_get("/readyz");
    assert!(ready.starts_with("ready; clock: new timestamps are 3"), "{ready}");
    assert!(shared.server.metric(BEHIND) > 3_000);
    shared.set_clock("+0");
    until("the clock has caught up", || shared.server.metric(BEHIND) == 0);
    assert_eq!(shared.server.http_get("/readyz"), "ready\n");
    drop(wire);
    let log = shut_down(shared);
    assert_eq!(log.matches("ahead of this machine's clock").count(), 1, "{log}");
}

/// Goal: with the clock before 1970 or after the year 9999, at the start or later, writes are
/// visible and pages are served.
#[test]
fn no_year_is_too_early_or_too_late() {
    for begin in ["-80y", "+8100y"] {
        let Some(shared) = start_with_clock(begin) else {
            return;
        };
        let mut wire = Wire::to(Arc::clone(&shared));
        wire.create("t", &[]);
        for (turn, set) in [begin, "+0", "-80y", "+8100y", "-5"].into_iter().enumerate() {
            shared.set_clock(set);
            for row in ["a", "b"] {
                let value = turn.to_string();
                delete_row(&mut wire, "t", row);
                wire.put("t", row, "f:q", &value, None);
                assert_eq!(values(&mut wire, "t", row), [value], "from {begin} to {set}");
            }
            for page in [
                "/",
                "/tables/default:t",
                "/jobs",
                "/slow",
                "/heat",
                "/heat?table=default:t",
            ] {
                let text = shared.server.http_get(page);
                // HTTP has no dates before 1970 or after 9999: the reply says to set the clock.
                let shown = if set.ends_with('y') {
                    "set the clock"
                } else {
                    "</html>"
                };
                assert!(text.contains(shown), "{page} at {set}: {text}");
            }
        }
        drop(wire);
        shut_down(shared);
    }
}

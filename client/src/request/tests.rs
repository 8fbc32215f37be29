//! Requests that cannot be right are refused before they are sent.

use super::*;

fn refused<T: std::fmt::Debug>(outcome: Result<T>, part: &str) {
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains(part), "{text:?} does not say {part:?}");
}

#[test]
fn row_keys_have_a_length() {
    refused(Get::new("").into_thrift(), "row key is empty");
    refused(
        Put::new(vec![b'x'; ROW_BYTES_MAX + 1])
            .cell("f", "q", "v")
            .into_thrift(),
        "32768 bytes, more than the limit of 32767",
    );
    assert!(Get::new(vec![b'x'; ROW_BYTES_MAX]).into_thrift().is_ok());
}

#[test]
fn reads_are_checked() {
    refused(Get::new("r").versions(0).into_thrift(), "0 versions");
    let (from, to) = (5, 4);
    refused(Get::new("r").time_range(from..to).into_thrift(), "5..4");
    refused(Scan::new().versions(-1).into_plan(), "-1 versions");
    refused(Scan::new().rows_per_fetch(0).into_plan(), "0 rows per fetch");
    refused(Scan::new().family_time_range("f", -1..4).into_plan(), "-1..4");
}

#[test]
fn writes_are_checked() {
    refused(Put::new("r").into_thrift(), "put names no column");
    refused(
        Put::new("r").cell_at("f", "q", -1, "v").into_thrift(),
        "timestamp -1",
    );
    refused(Increment::new("r").into_thrift(), "increment names no column");
    refused(Append::new("r").into_thrift(), "append names no column");
    refused(RowMutations::new("r").into_thrift(), "no change");
    let other = RowMutations::new("r").put(Put::new("s").cell("f", "q", "v"));
    refused(other.into_thrift(), "another row");
}

/// An empty list of columns would delete the whole row, so it must not leave the client.
#[test]
fn a_delete_says_what_it_means() {
    refused(Delete::columns("r").into_thrift(), "names none");
    refused(
        Delete::columns("r").column("f", "q").up_to(4).into_thrift(),
        "up_to",
    );
    refused(Delete::columns("r").family("f").into_thrift(), "mixes");
    refused(Delete::families("r").column("f", "q").into_thrift(), "mixes");
    refused(
        Delete::family_versions("r").family("f").into_thrift(),
        "timestamp",
    );
    let row = Delete::row("r").up_to(4).into_thrift().unwrap();
    assert_eq!((row.columns, row.timestamp), (None, Some(4)));
    let one = Delete::versions("r")
        .column_at("f", "q", 7)
        .into_thrift()
        .unwrap();
    assert_eq!(one.columns.unwrap()[0].timestamp, Some(7));
}

#[test]
fn a_scan_sends_only_what_was_asked() {
    let plan = Scan::new().into_plan().unwrap();
    assert_eq!(plan.scan, basalt_idl::thrift2::TScan::default());
    assert_eq!(plan.scan.batch_size, None);
}

#[test]
fn a_prefix_becomes_a_range() {
    let plan = Scan::new().prefix("ab").into_plan().unwrap();
    assert_eq!(plan.scan.start_row.as_deref(), Some(&b"ab"[..]));
    assert_eq!(plan.scan.stop_row.as_deref(), Some(&b"ac"[..]));
    let plan = Scan::new().prefix([0xff, 0xff]).into_plan().unwrap();
    assert_eq!(plan.scan.stop_row, None);
    assert_eq!(after_prefix(&[1, 0xff]), [2]);
}

/// The row behind the prefix comes along in a reversed scan, so one row more is asked for than wanted.
#[test]
fn a_reversed_prefix_asks_for_one_more() {
    let plan = Scan::new()
        .prefix("ab")
        .reversed(true)
        .limit(3)
        .into_plan()
        .unwrap();
    assert_eq!(plan.scan.start_row.as_deref(), Some(&b"ac"[..]));
    assert_eq!((plan.scan.limit, plan.rows_left), (Some(4), Some(3)));
    assert_eq!(plan.keep.as_deref(), Some(&b"ab"[..]));
}

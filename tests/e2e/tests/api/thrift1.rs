//! Thrift 1: rows, mutations, counters and checks.

use basalt_idl::thrift1::{self, args as one};

use crate::client::{Wire, bytes, some, values};

/// Thrift 1 reads end before their timestamp, its deletes include it; a name without a colon is the whole
/// family.
#[test]
fn thrift_1_reads_and_deletes() {
    let mut wire = Wire::connect();
    wire.create("t1", &[]);
    for stamp in 1..=3 {
        wire.put("t1", "r", "f:q", &format!("q{stamp}"), Some(stamp));
    }
    wire.put("t1", "r", "f:", "empty", Some(2));
    let get = |column: &str, stamp| one::GetVerTs {
        table_name: some("t1"),
        row: some("r"),
        column: some(column),
        timestamp: Some(stamp),
        num_versions: Some(9),
        ..Default::default()
    };
    for (column, stamp, found) in [
        ("f:q", 3, vec!["q2", "q1"]),
        ("f:q", 1, vec![]),
        ("f:", 9, vec!["empty"]),
        ("f", 3, vec!["empty", "q2", "q1"]),
    ] {
        assert_eq!(
            values(&wire.ok(&get(column, stamp))),
            found,
            "{column} before {stamp}"
        );
    }
    wire.refused(
        &one::GetVerTs {
            num_versions: Some(0),
            ..get("f:q", 3)
        },
        &["maxVersions must be positive", "can_retry: Some(true)"],
    );
    wire.refused(
        &one::GetVerTs {
            timestamp: Some(-1),
            ..get("f:q", 3)
        },
        &["Io(", "negative"],
    );
    wire.refused(
        &one::GetVerTs {
            row: None,
            ..get("f:q", 3)
        },
        &["IllegalArgumentException", "null"],
    );
    wire.refused(
        &one::GetVerTs {
            column: None,
            ..get("f:q", 3)
        },
        &["column is missing"],
    );
    wire.refused(
        &one::GetVerTs {
            table_name: some("no"),
            ..get("f:q", 3)
        },
        &["hbase.TableNotFoundException: no", "can_retry: Some(false)"],
    );
    wire.refused(
        &get("no:q", 3),
        &["NoSuchColumnFamilyException", "can_retry: Some(false)"],
    );

    let rows = ["r", "absent", "r"].map(bytes).to_vec();
    let found = wire.ok(&one::GetRows {
        table_name: some("t1"),
        rows: Some(rows),
        ..Default::default()
    });
    assert_eq!(found.len(), 2, "absent rows are left out, repeated ones are not");
    let columns = found[0].columns.as_ref().expect("a map");
    assert!(columns.contains_key(&b"f:"[..]) && found[0].sorted_columns.is_none());

    let delete = |stamp| one::DeleteAllTs {
        table_name: some("t1"),
        row: some("r"),
        column: some("f:q"),
        timestamp: Some(stamp),
        ..Default::default()
    };
    wire.ok(&delete(2));
    assert_eq!(wire.row("t1", "r"), ["f:@2=empty", "f:q@3=q3"], "inclusive");
    wire.ok(&one::DeleteAllRowTs {
        table_name: some("t1"),
        row: some("r"),
        timestamp: Some(2),
        ..Default::default()
    });
    assert_eq!(wire.row("t1", "r"), ["f:q@3=q3"]);
}

#[test]
fn thrift_1_mutations_counters_and_checks() {
    let mut wire = Wire::connect();
    wire.create("m1", &[]);
    let mutation = |column: &str, value: Option<&str>, is_delete| thrift1::Mutation {
        column: some(column),
        value: value.map(bytes),
        is_delete,
        ..Default::default()
    };
    let mutate = |row: &str, mutations: Vec<thrift1::Mutation>| one::MutateRow {
        table_name: some("m1"),
        row: some(row),
        mutations: Some(mutations),
        ..Default::default()
    };
    wire.ok(&mutate(
        "r",
        vec![mutation("f:a", Some("1"), false), mutation("f:", None, false)],
    ));
    wire.ok(&mutate(
        "r",
        vec![mutation("f", None, true), mutation("f:a", Some("2"), false)],
    ));
    let cells = wire.row("m1", "r");
    assert!(
        cells.len() == 1 && cells[0].ends_with("=2"),
        "deleted, then put: {cells:?}"
    );
    wire.ok(&mutate("r", vec![]));
    wire.refused(
        &mutate(
            "r",
            vec![mutation("f:b", None, false), mutation("f", None, false)],
        ),
        &["IllegalArgument(", "family:qualifier"],
    );
    wire.refused(
        &mutate("", vec![mutation("f:b", None, false)]),
        &["IllegalArgument("],
    );
    assert_eq!(wire.row("m1", "r").len(), 1, "a refused call writes nothing");
    // Put and delete of one row in one call: all puts, then all deletes.
    let batch = thrift1::BatchMutation {
        row: some("s"),
        mutations: Some(vec![
            mutation("f:a", Some("x"), false),
            mutation("f:b", Some("x"), false),
            mutation("f:b", None, true),
        ]),
    };
    wire.ok(&one::MutateRows {
        table_name: some("m1"),
        row_batches: Some(vec![batch]),
        ..Default::default()
    });
    assert_eq!(wire.row("m1", "s").len(), 1);

    let add = |column: &str, value| one::AtomicIncrement {
        table_name: some("m1"),
        row: some("c"),
        column: some(column),
        value: Some(value),
    };
    assert_eq!(wire.ok(&add("f:n", 5)), 5);
    assert_eq!(wire.ok(&add("f:n", i64::MAX)), i64::MIN + 4, "wraps");
    assert_eq!(wire.ok(&add("g", 1)), 1, "no colon: the empty qualifier");
    wire.put("m1", "c", "f:text", "abc", None);
    wire.refused(
        &add("f:text", 1),
        &[
            "DoNotRetryIOException: Field is not a long, it's 3 bytes wide",
            "can_retry: Some(false)",
        ],
    );

    let append = |columns: &[&str], values: &[&str]| one::Append {
        append: Some(thrift1::TAppend {
            table: some("m1"),
            row: some("a"),
            columns: Some(columns.iter().map(|text| bytes(text)).collect()),
            values: Some(values.iter().map(|text| bytes(text)).collect()),
        }),
    };
    assert_eq!(
        values(&wire.ok(&append(&["f:z", "f:b"], &["1", "2"]))),
        ["2", "1"],
        "sorted, not as asked"
    );
    assert_eq!(values(&wire.ok(&append(&["f:z"], &["3"]))), ["13"]);
    wire.refused(&append(&["f:z"], &[]), &["1 columns, 0 values"]);
    wire.refused(&append(&["f"], &["x"]), &["no colon"]);

    let check = |value: Option<&str>| one::CheckAndPut {
        table_name: some("m1"),
        row: some("k"),
        column: some("f:a"),
        value: value.map(bytes),
        mput: Some(mutation("f:a", Some("new"), true)),
        ..Default::default()
    };
    assert!(!wire.ok(&check(Some("x"))));
    assert!(wire.ok(&check(None)), "absent; isDelete is ignored");
    assert!(!wire.ok(&check(None)) && wire.ok(&check(Some("new"))));
}

//! Thrift 2: rows, deletes, checks and counters.

use std::time::{Duration, Instant};

use basalt_idl::thrift2::{self, TDeleteType, args as two};
use bytes::Bytes;

use crate::client::{Wire, bytes, delete, put};

/// The four deletes of Thrift 2, each on versions 1, 2, 3 of `f:q` and version 2 of `f:p`.
#[test]
fn thrift_2_deletes() {
    const LATEST: Option<i64> = Some(i64::MAX);
    let mut wire = Wire::connect();
    wire.create("d2", &[]);
    let whole = thrift2::TDelete {
        row: bytes("whole"),
        timestamp: Some(2),
        ..Default::default()
    };
    let empty_list = thrift2::TDelete {
        columns: Some(Vec::new()),
        timestamp: Some(2),
        ..whole.clone()
    };
    let (version, versions) = (TDeleteType::DELETE_COLUMN, TDeleteType::DELETE_COLUMNS);
    let (family, family_version) = (TDeleteType::DELETE_FAMILY, TDeleteType::DELETE_FAMILY_VERSION);
    for (index, (tdelete, left)) in [
        (delete("", version, &[("f:q", Some(2))]), &["p2", "q3", "q1"][..]),
        (delete("", version, &[("f:q", None)]), &["p2", "q2", "q1"]),
        (delete("", version, &[("f:q", LATEST)]), &["p2", "q2", "q1"]),
        (
            delete("", version, &[("f:q", None), ("f:q", None)]),
            &["p2", "q1"],
        ),
        (delete("", versions, &[("f:q", Some(2))]), &["p2", "q3"]),
        (delete("", versions, &[("f:q", None)]), &["p2"]),
        (delete("", versions, &[("f", None)]), &["p2", "q3", "q2", "q1"]),
        (delete("", family, &[("f", Some(2))]), &["q3"]),
        (delete("", family, &[("f:q", LATEST)]), &[]),
        (delete("", family_version, &[("f", Some(2))]), &["q3", "q1"]),
        (whole, &["q3"]),
        (empty_list, &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let row = format!("r{index}");
        for stamp in 1..=3 {
            wire.put("d2", &row, "f:q", &format!("q{stamp}"), Some(stamp));
        }
        wire.put("d2", &row, "f:p", "p2", Some(2));
        let tdelete = thrift2::TDelete {
            row: bytes(&row),
            ..tdelete
        };
        let shown = format!("{tdelete:?}");
        wire.ok(&two::DeleteSingle {
            table: bytes("d2"),
            tdelete,
        });
        let cells = wire.row("d2", &row);
        let found: Vec<&str> = cells
            .iter()
            .filter_map(|cell| cell.split_once('='))
            .map(|(_, value)| value)
            .collect();
        assert_eq!(found, left, "{shown}");
    }
    let tdelete = delete("r", family_version, &[("f", None)]);
    wire.refused(
        &two::DeleteSingle {
            table: bytes("d2"),
            tdelete,
        },
        &["Io(", "needs a timestamp"],
    );
    let tdeletes = vec![delete("r0", family, &[("f", None)])];
    assert!(
        wire.ok(&two::DeleteMultiple {
            table: bytes("d2"),
            tdeletes
        })
        .is_empty()
    );
}

/// HBase's table: the given value stands left of the operator; a value never passes on an absent cell.
#[test]
fn checks() {
    let mut wire = Wire::connect();
    wire.create("c2", &[]);
    // Operators 0 to 5: LESS, LESS_OR_EQUAL, EQUAL, NOT_EQUAL, GREATER_OR_EQUAL, GREATER.
    for (given, stored, passing) in [
        (None, None, [0, 1, 2, 4, 5].as_slice()),
        (Some(""), None, &[0, 1, 2, 4, 5]),
        (None, Some(""), &[0, 1, 2, 4, 5]),
        (None, Some("m"), &[3]),
        (Some("m"), None, &[]),
        (Some("a"), Some("m"), &[0, 1, 3]),
        (Some("m"), Some("m"), &[1, 2, 4]),
        (Some("z"), Some("m"), &[3, 4, 5]),
    ] {
        for op in 0..6 {
            let row = format!("{given:?} {stored:?} {op}");
            if let Some(stored) = stored {
                wire.put("c2", &row, "f:q", stored, None);
            }
            let mutations = vec![thrift2::TMutation::Put(put(&row, "f:done", "x", None))];
            let passed = wire.ok(&two::CheckAndMutate {
                table: bytes("c2"),
                row: bytes(&row),
                family: bytes("f"),
                qualifier: bytes("q"),
                compare_operator: thrift2::TCompareOperator(op),
                value: given.map(bytes),
                row_mutations: thrift2::TRowMutations {
                    row: bytes(&row),
                    mutations,
                },
            });
            assert_eq!(passed, passing.contains(&op), "given, stored, operator: {row}");
            let written = wire.row("c2", &row).iter().any(|cell| cell.starts_with("f:done"));
            assert_eq!(written, passed, "{row}");
        }
    }
    // The two calls that can only compare for equality.
    let delete_if = |value: Option<&str>| two::CheckAndDelete {
        table: bytes("c2"),
        row: bytes("guarded"),
        family: bytes("f"),
        qualifier: bytes("q"),
        value: value.map(bytes),
        tdelete: delete("guarded", TDeleteType::DELETE_FAMILY, &[("f", None)]),
    };
    let put_if = |value: Option<&str>| two::CheckAndPut {
        table: bytes("c2"),
        row: bytes("guarded"),
        family: bytes("f"),
        qualifier: bytes("q"),
        value: value.map(bytes),
        tput: put("guarded", "f:q", "new", None),
    };
    assert!(!wire.ok(&put_if(Some("x"))) && wire.ok(&put_if(None)) && !wire.ok(&put_if(None)));
    assert!(!wire.ok(&delete_if(None)) && !wire.ok(&delete_if(Some("old"))));
    assert_eq!(wire.row("c2", "guarded").len(), 1);
    assert!(wire.ok(&delete_if(Some("new"))) && wire.row("c2", "guarded").is_empty());
    let check = |row: &str, family: &str| two::CheckAndPut {
        table: bytes("c2"),
        row: bytes(row),
        family: bytes(family),
        qualifier: bytes("q"),
        value: None,
        tput: put("other", "f:q", "x", None),
    };
    wire.refused(&check("row", "f"), &["getRow must match"]);
    wire.refused(
        &check("other", "no"),
        &["Column family no does not exist", "can_retry: Some(false)"],
    );
}

#[test]
fn thrift_2_rows() {
    let mut wire = Wire::connect();
    wire.create("r2", &[]);
    assert!(wire.row("r2", "absent").is_empty(), "a result without a row");
    // An explicit LATEST is the server's time, as Java's client sends it.
    wire.put("r2", "now", "f:q", "v", Some(i64::MAX));
    assert!(!wire.row("r2", "now")[0].contains(&i64::MAX.to_string()));
    let mut brief = put("ttl", "f:q", "v", None);
    brief.attributes = Some([(bytes("_ttl"), Bytes::copy_from_slice(&1_i64.to_be_bytes()))].into());
    wire.ok(&two::Put {
        table: bytes("r2"),
        tput: brief.clone(),
    });
    let began = Instant::now();
    while !wire.row("r2", "ttl").is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "a cell of one millisecond lives on"
        );
    }
    brief.attributes = Some([(bytes("_ttl"), bytes("5"))].into());
    wire.refused(
        &two::Put {
            table: bytes("r2"),
            tput: brief,
        },
        &["_ttl", "8 bytes"],
    );
    for durability in 0..5 {
        let mut tput = put("durable", "f:q", &durability.to_string(), None);
        tput.durability = Some(thrift2::TDurability(durability));
        wire.ok(&two::Put {
            table: bytes("r2"),
            tput,
        });
        let cells = wire.row("r2", "durable");
        assert!(
            cells[0].ends_with(&format!("={durability}")),
            "visible at once: {cells:?}"
        );
    }
    // One row, one step: the family that is not there keeps the other put out too.
    let mutate = |rows: [&str; 2], family: &str| {
        let mutations = vec![
            thrift2::TMutation::Put(put(rows[0], "f:q", "x", None)),
            thrift2::TMutation::Put(put(rows[1], &format!("{family}:q"), "x", None)),
        ];
        let trow_mutations = thrift2::TRowMutations {
            row: bytes("both"),
            mutations,
        };
        two::MutateRow {
            table: bytes("r2"),
            trow_mutations,
        }
    };
    wire.refused(&mutate(["both", "both"], "no"), &["Column family no"]);
    wire.refused(
        &mutate(["both", "else"], "g"),
        &["doesn't match", "can_retry: Some(true)"],
    );
    assert!(wire.row("r2", "both").is_empty());
    wire.ok(&mutate(["both", "both"], "g"));
    assert_eq!(wire.row("r2", "both").len(), 2);

    let increment = |returns| {
        let column = |family: &str, amount| thrift2::TColumnIncrement {
            family: bytes(family),
            qualifier: bytes("n"),
            amount,
        };
        let tincrement = thrift2::TIncrement {
            row: bytes("n"),
            columns: vec![column("g", 1), column("f", 2)],
            return_results: returns,
            ..Default::default()
        };
        two::Increment {
            table: bytes("r2"),
            tincrement,
        }
    };
    let sums = wire.ok(&increment(None)).column_values;
    assert_eq!(
        (&sums[0].family[..], &sums[0].value[..]),
        (&b"f"[..], &2_i64.to_be_bytes()[..]),
        "in sorted order"
    );
    let none = wire.ok(&increment(Some(false)));
    assert!(none.row.is_none() && none.column_values.is_empty());

    let gets = ["n", "absent"].map(|row| thrift2::TGet {
        row: bytes(row),
        ..Default::default()
    });
    assert_eq!(
        wire.ok(&two::ExistsAll {
            table: bytes("r2"),
            tgets: gets.to_vec()
        }),
        [true, false]
    );
    let found = wire.ok(&two::GetMultiple {
        table: bytes("r2"),
        tgets: gets.to_vec(),
    });
    assert!(found[0].row.is_some() && found[1].row.is_none());
}

//! Thrift 2: the fields of puts, increments and appends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use basalt_idl::thrift2::{self, args as two};
use bytes::Bytes;

use crate::client::{Wire, bytes, put, some};

fn ttl_ms(milliseconds: i64) -> BTreeMap<Bytes, Bytes> {
    let value = Bytes::copy_from_slice(&milliseconds.to_be_bytes());
    [(bytes("_ttl"), value)].into()
}

/// Waits until a row has only these cells left.
fn wait_for(wire: &mut Wire, table: &str, row: &str, left: &[&str]) {
    let began = Instant::now();
    loop {
        let cells = wire.row(table, row);
        if cells == left {
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{cells:?} is not {left:?}"
        );
    }
}

#[test]
fn every_field_of_a_put() {
    let mut wire = Wire::connect();
    wire.create("put2", &[]);
    let value = |qualifier: &str, timestamp| thrift2::TColumnValue {
        family: bytes("f"),
        qualifier: bytes(qualifier),
        value: bytes("v"),
        timestamp,
        // Neither is taken over from a put.
        tags: some("\0\u{9}\u{8}12345678"),
        cell_type: Some(8),
    };
    let tput = thrift2::TPut {
        row: bytes("r"),
        column_values: vec![value("own", Some(5)), value("puts", None)],
        timestamp: Some(7),
        attributes: Some([(bytes("unknown"), bytes("x"))].into()),
        durability: Some(thrift2::TDurability::ASYNC_WAL),
        cell_visibility: Some(thrift2::TCellVisibility {
            expression: Some("secret".into()),
        }),
    };
    wire.ok(&two::PutMultiple {
        table: bytes("put2"),
        tputs: vec![tput],
    });
    assert_eq!(wire.row("put2", "r"), ["f:own@5=v", "f:puts@7=v"]);
    // A time to live is a tag, and tags stay in the server.
    let lasting = thrift2::TPut {
        attributes: Some(ttl_ms(3_600_000)),
        ..put("r", "f:lasting", "x", None)
    };
    wire.ok(&two::Put {
        table: bytes("put2"),
        tput: lasting,
    });
    let got = wire.ok(&two::Get {
        table: bytes("put2"),
        tget: thrift2::TGet {
            row: bytes("r"),
            ..Default::default()
        },
    });
    assert_eq!(got.column_values.len(), 3);
    assert!(got.column_values.iter().all(|value| value.tags.is_none()));
}

/// `_ttl` belongs to the put that carries it, also among others in one atomic step, and to
/// increments and appends of its cells.
#[test]
fn a_time_to_live_is_that_of_its_put() {
    let mut wire = Wire::connect();
    wire.create("ttl2", &[]);
    let brief = thrift2::TPut {
        attributes: Some(ttl_ms(1)),
        ..put("r", "f:brief", "x", Some(1))
    };
    let lasting = put("r", "f:lasting", "x", Some(2));
    for order in [[&brief, &lasting], [&lasting, &brief]] {
        let mutations = order.map(|tput| thrift2::TMutation::Put(tput.clone())).to_vec();
        wire.ok(&two::MutateRow {
            table: bytes("ttl2"),
            trow_mutations: thrift2::TRowMutations {
                row: bytes("r"),
                mutations,
            },
        });
        wait_for(&mut wire, "ttl2", "r", &["f:lasting@2=x"]);
    }
    let brief = thrift2::TPut {
        attributes: Some(ttl_ms(1)),
        ..put("checked", "f:brief", "x", Some(1))
    };
    assert!(wire.ok(&two::CheckAndPut {
        table: bytes("ttl2"),
        row: bytes("checked"),
        family: bytes("f"),
        qualifier: bytes("brief"),
        value: None,
        tput: brief,
    }));
    wait_for(&mut wire, "ttl2", "checked", &[]);

    // An update without a time to live leaves the cell that of the one it replaces.
    let append = |attributes| two::Append {
        table: bytes("ttl2"),
        tappend: thrift2::TAppend {
            row: bytes("a"),
            columns: vec![thrift2::TColumnValue {
                family: bytes("f"),
                qualifier: bytes("q"),
                value: bytes("x"),
                ..Default::default()
            }],
            attributes,
            ..Default::default()
        },
    };
    wire.ok(&append(Some(ttl_ms(1_000))));
    wire.ok(&append(None));
    wait_for(&mut wire, "ttl2", "a", &[]);
    let increment = two::Increment {
        table: bytes("ttl2"),
        tincrement: thrift2::TIncrement {
            row: bytes("n"),
            columns: vec![thrift2::TColumnIncrement {
                family: bytes("f"),
                qualifier: bytes("q"),
                amount: 1,
            }],
            attributes: Some(ttl_ms(1)),
            ..Default::default()
        },
    };
    wire.ok(&increment);
    wait_for(&mut wire, "ttl2", "n", &[]);
}

#[test]
fn updates_return_their_results_if_asked() {
    let mut wire = Wire::connect();
    wire.create("updates2", &[]);
    let flag = |value: u8| Some([(bytes("_rr_"), Bytes::copy_from_slice(&[value]))].into());
    for (field, attributes, returned) in [
        (None, None, true),
        (Some(true), None, true),
        (Some(false), None, false),
        (None, flag(0), false),
        (None, flag(1), true),
        (Some(true), flag(0), true),
    ] {
        let appended = wire.ok(&two::Append {
            table: bytes("updates2"),
            tappend: thrift2::TAppend {
                row: bytes("a"),
                columns: vec![thrift2::TColumnValue {
                    family: bytes("f"),
                    qualifier: bytes("q"),
                    value: bytes("x"),
                    timestamp: Some(1),
                    ..Default::default()
                }],
                attributes: attributes.clone(),
                durability: Some(thrift2::TDurability::SKIP_WAL),
                cell_visibility: Some(thrift2::TCellVisibility { expression: None }),
                return_results: field,
            },
        });
        let incremented = wire.ok(&two::Increment {
            table: bytes("updates2"),
            tincrement: thrift2::TIncrement {
                row: bytes("n"),
                columns: vec![thrift2::TColumnIncrement {
                    family: bytes("f"),
                    qualifier: bytes("q"),
                    ..Default::default()
                }],
                attributes,
                durability: Some(thrift2::TDurability::FSYNC_WAL),
                cell_visibility: Some(thrift2::TCellVisibility { expression: None }),
                return_results: field,
            },
        });
        for result in [appended, incremented] {
            assert_eq!(
                (result.row.is_some(), result.column_values.len()),
                (returned, usize::from(returned))
            );
        }
    }
    let cells = wire.row("updates2", "a");
    assert!(
        cells[0].ends_with("=xxxxxx") && !cells[0].contains("@1="),
        "{cells:?}"
    );
    let sum = wire.ok(&two::Get {
        table: bytes("updates2"),
        tget: thrift2::TGet {
            row: bytes("n"),
            ..Default::default()
        },
    });
    assert_eq!(sum.column_values[0].value[..], 6_i64.to_be_bytes());
}

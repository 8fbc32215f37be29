//! Quotas: set, listed, enforced, kept over a restart, taken away.
//!
//! A batch larger than a quota passes once and leaves a debt of days, so whether a later call passes does not
//! depend on time.

use basalt_idl::admin::{TQuotaScope, TThrottle, TThrottleType, TTimeUnit, args as own};
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, key, put, restarted, some, start};

fn of_table(table: &str) -> TThrottle {
    TThrottle {
        table_name: some(table),
        ..TThrottle::default()
    }
}

fn of_namespace(namespace: &str) -> TThrottle {
    TThrottle {
        ns_name: Some(namespace.to_owned()),
        ..TThrottle::default()
    }
}

fn of_user(user: &str) -> TThrottle {
    TThrottle {
        user_name: Some(user.to_owned()),
        ..TThrottle::default()
    }
}

/// One a day.
fn daily(owner: TThrottle, kind: TThrottleType) -> own::BasaltSetQuota {
    own::BasaltSetQuota {
        quota: TThrottle {
            throttle_type: Some(kind),
            soft_limit: Some(1),
            time_unit: Some(TTimeUnit::DAYS),
            scope: Some(TQuotaScope::MACHINE),
            ..owner
        },
    }
}

fn without(quota: TThrottle) -> own::BasaltSetQuota {
    own::BasaltSetQuota { quota }
}

fn write(table: &str, rows: usize) -> two::PutMultiple {
    two::PutMultiple {
        table: bytes(table),
        tputs: (0..rows)
            .map(|row| put(&format!("r{row}"), "f:q", "v", None))
            .collect(),
    }
}

fn get(table: &str) -> two::Get {
    two::Get {
        table: bytes(table),
        tget: thrift2::TGet {
            row: bytes("r0"),
            ..Default::default()
        },
    }
}

/// Owners and types of the quotas, in the server's order.
fn list(wire: &mut Wire, user: Option<&str>, table: Option<&str>, namespace: Option<&str>) -> Vec<String> {
    let call = own::BasaltListQuotas {
        user_name: user.map(str::to_owned),
        table_name: table.map(str::to_owned),
        ns_name: namespace.map(str::to_owned),
    };
    let part = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value} "));
    wire.ok(&call)
        .into_iter()
        .map(|quota| {
            let table = quota.table_name.map(|table| crate::client::text(&table));
            let owner = [
                part("u", quota.user_name),
                part("t", table),
                part("n", quota.ns_name),
            ];
            let kind = quota.throttle_type.expect("always set");
            format!("{}{kind}", owner.into_iter().flatten().collect::<String>())
        })
        .collect()
}

#[test]
fn quotas_hold_until_they_are_taken_away() {
    let settings = ["quota.max_wait_ms=0", "quota.user=me"];
    let shared = start(&settings);
    let mut wire = Wire::to(shared);
    wire.ok(&two::CreateNamespace {
        namespace_desc: thrift2::TNamespaceDescriptor {
            name: "ns".into(),
            configuration: None,
        },
    });
    for table in ["t", "ns:t", "free"] {
        wire.create(table, &[]);
    }
    assert!(list(&mut wire, None, None, None).is_empty());
    wire.ok(&daily(of_table("t"), TThrottleType::WRITE_NUMBER));
    wire.ok(&write("t", 5));
    let words = [
        "number of write requests exceeded - wait ",
        "hrs, ",
        "; table t has the limit 1req/day of WRITE_NUMBER",
        "Some(true)",
    ];
    wire.refused(&write("t", 1), &words);
    wire.ok(&get("t"));
    wire.ok(&daily(of_table("t"), TThrottleType::READ_SIZE));
    // A read is charged when its bytes are known.
    wire.ok(&get("t"));
    wire.refused(&get("t"), &["read size limit exceeded", "1B/day of READ_SIZE"]);
    let scanner_id = wire.ok(&two::OpenScanner {
        table: bytes("t"),
        tscan: thrift2::TScan::default(),
    });
    let fetch = two::GetScannerRows {
        scanner_id,
        num_rows: 10,
    };
    wire.refused(&fetch, &["read size limit exceeded"]);
    wire.refused(&fetch, &["read size limit exceeded"]);

    wire.ok(&daily(of_namespace("ns"), TThrottleType::REQUEST_NUMBER));
    wire.ok(&write("ns:t", 2));
    wire.refused(&get("ns:t"), &["number of requests exceeded", "namespace ns has"]);
    wire.ok(&write("free", 5));
    wire.ok(&write("free", 5));

    // After a restart they are there, with full buckets.
    let Wire { shared, socket } = wire;
    drop(socket);
    let mut wire = Wire::to(restarted(shared, &settings));
    assert_eq!(
        list(&mut wire, None, None, None),
        ["n ns REQUEST_NUMBER", "t t WRITE_NUMBER", "t t READ_SIZE"]
    );
    wire.ok(&write("t", 5));
    wire.refused(&write("t", 1), &words);

    // Taken away: one, then all of an owner.
    let one = TThrottle {
        throttle_type: Some(TThrottleType::WRITE_NUMBER),
        ..of_table("t")
    };
    wire.ok(&without(one));
    wire.ok(&write("t", 5));
    wire.ok(&get("t"));
    wire.refused(&get("t"), &["read size limit exceeded"]);
    wire.ok(&without(of_table("t")));
    wire.ok(&get("t"));
    wire.ok(&without(of_namespace("ns")));
    assert!(list(&mut wire, None, None, None).is_empty());
    // And set once more, at once.
    wire.ok(&daily(of_table("t"), TThrottleType::REQUEST_NUMBER));
    wire.ok(&write("t", 5));
    wire.refused(&get("t"), &["number of requests exceeded"]);
    assert_eq!(
        wire.shared
            .server
            .metric("basalt_throttled_calls_total{by=\"table\"}"),
        3
    );
}

/// All calls are those of the user in the settings. The most specific quota of a user counts.
#[test]
fn quotas_of_users() {
    let mut wire = Wire::to(start(&["quota.max_wait_ms=0", "quota.user=me"]));
    for table in ["t", "u"] {
        wire.create(table, &[]);
    }
    wire.ok(&daily(of_user("you"), TThrottleType::REQUEST_NUMBER));
    wire.ok(&write("t", 5));
    wire.ok(&write("t", 5));
    wire.ok(&daily(of_user("me"), TThrottleType::REQUEST_NUMBER));
    wire.ok(&write("t", 5));
    wire.refused(&write("u", 1), &["user me has the limit 1req/day"]);
    let in_table = TThrottle {
        table_name: some("u"),
        ..of_user("me")
    };
    wire.ok(&daily(in_table.clone(), TThrottleType::READ_NUMBER));
    wire.ok(&write("u", 5));
    wire.ok(&two::GetMultiple {
        table: bytes("u"),
        tgets: vec![get("u").tget; 5],
    });
    wire.refused(
        &get("u"),
        &["number of read requests exceeded", "user me in table u has"],
    );
    let in_namespace = TThrottle {
        ns_name: Some("default".to_owned()),
        ..of_user("me")
    };
    wire.ok(&daily(in_namespace, TThrottleType::WRITE_SIZE));
    wire.ok(&write("t", 5));
    wire.refused(
        &write("t", 1),
        &["write size limit exceeded", "user me in namespace default has"],
    );

    // Rows as HBase has them.
    let rows = wire.ok(&two::GetScannerResults {
        table: bytes("hbase:quota"),
        tscan: thrift2::TScan::default(),
        num_rows: 10,
    });
    let columns: Vec<_> = rows
        .iter()
        .flat_map(|row| row.column_values.iter().map(move |cell| (key(row), cell)))
        .map(|(row, cell)| {
            format!(
                "{row} {}:{}",
                crate::client::text(&cell.family),
                crate::client::text(&cell.qualifier)
            )
        })
        .collect();
    assert_eq!(
        columns,
        ["u.me q:s", "u.me q:s.default:", "u.me q:s.u", "u.you q:s"]
    );
    assert!(
        rows.iter()
            .flat_map(|row| &row.column_values)
            .all(|cell| cell.value.starts_with(b"PBUF"))
    );

    // Filters narrow as in HBase's shell.
    let all = [
        "u me REQUEST_NUMBER",
        "u me n default WRITE_SIZE",
        "u me t u READ_NUMBER",
    ];
    assert_eq!(list(&mut wire, Some("m."), None, None), all);
    assert_eq!(list(&mut wire, Some("m.*"), Some("."), None), all[2..]);
    assert_eq!(list(&mut wire, Some(".*"), None, Some("de.*")), all[1..2]);
    assert!(list(&mut wire, None, Some("u"), None).is_empty());
    assert_eq!(list(&mut wire, None, None, None).len(), 4);
    let bad = own::BasaltListQuotas {
        user_name: Some("(".to_owned()),
        table_name: None,
        ns_name: None,
    };
    wire.refused(&bad, &["("]);
}

/// A call under a limit that it can wait for waits, and is counted.
#[test]
fn calls_are_held_back() {
    let mut wire = Wire::to(start(&[]));
    wire.create("t", &[]);
    let per_second = TThrottle {
        throttle_type: Some(TThrottleType::WRITE_NUMBER),
        soft_limit: Some(1000),
        ..of_table("t")
    };
    wire.ok(&without(per_second));
    // 4000 in a second of 1000: three seconds' debt. The second call is sent before the first is answered.
    wire.send(&write("t", 4000));
    wire.ok(&write("t", 1));
    let mut length = [0; 4];
    std::io::Read::read_exact(&mut wire.socket, &mut length).expect("the other answer");
    let server = &wire.shared.server;
    assert_eq!(server.metric("basalt_held_back_seconds_count{by=\"table\"}"), 1);
    assert_eq!(server.metric("basalt_throttled_calls_total{by=\"table\"}"), 0);
}

#[test]
fn quotas_that_make_no_sense_are_refused() {
    let mut wire = Wire::to(start(&[]));
    let quota = daily(of_table("t"), TThrottleType::WRITE_NUMBER).quota;
    for (quota, word) in [
        (TThrottle::default(), "a quota is for"),
        (
            TThrottle {
                ns_name: Some("ns".into()),
                ..quota.clone()
            },
            "a quota is for",
        ),
        (
            TThrottle {
                soft_limit: Some(0),
                ..quota.clone()
            },
            "the limit is 0",
        ),
        (
            TThrottle {
                soft_limit: Some(-5),
                ..quota.clone()
            },
            "the limit is -5",
        ),
        (
            TThrottle {
                throttle_type: None,
                ..quota.clone()
            },
            "no type",
        ),
        (
            TThrottle {
                throttle_type: Some(TThrottleType(9)),
                ..quota.clone()
            },
            "throttle type",
        ),
        (
            TThrottle {
                time_unit: Some(TTimeUnit(1)),
                ..quota.clone()
            },
            "time unit",
        ),
        (
            TThrottle {
                scope: Some(TQuotaScope(3)),
                ..quota.clone()
            },
            "scope",
        ),
        (
            TThrottle {
                table_name: some("a/b"),
                ..quota.clone()
            },
            "Illegal character",
        ),
        (
            TThrottle {
                user_name: Some(String::new()),
                ..quota
            },
            "user name is empty",
        ),
    ] {
        wire.refused(&without(quota), &[word, "Some(false)"]);
    }
    assert!(list(&mut wire, None, None, None).is_empty());
    let exists = two::TableExists {
        table_name: Some(crate::client::name("hbase:quota")),
    };
    assert!(!wire.ok(&exists), "no quota, no table");
}

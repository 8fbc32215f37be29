//! Regions: where they are, and upkeep of them by name.

use basalt_idl::admin::{self, TBackgroundWork, args as own};
use basalt_idl::thrift1::args as one;
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, name, restarted, some, start, text};

/// Store files of each region, in key order.
fn files(wire: &mut Wire, table: &str) -> Vec<i32> {
    let metrics = wire.ok(&own::BasaltRegionMetrics {
        table: Some(bytes(table)),
    });
    metrics.iter().map(|region| region.store_files).collect()
}

/// Compacting and flushing take a region's full name and its encoded name, and touch no other region.
#[test]
fn upkeep_of_exactly_one_region() {
    let mut wire = Wire::connect();
    wire.create("upkeep", &["m"]);
    let metrics = wire.ok(&own::BasaltRegionMetrics {
        table: Some(bytes("upkeep")),
    });
    let [low, high] = &metrics[..] else {
        panic!("{metrics:?}")
    };
    let fill = |wire: &mut Wire| {
        for row in ["a", "z"] {
            wire.put("upkeep", row, "f:q", "v", None);
        }
    };
    let flush = |table| own::BasaltFlush { table };
    let compact = |table| own::BasaltCompact {
        table,
        family: None,
        major: true,
        wait: true,
    };
    // Two files of a store are compacted only on request.
    fill(&mut wire);
    wire.ok(&flush(bytes("upkeep")));
    fill(&mut wire);
    wire.ok(&flush(low.region_name.clone()));
    assert_eq!(files(&mut wire, "upkeep"), [2, 1], "z is in memory still");
    wire.ok(&flush(bytes(&high.encoded_name)));
    assert_eq!(files(&mut wire, "upkeep"), [2, 2]);
    wire.ok(&compact(bytes(&low.encoded_name)));
    assert_eq!(files(&mut wire, "upkeep"), [1, 2]);
    let major = |name: &bytes::Bytes| one::MajorCompact {
        table_name_or_region_name: Some(name.clone()),
    };
    wire.ok(&major(&high.region_name));
    let began = std::time::Instant::now();
    while files(&mut wire, "upkeep") != [1, 1] {
        assert!(
            began.elapsed() < std::time::Duration::from_mins(1),
            "the compaction that was asked for does not come"
        );
    }
    for name in [&low.region_name, &bytes(&high.encoded_name), &bytes("upkeep")] {
        wire.ok(&major(name));
        wire.ok(&one::Compact {
            table_name_or_region_name: Some(name.clone()),
        });
    }
    let mut stranger = low.region_name.to_vec();
    stranger[b"upkeep,".len()] = b'x';
    for (name, words) in [
        (stranger.into(), ["UnknownRegionException", "no region is called"]),
        (bytes("nowhere"), ["TableNotFoundException", "nowhere"]),
        (
            bytes("0123456789abcdef0123456789abcdef"),
            ["TableNotFoundException", "0123456789abcdef"],
        ),
        (bytes("no/where,,1.e."), ["IllegalArgumentException", "Illegal"]),
    ] {
        wire.refused(&major(&name), &words);
    }
    wire.refused(&compact(bytes("nowhere")), &["nowhere"]);
}

#[test]
fn regions_are_split_and_merged_by_name() {
    let mut wire = Wire::connect();
    wire.create("splits", &[]);
    for row in ["a", "h", "p", "z"] {
        wire.put("splits", row, "f:q", "v", None);
    }
    let split = |table_or_region, split_key| own::BasaltSplit {
        table_or_region,
        split_key,
    };
    wire.ok(&split(bytes("splits"), some("h")));
    let metrics = |wire: &mut Wire| {
        wire.ok(&own::BasaltRegionMetrics {
            table: Some(bytes("splits")),
        })
    };
    let halves = metrics(&mut wire);
    wire.ok(&split(bytes(&halves[1].encoded_name), some("p")));
    let thirds = metrics(&mut wire);
    let starts: Vec<_> = thirds.iter().map(|region| text(&region.start_key)).collect();
    assert_eq!(starts, ["", "h", "p"]);
    // Daughters share their parent's files until they are compacted, and cannot be merged before.
    wire.ok(&own::BasaltCompact {
        table: bytes("splits"),
        family: None,
        major: true,
        wait: true,
    });
    let merged = wire.ok(&own::BasaltMerge {
        region_names: vec![thirds[0].region_name.clone(), bytes(&thirds[1].encoded_name)],
    });
    assert_eq!(metrics(&mut wire)[0].region_name, merged);
    assert_eq!(
        wire.scan("splits", thrift2::TScan::default()),
        ["a", "h", "p", "z"]
    );
    let memstores: admin::TMemstoreState = wire.ok(&own::BasaltMemstoreState {});
    assert!(memstores.limit_bytes > 0);
    assert!(wire.ok(&own::BasaltCacheState {}).capacity_bytes > 0);
    assert!(wire.ok(&own::BasaltServerStatus {}).tables > 0);
}

/// A pause holds back requested work, refuses synchronous requests, shows in the state, the metrics
/// and the pages, and ends with the process.
#[test]
fn flushes_and_compactions_are_paused() {
    let mut wire = Wire::to(start(&[]));
    wire.create("paused", &[]);
    let pause = |work, paused| own::BasaltPause { work, paused };
    let flush = own::BasaltFlush {
        table: bytes("paused"),
    };
    let compact = |wait| own::BasaltCompact {
        table: bytes("paused"),
        family: None,
        major: true,
        wait,
    };
    for _ in 0..2 {
        wire.put("paused", "a", "f:q", "v", None);
        wire.ok(&flush);
    }
    assert!(!wire.ok(&pause(TBackgroundWork::COMPACTIONS, true)));
    assert!(wire.ok(&pause(TBackgroundWork::COMPACTIONS, true)));
    assert!(!wire.ok(&pause(TBackgroundWork::FLUSHES, true)));
    wire.ok(&compact(false));
    wire.refused(&compact(true), &["compactions are paused"]);
    wire.refused(&flush, &["flushes are paused"]);
    let unknown = TBackgroundWork(3);
    wire.refused(
        &pause(unknown, true),
        &["work is 3", "1 (flushes) or 2 (compactions)"],
    );
    let state = wire.ok(&own::BasaltBackgroundState {});
    assert!(state.flushes_paused && state.compactions_paused);
    assert!(state.compactions > 0 && state.running.is_empty(), "{state:?}");
    assert_eq!(files(&mut wire, "paused"), [2]);
    let shared = wire.shared.clone();
    for kind in ["flush", "compaction"] {
        let name = format!("basalt_background_paused{{kind=\"{kind}\"}}");
        assert_eq!(shared.server.metric(&name), 1, "{name}");
    }
    for page in ["/", "/jobs"] {
        let page = shared.server.http_get(page);
        assert!(page.contains("Flushes are paused") && page.contains("Compactions are paused"));
    }

    assert!(wire.ok(&pause(TBackgroundWork::COMPACTIONS, false)));
    assert!(wire.ok(&pause(TBackgroundWork::FLUSHES, false)));
    // The one that was asked for is done now.
    let began = std::time::Instant::now();
    while files(&mut wire, "paused") != [1] {
        assert!(
            began.elapsed() < std::time::Duration::from_mins(1),
            "the compaction that was asked for does not come"
        );
    }
    wire.ok(&pause(TBackgroundWork::FLUSHES, true));
    drop(wire);
    let mut wire = Wire::to(restarted(shared, &[]));
    assert!(!wire.ok(&own::BasaltBackgroundState {}).flushes_paused);
}

#[test]
fn a_block_cache_is_cleared() {
    let mut wire = Wire::connect();
    wire.create("cleared", &[]);
    wire.put("cleared", "a", "f:q", "v", None);
    wire.ok(&own::BasaltFlush {
        table: bytes("cleared"),
    });
    assert_eq!(wire.row("cleared", "a").len(), 1);
    let clear = |table| own::BasaltClearBlockCache { table };
    assert!(wire.ok(&clear(some("cleared"))) > 0);
    assert_eq!(wire.ok(&clear(some("cleared"))), 0);
    assert_eq!(wire.row("cleared", "a").len(), 1);
    wire.refused(&clear(some("nowhere")), &["nowhere"]);
}

#[test]
fn region_locations() {
    let mut wire = Wire::connect();
    wire.create("located", &["m"]);
    let all = wire.ok(&two::GetAllRegionLocations {
        table: bytes("located"),
    });
    let keys: Vec<_> = all
        .iter()
        .map(|at| (at.region_info.start_key.clone(), at.region_info.end_key.clone()))
        .collect();
    assert_eq!(keys, [(some(""), some("m")), (some("m"), some(""))]);
    for (row, index) in [("", 0), ("a", 0), ("m", 1), ("z", 1)] {
        for reload in [None, Some(true)] {
            let one = wire.ok(&two::GetRegionLocation {
                table: bytes("located"),
                row: bytes(row),
                reload,
            });
            assert_eq!(one, all[index], "{row}");
        }
    }
    let server = &all[0].server_name;
    assert_eq!(server.port, Some(i32::from(wire.shared.server.tables().port())));
    assert!(server.start_code.is_some_and(|code| code > 0));
    let missing = two::GetAllRegionLocations {
        table: bytes("nowhere"),
    };
    assert!(
        wire.ok(&missing).is_empty(),
        "HBase finds no rows of it in hbase:meta"
    );
}

/// Goal: a hot row has a name: in the call, on the table's page and by its share in the metrics, which have
/// no key. A new table of a dropped one's name has none of its rows.
#[test]
fn hot_rows_have_names() {
    let mut wire = Wire::connect();
    wire.create("named", &["m"]);
    let hot = |limit| own::BasaltHotRows {
        table: bytes("named"),
        limit,
    };
    assert!(wire.ok(&hot(10)).reads.rows.is_empty());
    for row in 0..30 {
        wire.put("named", &format!("row-{row:02}"), "f:q", "v", None);
        wire.put("named", "the-hot-one\u{1}", "f:q", "v", None);
    }
    for _ in 0..5 {
        wire.row("named", "row-07");
    }
    let found = wire.ok(&hot(2));
    let rows = |of: &admin::THotRows| {
        let rows = of.rows.iter();
        rows.map(|row| (text(&row.row), row.requests, row.max_error))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rows(&found.writes),
        [
            ("the-hot-one\u{1}".to_owned(), 30, 0),
            ("row-00".to_owned(), 1, 0)
        ]
    );
    assert_eq!((found.writes.requests, found.writes.samples), (60, 60));
    assert_eq!(rows(&found.reads), [("row-07".to_owned(), 5, 0)]);
    assert!(found.from_ms <= found.writes.rows[0].since_ms && found.writes.rows[0].since_ms <= found.to_ms);

    let shared = wire.shared.clone();
    let page = shared.server.http_get("/tables/named");
    assert!(page.contains("<code>the-hot-one\\x01</code>"), "{page}");
    assert!(page.contains("50.0 %"), "{page}");
    let metrics = shared.server.http_get("/metrics");
    assert!(
        metrics.contains("basalt_hottest_row_share{table=\"named\",kind=\"writes\"} 0.5"),
        "{metrics}"
    );
    assert!(!metrics.contains("the-hot-one"), "{metrics}");

    wire.refused(&hot(0), &["limit is 0", "from 1 to 64"]);
    wire.refused(&hot(65), &["limit is 65"]);
    let missing = own::BasaltHotRows {
        table: bytes("nowhere"),
        limit: 1,
    };
    wire.refused(&missing, &["nowhere"]);

    wire.ok(&two::DisableTable {
        table_name: name("named"),
    });
    wire.ok(&two::DeleteTable {
        table_name: name("named"),
    });
    wire.create("named", &[]);
    assert!(
        wire.ok(&hot(10)).writes.rows.is_empty(),
        "the dropped table's rows are shown"
    );
    let heat = shared.server.http_get("/api/heat?table=named&kind=writes");
    assert!(!heat.contains("\"total\":60"), "{heat}");
}

/// Goal: without a key visualizer the call says which setting turns it on.
#[test]
fn hot_rows_need_the_visualizer() {
    let mut wire = Wire::to(start(&["key_visualizer.bytes=0"]));
    wire.create("off", &[]);
    let hot = own::BasaltHotRows {
        table: bytes("off"),
        limit: 10,
    };
    wire.refused(&hot, &["key_visualizer.bytes is 0"]);
    assert!(
        wire.shared
            .server
            .http_get("/tables/off")
            .contains("They are not counted")
    );
}

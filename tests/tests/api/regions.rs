//! Regions: where they are, and upkeep of them by name.

use basalt_idl::admin::{self, args as own};
use basalt_idl::thrift1::args as one;
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, bytes, some, text};

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
    // Two files of a store are compacted only when somebody asks for it.
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
    assert_eq!(server.port, Some(i32::from(wire.shared.server.thrift.port())));
    assert!(server.start_code.is_some_and(|code| code > 0));
    let missing = two::GetAllRegionLocations {
        table: bytes("nowhere"),
    };
    assert!(
        wire.ok(&missing).is_empty(),
        "HBase finds no rows of it in hbase:meta"
    );
}

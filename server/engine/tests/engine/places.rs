//! Assignment of regions to servers, and its rows in `hbase:meta`.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Fetched, RegionInfo, ServerName};
use basalt_engine::op::{FetchLimits, Get, ReadSpec, Scan};
use basalt_engine::{Engine, Error};

use crate::rig::{Rig, descriptor, mutation, name, put, scan, value};

/// Three servers, and table `t` with six regions.
fn three_servers() -> Arc<Engine> {
    let engine = Rig::in_memory().open();
    let servers = (1..=3).map(|number| ServerName {
        host: format!("server-{number}"),
        port: 9090,
        start_code: 1_700_000_000_123,
    });
    engine.announce(servers.collect());
    let splits = [&b"b"[..], b"c", b"d", b"e", b"f"].map(<[u8]>::to_vec).to_vec();
    engine.create_table(descriptor("t", &["f"]), splits).unwrap();
    engine
}

fn regions(engine: &Engine) -> Vec<RegionInfo> {
    engine.regions(&name("t")).unwrap()
}

/// The servers of the table's regions in key order.
fn servers(engine: &Engine) -> Vec<u16> {
    let place = |region: &RegionInfo| engine.place(region.id).server;
    regions(engine).iter().map(place).collect()
}

/// A column of `hbase:meta` for the table's regions in key order.
fn in_meta(engine: &Engine, column: &str) -> Vec<String> {
    let cells = scan(engine, &name("hbase:meta"), Scan::default());
    let of_table = cells
        .iter()
        .filter(|cell| cell.row.starts_with("t,") && cell.column == column);
    of_table.map(|cell| cell.value.clone()).collect()
}

#[test]
fn regions_are_spread_and_moved() {
    let engine = three_servers();
    assert_eq!(servers(&engine), [0, 1, 2, 0, 1, 2]);
    let first = regions(&engine)[0].id;
    engine.move_region(first, Some(2)).unwrap();
    assert_eq!(servers(&engine), [2, 1, 2, 0, 1, 2]);
    assert_eq!(
        in_meta(&engine, "info:server"),
        [3, 2, 3, 1, 2, 3].map(|number| format!("server-{number}:9090"))
    );
    let unknown = engine.move_region(first, Some(3)).unwrap_err();
    assert!(matches!(unknown, Error::InvalidArgument(_)), "{unknown}");
    let meta = engine.regions(&name("hbase:meta")).unwrap()[0].id;
    assert!(engine.move_region(meta, Some(1)).is_err());
    // To the server with the fewest regions, which is not its own.
    engine.move_region(first, None).unwrap();
    assert_eq!(servers(&engine)[0], 0);
    engine.move_region(first, None).unwrap();
    assert_eq!(servers(&engine)[0], 1);
    let before = servers(&engine);
    assert_eq!(engine.plan_balance().unwrap(), 1);
    assert_eq!(servers(&engine), before);
    assert_eq!(engine.balance_regions().unwrap(), 1);
    assert_eq!(engine.plan_balance().unwrap(), 0);
    let mut loads = servers(&engine);
    loads.sort_unstable();
    assert_eq!(loads, [0, 0, 1, 1, 2, 2]);
    assert_eq!(engine.balance_regions().unwrap(), 0);
}

#[test]
fn halves_stay_with_their_parent_and_merged_regions_with_the_first() {
    let engine = three_servers();
    let second = regions(&engine)[1].id;
    let (left, right) = engine.split_region(second, Some(b"bm")).unwrap();
    assert_eq!(servers(&engine), [0, 1, 1, 2, 0, 1, 2]);
    let places = engine.places(&name("t"), [&b"ba"[..], b"bz", b"c"].into_iter());
    assert_eq!(
        places
            .unwrap()
            .iter()
            .map(|place| place.server)
            .collect::<Vec<_>>(),
        [1, 1, 2]
    );
    engine.move_region(right.id, Some(2)).unwrap();
    let merged = engine.merge_regions(&[left.id, right.id]).unwrap();
    assert_eq!(engine.place(merged.id).server, 1);
}

#[test]
fn a_region_that_is_not_assigned_takes_no_data_calls() {
    let engine = three_servers();
    let table = name("t");
    for row in [b"a", b"b", b"c"] {
        put(&engine, &table, row, b"1");
    }
    let mut running = engine.scan(&table, Scan::default()).unwrap();
    let second = regions(&engine)[1].id;
    engine.unassign_region(second).unwrap();
    assert_eq!(in_meta(&engine, "info:state")[..3], ["OPEN", "CLOSED", "OPEN"]);
    assert_eq!(
        in_meta(&engine, "info:server")[1],
        "server-2:9090",
        "as HBase leaves it"
    );

    let refused = |error: Error| {
        let Error::NotServingRegion(text) = &error else {
            panic!("{error}");
        };
        assert!(
            text.starts_with("t,b,") && text.ends_with(" is not online on server-2,9090,1700000000123"),
            "{text}"
        );
    };
    let get = |row: &[u8]| {
        let spec = ReadSpec::default();
        engine.get(&table, &Get { row, spec }, &mut CellBatch::new())
    };
    get(b"a").unwrap();
    refused(get(b"b").unwrap_err());
    let write = [value(b"q", b"2")];
    let both = [mutation(b"a", &write), mutation(b"b", &write)];
    refused(engine.mutate(&table, &both).map(drop).unwrap_err());

    // A scan comes up to the region, and goes on behind it when it is there again.
    let limits = FetchLimits {
        results: 100,
        bytes: usize::MAX,
        time: Duration::MAX,
    };
    let mut found = CellBatch::new();
    refused(running.fetch(&limits, &mut found).unwrap_err());
    assert_eq!(found.row_count(), 1);
    refused(running.fetch(&limits, &mut found).unwrap_err());
    engine.assign_region(second).unwrap();
    assert_eq!(running.fetch(&limits, &mut found).unwrap(), Fetched::End);
    assert_eq!(found.row_count(), 3);
    get(b"b").unwrap();
    assert_eq!(scan(&engine, &table, Scan::default()).len(), 3);
    // A table that is enabled is on servers as a whole.
    engine.unassign_region(second).unwrap();
    engine.disable_table(&table).unwrap();
    engine.enable_table(&table).unwrap();
    get(b"b").unwrap();
    // Nothing happens to one that is assigned.
    let before = engine.place(second);
    engine.assign_region(second).unwrap();
    assert_eq!(engine.place(second), before);
}

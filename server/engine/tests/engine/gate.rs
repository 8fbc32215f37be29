//! Regions that a gate keeps closed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Fetched, RegionGate, RegionInfo};
use basalt_engine::op::{FetchLimits, Get, ReadSpec, Scan};
use basalt_engine::{Error, RegionId, Result};

use crate::rig::{Rig, descriptor, mutation, name, put, scan, value};

/// The regions that take no data calls.
#[derive(Debug, Default)]
struct Closed(Mutex<BTreeSet<RegionId>>);

impl RegionGate for Closed {
    fn check(&self, region: &RegionInfo) -> Result<()> {
        if self.0.lock().unwrap().contains(&region.id) {
            return Err(Error::NotServingRegion(format!("{} is closed", region.id)));
        }
        Ok(())
    }
}

#[test]
fn a_closed_region_takes_no_data_calls() {
    let engine = Rig::in_memory().open();
    let splits = [&b"b"[..], b"c", b"d", b"e", b"f"].map(<[u8]>::to_vec).to_vec();
    engine.create_table(descriptor("t", &["f"]), splits).unwrap();
    let table = name("t");
    for row in [b"a", b"b", b"c"] {
        put(&engine, &table, row, b"1");
    }
    let mut running = engine.scan(&table, Scan::default()).unwrap();
    let second = engine.regions(&table).unwrap()[1].id;
    let closed = Arc::new(Closed::default());
    let gate = Arc::clone(&closed);
    engine.set_gate(gate);
    closed.0.lock().unwrap().insert(second);

    let refused = |error: Error| {
        let Error::NotServingRegion(text) = &error else {
            panic!("{error}");
        };
        assert_eq!(*text, format!("{second} is closed"));
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
    closed.0.lock().unwrap().clear();
    assert_eq!(running.fetch(&limits, &mut found).unwrap(), Fetched::End);
    assert_eq!(found.row_count(), 3);
    get(b"b").unwrap();
    assert_eq!(scan(&engine, &table, Scan::default()).len(), 3);
}

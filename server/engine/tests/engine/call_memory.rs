//! Goal: the engine reserves the memory of a call before it uses it, and a read that is refused
//! memory can be retried. Method: a table whose large row has cells of a MiB, on disk, with and
//! without compression, and a budget that records the most it had reserved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use basalt_engine::cell::{Budget, CellBatch, OnShortage};
use basalt_engine::engine::Fetched;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::op::{Check, ColumnAppend, CompareOp, FetchLimits, Get, ReadSpec, RowUpdate, Scan, Write};
use basalt_engine::options::Options;
use basalt_engine::schema::Durability;
use basalt_engine::{Engine, Error, Result};

use crate::rig::{F, Rig, apply, descriptor, mutation, name};

const MIB: usize = 1 << 20;
const CELLS: usize = 4;
/// Upper bound of the memory that accounts use without a reservation.
const FREE_BYTES: usize = 64 << 10;

/// A budget that refuses reservations above its limit.
#[derive(Debug)]
pub(crate) struct Limited {
    used: AtomicUsize,
    highest: AtomicUsize,
    limit: AtomicUsize,
}

impl Limited {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            highest: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        })
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn highest(&self) -> usize {
        self.highest.load(Ordering::Relaxed)
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }
}

impl Budget for Limited {
    fn reserve(&self, bytes: usize, _on_shortage: OnShortage) -> Result<()> {
        let used = self.used() + bytes;
        if used > self.limit.load(Ordering::Relaxed) {
            return Err(Error::CallMemory("the budget is used up".into()));
        }
        self.used.store(used, Ordering::Relaxed);
        self.highest.fetch_max(used, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// An engine that charges calls to `budget`, with a flushed table `t`: row `large` has [`CELLS`]
/// cells of a MiB, row `small` has one small cell.
fn engine(compression: &str, budget: &Arc<Limited>) -> Arc<Engine> {
    let mut rig = Rig::simulated(&SimFs::new(1, SimOptions::default()));
    rig.options = Options {
        block_cache_bytes: 64 << 20,
        ..rig.options
    };
    let engine = rig.open();
    let mut schema = descriptor("t", &["f"]);
    let family = schema.families[0].clone();
    schema.families[0] = family.with("COMPRESSION", compression).unwrap();
    engine.create_table(schema, Vec::new()).unwrap();
    for cell in 0..CELLS {
        let qualifier = format!("q{cell}");
        let value = vec![b'v'; MIB];
        write(&engine, b"large", qualifier.as_bytes(), &value);
    }
    write(&engine, b"small", b"q", b"v");
    engine.flush(&name("t")).unwrap();
    engine.charge_calls_to(budget.clone());
    engine
}

fn write(engine: &Engine, row: &[u8], qualifier: &[u8], value: &[u8]) {
    let write = Write::Put {
        family: F,
        qualifier,
        timestamp: None,
        value,
        ttl_ms: None,
    };
    apply(engine, &name("t"), &[mutation(row, &[write])]).unwrap();
}

fn batch(budget: &Arc<Limited>) -> CellBatch {
    let mut batch = CellBatch::charged_to(budget.clone());
    batch.set_on_shortage(OnShortage::Refuse);
    batch
}

fn get(engine: &Engine, row: &[u8], out: &mut CellBatch) -> Result<()> {
    let spec = ReadSpec {
        cache_blocks: false,
        ..ReadSpec::default()
    };
    engine.get(&name("t"), &Get { row, spec }, out)
}

fn limits() -> FetchLimits {
    FetchLimits {
        results: usize::MAX,
        bytes: usize::MAX,
        time: Duration::MAX,
    }
}

/// With compression, a block of a MiB takes few bytes on disk. Its unpacked size is reserved before
/// it is unpacked.
#[test]
fn a_get_reserves_its_result_and_the_blocks_that_it_reads() {
    for compression in ["NONE", "GZ"] {
        let budget = Limited::new(usize::MAX);
        let engine = engine(compression, &budget);
        let mut out = batch(&budget);
        get(&engine, b"small", &mut out).unwrap();
        let for_small = budget.highest();
        assert!(
            for_small < 3 * MIB + MIB / 2,
            "{for_small}: at most the block before it, and the next"
        );
        out.clear();
        get(&engine, b"large", &mut out).unwrap();
        assert_eq!(out.cell_count(), CELLS);
        let held = budget.used();
        assert!(
            held >= 2 * CELLS * MIB - FREE_BYTES,
            "{held}: the result and its reply"
        );
        let highest = budget.highest();
        assert!(
            ((2 * CELLS + 1) * MIB - FREE_BYTES..=(2 * CELLS + 6) * MIB).contains(&highest),
            "{highest}: a block or two besides, {compression}"
        );
        drop(out);
        assert_eq!(budget.used(), 0, "a get keeps nothing");

        budget.set_limit(MIB);
        let mut out = batch(&budget);
        let refused = get(&engine, b"large", &mut out).unwrap_err();
        assert!(matches!(refused, Error::CallMemory(_)), "{refused}");
        drop(out);
        assert_eq!(budget.used(), 0, "nor does one that fails");
    }
}

#[test]
fn a_scan_that_got_no_memory_begins_its_row_again() {
    for reversed in [false, true] {
        let budget = Limited::new(usize::MAX);
        let engine = engine("NONE", &budget);
        let scan = Scan {
            reversed,
            ..Scan::default()
        };
        let mut scanner = engine.scan(&name("t"), scan).unwrap();
        budget.set_limit(5 * MIB);
        let mut out = batch(&budget);
        let refused = scanner.fetch(&limits(), &mut out).unwrap_err();
        assert!(matches!(refused, Error::CallMemory(_)), "{refused}");
        let before = out.row_count();
        assert_eq!(before, usize::from(reversed), "what comes before the large row");
        assert!(out.open_cells().is_empty());
        budget.set_limit(usize::MAX);
        assert_eq!(scanner.fetch(&limits(), &mut out).unwrap(), Fetched::End);
        assert_eq!((out.row_count(), out.cell_count()), (2, CELLS + 1));
        drop((scanner, out));
        assert_eq!(budget.used(), 0);
    }
}

/// `rest` releases the block that a scan holds between two fetches.
#[test]
fn an_idle_scan_releases_its_blocks() {
    let budget = Limited::new(usize::MAX);
    let engine = engine("NONE", &budget);
    let mut scanner = engine.scan(&name("t"), Scan::default()).unwrap();
    let one = FetchLimits {
        results: 1,
        ..limits()
    };
    let mut out = batch(&budget);
    scanner.fetch(&one, &mut out).unwrap();
    out.clear();
    drop(out);
    assert!(budget.used() > 0, "the scan holds a block");
    scanner.rest();
    assert_eq!(budget.used(), 0);
    let mut out = batch(&budget);
    assert_eq!(scanner.fetch(&limits(), &mut out).unwrap(), Fetched::End);
    assert_eq!(out.row(0).key(), b"small");
}

#[test]
fn an_append_reserves_the_copies_of_what_it_appends_to() {
    let budget = Limited::new(3 * MIB);
    let engine = engine("NONE", &budget);
    let update = RowUpdate::Append(vec![ColumnAppend {
        family: F,
        qualifier: b"q0",
        value: b"w",
        timestamp: None,
    }]);
    let append =
        |out: &mut CellBatch| engine.update(&name("t"), b"large", &update, None, Durability::UseDefault, out);
    let mut out = batch(&budget);
    let refused = append(&mut out).unwrap_err();
    assert!(matches!(refused, Error::CallMemory(_)), "{refused}");
    drop(out);
    assert_eq!(budget.used(), 0);
    budget.set_limit(usize::MAX);
    let mut out = batch(&budget);
    drop(append(&mut out).unwrap());
    assert_eq!(out.cell(0).value.len(), MIB + 1);
    let highest = budget.highest();
    assert!(
        highest >= 5 * MIB - FREE_BYTES,
        "{highest}: the stored value, its result, and three copies"
    );
    drop(out);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_condition_reserves_the_stored_value_that_it_reads() {
    let budget = Limited::new(usize::MAX);
    let engine = engine("NONE", &budget);
    // In the memstore: no block is read.
    let value = vec![b'v'; MIB];
    write(&engine, b"new", b"q", &value);
    let check = Check {
        family: F,
        qualifier: b"q",
        op: CompareOp::Equal,
        value: Some(b"another"),
    };
    let delete = mutation(b"new", &[Write::DeleteRow { timestamp: None }]);
    let commit = engine.check_and_mutate(&name("t"), &check, &delete).unwrap();
    assert!(commit.is_none());
    let highest = budget.highest();
    assert!(highest >= MIB - FREE_BYTES, "{highest}");
    assert_eq!(budget.used(), 0);
}

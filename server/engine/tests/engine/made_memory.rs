//! Goal: what a write makes of its arguments is reserved before anything is made, and no write makes a
//! row that reads then refuse. Method: many small cells with a long row key, in every kind of write, on
//! a budget that records the most it had reserved.

use basalt_engine::cell::CellBatch;
use basalt_engine::op::{
    AtomicGroup, ColumnIncrement, GroupStep, GroupUpdate, GroupWrite, ReadTier, RowUpdate, Write,
};
use basalt_engine::options::Options;
use basalt_engine::schema::{Durability, TableName};
use basalt_engine::{Engine, Error, Result};

use crate::call_memory::Limited;
use crate::rig::{F, Rig, apply, create, descriptor, mutation, name, value};

const CELLS: usize = 200;
const ROW: [u8; 10_000] = [b'k'; 10_000];
/// The key of the row in each of its cells but the first.
const REPEATED: usize = (CELLS - 1) * ROW.len();

fn qualifiers() -> Vec<String> {
    (0..CELLS).map(|cell| format!("q{cell:03}")).collect()
}

fn group(engine: &Engine, table: &TableName, step: GroupStep<'_>) -> Result<()> {
    let group = AtomicGroup {
        conditions: &[],
        steps: &[step],
        nonce: None,
        origin: &[],
    };
    let outcome = engine.apply_group(table, &group, ReadTier::All, &mut CellBatch::new())?;
    outcome.commit.map_or(Ok(()), basalt_engine::Commit::wait)
}

/// The writes, by name, as functions of the engine and the table.
type Case<'a> = (&'static str, Box<dyn Fn(&Engine, &TableName) -> Result<()> + 'a>);

fn cases(names: &[String]) -> Vec<Case<'_>> {
    let puts: Vec<Write<'_>> = names.iter().map(|of| value(of.as_bytes(), b"")).collect();
    let deletes: Vec<Write<'_>> = names
        .iter()
        .map(|of| Write::DeleteColumn {
            family: F,
            qualifier: of.as_bytes(),
            timestamp: None,
        })
        .collect();
    let increments = names.iter().map(|of| ColumnIncrement {
        family: F,
        qualifier: of.as_bytes(),
        amount: 1,
        timestamp: None,
    });
    let change = RowUpdate::Increment(increments.collect());
    let (of_group, of_update) = (puts.clone(), change);
    vec![
        (
            "put",
            Box::new(move |engine: &Engine, table: &TableName| {
                apply(engine, table, &[mutation(&ROW, &puts)])
            }),
        ),
        (
            "delete",
            Box::new(move |engine: &Engine, table: &TableName| {
                apply(engine, table, &[mutation(&ROW, &deletes)])
            }),
        ),
        (
            "put in a group",
            Box::new(move |engine: &Engine, table: &TableName| {
                let mutation = mutation(&ROW, &of_group);
                group(engine, table, GroupStep::Write(GroupWrite::of(&mutation)))
            }),
        ),
        (
            "increment",
            Box::new(move |engine: &Engine, table: &TableName| {
                let update = GroupUpdate::new(&ROW, &of_update, None, Durability::UseDefault);
                group(engine, table, GroupStep::Update(update))
            }),
        ),
    ]
}

#[test]
fn cells_are_reserved_with_their_keys_before_they_are_made() {
    let names = qualifiers();
    for (what, write) in cases(&names) {
        let engine = Rig::in_memory().open();
        let table = create(&engine);
        let budget = Limited::new(usize::MAX);
        engine.charge_calls_to(budget.clone());
        let before = engine.memstore_bytes();
        budget.set_limit(3 * REPEATED / 2);
        let refused = write(&engine, &table).unwrap_err();
        assert!(matches!(refused, Error::CallMemory(_)), "{what}: {refused}");
        assert_eq!(engine.memstore_bytes(), before, "{what}: nothing was made");
        assert_eq!(budget.used(), 0, "{what}");
        budget.set_limit(usize::MAX);
        write(&engine, &table).unwrap();
        // In the edit, in the group's buffer, and in the memstore.
        assert!(
            budget.highest() >= 3 * REPEATED - (64 << 10),
            "{what}: {}",
            budget.highest()
        );
        assert_eq!(budget.used(), 0, "{what}: released when it is published");
    }
}

/// The delete of a row has a tombstone for each family.
#[test]
fn a_delete_of_a_row_is_counted_by_families() {
    let engine = Rig::in_memory().open();
    let families: Vec<String> = (0..CELLS).map(|family| format!("f{family}")).collect();
    let families: Vec<&str> = families.iter().map(String::as_str).collect();
    engine
        .create_table(descriptor("t", &families), Vec::new())
        .unwrap();
    let budget = Limited::new(REPEATED);
    engine.charge_calls_to(budget);
    let all = Write::DeleteRow { timestamp: None };
    let refused = apply(&engine, &name("t"), &[mutation(&ROW, &[all])]).unwrap_err();
    assert!(matches!(refused, Error::CallMemory(_)), "{refused}");
}

#[test]
fn ordinary_batches_reserve_nothing() {
    let engine = Rig::in_memory().open();
    let table = create(&engine);
    let budget = Limited::new(0);
    engine.charge_calls_to(budget);
    let names = qualifiers();
    let puts: Vec<Write<'_>> = names.iter().map(|of| value(of.as_bytes(), b"value")).collect();
    let rows: Vec<String> = (0..1_000).map(|row| format!("row-{row:08}")).collect();
    let single: Vec<_> = rows
        .iter()
        .map(|row| mutation(row.as_bytes(), &puts[..1]))
        .collect();
    apply(&engine, &table, &single).unwrap();
    apply(&engine, &table, &[mutation(b"row", &puts)]).unwrap();
}

/// The limit is that of reads: a row of exactly so many bytes is written and read, one byte more is
/// refused.
#[test]
fn a_row_that_could_not_be_read_is_not_written() {
    let mut rig = Rig::in_memory();
    rig.options = Options {
        row_max_bytes: 1_000,
        ..rig.options
    };
    let engine = rig.open();
    let table = create(&engine);
    // Two cells, each with a key of 12 bytes besides its row `r`, family and qualifier.
    let rest = 1_000 - 2 * (12 + 3) - 400;
    for (last, is_written) in [(rest, true), (rest + 1, false)] {
        let (first, second) = ([7; 400], vec![7; last]);
        let writes = [value(b"p", &first), value(b"q", &second)];
        let written = apply(&engine, &table, &[mutation(b"r", &writes)]);
        if is_written {
            written.unwrap();
            let spec = basalt_engine::op::ReadSpec::default();
            let mut out = CellBatch::new();
            engine
                .get(&table, &basalt_engine::op::Get { row: b"r", spec }, &mut out)
                .unwrap();
            assert_eq!(out.cell_count(), 2);
        } else {
            let text = written.unwrap_err().to_string();
            assert!(
                text.contains("row.max_bytes is 1000") && text.contains("1001"),
                "{text}"
            );
        }
        // The mutations of an atomic group make one row.
        let parts = writes.map(|write| mutation(b"r", &[write]));
        let steps = [&parts[0], &parts[1]].map(|part| GroupStep::Write(GroupWrite::of(part)));
        let together = AtomicGroup {
            conditions: &[],
            steps: &steps,
            nonce: None,
            origin: &[],
        };
        let applied = engine.apply_group(&table, &together, ReadTier::All, &mut CellBatch::new());
        assert_eq!(applied.is_ok(), is_written, "{applied:?}");
    }
}

//! An address book in one table: puts, gets, scans, a filter, a conditional put and a delete.
//!
//! `cargo run -p basalt-engine --example address_book -- [DIR]`; without a directory in a temporary
//! one.

use std::path::{Path, PathBuf};

use basalt_engine::schema::{FamilyDescriptor, TableDescriptor};
use basalt_engine::{Check, CompareOp, Delete, Engine, Get, Put, Result, Scan};

fn main() -> Result<()> {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = std::env::args_os()
        .nth(1)
        .map_or(temporary.path().join("data"), PathBuf::from);
    for line in run(&dir)? {
        println!("{line}");
    }
    Ok(())
}

/// Fills and reads an address book in `dir`, and returns its report.
pub(crate) fn run(dir: &Path) -> Result<Vec<String>> {
    let engine = Engine::open(dir)?;
    let family = FamilyDescriptor::new(b"c").with("VERSIONS", 3)?;
    engine.create_table(TableDescriptor::new("people".parse()?, vec![family]), Vec::new())?;
    let people = engine.table("people")?;

    people.put(
        Put::new("lovelace")
            .cell("c", "name", "Ada")
            .cell("c", "city", "London"),
    )?;
    people.put(
        Put::new("liskov")
            .cell("c", "name", "Barbara")
            .cell("c", "city", "Boston"),
    )?;
    people.put(
        Put::new("hopper")
            .cell("c", "name", "Grace")
            .cell("c", "city", "Arlington"),
    )?;

    let mut report = Vec::new();
    let ada = people.get(&Get::new("lovelace").column("c", "name"))?;
    let name = ada
        .as_ref()
        .and_then(|row| row.value("c", "name"))
        .unwrap_or_default();
    report.push(format!("lovelace is {}", text(name)));

    // Only the first of two that claim a name gets it.
    let is_free = Check {
        family: b"c",
        qualifier: b"name",
        op: CompareOp::Equal,
        value: None,
    };
    for name in ["Margaret", "Maggie"] {
        let is_done = people.check_and_mutate(&is_free, Put::new("hamilton").cell("c", "name", name))?;
        report.push(format!("{name}: {}", if is_done { "added" } else { "taken" }));
    }

    people.delete(Delete::new("hopper"))?;
    for row in people.scan(Scan::new().prefix("l")) {
        let row = row?;
        let city = row.value("c", "city").unwrap_or_default();
        report.push(format!("{} lives in {}", text(row.key()), text(city)));
    }

    let boston =
        Scan::new().filter("SingleColumnValueFilter('c', 'city', =, 'binary:Boston', true, true)")?;
    let in_boston = people.scan(boston).collect::<Result<Vec<_>>>()?;
    report.push(format!("{} in Boston", in_boston.len()));
    engine.close()?;
    Ok(report)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

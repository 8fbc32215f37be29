//! Counters under concurrent increments, and their guarantee: acknowledged increments survive a
//! crash.
//!
//! `cargo run -p basalt-engine --example page_views -- [DIR]`; without a directory in a temporary
//! one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use basalt_engine::options::{Options, WalSync};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor};
use basalt_engine::{Engine, EventListener, FlushEvent, Result, Scan, Table};

const THREADS: usize = 4;
const VIEWS_EACH: usize = 250;
const PAGES: [&str; 2] = ["/about", "/index"];

/// Prints flushes.
#[derive(Debug)]
struct Printed;

impl EventListener for Printed {
    fn flushed(&self, event: &FlushEvent) {
        println!("flushed {} cells of {}", event.cells, event.table);
    }
}

fn main() -> Result<()> {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = std::env::args_os()
        .nth(1)
        .map_or(temporary.path().join("data"), PathBuf::from);
    for (page, views) in run(&dir)? {
        println!("{page}: {views} views");
    }
    Ok(())
}

/// Counts page views in `dir` with several threads, abandons the engine and reads the counters back.
pub(crate) fn run(dir: &Path) -> Result<Vec<(String, i64)>> {
    let engine = open(dir)?;
    let family = FamilyDescriptor::new(b"d");
    // Two regions: rows from `/i` on are in the second one.
    let split = b"/i".to_vec();
    engine.create_table(TableDescriptor::new("views".parse()?, vec![family]), vec![split])?;
    let views = engine.table("views")?;
    thread::scope(|scope| {
        let counts: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| count(&views))).collect();
        counts
            .into_iter()
            .try_for_each(|thread| thread.join().expect("counting does not panic"))
    })?;
    engine.flush(views.name())?;
    views.increment(PAGES[0], "d", "views", 1)?;
    // No `close`: the next open replays the log, as after a crash.
    drop(views);
    drop(engine);

    let engine = open(dir)?;
    let mut totals = Vec::new();
    for row in engine.table("views")?.scan(Scan::new()) {
        let row = row?;
        let value = row.value("d", "views").unwrap_or_default();
        let views = i64::from_be_bytes(value.try_into().expect("counters have 8 bytes"));
        totals.push((String::from_utf8_lossy(row.key()).into_owned(), views));
    }
    engine.close()?;
    Ok(totals)
}

fn open(dir: &Path) -> Result<Arc<Engine>> {
    let options = Options {
        // Survives the process, not a power failure.
        wal_sync: WalSync::Os,
        ..Options::default()
    };
    Engine::builder()
        .options(options)
        .listener(Arc::new(Printed))
        .open(dir)
}

fn count(views: &Table) -> Result<()> {
    for number in 0..VIEWS_EACH {
        views.increment(PAGES[number % PAGES.len()], "d", "views", 1)?;
    }
    Ok(())
}

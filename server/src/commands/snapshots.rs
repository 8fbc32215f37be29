//! `basalt export-snapshot` and `basalt import-snapshot`: snapshots as files that HBase reads and writes.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use basalt_engine::Engine;

use super::Outcome;
use crate::snapshot_files::{export, import};

/// Exports a snapshot. The server of the data directory may run.
pub(crate) fn export(data: &Path, name: &str, root: &Path) -> Outcome {
    let mut out = std::io::stdout().lock();
    let exported = export::export(data, name, root, &mut out)?;
    writeln!(out, "exported snapshot {name} to {}: {exported}", root.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Imports a snapshot into a data directory whose server is stopped; a missing one is created.
pub(crate) fn import(data: &Path, root: &Path, name: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    let engine = Engine::builder().open(data)?;
    let now_ms = engine.clock().wall_ms();
    let imported = import::import(&engine, root, name, now_ms, &mut out);
    // The directory is left in good order, whatever came of the import.
    let closed = engine.close();
    let imported = imported?;
    closed?;
    for class in &imported.left_out {
        writeln!(out, "left out: the coprocessor {class}, which does not run here")?;
    }
    writeln!(
        out,
        "imported snapshot {name} of table {}: {} regions, {} files. Make a table of it with clone_snapshot or restore_snapshot",
        imported.table, imported.regions, imported.files
    )?;
    Ok(ExitCode::SUCCESS)
}

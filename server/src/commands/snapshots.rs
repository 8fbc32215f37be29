//! `basalt export-snapshot` and `basalt import-snapshot`: snapshots as files that HBase reads and writes.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use basalt_engine::Engine;
use serde_json::{Value, json};

use super::command_line::ImportSnapshot;
use super::{Outcome, on_runtime, operator};
use crate::snapshot_files::{export, import};

/// Exports a snapshot. The server of the data directory may run.
pub(crate) fn export(data: &Path, name: &str, root: &Path) -> Outcome {
    let mut out = std::io::stdout().lock();
    let exported = export::export(data, name, root, &mut out)?;
    writeln!(out, "exported snapshot {name} to {}: {exported}", root.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Imports a snapshot into a running server, or into a data directory whose server is stopped; a missing one
/// is created.
pub(crate) fn import(wanted: &ImportSnapshot) -> Outcome {
    let Some(address) = &wanted.into else {
        return import_offline(&wanted.dir.data_dir, &wanted.root, &wanted.name);
    };
    let body = json!({ "from": std::path::absolute(&wanted.root)?, "name": wanted.name });
    let made = on_runtime(operator::post(
        address,
        &wanted.login,
        operator::IMPORT,
        &body,
        print_copied,
    ))?;
    let left_out: Vec<String> = made["left_out"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|class| class.as_str().map(str::to_owned))
        .collect();
    let figure = |name: &str| made[name].as_u64().unwrap_or_default();
    let table = made["table"].as_str().unwrap_or_default();
    say(
        &wanted.name,
        table,
        (figure("regions"), figure("files")),
        &left_out,
    )
}

/// Prints the line of a file that was copied.
pub(super) fn print_copied(line: &Value) {
    if let Some(path) = line["copied"].as_str() {
        println!("copied {path}");
    }
}

fn import_offline(data: &Path, root: &Path, name: &str) -> Outcome {
    let engine = Engine::builder().open(data)?;
    let now_ms = engine.clock().wall_ms();
    let mut files = 0;
    let imported = import::read(root, name, now_ms).and_then(|found| {
        engine.import_snapshot(&found.content, &mut |path| {
            files += 1;
            println!("copied {}", path.display());
        })?;
        Ok(found)
    });
    // The directory is left in good order, whatever came of the import.
    let closed = engine.close();
    let imported = imported?;
    closed?;
    let (content, left_out) = (imported.content, imported.left_out);
    let regions = content.regions.len() as u64;
    say(
        name,
        &content.descriptor.name.to_string(),
        (regions, files),
        &left_out,
    )
}

fn say(name: &str, table: &str, (regions, files): (u64, u64), left_out: &[String]) -> Outcome {
    let mut out = std::io::stdout().lock();
    for class in left_out {
        writeln!(out, "left out: the coprocessor {class}, which does not run here")?;
    }
    writeln!(
        out,
        "imported snapshot {name} of table {table}: {regions} regions, {files} files. Make a table of it with \
         clone_snapshot or restore_snapshot"
    )?;
    Ok(ExitCode::SUCCESS)
}

//! Backs up the directory of a stopped server: opens it as a start does, and pins it.

use std::path::PathBuf;
use std::process::ExitCode;

use basalt_backup::{CopyOptions, Key, Progress, Store, Vault};
use basalt_engine::Engine;
use basalt_engine::options::Options;

use super::{Failure, show};
use crate::backup::point::of_pin;
use crate::commands::command_line::Backup;

pub(super) async fn run(dir: PathBuf, wanted: &Backup) -> Result<ExitCode, Failure> {
    if !dir.join("CURRENT").exists() {
        return Err(format!("{} is no data directory: it has no CURRENT", dir.display()).into());
    }
    let key = wanted.key_file.as_deref().map(Key::read).transpose()?;
    let store = Store::open(&wanted.to, true)?;
    let opened = dir.clone();
    let engine = tokio::task::spawn_blocking(move || {
        let engine = Engine::builder().options(Options::default()).open(&opened)?;
        let pin = engine.pin()?;
        Ok::<_, basalt_engine::Error>((engine, pin))
    });
    let (engine, pin) = engine.await??;
    let vault = Vault::open_or_begin(store, key, &engine.cluster_id().to_string()).await?;
    // No log is shipped by a server that is stopped: its name is of no run.
    let point = of_pin(&pin, &dir, "", None)?;
    let options = CopyOptions {
        parallel: wanted.parallel.into(),
        max_rate: wanted.max_rate.unwrap_or_default(),
        secrets_in_clear: wanted.secrets_in_clear,
    };
    let progress = Progress::default();
    let made = show::Line::new("backup")
        .of(&progress, vault.back_up(&point, options, &progress))
        .await;
    let closed = tokio::task::spawn_blocking(move || {
        drop(pin);
        engine.close()
    });
    let made = made?;
    closed.await??;
    println!(
        "backup {} at position {}: {} files, {}, of which {} were written",
        made.id,
        made.position,
        made.files,
        show::bytes(made.bytes),
        show::bytes(made.written)
    );
    super::online::warn_of(&made.left_out);
    Ok(ExitCode::SUCCESS)
}

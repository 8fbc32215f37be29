//! `basalt backups list`, `verify` and `prune`.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use basalt_backup::{CopyOptions, Progress};

use super::{Failure, open, show};
use crate::commands::command_line::BackupsCommand;

pub(super) async fn run(command: BackupsCommand) -> Result<ExitCode, Failure> {
    match command {
        BackupsCommand::List { place } => {
            let vault = open(&place.at, place.key_file.as_deref()).await?;
            list(&vault).await
        }
        BackupsCommand::Verify { ids, max_rate, place } => {
            let vault = open(&place.at, place.key_file.as_deref()).await?;
            let progress = Progress::default();
            let parallel = CopyOptions::default().parallel;
            let work = vault.verify(&ids, parallel, max_rate.unwrap_or_default(), &progress);
            let verified = show::Line::new("verify").of(&progress, work).await?;
            let mut out = std::io::stdout().lock();
            for problem in &verified.problems {
                writeln!(out, "{problem}")?;
            }
            writeln!(
                out,
                "{} backups, {} chunks, {} pieces of the log, {}: {} problems",
                verified.backups,
                verified.chunks,
                verified.pieces,
                show::bytes(verified.bytes),
                verified.problems.len()
            )?;
            Ok(if verified.problems.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        BackupsCommand::Prune { keep, place } => {
            let vault = open(&place.at, place.key_file.as_deref()).await?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
            let from_ms = u64::try_from(now.saturating_sub(keep).as_millis())?;
            let pruned = vault.prune(from_ms).await?;
            for id in &pruned.backups {
                println!("removed {id}");
            }
            println!(
                "{} backups removed, {} kept; {} objects removed, {}, and {} pieces of the log",
                pruned.backups.len(),
                pruned.kept,
                pruned.objects,
                show::bytes(pruned.bytes),
                pruned.pieces
            );
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints a line for each backup.
async fn list(vault: &basalt_backup::Vault) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout().lock();
    let mut is_sound = true;
    for backup in vault.list().await? {
        match backup {
            Ok(backup) => {
                let secrets = if backup.left_out.is_empty() {
                    ""
                } else {
                    ", without users and keys"
                };
                writeln!(
                    out,
                    "{}  {}  position {}  {} tables, {} files, {}{secrets}",
                    backup.id,
                    show::time(backup.time_ms),
                    backup.position,
                    backup.tables.len(),
                    backup.files,
                    show::bytes(backup.bytes)
                )?;
            }
            Err(error) => {
                is_sound = false;
                writeln!(out, "{error}")?;
            }
        }
    }
    Ok(if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

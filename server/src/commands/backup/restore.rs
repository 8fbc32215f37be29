//! `basalt restore`: makes a data directory of a backup.
//!
//! 1. The target must be missing or empty. Files go into a directory beside it, `NAME.restoring`; a restore
//!    that was cut short is taken up there.
//! 2. The engine reads the manifest, leaves out tables and families and draws a cluster id if asked, and says
//!    which files are needed. They are fetched and checked.
//! 3. The engine writes the manifest. Then the directory is synced and gets the target's name.
//!
//! A directory with the target's name therefore is a whole database, whatever happened.
//!
//! With `--into` the table of such a directory becomes a snapshot, whose files the running server takes over.

use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use basalt_backup::{Class, DONE, Lost, Plan, Progress, Tail, Target, Until, Vault};
use basalt_engine::Engine;
use basalt_engine::engine::Restore;
use basalt_engine::fs::RealFs;
use basalt_engine::id::SeqId;
use basalt_engine::schema::TableName;
use serde_json::json;

use super::{Failure, open, operator, show};
use crate::commands::command_line;
use crate::commands::snapshots::print_copied;
use crate::snapshot_files::export;

/// Begins the name of the snapshot by which a table goes into a running server.
const SNAPSHOT: &str = "basalt-restore";

/// Ends the name of a directory that is being restored.
const UNFINISHED: &str = ".restoring";

pub(super) async fn run(wanted: &command_line::Restore) -> Result<ExitCode, Failure> {
    let vault = open(&wanted.from, wanted.key_file.as_deref()).await?;
    let Some(target) = wanted.data_dir.as_ref().filter(|_| !wanted.list) else {
        return list(&vault).await;
    };
    check_target(target)?;
    if let (Some(address), Some(name)) = (&wanted.into, &wanted.new_name) {
        return into_server(&vault, wanted, target, address, name).await;
    }
    make(&vault, wanted, target).await?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a directory at `target`, takes its table over into a running server, and removes the directory.
async fn into_server(
    vault: &Vault,
    wanted: &command_line::Restore,
    target: &Path,
    address: &str,
    name: &str,
) -> Result<ExitCode, Failure> {
    let [table] = &wanted.tables[..] else {
        return Err("--into takes one --table: run the command once for each".into());
    };
    make(vault, wanted, target).await?;
    let (data, table) = (target.to_owned(), TableName::parse(table.as_bytes())?);
    let exported = data.join("exported");
    let (root, of) = (exported.clone(), table.clone());
    let snapshot = format!("{SNAPSHOT}-{}", std::process::id());
    let taken = snapshot.clone();
    let work = tokio::task::spawn_blocking(move || -> Result<(), Failure> {
        let engine = Engine::builder().open(&data)?;
        let done = engine.snapshot(&of, &taken, true, 0);
        engine.close()?;
        done?;
        export::export(&data, &taken, &root, &mut std::io::sink())?;
        Ok(())
    });
    work.await??;
    let body = json!({ "from": std::path::absolute(&exported)?, "name": snapshot, "table": name });
    let made = operator::post(address, &wanted.login, operator::IMPORT, &body, print_copied).await?;
    std::fs::remove_dir_all(target).map_err(|error| format!("removing {}: {error}", target.display()))?;
    println!(
        "table {name} at {address} is what {table} was: {} regions",
        made["regions"]
    );
    Ok(ExitCode::SUCCESS)
}

/// Makes a data directory.
async fn make(vault: &Vault, wanted: &command_line::Restore, target: &Path) -> Result<(), Failure> {
    let dir = beside(target)?;
    let (mut plan, tail) = if let Some(id) = &wanted.backup {
        (vault.plan(Some(id)).await?, None)
    } else {
        let (plan, tail) = vault.plan_at(wanted.at.unwrap_or(Target::Latest)).await?;
        (plan, Some(tail).filter(|tail| !tail.is_empty()))
    };
    let restore = choose(&mut plan, tail.as_ref(), wanted, vault)?;
    let progress = Progress::default();
    let rate = wanted.max_rate.unwrap_or_default();
    let what = what(&plan, tail.as_ref(), wanted);
    let fetching = plan.fetch(vault, &dir, &what, wanted.parallel.into(), rate, &progress);
    let lost = show::Line::new("restore").of(&progress, fetching).await?;
    check_lost(&lost, &dir, wanted.skip_damaged)?;
    if let Some(tail) = &tail {
        tail.fetch(vault, &dir).await?;
    }
    let from = SeqId(plan.position());
    let upto = tail.map(|tail| tail.until);
    let (installed, named) = (dir.clone(), target.to_owned());
    let finished = tokio::task::spawn_blocking(move || finish(&restore, from, upto, &installed, &named));
    let position = finished.await??.map_or(plan.position(), |position| position.0);
    println!(
        "restored backup {} up to position {position} into {}: {} files, {}",
        plan.id(),
        target.display(),
        progress.figures().files,
        show::bytes(progress.figures().bytes_total)
    );
    if !plan.left_out().is_empty() {
        eprintln!(
            "the backup has no users, tokens, rights and keys: it was not encrypted. Missing: {}",
            plan.left_out().join(", ")
        );
    }
    Ok(())
}

/// Line that names the restored backup or point.
fn what(plan: &Plan, tail: Option<&Tail>, wanted: &command_line::Restore) -> String {
    let mut what = plan.id();
    if let Some(tail) = tail {
        what = format!("{what} up to {}", tail.until);
    }
    if !wanted.tables.is_empty() {
        what = format!("{what}, of {}", wanted.tables.join(" "));
    }
    for (table, family) in &wanted.anonymise {
        what = format!("{what}, without {table}:{family}");
    }
    what
}

/// Refuses a target that has something in it.
fn check_target(target: &Path) -> Result<(), Failure> {
    match std::fs::read_dir(target) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("{}: {error}", target.display()).into()),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(format!("{} is not empty: restore into a new directory", target.display()).into()),
        },
    }
}

/// The directory for files until the restore is complete.
fn beside(target: &Path) -> Result<PathBuf, Failure> {
    let target = std::path::absolute(target)?;
    let Some(name) = target.file_name() else {
        return Err(format!("{} has no name: restore into a new directory", target.display()).into());
    };
    let mut name = name.to_owned();
    name.push(UNFINISHED);
    Ok(target.with_file_name(name))
}

/// Applies the options to the manifest, and leaves out files that are not needed.
fn choose(
    plan: &mut Plan,
    tail: Option<&Tail>,
    wanted: &command_line::Restore,
    vault: &Vault,
) -> Result<Restore, Failure> {
    let from = PathBuf::from(format!("{}/catalogues/{}", vault.url(), plan.id()));
    let mut restore = Restore::decode(&plan.manifest, &from)?;
    for turn in tail.iter().flat_map(|tail| &tail.turns) {
        restore
            .follow(&turn.edit)
            .map_err(|error| format!("turn {} of the log: {error}", turn.number))?;
    }
    if !wanted.tables.is_empty() {
        let tables: Result<Vec<TableName>, _> = wanted
            .tables
            .iter()
            .map(|name| TableName::parse(name.as_bytes()))
            .collect();
        restore.keep_tables(&tables?).map_err(|error| {
            let names: Vec<_> = restore.tables().iter().map(ToString::to_string).collect();
            format!(
                "{error}; at that point backup {} has {}",
                plan.id(),
                names.join(", ")
            )
        })?;
    }
    for (table, family) in &wanted.anonymise {
        restore
            .leave_out_family(&TableName::parse(table.as_bytes())?, family.as_bytes())
            .map_err(|error| format!("--anonymise {table}:{family}: {error}"))?;
    }
    if wanted.new_cluster_id {
        restore.draw_cluster_id(&RealFs)?;
    }
    let needed: HashSet<PathBuf> = restore.files().into_iter().map(|file| file.path).collect();
    plan.keep(|class, path| class != Class::Store || needed.contains(path));
    Ok(restore)
}

/// Refuses a restore that lacks files, unless only store files are lost and that is accepted.
fn check_lost(lost: &[Lost], dir: &Path, is_accepted: bool) -> Result<(), Failure> {
    for file in lost {
        eprintln!("{} cannot be restored: {}", file.path.display(), file.error);
    }
    let is_store = |file: &&Lost| file.path.starts_with("tables") || file.path.starts_with("snapshots");
    let others = lost.iter().filter(|file| !is_store(file)).count();
    if others > 0 {
        return Err(format!(
            "{others} files that everything depends on are lost: restore another backup (basalt backups list), and remove {}",
            dir.display()
        )
        .into());
    }
    if lost.is_empty() || is_accepted {
        return Ok(());
    }
    Err(format!(
        "{} store files are lost; --skip-damaged restores everything else, and refuses the regions that need them. What was fetched is in {}",
        lost.len(),
        dir.display()
    )
    .into())
}

/// Prints what can be restored: the backups, and how far the log goes on from each.
async fn list(vault: &Vault) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout().lock();
    for span in vault.spans().await? {
        let id = &span.id;
        writeln!(
            out,
            "{id}  {} position {}  to  {} position {}",
            show::time(span.from.time_ms),
            span.from.position,
            show::time(span.to.time_ms),
            span.to.position
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends the log at `upto`, makes the directory a database, and gives it its
/// name. `from` is the backup's position. Returns the last position of a log that was cut.
fn finish(
    restore: &Restore,
    from: SeqId,
    upto: Option<Until>,
    dir: &Path,
    target: &Path,
) -> Result<Option<SeqId>, Failure> {
    let done = dir.join(DONE);
    if upto.is_some() {
        // From here on the log is another one than what was fetched: an attempt that ends here is not
        // taken up.
        std::fs::write(&done, "a log that was being cut\n")
            .map_err(|error| format!("{}: {error}", done.display()))?;
    }
    let cut = |until| {
        let upto = match until {
            Until::Position(position) => SeqId(position),
            Until::Time(time_ms) => restore.position_at(&RealFs, dir, from, time_ms)?,
        };
        restore.cut_log(&RealFs, dir, upto)
    };
    let end = upto.map(cut).transpose()?;
    restore.install(&RealFs, dir)?;
    Engine::builder().settle(restore, dir)?;
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    std::fs::remove_file(&done).map_err(failed(&done))?;
    sync(dir)?;
    let security = crate::config::security_dir(dir);
    if security.exists() {
        sync(&security)?;
    }
    // An empty target is replaced.
    std::fs::rename(dir, target).map_err(failed(target))?;
    let parent = std::path::absolute(target)?;
    sync(parent.parent().unwrap_or(&parent))?;
    Ok(end)
}

fn sync(dir: &Path) -> Result<(), Failure> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| format!("syncing {}: {error}", dir.display()).into())
}

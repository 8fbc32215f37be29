//! `basalt backup`, `basalt backups` and `basalt restore`.
//!
//! | module | does |
//! | --- | --- |
//! | `online` | asks a running server for a backup, and shows its progress |
//! | `offline` | backs up a stopped server's directory |
//! | `manage` | lists, verifies and prunes |
//! | `restore` | makes a data directory of a backup |
//! | `show` | progress on standard error, and numbers for people |

use std::path::Path;

use basalt_backup::{Key, Store, Vault};

use super::command_line::{Backup, BackupsCommand, Restore};
use super::{Outcome, on_runtime, operator};

mod manage;
mod offline;
mod online;
mod restore;
pub(super) mod show;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Makes a backup.
pub(super) fn make(wanted: &Backup) -> Outcome {
    on_runtime(async {
        match &wanted.data_dir {
            Some(dir) => offline::run(dir.clone(), wanted).await,
            None => online::run(wanted).await,
        }
    })
}

/// Runs a command on existing backups.
pub(super) fn manage(command: BackupsCommand) -> Outcome {
    on_runtime(manage::run(command))
}

/// Restores a backup.
pub(super) fn restore(wanted: &Restore) -> Outcome {
    on_runtime(restore::run(wanted))
}

/// Opens existing backups.
async fn open(url: &str, key_file: Option<&Path>) -> Result<Vault, Failure> {
    let key = key_file.map(Key::read).transpose()?;
    Ok(Vault::open(Store::open(url, false)?, key).await?)
}

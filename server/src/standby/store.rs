//! The store of backups that a standby follows: opening it, and fetching files of a backup.

use std::path::Path;

use basalt_backup::{CopyOptions, DONE, Error, Key, Plan, Progress, Store, Vault};

use crate::config::Config;
use crate::server::copies::standing::{Leader, Stored};

/// Opens the backups that the settings say to follow.
pub(super) async fn open(config: &Config) -> Result<Vault, Error> {
    let url = config.standby.follow.clone();
    let key_file = config.backup.key_file.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let key = (!key_file.as_os_str().is_empty()).then(|| Key::read(&key_file));
        Ok::<_, Error>((Store::open(&url, false)?, key.transpose()?))
    });
    let (store, key) = opened
        .await
        .map_err(|error| Error::Refused(error.to_string()))??;
    Vault::open(store, key).await
}

/// Refuses backups of another cluster than the data directory's.
pub(super) fn check_cluster(vault: &Vault, stored: Option<&Stored>) -> Result<(), String> {
    let own = stored.and_then(|stored| stored.origin.as_ref());
    let Some(own) = own.filter(|origin| origin.cluster_id != vault.cluster_id()) else {
        return Ok(());
    };
    Err(format!(
        "{} has backups of the cluster {}, and this standby is of {}: follow the backups of that one, or begin with an empty data directory",
        vault.url(),
        vault.cluster_id(),
        own.cluster_id
    ))
}

/// The primary that a backup names.
pub(super) fn leader_of(plan: &Plan) -> Option<Leader> {
    plan.primary().map(|primary| Leader {
        host: primary.host.clone(),
        port: primary.port,
        start_code: primary.start_code,
        http: primary.http.clone(),
    })
}

/// Fetches what a plan has left into a directory that is empty, or has an unfinished fetch of the same.
pub(super) async fn fetch(vault: &Vault, plan: &Plan, dir: &Path) -> Result<(), Error> {
    let what = what(plan);
    let parallel = CopyOptions::default().parallel;
    let progress = Progress::default();
    let lost = plan.fetch(vault, dir, &what, parallel, 0, &progress).await?;
    match lost.into_iter().next() {
        None => Ok(()),
        Some(lost) => Err(Error::Refused(format!(
            "backup {} lacks {}: {}",
            plan.id(),
            lost.path.display(),
            lost.error
        ))),
    }
}

/// True if a directory has an unfinished fetch of that plan.
pub(super) fn is_begun(dir: &Path, plan: &Plan) -> bool {
    let done = std::fs::read_to_string(dir.join(DONE)).unwrap_or_default();
    done.lines().next() == Some(&what(plan))
}

/// The line that says what is fetched.
fn what(plan: &Plan) -> String {
    format!("backup {} for a standby", plan.id())
}

//! A backup that an operator has asked for.
//!
//! The caller polls [`Job::figures`] while it awaits [`Job::run`]. A dropped job ends the backup: what it has
//! written serves the next one.

use std::path::PathBuf;
use std::sync::Arc;

use basalt_backup::{CopyOptions, Figures, Key, Made, Progress, Store, Vault};
use basalt_engine::engine::Pin;
use serde::Deserialize;

use super::point::{Failed, of_pin};
use crate::security::Caller;
use crate::server::Server;
use crate::service::Failure;
use crate::service::admin::{self, AdminCall};
use crate::standby::leader;

/// Content of the request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Wanted {
    /// URL of the store.
    to: String,
    /// Key file, as the server sees it. Empty: in clear.
    key_file: PathBuf,
    /// Bytes per second; 0: no limit.
    max_rate: u64,
    /// Transfers at a time; 0: the default.
    parallel: usize,
    /// Copy users, tokens and keys, too, although in clear.
    secrets_in_clear: bool,
}

/// Why a backup was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{}", .0.message())]
    Call(Failure),
    #[error("{0}")]
    Backup(#[from] basalt_backup::Error),
    #[error("{0}")]
    Point(#[from] Failed),
    #[error("another backup of this server goes on: wait for its end")]
    Running,
    #[error("say where to: \"to\" is empty")]
    NoPlace,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Call(failure)
    }
}

/// A backup.
#[derive(Debug)]
pub(crate) struct Job {
    wanted: Wanted,
    progress: Arc<Progress>,
}

impl Job {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            progress: Arc::default(),
        }
    }

    /// The figures now.
    pub(crate) fn figures(&self) -> Figures {
        self.progress.figures()
    }

    /// Makes the backup.
    pub(crate) async fn run(
        self: Arc<Self>,
        server: Arc<Server>,
        caller: Arc<Caller>,
    ) -> Result<Made, Refusal> {
        let made = self.attempt(&server, &caller).await;
        server.copies().backups.note(&made);
        made
    }

    async fn attempt(&self, server: &Arc<Server>, caller: &Arc<Caller>) -> Result<Made, Refusal> {
        if self.wanted.to.is_empty() {
            return Err(Refusal::NoPlace);
        }
        let running = server.copies().backups.running();
        let _place = running.try_acquire().map_err(|_| Refusal::Running)?;
        let vault = open(server, &self.wanted.to, &self.wanted.key_file).await?;
        let call = AdminCall::new(server, caller);
        let pin = server.on_pool(move |_| admin::backup::pin(&call)).await?;
        let options = CopyOptions {
            parallel: match self.wanted.parallel {
                0 => CopyOptions::default().parallel,
                parallel => parallel,
            },
            max_rate: self.wanted.max_rate,
            secrets_in_clear: self.wanted.secrets_in_clear,
        };
        let (server, progress) = (Arc::clone(server), Arc::clone(&self.progress));
        // Positions of such a backup go with a log that is shipped to the same URL.
        let run = server.instance().start_code().to_string();
        copy_pin(server, Arc::new(vault), pin, run, options, progress).await
    }
}

/// Copies a pin, and drops it where it may block: its files may go then.
pub(super) async fn copy_pin(
    server: Arc<Server>,
    vault: Arc<Vault>,
    pin: Pin,
    run: String,
    options: CopyOptions,
    progress: Arc<Progress>,
) -> Result<Made, Refusal> {
    let pin = Pinned(Some(Arc::new(pin)));
    let described = pin.0.clone();
    let point = server
        .on_pool(move |server| {
            let dir = &server.config().data.dir;
            Ok(described.map(|pin| of_pin(&pin, dir, &run, Some(leader::primary(server)))))
        })
        .await?;
    let Some(point) = point.transpose()? else {
        return Err(Refusal::Running);
    };
    Ok(vault.back_up(&point, options, &progress).await?)
}

/// Opens the vault of this server at a URL.
pub(super) async fn open(
    server: &Arc<Server>,
    url: &str,
    key_file: &std::path::Path,
) -> Result<Vault, Refusal> {
    let (url, key_file) = (url.to_owned(), key_file.to_owned());
    let opened = server
        .on_pool(move |_| {
            let key = (!key_file.as_os_str().is_empty()).then(|| Key::read(&key_file));
            Ok(key
                .transpose()
                .and_then(|key| Ok((Store::open(&url, true)?, key))))
        })
        .await?;
    let (store, key) = opened?;
    let cluster_id = server.engine().cluster_id().to_string();
    Ok(Vault::open_or_begin(store, key, &cluster_id).await?)
}

/// A pin that is dropped where it may block: its files may go then.
struct Pinned(Option<Arc<Pin>>);

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(pin) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(pin));
        }
    }
}

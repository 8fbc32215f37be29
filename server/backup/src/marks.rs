//! Marks: backups and prunings that go on in a store.
//!
//! A backup counts on chunks that are there already, and a pruning removes those that no catalogue names. So
//! neither runs beside the other: each writes its mark, and then looks for marks of the other kind. Of two
//! that begin together at least one sees the other. A mark is renewed while its work goes on; one that is
//! older than [`STALE`], by the store's clock, was left by a process that was killed, and is removed.

use std::time::Duration;

use bytes::Bytes;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::task::JoinHandle;

use crate::digest::to_hex;
use crate::error::{Error, Result};
use crate::store::Store;

/// Folder of the marks.
const FOLDER: &str = "marks";

/// Age from which a mark counts for nothing.
const STALE: Duration = Duration::from_mins(10);

/// Time between two renewals.
const RENEWAL: Duration = Duration::from_mins(1);

/// Work that others must not disturb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Backup,
    Prune,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Prune => "prune",
        }
    }
}

/// The mark of work that goes on. [`Mark::remove`] ends it. One that is dropped, with work that was given
/// up, is removed in the background.
#[derive(Debug)]
pub(crate) struct Mark {
    store: Store,
    name: String,
    renewal: JoinHandle<()>,
    is_removed: bool,
}

impl Mark {
    /// Begins work; refused while work goes on that excludes it: the other kind's, and another pruning.
    pub(crate) async fn set(store: &Store, work: Work) -> Result<Self> {
        let mut random = [0; 8];
        let drawn = SystemRandom::new().fill(&mut random);
        drawn.map_err(|_| Error::Refused("the system gives no random bytes".into()))?;
        let id = format!("{}-{}", work.name(), to_hex(&random));
        let name = format!("{FOLDER}/{id}");
        store.put(&name, Bytes::from_static(b"basalt\n")).await?;
        let mark = Self {
            renewal: tokio::spawn(renew(store.clone(), name.clone())),
            store: store.clone(),
            name,
            is_removed: false,
        };
        let refused = mark.others(work, &id).await;
        match refused {
            Ok(None) => Ok(mark),
            Ok(Some(other)) => {
                mark.remove().await?;
                Err(Error::Refused(format!(
                    "{} goes on at {}: try again when it has ended; after a kill that is in {} minutes",
                    if other == Work::Backup {
                        "a backup"
                    } else {
                        "a pruning"
                    },
                    store.url(),
                    STALE.as_secs() / 60
                )))
            }
            Err(error) => {
                // The first error says more than one of the removal.
                let _ = mark.remove().await;
                Err(error)
            }
        }
    }

    /// Work that excludes this.
    async fn others(&self, work: Work, id: &str) -> Result<Option<Work>> {
        let own = self.store.written_ms(&self.name).await?;
        let now = own.ok_or_else(|| {
            Error::Refused(format!(
                "{} lost an object that was just written",
                self.store.url()
            ))
        })?;
        let mut marks = Vec::new();
        self.store
            .list(FOLDER, |name, _, written| marks.push((name.to_owned(), written)))
            .await?;
        for (name, written) in marks.into_iter().filter(|(name, _)| name != id) {
            if now.saturating_sub(written) > STALE.as_millis() as i64 {
                self.store.delete(&format!("{FOLDER}/{name}")).await?;
                continue;
            }
            let other = if name.starts_with(Work::Prune.name()) {
                Work::Prune
            } else {
                Work::Backup
            };
            if other != work || other == Work::Prune {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    /// Ends the work.
    pub(crate) async fn remove(mut self) -> Result<()> {
        self.renewal.abort();
        self.is_removed = true;
        self.store.delete(&self.name).await
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.renewal.abort();
        if !self.is_removed
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (store, name) = (self.store.clone(), std::mem::take(&mut self.name));
            // Where it fails, the mark becomes stale.
            runtime.spawn(async move { drop(store.delete(&name).await) });
        }
    }
}

async fn renew(store: Store, name: String) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        // A store that is away for a moment is asked again; work that cannot write ends by itself.
        let _ = store.put(&name, Bytes::from_static(b"basalt\n")).await;
    }
}

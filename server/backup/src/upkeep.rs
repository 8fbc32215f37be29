//! Listing, verifying and pruning backups.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;

use crate::catalogue::Catalogue;
use crate::copy::PARALLEL_MAX;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::limit::Limit;
use crate::marks::{Mark, Work};
use crate::progress::Progress;
use crate::vault::Vault;

/// A backup, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Sequence id of the last edit.
    pub position: u64,
    /// Files in it.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// Files with secrets that were left out.
    pub left_out: Vec<String>,
}

/// Result of a verification.
#[derive(Debug, Default)]
pub struct Verified {
    /// Backups that were verified.
    pub backups: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Pieces of the log that were read.
    pub pieces: u64,
    /// A line for each problem.
    pub problems: Vec<String>,
}

/// Objects and backups that a pruning has removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Ids of the backups that are gone.
    pub backups: Vec<String>,
    /// Backups that are left.
    pub kept: u64,
    /// Objects that are gone.
    pub objects: u64,
    /// Their bytes in the store.
    pub bytes: u64,
    /// Pieces of the log that are gone.
    pub pieces: u64,
}

impl Vault {
    /// All backups, oldest first, and an error for each whose catalogue cannot be read.
    pub async fn list(&self) -> Result<Vec<Result<Listed>>> {
        let mut all = Vec::new();
        for id in self.ids().await? {
            match self.catalogue(&id).await {
                Ok(catalogue) => all.push(Ok(Listed {
                    id,
                    time_ms: catalogue.time_ms,
                    position: catalogue.position,
                    files: catalogue.files.len() as u64,
                    bytes: catalogue.bytes(),
                    tables: catalogue.tables,
                    left_out: catalogue.left_out,
                })),
                Err(error) if error.is_damage() => all.push(Err(error)),
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Reads every byte that the backups need: all, or those of these ids.
    pub async fn verify(
        &self,
        ids: &[String],
        parallel: usize,
        max_rate: u64,
        progress: &Progress,
    ) -> Result<Verified> {
        let ids = if ids.is_empty() {
            self.ids().await?
        } else {
            ids.to_vec()
        };
        let mut verified = Verified::default();
        // Each chunk once, with the first file that needs it.
        let mut chunks: HashMap<Digest, (u64, String)> = HashMap::new();
        let mut catalogues = Vec::new();
        for id in ids {
            match self.catalogue(&id).await {
                Ok(catalogue) => {
                    verified.backups += 1;
                    for (path, chunk, bytes) in catalogue.chunks() {
                        chunks
                            .entry(chunk)
                            .or_insert_with(|| (bytes, format!("{path} of {id}")));
                    }
                    catalogues.push(Catalogue {
                        files: Vec::new(),
                        ..catalogue
                    });
                }
                Err(error) if error.is_damage() => verified.problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        let total = chunks.values().map(|(bytes, _)| bytes).sum();
        progress.expect(chunks.len() as u64, total);
        (verified.chunks, verified.bytes) = (chunks.len() as u64, total);
        let problems = Mutex::new(Vec::new());
        let limit = Limit::new(max_rate);
        stream::iter(chunks)
            .map(|(chunk, (bytes, needed_by))| {
                let (problems, limit) = (&problems, &limit);
                async move {
                    limit.pass(bytes).await;
                    match self.chunk(&chunk, bytes).await {
                        Ok(_) => {
                            progress.moved(bytes);
                            progress.done(bytes);
                            Ok(())
                        }
                        Err(error) if error.is_damage() => {
                            problems.lock().push(format!("{error}; {needed_by} needs it"));
                            Ok(())
                        }
                        Err(error) => Err(error),
                    }
                }
            })
            .buffer_unordered(parallel.clamp(1, PARALLEL_MAX))
            .try_collect::<Vec<()>>()
            .await?;
        verified.problems.append(&mut problems.into_inner());
        let (pieces, mut problems) = self.verify_log(&catalogues).await?;
        verified.pieces = pieces;
        verified.problems.append(&mut problems);
        verified.problems.sort_unstable();
        Ok(verified)
    }

    /// Removes backups from before `keep_from_ms`, but the newest of all, and then the chunks that no backup
    /// needs. Refused if a catalogue that stays cannot be read: what it needs is not known.
    pub async fn prune(&self, keep_from_ms: u64) -> Result<Pruned> {
        let mark = Mark::set(&self.store, Work::Prune).await?;
        let pruned = self.prune_alone(keep_from_ms).await;
        let removed = mark.remove().await;
        let pruned = pruned?;
        removed?;
        Ok(pruned)
    }

    async fn prune_alone(&self, keep_from_ms: u64) -> Result<Pruned> {
        let mut pruned = Pruned::default();
        let mut needed = HashSet::new();
        let mut kept = Vec::new();
        let ids = self.ids().await?;
        let newest = ids.last().cloned();
        for id in ids {
            let catalogue = self.catalogue(&id).await.map_err(|error| {
                Error::Refused(format!(
                    "nothing was removed, since it is not known what backup {id} needs: {error}; remove that object if the backup is given up"
                ))
            })?;
            if catalogue.time_ms < keep_from_ms && Some(&id) != newest.as_ref() {
                pruned.backups.push(id);
            } else {
                needed.extend(catalogue.chunks().map(|(_, chunk, _)| chunk));
                kept.push(catalogue);
            }
        }
        pruned.kept = kept.len() as u64;
        for id in &pruned.backups {
            self.delete_catalogue(id).await?;
        }
        pruned.pieces = self.prune_log(&kept).await?;
        let mut unneeded = Vec::new();
        self.list_chunks(|name, digest, bytes| {
            if digest.is_some_and(|digest| !needed.contains(&digest)) {
                unneeded.push((name.to_owned(), bytes));
            }
        })
        .await?;
        pruned.objects = unneeded.len() as u64;
        pruned.bytes = unneeded.iter().map(|(_, bytes)| bytes).sum();
        stream::iter(unneeded)
            .map(|(name, _)| async move { self.delete_object(&name).await })
            .buffer_unordered(PARALLEL_MAX)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(pruned)
    }
}

//! Making a backup.
//!
//! 1. Set the mark that keeps prunings away ([`marks`](crate::marks)).
//! 2. List the chunks that are there, and read the newest catalogue. A store file that the catalogue has, by
//!    its identity, needs no reading.
//! 3. Read all other files in chunks, several at a time; write the chunks that are not there. So a backup
//!    that was cut short is taken up where it ended: its chunks are there.
//! 4. Compare the content of store files with their checksums.
//! 5. Make sure that all chunks that were counted on are still there.
//! 6. Write the catalogue: now the backup exists.
//!
//! Memory: a buffer of [`CHUNK_BYTES`] for each of at most [`PARALLEL_MAX`] transfers, the digests of what is
//! there (32 bytes for each 8 MiB), and the catalogue.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;

use crate::catalogue::{Catalogue, Class, Entry, FORMAT, encode_path};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::limit::Limit;
use crate::marks::{Mark, Work};
use crate::object::{HEAD_BYTES, Kind, buffer, digest_of};
use crate::point::{Point, PointFile};
use crate::pool::on_pool;
use crate::progress::Progress;
use crate::vault::Vault;

/// Bytes of a chunk.
pub const CHUNK_BYTES: u64 = 8 << 20;

/// Most transfers at a time: their buffers are the memory of a backup.
pub const PARALLEL_MAX: usize = 6;

/// Options of a backup.
#[derive(Clone, Copy, Debug)]
pub struct CopyOptions {
    /// Transfers at a time, up to [`PARALLEL_MAX`].
    pub parallel: usize,
    /// Bytes per second; 0: no limit.
    pub max_rate: u64,
    /// Copy secrets in clear, too.
    pub secrets_in_clear: bool,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            parallel: 4,
            max_rate: 0,
            secrets_in_clear: false,
        }
    }
}

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its id.
    pub id: String,
    /// Sequence id of the last edit in it.
    pub position: u64,
    /// Files in it.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Bytes that were written to the store.
    pub written: u64,
    /// Files with secrets that were left out.
    pub left_out: Vec<String>,
}

/// A chunk to be read: numbers of the file and of the chunk in it.
#[derive(Clone, Copy)]
struct Piece {
    entry: usize,
    at: usize,
}

/// Digest and CRC-32C of each chunk of an entry.
type Found = Vec<Vec<Option<(Digest, u32)>>>;

impl Vault {
    /// Makes a backup of a point.
    pub async fn back_up(&self, point: &Point, options: CopyOptions, progress: &Progress) -> Result<Made> {
        let mark = Mark::set(&self.store, Work::Backup).await?;
        let made = self.copy(point, options, progress).await;
        let removed = mark.remove().await;
        // The first error says more.
        let made = made?;
        removed?;
        Ok(made)
    }

    async fn copy(&self, point: &Point, options: CopyOptions, progress: &Progress) -> Result<Made> {
        let there = self.chunks().await?;
        let known = self.known_files().await?;
        let (files, left_out) = self.chosen(point, options);
        let total = files.iter().map(|file| file.bytes).sum();
        progress.expect(files.len() as u64, total);

        let mut entries: Vec<Entry> = files.iter().map(|file| entry_of(file)).collect();
        let mut pieces = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let chunks = known.get(&file.identity).filter(|chunks| {
                !file.identity.is_empty() && chunks.iter().all(|chunk| there.contains(chunk))
            });
            if let Some(chunks) = chunks {
                entries[index].chunks.clone_from(chunks);
                progress.done(file.bytes);
                continue;
            }
            let count = usize::try_from(file.bytes.div_ceil(CHUNK_BYTES)).unwrap_or(usize::MAX);
            pieces.extend((0..count).map(|at| Piece { entry: index, at }));
        }
        drop(known);

        let transfer = Transfer {
            vault: self,
            there: &there,
            written: Mutex::default(),
            limit: Limit::new(options.max_rate),
            progress,
        };
        let found: Mutex<Found> = Mutex::new(vec![Vec::new(); entries.len()]);
        let parallel = options.parallel.clamp(1, PARALLEL_MAX);
        stream::iter(pieces)
            .map(|piece| {
                let (transfer, found, files) = (&transfer, &found, &files);
                async move {
                    let chunk = transfer.copy_piece(files[piece.entry], piece.at).await?;
                    let mut found = found.lock();
                    let of_entry = &mut found[piece.entry];
                    if of_entry.len() <= piece.at {
                        of_entry.resize(piece.at + 1, None);
                    }
                    of_entry[piece.at] = Some(chunk);
                    Ok::<_, Error>(())
                }
            })
            .buffer_unordered(parallel)
            .try_collect::<Vec<()>>()
            .await?;
        for ((file, entry), chunks) in files.iter().zip(&mut entries).zip(found.into_inner()) {
            if !chunks.is_empty() {
                let chunks: Vec<(Digest, u32)> = chunks.into_iter().flatten().collect();
                check_content(file, &chunks)?;
                entry.chunks = chunks.into_iter().map(|(digest, _)| digest).collect();
            }
        }
        let manifest = transfer.copy_bytes(&point.manifest).await?;
        let written = transfer.written.into_inner();

        let catalogue = Catalogue {
            format: FORMAT,
            cluster_id: point.cluster_id.clone(),
            server: point.server.clone(),
            time_ms: point.time_ms,
            position: point.position,
            run: point.log.run.clone(),
            turns: point.log.turns,
            segment: point.log.segment,
            segment_bytes: point.log.bytes,
            primary: point.primary.clone(),
            tables: point.tables.clone(),
            left_out: left_out.clone(),
            chunk_bytes: CHUNK_BYTES,
            manifest_bytes: point.manifest.len() as u64,
            manifest,
            files: entries,
        };
        self.confirm(&catalogue, &written.chunks).await?;
        self.put_catalogue(&catalogue).await?;
        Ok(Made {
            id: catalogue.id(),
            position: catalogue.position,
            files: catalogue.files.len() as u64,
            bytes: catalogue.bytes(),
            written: written.bytes,
            left_out,
        })
    }

    /// Chunks of the store files in the newest backup, by their identity.
    async fn known_files(&self) -> Result<HashMap<String, Vec<Digest>>> {
        let Some(newest) = self.ids().await?.pop() else {
            return Ok(HashMap::new());
        };
        match self.catalogue(&newest).await {
            Ok(catalogue) if catalogue.chunk_bytes == CHUNK_BYTES => {
                let files = catalogue.files.into_iter();
                let files = files.filter(|entry| entry.class == Class::Store);
                Ok(files.map(|entry| (entry.identity, entry.chunks)).collect())
            }
            // All files are read then. The new backup does not need a damaged one.
            Ok(_) | Err(Error::Damaged { .. }) => Ok(HashMap::new()),
            Err(error) => Err(error),
        }
    }

    /// The files to copy, and the paths of those that are left out.
    fn chosen<'a>(&self, point: &'a Point, options: CopyOptions) -> (Vec<&'a PointFile>, Vec<String>) {
        let keeps_secrets = self.is_encrypted() || options.secrets_in_clear;
        let secrets: HashSet<&Path> = point.secrets.iter().map(PathBuf::as_path).collect();
        let is_copied = |file: &&PointFile| keeps_secrets || !secrets.contains(&*file.path);
        let (copied, left_out): (Vec<_>, Vec<_>) = point.files.iter().partition(is_copied);
        let left_out = left_out.into_iter().map(|file| encode_path(&file.path));
        (copied, left_out.collect())
    }

    /// Makes sure that the chunks of a catalogue that were not written just now are there.
    async fn confirm(&self, catalogue: &Catalogue, written: &HashSet<Digest>) -> Result<()> {
        let listed = self.chunks().await?;
        for (path, chunk, _) in catalogue.chunks() {
            if written.contains(&chunk) || listed.contains(&chunk) {
                continue;
            }
            // A listing may lag behind.
            let name = Self::chunk_name(&chunk);
            if self.store.size(&name).await?.is_none() {
                let what = format!("it was there and is gone; {path} needs it: make the backup again");
                return Err(self.damaged(&name, what));
            }
        }
        Ok(())
    }
}

/// Chunks that were written.
#[derive(Default)]
struct Written {
    chunks: HashSet<Digest>,
    bytes: u64,
}

/// Transfers to a store.
struct Transfer<'a> {
    vault: &'a Vault,
    there: &'a HashSet<Digest>,
    written: Mutex<Written>,
    limit: Limit,
    progress: &'a Progress,
}

impl Transfer<'_> {
    /// Reads a chunk of a file and writes its chunk if it is not there.
    async fn copy_piece(&self, file: &PointFile, at: usize) -> Result<(Digest, u32)> {
        let offset = at as u64 * CHUNK_BYTES;
        let bytes = CHUNK_BYTES.min(file.bytes - offset);
        let (source, key) = (file.source.clone(), self.vault.key.clone());
        let read = move || {
            let mut filled = buffer(usize::try_from(bytes).unwrap_or(usize::MAX));
            filled.resize(HEAD_BYTES + usize::try_from(bytes).unwrap_or(usize::MAX), 0);
            let file = File::open(&source).map_err(|error| Error::io("opening", &source, error))?;
            file.read_exact_at(&mut filled[HEAD_BYTES..], offset)
                .map_err(|error| Error::io("reading", &source, error))?;
            let checksum = crc32c::crc32c(&filled[HEAD_BYTES..]);
            let digest = digest_of(key.as_deref(), Kind::Chunk, &filled[HEAD_BYTES..]);
            Ok::<_, Error>((filled, digest, checksum))
        };
        let (filled, digest, checksum) = on_pool(read).await??;
        self.write(digest, filled).await?;
        self.progress.done(bytes);
        Ok((digest, checksum))
    }

    /// Writes content that is in memory. Returns its chunks.
    async fn copy_bytes(&self, content: &[u8]) -> Result<Vec<Digest>> {
        let mut chunks = Vec::new();
        for piece in content.chunks(usize::try_from(CHUNK_BYTES).unwrap_or(usize::MAX)) {
            let digest = self.vault.digest(Kind::Chunk, piece);
            let mut filled = buffer(piece.len());
            filled.extend_from_slice(piece);
            self.write(digest, filled).await?;
            chunks.push(digest);
        }
        Ok(chunks)
    }

    async fn write(&self, digest: Digest, filled: Vec<u8>) -> Result<()> {
        if self.there.contains(&digest) || !self.written.lock().chunks.insert(digest) {
            return Ok(());
        }
        let object = self.vault.seal(Kind::Chunk, digest, filled).await?;
        let bytes = object.len() as u64;
        self.limit.pass(bytes).await;
        self.vault.store.put(&Vault::chunk_name(&digest), object).await?;
        self.written.lock().bytes += bytes;
        self.progress.moved(bytes);
        Ok(())
    }
}

fn entry_of(file: &PointFile) -> Entry {
    Entry {
        path: encode_path(&file.path),
        class: file.class,
        identity: file.identity.clone(),
        bytes: file.bytes,
        length: file.length,
        chunks: Vec::new(),
    }
}

/// Refuses a file whose content is not what its checksum says.
fn check_content(file: &PointFile, chunks: &[(Digest, u32)]) -> Result<()> {
    let Some(expected) = file.checksum else {
        return Ok(());
    };
    let mut left = file.bytes;
    let mut checksum = 0;
    for (_, of_chunk) in chunks {
        let bytes = left.min(CHUNK_BYTES);
        left -= bytes;
        checksum = crc32c::crc32c_combine(checksum, *of_chunk, usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    if checksum == expected {
        return Ok(());
    }
    let what = format!(
        "the file is damaged: its CRC-32C is {checksum:08x}, and the manifest says {expected:08x}; basalt check names the regions that need it"
    );
    Err(Error::io("checking", &file.source, std::io::Error::other(what)))
}

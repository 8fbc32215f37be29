//! The manifest, open for appending.
//!
//! Every open writes a new file with a snapshot and makes it live, so a file that was read is never
//! written again: a torn tail needs no cutting in place, and bytes that a failed sync left in the
//! page cache only are rewritten and synced.
//!
//! One edit: reserve space, write the frame, sync, apply, write the marker by which a reader
//! distinguishes a damaged last edit from one in flight. Several edits that do not depend on each
//! other share one sync and one marker, behind the last of them: a crash before the sync leaves a
//! prefix of them. One roll: write and sync the new file, sync its name, write and sync
//! CURRENT.tmp, rename it to CURRENT, sync the name. Up to the rename a failure leaves the old file
//! live, also a rename that a full disk refuses; after the rename it is unknown which file is live,
//! so the log is poisoned.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::encode::{encode_edit, encode_snapshot};
use super::file::{
    CURRENT, FILE_BYTES_MAX, FORMAT_VERSION, FRAME_ALIGN_BYTES, Header, RESERVE_BYTES, encode_current,
    file_name, file_numbers, find_live,
};
use super::size::{StateSize, copy_growth, growth, is_schema};
use super::{DroppedFile, ManifestEdit, ManifestState, SnapshotMeta};
use crate::error::{Error, Result};
use crate::fs::{File, Open, Vfs, is_disk_full};
use crate::id::Uuid;
use crate::options::Totals;
use crate::record::{FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, put_frame};
use crate::schema::TableName;
use crate::seeded;

/// Ratio of the edits' bytes to the snapshot's from which the log is rolled.
const ROLL_RATIO: u64 = 4;

const CURRENT_TEMPORARY: &str = "CURRENT.tmp";

/// The manifest, open for appending. One thread at a time appends: the owner holds it in a mutex.
#[derive(Debug)]
pub struct Manifest {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// State after all edits so far.
    state: ManifestState,
    /// The bound of its encoded size.
    size: StateSize,
    /// Number of the last edit.
    last_edit: u64,
    live: LiveFile,
    /// Size of the log at which a roll that failed before the switch is retried.
    roll_bytes: u64,
    /// See [`Self::open`].
    roll_bytes_min: u64,
    roll_error: Option<Error>,
    /// Why nothing more is accepted.
    poisoned: Option<String>,
}

/// The file that edits go to.
#[derive(Debug)]
struct LiveFile {
    file: Arc<dyn File>,
    path: PathBuf,
    number: u64,
    uuid: Uuid,
    /// Where the next frame goes.
    end: u64,
    /// Everything before it is synced.
    durable: u64,
    /// Space is reserved up to here.
    reserved: u64,
    /// End of the snapshot.
    snapshot_end: u64,
    /// Bytes of the snapshot.
    snapshot_bytes: usize,
}

/// Why a new manifest file did not become the live one.
enum Failed {
    /// The old one is live as before.
    BeforeSwitch(Error),
    /// Either may be live.
    Unknown(Error),
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::BeforeSwitch(error) | Failed::Unknown(error) => error,
        }
    }
}

impl Manifest {
    /// Opens the manifest of `dir`, which must exist, or creates one if the directory holds no
    /// database. Returns its state.
    ///
    /// REQUIRES: the caller holds the directory's lock. Damage to anything that was acknowledged is
    /// [`Error::Corrupt`] with file and offset, without any change.
    ///
    /// A log whose edits take fewer than `roll_bytes_min` bytes is never rolled while it is open.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, roll_bytes_min: u64) -> Result<(Self, ManifestState)> {
        let found = find_live(&*vfs, dir)?;
        let previous = found.as_ref().map(|live| live.path.clone());
        let (state, last_edit) = match found {
            Some(live) => (live.loaded.state, live.loaded.last_edit),
            None => (ManifestState::new(draw_uuid(&*vfs, dir)?), 0),
        };
        let number = file_numbers(&*vfs, dir)?.last().map_or(1, |last| last + 1);
        if let Some(previous) = &previous
            && seeded::is_on("old-manifest-removed-first")
        {
            let removed = vfs.remove_file(previous).and_then(|()| vfs.sync_dir(dir));
            removed.map_err(|source| Error::io("removing", previous, source))?;
        }
        let live = install(&*vfs, dir, number, &state, last_edit)?;
        let mut manifest = Self {
            vfs,
            dir: dir.to_owned(),
            state: state.clone(),
            size: StateSize::new(live.snapshot_bytes, Totals::DEFAULT.manifest_bytes),
            last_edit,
            roll_bytes: 0,
            live,
            roll_bytes_min,
            roll_error: None,
            poisoned: None,
        };
        manifest.began_file(previous.as_deref());
        Ok((manifest, state))
    }

    /// Appends an edit and makes it durable. Returns the files that no region refers to any more: they may be
    /// deleted now.
    ///
    /// An edit that breaks a rule, or for which there is no disk space, is refused without effect.
    /// After a failed write or sync the tail is unknown: the edit may or may not be found at the
    /// next open, and nothing more is accepted.
    pub fn append(&mut self, edit: &ManifestEdit) -> Result<Vec<DroppedFile>> {
        self.append_all(std::slice::from_ref(edit))
    }

    /// Appends edits and makes them durable with one sync. Each is one atomic change, in this
    /// order. If one of them breaks a rule, or the disk has no space for all, all are refused
    /// without effect. Otherwise as [`Self::append`].
    ///
    /// REQUIRES: at least one edit, and no edit that another one makes valid or invalid.
    pub(crate) fn append_all(&mut self, edits: &[ManifestEdit]) -> Result<Vec<DroppedFile>> {
        if let Some(why) = &self.poisoned {
            return Err(Error::Poisoned(why.clone()));
        }
        let mut payloads = Vec::with_capacity(edits.len());
        let (mut grown, mut bytes) = (0, frame_bytes(&[]));
        for edit in edits {
            let (payload, growth) = self.check_behind(edit, grown, bytes)?;
            grown += growth;
            bytes += frame_bytes(&payload);
            payloads.push(payload);
        }
        self.live.reserve(bytes)?;
        let written = self.live.write_synced(self.last_edit + 1, &payloads);
        self.unless_poisoned(written)?;
        self.last_edit += edits.len() as u64;
        let mut dropped = Vec::new();
        for edit in edits {
            dropped.extend(self.state.apply(edit)?);
        }
        self.size.grew(grown);
        // The edits are durable whether or not the marker is written; a failed write of it poisons
        // the log.
        let marked = self.live.write(self.last_edit, &[]);
        if self.unless_poisoned(marked).is_ok() && self.live.edit_bytes() >= self.roll_bytes {
            self.roll();
        }
        Ok(dropped)
    }

    /// Refuses an edit that [`Self::append`] would refuse, whatever the disk does: one that breaks
    /// a rule, or after which the next open could not read the file or write its snapshot. Returns
    /// the encoded edit, and an upper bound of its growth of the state.
    pub fn check(&mut self, edit: &ManifestEdit) -> Result<(Vec<u8>, usize)> {
        self.check_behind(edit, 0, frame_bytes(&[]))
    }

    /// Checks an edit as [`Self::check`] does, to be written after others that add `grown` bytes to
    /// the state and take `bytes` in the file.
    fn check_behind(&mut self, edit: &ManifestEdit, grown: usize, bytes: u64) -> Result<(Vec<u8>, usize)> {
        self.state.check(edit)?;
        let payload = encode_edit(edit);
        check_payload(&payload, "a manifest edit")?;
        let growth = growth(&self.state, edit, payload.len());
        if !seeded::is_on("state-size-not-checked") {
            self.size.check(&self.state, grown + growth, is_schema(edit))?;
        }
        self.live.check_length(bytes + frame_bytes(&payload))?;
        Ok((payload, growth))
    }

    /// Refuses making a table of a snapshot under that name, if the state would become too large.
    /// Called before its files are linked; the edit is checked again when it is appended.
    pub(crate) fn check_copy(&mut self, snapshot: &SnapshotMeta, name: &TableName) -> Result<()> {
        self.size.check(&self.state, copy_growth(snapshot, name), true)
    }

    /// Sets another limit than [`Totals::DEFAULT`] for the size of the state after schema changes.
    pub(crate) fn set_schema_bytes_max(&mut self, bytes: usize) {
        self.size.set_schema_max(bytes);
    }

    /// State after all edits so far.
    pub fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Whether a write or sync has failed. If not, an [`Self::append`] that was refused has left nothing
    /// behind.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.is_some()
    }

    /// The live file.
    pub fn path(&self) -> &Path {
        &self.live.path
    }

    /// Why the last roll failed, if it did. The old file stays live then and the roll is retried
    /// later.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests look at it"))]
    pub(crate) fn roll_error(&self) -> Option<&Error> {
        self.roll_error.as_ref()
    }

    fn unless_poisoned(&mut self, result: Result<()>) -> Result<()> {
        result.map_err(|error| {
            let why = error.to_string();
            if !seeded::is_on("manifest-not-poisoned") {
                self.poisoned = Some(why.clone());
            }
            // Not the error itself, which would suggest a retry: whether the edit is on disk is
            // unknown.
            Error::Poisoned(why)
        })
    }

    fn roll(&mut self) {
        let next = self.live.number + 1;
        match install(&*self.vfs, &self.dir, next, &self.state, self.last_edit) {
            Ok(live) => {
                let previous = std::mem::replace(&mut self.live, live);
                self.roll_error = None;
                self.began_file(Some(&previous.path));
            }
            Err(Failed::BeforeSwitch(error)) => {
                self.roll_bytes = self.live.edit_bytes() * 2;
                self.roll_error = Some(error);
            }
            Err(Failed::Unknown(error)) => self.poisoned = Some(error.to_string()),
        }
    }

    /// Completes a roll: sets the size for the next one and removes all files but the live one and
    /// its predecessor, the second copy.
    fn began_file(&mut self, previous: Option<&Path>) {
        self.roll_bytes = self.roll_bytes_min.max(self.live.snapshot_end * ROLL_RATIO);
        self.size.measured(self.live.snapshot_bytes);
        let Ok(numbers) = file_numbers(&*self.vfs, &self.dir) else {
            return;
        };
        for path in numbers.into_iter().map(|number| self.dir.join(file_name(number))) {
            if path != self.live.path && Some(&*path) != previous {
                // A file that cannot be removed now only costs space, and the next roll tries
                // again.
                let _ = self.vfs.remove_file(&path);
            }
        }
    }
}

impl LiveFile {
    /// Refuses bytes with which the file would be longer than an open reads. This happens only if
    /// rolls keep failing.
    fn check_length(&self, bytes: u64) -> Result<()> {
        let length = self.end.saturating_add(bytes).saturating_add(2 * RESERVE_BYTES);
        if length <= FILE_BYTES_MAX {
            return Ok(());
        }
        Err(Error::RegionTooBusy(format!(
            "{} would have {length} bytes, and a start reads {FILE_BYTES_MAX}; it could not be written anew: make space on the disk",
            self.path.display()
        )))
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let needed = self.end + bytes;
        let wanted = needed + RESERVE_BYTES;
        if wanted > self.reserved {
            let reserved = wanted.next_multiple_of(RESERVE_BYTES);
            match self.file.allocate(reserved) {
                Ok(()) => self.reserved = reserved,
                // The reserved space is for this.
                Err(_) if needed <= self.reserved => {}
                Err(source) => return Err(Error::io("reserving space in", &self.path, source)),
            }
        }
        Ok(())
    }

    fn write(&mut self, number: u64, payload: &[u8]) -> Result<()> {
        let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + payload.len());
        put_frame(&mut frame, &self.uuid, self.end, number, self.durable, payload);
        self.file
            .write_at(&frame, self.end)
            .map_err(|source| Error::io("writing", &self.path, source))?;
        self.end += frame_bytes(payload);
        Ok(())
    }

    /// Writes frames numbered from `first` on, and syncs them.
    fn write_synced(&mut self, first: u64, payloads: &[Vec<u8>]) -> Result<()> {
        for (number, payload) in (first..).zip(payloads) {
            self.write(number, payload)?;
        }
        let is_group = payloads.len() > 1;
        if seeded::is_on("manifest-edit-not-synced") || is_group && seeded::is_on("manifest-group-not-synced")
        {
            return Ok(());
        }
        self.sync()
    }

    fn sync(&mut self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|source| Error::io("syncing", &self.path, source))?;
        self.durable = self.end;
        Ok(())
    }

    /// Bytes of the edits behind the snapshot.
    fn edit_bytes(&self) -> u64 {
        self.end - self.snapshot_end
    }
}

/// Bytes that a frame takes in the file.
fn frame_bytes(payload: &[u8]) -> u64 {
    (FRAME_HEADER_BYTES + payload.len()).next_multiple_of(FRAME_ALIGN_BYTES) as u64
}

fn draw_uuid(vfs: &dyn Vfs, dir: &Path) -> Result<Uuid> {
    vfs.draw_uuid()
        .map(Uuid)
        .map_err(|source| Error::io("drawing a uuid for", dir, source))
}

fn check_payload(payload: &[u8], what: &str) -> Result<()> {
    if payload.len() > FRAME_PAYLOAD_BYTES_MAX {
        return Err(Error::InvalidArgument(format!(
            "{what} of {} bytes is longer than {FRAME_PAYLOAD_BYTES_MAX}",
            payload.len()
        )));
    }
    Ok(())
}

/// Makes a manifest with this state in a directory without one, durably.
pub(crate) fn create(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<()> {
    install(vfs, dir, 1, state, 0)?;
    Ok(())
}

/// Writes a manifest file with a snapshot of `state` and makes it the live one.
fn install(
    vfs: &dyn Vfs,
    dir: &Path,
    number: u64,
    state: &ManifestState,
    last_edit: u64,
) -> std::result::Result<LiveFile, Failed> {
    let path = dir.join(file_name(number));
    let prepared = write_snapshot(vfs, dir, &path, number, state, last_edit).and_then(|live| {
        write_current(vfs, dir, &live)?;
        Ok(live)
    });
    let not_switched = |error| {
        // A leftover is harmless: it repeats the old file, and the next roll removes it.
        let _ = vfs.remove_file(&path);
        Failed::BeforeSwitch(error)
    };
    let live = prepared.map_err(not_switched)?;
    let current = dir.join(CURRENT);
    let switching = |source| Error::io("switching", &current, source);
    if seeded::is_on("current-removed-first") && vfs.exists(&current).is_ok_and(|exists| exists) {
        drop(vfs.remove_file(&current).and_then(|()| vfs.sync_dir(dir)));
    }
    match vfs.rename(&dir.join(CURRENT_TEMPORARY), &current) {
        Ok(()) => {}
        Err(source) if is_disk_full(&source) => return Err(not_switched(switching(source))),
        Err(source) => return Err(Failed::Unknown(switching(source))),
    }
    if !seeded::is_on("no-dir-sync-after-current-rename") {
        vfs.sync_dir(dir)
            .map_err(|source| Failed::Unknown(switching(source)))?;
    }
    Ok(live)
}

fn write_snapshot(
    vfs: &dyn Vfs,
    dir: &Path,
    path: &Path,
    number: u64,
    state: &ManifestState,
    last_edit: u64,
) -> Result<LiveFile> {
    let uuid = draw_uuid(vfs, dir)?;
    let header = Header {
        version: FORMAT_VERSION,
        uuid,
        cluster_id: state.cluster_id,
        number,
    };
    let payload = encode_snapshot(state);
    check_payload(&payload, "a manifest snapshot")?;
    let mut bytes = header.encode().to_vec();
    bytes.resize(FRAME_ALIGN_BYTES, 0);
    let at = bytes.len() as u64;
    let end = at + frame_bytes(&payload);
    let reserved = end.next_multiple_of(RESERVE_BYTES);
    put_frame(&mut bytes, &uuid, at, last_edit, 0, &payload);
    let create = || {
        // The number can be taken by a file that a failed roll could not remove.
        if vfs.exists(path)? {
            vfs.remove_file(path)?;
        }
        let file = vfs.open(path, Open::CreateNew)?;
        file.allocate(reserved)?;
        file.write_at(&bytes, 0)?;
        if !seeded::is_on("snapshot-not-synced") {
            file.sync_all()?;
        }
        vfs.sync_dir(dir)?;
        Ok(file)
    };
    let file = create().map_err(|source| Error::io("creating", path, source))?;
    Ok(LiveFile {
        file,
        path: path.to_owned(),
        number,
        uuid,
        end,
        durable: end,
        reserved,
        snapshot_end: end,
        snapshot_bytes: payload.len(),
    })
}

fn write_current(vfs: &dyn Vfs, dir: &Path, live: &LiveFile) -> Result<()> {
    let path = dir.join(CURRENT_TEMPORARY);
    let write = || {
        if vfs.exists(&path)? {
            vfs.remove_file(&path)?;
        }
        let file = vfs.open(&path, Open::CreateNew)?;
        file.write_at(encode_current(live.number, &live.uuid).as_bytes(), 0)?;
        file.sync_all()
    };
    write().map_err(|source| Error::io("writing", &path, source))
}

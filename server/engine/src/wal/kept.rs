//! The log that is kept for its readers, over restarts: for the peers of replication.
//!
//! ```text
//! wal/kept/readers        who reads the log: a name, a position, and a note of the reader's owner
//! wal/kept/regions        regions that are gone, and the tables that they were of
//! wal/kept/<number>.wal   segments that a start does not need any more
//! ```
//!
//! 1. [`Kept::add`] keeps everything from the present end of the log on.
//! 2. A segment that [`Wal::remove_before`](super::Wal::remove_before) would remove is moved here as long as
//!    a reader's position is in it or before it ([`Kept::set_aside`]). So a start replays no more than
//!    without readers.
//! 3. Before a region is gone, its table is noted ([`Kept::note_gone`]): edits name regions only.
//! 4. [`Kept::advance`] moves a position, durably, and removes what no reader needs.
//!
//! `readers` is replaced as a whole: magic, version, number of readers, the readers, CRC-32C of all before.
//! `regions` is a sequence of frames (see `record`) that grows; a torn one at its end belongs to a change
//! that did not happen.
//!
//! Threads: its lock comes after the manifest's and before that of `group`'s state; it is held during I/O, of
//! which there is at most one small file for a change of a position.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::checksum::crc32c;
use crate::codec::{Cursor, put_prefixed, put_varint};
use crate::fs::{Open, Vfs};
use crate::id::{RegionId, SeqId, Uuid};
use crate::record::{FrameRead, put_frame, read_frame};
use crate::schema::TableName;
use crate::{Error, Result};

use super::layout::{remove_if_there, segment_path};
use super::old::OldSegment;
use super::reader::{header_of, list_segments, read_file};

/// The directory, in that of the segments.
const DIR: &str = "kept";

const READERS: &str = "readers";
const REGIONS: &str = "regions";

const READERS_MAGIC: [u8; 8] = *b"basaltlr";
const READERS_VERSION: u32 = 1;

/// Mixed into the checksums of the frames of `regions`.
const REGIONS_UUID: Uuid = Uuid(*b"basalt-kept-regi");

/// The floor without readers.
const NO_READERS: u64 = u64::MAX;

/// A reader of the log, of whom the log is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogReader {
    /// Its name.
    pub name: String,
    /// The sequence id of the next row that it reads.
    pub position: SeqId,
    /// A note of the reader's owner.
    pub note: Vec<u8>,
}

/// A region that is gone.
#[derive(Clone, Debug)]
struct Gone {
    table: TableName,
    /// No row of it has a greater sequence id.
    last_seq: SeqId,
}

/// The log that is kept. All methods may be called from any thread.
#[derive(Debug)]
pub(super) struct Kept {
    vfs: Arc<dyn Vfs>,
    wal_dir: PathBuf,
    dir: PathBuf,
    /// Segments with rows from this one on are kept.
    floor: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    readers: BTreeMap<String, LogReader>,
    gone: BTreeMap<RegionId, Gone>,
    /// Bytes of `regions` up to the last intact frame.
    regions_bytes: u64,
    /// Segments that were set aside, oldest first.
    segments: Vec<OldSegment>,
}

impl State {
    fn floor(&self) -> u64 {
        let positions = self.readers.values().map(|reader| reader.position.0);
        positions.min().unwrap_or(NO_READERS)
    }
}

impl Kept {
    /// Reads what is kept beside the log in `wal_dir`, and removes what no reader needs.
    pub(super) fn open(vfs: Arc<dyn Vfs>, wal_dir: &Path) -> Result<Self> {
        let dir = wal_dir.join(DIR);
        let kept = Self {
            vfs,
            wal_dir: wal_dir.to_path_buf(),
            dir,
            floor: AtomicU64::new(NO_READERS),
            state: Mutex::default(),
        };
        let is_there = kept.vfs.exists(&kept.dir);
        if is_there.map_err(|e| Error::io("looking for", &kept.dir, e))? {
            kept.load()?;
        }
        Ok(kept)
    }

    fn load(&self) -> Result<()> {
        let mut state = self.state.lock();
        let readers = self.dir.join(READERS);
        if self.exists(&readers)? {
            let bytes = read_file(&*self.vfs, &readers)?;
            state.readers = decode_readers(&bytes).ok_or_else(|| {
                Error::corrupt(
                    &readers,
                    0,
                    "the positions of the log's readers cannot be read; without this file the server starts and has no replication peers",
                )
            })?;
        }
        let regions = self.dir.join(REGIONS);
        if self.exists(&regions)? {
            let bytes = read_file(&*self.vfs, &regions)?;
            (state.gone, state.regions_bytes) = decode_regions(&bytes);
        }
        let in_log = list_segments(&*self.vfs, &self.wal_dir)?;
        for number in list_segments(&*self.vfs, &self.dir)? {
            // One that is still in the log is set aside again when it leaves it.
            if !in_log.contains(&number) {
                let last_seq = self.last_seq(number)?;
                state.segments.push(OldSegment { number, last_seq });
            }
        }
        self.floor.store(state.floor(), Ordering::Release);
        self.prune(&mut state)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.vfs
            .exists(path)
            .map_err(|e| Error::io("looking for", path, e))
    }

    /// No row of a segment that was set aside has a greater sequence id, as its successor says.
    fn last_seq(&self, number: u64) -> Result<SeqId> {
        match self.find(number + 1)? {
            Some(path) => {
                let header = header_of(&*self.vfs, &path)?.map_err(|bad| bad.into_error(&path))?;
                Ok(SeqId(header.first_seq.0.saturating_sub(1)))
            }
            None => Ok(SeqId(u64::MAX)),
        }
    }

    /// Where a segment is: in the log, or set aside.
    pub(super) fn find(&self, number: u64) -> Result<Option<PathBuf>> {
        // It is linked here before it leaves the log, so it is in one of the places, in this order.
        for dir in [&self.wal_dir, &self.dir] {
            let path = segment_path(dir, number);
            if self.exists(&path)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The oldest segment that was set aside.
    pub(super) fn first_segment(&self) -> Option<u64> {
        self.state.lock().segments.first().map(|segment| segment.number)
    }

    /// The segments that were set aside and have rows from `position` on.
    pub(super) fn segments_from(&self, position: SeqId) -> Vec<u64> {
        let state = self.state.lock();
        let has_rows = |segment: &&OldSegment| segment.last_seq >= position;
        let found = state.segments.iter().filter(has_rows);
        found.map(|segment| segment.number).collect()
    }

    /// Whether a segment whose last row is that one has to be set aside.
    pub(super) fn wants(&self, last_seq: SeqId) -> bool {
        self.floor.load(Ordering::Acquire) <= last_seq.0
    }

    /// Links a segment of the log here, durably, before the caller removes it there; unless the readers for
    /// which it was wanted are gone, since nothing would remove it then.
    pub(super) fn set_aside(&self, segment: OldSegment) -> Result<()> {
        let mut state = self.state.lock();
        if state.floor() > segment.last_seq.0 {
            return Ok(());
        }
        let (from, to) = (
            segment_path(&self.wal_dir, segment.number),
            segment_path(&self.dir, segment.number),
        );
        match self.vfs.link(&from, &to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            linked => linked.map_err(|e| Error::io("linking", &to, e))?,
        }
        self.sync_dir()?;
        if state
            .segments
            .last()
            .is_none_or(|last| last.number < segment.number)
        {
            state.segments.push(segment);
        }
        Ok(())
    }

    /// The readers, by name.
    pub(super) fn readers(&self) -> Vec<LogReader> {
        self.state.lock().readers.values().cloned().collect()
    }

    /// Adds a reader that begins where `begin` says, and keeps the log from there on. `begin` is called when
    /// nothing is removed any more, with the oldest segment that was set aside. Fails if there is a reader of
    /// that name.
    pub(super) fn add(
        &self,
        name: &str,
        note: &[u8],
        begin: impl FnOnce(Option<u64>) -> Result<SeqId>,
    ) -> Result<SeqId> {
        let mut state = self.state.lock();
        if state.readers.contains_key(name) {
            return Err(Error::InvalidArgument(format!(
                "the log has a reader {name} already"
            )));
        }
        self.create_dir()?;
        self.floor.store(0, Ordering::Release);
        let oldest = state.segments.first().map(|segment| segment.number);
        let added = begin(oldest).and_then(|position| {
            let reader = LogReader {
                name: name.to_owned(),
                position,
                note: note.to_vec(),
            };
            self.change(&mut state, |readers| {
                readers.insert(name.to_owned(), reader);
            })?;
            Ok(position)
        });
        self.floor.store(state.floor(), Ordering::Release);
        added
    }

    /// Replaces the note of a reader.
    pub(super) fn set_note(&self, name: &str, note: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        check_known(&state, name)?;
        self.change(&mut state, |readers| {
            if let Some(reader) = readers.get_mut(name) {
                reader.note = note.to_vec();
            }
        })
    }

    /// Moves a reader forward, durably, and removes what no reader needs any more.
    pub(super) fn advance(&self, name: &str, position: SeqId) -> Result<()> {
        let mut state = self.state.lock();
        check_known(&state, name)?;
        if state
            .readers
            .get(name)
            .is_none_or(|reader| reader.position >= position)
        {
            return Ok(());
        }
        self.change(&mut state, |readers| {
            if let Some(reader) = readers.get_mut(name) {
                reader.position = position;
            }
        })?;
        self.floor.store(state.floor(), Ordering::Release);
        self.prune(&mut state)
    }

    /// Removes a reader, and what was kept for it alone. Returns whether there was one.
    pub(super) fn remove(&self, name: &str) -> Result<bool> {
        let mut state = self.state.lock();
        if !state.readers.contains_key(name) {
            return Ok(false);
        }
        self.change(&mut state, |readers| {
            readers.remove(name);
        })?;
        self.floor.store(state.floor(), Ordering::Release);
        self.prune(&mut state)?;
        Ok(true)
    }

    /// Notes the tables of regions that are about to be gone; no row of them has a sequence id above
    /// `last_seq`. Nothing without readers.
    pub(super) fn note_gone(&self, regions: &[(RegionId, TableName)], last_seq: SeqId) -> Result<()> {
        let mut state = self.state.lock();
        if state.readers.is_empty() || regions.is_empty() {
            return Ok(());
        }
        let at = state.regions_bytes;
        let mut frames = Vec::new();
        for (id, table) in regions {
            put_region(&mut frames, at, *id, table, last_seq);
        }
        let path = self.dir.join(REGIONS);
        let is_new = !self.exists(&path)?;
        let how = if is_new { Open::CreateNew } else { Open::Write };
        let file = self
            .vfs
            .open(&path, how)
            .map_err(|e| Error::io("opening", &path, e))?;
        // Bytes of a change that failed must not stand behind the new frames.
        file.set_len(at).map_err(|e| Error::io("truncating", &path, e))?;
        file.write_at(&frames, at)
            .map_err(|e| Error::io("writing", &path, e))?;
        file.sync_all().map_err(|e| Error::io("syncing", &path, e))?;
        if is_new {
            self.sync_dir()?;
        }
        state.regions_bytes = at + frames.len() as u64;
        for (id, table) in regions {
            let table = table.clone();
            state.gone.insert(*id, Gone { table, last_seq });
        }
        Ok(())
    }

    /// The table of a region that is gone; `None` if it was not noted.
    pub(super) fn gone(&self, region: RegionId) -> Option<TableName> {
        let state = self.state.lock();
        state.gone.get(&region).map(|gone| gone.table.clone())
    }

    /// Changes the readers, durably; without effect if that fails.
    fn change(&self, state: &mut State, change: impl FnOnce(&mut BTreeMap<String, LogReader>)) -> Result<()> {
        let mut readers = state.readers.clone();
        change(&mut readers);
        self.replace(READERS, &encode_readers(&readers))?;
        state.readers = readers;
        Ok(())
    }

    /// Removes segments, oldest first, and notes of regions that no reader needs.
    fn prune(&self, state: &mut State) -> Result<()> {
        let floor = self.floor.load(Ordering::Acquire);
        while let Some(oldest) = state.segments.first().copied()
            && oldest.last_seq.0 < floor
        {
            remove_if_there(&*self.vfs, &segment_path(&self.dir, oldest.number))?;
            self.sync_dir()?;
            state.segments.remove(0);
        }
        let before = state.gone.len();
        state.gone.retain(|_, gone| gone.last_seq.0 >= floor);
        if state.gone.len() < before {
            let mut frames = Vec::new();
            for (id, gone) in &state.gone {
                put_region(&mut frames, 0, *id, &gone.table, gone.last_seq);
            }
            self.replace(REGIONS, &frames)?;
            state.regions_bytes = frames.len() as u64;
        }
        Ok(())
    }

    fn create_dir(&self) -> Result<()> {
        self.vfs
            .create_dir_all(&self.dir)
            .map_err(|e| Error::io("creating", &self.dir, e))?;
        self.vfs
            .sync_dir(&self.wal_dir)
            .map_err(|e| Error::io("syncing", &self.wal_dir, e))
    }

    fn sync_dir(&self) -> Result<()> {
        self.vfs
            .sync_dir(&self.dir)
            .map_err(|e| Error::io("syncing", &self.dir, e))
    }

    /// Replaces a file of the directory, durably and as a whole.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.dir.join(name);
        let new = self.dir.join(format!("{name}.new"));
        remove_if_there(&*self.vfs, &new)?;
        let file = self
            .vfs
            .open(&new, Open::CreateNew)
            .map_err(|e| Error::io("creating", &new, e))?;
        file.write_at(bytes, 0)
            .map_err(|e| Error::io("writing", &new, e))?;
        file.sync_all().map_err(|e| Error::io("syncing", &new, e))?;
        self.vfs
            .rename(&new, &path)
            .map_err(|e| Error::io("renaming", &new, e))?;
        self.sync_dir()
    }
}

fn check_known(state: &State, name: &str) -> Result<()> {
    if state.readers.contains_key(name) {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!("the log has no reader {name}")))
}

fn encode_readers(readers: &BTreeMap<String, LogReader>) -> Vec<u8> {
    let mut out = READERS_MAGIC.to_vec();
    out.extend_from_slice(&READERS_VERSION.to_le_bytes());
    put_varint(&mut out, readers.len() as u64);
    for reader in readers.values() {
        put_prefixed(&mut out, reader.name.as_bytes());
        put_varint(&mut out, reader.position.0);
        put_prefixed(&mut out, &reader.note);
    }
    let checksum = crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// The readers in a file; `None` if it is damaged.
fn decode_readers(bytes: &[u8]) -> Option<BTreeMap<String, LogReader>> {
    let (content, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32c(content).to_le_bytes() != *checksum {
        return None;
    }
    let mut cursor = Cursor::new(content);
    if cursor.array::<8>()? != READERS_MAGIC || cursor.u32_le()? != READERS_VERSION {
        return None;
    }
    let mut readers = BTreeMap::new();
    for _ in 0..cursor.varint()? {
        let name = std::str::from_utf8(cursor.prefixed()?).ok()?.to_owned();
        let reader = LogReader {
            name: name.clone(),
            position: SeqId(cursor.varint()?),
            note: cursor.prefixed()?.to_vec(),
        };
        readers.insert(name, reader);
    }
    cursor.is_empty().then_some(readers)
}

/// Appends a region to the frames that will be written at `at`.
fn put_region(frames: &mut Vec<u8>, at: u64, region: RegionId, table: &TableName, last_seq: SeqId) {
    let mut payload = Vec::new();
    put_varint(&mut payload, region.0);
    payload.extend_from_slice(table.to_string().as_bytes());
    let offset = at + frames.len() as u64;
    put_frame(frames, &REGIONS_UUID, offset, last_seq.0, 0, &payload);
}

/// The regions in a file, and the bytes up to the last intact frame.
fn decode_regions(bytes: &[u8]) -> (BTreeMap<RegionId, Gone>, u64) {
    let (mut gone, mut at) = (BTreeMap::new(), 0);
    while let FrameRead::Frame {
        header,
        payload,
        next,
    } = read_frame(bytes, at, &REGIONS_UUID)
    {
        let mut cursor = Cursor::new(payload);
        if let Some(id) = cursor.varint()
            && let Ok(table) = TableName::parse(cursor.rest())
        {
            let last_seq = SeqId(header.first_seq);
            gone.insert(RegionId(id), Gone { table, last_seq });
        }
        at = next;
    }
    (gone, at as u64)
}

//! Shared by the tests: a simulated disk with a log on it, distinguishable edits, and reading them
//! back.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::layout::segment_path;
use super::*;
use crate::cell::CellType;
use crate::clock::ManualClock;
use crate::fs::Vfs;
use crate::fs::sim::{SimFs, SimOptions};
use crate::id::RegionId;
use crate::metrics::NoListener;
use crate::record::EditBuilder;

mod commit;
mod crash;
mod damage;
mod full;
mod origins;
mod version_1;

const DIR: &str = "/db/wal";

/// An edit of `rows` rows, one cell each, whose value is `tag`.
fn edit(region: u64, tag: &str, rows: u32) -> Vec<u8> {
    let mut builder = EditBuilder::new();
    builder.begin(RegionId(region));
    for row in 0..rows {
        builder.begin_row();
        builder.cell_of(
            &row.to_be_bytes(),
            b"f",
            b"q",
            7,
            CellType::Put,
            tag.as_bytes(),
            b"",
        );
    }
    builder.finish().to_vec()
}

/// An edit read back: first sequence id, region, tag, rows.
type Read = (u64, u64, String, u32);

fn read_back(edit: &LoggedEdit<'_>) -> Read {
    let mut tag = String::new();
    for (row, cell) in edit.cells() {
        assert_eq!(cell.seq.0, edit.first_seq().0 + u64::from(row));
        assert_eq!(cell.key.row(), row.to_be_bytes());
        tag = String::from_utf8(cell.value.to_vec()).unwrap();
    }
    (edit.first_seq().0, edit.region().0, tag, edit.rows())
}

/// A disk with a durable data directory, which the engine makes before the log.
fn disk(seed: u64, options: SimOptions) -> SimFs {
    let fs = SimFs::new(seed, options);
    fs.create_dir_all(Path::new("/db")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

fn sim() -> SimFs {
    disk(1, SimOptions::default())
}

fn options(sync: WalSync) -> WalOptions {
    WalOptions {
        dir: DIR.into(),
        segment_bytes: 6000,
        sync,
        clock: Arc::new(ManualClock::at(1_000)),
        commit_thread: false,
    }
}

fn recover_from(vfs: &SimFs, durable: u64) -> Result<(Vec<Read>, LogSummary)> {
    let mut edits = Vec::new();
    let summary = recover(vfs, Path::new(DIR), SeqId(durable), &NoListener, &mut |edit| {
        edits.push(read_back(&edit));
        Ok(())
    })?;
    Ok((edits, summary))
}

fn open_with(
    vfs: &SimFs,
    options: WalOptions,
    listener: Arc<dyn EventListener>,
) -> Result<(Arc<Wal>, Vec<Read>)> {
    let (edits, summary) = recover_from(vfs, 0)?;
    let counters = Arc::new(Counters::default());
    let vfs = Arc::new(vfs.clone());
    let wal = Wal::create(
        vfs,
        options,
        summary.last_segment,
        summary.last_seq,
        counters,
        listener,
    )?;
    Ok((wal, edits))
}

fn open(vfs: &SimFs, sync: WalSync) -> Result<(Arc<Wal>, Vec<Read>)> {
    open_with(vfs, options(sync), Arc::new(NoListener))
}

/// Reserves and appends.
fn join(wal: &Arc<Wal>, edit: &[u8], rows: u32, logging: Logging) -> Result<Appended> {
    let mut reserved = wal.reserve(1, edit.len() as u64)?;
    wal.append(&mut reserved, edit, rows, &[], logging)
}

fn append(wal: &Arc<Wal>, tag: &str, rows: u32, logging: Logging) -> Result<Commit> {
    Ok(join(wal, &edit(3, tag, rows), rows, logging)?.applied())
}

/// The log's segments on the disk.
fn segments(fs: &SimFs) -> Vec<PathBuf> {
    let is_segment = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| layout::segment_number(Path::new(name)).is_some())
    };
    fs.files().into_iter().filter(is_segment).collect()
}

fn put(wal: &Arc<Wal>, tag: &str) -> Result<()> {
    append(wal, tag, 1, Logging::Sync)?.wait()
}

fn tags(edits: &[Read]) -> Vec<&str> {
    edits.iter().map(|edit| edit.2.as_str()).collect()
}

/// Records the events that it receives.
#[derive(Debug, Default)]
struct Told {
    groups: Mutex<Vec<(usize, bool)>>,
    notices: Mutex<Vec<String>>,
}

impl EventListener for Told {
    fn wal_group(&self, edits: usize, _bytes: usize, synced: Option<std::time::Duration>) {
        self.groups.lock().push((edits, synced.is_some()));
    }
    fn notice(&self, message: &str) {
        self.notices.lock().push(message.to_string());
    }
}

#[test]
fn segment_names() {
    let name = |number| segment_path(Path::new(""), number);
    for number in [0, 1, 0xabc, u64::MAX] {
        assert_eq!(layout::segment_number(&name(number)), Some(number));
    }
    for other in [
        "1.wal",
        "000000000000000A.wal",
        "+000000000000001.wal",
        "0000000000000001.wal.new",
    ] {
        assert_eq!(layout::segment_number(Path::new(other)), None, "{other}");
    }
}

/// Removes the segments all of whose edits are at or below `flushed`; returns how many.
fn remove_obsolete(wal: &Wal, flushed: SeqId) -> Result<usize> {
    wal.first_kept(flushed)
        .map_or(Ok(0), |first| wal.remove_before(first))
}

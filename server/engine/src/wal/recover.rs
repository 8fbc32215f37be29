//! After a start: making the log fit for a successor.
//!
//! The process may have ended because a sync failed, and then the page cache shows bytes that the
//! disk does not have: reading them back proves nothing, and syncing the file again would not write
//! them. So the content of the last segment is rewritten before anything relies on it:
//!
//! 0. a roll that was cut short is completed (see below);
//! 1. all segments are read and judged (see `reader`), their edits handed out;
//! 2. a last segment that is not sealed is copied, frame by frame, into `<number>.wal.new` with a uuid of its
//!    own, sealed and synced, and renamed over the old one;
//! 3. now every segment is sealed, and [`Wal::create`](super::Wal::create) begins the next one behind them.
//!
//! A roll (see `roll`) that the end of the process cut short has left the last segment without its
//! seal, perhaps, and the next one under the spare's name, perhaps with groups in it. The successor's
//! header says what the sealed predecessor is. If the predecessor's frames, with the seal that
//! belongs behind them, are just that, it is copied with its seal, byte by byte so that the header
//! stays true, and then the successor gets its name, as a copy as well. Otherwise a power cut has
//! taken frames of the predecessor, so nothing in the successor was promised to be durable: it is
//! removed like any spare.
//!
//! The name changes atomically: a crash at any moment leaves either the old segment, which is then
//! recovered again, or the sealed one. Sealed segments need no copy: their frames were synced
//! before the seal was written, so the seal proves that they are durable. Only the last one's seal
//! itself may be in the page cache only, and so may its name, if a start was killed between 2's
//! renaming and the sync of the directory: the seal is written again in its place and synced, and
//! so is the directory.

use std::path::{Path, PathBuf};

use crate::fs::{Open, Vfs};
use crate::id::SeqId;
use crate::metrics::EventListener;
use crate::record::{FrameRead, read_frame};
use crate::seeded;
use crate::{Error, Result};

use super::layout::remove_if_there;
use super::layout::{SEAL_BYTES, segment_number, segment_path};
use super::reader::{
    LogSummary, LoggedEdit, Payload, header_of, list_segments, read_file, read_sealed, read_segments, walk,
};
use super::segment::{Seal, SegmentHeader, SegmentWriter};
use super::spare;

/// Ends the name of a segment that is being rewritten.
const NEW_SUFFIX: &str = ".new";

/// Reads the log of `dir` as [`read_segments`] does, then seals it, durably. The directory may be
/// missing. The returned summary is that of the log afterwards; `torn` describes the cut bytes.
pub fn recover(
    vfs: &dyn Vfs,
    dir: &Path,
    durable: SeqId,
    listener: &dyn EventListener,
    visit: &mut dyn FnMut(LoggedEdit<'_>) -> Result<()>,
) -> Result<LogSummary> {
    vfs.create_dir_all(dir)
        .map_err(|e| Error::io("creating", dir, e))?;
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        vfs.sync_dir(parent)
            .map_err(|e| Error::io("syncing", parent, e))?;
    }
    remove_copies(vfs, dir)?;
    complete_roll(vfs, dir)?;
    let mut summary = read_segments(vfs, dir, durable, listener, visit)?;
    // Only now: a log that is refused is left as it is.
    let spare = dir.join(spare::NAME);
    if vfs.exists(&spare).map_err(|e| Error::io("listing", dir, e))? {
        remove(vfs, dir, &spare)?;
    }
    match summary.last_segment {
        0 => {}
        number if summary.sealed => renew_seal(vfs, dir, number)?,
        _ => rewrite(vfs, dir, &mut summary)?,
    }
    Ok(summary)
}

/// Writes the seal of the last segment once more and syncs it, and its name.
fn renew_seal(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<()> {
    let path = segment_path(dir, number);
    let walked = read_sealed(vfs, dir, number)?;
    let at = walked.end - SEAL_BYTES;
    let mut seal = [0; SEAL_BYTES];
    let file = vfs
        .open(&path, Open::Write)
        .map_err(|e| Error::io("opening", &path, e))?;
    file.read_exact_at(&mut seal, at as u64)
        .map_err(|e| Error::io("reading", &path, e))?;
    // A crash may tear the seal, and a segment without one that is shorter than it was preallocated
    // is damage: so its length is set first, with a hole that takes no space.
    let syncing = |e| Error::io("syncing", &path, e);
    let truncating = |e| Error::io("truncating", &path, e);
    if walked.header.allocated > walked.end as u64 {
        file.set_len(walked.header.allocated).map_err(truncating)?;
        file.sync_all().map_err(syncing)?;
    }
    file.write_at(&seal, at as u64)
        .map_err(|e| Error::io("writing", &path, e))?;
    file.sync_all().map_err(syncing)?;
    file.set_len(walked.end as u64).map_err(truncating)?;
    vfs.sync_dir(dir).map_err(|e| Error::io("syncing", dir, e))
}

/// Copies the last segment and seals the copy.
fn rewrite(vfs: &dyn Vfs, dir: &Path, summary: &mut LogSummary) -> Result<()> {
    let number = summary.last_segment;
    let path = segment_path(dir, number);
    let bytes = read_file(vfs, &path)?;
    let header = SegmentHeader::decode(&bytes).map_err(|bad| bad.into_error(&path))?;
    let mut frames = Vec::new();
    let walked = walk(&bytes, header, &path, &mut |at, frame, payload| {
        if let Payload::Edits(_) = payload {
            frames.push((at, SeqId(frame.first_seq)));
        }
        Ok(())
    })?;
    let new_path = new_path(dir, number);
    let allocate_bytes = walked.end as u64;
    let mut segment = SegmentWriter::create(
        vfs,
        new_path.clone(),
        number,
        header.first_seq,
        &header.predecessor,
        allocate_bytes,
    )?;
    for (at, first_seq) in frames {
        let FrameRead::Frame { payload, .. } = read_frame(&bytes, at, &header.uuid) else {
            return Err(Error::corrupt(
                &path,
                at as u64,
                "a frame changed while it was read",
            ));
        };
        segment.write_frame(first_seq, payload)?;
    }
    segment.seal(&segment.plan_seal(walked.next_seq))?;
    rename_copy(vfs, dir, number)?;
    summary.sealed = true;
    Ok(())
}

/// Gives a copy of segment `number`, which is durable, the segment's name.
pub(super) fn rename_copy(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<()> {
    let new_path = new_path(dir, number);
    // The new name first, so that no order of the directory's changes loses both.
    vfs.sync_dir(dir).map_err(|e| Error::io("syncing", dir, e))?;
    vfs.rename(&new_path, &segment_path(dir, number))
        .map_err(|e| Error::io("renaming", &new_path, e))?;
    if !seeded::is_on("no-dir-sync-after-copy-rename") {
        vfs.sync_dir(dir).map_err(|e| Error::io("syncing", dir, e))?;
    }
    Ok(())
}

/// Completes a roll that was cut short. A spare that cannot be the successor of the last segment
/// stays, to be removed, and a damaged segment stays, to be reported.
fn complete_roll(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let spare = dir.join(spare::NAME);
    let Some(number) = list_segments(vfs, dir)?.pop() else {
        return Ok(());
    };
    if !vfs.exists(&spare).map_err(|e| Error::io("listing", dir, e))? {
        return Ok(());
    }
    let Ok(successor) = header_of(vfs, &spare)? else {
        return Ok(());
    };
    if successor.number != number + 1 {
        return Ok(());
    }
    let path = segment_path(dir, number);
    let full = read_file(vfs, &path)?;
    let Ok(header) = SegmentHeader::decode(&full) else {
        return Ok(());
    };
    let Ok(walked) = walk(&full, header, &path, &mut |_, _, _| Ok(())) else {
        return Ok(());
    };
    if walked.sealed {
        if walked.as_sealed() != successor.predecessor {
            return Ok(());
        }
        renew_seal(vfs, dir, number)?;
    } else {
        let seal = Seal::plan(&header.uuid, walked.end as u64, walked.chain, successor.first_seq);
        if seal.sealed != successor.predecessor {
            return Ok(());
        }
        copy(vfs, dir, number, &[&full[..walked.end], &seal.frame].concat(), 0)?;
    }
    let frames = read_file(vfs, &spare)?;
    copy(vfs, dir, successor.number, &frames, successor.allocated)
}

/// Makes these bytes segment `number`, durably. The file is at least `allocated` bytes long: zeros
/// behind the bytes, in a hole that takes no space.
fn copy(vfs: &dyn Vfs, dir: &Path, number: u64, bytes: &[u8], allocated: u64) -> Result<()> {
    let path = new_path(dir, number);
    let written = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let file = vfs
        .open(&path, Open::CreateNew)
        .map_err(|e| Error::io("creating", &path, e))?;
    file.write_at(&bytes[..written], 0)
        .map_err(|e| Error::io("writing", &path, e))?;
    file.set_len(allocated.max(bytes.len() as u64))
        .map_err(|e| Error::io("extending", &path, e))?;
    file.sync_all().map_err(|e| Error::io("syncing", &path, e))?;
    rename_copy(vfs, dir, number)
}

/// The name of a segment's copy until it is complete.
pub(super) fn new_path(dir: &Path, number: u64) -> PathBuf {
    let mut name = segment_path(dir, number).into_os_string();
    name.push(NEW_SUFFIX);
    name.into()
}

/// Removes copies that an earlier recovery did not finish.
pub(super) fn remove_copies(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    for name in vfs.list(dir).map_err(|e| Error::io("listing", dir, e))? {
        let unfinished = name.to_str().and_then(|name| name.strip_suffix(NEW_SUFFIX));
        if unfinished.is_some_and(|name| segment_number(Path::new(name)).is_some()) {
            remove(vfs, dir, &dir.join(name))?;
        }
    }
    Ok(())
}

/// Removes a file, durably. It may be gone already: an earlier call may have failed between its two steps.
pub(super) fn remove(vfs: &dyn Vfs, dir: &Path, path: &Path) -> Result<()> {
    remove_if_there(vfs, path)?;
    if seeded::is_on("log-removal-not-synced") {
        return Ok(());
    }
    vfs.sync_dir(dir).map_err(|e| Error::io("syncing", dir, e))
}

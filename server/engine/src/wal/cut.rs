//! Cutting a log behind a sequence id: for a copy of a log that is to end at a chosen edit.
//!
//! 1. The segments that begin behind the id are removed, the newest first.
//! 2. The last of the others is copied, frame by frame, up to the last edit whose rows all have sequence ids
//!    up to the id, under a uuid of its own; sealed, synced, and renamed over the old one.
//!
//! An edit is never divided. A cut that is repeated, after a crash too, has the same result.

use std::path::Path;

use crate::fs::Vfs;
use crate::id::SeqId;
use crate::{Error, Result};

use super::layout::segment_path;
use super::reader::{Payload, list_segments, read_file, read_header, walk};
use super::recover::{new_path, remove, remove_copies, rename_copy};
use super::segment::{EDITS_HEAD_BYTES, KIND_EDITS, KIND_OLD_EDITS, SegmentHeader, SegmentWriter};

/// Ends the log of `dir` behind the last edit up to `upto`. Returns the sequence id of its last row, or of
/// the row before the first of the log.
///
/// REQUIRES: no log is open there.
pub(crate) fn cut(vfs: &dyn Vfs, dir: &Path, upto: SeqId) -> Result<SeqId> {
    remove_copies(vfs, dir)?;
    let mut numbers = list_segments(vfs, dir)?;
    while let [.., _, last] = numbers[..] {
        if read_header(vfs, dir, last)?.first_seq <= upto {
            break;
        }
        remove(vfs, dir, &segment_path(dir, last))?;
        numbers.pop();
    }
    let Some(&number) = numbers.last() else {
        return Err(Error::corrupt(dir, 0, "a log without segments cannot be cut"));
    };
    copy_up_to(vfs, dir, number, upto)
}

/// The sequence id of the last row in front of the first one behind `from` that was written after `wall_ms`.
/// Groups of before version 3 of the log do not say when they were written, and count as earlier.
pub(crate) fn position_at(vfs: &dyn Vfs, dir: &Path, from: SeqId, wall_ms: u64) -> Result<SeqId> {
    let mut later = None;
    let mut last = from;
    for number in list_segments(vfs, dir)? {
        let path = segment_path(dir, number);
        let bytes = read_file(vfs, &path)?;
        let header = SegmentHeader::decode(&bytes).map_err(|bad| bad.into_error(&path))?;
        walk(&bytes, header, &path, &mut |at, frame, payload| {
            let Payload::Edits(mut edits) = payload else {
                return Ok(());
            };
            let is_later = edits.write_time_ms.is_some_and(|written| written > wall_ms);
            if later.is_none() && is_later && frame.first_seq > from.0 {
                later = Some(SeqId(frame.first_seq - 1));
            }
            if let Some(entry) = edits.entries.by_ref().last() {
                let entry = entry.map_err(|what| Error::corrupt(&path, at as u64, what))?;
                last = last.max(SeqId(entry.edit.next_seq().0 - 1));
            }
            Ok(())
        })?;
        if later.is_some() {
            break;
        }
    }
    Ok(later.unwrap_or(last))
}

fn copy_up_to(vfs: &dyn Vfs, dir: &Path, number: u64, upto: SeqId) -> Result<SeqId> {
    let path = segment_path(dir, number);
    let bytes = read_file(vfs, &path)?;
    let header = SegmentHeader::decode(&bytes).map_err(|bad| bad.into_error(&path))?;
    // The entries that stay, with the sequence id of their frame and when it was written.
    let mut kept: Vec<(SeqId, Option<u64>, &[u8])> = Vec::new();
    let mut end = header.first_seq;
    let mut is_over = false;
    let walked = walk(&bytes, header, &path, &mut |at, frame, payload| {
        let Payload::Edits(edits) = payload else {
            return Ok(());
        };
        let mut reader = edits.entries;
        let mut bytes = 0;
        while !is_over && let Some(entry) = reader.next() {
            let next_seq = entry
                .map_err(|what| Error::corrupt(&path, at as u64, what))?
                .edit
                .next_seq();
            if next_seq.0 > upto.0.saturating_add(1) {
                is_over = true;
            } else {
                (bytes, end) = (reader.position(), next_seq);
            }
        }
        if bytes > 0 {
            kept.push((SeqId(frame.first_seq), edits.write_time_ms, &edits.bytes[..bytes]));
        }
        Ok(())
    })?;
    if let Some(what) = walked.broken
        && !is_over
    {
        return Err(Error::corrupt(&path, walked.end as u64, what));
    }
    let mut segment = SegmentWriter::create(
        vfs,
        new_path(dir, number),
        number,
        header.first_seq,
        &header.predecessor,
        walked.end as u64,
    )?;
    for (first_seq, write_time_ms, entries) in kept {
        let mut payload = Vec::with_capacity(EDITS_HEAD_BYTES + entries.len());
        match write_time_ms {
            Some(time_ms) => {
                payload.push(KIND_EDITS);
                payload.extend_from_slice(&time_ms.to_le_bytes());
            }
            None => payload.push(KIND_OLD_EDITS),
        }
        payload.extend_from_slice(entries);
        segment.write_frame(first_seq, &payload)?;
    }
    segment.seal(&segment.plan_seal(end))?;
    rename_copy(vfs, dir, number)?;
    Ok(SeqId(end.0.saturating_sub(1)))
}

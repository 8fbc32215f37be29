//! The state of a disk after a power cut.
//!
//! For the changes of names: none, all, a first part of them, or each by a coin; a rename is kept or lost as
//! a whole, and has no order against the bytes of any file. On ext4 the journal keeps their order, so never
//! each by a coin.
//!
//! For the bytes of each file, independently: none of the unsynced operations, all, a first part (the last of
//! it torn at a sector), or per sector of 512 bytes any of its states since the last sync, zeros, or (not on
//! ext4) noise; the file's size is then any of its sizes since the last sync, so there may be size without
//! data and data without size.
//!
//! Bytes that no unsynced operation touched are never harmed, also not in a sector that one
//! touched: on disks with a weaker guarantee (SQLite calls it powersafe overwrite) no data is safe.
//!
//! [`Harm`] says of a power cut which of this it did.

use std::sync::Arc;

use super::disk::{Disk, FileNode, FileOp, Node};
use super::{Mode, SplitMix64};

/// The unit that a disk writes as a whole.
pub(super) const SECTOR_BYTES: usize = 512;

/// Effects of a power cut on changes that were not durable, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Harm {
    /// Writes and changes of names of which nothing is left.
    pub lost: u64,
    /// Writes of which some sectors are there and others are not.
    pub torn: u64,
    /// Writes and changes of names that survived, at least in part, while an earlier one of the
    /// same file, or an earlier change of names, did not.
    pub reordered: u64,
    /// Files that have grown by a range whose bytes were not written.
    pub extended: u64,
}

impl Harm {
    fn note_names(&mut self, keep: &[bool]) {
        let first_lost = keep.iter().position(|kept| !kept).unwrap_or(keep.len());
        self.lost += keep.iter().filter(|kept| !**kept).count() as u64;
        self.reordered += keep[first_lost..].iter().filter(|kept| **kept).count() as u64;
    }

    fn note_file(&mut self, file: &FileNode, left: &[u8]) {
        let mut incomplete = false;
        let mut grown_empty = false;
        for op in &file.unsynced {
            let FileOp::Write { offset, bytes } = op else {
                continue;
            };
            let (mut there, mut missing) = (0, 0);
            let mut at = *offset;
            while at < offset + bytes.len() {
                let end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(offset + bytes.len());
                if left.get(at..end) == Some(&bytes[at - offset..end - offset]) {
                    there += 1;
                } else {
                    missing += 1;
                    grown_empty |= at >= file.durable.len() && end <= left.len();
                }
                at = end;
            }
            match (there, missing) {
                (0, _) => self.lost += 1,
                (_, 0) => {}
                _ => self.torn += 1,
            }
            self.reordered += u64::from(incomplete && there > 0);
            incomplete |= missing > 0;
        }
        self.extended += u64::from(grown_empty);
    }
}

/// The disk after a power cut, as the next process finds it. Everything on it is durable.
pub(super) fn after_power_cut(before: &Disk, mode: Mode, dice: &mut SplitMix64) -> (Disk, Harm) {
    let mut disk = before.clone();
    let mut harm = Harm::default();
    let keep = surviving_names(&disk, mode, dice);
    harm.note_names(&keep);
    disk.commit_names(&keep);
    disk.unsynced_names.clear();
    for node in disk.nodes.values_mut() {
        match node {
            Node::Dir(dir) => dir.seen = dir.durable.clone(),
            Node::File(file) => {
                if file.unsynced.is_empty() {
                    // Bytes lost by a failed sync are in `seen` only.
                    file.seen.clone_from(&file.durable);
                    continue;
                }
                let left = Arc::new(surviving_bytes(file, mode, dice));
                harm.note_file(file, &left);
                file.durable.clone_from(&left);
                file.seen = left;
                file.unsynced.clear();
            }
        }
    }
    (disk.without_handles(), harm)
}

fn surviving_names(disk: &Disk, mode: Mode, dice: &mut SplitMix64) -> Vec<bool> {
    let count = disk.unsynced_names.len();
    let ways = match mode {
        Mode::Strict => 4,
        Mode::Ext4 => 3,
    };
    let mut keep = match dice.below(ways) {
        0 => vec![false; count],
        1 => vec![true; count],
        2 => {
            let kept = dice.below(count as u64 + 1) as usize;
            (0..count).map(|index| index < kept).collect()
        }
        _ => (0..count).map(|_| dice.coin()).collect(),
    };
    disk.keep_what_they_need(&mut keep);
    keep
}

fn surviving_bytes(file: &FileNode, mode: Mode, dice: &mut SplitMix64) -> Vec<u8> {
    match dice.below(4) {
        0 => file.durable.to_vec(),
        1 => apply_all(file.durable.to_vec(), &file.unsynced),
        2 => first_part(file, dice),
        _ => sectors(file, mode, dice),
    }
}

fn apply_all(mut bytes: Vec<u8>, ops: &[FileOp]) -> Vec<u8> {
    for op in ops {
        op.apply(&mut bytes);
    }
    bytes
}

/// A first part of the operations, and of the write after it some first sectors.
fn first_part(file: &FileNode, dice: &mut SplitMix64) -> Vec<u8> {
    let whole = dice.below(file.unsynced.len() as u64 + 1) as usize;
    let mut bytes = apply_all(file.durable.to_vec(), &file.unsynced[..whole]);
    if let Some(FileOp::Write { offset, bytes: new }) = file.unsynced.get(whole) {
        let last = (offset + new.len()).div_ceil(SECTOR_BYTES);
        let first = offset / SECTOR_BYTES;
        let cut = (first + dice.below((last - first) as u64) as usize) * SECTOR_BYTES;
        if cut > *offset {
            FileOp::Write {
                offset: *offset,
                bytes: new[..cut - offset].into(),
            }
            .apply(&mut bytes);
        }
    }
    bytes
}

/// Each sector in one of its states.
fn sectors(file: &FileNode, mode: Mode, dice: &mut SplitMix64) -> Vec<u8> {
    let mut sizes = vec![file.durable.len()];
    for op in &file.unsynced {
        sizes.push(op.len_after(*sizes.last().expect("the durable size is there")));
    }
    let longest = *sizes.iter().max().expect("the durable size is there");
    let mut bytes = file.durable.to_vec();
    bytes.resize(longest, 0);
    for start in (0..longest).step_by(SECTOR_BYTES) {
        let end = (start + SECTOR_BYTES).min(longest);
        let touching: Vec<(usize, usize, Option<&[u8]>)> = file
            .unsynced
            .iter()
            .filter_map(|op| touch(op, start, end))
            .collect();
        if touching.is_empty() {
            continue;
        }
        match dice.below(8) {
            0 => {
                for (from, to, _) in &touching {
                    bytes[*from..*to].fill(0);
                }
            }
            1 if mode == Mode::Strict => {
                for (from, to, _) in &touching {
                    dice.fill(&mut bytes[*from..*to]);
                }
            }
            _ => {
                let done = dice.below(touching.len() as u64 + 1) as usize;
                for (from, to, new) in &touching[..done] {
                    match new {
                        Some(new) => bytes[*from..*to].copy_from_slice(new),
                        None => bytes[*from..*to].fill(0),
                    }
                }
            }
        }
    }
    bytes.truncate(sizes[dice.below(sizes.len() as u64) as usize]);
    bytes
}

/// The effect of an operation between `start` and `end`: the range it changes and the new bytes;
/// without bytes, zeros.
fn touch(op: &FileOp, start: usize, end: usize) -> Option<(usize, usize, Option<&[u8]>)> {
    match op {
        FileOp::Write { offset, bytes } => {
            let from = start.max(*offset);
            let to = end.min(offset + bytes.len());
            (from < to).then(|| (from, to, Some(&bytes[from - offset..to - offset])))
        }
        FileOp::SetLen(len) => {
            let from = start.max(*len);
            (from < end).then_some((from, end, None))
        }
        FileOp::Allocate(_) => None,
    }
}

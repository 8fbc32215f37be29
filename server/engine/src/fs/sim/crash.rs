//! What a power cut leaves of a disk.
//!
//! For the changes of names: none, all, a first part of them, or each by a coin; a rename is kept or lost as a whole, and
//! has no order against the bytes of any file. On ext4 the journal keeps their order, so never each by a coin.
//!
//! For the bytes of each file, independently: none of the unsynced operations, all, a first part (the last of it torn at a
//! sector), or per sector of 512 bytes any of its states since the last sync, zeros, or (not on ext4) noise; the file's size is
//! then any of its sizes since the last sync, so there may be size without data and data without size.
//!
//! Bytes that no unsynced operation touched are never harmed, also not in a sector that one touched: disks that promise
//! less (SQLite calls the promise powersafe overwrite) cannot keep anything.

use super::disk::{Disk, FileNode, FileOp, Node};
use super::{Mode, SplitMix64};

/// The unit that a disk writes as a whole.
pub(super) const SECTOR_BYTES: usize = 512;

/// The disk after a power cut, as the next process finds it. Everything on it is durable.
pub(super) fn after_power_cut(before: &Disk, mode: Mode, dice: &mut SplitMix64) -> Disk {
    let mut disk = before.clone();
    let keep = surviving_names(&disk, mode, dice);
    disk.commit_names(&keep);
    disk.unsynced_names.clear();
    for node in disk.nodes.values_mut() {
        match node {
            Node::Dir(dir) => dir.seen = dir.durable.clone(),
            Node::File(file) => {
                let left = surviving_bytes(file, mode, dice);
                file.durable.clone_from(&left);
                file.seen = left;
                file.unsynced.clear();
            }
        }
    }
    disk.without_handles()
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
    if file.unsynced.is_empty() {
        return file.durable.clone();
    }
    match dice.below(4) {
        0 => file.durable.clone(),
        1 => apply_all(file.durable.clone(), &file.unsynced),
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
    let mut bytes = apply_all(file.durable.clone(), &file.unsynced[..whole]);
    if let Some(FileOp::Write { offset, bytes: new }) = file.unsynced.get(whole) {
        let last = (offset + new.len()).div_ceil(SECTOR_BYTES);
        let first = offset / SECTOR_BYTES;
        let cut = (first + dice.below((last - first) as u64) as usize) * SECTOR_BYTES;
        if cut > *offset {
            FileOp::Write {
                offset: *offset,
                bytes: new[..cut - offset].to_vec(),
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
    let mut bytes = file.durable.clone();
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

/// What an operation does between `start` and `end`: the range it changes and the new bytes; without bytes, zeros.
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

//! Store files of the simulation: sets of keys, without values and timestamps.
//!
//! A simulated key stands for many ([`Sizes::scale`]). The newest version of a key is kept by every merge, so
//! which one it is does not matter: a file is the set of keys that have a version in it, and a merge is the
//! union of its inputs.

use std::ops::Range;
use std::rc::Rc;

/// Sizes of the simulated store, per simulated entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Simulated keys.
    pub(super) keys: u32,
    /// Simulated writes that fill a memstore.
    pub(super) flush_writes: u32,
    /// Keys that a simulated one stands for.
    pub(super) scale: u64,
    /// Bytes of keys and values of a real entry.
    pub(super) user_bytes: f64,
    /// Bytes of a real entry in a store file.
    pub(super) cell_bytes: f64,
    /// Bytes of a real entry in the log.
    pub(super) log_bytes: f64,
    /// The size of a memstore.
    pub(super) memstore_bytes: u64,
    /// The size of a log segment, allocated as a whole; 0: the log has what is in no file yet, to the byte.
    pub(super) segment_bytes: u64,
}

impl Sizes {
    /// Entries of a gigabyte each, so that every store is large enough for stripes.
    pub(super) const DEPTH: Sizes = Sizes {
        keys: 1,
        flush_writes: 1,
        scale: 1,
        user_bytes: 1.0,
        cell_bytes: 1e9,
        log_bytes: 1.0,
        memstore_bytes: 1,
        segment_bytes: 0,
    };

    /// Bytes that simulated entries take in store files.
    pub(super) fn stored(&self, entries: usize) -> u64 {
        (entries as f64 * self.scale as f64 * self.cell_bytes) as u64
    }

    /// Bytes of the log on disk after `writes` simulated writes, of which the last `unflushed` are in no file:
    /// segments from that of the first of these on, and the one that is allocated ahead.
    pub(super) fn log_on_disk(&self, writes: u64, unflushed: usize) -> f64 {
        let write_bytes = self.scale as f64 * self.log_bytes;
        let (end, needed) = (writes as f64 * write_bytes, unflushed as f64 * write_bytes);
        if self.segment_bytes == 0 {
            return needed;
        }
        let segment = |position: f64| (position / self.segment_bytes as f64).floor();
        (segment(end) - segment(end - needed) + 2.0) * self.segment_bytes as f64
    }

    /// Simulated entries that fit into a file of real bytes; at least one.
    pub(super) fn entries_of(&self, bytes: u64) -> usize {
        ((bytes as f64 / self.cell_bytes / self.scale as f64) as usize).max(1)
    }
}

/// A store file, or its part in one partition.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) id: u64,
    /// For policies with levels.
    pub(super) level: usize,
    /// Its keys, upwards.
    pub(super) keys: Rc<[u32]>,
    /// The keys that it may have: a scan within must read it.
    pub(super) range: Range<u32>,
    /// Parts of one file: its bytes are freed when all parts have been compacted.
    pub(super) whole: Option<u64>,
    /// Whether a running compaction reads it.
    pub(super) busy: bool,
}

/// A file that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewFile {
    pub(super) keys: Vec<u32>,
    pub(super) range: Range<u32>,
}

/// Cuts sorted keys where partitions of equal width end.
pub(super) fn cut(keys: &[u32], all: u32, partitions: u32) -> Vec<NewFile> {
    (0..partitions)
        .map(|at| {
            let edge = |at: u32| (u64::from(all) * u64::from(at) / u64::from(partitions)) as u32;
            let range = edge(at)..edge(at + 1);
            let place = |key| keys.partition_point(|other| *other < key);
            NewFile {
                keys: keys[place(range.start)..place(range.end)].to_vec(),
                range,
            }
        })
        .collect()
}

/// The union of the keys of files.
pub(super) fn union<'a>(files: impl Iterator<Item = &'a File>) -> Vec<u32> {
    let mut keys: Vec<u32> = files.flat_map(|file| file.keys.iter().copied()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Counts different keys without sorting them.
#[derive(Debug)]
pub(super) struct Distinct {
    seen: Vec<u32>,
    round: u32,
}

impl Distinct {
    pub(super) fn new(keys: u32) -> Distinct {
        Distinct {
            seen: vec![0; keys as usize],
            round: 0,
        }
    }

    /// Different keys in these files.
    pub(super) fn count<'a>(&mut self, files: impl Iterator<Item = &'a File>) -> usize {
        self.round += 1;
        let mut count = 0;
        for key in files.flat_map(|file| file.keys.iter()) {
            let seen = &mut self.seen[*key as usize];
            count += usize::from(*seen != self.round);
            *seen = self.round;
        }
        count
    }
}

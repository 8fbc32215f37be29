//! Reading ahead for a batch of gets: the blocks that its rows need come from the disk together.
//!
//! In rounds, since a file's bloom filter and index decide which of its data blocks is needed:
//!
//! 1. Look each row up in memory, and collect the next block that is missing in each file.
//! 2. Read these blocks in parallel into the cache.
//! 3. Repeat for the rows that had missing blocks, until none has.
//!
//! Then the caller runs the gets one after the other, as it would without: results, their order and
//! errors do not depend on the blocks read here.

use std::collections::HashSet;

use super::read::read_region;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::id::FileId;
use crate::metrics::add_disk_bytes;
use crate::op::ReadSpec;
use crate::region::missing_blocks;
use crate::schema::TableName;
use crate::store::BlockRead;
use crate::workers::Workers;

/// Maximum bytes of one round's blocks on disk. The gets must find them in the cache, so they are
/// also at most an eighth of it.
const ROUND_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of rows that are looked up together.
const ROWS_MAX: usize = 1024;

/// A bloom filter's chunk, index blocks of three levels, and a data block; and one more, since a
/// file may be replaced meanwhile.
const ROUNDS_MAX: usize = 6;

/// Reads ahead for a prefix of `gets` and returns its length.
pub(super) fn read_ahead<R: AsRef<[u8]>>(
    catalog: &Catalog,
    workers: &Workers,
    table: &TableName,
    gets: &[(R, ReadSpec)],
) -> usize {
    let cache_bytes = catalog.shared().options.block_cache_bytes;
    let bytes_max = (cache_bytes / 8).min(ROUND_BYTES_MAX);
    let mut covered = gets.len().min(ROWS_MAX);
    let mut waiting: Vec<usize> = (0..covered).collect();
    for _ in 0..ROUNDS_MAX {
        let mut round = Round::default();
        let mut still_waiting = Vec::new();
        for index in waiting {
            let (row, spec) = &gets[index];
            let found = round.add(catalog, table, row.as_ref(), spec);
            // An error is the get's own. The first get is covered in any case.
            if found.is_err() || round.bytes > bytes_max {
                covered = covered.min(index.max(1));
                break;
            }
            if found.is_ok_and(|missing| missing > 0) {
                still_waiting.push(index);
            }
        }
        add_disk_bytes(round.bytes);
        if round.reads.is_empty() || !workers.read_blocks(round.in_order()) {
            break;
        }
        waiting = still_waiting;
    }
    covered
}

/// The blocks to be read together, each once.
#[derive(Default)]
struct Round {
    reads: Vec<BlockRead>,
    known: HashSet<(FileId, u64)>,
    bytes: u64,
}

impl Round {
    /// Adds the missing blocks of a row and returns their number, those of earlier rows included.
    fn add(&mut self, catalog: &Catalog, table: &TableName, row: &[u8], spec: &ReadSpec) -> Result<usize> {
        let first = self.reads.len();
        read_region(catalog, table, row, spec, |_, version, read_view| {
            missing_blocks(version, spec, row, read_view, &mut self.reads)
        })?;
        let missing = self.reads.len() - first;
        for read in self.reads.split_off(first) {
            if self.known.insert(read.place()) {
                self.bytes += read.bytes() as u64;
                self.reads.push(read);
            }
        }
        Ok(missing)
    }

    /// The reads in the order of the disk.
    fn in_order(mut self) -> Vec<BlockRead> {
        self.reads.sort_unstable_by_key(BlockRead::place);
        self.reads
    }
}

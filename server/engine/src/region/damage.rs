//! A region that lacks a store file: refused, while everything else is served.
//!
//! A start opens every store file that the manifest names. A missing file, or one that does not
//! match the manifest, damages its regions and nothing else (`recovery`). For a damaged region:
//!
//! - reads, writes, compactions, splits, merges and snapshots are refused with
//!   [`Error::RegionDamaged`], which names the file and the remedy: a result without the file would
//!   bring back cells that the file's tombstones delete, and a compaction would make that
//!   permanent;
//! - rows that the log has for it are replayed and flushed as usual, which only adds files: the log
//!   can be shortened, and no acknowledged write is lost;
//! - the manifest keeps all its files, and the usable ones stay open. If the file is back at the
//!   next start, the region is whole.
//!
//! The region ends like any other when its table is truncated, dropped or restored from a snapshot,
//! and is whole again when the family with the file is dropped. The next start then moves the
//! remains of the file to `orphans/`.

use std::sync::Arc;

use super::{Region, RegionInfo, RegionVersion};
use crate::error::{Error, Result};
use crate::schema::Cut;
use crate::seeded;
use crate::store::DamagedFile;

impl RegionVersion {
    /// Store files of the region that cannot be used.
    pub fn damaged_files(&self) -> impl Iterator<Item = &Arc<DamagedFile>> {
        self.stores.iter().flat_map(|store| &store.damaged)
    }
}

impl Region {
    /// Refuses a region that lacks a store file.
    #[inline]
    pub(crate) fn check_undamaged(&self) -> Result<()> {
        if self.opened_damaged && !seeded::is_on("damaged-region-served") {
            return self.check_present_files();
        }
        Ok(())
    }

    /// Refuses a region that lacked a file when it was opened, unless the family with the file has
    /// been dropped since.
    #[cold]
    fn check_present_files(&self) -> Result<()> {
        match self.version().damaged_files().next() {
            None => Ok(()),
            Some(file) => Err(refusal(self.info(), file)),
        }
    }
}

/// The error for a region that lacks this file.
pub fn refusal(region: &RegionInfo, file: &DamagedFile) -> Error {
    Error::RegionDamaged {
        region: describe(region),
        file: file.path.clone(),
        what: file.what.clone(),
    }
}

/// A region with its table and rows, for messages.
pub(crate) fn describe(region: &RegionInfo) -> String {
    let end = |row: &[u8], none: &str| {
        if row.is_empty() {
            none.to_owned()
        } else {
            format!("'{}'", Cut(row))
        }
    };
    format!(
        "region {} of table {}, rows {} to {}",
        region.encoded_name,
        region.table,
        end(&region.start, "the first"),
        end(&region.end, "the last")
    )
}

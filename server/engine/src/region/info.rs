//! Names and figures of a region: plain values for locations, pages and metrics.

use std::fmt::Write as _;

use md5::{Digest, Md5};

use crate::cell::is_from;
use crate::hfile::FileSizes;
use crate::id::{RegionId, SeqId};
use crate::manifest::RegionMeta;
use crate::schema::TableName;

/// The encoded name of the region of `hbase:meta`, which HBase gave it before there were digests.
const META_ENCODED_NAME: &str = "1588230740";

/// A region, for locations and pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// Identity inside the engine.
    pub id: RegionId,
    /// Table of the region.
    pub table: TableName,
    /// First row; empty: from the beginning.
    pub start: Vec<u8>,
    /// One past the last row; empty: to the end.
    pub end: Vec<u8>,
    /// HBase's region id: creation time in milliseconds.
    pub created_ms: u64,
    /// HBase's encoded name: 32 hex digits, MD5 of `table,start,created_ms`. The region of `hbase:meta` has a
    /// short one.
    pub encoded_name: String,
}

impl RegionInfo {
    /// The info of a region that is in no manifest: without an id, but with its names.
    pub fn named(table: TableName, start: &[u8], end: &[u8], created_ms: u64) -> Self {
        Self::of_meta(&RegionMeta {
            id: RegionId(0),
            table,
            start: start.to_vec(),
            end: end.to_vec(),
            created_ms,
        })
    }

    /// The info of a region of the manifest.
    pub(crate) fn of_meta(meta: &RegionMeta) -> Self {
        let mut info = Self {
            id: meta.id,
            table: meta.table.clone(),
            start: meta.start.clone(),
            end: meta.end.clone(),
            created_ms: meta.created_ms,
            encoded_name: String::new(),
        };
        if info.table.is_meta() {
            META_ENCODED_NAME.clone_into(&mut info.encoded_name);
            return info;
        }
        for byte in Md5::digest(info.unencoded_name()) {
            // Writing to a string cannot fail.
            let _ = write!(info.encoded_name, "{byte:02x}");
        }
        info
    }

    /// HBase's region name: `table,start,created_ms.encoded.` as raw bytes; in `hbase:meta` without the
    /// encoded name.
    pub fn name(&self) -> Vec<u8> {
        let mut name = self.unencoded_name();
        if self.table.is_meta() {
            return name;
        }
        name.extend_from_slice(format!(".{}.", self.encoded_name).as_bytes());
        name
    }

    /// Whether `name` is [`Self::name`], which is not built for that.
    pub fn has_name(&self, name: &[u8]) -> bool {
        if self.table.is_meta() {
            return name == self.unencoded_name();
        }
        let named = || {
            let rest = name
                .strip_suffix(b".")?
                .strip_suffix(self.encoded_name.as_bytes())?;
            let rest = self.table.strip_from(rest.strip_suffix(b".")?)?;
            let created = rest
                .strip_prefix(b",")?
                .strip_prefix(&self.start[..])?
                .strip_prefix(b",")?;
            std::str::from_utf8(created).ok()?.parse::<u64>().ok()
        };
        named() == Some(self.created_ms)
    }

    /// `table,start,created_ms`: the input of the digest in the encoded name.
    fn unencoded_name(&self) -> Vec<u8> {
        let mut name = self.table.to_string().into_bytes();
        name.push(b',');
        name.extend_from_slice(&self.start);
        name.extend_from_slice(format!(",{}", self.created_ms).as_bytes());
        name
    }

    /// A number from 0 to below 1 derived from the name, different in each region.
    pub fn draw(&self) -> f64 {
        let digits = self.encoded_name.get(..8).unwrap_or_default();
        u32::from_str_radix(digits, 16).map_or(0.5, |drawn| f64::from(drawn) / (f64::from(u32::MAX) + 1.0))
    }

    /// Whether `row` lies in `[start, end)`.
    pub fn contains(&self, row: &[u8]) -> bool {
        is_from(row, &self.start) && (self.end.is_empty() || row < self.end.as_slice())
    }
}

/// Figures of a region, for metrics and pages.
#[derive(Clone, Debug)]
pub struct RegionStats {
    /// Names and boundaries of the region.
    pub region: RegionInfo,
    /// Rows read by gets and scans since start.
    pub reads: u64,
    /// Rows that scans passed over since start: left out by a filter, or without visible cells.
    pub filtered_reads: u64,
    /// Row mutations since start.
    pub writes: u64,
    /// Writes refused because a memstore limit was reached.
    pub blocked_writes: u64,
    /// Bytes its memstores hold, frozen ones included.
    pub memstore_bytes: u64,
    /// Store files of all families.
    pub store_files: u64,
    /// Bytes of the store files.
    pub store_file_bytes: u64,
    /// Sizes of the parts of the store files.
    pub file_sizes: FileSizes,
    /// Each family with the greatest sequence id in its store files, 0 without files.
    pub flushed: Vec<(Vec<u8>, SeqId)>,
    /// Store files that are missing or damaged, so that the region is refused; not counted in the
    /// figures above.
    pub damaged_files: u64,
    /// Flushes since start.
    pub flushes: u64,
    /// Compactions since start.
    pub compactions: u64,
    /// When the oldest of those store files was made that compactions of all files have written, in
    /// wall-clock milliseconds; 0 without such a file. HBase calls it the last major compaction.
    pub last_major_compaction_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a region as HBase prints it, with the MD5 computed by `md5sum`.
    #[test]
    fn names_are_hbases() {
        let info = RegionInfo::of_meta(&RegionMeta {
            id: RegionId(7),
            table: TableName::parse(b"ns:t").unwrap(),
            start: b"a,b".to_vec(),
            end: Vec::new(),
            created_ms: 1_700_000_000_000,
        });
        assert_eq!(
            String::from_utf8(info.name()).unwrap(),
            format!("ns:t,a,b,1700000000000.{}.", info.encoded_name)
        );
        assert_eq!(info.encoded_name, "f15285274297301d84667824460d28ad");
    }

    #[test]
    fn a_region_has_its_name_and_no_other() {
        for (table, start) in [("ns:t", "a,b"), ("t", ""), ("hbase:meta", "")] {
            let info = RegionInfo::of_meta(&RegionMeta {
                id: RegionId(7),
                table: TableName::parse(table.as_bytes()).unwrap(),
                start: start.as_bytes().to_vec(),
                end: Vec::new(),
                created_ms: 1_700_000_000_000,
            });
            let name = info.name();
            assert!(info.has_name(&name));
            for at in 0..name.len() {
                assert!(!info.has_name(&name[..at]));
                let mut other = name.clone();
                other[at] ^= 1;
                assert!(!info.has_name(&other), "{}", String::from_utf8_lossy(&other));
            }
        }
    }
}

//! Settings of the server that a table or family may have of its own, under the names of HBase's settings.
//!
//! As in HBase a family's configuration counts before the table's options, and these before the server's
//! setting. An unreadable value is none: a table created without checks may have one.

use super::TableDescriptor;

/// Settings of HBase that are whole numbers and count for a table that has them.
pub(super) const NUMBERS: [&str; 9] = [
    MULTIPLIER,
    BLOCKING_FILES,
    MAJOR_PERIOD_MS,
    MIN_FILES,
    MIN_FILES_OLD,
    MAX_FILES,
    MIN_BYTES,
    "hbase.server.keyvalue.maxsize",
    "hbase.increasing.policy.initial.size",
];

/// The multiplier of the flush size at which a region refuses writes.
pub const MULTIPLIER: &str = "hbase.hregion.memstore.block.multiplier";
/// Files of a store from which on flushes wait.
pub const BLOCKING_FILES: &str = "hbase.hstore.blockingStoreFiles";
/// Age in milliseconds from which a store is compacted into one file.
pub const MAJOR_PERIOD_MS: &str = "hbase.hregion.majorcompaction";
/// Fewest files of a minor compaction.
pub const MIN_FILES: &str = "hbase.hstore.compaction.min";
/// Older name of [`MIN_FILES`].
pub const MIN_FILES_OLD: &str = "hbase.hstore.compactionThreshold";
/// Most files of one compaction.
pub const MAX_FILES: &str = "hbase.hstore.compaction.max";
/// Files that are smaller than this are always eligible.
pub const MIN_BYTES: &str = "hbase.hstore.compaction.min.size";
/// Ratio of the exploring policy.
pub const RATIO: &str = "hbase.hstore.compaction.ratio";

impl TableDescriptor {
    /// The table's own multiplier of its flush size, at which a region refuses writes. Each write looks it
    /// up.
    pub fn block_multiplier(&self) -> Option<u64> {
        let raw = self.attributes.get(MULTIPLIER.as_bytes())?;
        let multiplier: u64 = std::str::from_utf8(raw).ok()?.trim().parse().ok()?;
        (multiplier > 0).then_some(multiplier)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FamilyDescriptor, TableName};
    use super::*;

    #[test]
    fn a_tables_own_multiplier_is_a_number_above_0() {
        let name = TableName::parse(b"t").unwrap();
        let mut table = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
        for (value, expected) in [("7", Some(7)), ("0", None), ("many", None)] {
            table.attributes.insert(MULTIPLIER.into(), value.into());
            assert_eq!(table.block_multiplier(), expected, "{value}");
        }
    }
}

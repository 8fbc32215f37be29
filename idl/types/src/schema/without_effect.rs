//! Options of tables and families that Basalt keeps and returns, and that change nothing there.
//!
//! `docs/compatibility.md` lists them; a test compares it with these lists. The shell warns of them, and the
//! server notes them in its log.

use super::{Attributes, TableDescriptor};

/// An option, and the value that asks for nothing; of an option without such a value, an empty text.
pub type Option = (&'static str, &'static str);

/// Options of a family.
pub const OF_FAMILY: [Option; 18] = [
    ("CACHE_DATA_ON_WRITE", "false"),
    ("CACHE_INDEX_ON_WRITE", "false"),
    ("CACHE_BLOOMS_ON_WRITE", "false"),
    ("EVICT_BLOCKS_ON_CLOSE", "false"),
    ("COMPRESS_TAGS", "true"),
    ("DFS_REPLICATION", "0"),
    ("PREFETCH_BLOCKS_ON_OPEN", "false"),
    ("INDEX_BLOCK_ENCODING", "NONE"),
    ("COMPRESSION_COMPACT", ""),
    ("COMPRESSION_COMPACT_MAJOR", ""),
    ("COMPRESSION_COMPACT_MINOR", ""),
    ("ENCRYPTION_KEY", ""),
    ("IN_MEMORY_COMPACTION", "NONE"),
    ("STORAGE_POLICY", ""),
    ("IS_MOB", "false"),
    ("MOB_THRESHOLD", ""),
    ("MOB_COMPACT_PARTITION_POLICY", ""),
    ("NEW_VERSION_BEHAVIOR", "false"),
];

/// Options of a table.
pub const OF_TABLE: [Option; 8] = [
    ("FLUSH_POLICY", ""),
    ("REGION_REPLICATION", "1"),
    ("REGION_MEMSTORE_REPLICATION", "true"),
    ("PRIORITY", "0"),
    ("OWNER", ""),
    ("ERASURE_CODING_POLICY", ""),
    ("RSGROUP", ""),
    ("IS_META", "false"),
];

/// Settings of HBase that count there for a table or family that has them among its options.
pub const SETTINGS: [&str; 52] = [
    "hbase.busy.wait.duration",
    "hbase.busy.wait.multiplier.max",
    "hbase.hregion.compacting.memstore.type",
    "hbase.hregion.compacting.pipeline.segments.limit",
    "hbase.hregion.keyvalue.timestamp.slop.millisecs",
    "hbase.hregion.majorcompaction.jitter",
    "hbase.hregion.memstore.chunkpool.maxsize",
    "hbase.hregion.memstore.mslab.enabled",
    "hbase.hregion.percolumnfamilyflush.size.lower.bound",
    "hbase.hregion.percolumnfamilyflush.size.lower.bound.min",
    "hbase.hregion.scan.loadColumnFamiliesOnDemand",
    "hbase.hstore.blockingWaitTime",
    "hbase.hstore.bytes.per.checksum",
    "hbase.hstore.checksum.algorithm",
    "hbase.hstore.close.check.interval",
    "hbase.hstore.compaction.date.tiered.base.window.millis",
    "hbase.hstore.compaction.date.tiered.incoming.window.min",
    "hbase.hstore.compaction.date.tiered.max.storefile.age.millis",
    "hbase.hstore.compaction.date.tiered.windows.per.tier",
    "hbase.hstore.compaction.kv.max",
    "hbase.hstore.compaction.max.size",
    "hbase.hstore.compaction.max.size.offpeak",
    "hbase.hstore.compaction.ratio.offpeak",
    "hbase.hstore.defaultengine.compactor.class",
    "hbase.hstore.defaultengine.storeflusher.class",
    "hbase.hstore.min.locality.to.skip.major.compact",
    "hbase.hstore.open.and.close.threads.max",
    "hbase.hstore.time.to.purge.deletes",
    "hbase.memstore.inmemoryflush.threshold.factor",
    "hbase.normalizer.merge.enabled",
    "hbase.normalizer.merge.merge_request_max_number_of_regions",
    "hbase.normalizer.split.enabled",
    "hbase.offpeak.end.hour",
    "hbase.offpeak.start.hour",
    "hbase.region.store.parallel.put.limit",
    "hbase.region.store.parallel.put.limit.min.column.count",
    "hbase.regionserver.flush.per.changes",
    "hbase.regionserver.minibatch.size",
    "hbase.regionserver.optionalcacheflushinterval",
    "hbase.regionserver.thread.compaction.throttle",
    "hbase.rowlock.wait.duration",
    "hbase.rs.cachecompactedblocksonwrite",
    "hbase.store.file-tracker.migration.dst.impl",
    "hbase.store.file-tracker.migration.src.impl",
    "hbase.store.stripe.compaction.flushToL0",
    "hbase.store.stripe.compaction.minFiles",
    "hbase.store.stripe.compaction.minFilesL0",
    "hbase.store.stripe.fixed.count",
    "hbase.store.stripe.initialStripeCount",
    "hbase.store.stripe.sizeToSplit",
    "hbase.store.stripe.splitPartCount",
    "hbase.table.max.rowsize",
];

impl TableDescriptor {
    /// The options that the table and its families have without effect, as `NAME => value`, those of a family
    /// behind its name.
    pub fn without_effect(&self) -> Vec<String> {
        let mut found = idle(&self.attributes, &OF_TABLE, "");
        for family in &self.families {
            let of = format!("{}: ", super::Escaped(&family.name));
            found.extend(idle(&family.attributes, &OF_FAMILY, &of));
            found.extend(idle(&family.configuration, &[], &of));
        }
        found
    }
}

/// Those of these options, and of the settings, that ask for something.
fn idle(attributes: &Attributes, options: &[Option], prefix: &str) -> Vec<String> {
    let asks = |name: &str, value: &str| {
        let of = options.iter().find(|(option, _)| *option == name);
        of.map_or(SETTINGS.contains(&name), |(_, nothing)| {
            !value.eq_ignore_ascii_case(nothing)
        })
    };
    let texts = attributes
        .iter()
        .map(|(name, value)| (String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
    let asking = texts.filter(|(name, value)| asks(name, value));
    asking
        .map(|(name, value)| format!("{prefix}{name} => {}", super::Cut(value.as_bytes())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{FamilyDescriptor, TableName};
    use super::*;

    #[test]
    fn options_that_ask_for_something_are_named() {
        let mut table =
            TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![FamilyDescriptor::new(b"f")]);
        let set = |attributes: &mut Attributes, name: &str, value: &str| {
            attributes.insert(name.into(), value.into());
        };
        set(&mut table.attributes, "REGION_REPLICATION", "1");
        set(&mut table.attributes, "MAX_FILESIZE", "7");
        set(&mut table.families[0].attributes, "IS_MOB", "FALSE");
        assert_eq!(table.without_effect(), Vec::<String>::new());
        set(&mut table.attributes, "REGION_REPLICATION", "2");
        set(&mut table.attributes, "hbase.table.max.rowsize", "9");
        set(&mut table.families[0].attributes, "IS_MOB", "true");
        set(
            &mut table.families[0].configuration,
            "hbase.offpeak.end.hour",
            "3",
        );
        assert_eq!(
            table.without_effect(),
            [
                "REGION_REPLICATION => 2",
                "hbase.table.max.rowsize => 9",
                "f: IS_MOB => true",
                "f: hbase.offpeak.end.hour => 3",
            ]
        );
    }

    #[test]
    fn settings_are_listed_once_in_order() {
        assert!(SETTINGS.is_sorted_by(|one, next| one < next));
    }
}

//! Checks of options whose values HBase's master tests before it stores them (`TableDescriptorChecker`), and
//! of values that could not be read when they are needed.
//!
//! The texts are HBase's where it has one. [`TableDescriptor::check`] calls both functions; the first
//! one also with `hbase.table.sanity.checks` = false, as in HBase.

use super::store_options::{self, BLOCKING_FILES};
use super::table::{MAX_FILESIZE, MEMSTORE_FLUSHSIZE, check_sizes};
use super::{
    Durability, Escaped, FOREVER_SECONDS, FamilyDescriptor, KEY_LAYOUT, KeyLayout, SplitOptions,
    TableDescriptor, check_family_name, insane, parse_attribute,
};
use crate::error::{Error, Result};

/// The policy of HBase that removes expired files only, and its demands on a family.
const FIFO: &[u8] = b"org.apache.hadoop.hbase.regionserver.compactions.FIFOCompactionPolicy";
const COMPACTION_POLICY: &[u8] = b"hbase.hstore.defaultengine.compactionpolicy.class";
const BLOCKING_FILES_DEFAULT: i32 = 16;
const BLOCKING_FILES_OF_FIFO: i32 = 1000;

/// Values of IN_MEMORY_COMPACTION (HBase: `MemoryCompactionPolicy`).
const MEMORY_COMPACTIONS: [&str; 4] = ["NONE", "BASIC", "EAGER", "ADAPTIVE"];

/// Options of a table that are whole numbers.
const NUMBERS: [&str; 4] = [
    "PRIORITY",
    "NORMALIZER_TARGET_REGION_COUNT",
    "NORMALIZER_TARGET_REGION_SIZE",
    "NORMALIZER_TARGET_REGION_SIZE_MB",
];

impl TableDescriptor {
    /// HBase's sanity checks (`TableDescriptorChecker`). `hbase.table.sanity.checks=false` in the table's
    /// options skips them, but not the checks of names and of a table without families, which nothing could
    /// serve, nor the `limits`.
    pub fn check(&self) -> Result<()> {
        check_sizes(self)?;
        if self.families.is_empty() {
            return Err(insane("Table should have at least one column family."));
        }
        for pair in self.families.windows(2) {
            if pair[0].name == pair[1].name {
                return Err(Error::InvalidArgument(format!(
                    "Family '{}' already exists so cannot be added",
                    Escaped(&pair[0].name)
                )));
            }
        }
        let checked = self.is_checked();
        for family in &self.families {
            check_family_name(&family.name)?;
            if checked {
                family.check()?;
            }
        }
        if checked {
            self.check_floor(
                &MAX_FILESIZE,
                2 << 20,
                "over splitting into unmanageable number of regions",
            )?;
            self.check_floor(&MEMSTORE_FLUSHSIZE, 1 << 20, "very frequent flushing")?;
            SplitOptions::of(&self.name, &self.attributes)?;
            check(self)?;
        }
        check_always(self)
    }
}

/// Checks that no option of the table turns off.
fn check_always(table: &TableDescriptor) -> Result<()> {
    for family in &table.families {
        check_scope(family)?;
        check_fifo(table, family)?;
    }
    check_key_layout(table)
}

fn check_key_layout(table: &TableDescriptor) -> Result<()> {
    let Some(layout) = table.attributes.get(KEY_LAYOUT.as_bytes()) else {
        return Ok(());
    };
    let parsed = std::str::from_utf8(layout)
        .map_err(|_| "it is not text in UTF-8".to_owned())
        .and_then(KeyLayout::parse);
    match parsed {
        Ok(_) => Ok(()),
        Err(why) => Err(Error::InvalidArgument(format!(
            "{KEY_LAYOUT} of table {} is wrong: {why}. It is like salt:1, user:8, reversed_time:8",
            table.name
        ))),
    }
}

/// Checks that `hbase.table.sanity.checks` = false skips.
fn check(table: &TableDescriptor) -> Result<()> {
    for option in NUMBERS {
        parse_attribute(&table.attributes, option, 0_i64)?;
    }
    let configurations = table.families.iter().map(|family| &family.configuration);
    for options in configurations.chain([&table.attributes]) {
        for setting in store_options::NUMBERS {
            parse_attribute(options, setting, 0_i64)?;
        }
        parse_attribute(options, store_options::RATIO, 0.0_f64)?;
    }
    if parse_attribute(&table.attributes, "REGION_REPLICATION", 1_i32)? < 1 {
        return Err(insane("Table region replication should be at least one."));
    }
    check_durability(table)?;
    table.check_priorities()?;
    table.families.iter().try_for_each(check_family)
}

fn check_durability(table: &TableDescriptor) -> Result<()> {
    let Some(raw) = table.attributes.get(b"DURABILITY".as_slice()) else {
        return Ok(());
    };
    let known = std::str::from_utf8(raw).ok().and_then(Durability::from_name);
    known.map(drop).ok_or_else(|| {
        insane(format!(
            "DURABILITY of table {} has the unknown value {}; known are USE_DEFAULT, SKIP_WAL, ASYNC_WAL, SYNC_WAL, FSYNC_WAL.",
            table.name,
            Escaped(raw)
        ))
    })
}

fn check_family(family: &FamilyDescriptor) -> Result<()> {
    let name = Escaped(&family.name);
    if parse_attribute(&family.attributes, "DFS_REPLICATION", 0_i32)? < 0 {
        return Err(insane(format!(
            "HFile Replication for column family {name}  must be greater than zero."
        )));
    }
    let policy = family.attributes.get(b"IN_MEMORY_COMPACTION".as_slice());
    let is_known = |raw: &[u8]| {
        let mut known = MEMORY_COMPACTIONS.iter();
        known.any(|policy| policy.as_bytes().eq_ignore_ascii_case(raw))
    };
    if let Some(raw) = policy.filter(|raw| !is_known(raw)) {
        return Err(insane(format!(
            "No enum constant org.apache.hadoop.hbase.MemoryCompactionPolicy.{}",
            Escaped(raw)
        )));
    }
    match family.attributes.get(b"ENCRYPTION".as_slice()) {
        Some(cipher) if !cipher.is_empty() => Err(insane(format!(
            "Cipher {} failed test: encryption is disabled on the cluster",
            Escaped(cipher)
        ))),
        _ => Ok(()),
    }
}

fn check_scope(family: &FamilyDescriptor) -> Result<()> {
    let scope = parse_attribute(&family.attributes, "REPLICATION_SCOPE", 0_i32)?;
    if (0..=1).contains(&scope) {
        return Ok(());
    }
    Err(Error::DoNotRetry(format!(
        "Replication scope for column family {} is {scope} which is invalid.",
        Escaped(&family.name)
    )))
}

fn check_fifo(table: &TableDescriptor, family: &FamilyDescriptor) -> Result<()> {
    let own = family.configuration.get(COMPACTION_POLICY);
    let policy = own.or_else(|| table.attributes.get(COMPACTION_POLICY));
    if policy.is_none_or(|policy| policy != FIFO) {
        return Ok(());
    }
    if family.ttl_seconds == FOREVER_SECONDS {
        return Err(insane("Default TTL is not supported for FIFO compaction"));
    }
    if family.min_versions > 0 {
        return Err(insane("MIN_VERSION > 0 is not supported for FIFO compaction"));
    }
    let of_table = parse_attribute(&table.attributes, BLOCKING_FILES, BLOCKING_FILES_DEFAULT)?;
    let files = parse_attribute(&family.configuration, BLOCKING_FILES, of_table)?;
    if files < BLOCKING_FILES_OF_FIFO {
        return Err(insane(format!(
            "Blocking file count '{BLOCKING_FILES}' {files} is below recommended minimum of {BLOCKING_FILES_OF_FIFO} for \
             column family {}",
            Escaped(&family.name)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::TableName;
    use super::*;

    const BYPASS: &str = " Set hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass sanity checks";

    fn table(of_table: &[(&str, &str)], of_family: &[(&str, &str)]) -> TableDescriptor {
        let pairs = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect()
        };
        let family = FamilyDescriptor::from_attributes(b"f", pairs(of_family)).unwrap();
        let mut table = TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![family]);
        table.attributes = pairs(of_table);
        table
    }

    fn refusal(table: &TableDescriptor) -> String {
        table.check().unwrap_err().to_string()
    }

    #[test]
    fn a_scope_is_local_or_global_whatever_the_checks() {
        for scope in ["0", "1"] {
            table(&[], &[("REPLICATION_SCOPE", scope)]).check().unwrap();
        }
        for scope in ["-1", "2"] {
            for options in [&[][..], &[("hbase.table.sanity.checks", "false")]] {
                assert_eq!(
                    refusal(&table(options, &[("REPLICATION_SCOPE", scope)])),
                    format!("Replication scope for column family f is {scope} which is invalid.")
                );
            }
        }
        assert!(
            refusal(&table(&[], &[("REPLICATION_SCOPE", "near")])).contains("unreadable value near"),
            "not a number"
        );
    }

    #[test]
    fn values_without_sense_are_refused_in_hbases_words() {
        for (of_table, of_family, text) in [
            (
                Some(("REGION_REPLICATION", "0")),
                None,
                "Table region replication should be at least one.",
            ),
            (
                Some(("REGION_REPLICATION", "-3")),
                None,
                "Table region replication should be at least one.",
            ),
            (
                Some(("DURABILITY", "sync_wal")),
                None,
                "DURABILITY of table t has the unknown value sync_wal; known are USE_DEFAULT, SKIP_WAL, ASYNC_WAL, SYNC_WAL, \
                 FSYNC_WAL.",
            ),
            (
                None,
                Some(("DFS_REPLICATION", "-1")),
                "HFile Replication for column family f  must be greater than zero.",
            ),
            (
                None,
                Some(("IN_MEMORY_COMPACTION", "SOME")),
                "No enum constant org.apache.hadoop.hbase.MemoryCompactionPolicy.SOME",
            ),
            (
                None,
                Some(("ENCRYPTION", "AES")),
                "Cipher AES failed test: encryption is disabled on the cluster",
            ),
        ] {
            let mut table = table(of_table.as_slice(), of_family.as_slice());
            assert_eq!(refusal(&table), format!("{text}{BYPASS}"));
            let bypass = (b"hbase.table.sanity.checks".to_vec(), b"false".to_vec());
            table.attributes.extend([bypass]);
            table.check().unwrap();
        }
    }

    #[test]
    fn numbers_are_numbers() {
        for option in NUMBERS.into_iter().chain(store_options::NUMBERS) {
            let text = refusal(&table(&[(option, "many")], &[]));
            assert_eq!(text, format!("{option} has the unreadable value many"));
            table(&[(option, "7")], &[]).check().unwrap();
        }
        let text = refusal(&table(&[("REGION_REPLICATION", "two")], &[]));
        assert_eq!(text, "REGION_REPLICATION has the unreadable value two");
    }

    #[test]
    fn fifo_compaction_has_demands() {
        let policy = (
            "hbase.hstore.defaultengine.compactionpolicy.class",
            std::str::from_utf8(FIFO).unwrap(),
        );
        let files = (BLOCKING_FILES, "1000");
        let ttl = ("TTL", "60");
        table(&[policy, files], &[ttl]).check().unwrap();
        let text = refusal(&table(&[policy, files], &[]));
        assert!(text.starts_with("Default TTL is not supported"), "{text}");
        let text = refusal(&table(
            &[policy, files],
            &[ttl, ("MIN_VERSIONS", "1"), ("VERSIONS", "2")],
        ));
        assert!(text.starts_with("MIN_VERSION > 0 is not supported"), "{text}");
        let text = refusal(&table(&[policy], &[ttl]));
        assert!(
            text.starts_with("Blocking file count 'hbase.hstore.blockingStoreFiles' 16 is below"),
            "{text}"
        );
    }
}

//! Tables: families and table-wide options.

use super::limits::{Brief, DESCRIPTOR, FAMILIES, FAMILY_NAME, bytes_of, check_options};
use super::{
    Attributes, FamilyDescriptor, SplitOptions, TableName, family::parse_bool, insane, parse_attribute,
};
use crate::cell::is_equal;
use crate::error::Result;

/// Durability of a write (HBase: `Durability`; the codes are Thrift's `TDurability`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The table's setting, and without one `SyncWal`.
    #[default]
    UseDefault,
    /// Not in the WAL: lost in a crash before the next flush.
    SkipWal,
    /// In the WAL, synced in the background.
    AsyncWal,
    /// In the WAL and as durable as `wal.sync` says before the answer.
    SyncWal,
    /// In the WAL and on disk before the answer.
    FsyncWal,
}

impl Durability {
    /// HBase's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UseDefault => "USE_DEFAULT",
            Self::SkipWal => "SKIP_WAL",
            Self::AsyncWal => "ASYNC_WAL",
            Self::SyncWal => "SYNC_WAL",
            Self::FsyncWal => "FSYNC_WAL",
        }
    }

    /// From HBase's spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::UseDefault,
            Self::SkipWal,
            Self::AsyncWal,
            Self::SyncWal,
            Self::FsyncWal,
        ]
        .into_iter()
        .find(|value| value.as_str() == name)
    }
}

/// Whether a table takes data calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// It does.
    Enabled,
    /// It does not.
    Disabled,
}

impl TableState {
    /// HBase's spelling.
    #[inline]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "ENABLED",
            Self::Disabled => "DISABLED",
        }
    }
}

/// A table as the client described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescriptor {
    /// Name of the table.
    pub name: TableName,
    /// Families of the table, ordered by name.
    pub families: Vec<FamilyDescriptor>,
    /// Every table-wide option that was set, raw (`MAX_FILESIZE` => `1073741824`).
    pub attributes: Attributes,
}

impl TableDescriptor {
    /// A table with these families and default options. The families are sorted by name.
    pub fn new(name: TableName, mut families: Vec<FamilyDescriptor>) -> Self {
        families.sort_by(|left, right| left.name.cmp(&right.name));
        Self {
            name,
            families,
            attributes: Attributes::new(),
        }
    }

    /// The family of that name and its position.
    pub fn family(&self, name: &[u8]) -> Option<(usize, &FamilyDescriptor)> {
        let index = match &self.families[..] {
            [only] if is_equal(&only.name, name) => 0,
            families => families
                .binary_search_by(|family| family.name.as_slice().cmp(name))
                .ok()?,
        };
        Some((index, &self.families[index]))
    }

    /// MAX_FILESIZE: a region with a larger store splits. `None`: the server's setting.
    #[inline]
    pub fn max_file_bytes(&self) -> Option<u64> {
        self.optional_bytes(&MAX_FILESIZE)
    }

    /// MEMSTORE_FLUSHSIZE. `None`: the server's setting.
    #[inline]
    pub fn memstore_flush_bytes(&self) -> Option<u64> {
        self.optional_bytes(&MEMSTORE_FLUSHSIZE)
    }

    /// READONLY: writes are refused.
    #[inline]
    pub fn read_only(&self) -> bool {
        parse_bool(&self.attributes, "READONLY", false)
    }

    /// REGION_REPLICATION: number of copies of each region, its own included.
    pub fn region_replication(&self) -> i32 {
        parse_attribute(&self.attributes, "REGION_REPLICATION", 1_i32).unwrap_or(1)
    }

    /// DURABILITY.
    #[inline]
    pub fn durability(&self) -> Durability {
        self.attributes
            .get(b"DURABILITY".as_slice())
            .and_then(|raw| Durability::from_name(std::str::from_utf8(raw).ok()?))
            .unwrap_or_default()
    }

    /// COMPACTION_ENABLED.
    #[inline]
    pub fn compaction_enabled(&self) -> bool {
        parse_bool(&self.attributes, "COMPACTION_ENABLED", true)
    }

    /// SPLIT_ENABLED.
    #[inline]
    pub fn split_enabled(&self) -> bool {
        parse_bool(&self.attributes, "SPLIT_ENABLED", true)
    }

    /// MERGE_ENABLED.
    #[inline]
    pub fn merge_enabled(&self) -> bool {
        parse_bool(&self.attributes, "MERGE_ENABLED", true)
    }

    /// When and where regions split. An unreadable option has its default: a table created without
    /// checks may have one.
    #[inline]
    pub fn split_options(&self) -> SplitOptions {
        SplitOptions::of(&self.name, &self.attributes).unwrap_or_default()
    }

    /// Whether a family's REPLICATION_SCOPE is global.
    #[inline]
    pub fn has_global_scope(&self) -> bool {
        let mut scopes = self
            .families
            .iter()
            .filter_map(|family| family.attributes.get(b"REPLICATION_SCOPE".as_slice()));
        scopes.any(|scope| scope == b"1")
    }

    /// Whether the table wants HBase's sanity checks.
    #[inline]
    pub fn is_checked(&self) -> bool {
        parse_bool(&self.attributes, "hbase.table.sanity.checks", true)
    }

    pub(super) fn check_floor(&self, size: &Size, least: i64, danger: &str) -> Result<()> {
        let is_set = |option: &&str| self.attributes.contains_key(option.as_bytes());
        let Some(option) = [size.option, size.setting].into_iter().find(is_set) else {
            return Ok(());
        };
        let value = parse_attribute(&self.attributes, option, least)?;
        if value < least {
            return Err(insane(format!(
                "{} for table descriptor or \"{}\" ({value}) is too small, which might cause {danger}.",
                size.option, size.setting
            )));
        }
        Ok(())
    }

    fn optional_bytes(&self, size: &Size) -> Option<u64> {
        [size.option, size.setting].into_iter().find_map(|option| {
            let value = parse_attribute(&self.attributes, option, -1_i64).unwrap_or(-1);
            u64::try_from(value).ok().filter(|bytes| *bytes > 0)
        })
    }
}

/// A size among a table's options: its own name, and that of the server's setting, which counts when the
/// first is not there.
pub(super) struct Size {
    option: &'static str,
    setting: &'static str,
}

pub(super) const MAX_FILESIZE: Size = Size {
    option: "MAX_FILESIZE",
    setting: "hbase.hregion.max.filesize",
};

pub(super) const MEMSTORE_FLUSHSIZE: Size = Size {
    option: "MEMSTORE_FLUSHSIZE",
    setting: "hbase.hregion.memstore.flush.size",
};

/// The name of the class that keeps a store's files (HBase: `StoreEngine.STORE_ENGINE_CLASS_KEY`).
const STORE_ENGINE: &[u8] = b"hbase.hstore.engine.class";

impl TableDescriptor {
    /// Whether stores of a family are cut into stripes, as HBase's class of the family or else of
    /// the table says; `None` if neither names one. Stores of classes other than
    /// `StripeStoreEngine` are not.
    #[inline]
    pub fn stripes(&self, family: &FamilyDescriptor) -> Option<bool> {
        let named = family
            .configuration
            .get(STORE_ENGINE)
            .or_else(|| self.attributes.get(STORE_ENGINE));
        named.map(|class| class.ends_with(b"StripeStoreEngine"))
    }
}

/// The name of the class that picks the files of a compaction (HBase:
/// `DefaultStoreEngine.DEFAULT_COMPACTION_POLICY_CLASS_KEY`).
const COMPACTION_POLICY: &[u8] = b"hbase.hstore.defaultengine.compactionpolicy.class";

impl TableDescriptor {
    /// Whether files of the family are merged for their overwritten versions. Not if the family or the table
    /// names one of HBase's policies, or a store engine without stripes: these are HBase's own.
    #[inline]
    pub fn merges_overwritten(&self, family: &FamilyDescriptor) -> bool {
        let names_policy = [&family.configuration, &self.attributes]
            .iter()
            .any(|options| options.contains_key(COMPACTION_POLICY));
        !names_policy && self.stripes(family).unwrap_or(true)
    }
}

/// Checks the sizes in a table's descriptor.
pub(super) fn check_sizes(table: &TableDescriptor) -> Result<()> {
    let of_table = format_args!("table {}", table.name);
    FAMILIES.check(table.families.len(), of_table)?;
    check_options(&table.attributes, of_table)?;
    let mut bytes = bytes_of(&table.attributes);
    for family in &table.families {
        let of_family = format_args!("family {}", Brief(&family.name));
        FAMILY_NAME.check(family.name.len(), of_family)?;
        for options in [&family.attributes, &family.configuration] {
            check_options(options, of_family)?;
            bytes += bytes_of(options);
        }
        bytes += family.name.len();
    }
    DESCRIPTOR.check(bytes, format_args!("the descriptor of table {}", table.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanity_checks_are_hbases() {
        let name = TableName::parse(b"t").unwrap();
        assert!(TableDescriptor::new(name.clone(), vec![]).check().is_err());
        let family = FamilyDescriptor::new(b"f");
        assert!(
            TableDescriptor::new(name.clone(), vec![family.clone(), family.clone()])
                .check()
                .is_err()
        );
        let mut table = TableDescriptor::new(name, vec![family]);
        assert!(table.check().is_ok());
        table
            .attributes
            .insert(b"MAX_FILESIZE".to_vec(), b"1048576".to_vec());
        assert!(table.check().is_err());
        table
            .attributes
            .insert(b"hbase.table.sanity.checks".to_vec(), b"false".to_vec());
        assert!(table.check().is_ok());
        assert_eq!(table.max_file_bytes(), Some(1 << 20));
    }

    /// The family's class of the store's engine counts before the table's.
    #[test]
    fn the_store_engine_says_whether_there_are_stripes() {
        let mut family = FamilyDescriptor::new(b"f");
        let mut table = TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![family.clone()]);
        assert_eq!(table.stripes(&family), None);
        assert!(table.merges_overwritten(&family));
        let mut exploring = family.clone();
        exploring
            .configuration
            .insert(COMPACTION_POLICY.to_vec(), b"ExploringCompactionPolicy".to_vec());
        assert!(!table.merges_overwritten(&exploring));
        let class = |name: &str| format!("org.apache.hadoop.hbase.regionserver.{name}").into_bytes();
        for (name, expected) in [
            ("StripeStoreEngine", true),
            ("DefaultStoreEngine", false),
            ("DateTieredStoreEngine", false),
        ] {
            table.attributes.insert(STORE_ENGINE.to_vec(), class(name));
            assert_eq!(table.stripes(&family), Some(expected), "{name}");
        }
        family
            .configuration
            .insert(STORE_ENGINE.to_vec(), class("StripeStoreEngine"));
        assert_eq!(table.stripes(&family), Some(true));
    }

    /// A size under the name of HBase's setting counts for the table, after the table's own.
    #[test]
    fn settings_hold_for_the_table() {
        let mut table =
            TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![FamilyDescriptor::new(b"f")]);
        let mut set = |name: &str, value: &str| {
            table.attributes.insert(name.into(), value.into());
            (table.max_file_bytes(), table.check())
        };
        assert_eq!(set("hbase.hregion.max.filesize", "7000000").0, Some(7_000_000));
        assert_eq!(set("MAX_FILESIZE", "8000000").0, Some(8_000_000));
        let (_, refused) = set("MAX_FILESIZE", "1000");
        assert_eq!(
            refused.unwrap_err().to_string(),
            "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" (1000) is too small, which might cause over \
             splitting into unmanageable number of regions. Set hbase.table.sanity.checks to false at conf or table descriptor \
             if you want to bypass sanity checks"
        );
        set("MAX_FILESIZE", "8000000").1.unwrap();
        set("hbase.hregion.memstore.flush.size", "7").1.unwrap_err();
    }
}

//! Tables: families and table-wide options.

use super::{Attributes, FamilyDescriptor, TableName, family::parse_bool, parse_attribute};
use crate::error::{Error, Result};

/// How hard a write tries to survive a crash (HBase: `Durability`; the codes are Thrift's `TDurability`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Its name.
    pub name: TableName,
    /// Its families, ordered by name.
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
        let index = self
            .families
            .binary_search_by(|family| family.name.as_slice().cmp(name))
            .ok()?;
        Some((index, &self.families[index]))
    }

    /// MAX_FILESIZE: a region with a larger store splits. `None`: the server's setting.
    pub fn max_file_bytes(&self) -> Option<u64> {
        self.optional_bytes("MAX_FILESIZE")
    }

    /// MEMSTORE_FLUSHSIZE. `None`: the server's setting.
    pub fn memstore_flush_bytes(&self) -> Option<u64> {
        self.optional_bytes("MEMSTORE_FLUSHSIZE")
    }

    /// READONLY: writes are refused.
    pub fn read_only(&self) -> bool {
        parse_bool(&self.attributes, "READONLY", false)
    }

    /// DURABILITY.
    pub fn durability(&self) -> Durability {
        self.attributes
            .get(b"DURABILITY".as_slice())
            .and_then(|raw| Durability::from_name(std::str::from_utf8(raw).ok()?))
            .unwrap_or_default()
    }

    /// COMPACTION_ENABLED.
    pub fn compaction_enabled(&self) -> bool {
        parse_bool(&self.attributes, "COMPACTION_ENABLED", true)
    }

    /// SPLIT_ENABLED.
    pub fn split_enabled(&self) -> bool {
        parse_bool(&self.attributes, "SPLIT_ENABLED", true)
    }

    /// Whether a family's REPLICATION_SCOPE is global.
    pub fn has_global_scope(&self) -> bool {
        let mut scopes = self
            .families
            .iter()
            .filter_map(|family| family.attributes.get(b"REPLICATION_SCOPE".as_slice()));
        scopes.any(|scope| scope == b"1")
    }

    /// HBase's sanity checks (`TableDescriptorChecker`). `hbase.table.sanity.checks=false` in the table's options skips them,
    /// but not the checks of names and of a table without families, which nothing could serve.
    pub fn check(&self) -> Result<()> {
        if self.families.is_empty() {
            return Err(Error::DoNotRetry(
                "Table should have at least one column family. Set hbase.table.sanity.checks to false at conf or table \
                 descriptor if you want to bypass sanity checks"
                    .into(),
            ));
        }
        for pair in self.families.windows(2) {
            if pair[0].name == pair[1].name {
                return Err(Error::InvalidArgument(format!(
                    "Family '{}' already exists so cannot be added",
                    super::Escaped(&pair[0].name)
                )));
            }
        }
        let checked = parse_bool(&self.attributes, "hbase.table.sanity.checks", true);
        for family in &self.families {
            super::check_family_name(&family.name)?;
            if checked {
                family.check()?;
            }
        }
        if checked {
            self.check_floor("MAX_FILESIZE", 2 << 20)?;
            self.check_floor("MEMSTORE_FLUSHSIZE", 1 << 20)?;
        }
        Ok(())
    }

    fn check_floor(&self, option: &str, least: i64) -> Result<()> {
        let value = parse_attribute(&self.attributes, option, -1_i64)?;
        if value >= 0 && value < least {
            return Err(Error::DoNotRetry(format!(
                "{option} for table descriptor or \"{option}\" ({value}) is too small, which might cause over splitting \
                 into unmanageable number of regions or very frequent flushing. The least is {least}. Set \
                 hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass sanity checks"
            )));
        }
        Ok(())
    }

    fn optional_bytes(&self, option: &str) -> Option<u64> {
        let value = parse_attribute(&self.attributes, option, -1_i64).unwrap_or(-1);
        u64::try_from(value).ok().filter(|bytes| *bytes > 0)
    }
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
}

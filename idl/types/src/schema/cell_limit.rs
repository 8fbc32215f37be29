//! The largest cell that a table takes.

use super::TableDescriptor;
use crate::error::{Error, Result};

/// The table's own limit, under the name of HBase's setting.
const CELL_BYTES: &str = "hbase.server.keyvalue.maxsize";

/// Bytes of a cell that HBase counts besides row, family, qualifier and value: four lengths, the timestamp
/// and the type (`PrivateCellUtil.estimatedSerializedSizeOf`).
const OVERHEAD: usize = 4 + 4 + 4 + 2 + 1 + 8 + 1;

/// The largest cell: the server's setting, or the table's own, which counts a cell's overhead as HBase does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellLimit {
    /// 0: none.
    bytes: usize,
    overhead: usize,
}

impl CellLimit {
    /// The table's own limit. An unreadable value is none: a table created without checks may have one.
    pub fn of_table(table: &TableDescriptor) -> Option<Self> {
        let own = table.attributes.get(CELL_BYTES.as_bytes())?;
        let bytes = std::str::from_utf8(own).ok()?.trim().parse::<i64>().ok()?;
        Some(Self {
            bytes: usize::try_from(bytes).unwrap_or(0),
            overhead: OVERHEAD,
        })
    }

    /// A limit of row, family, qualifier and value together.
    pub fn of_server(bytes: usize) -> Self {
        Self { bytes, overhead: 0 }
    }

    /// Checks the size of a cell: row, family, qualifier and value.
    pub fn check(self, bytes: usize) -> Result<()> {
        let (found, limit) = (bytes + self.overhead, self.bytes);
        if limit != 0 && found > limit {
            return Err(Error::DoNotRetry(format!(
                "Cell with size {found} exceeds limit of {limit} bytes"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FamilyDescriptor, TableName};
    use super::*;

    fn limit(value: Option<&str>) -> CellLimit {
        let mut table =
            TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![FamilyDescriptor::new(b"f")]);
        if let Some(value) = value {
            table.attributes.insert(CELL_BYTES.into(), value.into());
        }
        CellLimit::of_table(&table).unwrap_or(CellLimit::of_server(1000))
    }

    #[test]
    fn a_tables_own_limit_counts_as_in_hbase() {
        let own = limit(Some("100"));
        own.check(100 - OVERHEAD).unwrap();
        assert_eq!(
            own.check(101 - OVERHEAD).unwrap_err().to_string(),
            "Cell with size 101 exceeds limit of 100 bytes"
        );
        for none in ["0", "-1"] {
            limit(Some(none)).check(1 << 30).unwrap();
        }
    }

    #[test]
    fn without_one_the_servers_counts() {
        for value in [None, Some("many")] {
            limit(value).check(1000).unwrap();
            limit(value).check(1001).unwrap_err();
        }
    }
}

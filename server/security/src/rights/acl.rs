//! The entries as rows of `hbase:acl` (HBase: `PermissionStorage`).
//!
//! | scope | row | qualifier |
//! | --- | --- | --- |
//! | global | `hbase:acl` | grantee |
//! | namespace | `@namespace` | grantee |
//! | table, family, column | the table's name | grantee`[,family[,qualifier]]` |
//!
//! The family is `l`, and the value is the letters of the actions.

use super::{Entry, Rights, Scope};

/// A cell of `hbase:acl`, of the family `l`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AclCell {
    /// The scope.
    pub row: Vec<u8>,
    /// The grantee, with family and qualifier.
    pub qualifier: Vec<u8>,
    /// The letters of the actions.
    pub value: Vec<u8>,
}

impl AclCell {
    fn of(entry: &Entry) -> Self {
        let row = match &entry.scope {
            Scope::Global => "hbase:acl".to_owned(),
            Scope::Namespace(name) => format!("@{name}"),
            Scope::Table { table, .. } => table.to_string(),
        };
        let mut qualifier = entry.grantee.to_string().into_bytes();
        for part in [entry.scope.family(), entry.scope.qualifier()]
            .into_iter()
            .flatten()
        {
            qualifier.push(b',');
            qualifier.extend_from_slice(part);
        }
        Self {
            row: row.into_bytes(),
            qualifier,
            value: entry.actions.to_string().into_bytes(),
        }
    }
}

impl Rights {
    /// The cells of `hbase:acl`, in the order of a scan.
    pub fn acl_cells(&self) -> Vec<AclCell> {
        let mut cells: Vec<AclCell> = self.entries().map(|entry| AclCell::of(&entry)).collect();
        cells.sort_unstable();
        cells
    }
}

//! The entries as rows of `hbase:acl` (HBase: `PermissionStorage`).
//!
//! | scope | row | qualifier |
//! | --- | --- | --- |
//! | global | `hbase:acl` | grantee |
//! | namespace | `@namespace` | grantee |
//! | table, family, column | the table's name | grantee`[,family[,qualifier]]` |
//!
//! The family is `l`, and the value is the letters of the actions.
//!
//! A right to the table `hbase:acl` itself would have the row of the global rights, and is not listed. None
//! is granted: [`Scope::is_acl_table`].

use basalt_types::schema::ACL_TABLE;

use super::{Action, Actions, Entry, Rights, Scope};

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

impl Scope {
    /// Whether it is the table `hbase:acl` or a part of it.
    pub fn is_acl_table(&self) -> bool {
        matches!(self, Self::Table { table, .. } if table.is_system() && table.qualifier() == ACL_TABLE)
    }
}

impl Rights {
    /// The cells of `hbase:acl`, in the order of a scan.
    pub fn acl_cells(&self) -> Vec<AclCell> {
        let listed = self.entries().filter(|entry| !entry.scope.is_acl_table());
        let mut cells: Vec<AclCell> = listed.map(|entry| AclCell::of(&entry)).collect();
        cells.sort_unstable();
        // A family `f,q` and the column `q` of `f` have one qualifier in HBase's form. The cell has what is
        // granted to either.
        cells.dedup_by(|next, kept| {
            let is_same = (&next.row, &next.qualifier) == (&kept.row, &kept.qualifier);
            if is_same {
                let both = Action::ALL.into_iter().filter(|action| {
                    let letter = action.letter() as u8;
                    kept.value.contains(&letter) || next.value.contains(&letter)
                });
                kept.value = both.collect::<Actions>().to_string().into_bytes();
            }
            is_same
        });
        cells
    }
}

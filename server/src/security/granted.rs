//! The rights as the rows of `hbase:acl`, which the engine lists.

use basalt_engine::engine::{Grant, GrantSource};

use super::Security;

impl GrantSource for Security {
    fn version(&self) -> u64 {
        self.rights_version()
    }

    fn grants(&self) -> Vec<Grant> {
        let cells = self.rights().acl_cells().into_iter();
        cells
            .map(|cell| Grant {
                row: cell.row,
                qualifier: cell.qualifier,
                value: cell.value,
            })
            .collect()
    }
}

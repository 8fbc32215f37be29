//! Commands that change the state of tables, one or all that match: `enable`, `disable_all` and the others.

/// A command on one table, or on all that match.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToTables {
    Enable,
    Disable,
    Drop,
}

impl ToTables {
    /// The command for one table, the question's first word, and the table's state afterwards: as
    /// in HBase's `disable_all.rb` and the others.
    pub(super) fn words(self) -> [&'static str; 3] {
        match self {
            ToTables::Enable => ["enable", "Enable", "enabled"],
            ToTables::Disable => ["disable", "Disable", "disabled"],
            ToTables::Drop => ["drop", "Drop", "dropped"],
        }
    }
}

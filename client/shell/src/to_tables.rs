//! Commands that change the state of tables, one or all that match: `enable`, `disable_all` and the others.

/// What is done to one table, or to all that match.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToTables {
    Enable,
    Disable,
    Drop,
}

impl ToTables {
    /// The command for one table, the question's first word, and what a table is afterwards: as in HBase's
    /// `disable_all.rb` and the others.
    pub(super) fn words(self) -> [&'static str; 3] {
        match self {
            ToTables::Enable => ["enable", "Enable", "enabled"],
            ToTables::Disable => ["disable", "Disable", "disabled"],
            ToTables::Drop => ["drop", "Drop", "dropped"],
        }
    }
}

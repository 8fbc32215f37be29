//! Access decisions: may this caller do that? Every request asks.

use std::sync::Arc;

use basalt_engine::schema::TableName;
use basalt_security::rights::ColumnFilter;

use super::{Action, Caller, Refused, Security, Target};

/// Access decisions.
#[derive(Clone, Debug, Default)]
pub(crate) enum Access {
    /// Everybody may do everything.
    #[default]
    Everybody,
    /// Users who have proved their names may do what they have rights to.
    Rights(Arc<Security>),
    /// Refuses everything: for the test that every call asks.
    #[cfg(test)]
    Nobody,
}

impl Access {
    /// Fails unless the caller may do that. The class and the words are HBase's. A read of which the
    /// caller may see a part gets the columns to which it is to be narrowed.
    pub(crate) fn check(
        &self,
        caller: &Caller,
        action: Action,
        target: Target<'_>,
    ) -> Result<Option<ColumnFilter>, Refused> {
        match self {
            Self::Everybody => Ok(None),
            Self::Rights(security) => security.check(caller, action, target),
            #[cfg(test)]
            Self::Nobody => Err(Refused::new(caller, action, target)),
        }
    }

    /// Fails unless the caller may know whether the table exists, which any right to it implies;
    /// without a table, which tables exist.
    pub(crate) fn may_know(&self, caller: &Caller, table: Option<&TableName>) -> Result<(), Refused> {
        let target = table.map_or(Target::Server, Target::Table);
        self.check(caller, Action::Know, target).map(drop)
    }

    /// Whether a list shows the caller what needs that right. What it leaves out is no denial.
    pub(crate) fn shows(&self, caller: &Caller, action: Action, target: Target<'_>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Rights(security) => security.ask(caller, action, target).is_ok(),
            #[cfg(test)]
            Self::Nobody => false,
        }
    }
}

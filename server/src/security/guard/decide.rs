//! HBase's table of rights: the actions that a request needs.

use basalt_security::rights::{self, Readable, Rights, Subject};

use super::super::{Action, Target};

/// The table of rights of HBase's `AccessController`: all, nothing, or the columns to which a read is
/// narrowed.
pub(super) fn decide(rights: &Rights, subject: &Subject<'_>, action: Action, target: Target<'_>) -> Readable {
    use rights::{Action as Right, Actions, Target as On};
    let all_if = |is_allowed| {
        if is_allowed {
            Readable::All
        } else {
            Readable::Nothing
        }
    };
    let on = match target {
        Target::Server => On::Global,
        Target::Namespace(name) | Target::NamespaceRights(name) => On::Namespace(name),
        Target::Table(table) | Target::Somewhere(table) | Target::Cells { table, .. } => On::Table(table),
    };
    let changes = Actions::from(Right::Create).union(Right::Admin.into());
    let needs: Actions = match (action, target) {
        (Action::Connect | Action::Exec, _) | (Action::Know, Target::Server) => return Readable::All,
        (Action::Know | Action::Read, Target::Table(table) | Target::Cells { table, .. })
            if table.is_meta() =>
        {
            // Clients find their regions there.
            return Readable::All;
        }
        (Action::Know, Target::Table(table) | Target::Cells { table, .. }) => {
            return all_if(rights.allowed_somewhere(subject, Actions::ALL, table));
        }
        (Action::Read, Target::Cells { table, columns }) => {
            return rights.readable(subject, table, |visit| columns.visit(visit));
        }
        (Action::Write, Target::Cells { table, columns }) => {
            let allowed = rights.allowed_columns(subject, Right::Write, table, |visit| columns.visit(visit));
            return all_if(allowed.is_ok());
        }
        (Action::Create, Target::Cells { table, columns }) => {
            let allowed = rights.allowed_columns(subject, changes, table, |visit| columns.visit(visit));
            return all_if(allowed.is_ok());
        }
        (Action::Create, Target::Somewhere(table)) => {
            return all_if(rights.allowed_somewhere(subject, changes, table));
        }
        // Namespaces are made, changed and dropped by administrators of the server.
        (Action::Admin, Target::Namespace(_)) => {
            return all_if(rights.allowed(subject, Right::Admin, On::Global));
        }
        (Action::Read, _) => Right::Read.into(),
        (Action::Write, _) => Right::Write.into(),
        (Action::Create, _) => changes,
        (Action::Know | Action::Admin, _) => Right::Admin.into(),
    };
    all_if(rights.allowed(subject, needs, on))
}

//! Actions and targets of requests; `access` decides who may do them.
//!
//! A request names one [`Action`] and one [`Target`], which are HBase's (`Permission.Action`, and the
//! scopes of its rights: global, namespace, table, family, qualifier). [`super::Access`] decides. The
//! pipeline asks before anything else happens, so that a refusal says nothing of what exists.

use std::fmt;

use basalt_engine::op::{self, FamilySelection, ReadSpec};
use basalt_engine::schema::TableName;
use basalt_security::rights::ColumnFilter;

use super::Caller;

/// Action of a request (HBase: `Permission.Action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A question that clients ask before they know anything: where the server is, which version it
    /// has. Every user that has logged in may ask it, and every client in ZooKeeper's protocol.
    Connect,
    /// Learns that the target exists, and what it is. Any right to it implies that.
    Know,
    /// Reads cells.
    Read,
    /// Writes cells.
    Write,
    /// Calls an endpoint of a region.
    Exec,
    /// Changes tables. HBase allows most of that to holders of `ADMIN`, too.
    Create,
    /// Changes the server, or reads what only operators see.
    Admin,
}

impl Action {
    /// The word in the refusal (HBase: the name of the action).
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::Know => "KNOW",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Exec => "EXEC",
            Self::Create => "CREATE",
            Self::Admin => "ADMIN",
        }
    }
}

/// Function that a walk over columns calls with each family, and with its qualifier where one is named.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], Option<&[u8]>) + 'v;

/// The families and columns of a request, as a walk over them.
pub(crate) trait Columns {
    /// Calls `visit` with each family, and with its qualifier where the request names one. A request
    /// that names no family is about all of them, and visits none.
    fn visit(&self, visit: &mut Visit<'_>);
}

/// Visits the columns that a get or scan reads. One without columns reads all families.
pub(crate) fn visit_spec(spec: &ReadSpec, visit: &mut Visit<'_>) {
    for selected in &spec.families {
        match &selected.columns {
            op::Columns::Only(qualifiers) => qualifiers
                .iter()
                .for_each(|qualifier| visit(&selected.family, Some(qualifier))),
            op::Columns::All => visit(&selected.family, None),
        }
    }
}

/// Narrows a read to the columns that its caller may see. `false` if nothing is left of it: such a read
/// must not run, since one without columns reads all.
pub(crate) fn narrow(spec: &mut ReadSpec, granted: &ColumnFilter) -> bool {
    if spec.families.is_empty() {
        for (family, _) in granted.columns() {
            if spec.families.iter().all(|selected| selected.family != family) {
                spec.families.push(FamilySelection {
                    family: family.to_vec(),
                    columns: op::Columns::All,
                });
            }
        }
    }
    spec.families.retain_mut(|selected| {
        let of_family = granted
            .columns()
            .filter(|(family, _)| *family == &selected.family[..]);
        let mut only = Vec::new();
        for (_, qualifier) in of_family {
            match qualifier {
                None => return true,
                Some(qualifier) => only.push(qualifier.to_vec()),
            }
        }
        match &mut selected.columns {
            op::Columns::All => selected.columns = op::Columns::Only(only),
            op::Columns::Only(asked) => asked.retain(|qualifier| only.contains(qualifier)),
        }
        matches!(&selected.columns, op::Columns::Only(left) if !left.is_empty())
    });
    !spec.families.is_empty()
}

/// Target of a request.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Server,
    Namespace(&'a str),
    /// The rights to a namespace, which its administrators may change.
    NamespaceRights(&'a str),
    Table(&'a TableName),
    /// A table, of which a right to a part suffices.
    Somewhere(&'a TableName),
    /// Cells of a table.
    Cells {
        table: &'a TableName,
        columns: &'a dyn Columns,
    },
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("scope=GLOBAL"),
            Self::Namespace(name) | Self::NamespaceRights(name) => write!(f, "namespace={name}"),
            Self::Table(table) | Self::Somewhere(table) => write!(f, "table={table}"),
            Self::Cells { table, columns } => {
                write!(f, "table={table}")?;
                let mut result = Ok(());
                columns.visit(&mut |family, qualifier| {
                    let family = basalt_engine::schema::Escaped(family);
                    if result.is_ok() {
                        result = match qualifier {
                            None => write!(f, ", family={family}"),
                            Some(name) => {
                                write!(f, ", family={family}:{}", basalt_engine::schema::Cut(name))
                            }
                        };
                    }
                });
                result
            }
        }
    }
}

/// A request that its caller may not make. The words are HBase's (`AccessController`,
/// `ServerRpcConnection`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The caller has proved no name.
    #[error("Authentication is required")]
    Unauthenticated,
    /// The user has no right to it.
    #[error("Insufficient permissions for user '{user}' ({target}, action={action})")]
    Denied {
        user: String,
        target: String,
        action: &'static str,
    },
}

impl Refused {
    pub(crate) fn new(caller: &Caller, action: Action, target: Target<'_>) -> Self {
        Self::Denied {
            user: caller.user_name().unwrap_or("anonymous").to_owned(),
            target: target.to_string(),
            action: action.name(),
        }
    }
}

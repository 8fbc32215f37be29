//! An entry: grantee, scope and actions.

use std::fmt;
use std::str::FromStr;

use basalt_types::name::TableName;
use basalt_types::schema::check_namespace_characters;
use basalt_types::text::{Escaped, escape};
use serde::{Deserialize, Serialize};

use super::Actions;
use crate::users::check_name;
use crate::{Error, Result};

/// A right of one grantee for one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Entry {
    /// The user or group that has it.
    pub grantee: Grantee,
    /// The part of the data where it counts.
    pub scope: Scope,
    /// The actions that it allows.
    pub actions: Actions,
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grantee {
    /// A user.
    User(String),
    /// All members of a group; the name is without `@`.
    Group(String),
}

impl FromStr for Grantee {
    type Err = Error;

    /// `@` marks a group.
    fn from_str(text: &str) -> Result<Self> {
        let (what, name) = match text.strip_prefix('@') {
            Some(group) => ("group", group),
            None => ("user", text),
        };
        check_name(what, name)?;
        let name = name.to_owned();
        Ok(if what == "group" {
            Self::Group(name)
        } else {
            Self::User(name)
        })
    }
}

impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => f.write_str(name),
            Self::Group(name) => write!(f, "@{name}"),
        }
    }
}

/// The part of the data where a right counts. Everything below is included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everywhere.
    Global,
    /// A namespace.
    Namespace(String),
    /// A table, or a family or column of it: see [`Scope::table`].
    Table {
        /// The table.
        table: TableName,
        /// Family, and qualifier where there is one. Neither is empty.
        column: Option<(Vec<u8>, Option<Vec<u8>>)>,
    },
}

impl Scope {
    /// A table, family or column. Empty families and qualifiers count as missing, as in HBase.
    pub fn table(table: TableName, family: Option<&[u8]>, qualifier: Option<&[u8]>) -> Result<Self> {
        let [family, qualifier] = [family, qualifier].map(|name| name.filter(|name| !name.is_empty()));
        if family.is_none() && qualifier.is_some() {
            return Err(Error::Invalid("a right to a column needs its family, too".into()));
        }
        let column = family.map(|family| (family.to_vec(), qualifier.map(<[u8]>::to_vec)));
        Ok(Self::Table { table, column })
    }

    /// The family, if it is about one.
    pub fn family(&self) -> Option<&[u8]> {
        match self {
            Self::Table { column, .. } => column.as_ref().map(|(family, _)| &family[..]),
            Self::Global | Self::Namespace(_) => None,
        }
    }

    /// The qualifier, if it is about one column.
    pub fn qualifier(&self) -> Option<&[u8]> {
        match self {
            Self::Table { column, .. } => column.as_ref()?.1.as_deref(),
            Self::Global | Self::Namespace(_) => None,
        }
    }
}

/// For people: `global`, `namespace n`, `table t, column f:q`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Namespace(name) => write!(f, "namespace {name}"),
            Self::Table { table, .. } => {
                write!(f, "table {table}")?;
                match (self.family(), self.qualifier()) {
                    (None, _) => Ok(()),
                    (Some(family), None) => write!(f, ", family {}", Escaped(family)),
                    (Some(family), Some(name)) => write!(f, ", column {}:{}", Escaped(family), Escaped(name)),
                }
            }
        }
    }
}

/// An entry in the file. Bytes are escaped as HBase prints them (`\x00`).
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    grantee: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    family: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    qualifier: Option<String>,
    actions: String,
}

impl From<Entry> for Stored {
    fn from(entry: Entry) -> Self {
        let (namespace, table) = match &entry.scope {
            Scope::Global => (None, None),
            Scope::Namespace(name) => (Some(name.clone()), None),
            Scope::Table { table, .. } => (None, Some(table.to_string())),
        };
        Self {
            grantee: entry.grantee.to_string(),
            namespace,
            table,
            family: entry.scope.family().map(escape),
            qualifier: entry.scope.qualifier().map(escape),
            actions: entry.actions.to_string(),
        }
    }
}

impl TryFrom<Stored> for Entry {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let [family, qualifier] = [&stored.family, &stored.qualifier].map(|text| match text {
            None => Ok(None),
            Some(text) => unescape(text).map(Some),
        });
        let (family, qualifier) = (family?, qualifier?);
        let scope = match (stored.namespace, stored.table) {
            (None, Some(table)) => {
                Scope::table(parse_table(&table)?, family.as_deref(), qualifier.as_deref())?
            }
            (None, None) if family.is_none() && qualifier.is_none() => Scope::Global,
            (Some(name), None) if family.is_none() && qualifier.is_none() => {
                check_namespace_characters(&name).map_err(|error| Error::Invalid(error.to_string()))?;
                Scope::Namespace(name)
            }
            _ => {
                return Err(Error::Invalid(
                    "an entry has a namespace, or a table with its columns, or neither".into(),
                ));
            }
        };
        let actions: Actions = stored.actions.parse()?;
        if actions.is_empty() {
            return Err(Error::Invalid("an entry has no actions".into()));
        }
        Ok(Self {
            grantee: stored.grantee.parse()?,
            scope,
            actions,
        })
    }
}

fn parse_table(text: &str) -> Result<TableName> {
    let (namespace, qualifier) = text.rsplit_once(':').unwrap_or(("", text));
    TableName::stored(namespace, qualifier).map_err(|error| Error::Invalid(error.to_string()))
}

/// The bytes that [`escape`] has made this text of.
fn unescape(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'\\' {
            let hex = behind.strip_prefix(b"x").and_then(|hex| hex.get(..2));
            let value = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
            let value = value
                .ok_or_else(|| Error::Invalid("a backslash is not followed by x and two digits".into()))?;
            bytes.push(value);
            rest = &behind[3..];
        } else {
            bytes.push(byte);
        }
    }
    Ok(bytes)
}

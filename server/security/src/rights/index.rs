//! Checks: an index of the entries by grantee.
//!
//! A check of a table takes one lookup for the user, one for each group, and for each of them one
//! for the namespace and one for the table. It does not allocate. Columns are searched one by one:
//! few grantees have rights to more than a few columns.

use std::collections::BTreeMap;

use basalt_types::name::TableName;
use hashbrown::HashMap;

use super::{Action, Actions, Grantee, Rights, Scope};

/// The user whose rights count.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Its groups, without `@`.
    pub groups: &'a [String],
    /// Whether it may do everything.
    pub superuser: bool,
}

/// The object of an access.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// The server.
    Global,
    /// A namespace.
    Namespace(&'a str),
    /// A whole table.
    Table(&'a TableName),
    /// A whole family, and a column of it where there is a qualifier.
    Column(&'a TableName, &'a [u8], Option<&'a [u8]>),
}

/// The part of a read's columns that may be returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readable {
    /// All requested columns.
    All,
    /// Some of them: the read is filtered.
    Filtered(ColumnFilter),
    /// None of them: access is denied.
    Nothing,
}

/// The readable columns of a table that the subject may not read as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnFilter(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl ColumnFilter {
    /// Whether a cell of this column is returned.
    pub fn allows(&self, family: &[u8], qualifier: &[u8]) -> bool {
        let covers = |(granted, column): &(Vec<u8>, Option<Vec<u8>>)| {
            granted == family && column.as_ref().is_none_or(|column| column == qualifier)
        };
        self.0.iter().any(covers)
    }

    /// The granted families, with a qualifier where only that column is granted. A read narrows its
    /// columns to them.
    pub fn columns(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.0
            .iter()
            .map(|(family, qualifier)| (&family[..], qualifier.as_deref()))
    }
}

/// The first requested column that is not allowed. Without a family: the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedColumn {
    /// The family.
    pub family: Option<Vec<u8>>,
    /// The qualifier, where the request names one.
    pub qualifier: Option<Vec<u8>>,
}

/// A walk over the requested columns: calls its argument with each family, and with its qualifier
/// where the request names one.
pub type Visit<'v> = dyn FnMut(&[u8], Option<&[u8]>) + 'v;

#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    users: HashMap<String, Held>,
    groups: HashMap<String, Held>,
}

/// The rights of one grantee.
#[derive(Clone, Debug, Default)]
struct Held {
    global: Actions,
    namespaces: HashMap<String, Actions>,
    tables: HashMap<TableName, HeldOfTable>,
}

#[derive(Clone, Debug, Default)]
struct HeldOfTable {
    /// For the whole table.
    whole: Actions,
    /// For the table or a part of it.
    somewhere: Actions,
    columns: Vec<(Vec<u8>, Option<Vec<u8>>, Actions)>,
}

impl Index {
    pub(super) fn of(entries: &BTreeMap<(Scope, Grantee), Actions>) -> Self {
        let mut index = Self::default();
        for ((scope, grantee), &actions) in entries {
            let held = match grantee {
                Grantee::User(name) => index.users.entry(name.clone()).or_default(),
                Grantee::Group(name) => index.groups.entry(name.clone()).or_default(),
            };
            match scope {
                Scope::Global => held.global = actions,
                Scope::Namespace(name) => {
                    held.namespaces.insert(name.clone(), actions);
                }
                Scope::Table { table, column } => {
                    let held = held.tables.entry(table.clone()).or_default();
                    held.somewhere = held.somewhere.union(actions);
                    match column.clone() {
                        None => held.whole = actions,
                        Some((family, qualifier)) => held.columns.push((family, qualifier, actions)),
                    }
                }
            }
        }
        index
    }

    fn of_subject<'a>(&'a self, subject: &Subject<'a>) -> impl Iterator<Item = &'a Held> {
        let groups = subject.groups.iter().filter_map(|group| self.groups.get(group));
        self.users.get(subject.user).into_iter().chain(groups)
    }
}

impl Held {
    fn of_namespace(&self, namespace: &str) -> Actions {
        let actions = self.namespaces.get(namespace).copied();
        self.global.union(actions.unwrap_or_default())
    }

    fn covers(&self, target: Target<'_>, actions: Actions) -> bool {
        match target {
            Target::Global => self.global.intersects(actions),
            Target::Namespace(namespace) => self.of_namespace(namespace).intersects(actions),
            Target::Table(table) => {
                let held = self.tables.get(table);
                held.is_some_and(|held| held.whole.intersects(actions))
                    || self.of_namespace(table.namespace()).intersects(actions)
            }
            Target::Column(table, family, qualifier) => {
                let held = self.tables.get(table);
                held.is_some_and(|held| held.covers(family, qualifier, actions))
                    || self.of_namespace(table.namespace()).intersects(actions)
            }
        }
    }
}

impl HeldOfTable {
    fn covers(&self, family: &[u8], qualifier: Option<&[u8]>, actions: Actions) -> bool {
        let covers = |(granted, column, held): &(Vec<u8>, Option<Vec<u8>>, Actions)| {
            let is_below = column.is_none() || column.as_deref() == qualifier;
            granted == family && is_below && held.intersects(actions)
        };
        self.whole.intersects(actions) || self.columns.iter().any(covers)
    }
}

/// Checks. `actions` are alternatives: one of them suffices.
impl Rights {
    /// Whether the subject may act on the target as a whole.
    pub fn allowed(&self, subject: &Subject<'_>, actions: impl Into<Actions>, target: Target<'_>) -> bool {
        let actions = actions.into();
        subject.superuser
            || self
                .index
                .of_subject(subject)
                .any(|held| held.covers(target, actions))
    }

    /// Whether the subject may act on the table or some part of it. With [`Actions::ALL`]: whether
    /// it may know that the table exists.
    pub fn allowed_somewhere(
        &self,
        subject: &Subject<'_>,
        actions: impl Into<Actions>,
        table: &TableName,
    ) -> bool {
        let actions = actions.into();
        let in_part = |held: &Held| {
            let held = held.tables.get(table);
            held.is_some_and(|held| held.somewhere.intersects(actions))
        };
        self.allowed(subject, actions, Target::Table(table)) || self.index.of_subject(subject).any(in_part)
    }

    /// Whether the subject may act on every column that `walk` visits: the rule for writes. A
    /// request that names no column needs the right to the table.
    pub fn allowed_columns(
        &self,
        subject: &Subject<'_>,
        actions: impl Into<Actions>,
        table: &TableName,
        walk: impl FnOnce(&mut Visit<'_>),
    ) -> Result<(), DeniedColumn> {
        let actions = actions.into();
        if self.allowed(subject, actions, Target::Table(table)) {
            return Ok(());
        }
        let mut result = Err(DeniedColumn::default());
        let mut is_first = true;
        walk(&mut |family, qualifier| {
            if is_first || result.is_ok() {
                let is_allowed = self.allowed(subject, actions, Target::Column(table, family, qualifier));
                result = if is_allowed {
                    Ok(())
                } else {
                    Err(DeniedColumn::of(family, qualifier))
                };
            }
            is_first = false;
        });
        result
    }

    /// The part that a read may return of the columns that `walk` visits. A read that names none reads all
    /// families.
    pub fn readable(
        &self,
        subject: &Subject<'_>,
        table: &TableName,
        walk: impl FnOnce(&mut Visit<'_>),
    ) -> Readable {
        if self.allowed(subject, Action::Read, Target::Table(table)) {
            return Readable::All;
        }
        let filter = self.filter(subject, table);
        let (mut is_any, mut is_every, mut names_none) = (false, true, true);
        walk(&mut |family, qualifier| {
            names_none = false;
            let covers = |granted: Option<&[u8]>| granted.is_none() || granted == qualifier;
            let is_whole = filter
                .columns()
                .any(|(granted, column)| granted == family && covers(column));
            // A column of a family that is requested as a whole.
            let is_part = qualifier.is_none() && filter.columns().any(|(granted, _)| granted == family);
            is_every &= is_whole;
            is_any |= is_whole || is_part;
        });
        if names_none && filter.columns().next().is_some() {
            return Readable::Filtered(filter);
        }
        match (is_any, is_every) {
            (true, true) => Readable::All,
            (true, false) => Readable::Filtered(filter),
            (false, _) => Readable::Nothing,
        }
    }

    /// The columns of the table that the subject may read.
    fn filter(&self, subject: &Subject<'_>, table: &TableName) -> ColumnFilter {
        let held = self
            .index
            .of_subject(subject)
            .filter_map(|held| held.tables.get(table));
        let columns = held.flat_map(|held| &held.columns);
        let read = columns.filter(|(.., actions)| actions.intersects(Action::Read.into()));
        let mut granted: Vec<_> = read
            .map(|(family, qualifier, _)| (family.clone(), qualifier.clone()))
            .collect();
        granted.sort_unstable();
        granted.dedup();
        ColumnFilter(granted)
    }
}

impl DeniedColumn {
    fn of(family: &[u8], qualifier: Option<&[u8]>) -> Self {
        Self {
            family: Some(family.to_vec()),
            qualifier: qualifier.map(<[u8]>::to_vec),
        }
    }
}

//! Quotas as operators set and list them.
//!
//! Both protocols have HBase's numbers for types, time units and scopes, so a [`Change`] has them
//! unchecked.

use std::num::NonZeroU64;

use basalt_engine::filter::JavaRegex;
use basalt_engine::schema::TableName;

use super::Failure;
use crate::limits::admission::Admission;
use crate::limits::capacity::{Limit, Owner, Setting, Settings, ThrottleType, TimeUnit, UserScope};
use crate::server::Server;

/// HBase's number of a limit for each server of a cluster.
const SCOPE_CLUSTER: i32 = 1;
/// HBase's number of a limit for one server.
const SCOPE_MACHINE: i32 = 2;

/// The other types of limits of HBase 2.6.4.
const OTHER_TYPES: [(i32, &str); 7] = [
    (7, "REQUEST_CAPACITY_UNIT"),
    (8, "WRITE_CAPACITY_UNIT"),
    (9, "READ_CAPACITY_UNIT"),
    (10, "ATOMIC_READ_SIZE"),
    (11, "ATOMIC_REQUEST_NUMBER"),
    (12, "ATOMIC_WRITE_SIZE"),
    (13, "REQUEST_HANDLER_USAGE_MS"),
];

/// A change of a quota, as a client asks for it.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) user: Option<String>,
    pub(crate) table: Option<TableName>,
    pub(crate) namespace: Option<String>,
    /// The type of the limit; `None` for all limits of the owner.
    pub(crate) kind: Option<i32>,
    /// The limit; `None` removes it.
    pub(crate) limit: Option<i64>,
    pub(crate) unit: Option<i32>,
    pub(crate) scope: Option<i32>,
}

/// Patterns of the owners whose quotas are listed. An empty pattern is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) user: Option<&'a str>,
    pub(crate) table: Option<&'a str>,
    pub(crate) namespace: Option<&'a str>,
}

/// One limit of an owner.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) owner: Owner,
    pub(crate) kind: ThrottleType,
    pub(crate) setting: Setting,
}

/// Sets a limit, or takes one or all of an owner's away.
pub(crate) fn set(server: &Server, change: Change) -> Result<(), Failure> {
    let setting = setting(&change);
    let wanted_kind = change.kind;
    let owner = owner(change)?;
    let kind = wanted_kind.map(throttle_type).transpose()?;
    let setting = setting?;
    if setting.is_some() && kind.is_none() {
        return Err(Failure::illegal_argument("the limit has no type"));
    }
    Ok(server
        .admission()
        .capacity()
        .change_quota(server.engine(), owner, |settings| match (kind, setting) {
            (Some(kind), Some(setting)) => {
                settings.insert(kind, setting);
            }
            (Some(kind), None) => {
                settings.remove(&kind);
            }
            (None, _) => settings.clear(),
        })?)
}

/// Removes the quotas of a table that was dropped, as HBase does (`MasterQuotasObserver`).
pub(crate) fn remove_for_table(server: &Server, table: TableName) -> Result<(), Failure> {
    remove_for(server, Owner::Table(table))
}

/// Removes the quotas of a namespace that was dropped.
pub(crate) fn remove_for_namespace(server: &Server, namespace: &str) -> Result<(), Failure> {
    remove_for(server, Owner::Namespace(namespace.to_owned()))
}

fn remove_for(server: &Server, owner: Owner) -> Result<(), Failure> {
    let capacity = server.admission().capacity();
    if capacity.is_on() {
        capacity.change_quota(server.engine(), owner, Settings::clear)?;
    }
    Ok(())
}

/// Quotas of owners that match. HBase's rules (`QuotaTableUtil.makeFilter`): with a user's pattern, those of
/// users, narrowed by patterns for their tables or namespaces; without, those of tables or else of
/// namespaces.
pub(crate) fn list(admission: &Admission, wanted: Wanted<'_>) -> Result<Vec<Listed>, Failure> {
    let pattern = |text: Option<&str>| {
        let text = text.filter(|text| !text.is_empty());
        text.map(JavaRegex::whole).transpose()
    };
    let user = pattern(wanted.user)?;
    let table = pattern(wanted.table)?;
    let namespace = pattern(wanted.namespace)?;
    let is = |pattern: &Option<JavaRegex>, text: &str| {
        pattern
            .as_ref()
            .is_some_and(|pattern| pattern.is_found_in(text.as_bytes()))
    };
    let is_wanted = |owner: &Owner| match owner {
        _ if user.is_none() && table.is_none() && namespace.is_none() => true,
        Owner::User { name, scope } => {
            is(&user, name)
                && match scope {
                    _ if table.is_none() && namespace.is_none() => true,
                    UserScope::All => false,
                    UserScope::Table(name) => is(&table, &name.to_string()),
                    UserScope::Namespace(name) => is(&namespace, name),
                }
        }
        _ if user.is_some() => false,
        Owner::Table(name) => is(&table, &name.to_string()),
        Owner::Namespace(name) => table.is_none() && is(&namespace, name),
    };
    let mut listed = Vec::new();
    for quota in admission.capacity().list_quotas() {
        if is_wanted(&quota.owner) {
            let one = |(kind, setting): (&ThrottleType, &Setting)| Listed {
                owner: quota.owner.clone(),
                kind: *kind,
                setting: *setting,
            };
            listed.extend(quota.settings.iter().map(one));
        }
    }
    Ok(listed)
}

fn owner(change: Change) -> Result<Owner, Failure> {
    match (change.user, change.table, change.namespace) {
        (None, Some(table), None) => Ok(Owner::Table(table)),
        (None, None, Some(namespace)) => Ok(Owner::Namespace(namespace)),
        (Some(name), table, namespace) if table.is_none() || namespace.is_none() => Ok(Owner::User {
            name,
            scope: match (table, namespace) {
                (Some(table), _) => UserScope::Table(table),
                (None, Some(namespace)) => UserScope::Namespace(namespace),
                (None, None) => UserScope::All,
            },
        }),
        _ => Err(Failure::illegal_argument(
            "a quota is for a user, a table or a namespace, or for a user in a table or in a namespace",
        )),
    }
}

fn throttle_type(kind: i32) -> Result<ThrottleType, Failure> {
    let known = ThrottleType::ALL.into_iter().find(|known| *known as i32 == kind);
    known.ok_or_else(|| match OTHER_TYPES.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => Failure::do_not_retry(format!(
            "the throttle type {name} is not supported; numbers of requests and of bytes can be limited, of reads, writes or both"
        )),
        None => Failure::illegal_argument(format!("unknown throttle type {kind}")),
    })
}

/// The limit, if there is one.
fn setting(change: &Change) -> Result<Option<Setting>, Failure> {
    let Some(limit) = change.limit else {
        return Ok(None);
    };
    let amount = u64::try_from(limit)
        .ok()
        .and_then(NonZeroU64::new)
        .ok_or_else(|| Failure::illegal_argument(format!("the limit is {limit} and must be at least 1")))?;
    let unit = match change.unit {
        None => TimeUnit::Seconds,
        Some(unit) => TimeUnit::ALL
            .into_iter()
            .find(|known| *known as i32 == unit)
            .ok_or_else(|| Failure::illegal_argument(format!("unknown time unit {unit}")))?,
    };
    let is_cluster = match change.scope {
        None | Some(SCOPE_MACHINE) => false,
        Some(SCOPE_CLUSTER) => true,
        Some(other) => return Err(Failure::illegal_argument(format!("unknown quota scope {other}"))),
    };
    Ok(Some(Setting {
        limit: Limit { amount, unit },
        is_cluster,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_number_or_refused_by_name() {
        for kind in ThrottleType::ALL {
            assert_eq!(throttle_type(kind as i32).unwrap(), kind);
        }
        for (number, name) in OTHER_TYPES {
            let refused = throttle_type(number).unwrap_err();
            assert!(refused.message().contains(name), "{refused:?}");
        }
        let refused = throttle_type(14).unwrap_err();
        assert_eq!(refused.message(), "unknown throttle type 14");
    }
}

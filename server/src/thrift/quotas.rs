//! Quotas as an operator sets and lists them.

use std::num::NonZeroU64;

use basalt_engine::filter::JavaRegex;
use basalt_engine::schema::TableName;
use basalt_idl::admin::{TQuotaScope, TThrottle, TThrottleType, TTimeUnit, args};
use bytes::Bytes;

use super::{Failure, Server, from_thrift};
use crate::capacity::{Limit, Owner, Setting, Settings, ThrottleType, TimeUnit, UserScope};

/// Sets a limit, or takes one or all of an owner's away.
pub(crate) fn set(server: &Server, quota: &TThrottle) -> Result<(), Failure> {
    let owner = owner(quota)?;
    let kind = quota.throttle_type.map(throttle_type).transpose()?;
    let setting = setting(quota)?;
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

/// Takes away the quotas of a table that was dropped, as HBase does (`MasterQuotasObserver`).
pub(crate) fn forget_table(server: &Server, table: TableName) -> Result<(), Failure> {
    forget(server, Owner::Table(table))
}

/// Takes away the quotas of a namespace that was dropped.
pub(crate) fn forget_namespace(server: &Server, namespace: &str) -> Result<(), Failure> {
    forget(server, Owner::Namespace(namespace.to_owned()))
}

fn forget(server: &Server, owner: Owner) -> Result<(), Failure> {
    let capacity = server.admission().capacity();
    if capacity.is_on() {
        capacity.change_quota(server.engine(), owner, Settings::clear)?;
    }
    Ok(())
}

/// Quotas of owners that match. HBase's rules (`QuotaTableUtil.makeFilter`): with a user's pattern, those of users, narrowed by
/// patterns for their tables or namespaces; without, those of tables or else of namespaces.
pub(crate) fn list(server: &Server, wanted: &args::BasaltListQuotas) -> Result<Vec<TThrottle>, Failure> {
    let pattern = |text: &Option<String>| {
        let text = text.as_deref().filter(|text| !text.is_empty());
        text.map(JavaRegex::whole).transpose()
    };
    let user = pattern(&wanted.user_name)?;
    let table = pattern(&wanted.table_name)?;
    let namespace = pattern(&wanted.ns_name)?;
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
    for quota in server.admission().capacity().list_quotas() {
        if is_wanted(&quota.owner) {
            let one = |(kind, setting): (&ThrottleType, &Setting)| to_throttle(&quota.owner, *kind, *setting);
            listed.extend(quota.settings.iter().map(one));
        }
    }
    Ok(listed)
}

fn owner(quota: &TThrottle) -> Result<Owner, Failure> {
    let table = quota.table_name.as_ref();
    let table = table.map(|name| from_thrift::table(Some(name))).transpose()?;
    match (&quota.user_name, table, &quota.ns_name) {
        (None, Some(table), None) => Ok(Owner::Table(table)),
        (None, None, Some(namespace)) => Ok(Owner::Namespace(namespace.clone())),
        (Some(name), table, namespace) if table.is_none() || namespace.is_none() => Ok(Owner::User {
            name: name.clone(),
            scope: match (table, namespace) {
                (Some(table), _) => UserScope::Table(table),
                (None, Some(namespace)) => UserScope::Namespace(namespace.clone()),
                (None, None) => UserScope::All,
            },
        }),
        _ => Err(Failure::illegal_argument(
            "a quota is for a user, a table or a namespace, or for a user in a table or in a namespace",
        )),
    }
}

fn throttle_type(kind: TThrottleType) -> Result<ThrottleType, Failure> {
    ThrottleType::ALL
        .into_iter()
        .find(|known| *known as i32 == kind.0)
        .ok_or_else(|| Failure::illegal_argument(format!("unknown throttle type {kind}")))
}

/// The limit, if there is one.
fn setting(quota: &TThrottle) -> Result<Option<Setting>, Failure> {
    let Some(limit) = quota.soft_limit else {
        return Ok(None);
    };
    let amount = u64::try_from(limit)
        .ok()
        .and_then(NonZeroU64::new)
        .ok_or_else(|| Failure::illegal_argument(format!("the limit is {limit} and must be at least 1")))?;
    let unit = match quota.time_unit {
        None => TimeUnit::Seconds,
        Some(unit) => TimeUnit::ALL
            .into_iter()
            .find(|known| *known as i32 == unit.0)
            .ok_or_else(|| Failure::illegal_argument(format!("unknown time unit {unit}")))?,
    };
    let is_cluster = match quota.scope {
        None | Some(TQuotaScope::MACHINE) => false,
        Some(TQuotaScope::CLUSTER) => true,
        Some(other) => return Err(Failure::illegal_argument(format!("unknown quota scope {other}"))),
    };
    Ok(Some(Setting {
        limit: Limit { amount, unit },
        is_cluster,
    }))
}

fn to_throttle(owner: &Owner, kind: ThrottleType, setting: Setting) -> TThrottle {
    let (user_name, table_name, ns_name) = match owner {
        Owner::Namespace(namespace) => (None, None, Some(namespace)),
        Owner::Table(table) => (None, Some(table), None),
        Owner::User { name, scope } => match scope {
            UserScope::All => (Some(name), None, None),
            UserScope::Namespace(namespace) => (Some(name), None, Some(namespace)),
            UserScope::Table(table) => (Some(name), Some(table), None),
        },
    };
    TThrottle {
        user_name: user_name.cloned(),
        table_name: table_name.map(|table| Bytes::from(table.to_string())),
        ns_name: ns_name.cloned(),
        throttle_type: Some(TThrottleType(kind as i32)),
        soft_limit: Some(i64::try_from(setting.limit.amount.get()).unwrap_or(i64::MAX)),
        time_unit: Some(TTimeUnit(setting.limit.unit as i32)),
        scope: Some(if setting.is_cluster {
            TQuotaScope::CLUSTER
        } else {
            TQuotaScope::MACHINE
        }),
    }
}

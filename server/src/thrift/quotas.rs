//! Quotas in BasaltAdmin's types.

use basalt_idl::admin::{TQuotaScope, TThrottle, TThrottleType, TTimeUnit, args};
use bytes::Bytes;

use super::from_thrift;
use crate::limits::capacity::{Owner, UserScope};
use crate::server::Server;
use crate::service::Failure;
use crate::service::quotas::{self, Change, Listed, Wanted};

/// Sets a limit, or removes one or all of an owner's.
pub(super) fn set(server: &Server, quota: &TThrottle) -> Result<(), Failure> {
    let table = quota.table_name.as_ref();
    let table = table.map(|name| from_thrift::table(Some(name))).transpose()?;
    let change = Change {
        user: quota.user_name.clone(),
        table,
        namespace: quota.ns_name.clone(),
        kind: quota.throttle_type.map(|kind| kind.0),
        limit: quota.soft_limit,
        unit: quota.time_unit.map(|unit| unit.0),
        scope: quota.scope.map(|scope| scope.0),
    };
    quotas::set(server, change)
}

/// Limits of the owners that match the patterns.
pub(super) fn list(server: &Server, wanted: &args::BasaltListQuotas) -> Result<Vec<TThrottle>, Failure> {
    let wanted = Wanted {
        user: wanted.user_name.as_deref(),
        table: wanted.table_name.as_deref(),
        namespace: wanted.ns_name.as_deref(),
    };
    let listed = quotas::list(server, wanted)?;
    Ok(listed.iter().map(to_throttle).collect())
}

fn to_throttle(listed: &Listed) -> TThrottle {
    let Listed { owner, kind, setting } = listed;
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
        throttle_type: Some(TThrottleType(*kind as i32)),
        soft_limit: Some(i64::try_from(setting.limit.amount.get()).unwrap_or(i64::MAX)),
        time_unit: Some(TTimeUnit(setting.limit.unit as i32)),
        scope: Some(if setting.is_cluster {
            TQuotaScope::CLUSTER
        } else {
            TQuotaScope::MACHINE
        }),
    }
}

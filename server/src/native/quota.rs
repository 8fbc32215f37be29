//! Limits that native clients set for users, tables and namespaces: HBase's `set_quota` of type
//! THROTTLE. They are the quotas of BasaltAdmin, which also lists them.
//!
//! Limits of disk space, of groups of users and of region servers, and exemptions from global
//! limits are refused by name.

use basalt_idl::native::messages::SetQuotaRequest;

use super::schema;
use crate::service::admin::cluster;
use crate::service::quotas::Change;
use crate::service::{AdminCall, Failure};

/// Sets or removes a limit.
pub(super) fn set(admin: &AdminCall, call: &SetQuotaRequest) -> Result<(), Failure> {
    check_is_throttle(call)?;
    let table = call.table_name.as_ref().map(schema::table_name).transpose()?;
    let limit = call.throttle.as_ref().and_then(|throttle| throttle.timed_quota);
    // Without a limit, the type's limit is removed, or all limits without a type.
    let change = Change {
        user: call.user_name.clone(),
        table,
        namespace: call.namespace.clone(),
        kind: call.throttle.as_ref().and_then(|throttle| throttle.r#type),
        // A limit beyond i64 is effectively none; the largest is kept.
        limit: limit.map(|limit| i64::try_from(limit.soft_limit.unwrap_or_default()).unwrap_or(i64::MAX)),
        unit: limit.map(|limit| limit.time_unit),
        scope: limit.and_then(|limit| limit.scope),
    };
    cluster::set_quota(admin, change)
}

/// Refuses limits of kinds that Basalt does not have.
fn check_is_throttle(call: &SetQuotaRequest) -> Result<(), Failure> {
    let kinds = [
        ("space quotas", call.space_limit.is_some()),
        ("quotas of user groups", call.user_group.is_some()),
        ("quotas of region servers", call.region_server.is_some()),
        ("exemptions from global quotas", call.bypass_globals.is_some()),
    ];
    match kinds.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((kind, _)) => Err(Failure::do_not_retry(format!(
            "{kind} are not supported; limits of users, tables and namespaces are"
        ))),
        None => Ok(()),
    }
}

//! Rights of users, in the messages of MasterService and of the endpoint `AccessControlService`.
//!
//! Clients of 1.x change rights by the endpoint, which is that of the region of `hbase:acl`; since 2.2 they
//! call the master. `CheckPermissions` may be called on the regions of the tables that it asks about, too.

use std::sync::Arc;

use basalt_engine::schema::TableName;
use basalt_idl::native::messages as pb;
use basalt_security::rights::{Action, Actions, Entry, Scope};
use bytes::Bytes;
use prost::Message;

use super::reply::endpoint_answer;
use super::state::Connection;
use super::{request, schema};
use crate::service::admin::rights::{self, About};
use crate::service::{AdminCall, Failure};

type Result<T> = std::result::Result<T, Failure>;

fn illegal(text: impl std::fmt::Display) -> Failure {
    Failure::illegal_argument(format!("{text}"))
}

fn text(bytes: &Bytes) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| illegal("a name is not UTF-8"))
}

fn actions(numbers: &[i32]) -> Result<Actions> {
    let action = |number: &i32| {
        Action::from_number(*number).ok_or_else(|| illegal(format!("there is no action {number}")))
    };
    numbers
        .iter()
        .try_fold(Actions::NONE, |all, number| Ok(all.union(action(number)?.into())))
}

/// Scope and actions of a message.
fn permission(permission: &pb::Permission) -> Result<(Scope, Actions)> {
    use pb::permission::Type;
    let missing = || illegal("the permission has a type without its part");
    match permission.r#type() {
        Type::Global => {
            let part = permission.global_permission.as_ref().ok_or_else(missing)?;
            Ok((Scope::Global, actions(&part.action)?))
        }
        Type::Namespace => {
            let part = permission.namespace_permission.as_ref().ok_or_else(missing)?;
            let name = text(part.namespace_name.as_ref().ok_or_else(missing)?)?.to_owned();
            Ok((Scope::Namespace(name), actions(&part.action)?))
        }
        Type::Table => table_permission(permission.table_permission.as_ref().ok_or_else(missing)?),
    }
}

fn table_permission(part: &pb::TablePermission) -> Result<(Scope, Actions)> {
    let missing = || illegal("the permission of a table has no name of one");
    let table = schema::table_name(part.table_name.as_ref().ok_or_else(missing)?)?;
    let scope = Scope::table(table, part.family.as_deref(), part.qualifier.as_deref());
    Ok((scope.map_err(illegal)?, actions(&part.action)?))
}

fn to_permission(scope: &Scope, actions: Actions) -> pb::Permission {
    use pb::permission::Type;
    let action: Vec<i32> = actions.iter().map(|action| action as i32).collect();
    let kind = match scope {
        Scope::Global => Type::Global,
        Scope::Namespace(_) => Type::Namespace,
        Scope::Table { .. } => Type::Table,
    };
    let mut permission = pb::Permission {
        r#type: kind.into(),
        global_permission: None,
        namespace_permission: None,
        table_permission: None,
    };
    match scope {
        Scope::Global => permission.global_permission = Some(pb::GlobalPermission { action }),
        Scope::Namespace(name) => {
            permission.namespace_permission = Some(pb::NamespacePermission {
                namespace_name: Some(Bytes::copy_from_slice(name.as_bytes())),
                action,
            });
        }
        Scope::Table { table, .. } => {
            permission.table_permission = Some(pb::TablePermission {
                table_name: Some(schema::to_table_name(table)),
                family: scope.family().map(Bytes::copy_from_slice),
                qualifier: scope.qualifier().map(Bytes::copy_from_slice),
                action,
            });
        }
    }
    permission
}

pub(super) fn grant(call: &AdminCall, request: &pb::GrantRequest) -> Result<pb::GrantResponse> {
    let (scope, actions) = permission(&request.user_permission.permission)?;
    let entry = Entry {
        grantee: rights::grantee(text(&request.user_permission.user)?)?,
        scope,
        actions,
    };
    rights::grant(call, &entry, request.merge_existing_permissions())?;
    Ok(pb::GrantResponse {})
}

pub(super) fn revoke(call: &AdminCall, request: &pb::RevokeRequest) -> Result<pb::RevokeResponse> {
    let (scope, actions) = permission(&request.user_permission.permission)?;
    let grantee = rights::grantee(text(&request.user_permission.user)?)?;
    rights::revoke(call, &grantee, &scope, actions)?;
    Ok(pb::RevokeResponse {})
}

pub(super) fn list(
    call: &AdminCall,
    request: &pb::GetUserPermissionsRequest,
) -> Result<pb::GetUserPermissionsResponse> {
    use pb::permission::Type;
    let missing = || illegal("the request has a type without its name");
    let about = match request.r#type() {
        Type::Global => About::Global,
        Type::Namespace => {
            let name = request.namespace_name.as_ref().ok_or_else(missing)?;
            About::Namespace(text(name)?.to_owned())
        }
        Type::Table => About::Table {
            table: schema::table_name(request.table_name.as_ref().ok_or_else(missing)?)?,
            family: request.column_family.as_ref().map(|family| family.to_vec()),
            qualifier: request.column_qualifier.as_ref().map(|name| name.to_vec()),
        },
    };
    let user = request.user_name.as_ref().map(text).transpose()?;
    let entries = rights::list(call, &about, user)?;
    let shown = entries.iter().map(|entry| pb::UserPermission {
        user: entry.grantee.to_string().into(),
        permission: to_permission(&entry.scope, entry.actions),
    });
    Ok(pb::GetUserPermissionsResponse {
        user_permission: shown.collect(),
    })
}

pub(super) fn has(
    call: &AdminCall,
    request: &pb::HasUserPermissionsRequest,
) -> Result<pb::HasUserPermissionsResponse> {
    let user = request.user_name.as_ref().map(text).transpose()?;
    let asked: Vec<_> = request.permission.iter().map(permission).collect::<Result<_>>()?;
    Ok(pb::HasUserPermissionsResponse {
        has_user_permission: rights::has(call, user, &asked)?,
    })
}

/// Answers a call of the endpoint on a region of `table`.
pub(super) async fn endpoint(
    connection: &Arc<Connection>,
    table: &TableName,
    method: pb::AccessControlServiceMethod,
    request: Bytes,
) -> Result<pb::NameBytesPair> {
    let (admin, table) = (connection.admin(), table.clone());
    let answered = connection
        .server
        .on_pool(move |_| answer(&admin, &table, method, request));
    answered.await
}

fn answer(
    call: &AdminCall,
    table: &TableName,
    method: pb::AccessControlServiceMethod,
    request: Bytes,
) -> Result<pb::NameBytesPair> {
    use pb::AccessControlServiceMethod as Of;
    if !(rights::is_acl(table) || method == Of::CheckPermissions) {
        return Err(Failure::do_not_retry(format!(
            "{} is called on a region of {table}: this method can only execute at the table hbase:acl",
            method.name()
        )));
    }
    Ok(match method {
        Of::Grant => named("GrantResponse", &grant(call, &request::decode(request)?)?),
        Of::Revoke => named("RevokeResponse", &revoke(call, &request::decode(request)?)?),
        Of::GetUserPermissions => named(
            "GetUserPermissionsResponse",
            &list(call, &request::decode(request)?)?,
        ),
        Of::CheckPermissions => named(
            "CheckPermissionsResponse",
            &check(call, table, &request::decode(request)?)?,
        ),
        Of::HasPermission => named(
            "HasPermissionResponse",
            &has_one(call, &request::decode(request)?)?,
        ),
    })
}

fn named(class: &str, answer: &impl Message) -> pb::NameBytesPair {
    endpoint_answer(&format!("AccessControlProtos${class}"), answer)
}

/// Fails unless the caller has all the rights of the request. On a region of a user's table, it may ask
/// about that table only.
fn check(
    call: &AdminCall,
    table: &TableName,
    request: &pb::CheckPermissionsRequest,
) -> Result<pb::CheckPermissionsResponse> {
    let asked: Vec<_> = request.permission.iter().map(permission).collect::<Result<_>>()?;
    let is_elsewhere = |(scope, _): &&(Scope, Actions)| matches!(scope, Scope::Table { table: other, .. } if other != table && !rights::is_acl(table));
    if let Some((scope, _)) = asked.iter().find(is_elsewhere) {
        return Err(Failure::do_not_retry(format!(
            "CheckPermissions is called on a region of {table}, and asks about {scope}: call it on a region of that \
             table, or of hbase:acl"
        )));
    }
    rights::check(call, &asked)?;
    Ok(pb::CheckPermissionsResponse {})
}

fn has_one(call: &AdminCall, request: &pb::HasPermissionRequest) -> Result<pb::HasPermissionResponse> {
    let asked = [table_permission(&request.table_permission)?];
    let has = rights::has(call, Some(text(&request.user_name)?), &asked)?;
    Ok(pb::HasPermissionResponse {
        has_permission: has.first().copied(),
    })
}

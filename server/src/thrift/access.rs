//! `grant` and `revoke`, which both services have. They are about a table or a namespace.

use basalt_engine::schema::{TableName, check_namespace_name};
use basalt_idl::{thrift1, thrift2};
use basalt_security::rights::{Actions, Entry, Scope};

use crate::service::admin::rights;
use crate::service::{AdminCall, Failure};

/// A permission: user, actions and object, of either service.
#[derive(Debug)]
pub(super) struct Entity<'a> {
    user: &'a str,
    actions: &'a str,
    /// Decides which of the two names counts. The services have the same codes.
    scope: i32,
    table: Option<&'a [u8]>,
    namespace: Option<&'a str>,
}

const TABLE: i32 = thrift1::TPermissionScope::TABLE.0;
const NAMESPACE: i32 = thrift1::TPermissionScope::NAMESPACE.0;

impl<'a> From<&'a thrift1::TAccessControlEntity> for Entity<'a> {
    fn from(entity: &'a thrift1::TAccessControlEntity) -> Self {
        Self {
            user: &entity.username,
            actions: &entity.actions,
            scope: entity.scope.0,
            table: entity.table_name.as_deref(),
            namespace: entity.ns_name.as_deref(),
        }
    }
}

impl<'a> From<&'a thrift2::TAccessControlEntity> for Entity<'a> {
    fn from(entity: &'a thrift2::TAccessControlEntity) -> Self {
        Self {
            user: &entity.username,
            actions: &entity.actions,
            scope: entity.scope.0,
            table: entity.table_name.as_deref().map(str::as_bytes),
            namespace: entity.ns_name.as_deref(),
        }
    }
}

/// Grants the actions, in addition to those that the user has, as HBase's gateway does.
pub(super) fn grant<'a>(call: &AdminCall, entity: impl Into<Entity<'a>>) -> Result<bool, Failure> {
    rights::grant(call, &entry(&entity.into())?, true)?;
    Ok(true)
}

/// Revokes the actions.
pub(super) fn revoke<'a>(call: &AdminCall, entity: impl Into<Entity<'a>>) -> Result<bool, Failure> {
    let Entry {
        grantee,
        scope,
        actions,
    } = entry(&entity.into())?;
    rights::revoke(call, &grantee, &scope, actions)?;
    Ok(true)
}

fn entry(entity: &Entity<'_>) -> Result<Entry, Failure> {
    let refuse = |message: String| Err(Failure::illegal_argument(message));
    if entity.user.is_empty() {
        return refuse("the user name is empty".into());
    }
    if entity.actions.is_empty() {
        return refuse("actions is empty; it takes letters of RWXCA".into());
    }
    let actions: Actions = entity.actions.parse().map_err(|error| illegal(&error))?;
    let scope = match (entity.scope, entity.table, entity.namespace) {
        (TABLE, None, _) => return refuse("the scope is TABLE, but tableName is missing".into()),
        (TABLE, Some(name), _) => {
            Scope::table(TableName::parse(name)?, None, None).map_err(|error| illegal(&error))?
        }
        (NAMESPACE, _, None) => return refuse("the scope is NAMESPACE, but nsName is missing".into()),
        (NAMESPACE, _, Some(name)) => {
            check_namespace_name(name)?;
            Scope::Namespace(name.to_owned())
        }
        (scope, ..) => return refuse(format!("unknown permission scope {scope}")),
    };
    Ok(Entry {
        grantee: rights::grantee(entity.user)?,
        scope,
        actions,
    })
}

fn illegal(error: &basalt_security::Error) -> Failure {
    Failure::illegal_argument(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let entity = |scope, actions: &str, table: Option<&str>, namespace: Option<&str>| {
            thrift2::TAccessControlEntity {
                username: "bob".into(),
                scope,
                actions: actions.into(),
                table_name: table.map(Into::into),
                ns_name: namespace.map(Into::into),
            }
        };
        let (table, namespace) = (
            thrift2::TPermissionScope::TABLE,
            thrift2::TPermissionScope::NAMESPACE,
        );
        for (wrong, answer) in [
            (entity(table, "RZ", Some("t"), None), "RZ"),
            (entity(table, "", Some("t"), None), "empty"),
            (entity(table, "R", None, Some("ns")), "tableName"),
            (entity(namespace, "R", Some("t"), None), "nsName"),
            (entity(table, "R", Some("a/b"), None), "Illegal character"),
            (entity(namespace, "R", None, Some("n-s")), "Illegal character"),
            (entity(thrift2::TPermissionScope(7), "R", None, None), "7"),
        ] {
            let failure = entry(&Entity::from(&wrong)).unwrap_err();
            assert!(failure.message().contains(answer), "{wrong:?}: {failure:?}");
        }
        for right in [
            entity(table, "RWXCA", Some("ns:t"), None),
            entity(namespace, "R", None, Some("ns")),
        ] {
            entry(&Entity::from(&right)).unwrap();
        }
    }
}

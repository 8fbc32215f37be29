//! `grant` and `revoke`, which both services have. There is no access control: the answer is that of an HBase
//! whose AccessController coprocessor is not loaded, after the arguments were checked.

use basalt_engine::schema::{TableName, check_namespace_name};
use basalt_idl::{thrift1, thrift2};

use crate::service::admin::cluster;
use crate::service::{AdminCall, Failure};

/// HBase's permissions: read, write, execute, create, administer.
const ACTIONS: &str = "RWXCA";

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

/// Answers a grant or a revoke; never with success.
pub(super) fn change<'a>(call: &AdminCall, entity: impl Into<Entity<'a>>) -> Result<bool, Failure> {
    let entity = entity.into();
    cluster::operate(call, |_| answer(&entity))
}

fn answer(entity: &Entity<'_>) -> Result<bool, Failure> {
    check(entity)?;
    Err(Failure::do_not_retry(
        "java.lang.UnsupportedOperationException: org.apache.hadoop.hbase.security.access.AccessController is not loaded",
    ))
}

fn check(entity: &Entity<'_>) -> Result<(), Failure> {
    let refuse = |message: String| Err(Failure::illegal_argument(message));
    if entity.user.is_empty() {
        return refuse("the user name is empty".into());
    }
    if entity.actions.is_empty() {
        return refuse(format!("actions is empty; it takes letters of {ACTIONS}"));
    }
    if let Some(unknown) = entity.actions.chars().find(|action| !ACTIONS.contains(*action)) {
        return refuse(format!(
            "actions has the unknown letter {unknown:?}; it takes letters of {ACTIONS}"
        ));
    }
    match (entity.scope, entity.table, entity.namespace) {
        (TABLE, None, _) => refuse("the scope is TABLE, but tableName is missing".into()),
        (TABLE, Some(name), _) => Ok(TableName::parse(name).map(drop)?),
        (NAMESPACE, _, None) => refuse("the scope is NAMESPACE, but nsName is missing".into()),
        (NAMESPACE, _, Some(name)) => Ok(check_namespace_name(name)?),
        (scope, ..) => refuse(format!("unknown permission scope {scope}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked_before_the_answer() {
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
        for (entity, answer) in [
            (entity(table, "RWXCA", Some("ns:t"), None), "is not loaded"),
            (entity(namespace, "R", None, Some("ns")), "is not loaded"),
            (entity(table, "RZ", Some("t"), None), "'Z'"),
            (entity(table, "", Some("t"), None), "empty"),
            (entity(table, "R", None, Some("ns")), "tableName"),
            (entity(namespace, "R", Some("t"), None), "nsName"),
            (entity(table, "R", Some("a/b"), None), "Illegal character"),
            (entity(namespace, "R", None, Some("n-s")), "Illegal character"),
            (entity(thrift2::TPermissionScope(7), "R", None, None), "7"),
        ] {
            let failure = super::answer(&Entity::from(&entity)).unwrap_err();
            assert!(failure.message().contains(answer), "{entity:?}: {failure:?}");
        }
    }
}

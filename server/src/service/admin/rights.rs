//! Rights of users: grant, revoke, list (HBase: `AccessController`).
//!
//! Each call needs the right to administer the scope that it is about. Without users everything is
//! allowed to everybody, and grants are refused: they would have no effect.

use basalt_engine::schema::{ACL_TABLE, TableName};
use basalt_security::rights::{Actions, Entry, Grantee, Listed, Rights, Scope, Subject, Target as On};
use basalt_security::users::Users;

use super::{AdminCall, run_admin};
use crate::security::{Action, Target};
use crate::service::Failure;

/// Text of the refusal where no rights are checked: that of an HBase without access control.
const OFF: &str = "java.lang.UnsupportedOperationException: org.apache.hadoop.hbase.security.access.AccessController \
                   is not loaded";

fn needs_users(call: &AdminCall) -> Result<(), Failure> {
    if call.server().security().authenticates() {
        Ok(())
    } else {
        Err(Failure::do_not_retry(OFF))
    }
}

fn target(scope: &Scope) -> Target<'_> {
    match scope {
        Scope::Global => Target::Server,
        // The right to administer the namespace itself, not the server.
        Scope::Namespace(name) => Target::NamespaceRights(name),
        Scope::Table { table, .. } => Target::Table(table),
    }
}

/// Fails if a change is about a superuser and its caller is none.
fn check_grantee(call: &AdminCall, grantee: &Grantee) -> Result<(), Failure> {
    let security = call.server().security();
    let Grantee::User(name) = grantee else {
        return Ok(());
    };
    let is_by_superuser = call
        .caller()
        .proven_user()
        .is_some_and(|user| security.is_superuser(user));
    if security.is_superuser(name) && !is_by_superuser {
        let text = format!("Superuser {name} cannot be changed by others");
        return Err(Failure::access_denied(text));
    }
    Ok(())
}

/// Grants actions, in addition to those that the grantee has or in their place.
pub(crate) fn grant(call: &AdminCall, entry: &Entry, merge: bool) -> Result<(), Failure> {
    run_admin(call, Action::Admin, target(&entry.scope), |_| {
        needs_users(call)?;
        if entry.scope.is_acl_table() {
            return Err(Failure::illegal_argument(
                "the rows of hbase:acl with its own name are global rights: grant them without a table",
            ));
        }
        check_grantee(call, &entry.grantee)?;
        let what = format!("grant {} on {}", entry.actions, entry.scope);
        let subject = entry.grantee.to_string();
        let security = call.server().security();
        let granted = security.change_rights(call.caller(), &subject, &what, |rights| {
            rights.grant(entry.clone(), merge)
        });
        granted.map_err(|error| Failure::illegal_argument(error.to_string()))
    })
}

/// Revokes actions; without actions the whole entry.
pub(crate) fn revoke(
    call: &AdminCall,
    grantee: &Grantee,
    scope: &Scope,
    actions: Actions,
) -> Result<(), Failure> {
    run_admin(call, Action::Admin, target(scope), |_| {
        needs_users(call)?;
        check_grantee(call, grantee)?;
        let what = format!("revoke {actions} on {scope}");
        let security = call.server().security();
        let revoked = security.change_rights(call.caller(), &grantee.to_string(), &what, |rights| {
            Ok(rights.revoke(grantee, scope, actions))
        });
        revoked
            .map(drop)
            .map_err(|error| Failure::illegal_argument(error.to_string()))
    })
}

/// The subject of a list of permissions.
#[derive(Debug)]
pub(crate) enum About {
    Global,
    Namespace(String),
    Table {
        table: TableName,
        family: Option<Vec<u8>>,
        qualifier: Option<Vec<u8>>,
    },
}

/// The entries for something, of one user if it is given. Superusers stand in the list of global entries.
pub(crate) fn list(call: &AdminCall, about: &About, user: Option<&str>) -> Result<Vec<Entry>, Failure> {
    let (listed, of) = match about {
        About::Global => (Listed::Global, Target::Server),
        About::Namespace(name) => (Listed::Namespace(name), Target::NamespaceRights(name)),
        About::Table {
            table,
            family,
            qualifier,
        } => (
            Listed::Table(table, family.as_deref(), qualifier.as_deref()),
            Target::Table(table),
        ),
    };
    run_admin(call, Action::Admin, of, |_| {
        let security = call.server().security();
        let users = security.users();
        let grantee = user.filter(|user| !user.is_empty()).map(grantee).transpose()?;
        let groups = grantee.as_ref().map(|grantee| groups(&users, grantee));
        let wanted = grantee.as_ref().zip(groups.as_deref());
        let mut entries = security.rights().list(listed, wanted);
        if matches!(about, About::Global) && grantee.is_none() {
            entries.extend(users.superusers().map(|name| Entry {
                grantee: Grantee::User(name.to_owned()),
                scope: Scope::Global,
                actions: Actions::ALL,
            }));
        }
        Ok(entries)
    })
}

/// A user or group by its name.
pub(crate) fn grantee(name: &str) -> Result<Grantee, Failure> {
    name.parse()
        .map_err(|error: basalt_security::Error| Failure::illegal_argument(error.to_string()))
}

fn groups(users: &Users, grantee: &Grantee) -> Vec<String> {
    match grantee {
        Grantee::User(name) => users
            .user(name)
            .map(|user| user.groups.clone())
            .unwrap_or_default(),
        Grantee::Group(_) => Vec::new(),
    }
}

/// Whether a user has each of these rights. One may ask about oneself.
pub(crate) fn has(
    call: &AdminCall,
    user: Option<&str>,
    asked: &[(Scope, Actions)],
) -> Result<Vec<bool>, Failure> {
    let own = call.caller().user_name();
    let action = match user {
        Some(user) if Some(user) != own => Action::Admin,
        _ => Action::Connect,
    };
    run_admin(call, action, Target::Server, |_| {
        let security = call.server().security();
        let (users, rights) = (security.users(), security.rights());
        let name = user.or(own).unwrap_or_default();
        let found = users.active_user(name).ok();
        let subject = Subject {
            user: name,
            groups: found.map_or(&[], |user| &user.groups),
            superuser: found.is_some_and(|user| user.superuser),
        };
        let has_all = |(scope, actions): &(Scope, Actions)| {
            let on = match scope {
                Scope::Global => On::Global,
                Scope::Namespace(name) => On::Namespace(name),
                Scope::Table { table, .. } => match scope.family() {
                    None => On::Table(table),
                    Some(family) => On::Column(table, family, scope.qualifier()),
                },
            };
            !security.authenticates() || actions.iter().all(|action| rights.allowed(&subject, action, on))
        };
        Ok(asked.iter().map(has_all).collect())
    })
}

/// Fails unless the caller has all of these rights.
pub(crate) fn check(call: &AdminCall, asked: &[(Scope, Actions)]) -> Result<(), Failure> {
    let held = has(call, None, asked)?;
    let missing = asked.iter().zip(held).find(|(_, is_held)| !is_held);
    let Some(((scope, actions), _)) = missing else {
        return Ok(());
    };
    let actions: Vec<&str> = actions
        .iter()
        .map(basalt_security::rights::Action::name)
        .collect();
    Err(Failure::access_denied(format!(
        "Insufficient permissions for user '{}' ({scope}, action={})",
        call.caller().user_name().unwrap_or("anonymous"),
        actions.join(",")
    )))
}

/// Whether it is `hbase:acl`, the table of rights.
pub(crate) fn is_acl(table: &TableName) -> bool {
    table.is_system() && table.qualifier() == ACL_TABLE
}

/// Gives the creator of a table all rights to it, as HBase does.
pub(super) fn own(call: &AdminCall, table: &TableName) -> Result<(), Failure> {
    let security = call.server().security();
    if !security.authenticates() {
        return Ok(());
    }
    let owned = security.own(call.caller(), table);
    owned.map_err(|error| {
        Failure::plain_io(format!(
            "{table} was created, and its owner has no rights: {error}"
        ))
    })
}

/// Drops the rights to what is gone.
pub(super) fn drop_rights(
    call: &AdminCall,
    is_of: impl Fn(&Scope) -> bool,
    drop: impl FnOnce(&mut Rights),
) -> Result<(), Failure> {
    let dropped = call
        .server()
        .security()
        .drop_rights(call.caller(), |entry| is_of(&entry.scope), drop);
    dropped.map_err(|error| Failure::plain_io(format!("the rights to it remain: {error}")))
}

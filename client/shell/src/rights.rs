//! `grant`, `revoke` and `user_permission`, over native RPC, as HBase's shell makes these calls.
//!
//! A scope is everything, `'@namespace'`, or a table with a family and a qualifier behind it.

use basalt_client::Error;
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::MasterServiceMethod as Method;
use basalt_idl::native::messages::permission::{Action, Type};
use bytes::Bytes;

use super::arguments::Arguments;
use super::cluster::table_name;
use super::escape::printable;
use super::session::{Outcome, Session};
use super::{ShellError, ShellResult};

/// The letters of the actions, in HBase's order.
const LETTERS: [(char, Action); 5] = [
    ('R', Action::Read),
    ('W', Action::Write),
    ('X', Action::Exec),
    ('C', Action::Create),
    ('A', Action::Admin),
];

impl Session {
    /// Adds actions to those that a user or group has.
    pub(super) async fn grant(&mut self, mut arguments: Arguments) -> Outcome {
        let user = arguments.bytes("a user, or a group as '@group'")?;
        let actions = actions(&arguments.text("permissions, such as 'RW'")?)?;
        let permission = self.permission(&mut arguments, actions).await?;
        let request = pb::GrantRequest {
            user_permission: pb::UserPermission {
                user: user.into(),
                permission,
            },
            merge_existing_permissions: Some(true),
        };
        let done: ShellResult<pb::GrantResponse> = self.ask(Method::Grant, &request).await;
        done.map_err(with_remedy)?;
        Ok(None)
    }

    /// Takes all actions of a scope from a user or group.
    pub(super) async fn revoke(&mut self, mut arguments: Arguments) -> Outcome {
        let user = arguments.bytes("a user, or a group as '@group'")?;
        let permission = self.permission(&mut arguments, Vec::new()).await?;
        let request = pb::RevokeRequest {
            user_permission: pb::UserPermission {
                user: user.into(),
                permission,
            },
        };
        let done: ShellResult<pb::RevokeResponse> = self.ask(Method::Revoke, &request).await;
        done.map_err(with_remedy)?;
        Ok(None)
    }

    /// Lists who has which actions.
    pub(super) async fn user_permission(&mut self, mut arguments: Arguments) -> Outcome {
        let about = arguments.optional_text("a table, '@namespace' or '.*'")?;
        arguments.end()?;
        let mut entries = Vec::new();
        match about.as_deref() {
            None => entries.extend(self.permissions(Type::Global, None, None).await?),
            Some(".*") => {
                for table in self.client.list_tables(None).await? {
                    let table = table_name(&table.to_string())?;
                    entries.extend(self.permissions(Type::Table, None, Some(table)).await?);
                }
            }
            Some(name) => match name.strip_prefix('@') {
                Some(namespace) => {
                    let namespace = Bytes::copy_from_slice(namespace.as_bytes());
                    entries.extend(self.permissions(Type::Namespace, Some(namespace), None).await?);
                }
                None => {
                    entries.extend(
                        self.permissions(Type::Table, None, Some(table_name(name)?))
                            .await?,
                    );
                }
            },
        }
        let rows: Vec<Vec<String>> = entries
            .iter()
            .map(|entry| vec![printable(&entry.user), shown(&entry.permission)])
            .collect();
        self.output
            .grid(&["User", "Namespace,Table,Family,Qualifier:Permission"], &rows)?;
        self.print_count(rows.len())?;
        Ok(None)
    }

    /// The permission whose scope is the rest of the arguments: something that is there, as HBase's shell
    /// demands.
    async fn permission(
        &mut self,
        arguments: &mut Arguments,
        action: Vec<i32>,
    ) -> ShellResult<pb::Permission> {
        let scope = arguments.optional_text("a table or '@namespace'")?;
        let family = arguments.optional_bytes("a family")?;
        let qualifier = arguments.optional_bytes("a qualifier")?;
        arguments.end()?;
        let mut permission = pb::Permission::default();
        match scope.as_deref().map(|scope| (scope, scope.strip_prefix('@'))) {
            None => {
                permission.set_type(Type::Global);
                permission.global_permission = Some(pb::GlobalPermission { action });
            }
            Some((_, Some(namespace))) if family.is_none() => {
                self.client.describe_namespace(namespace).await?;
                permission.set_type(Type::Namespace);
                permission.namespace_permission = Some(pb::NamespacePermission {
                    namespace_name: Some(Bytes::copy_from_slice(namespace.as_bytes())),
                    action,
                });
            }
            Some((_, Some(_))) => {
                let text = "a namespace has no families: name the table".to_owned();
                return Err(ShellError::Arguments(text));
            }
            Some((table, None)) => {
                if !self.client.table_exists(table).await? {
                    return Err(ShellError::Arguments(format!(
                        "there is no table {table}; list shows those that there are"
                    )));
                }
                permission.set_type(Type::Table);
                permission.table_permission = Some(pb::TablePermission {
                    table_name: Some(table_name(table)?),
                    family: family.map(Bytes::from),
                    qualifier: qualifier.map(Bytes::from),
                    action,
                });
            }
        }
        Ok(permission)
    }

    async fn permissions(
        &mut self,
        kind: Type,
        namespace_name: Option<Bytes>,
        table_name: Option<pb::TableName>,
    ) -> ShellResult<Vec<pb::UserPermission>> {
        let request = pb::GetUserPermissionsRequest {
            r#type: Some(kind.into()),
            table_name,
            namespace_name,
            ..pb::GetUserPermissionsRequest::default()
        };
        let answer: ShellResult<pb::GetUserPermissionsResponse> =
            self.ask(Method::GetUserPermissions, &request).await;
        Ok(answer.map_err(with_remedy)?.user_permission)
    }
}

/// A server without users has no rights, and says that in HBase's words.
fn with_remedy(error: ShellError) -> ShellError {
    match &error {
        ShellError::Client(Error::Server { .. } | Error::Remote(_))
            if error.to_string().contains("AccessController") =>
        {
            let text = "rights need users, and this server has none: `basalt user create` makes one (docs/security.md)";
            ShellError::Refused(text.to_owned())
        }
        _ => error,
    }
}

/// The actions of letters.
fn actions(letters: &str) -> ShellResult<Vec<i32>> {
    let mut actions = Vec::new();
    for letter in letters.chars() {
        let Some((_, action)) = LETTERS.iter().find(|(known, _)| *known == letter) else {
            let text = format!("'{letter}' is no permission: they are R, W, X, C and A");
            return Err(ShellError::Arguments(text));
        };
        actions.push((*action).into());
    }
    if actions.is_empty() {
        let text = "grant needs permissions, such as 'RW'; revoke takes all of them".to_owned();
        return Err(ShellError::Arguments(text));
    }
    Ok(actions)
}

/// A permission as HBase's shell prints it.
fn shown(permission: &pb::Permission) -> String {
    let name = |bytes: Option<&Bytes>| bytes.map(|bytes| printable(bytes)).unwrap_or_default();
    let (scope, actions) = match permission.r#type() {
        Type::Global => {
            let part = permission.global_permission.as_ref();
            (",,,".to_owned(), part.map(|part| &part.action))
        }
        Type::Namespace => {
            let part = permission.namespace_permission.as_ref();
            let namespace = name(part.and_then(|part| part.namespace_name.as_ref()));
            (format!("{namespace},,,"), part.map(|part| &part.action))
        }
        Type::Table => {
            let part = permission.table_permission.as_ref();
            let table = part.and_then(|part| part.table_name.as_ref());
            let namespace = name(table.map(|table| &table.namespace));
            // HBase prints the name as its clients write it: without the namespace `default`.
            let table = table.map(|table| match &table.namespace[..] {
                b"default" => printable(&table.qualifier),
                _ => format!("{namespace}:{}", printable(&table.qualifier)),
            });
            let table = table.unwrap_or_default();
            let family = name(part.and_then(|part| part.family.as_ref()));
            let qualifier = name(part.and_then(|part| part.qualifier.as_ref()));
            (
                format!("{namespace},{table},{family},{qualifier}"),
                part.map(|part| &part.action),
            )
        }
    };
    let actions: Vec<&str> = actions
        .into_iter()
        .flatten()
        .filter_map(|number| Action::try_from(*number).ok())
        .map(|action| action.as_str_name())
        .collect();
    format!("{scope}: [Permission: actions={}]", actions.join(","))
}

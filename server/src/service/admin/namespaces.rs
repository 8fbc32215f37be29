//! Namespaces.

use basalt_engine::Error;
use basalt_engine::schema::NamespaceDescriptor;
use basalt_security::rights::Scope;

use super::{AdminCall, run_admin};
use crate::security::{Action, Target};
use crate::service::{Failure, quotas};

pub(crate) fn create(call: &AdminCall, namespace: NamespaceDescriptor) -> Result<(), Failure> {
    let name = namespace.name.clone();
    run_admin(call, Action::Admin, Target::Namespace(&name), |backend| {
        backend.create_namespace(namespace)
    })
}

/// Replaces a namespace's descriptor.
pub(crate) fn alter(call: &AdminCall, namespace: NamespaceDescriptor) -> Result<(), Failure> {
    let name = namespace.name.clone();
    run_admin(call, Action::Admin, Target::Namespace(&name), |backend| {
        backend.alter_namespace(namespace)
    })
}

/// Drops an empty namespace, and its quotas.
pub(crate) fn drop(call: &AdminCall, name: &str) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Namespace(name), |backend| {
        backend.drop_namespace(name)?;
        let is_of = |scope: &Scope| matches!(scope, Scope::Namespace(other) if other == name);
        super::rights::drop_rights(call, is_of, |rights| rights.drop_namespace(name))?;
        quotas::remove_for_namespace(call.server(), name)
    })
}

/// All namespaces, by name.
pub(crate) fn list(call: &AdminCall) -> Result<Vec<NamespaceDescriptor>, Failure> {
    run_admin(call, Action::Connect, Target::Server, |backend| {
        backend.namespaces()
    })
}

/// The namespace of that name. The failure names those that exist.
pub(crate) fn describe(call: &AdminCall, name: &str) -> Result<NamespaceDescriptor, Failure> {
    run_admin(call, Action::Know, Target::Namespace(name), |backend| {
        let namespaces = backend.namespaces()?;
        let found = namespaces.iter().find(|namespace| namespace.name == name);
        found.cloned().ok_or_else(|| {
            let known: Vec<&String> = namespaces.iter().map(|namespace| &namespace.name).collect();
            Error::no_such_namespace(name, known).into()
        })
    })
}

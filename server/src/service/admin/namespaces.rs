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
        backend.create_namespace(namespace)?;
        call.changed("created", Target::Namespace(&name));
        Ok(())
    })
}

/// Replaces a namespace's descriptor.
pub(crate) fn alter(call: &AdminCall, namespace: NamespaceDescriptor) -> Result<(), Failure> {
    let name = namespace.name.clone();
    run_admin(call, Action::Admin, Target::Namespace(&name), |backend| {
        backend.alter_namespace(namespace)?;
        call.changed("altered", Target::Namespace(&name));
        Ok(())
    })
}

/// Drops an empty namespace, and its quotas.
pub(crate) fn drop(call: &AdminCall, name: &str) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Namespace(name), |backend| {
        backend.drop_namespace(name)?;
        call.changed("dropped", Target::Namespace(name));
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

/// Those of the namespaces whose descriptors the caller may see. Names are free, as in HBase.
pub(crate) fn shown(call: &AdminCall, mut namespaces: Vec<NamespaceDescriptor>) -> Vec<NamespaceDescriptor> {
    namespaces.retain(|namespace| call.shows(Action::Know, Target::Namespace(&namespace.name)));
    namespaces
}

/// The namespace of that name, for those that may administer it. The failure names those that exist.
pub(crate) fn describe(call: &AdminCall, name: &str) -> Result<NamespaceDescriptor, Failure> {
    run_admin(call, Action::Know, Target::Namespace(name), |backend| {
        named(&backend.namespaces()?, name)
    })
}

/// As [`describe`]; `None` if there is no namespace of that name.
pub(crate) fn find(call: &AdminCall, name: &str) -> Result<Option<NamespaceDescriptor>, Failure> {
    run_admin(call, Action::Know, Target::Namespace(name), |backend| {
        let namespaces = backend.namespaces()?;
        Ok(namespaces.into_iter().find(|namespace| namespace.name == name))
    })
}

/// Fails unless there is a namespace of that name. The failure names those that exist.
pub(super) fn check_exists(call: &AdminCall, name: &str) -> Result<(), Failure> {
    named(&list(call)?, name).map(|_| ())
}

fn named(namespaces: &[NamespaceDescriptor], name: &str) -> Result<NamespaceDescriptor, Failure> {
    if let Some(found) = namespaces.iter().find(|namespace| namespace.name == name) {
        return Ok(found.clone());
    }
    let known: Vec<&String> = namespaces.iter().map(|namespace| &namespace.name).collect();
    Err(Error::no_such_namespace(name, known).into())
}

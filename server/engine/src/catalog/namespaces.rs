//! Namespaces. The texts of refusals are HBase's.

use super::Catalog;
use crate::error::{Error, Result};
use crate::manifest::ManifestEdit;
use crate::schema::limits::NAMESPACES;
use crate::schema::{DEFAULT_NAMESPACE, NamespaceDescriptor, SYSTEM_NAMESPACE};

impl Catalog {
    /// Creates a namespace.
    pub(crate) fn create_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        namespace.check()?;
        let _schema = self.schema.lock();
        let tables = self.tables();
        if tables.namespaces.contains_key(&namespace.name) {
            return Err(Error::NamespaceExists(namespace.name));
        }
        NAMESPACES.check_total(
            tables.namespaces.len() + 1,
            self.shared.options.totals.namespaces,
            "drop namespaces that are empty",
        )?;
        drop(tables);
        self.put_namespace(namespace)
    }

    /// Replaces a namespace's configuration.
    pub(crate) fn alter_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        namespace.check_properties()?;
        let _schema = self.schema.lock();
        let tables = self.tables();
        if !tables.namespaces.contains_key(&namespace.name) {
            return Err(tables.no_such_namespace(&namespace.name));
        }
        drop(tables);
        self.put_namespace(namespace)
    }

    /// Makes a namespace what it is in the database that this one follows.
    pub(crate) fn follow_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        let _schema = self.schema.lock();
        self.put_namespace(namespace)
    }

    /// REQUIRES: `schema` is held.
    pub(super) fn put_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &ManifestEdit::PutNamespace(namespace.clone()))?;
        self.publish(&manifest, |tables| {
            tables.namespaces.insert(namespace.name.clone(), namespace);
        });
        Ok(())
    }

    /// Removes an empty namespace that is not reserved.
    pub(crate) fn drop_namespace(&self, name: &str) -> Result<()> {
        let _schema = self.schema.lock();
        let tables = self.tables();
        if !tables.namespaces.contains_key(name) {
            return Err(tables.no_such_namespace(name));
        }
        if [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE].contains(&name) {
            return Err(Error::Constraint(format!(
                "Reserved namespace {name} cannot be removed."
            )));
        }
        let inside = tables
            .sorted()
            .iter()
            .filter(|table| table.name().namespace() == name)
            .count();
        if inside > 0 {
            return Err(Error::Constraint(format!(
                "Only empty namespaces can be removed. Namespace {name} has {inside} tables"
            )));
        }
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &ManifestEdit::DropNamespace(name.into()))?;
        self.publish(&manifest, |tables| {
            tables.namespaces.remove(name);
        });
        Ok(())
    }
}

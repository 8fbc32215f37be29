//! Namespaces. The texts of refusals are HBase's.

use super::Catalog;
use crate::error::{Error, Result};
use crate::manifest::ManifestEdit;
use crate::schema::{DEFAULT_NAMESPACE, NamespaceDescriptor, SYSTEM_NAMESPACE, check_namespace_name};

impl Catalog {
    /// Creates a namespace.
    pub fn create_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        check_namespace_name(&namespace.name)?;
        let _schema = self.schema.lock();
        if self.tables().namespaces.contains_key(&namespace.name) {
            return Err(Error::NamespaceExists(namespace.name));
        }
        self.put_namespace(namespace)
    }

    /// Replaces a namespace's configuration.
    pub fn alter_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        let _schema = self.schema.lock();
        if !self.tables().namespaces.contains_key(&namespace.name) {
            return Err(Error::NoSuchNamespace(namespace.name));
        }
        self.put_namespace(namespace)
    }

    fn put_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &ManifestEdit::PutNamespace(namespace.clone()))?;
        self.publish(&manifest, |tables| {
            tables.namespaces.insert(namespace.name.clone(), namespace);
        });
        Ok(())
    }

    /// Removes an empty namespace that is not reserved.
    pub fn drop_namespace(&self, name: &str) -> Result<()> {
        let _schema = self.schema.lock();
        let tables = self.tables();
        if !tables.namespaces.contains_key(name) {
            return Err(Error::NoSuchNamespace(name.into()));
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

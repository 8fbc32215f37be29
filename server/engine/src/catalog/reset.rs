//! Removes all user tables, snapshots and namespaces.
//!
//! 1. With `schema` held, no table comes or goes. Snapshots are removed one by one.
//! 2. Under the manifest's lock all tables are dropped by edits that share one sync, then all
//!    namespaces. Nothing is disabled or flushed before. A crash in between leaves some of the
//!    tables, each whole.
//! 3. One publication removes all of them, and their regions are discarded.
//! 4. Each region's `updates` lock is taken once: afterwards no writer is left that acts on a
//!    dropped table. Rows that such a writer has put into the log belong to no region, and
//!    recovery skips them.

use std::sync::Arc;

use super::{Catalog, Table, Tables};
use crate::error::Result;
use crate::manifest::ManifestEdit;
use crate::schema::{DEFAULT_NAMESPACE, NamespaceDescriptor, SYSTEM_NAMESPACE};

/// Numbers of the objects that a reset removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// User tables.
    pub tables: usize,
    /// Namespaces that are not reserved.
    pub namespaces: usize,
    /// Snapshots of tables.
    pub snapshots: usize,
}

impl Catalog {
    /// Removes all user tables, whatever their state, all snapshots, and all namespaces that are
    /// not reserved.
    pub(crate) fn reset(&self) -> Result<Removed> {
        let schema = self.schema.lock();
        let before = self.tables();
        for snapshot in before.snapshots.values() {
            self.delete_known_snapshot(snapshot, &schema)?;
        }
        let mut tables = before.sorted();
        tables.retain(|table| !table.name().is_system());
        let is_reserved = |name: &String| [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE].contains(&name.as_str());
        let namespaces: Vec<String> = before
            .namespaces
            .keys()
            .filter(|name| !is_reserved(name))
            .cloned()
            .collect();
        self.drop_all(&tables, &namespaces)?;
        self.clear_reserved(&before)?;
        for region in tables.iter().flat_map(|table| &table.regions) {
            drop(region.updates.write());
            // A writer may have filled a memstore that a freeze has put in place since.
            region.pin_memstores();
        }
        Ok(Removed {
            tables: tables.len(),
            namespaces: namespaces.len(),
            snapshots: before.snapshots.len(),
        })
    }

    /// Removes the properties of the reserved namespaces, and with them quotas, and switches that are off.
    /// REQUIRES: `schema` is held.
    fn clear_reserved(&self, before: &Tables) -> Result<()> {
        for name in [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE] {
            let has_properties = |namespace: &NamespaceDescriptor| !namespace.configuration.is_empty();
            if before.namespaces.get(name).is_some_and(has_properties) {
                self.put_namespace(NamespaceDescriptor {
                    name: name.to_owned(),
                    ..NamespaceDescriptor::default()
                })?;
            }
        }
        Ok(())
    }

    /// Drops the tables, then the namespaces. REQUIRES: `schema` is held, and no other table is in
    /// these namespaces.
    fn drop_all(&self, tables: &[Arc<Table>], namespaces: &[String]) -> Result<()> {
        let dropped: Vec<_> = tables
            .iter()
            .map(|table| ManifestEdit::DropTable(table.name().clone()))
            .collect();
        let emptied: Vec<_> = namespaces
            .iter()
            .cloned()
            .map(ManifestEdit::DropNamespace)
            .collect();
        let mut manifest = self.manifest.lock();
        if !dropped.is_empty() {
            self.append_all(&mut manifest, &dropped)?;
            self.publish(&manifest, |published| {
                for table in tables {
                    published.remove(table.name());
                }
            });
            for table in tables {
                self.discard_regions(&manifest, &table.regions);
            }
        }
        if !emptied.is_empty() {
            self.append_all(&mut manifest, &emptied)?;
            self.publish(&manifest, |published| {
                published.namespaces.retain(|name, _| !namespaces.contains(name));
            });
        }
        Ok(())
    }
}

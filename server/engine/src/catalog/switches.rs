//! Switches of background work. They are durable: an operator who stops splits during a restore finds them
//! stopped after a restart.

use super::Catalog;
use crate::error::Result;
use crate::schema::{NamespaceDescriptor, SYSTEM_NAMESPACE, Switch};

impl Catalog {
    /// Whether the switch is on.
    pub(crate) fn is_on(&self, switch: Switch) -> bool {
        let tables = self.tables();
        let namespace = tables.namespaces.get(SYSTEM_NAMESPACE);
        namespace.is_none_or(|namespace| namespace.is_on(switch))
    }

    /// Turns the switch and returns its state before. A split or merge that runs has ended when it returns.
    pub(crate) fn turn(&self, switch: Switch, on: bool) -> Result<bool> {
        let _schema = self.schema.lock();
        let before = self.is_on(switch);
        if before != on {
            let tables = self.tables();
            let mut namespace = tables
                .namespaces
                .get(SYSTEM_NAMESPACE)
                .cloned()
                .unwrap_or_else(|| NamespaceDescriptor {
                    name: SYSTEM_NAMESPACE.to_owned(),
                    ..NamespaceDescriptor::default()
                });
            drop(tables);
            namespace.turn(switch, on);
            self.put_namespace(namespace)?;
        }
        Ok(before)
    }
}

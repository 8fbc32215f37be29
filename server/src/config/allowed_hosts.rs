//! The names in `http.allowed_hosts`, which a reload of the settings replaces.

use std::sync::Arc;

use parking_lot::RwLock;

/// The names in `http.allowed_hosts`, in lower case. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedHosts(Arc<RwLock<Vec<String>>>);

impl AllowedHosts {
    /// The names of the setting, validated.
    pub(crate) fn new(names: &[String]) -> Self {
        let hosts = Self::default();
        hosts.set(names);
        hosts
    }

    /// Replaces the names.
    pub(crate) fn set(&self, names: &[String]) {
        *self.0.write() = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    }

    /// Whether `name`, in lower case, is one of them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.read().iter().any(|known| known == name)
    }
}

//! Names of tables. The rules for them are in `schema/name.rs`.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Namespace of tables whose name has no `namespace:` in front.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Namespace of system tables.
pub const SYSTEM_NAMESPACE: &str = "hbase";

/// The system table of regions, in the system namespace.
pub const META_TABLE: &str = "meta";

/// A table's name: namespace and qualifier. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// `None`: the default one. Nearly every call names a table in it, and a shared text would make
    /// all threads write to its reference count.
    namespace: Option<Arc<str>>,
    qualifier: Arc<str>,
}

impl TableName {
    /// A name of these parts. `None`: the default namespace.
    /// REQUIRES: the parts follow HBase's rules, and the namespace is not `default`.
    #[inline]
    pub fn of_parts(namespace: Option<&str>, qualifier: &str) -> Self {
        Self {
            namespace: namespace.map(Arc::from),
            qualifier: qualifier.into(),
        }
    }

    /// The namespace, `default` spelled out.
    #[inline]
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The part after the namespace.
    #[inline]
    pub fn qualifier(&self) -> &str {
        &self.qualifier
    }

    /// Takes the full name off the front of `text`.
    #[inline]
    pub fn strip_from<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let rest = match &self.namespace {
            Some(namespace) => text.strip_prefix(namespace.as_bytes())?.strip_prefix(b":")?,
            None => text,
        };
        rest.strip_prefix(self.qualifier.as_bytes())
    }

    /// Whether it lies in the system namespace.
    #[inline]
    pub fn is_system(&self) -> bool {
        self.namespace() == SYSTEM_NAMESPACE
    }

    /// Whether it is `hbase:meta`.
    #[inline]
    pub fn is_meta(&self) -> bool {
        self.is_system() && &*self.qualifier == META_TABLE
    }

    /// HBase's order of tables in lists: as text, with `default:` spelled out.
    #[inline]
    pub fn cmp_as_text(&self, other: &Self) -> Ordering {
        let text = |name: &Self| format!("{}:{}", name.namespace(), name.qualifier);
        text(self).cmp(&text(other))
    }
}

/// By namespace, then by qualifier.
impl Ord for TableName {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_namespace = self.namespace().cmp(other.namespace());
        by_namespace.then_with(|| self.qualifier().cmp(other.qualifier()))
    }
}

impl PartialOrd for TableName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The full name; `default:` is never printed.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}:")?;
        }
        f.write_str(&self.qualifier)
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

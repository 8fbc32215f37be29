//! Tables, families and namespaces: names, options, and the rules for both.
//!
//! Descriptors keep every option the client gave, including those that the engine ignores, and
//! return them; the typed accessors read the options that the engine uses. Defaults are HBase
//! 2.6's.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
pub use crate::name::TableName;
pub use crate::name::{DEFAULT_NAMESPACE, META_TABLE, SYSTEM_NAMESPACE};
pub use crate::text::{Cut, Escaped, escape};

mod cell_limit;
mod family;
mod key_layout;
pub mod limits;
mod name;
mod normalizer;
mod quota;
pub mod rules_of_thumb;
mod sanity;
mod split;
pub mod store_options;
mod switches;
mod table;
mod user_code;
pub mod without_effect;

pub use cell_limit::CellLimit;
pub use family::{
    BloomType, Compression, DataBlockEncoding, FOREVER_SECONDS, FamilyDescriptor, KeepDeletedCells,
};
pub use key_layout::{ATTRIBUTE as KEY_LAYOUT, KeyField, KeyLayout};
pub use name::check_namespace_name;
pub use name::{
    ACL_TABLE, NAMESPACE_TABLE, check_family_name, check_namespace_characters, check_snapshot_name,
};
pub use normalizer::NormalizerOptions;
pub use split::{BusyOptions, RowGroup, SplitOptions, SplitPolicy};
pub use switches::Switch;
pub use table::{Durability, TableDescriptor, TableState};

/// Raw option names and values, ordered by name.
pub type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// A namespace and its free-form configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceDescriptor {
    /// Name of the namespace.
    pub name: String,
    /// Properties, stored and returned unchanged.
    pub configuration: BTreeMap<String, String>,
}

impl NamespaceDescriptor {
    /// Checks HBase's rule for the name, and the limits. A namespace whose name is older than the
    /// limits can be altered under that name: see `Self::check_properties`.
    pub fn check(&self) -> Result<()> {
        check_namespace_name(&self.name)?;
        self.check_properties()
    }

    /// Checks everything but the name: the limits, and that quotas are numbers.
    pub fn check_properties(&self) -> Result<()> {
        self.check_quotas()?;
        limits::check_namespace(self)
    }
}

/// The refusal of a descriptor that makes no sense, in HBase's words (`TableDescriptorChecker`).
fn insane(what: impl fmt::Display) -> Error {
    Error::DoNotRetry(format!(
        "{what} Set hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass sanity checks"
    ))
}

/// An attribute's text, parsed; an unreadable value is an error that names it.
fn parse_attribute<T: std::str::FromStr>(attributes: &Attributes, name: &str, default: T) -> Result<T> {
    match attributes.get(name.as_bytes()) {
        None => Ok(default),
        Some(raw) => std::str::from_utf8(raw)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| Error::DoNotRetry(format!("{name} has the unreadable value {}", Escaped(raw)))),
    }
}

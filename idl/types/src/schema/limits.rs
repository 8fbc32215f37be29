//! Limits of names, options, descriptors, split keys and quotas, and of all of them together.
//!
//! Everything that a client stores is read again: as the name of a directory or file (255 bytes a
//! component), as a row of `hbase:meta` or `hbase:namespace` (32,767 bytes), as part of the
//! manifest (256 MiB), and as lists in memory at every start. The limits keep it within all of
//! these.
//!
//! - Every limit has a name, and every refusal states that name, the size found and the size
//!   allowed. `docs/compatibility.md` lists them; a test compares the page with [`Limit::ALL`].
//! - They are checked once, where a request enters the engine and before anything is durable:
//!   [`TableDescriptor::check`](super::TableDescriptor::check),
//!   [`check_namespace`](super::NamespaceDescriptor::check), `TableName::new`, and the catalog for split keys
//!   and totals.
//! - Stored data is never checked against them, so that a database older than a limit opens again,
//!   and oversized data in it can be removed.
//!
//! Totals are in [`Totals`], so that tests can make them small. A total limits growth: objects
//! beyond the limit stay, and can be removed.

use std::fmt;

use super::{Attributes, NamespaceDescriptor};
use crate::cell::{FAMILY_MAX_BYTES, ROW_MAX_BYTES};
use crate::error::{Error, Result};
pub use crate::text::Brief;

/// Limits of all tables, namespaces and snapshots together. They limit growth: objects beyond the
/// limit stay, and can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of the state that the manifest describes, after a schema change that makes it larger.
    /// Flushes and compactions may continue up to the limit that a start accepts.
    pub manifest_bytes: usize,
    /// Stores: one for each family of each region.
    pub stores: usize,
    /// Namespaces.
    pub namespaces: usize,
    /// Snapshots of tables.
    pub snapshots: usize,
}

impl Totals {
    /// The limits of a server.
    pub const DEFAULT: Self = Self {
        manifest_bytes: 64 << 20,
        stores: 100_000,
        namespaces: 10_000,
        snapshots: 10_000,
    };
}

/// A limit: its name, and how much it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name in refusals and documentation.
    pub name: &'static str,
    /// The most that is allowed.
    pub max: usize,
    /// The unit of `max`.
    pub unit: &'static str,
}

const fn limit(name: &'static str, max: usize, unit: &'static str) -> Limit {
    Limit { name, max, unit }
}

/// Name of a namespace, which names a directory.
pub const NAMESPACE_NAME: Limit = limit("namespace name", 255, "bytes");

/// Name of a table behind its namespace, which names a directory.
pub const TABLE_QUALIFIER: Limit = limit("table qualifier", 255, "bytes");

/// Name of a family, as in HBase.
pub const FAMILY_NAME: Limit = limit("family name", FAMILY_MAX_BYTES, "bytes");

/// Name of a snapshot, which names a directory.
pub const SNAPSHOT_NAME: Limit = limit("snapshot name", 255, "bytes");

/// Families of a table.
pub const FAMILIES: Limit = limit("families of a table", 1_000, "families");

/// Name of an attribute, configuration entry or namespace property.
pub const OPTION_NAME: Limit = limit("option name", 1 << 10, "bytes");

/// Value of an attribute, configuration entry or namespace property.
pub const OPTION_VALUE: Limit = limit("option value", 64 << 10, "bytes");

/// Attributes, configuration entries or properties in one map.
pub const OPTIONS: Limit = limit("options", 1_000, "options");

/// All names and values in the descriptor of a table or namespace.
pub const DESCRIPTOR: Limit = limit("descriptor", 1 << 20, "bytes");

/// Start row of a region. `table,start,id.encoded.` must fit into a row of `hbase:meta`, whatever
/// the name of the table to which a snapshot of the region is cloned.
pub const SPLIT_KEY: Limit = limit("split key", ROW_MAX_BYTES - REGION_NAME_REST_BYTES, "bytes");

/// All split keys of one call.
pub const SPLIT_KEYS: Limit = limit("split keys", 8 << 20, "bytes");

/// Name of a quota's user.
pub const USER_NAME: Limit = limit("user name", 255, "bytes");

/// Namespaces, tables and users with quotas.
pub const QUOTAS: Limit = limit("quotas", 10_000, "quotas");

/// Stores: one for each family of each region.
pub const STORES: Limit = limit("stores", Totals::DEFAULT.stores, "stores");

/// Namespaces.
pub const NAMESPACES: Limit = limit("namespaces", Totals::DEFAULT.namespaces, "namespaces");

/// Snapshots of tables.
pub const SNAPSHOTS: Limit = limit("snapshots", Totals::DEFAULT.snapshots, "snapshots");

/// Encoded state of all tables, namespaces, regions, files and snapshots in the manifest.
pub const MANIFEST: Limit = limit("manifest", Totals::DEFAULT.manifest_bytes, "bytes");

/// The longest name of a region without its start row: namespace, colon, qualifier, comma; comma,
/// 20 digits, dot, 32 digits, dot.
const REGION_NAME_REST_BYTES: usize = NAMESPACE_NAME.max + 1 + TABLE_QUALIFIER.max + 1 + 1 + 20 + 1 + 32 + 1;

impl Limit {
    /// All limits, as documented.
    pub const ALL: [Self; 17] = [
        NAMESPACE_NAME,
        TABLE_QUALIFIER,
        FAMILY_NAME,
        SNAPSHOT_NAME,
        FAMILIES,
        OPTION_NAME,
        OPTION_VALUE,
        OPTIONS,
        DESCRIPTOR,
        SPLIT_KEY,
        SPLIT_KEYS,
        USER_NAME,
        QUOTAS,
        STORES,
        NAMESPACES,
        SNAPSHOTS,
        MANIFEST,
    ];

    /// Refuses `what` if it has more than allowed: the request itself is invalid.
    pub fn check(&self, found: usize, what: impl fmt::Display) -> Result<()> {
        if found <= self.max {
            return Ok(());
        }
        Err(Error::InvalidArgument(format!(
            "{what} has {found} {}; the limit '{}' is {} {}",
            self.unit, self.name, self.max, self.unit
        )))
    }

    /// Refuses a call after which the total would exceed `max`, which is the limit's own unless a
    /// test made it smaller.
    pub fn check_total(&self, found: usize, max: usize, remedy: &str) -> Result<()> {
        if found <= max {
            return Ok(());
        }
        Err(Error::Constraint(format!(
            "the server would have {found} {}; the limit '{}' is {max} {}: {remedy}",
            self.unit, self.name, self.unit
        )))
    }
}

/// Checks the sizes in a namespace's descriptor, except its name.
pub(super) fn check_namespace(namespace: &NamespaceDescriptor) -> Result<()> {
    let what = format_args!("namespace {}", Brief(namespace.name.as_bytes()));
    OPTIONS.check(namespace.configuration.len(), what)?;
    let mut bytes = 0;
    for (name, value) in &namespace.configuration {
        check_option(name.as_bytes(), value.as_bytes(), what)?;
        bytes += name.len() + value.len();
    }
    DESCRIPTOR.check(bytes, format_args!("the descriptor of {what}"))
}

/// Checks the sizes of options of a table or family.
pub(super) fn check_options(options: &Attributes, of: fmt::Arguments<'_>) -> Result<()> {
    OPTIONS.check(options.len(), of)?;
    options
        .iter()
        .try_for_each(|(name, value)| check_option(name, value, of))
}

fn check_option(name: &[u8], value: &[u8], of: fmt::Arguments<'_>) -> Result<()> {
    let shown = Brief(name);
    OPTION_NAME.check(name.len(), format_args!("the name of option {shown} of {of}"))?;
    OPTION_VALUE.check(value.len(), format_args!("the value of option {shown} of {of}"))
}

/// Bytes of the names and values of options.
pub(super) fn bytes_of(options: &Attributes) -> usize {
    options.iter().map(|(name, value)| name.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{FamilyDescriptor, TableDescriptor, TableName};
    use super::*;

    fn table() -> TableDescriptor {
        TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![FamilyDescriptor::new(b"f")])
    }

    fn refusal(table: &TableDescriptor) -> String {
        table.check().unwrap_err().to_string()
    }

    #[test]
    fn a_region_of_any_name_fits_into_a_row_of_meta() {
        assert_eq!(SPLIT_KEY.max + REGION_NAME_REST_BYTES, ROW_MAX_BYTES);
    }

    /// Goal: a value at its limit is accepted, one above it is refused, and the refusal names the
    /// thing, the limit and both sizes.
    #[test]
    fn descriptors_are_accepted_up_to_their_limits() {
        let with = |name: usize, value: usize| {
            let mut table = table();
            table.attributes.insert(vec![b'k'; name], vec![b'v'; value]);
            table
        };
        with(OPTION_NAME.max, OPTION_VALUE.max).check().unwrap();
        assert_eq!(
            refusal(&with(OPTION_NAME.max + 1, 1)),
            format!(
                "the name of option {}... of table t has 1025 bytes; the limit 'option name' is 1024 bytes",
                "k".repeat(48)
            )
        );
        assert!(refusal(&with(1, OPTION_VALUE.max + 1)).contains("the limit 'option value' is 65536 bytes"));
        let many = |count: usize| {
            let mut table = table();
            table.families[0].configuration = (0..count)
                .map(|number| (number.to_string().into_bytes(), Vec::new()))
                .collect();
            table
        };
        many(OPTIONS.max).check().unwrap();
        assert!(
            refusal(&many(OPTIONS.max + 1)).starts_with("family f has 1001 options; the limit 'options'")
        );
        let families = |count: usize| {
            let family = |number: usize| FamilyDescriptor::new(number.to_string().as_bytes());
            TableDescriptor::new(TableName::parse(b"t").unwrap(), (0..count).map(family).collect())
        };
        families(FAMILIES.max).check().unwrap();
        assert!(refusal(&families(FAMILIES.max + 1)).contains("the limit 'families of a table' is 1000"));
    }

    #[test]
    fn a_descriptor_has_a_limit_as_a_whole() {
        let mut table = table();
        let mut left = DESCRIPTOR.max - 1;
        for number in 0_u8.. {
            let value = (left - 1).min(OPTION_VALUE.max);
            table.attributes.insert(vec![number], vec![b'v'; value]);
            left -= value + 1;
            if left == 0 {
                break;
            }
        }
        table.check().unwrap();
        table.attributes.insert(b"x".to_vec(), Vec::new());
        assert_eq!(
            refusal(&table),
            "the descriptor of table t has 1048577 bytes; the limit 'descriptor' is 1048576 bytes"
        );
    }

    #[test]
    fn limits_skip_no_check_when_sanity_checks_are_off() {
        let mut table = table();
        table
            .attributes
            .insert(b"hbase.table.sanity.checks".to_vec(), b"false".to_vec());
        table.check().unwrap();
        table
            .attributes
            .insert(b"k".to_vec(), vec![0; OPTION_VALUE.max + 1]);
        assert!(refusal(&table).contains("option value"));
    }
}

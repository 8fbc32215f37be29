//! How much there is to list: what answers about tables and regions reserve before they are made.
//!
//! [`Tables`](super::Tables) keeps the sum up to date, so that a call need not walk over everything in
//! order to know that it may not.

use std::ops::{AddAssign, SubAssign};

use super::{Catalog, Table};
use crate::schema::{Attributes, TableDescriptor, TableName};

/// Numbers of tables and of their parts, and the bytes of their texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogSize {
    /// Tables.
    pub tables: u64,
    /// Families of all tables.
    pub families: u64,
    /// Attributes and entries of configurations.
    pub options: u64,
    /// Bytes of the tables' names.
    pub name_bytes: u64,
    /// Bytes of names of families, and of names and values of options.
    pub option_bytes: u64,
    /// Regions.
    pub regions: u64,
    /// Bytes of the boundaries of all regions, each with the name of its table.
    pub region_bytes: u64,
}

impl CatalogSize {
    /// The size of a descriptor, without regions.
    pub fn of_descriptor(table: &TableDescriptor) -> Self {
        let mut size = Self {
            tables: 1,
            families: table.families.len() as u64,
            name_bytes: name_bytes(&table.name),
            ..Self::default()
        };
        size.add_options(&table.attributes);
        for family in &table.families {
            size.option_bytes += family.name.len() as u64;
            size.add_options(&family.attributes);
            size.add_options(&family.configuration);
        }
        size
    }

    pub(super) fn of_table(table: &Table) -> Self {
        let mut size = Self::of_descriptor(&table.descriptor);
        size.regions = table.regions.len() as u64;
        let bounds = table.regions.iter().map(|region| {
            let info = region.info();
            (info.start.len() + info.end.len()) as u64
        });
        size.region_bytes = bounds.sum::<u64>() + size.regions * size.name_bytes;
        size
    }

    fn add_options(&mut self, options: &Attributes) {
        self.options += options.len() as u64;
        let bytes = options.iter().map(|(name, value)| name.len() + value.len());
        self.option_bytes += bytes.sum::<usize>() as u64;
    }

    fn parts(&mut self, other: &Self) -> [(&mut u64, u64); 7] {
        [
            (&mut self.tables, other.tables),
            (&mut self.families, other.families),
            (&mut self.options, other.options),
            (&mut self.name_bytes, other.name_bytes),
            (&mut self.option_bytes, other.option_bytes),
            (&mut self.regions, other.regions),
            (&mut self.region_bytes, other.region_bytes),
        ]
    }
}

impl Catalog {
    /// The size of all namespaces, each counted as a table with its properties as options.
    pub(crate) fn namespaces_size(&self) -> CatalogSize {
        let tables = self.tables();
        let mut size = CatalogSize::default();
        for (name, namespace) in &tables.namespaces {
            size.tables += 1;
            size.name_bytes += name.len() as u64;
            size.options += namespace.configuration.len() as u64;
            let options = namespace.configuration.iter();
            size.option_bytes += options
                .map(|(name, value)| (name.len() + value.len()) as u64)
                .sum::<u64>();
        }
        size
    }

    /// The size of a table; nothing if it does not exist.
    pub(crate) fn table_size(&self, name: &TableName) -> CatalogSize {
        self.table(name)
            .map_or_else(|_| CatalogSize::default(), |table| CatalogSize::of_table(&table))
    }
}

fn name_bytes(name: &TableName) -> u64 {
    (name.namespace().len() + 1 + name.qualifier().len()) as u64
}

impl AddAssign for CatalogSize {
    fn add_assign(&mut self, other: Self) {
        for (part, of_other) in self.parts(&other) {
            *part += of_other;
        }
    }
}

impl SubAssign for CatalogSize {
    fn sub_assign(&mut self, other: Self) {
        for (part, of_other) in self.parts(&other) {
            *part -= of_other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::FamilyDescriptor;

    #[test]
    fn a_descriptor_is_counted_with_all_of_its_texts() {
        let mut family = FamilyDescriptor::new(b"fam");
        family.configuration.insert(b"key".to_vec(), b"value".to_vec());
        let name = TableName::parse(b"ns:t").unwrap();
        let mut table = TableDescriptor::new(name, vec![family, FamilyDescriptor::new(b"g")]);
        table.attributes.insert(b"a".to_vec(), vec![b'v'; 100]);
        let expected = CatalogSize {
            tables: 1,
            families: 2,
            options: 2,
            name_bytes: 4,
            option_bytes: 3 + 8 + 1 + 101,
            ..CatalogSize::default()
        };
        assert_eq!(CatalogSize::of_descriptor(&table), expected);
        let mut sum = expected;
        sum += expected;
        sum -= expected;
        assert_eq!(sum, expected);
    }
}

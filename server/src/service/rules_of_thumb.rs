//! HBase's rules of thumb for schemas (the reference guide: "Table Schema Rules Of Thumb"), checked on a
//! table's descriptor and on what it has.
//!
//! Nothing is refused: a broken rule is a warning in the log when a table is created, and a line on its page.

use basalt_engine::schema::{Escaped, TableDescriptor};

/// Most families of a table.
const FAMILIES_MAX: usize = 3;
/// Longest name of a family, in bytes.
const FAMILY_NAME_MAX: usize = 8;
/// Most regions of a table.
const REGIONS_MAX: usize = 100;
/// Size below which a region is small,
const SMALL_REGION_BYTES: u64 = 10 << 30;
/// and above which it is large.
const LARGE_REGION_BYTES: u64 = 50 << 30;
/// Longest row key, in bytes.
const ROW_KEY_MAX: usize = 100;
/// Largest cell.
const CELL_MAX_BYTES: u64 = 10 << 20;

/// A rule that a table breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// What the table has.
    pub(crate) what: String,
    /// The rule, with its reason.
    pub(crate) rule: &'static str,
}

/// What a table has, as far as rules are about it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) regions: usize,
    pub(crate) bytes: u64,
    pub(crate) largest_region_bytes: u64,
    /// Of the first and last keys of store files.
    pub(crate) longest_row_key: usize,
    pub(crate) largest_cell_bytes: u64,
}

/// Rules that the descriptor breaks, and a number of regions.
pub(crate) fn of_descriptor(table: &TableDescriptor, regions: usize) -> Vec<Broken> {
    let mut broken = Vec::new();
    if table.families.len() > FAMILIES_MAX {
        broken.push(Broken {
            what: format!("it has {} families", table.families.len()),
            rule: "one to three families: all families of a region are flushed together, so many of them make many small files",
        });
    }
    let long = table
        .families
        .iter()
        .filter(|family| family.name.len() > FAMILY_NAME_MAX);
    let long: Vec<String> = long.map(|family| Escaped(&family.name).to_string()).collect();
    if !long.is_empty() {
        broken.push(Broken {
            what: format!("the names of families are long: {}", long.join(", ")),
            rule: "short names, one letter if possible: each cell has its family's name",
        });
    }
    if regions > REGIONS_MAX {
        broken.push(Broken {
            what: format!("it has {regions} regions"),
            rule: "50 to 100 regions for a table of one or two families: each has a memstore for each family, and many small ones make many small flushes",
        });
    }
    broken
}

/// Rules that the contents break, besides those of [`of_descriptor`].
pub(crate) fn of_contents(contents: &Contents) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mean = contents.bytes / (contents.regions as u64).max(1);
    if contents.regions > REGIONS_MAX && mean < SMALL_REGION_BYTES {
        broken.push(Broken {
            what: format!("a region has {} MiB on average", mean >> 20),
            rule: "regions of 10 to 50 GiB: merge small ones, or raise region.max_bytes",
        });
    }
    if contents.largest_region_bytes > LARGE_REGION_BYTES {
        broken.push(Broken {
            what: format!("a region has {} GiB", contents.largest_region_bytes >> 30),
            rule: "regions of 10 to 50 GiB: a compaction of a large one takes long",
        });
    }
    if contents.longest_row_key > ROW_KEY_MAX {
        broken.push(Broken {
            what: format!("row keys have up to {} bytes", contents.longest_row_key),
            rule: "short row keys of a fixed length: each cell has its row's key",
        });
    }
    if contents.largest_cell_bytes > CELL_MAX_BYTES {
        broken.push(Broken {
            what: format!("a cell has {} MiB", contents.largest_cell_bytes >> 20),
            rule: "cells of up to 10 MiB: keep larger values as files, and their names in the table",
        });
    }
    broken
}

#[cfg(test)]
mod tests {
    use basalt_engine::schema::{FamilyDescriptor, TableName};

    use super::*;

    fn table(families: &[&str]) -> TableDescriptor {
        let name = TableName::parse(b"t").unwrap();
        let family = |name: &&str| FamilyDescriptor::new(name.as_bytes());
        TableDescriptor::new(name, families.iter().map(family).collect())
    }

    fn whats(broken: Vec<Broken>) -> Vec<String> {
        broken.into_iter().map(|broken| broken.what).collect()
    }

    #[test]
    fn a_good_table_breaks_no_rule_and_each_rule_can_be_broken() {
        assert_eq!(of_descriptor(&table(&["f", "g", "numbers1"]), 100), []);
        assert_eq!(
            whats(of_descriptor(&table(&["a", "b", "c", "family\0name"]), 101)),
            [
                "it has 4 families",
                "the names of families are long: family\\x00name",
                "it has 101 regions"
            ]
        );
        let good = Contents {
            regions: 3,
            bytes: 5,
            largest_region_bytes: 50 << 30,
            longest_row_key: 100,
            largest_cell_bytes: 10 << 20,
        };
        assert_eq!(of_contents(&good), []);
        assert_eq!(of_contents(&Contents::default()), []);
        let bad = Contents {
            regions: 200,
            bytes: 400 << 20,
            largest_region_bytes: 51 << 30,
            longest_row_key: 101,
            largest_cell_bytes: (10 << 20) + 1,
        };
        assert_eq!(
            whats(of_contents(&bad)),
            [
                "a region has 2 MiB on average",
                "a region has 51 GiB",
                "row keys have up to 101 bytes",
                "a cell has 10 MiB"
            ]
        );
    }
}

//! HBase's rules of thumb for schemas (the reference guide: "Table Schema Rules Of Thumb"), checked on a
//! table's descriptor and on its contents.
//!
//! Nothing is rejected. A broken rule is a warning in the log when a table is created, a finding on the
//! table's page, and a line in the report of `basalt-bench model`.

use super::{Escaped, TableDescriptor};

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
const SHORT_KEYS: &str = "short row keys, of at most 100 bytes: each cell has its row's key";
const FIXED_LENGTH: &str = "row keys of a fixed length: with another one, 10 sorts before 9 and one key can be the beginning of \
     another, so a scan of a prefix reads foreign rows; pad numbers, or write them as bytes";
/// Largest cell.
const CELL_MAX_BYTES: u64 = 10 << 20;

/// A rule that a table breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The table's property that breaks it.
    pub what: String,
    /// The rule, with its reason.
    pub rule: &'static str,
    /// How a table that is there keeps it.
    pub cure: &'static str,
}

const NEW_TABLE: &str = "A new table with the schema that the rule asks for, or none if you know why.";
const MERGE: &str =
    "Merge neighbours (merge_region in the shell), and make the next table with fewer splits.";
const SPLIT: &str = "Split it (split in the shell), or lower region.max_bytes.";

/// Shortest and longest of some row keys, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLengths {
    /// The shortest.
    pub shortest: usize,
    /// The longest.
    pub longest: usize,
}

impl KeyLengths {
    /// These lengths and that of one more key.
    pub fn and(lengths: Option<Self>, key: usize) -> Self {
        let (shortest, longest) = lengths.map_or((key, key), |lengths| (lengths.shortest, lengths.longest));
        Self {
            shortest: shortest.min(key),
            longest: longest.max(key),
        }
    }
}

/// A table's contents, as far as rules concern them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contents {
    /// Number of regions.
    pub regions: usize,
    /// Size of all store files.
    pub bytes: u64,
    /// Size of the largest region's store files.
    pub largest_region_bytes: u64,
    /// Lengths of the row keys that are known; `None` if none is.
    pub row_keys: Option<KeyLengths>,
    /// Size of the largest cell.
    pub largest_cell_bytes: u64,
}

/// Rules that the descriptor breaks, and a number of regions.
pub fn of_descriptor(table: &TableDescriptor, regions: usize) -> Vec<Broken> {
    let mut broken = Vec::new();
    if table.families.len() > FAMILIES_MAX {
        broken.push(Broken {
            what: format!("it has {} families", table.families.len()),
            rule: "one to three families: all families of a region are flushed together, so many of them make many small files",
            cure: NEW_TABLE,
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
            cure: NEW_TABLE,
        });
    }
    if let Some(layout) = table.key_layout() {
        match layout.bytes() {
            None => broken.push(Broken {
                what: "the last field of its row keys has any length".to_owned(),
                rule: FIXED_LENGTH,
                cure: NEW_TABLE,
            }),
            Some(bytes) if bytes > ROW_KEY_MAX => broken.push(Broken {
                what: format!("its row keys have {bytes} bytes"),
                rule: SHORT_KEYS,
                cure: NEW_TABLE,
            }),
            Some(_) => {}
        }
    }
    if regions > REGIONS_MAX {
        broken.push(Broken {
            what: format!("it has {regions} regions"),
            rule: "50 to 100 regions for a table of one or two families: each has a memstore for each family, and many small ones make many small flushes",
            cure: MERGE,
        });
    }
    broken
}

/// Rules that the contents break, besides those of [`of_descriptor`].
pub fn of_contents(contents: &Contents) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mean = contents.bytes / (contents.regions as u64).max(1);
    if contents.regions > REGIONS_MAX && mean < SMALL_REGION_BYTES {
        broken.push(Broken {
            what: format!("a region has {} MiB on average", mean >> 20),
            rule: "regions of 10 to 50 GiB: merge small ones, or raise region.max_bytes",
            cure: MERGE,
        });
    }
    if contents.largest_region_bytes > LARGE_REGION_BYTES {
        broken.push(Broken {
            what: format!("a region has {} GiB", contents.largest_region_bytes >> 30),
            rule: "regions of 10 to 50 GiB: a compaction of a large one takes long",
            cure: SPLIT,
        });
    }
    if let Some(KeyLengths { shortest, longest }) = contents.row_keys {
        if longest > ROW_KEY_MAX {
            broken.push(Broken {
                what: format!("row keys have up to {longest} bytes"),
                rule: SHORT_KEYS,
                cure: NEW_TABLE,
            });
        }
        if shortest < longest {
            broken.push(Broken {
                what: format!("row keys have from {shortest} to {longest} bytes"),
                rule: FIXED_LENGTH,
                cure: NEW_TABLE,
            });
        }
    }
    if contents.largest_cell_bytes > CELL_MAX_BYTES {
        broken.push(Broken {
            what: format!("a cell has {} MiB", contents.largest_cell_bytes >> 20),
            rule: "cells of up to 10 MiB: keep larger values as files, and their names in the table",
            cure: NEW_TABLE,
        });
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FamilyDescriptor, KEY_LAYOUT, TableName};

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
            row_keys: Some(KeyLengths {
                shortest: 100,
                longest: 100,
            }),
            largest_cell_bytes: 10 << 20,
        };
        assert_eq!(of_contents(&good), []);
        assert_eq!(of_contents(&Contents::default()), []);
        let bad = Contents {
            regions: 200,
            bytes: 400 << 20,
            largest_region_bytes: 51 << 30,
            row_keys: Some(KeyLengths::and(Some(KeyLengths::and(None, 101)), 7)),
            largest_cell_bytes: (10 << 20) + 1,
        };
        assert_eq!(
            whats(of_contents(&bad)),
            [
                "a region has 2 MiB on average",
                "a region has 51 GiB",
                "row keys have up to 101 bytes",
                "row keys have from 7 to 101 bytes",
                "a cell has 10 MiB"
            ]
        );
    }

    #[test]
    fn a_declared_key_layout_is_checked() {
        let with = |layout: &str| {
            let mut table = table(&["f"]);
            table.attributes.insert(KEY_LAYOUT.into(), layout.into());
            whats(of_descriptor(&table, 1))
        };
        assert_eq!(with("salt:1, user:8, reversed_time:8"), [] as [&str; 0]);
        assert_eq!(with("user:101"), ["its row keys have 101 bytes"]);
        assert_eq!(
            with("time:8, name:rest"),
            ["the last field of its row keys has any length"]
        );
    }
}

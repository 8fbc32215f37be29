//! Bulk loads: each load sets all columns of its rows to its number, and one client makes them one
//! after the other.
//!
//! A read of all rows at one moment must show
//!
//! 1. the same number in every column of a row;
//! 2. only numbers of loads that were offered for that row;
//! 3. all rows of a load or none: a row of a load that is seen has its number or a later one;
//! 4. the loads that were acknowledged before the read, or later ones.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::Violation;

/// Rows of each load that was offered, by its number.
pub type Loads = BTreeMap<u64, BTreeSet<Bytes>>;

/// Result of a read: the number in each column of each row.
pub type Found = BTreeMap<Bytes, Vec<u64>>;

/// Checks a read. `columns`: how many each row has. `acknowledged`: for each row, the last load that
/// was acknowledged before the read.
pub fn check(
    found: &Found,
    columns: usize,
    loads: &Loads,
    acknowledged: &BTreeMap<Bytes, u64>,
) -> Result<(), Violation> {
    let mut shown = BTreeMap::new();
    for (row, numbers) in found {
        shown.insert(row, row_of_one_load(row, numbers, columns, loads)?);
    }
    for (row, number) in acknowledged {
        let is = shown.get(row).copied();
        if is.is_none_or(|is| is < *number) {
            let what = format!("load {number} was acknowledged, and the row shows {is:?}");
            return Err(Violation::new("loads", row, what));
        }
    }
    let seen: BTreeSet<u64> = shown.values().copied().collect();
    for number in seen {
        for row in &loads[&number] {
            let is = shown.get(row).copied();
            if is.is_none_or(|is| is < number) {
                let what = format!("another row shows load {number} of both, this one {is:?}");
                return Err(Violation::new("loads", row, what));
            }
        }
    }
    Ok(())
}

fn row_of_one_load(row: &Bytes, numbers: &[u64], columns: usize, loads: &Loads) -> Result<u64, Violation> {
    let wrong = |what: String| Err(Violation::new("loads", row, what));
    let first = numbers.first().copied().unwrap_or_default();
    if numbers.len() != columns || numbers.iter().any(|number| *number != first) {
        return wrong(format!("{numbers:?} instead of one number in {columns} columns"));
    }
    if !loads.get(&first).is_some_and(|rows| rows.contains(row)) {
        return wrong(format!("load {first} was not offered for it"));
    }
    Ok(first)
}

//! Columns and filters of reads, whichever protocol a call came by.

use std::collections::BTreeMap;

use basalt_engine::op::{Columns, FamilySelection};
use bytes::Bytes;

/// Selects columns in the order given, with HBase's rule for overlaps: the last one wins. A family added after some of its
/// columns widens to the whole family; a column added after its family narrows to columns.
pub fn select(columns: impl IntoIterator<Item = (Bytes, Option<Bytes>)>) -> Vec<FamilySelection> {
    let mut families: BTreeMap<Bytes, Columns> = BTreeMap::new();
    for (family, qualifier) in columns {
        let selected = families.entry(family).or_insert(Columns::All);
        match (qualifier, selected) {
            (None, selected) => *selected = Columns::All,
            (Some(qualifier), Columns::Only(qualifiers)) => qualifiers.push(qualifier.to_vec()),
            (Some(qualifier), selected) => *selected = Columns::Only(vec![qualifier.to_vec()]),
        }
    }
    families
        .into_iter()
        .map(|(family, mut columns)| {
            if let Columns::Only(qualifiers) = &mut columns {
                qualifiers.sort_unstable();
                qualifiers.dedup();
            }
            FamilySelection {
                family: family.to_vec(),
                columns,
            }
        })
        .collect()
}

/// Whether a filter may have a regular expression. Compiling one takes milliseconds, which is too
/// long for a network thread.
pub fn has_regex(string: Option<&Bytes>, bytes: Option<&Bytes>) -> bool {
    // The text form has "regexstring" in any letter case; the encoded form has the class
    // RegexStringComparator.
    let names_one = |bytes: &Bytes| bytes.windows(5).any(|word| word.eq_ignore_ascii_case(b"regex"));
    string.is_some_and(names_one) || bytes.is_some_and(names_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HBase: the later of overlapping selections wins.
    #[test]
    fn overlapping_selections() {
        let (f, g) = (Bytes::from_static(b"f"), Bytes::from_static(b"g"));
        let selected = select([
            (f.clone(), Some(Bytes::from_static(b"b"))),
            (f.clone(), None),
            (g.clone(), None),
        ]);
        assert_eq!(
            selected.iter().map(|family| &family.columns).collect::<Vec<_>>(),
            [&Columns::All, &Columns::All]
        );
        let selected = select([
            (f.clone(), None),
            (f.clone(), Some(Bytes::from_static(b"b"))),
            (f, Some(Bytes::from_static(b"a"))),
        ]);
        assert_eq!(
            selected[0].columns,
            Columns::Only(vec![b"a".to_vec(), b"b".to_vec()])
        );
    }
}

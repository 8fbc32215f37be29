//! Arguments shared by calls of all protocols: names of tables, row keys, selections of columns.

use std::cell::RefCell;
use std::collections::BTreeMap;

use basalt_engine::cell::ROW_MAX_BYTES;
use basalt_engine::op::{Columns, FamilySelection};
use basalt_engine::schema::TableName;
use bytes::Bytes;

use super::Failure;
use crate::security::Security;

/// A thread does not keep a longer name.
const KEEP_NAME_BYTES: usize = 256;

thread_local! {
    /// The table of this thread's last call that named one, as the call wrote it. Most calls name the same
    /// one again.
    static LAST_TABLE: RefCell<Option<(Bytes, TableName)>> = const { RefCell::new(None) };
}

/// A table's full name.
pub(crate) fn table(name: Option<&Bytes>) -> Result<TableName, Failure> {
    let name = name.ok_or_else(|| Failure::illegal_argument("the table name is missing"))?;
    LAST_TABLE.with_borrow_mut(|last| match last {
        Some((written, table)) if written == name => Ok(table.clone()),
        _ => {
            let table = TableName::parse(name)?;
            if name.len() <= KEEP_NAME_BYTES {
                // A copy: the name is a piece of the call's message.
                *last = Some((Bytes::copy_from_slice(name), table.clone()));
            }
            Ok(table)
        }
    })
}

/// Fails if a mutation with these attributes asks for rights to its cells alone, or for labels on them, where
/// users have rights: its client relies on rights that are not kept. The first text is HBase's, without cell
/// features (`AccessController.prePut`); without rights at all it ignores both, too.
pub(crate) fn check_cell_rights<'n>(
    security: &Security,
    attributes: impl IntoIterator<Item = &'n str>,
) -> Result<(), Failure> {
    if !security.authenticates() {
        return Ok(());
    }
    for attribute in attributes {
        match attribute {
            "acl" => return Err(Failure::do_not_retry("Cell ACLs cannot be persisted")),
            "VISIBILITY" => return Err(Failure::do_not_retry("Visibility labels cannot be persisted")),
            _ => {}
        }
    }
    Ok(())
}

/// A row key: present, not empty, not longer than HBase allows.
pub(crate) fn row(row: Option<&Bytes>) -> Result<&Bytes, Failure> {
    let row = row.ok_or_else(|| Failure::illegal_argument("Row buffer is null"))?;
    check_row(row)?;
    Ok(row)
}

/// Checks a row key: not empty, not longer than HBase allows.
pub(crate) fn check_row(row: &[u8]) -> Result<&[u8], Failure> {
    if row.is_empty() {
        return Err(Failure::illegal_argument(
            "Row length 0: a row key must not be empty",
        ));
    }
    if row.len() > ROW_MAX_BYTES {
        return Err(Failure::illegal_argument(format!(
            "Row length {} is > {ROW_MAX_BYTES}",
            row.len()
        )));
    }
    Ok(row)
}

/// Selects columns in the order given, with HBase's rule for overlaps: the last one wins. A family added
/// after some of its columns widens to the whole family; a column added after its family narrows to columns.
pub(crate) fn select(columns: impl IntoIterator<Item = (Bytes, Option<Bytes>)>) -> Vec<FamilySelection> {
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
pub(crate) fn has_regex(string: Option<&Bytes>, bytes: Option<&Bytes>) -> bool {
    // The text form has "regexstring" in any letter case; the encoded form has the class
    // RegexStringComparator.
    let names_one = |bytes: &Bytes| bytes.windows(5).any(|word| word.eq_ignore_ascii_case(b"regex"));
    string.is_some_and(names_one) || bytes.is_some_and(names_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    /// Goal: a call uses the table that it names, whatever the call before named, and a long name
    /// is not kept.
    #[test]
    fn each_call_names_its_table() {
        let long = Bytes::from(
            [
                vec![b'n'; KEEP_NAME_BYTES / 2],
                b":".to_vec(),
                vec![b'x'; KEEP_NAME_BYTES / 2],
            ]
            .concat(),
        );
        for name in [
            bytes("t"),
            bytes("t"),
            bytes("ns:t"),
            bytes("t"),
            long,
            bytes("u"),
        ] {
            assert_eq!(table(Some(&name)).unwrap().to_string().as_bytes(), &name[..]);
            let kept = LAST_TABLE.with_borrow(|last| last.as_ref().map(|(written, _)| written.len()));
            assert!(kept.is_some_and(|bytes| bytes <= KEEP_NAME_BYTES));
            assert!(table(Some(&bytes("a/b"))).is_err());
        }
    }

    /// HBase: the later of overlapping selections wins.
    #[test]
    fn overlapping_selections() {
        let (f, g) = (bytes("f"), bytes("g"));
        let selected = select([
            (f.clone(), Some(bytes("b"))),
            (f.clone(), None),
            (g.clone(), None),
        ]);
        assert_eq!(
            selected.iter().map(|family| &family.columns).collect::<Vec<_>>(),
            [&Columns::All, &Columns::All]
        );
        let selected = select([
            (f.clone(), None),
            (f.clone(), Some(bytes("b"))),
            (f, Some(bytes("a"))),
        ]);
        assert_eq!(
            selected[0].columns,
            Columns::Only(vec![b"a".to_vec(), b"b".to_vec()])
        );
    }
}

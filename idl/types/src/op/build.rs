//! Requests built call by call, for programs that embed the engine.
//!
//! [`Put`] and [`Delete`] collect the writes of a [`RowMutation`]; the methods of [`Get`] and
//! [`Scan`] change their [`ReadSpec`], and keep its families and columns sorted.
//!
//! Names and values are taken as anything that has bytes: `"text"`, `b"bytes"`, `&vec`.

use std::sync::Arc;

use super::{Columns, FamilySelection, Get, ReadSpec, RowMutation, Scan, TimeRange, Write, Writes};
use crate::error::Result;
use crate::filter::FilterSpec;
use crate::schema::Durability;

/// Cells to write to one row, together or not at all.
///
/// ```
/// use basalt_types::op::Put;
///
/// let put = Put::new("ada").cell("info", "name", "Ada Lovelace").cell("info", "born", "1815");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a put does nothing before a table applies it"]
pub struct Put<'a>(RowMutation<'a>);

impl<'a> Put<'a> {
    /// A put without cells.
    pub fn new(row: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self(of_row(row.as_ref()))
    }

    /// Adds a cell with the time of the write as timestamp.
    pub fn cell(
        self,
        family: &'a (impl AsRef<[u8]> + ?Sized),
        qualifier: &'a (impl AsRef<[u8]> + ?Sized),
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        self.with(family.as_ref(), qualifier.as_ref(), None, value.as_ref())
    }

    /// Adds a cell with this timestamp, in milliseconds since 1970.
    pub fn cell_at(
        self,
        family: &'a (impl AsRef<[u8]> + ?Sized),
        qualifier: &'a (impl AsRef<[u8]> + ?Sized),
        timestamp: i64,
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        self.with(
            family.as_ref(),
            qualifier.as_ref(),
            Some(timestamp),
            value.as_ref(),
        )
    }

    /// Sets how durable the put is before it is acknowledged.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.0.durability = durability;
        self
    }

    fn with(
        mut self,
        family: &'a [u8],
        qualifier: &'a [u8],
        timestamp: Option<i64>,
        value: &'a [u8],
    ) -> Self {
        self.0.writes.push(Write::Put {
            family,
            qualifier,
            timestamp,
            value,
            ttl_ms: None,
        });
        self
    }
}

impl<'a> From<Put<'a>> for RowMutation<'a> {
    fn from(put: Put<'a>) -> Self {
        put.0
    }
}

/// A deletion in one row: of the named families and columns, or of the whole row if none is named.
///
/// ```
/// use basalt_types::op::Delete;
///
/// let column = Delete::new("ada").column("info", "born");
/// let row = Delete::new("ada");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a deletion does nothing before a table applies it"]
pub struct Delete<'a>(RowMutation<'a>);

impl<'a> Delete<'a> {
    /// A deletion of the whole row.
    pub fn new(row: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self(of_row(row.as_ref()))
    }

    /// Deletes all cells of this family.
    pub fn family(mut self, family: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.0.writes.push(Write::DeleteFamily {
            family: family.as_ref(),
            timestamp: None,
        });
        self
    }

    /// Deletes all versions of this column.
    pub fn column(
        mut self,
        family: &'a (impl AsRef<[u8]> + ?Sized),
        qualifier: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        self.0.writes.push(Write::DeleteColumn {
            family: family.as_ref(),
            qualifier: qualifier.as_ref(),
            timestamp: None,
        });
        self
    }

    /// Deletes the version of this column that has exactly this timestamp.
    pub fn version(
        mut self,
        family: &'a (impl AsRef<[u8]> + ?Sized),
        qualifier: &'a (impl AsRef<[u8]> + ?Sized),
        timestamp: i64,
    ) -> Self {
        self.0.writes.push(Write::DeleteVersion {
            family: family.as_ref(),
            qualifier: qualifier.as_ref(),
            timestamp: Some(timestamp),
        });
        self
    }

    /// Sets how durable the deletion is before it is acknowledged.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.0.durability = durability;
        self
    }
}

impl<'a> From<Delete<'a>> for RowMutation<'a> {
    fn from(delete: Delete<'a>) -> Self {
        let mut mutation = delete.0;
        if mutation.writes.is_empty() {
            mutation.writes.push(Write::DeleteRow { timestamp: None });
        }
        mutation
    }
}

fn of_row(row: &[u8]) -> RowMutation<'_> {
    RowMutation {
        row,
        writes: Writes::new(),
        durability: Durability::UseDefault,
    }
}

impl<'a> Get<'a> {
    /// A read of the newest version of every column of the row.
    pub fn new(row: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self {
            row: row.as_ref(),
            spec: ReadSpec::default(),
        }
    }
}

impl Scan {
    /// A scan of all rows and columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts at this row, or at the first one after it.
    #[must_use]
    pub fn start(mut self, row: impl AsRef<[u8]>) -> Self {
        self.start_row = row.as_ref().to_vec();
        self
    }

    /// Stops before this row.
    #[must_use]
    pub fn stop(mut self, row: impl AsRef<[u8]>) -> Self {
        self.stop_row = row.as_ref().to_vec();
        self
    }

    /// Reads the rows that start with `prefix`.
    #[must_use]
    pub fn prefix(self, prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        let after = match prefix.iter().rposition(|byte| *byte != u8::MAX) {
            None => Vec::new(),
            Some(last) => {
                let mut after = prefix[..=last].to_vec();
                after[last] += 1;
                after
            }
        };
        self.start(prefix).stop(after)
    }

    /// Returns at most this many rows.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }
}

/// Methods that Get and Scan share.
macro_rules! reads {
    ($($request:ty),+) => { $(
        impl $request {
            /// Reads this family, besides others that are named. Without any, all families are read.
            #[must_use]
            pub fn family(mut self, family: impl AsRef<[u8]>) -> Self {
                self.spec.selection(family.as_ref()).columns = Columns::All;
                self
            }

            /// Reads this column, besides others that are named. It changes nothing if its whole family is
            /// read.
            #[must_use]
            pub fn column(mut self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>) -> Self {
                self.spec.add_column(family.as_ref(), qualifier.as_ref());
                self
            }

            /// Returns up to this many versions of each column, newest first.
            #[must_use]
            pub fn versions(mut self, max: u32) -> Self {
                self.spec.max_versions = i32::try_from(max).unwrap_or(i32::MAX);
                self
            }

            /// Reads cells with timestamps in this range.
            #[must_use]
            pub fn time_range(mut self, range: TimeRange) -> Self {
                self.spec.time_range = range;
                self
            }

            /// Reads the cells that the filter accepts, in HBase's filter language:
            /// `PrefixFilter('a') AND ValueFilter(=, 'binary:b')`.
            pub fn filter(mut self, text: impl AsRef<[u8]>) -> Result<Self> {
                self.spec.filter = Some(Arc::new(FilterSpec::parse(text.as_ref())?));
                Ok(self)
            }
        }
    )+ };
}

reads!(Get<'_>, Scan);

impl ReadSpec {
    /// The selection of this family, which is added without columns if it is not there.
    fn selection(&mut self, family: &[u8]) -> &mut FamilySelection {
        let found = self
            .families
            .binary_search_by(|selection| selection.family.as_slice().cmp(family));
        let at = found.unwrap_or_else(|at| {
            let none = FamilySelection {
                family: family.to_vec(),
                columns: Columns::Only(Vec::new()),
            };
            self.families.insert(at, none);
            at
        });
        &mut self.families[at]
    }

    fn add_column(&mut self, family: &[u8], qualifier: &[u8]) {
        if let Columns::Only(qualifiers) = &mut self.selection(family).columns
            && let Err(at) = qualifiers.binary_search_by(|known| known.as_slice().cmp(qualifier))
        {
            qualifiers.insert(at, qualifier.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A family and its qualifiers; `None` stands for all.
    type Selected<'a> = (&'a [u8], Option<Vec<&'a [u8]>>);

    fn selected(spec: &ReadSpec) -> Vec<Selected<'_>> {
        spec.families
            .iter()
            .map(|selection| {
                let qualifiers = match &selection.columns {
                    Columns::All => None,
                    Columns::Only(qualifiers) => Some(qualifiers.iter().map(Vec::as_slice).collect()),
                };
                (selection.family.as_slice(), qualifiers)
            })
            .collect()
    }

    #[test]
    fn families_and_columns_are_sorted_and_named_once() {
        let get = Get::new("r")
            .column("g", "b")
            .column("f", "z")
            .column("g", "a")
            .column("g", "b");
        assert_eq!(
            selected(&get.spec),
            [(&b"f"[..], Some(vec![&b"z"[..]])), (b"g", Some(vec![b"a", b"b"]))]
        );
        let whole = get.family("g").column("g", "c");
        assert_eq!(selected(&whole.spec)[1], (&b"g"[..], None));
    }

    #[test]
    fn a_prefix_ends_where_its_last_smaller_byte_is_counted_up() {
        let rows = |scan: Scan| (scan.start_row, scan.stop_row);
        assert_eq!(rows(Scan::new().prefix("ab")), (b"ab".to_vec(), b"ac".to_vec()));
        assert_eq!(
            rows(Scan::new().prefix(b"a\xff\xff")),
            (b"a\xff\xff".to_vec(), b"b".to_vec())
        );
        assert_eq!(rows(Scan::new().prefix(b"\xff")), (vec![0xff], Vec::new()));
        assert_eq!(rows(Scan::new().prefix("")), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_deletion_that_names_nothing_deletes_the_row() {
        let whole = RowMutation::from(Delete::new("r"));
        assert!(matches!(whole.writes[..], [Write::DeleteRow { timestamp: None }]));
        let part = RowMutation::from(Delete::new("r").family("f").version("f", "q", 7));
        assert!(matches!(
            part.writes[..],
            [
                Write::DeleteFamily {
                    family: b"f",
                    timestamp: None
                },
                Write::DeleteVersion {
                    qualifier: b"q",
                    timestamp: Some(7),
                    ..
                }
            ]
        ));
    }
}

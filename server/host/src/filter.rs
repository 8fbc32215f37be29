//! Calls about filters.
//!
//! ```text
//! Filter   closed: count of u64 | handle: u64 | flags | opening, if flags say so | rows
//! opening  allowed: count of text | filter: bytes, hbase.pb.Filter | reversed | versions, limit, offset: i32 | families
//! family   name: bytes | versions: i32 | has last column: flag, then bytes
//! rows     count of rows: count of cells: bytes, a KeyValue
//!
//! answer   loads: count of (class, jar, digest: text) | judges whole rows: flag
//!          | results: count of (row: u32, count of cells: u32, its number, or NEW and bytes)
//!          | ended: flag | jump: flag, then bytes
//! ```
//!
//! A call that has thrown: loads | is an IOException: flag | is final: flag | class: text | message: text.
//!
//! The host keeps an open filter under the handle that the server gave it, until a call closes it. Handles of
//! scans that are gone travel with the next call.

use crate::body::{BadBody, Reader, Writer};

/// Stands for the number of a cell in its row where the filter has made a new one.
const NEW: u32 = u32::MAX;
/// Bytes of a KeyValue without row, family, qualifier and value.
const FIXED_BYTES: usize = 20;
/// The key's part of [`FIXED_BYTES`].
const KEY_FIXED_BYTES: usize = 12;

const OPENS: u8 = 1;
const CLOSES: u8 = 2;
const GUARDED: u8 = 4;

/// One family of a scan, as the host judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: Vec<u8>,
    /// Versions of a column that the filter is shown.
    pub versions: i32,
    /// The last column that the scan asks for; `None` if it asks for all.
    pub last_column: Option<Vec<u8>>,
}

/// A filter with the options of its scan that HBase applies after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// A serialised `hbase.pb.Filter`.
    pub filter: Vec<u8>,
    /// From greater rows to smaller ones.
    pub reversed: bool,
    /// Versions of a column that are returned.
    pub versions: i32,
    /// Most cells of a family in a row; `None`: no limit.
    pub limit: Option<i32>,
    /// Cells of a family to leave out at the front of a row.
    pub offset: i32,
    /// Families that are read, in the table's order.
    pub families: Vec<Family>,
}

/// Classes that a call may have the host load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loads {
    /// Any.
    All,
    /// Classes with these names, and classes that are loaded already.
    Only(Vec<String>),
}

impl Loads {
    fn flag(&self) -> u8 {
        match self {
            Self::All => 0,
            Self::Only(_) => GUARDED,
        }
    }

    fn write(&self, to: &mut Writer) {
        let names = match self {
            Self::All => &[][..],
            Self::Only(names) => names,
        };
        to.count(names.len());
        for name in names {
            to.bytes(name.as_bytes());
        }
    }
}

/// Begins a call with rows; the rows follow ([`Rows`]).
pub fn begin(
    body: &mut Writer,
    closed: &[u64],
    handle: u64,
    opening: Option<(&Opening, &Loads)>,
    closes: bool,
) {
    body.count(closed.len());
    for handle in closed {
        body.u64(*handle);
    }
    let guards = opening.map_or(0, |(_, loads)| OPENS | loads.flag());
    body.u64(handle).u8(guards | if closes { CLOSES } else { 0 });
    let Some((opening, loads)) = opening else { return };
    loads.write(body);
    body.bytes(&opening.filter)
        .u8(opening.reversed.into())
        .i32(opening.versions)
        .i32(opening.limit.unwrap_or(-1))
        .i32(opening.offset)
        .count(opening.families.len());
    for family in &opening.families {
        body.bytes(&family.name).i32(family.versions);
        match &family.last_column {
            None => body.u8(0),
            Some(column) => body.u8(1).bytes(column),
        };
    }
}

/// A class that the host has loaded from a jar of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its name.
    pub class: String,
    /// The jar.
    pub jar: String,
    /// The jar's SHA-256.
    pub digest: String,
}

/// A cell of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept<'a> {
    /// The cell of this number in its row, as it is.
    Same(usize),
    /// A new one.
    New(NewCell<'a>),
}

/// A cell that a filter has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewCell<'a> {
    /// The key in HBase's form.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> NewCell<'a> {
    /// Reads a KeyValue of the row `row`.
    fn parse(bytes: &'a [u8], row: &[u8]) -> Result<Self, BadBody> {
        let bad = BadBody("a new cell is no KeyValue");
        if bytes.len() < FIXED_BYTES {
            return Err(bad);
        }
        let number =
            |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        let (key_len, value_len) = (number(0), number(4));
        let rest = &bytes[8..];
        let key = rest
            .get(..key_len)
            .filter(|key| key.len() >= KEY_FIXED_BYTES)
            .ok_or(bad)?;
        // Tags may follow the value.
        let value = rest[key_len..].get(..value_len).ok_or(bad)?;
        let row_len = usize::from(u16::from_be_bytes([key[0], key[1]]));
        let family_len = key.get(2 + row_len).ok_or(bad)?;
        if KEY_FIXED_BYTES + row_len + usize::from(*family_len) > key_len {
            return Err(bad);
        }
        if key[2..2 + row_len] != *row {
            return Err(BadBody("a new cell is of another row"));
        }
        Ok(Self { key, value })
    }
}

/// The answer to a call with rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Classes that were loaded.
    pub loaded: Vec<Loaded>,
    /// Whether the filter judges whole rows.
    pub judges_rows: bool,
    /// The rows that are results, as their numbers in the call, with their cells.
    pub results: Vec<(usize, Vec<Kept<'a>>)>,
    /// Whether nothing more can match.
    pub ended: bool,
    /// The next row that the filter wants to see, behind all rows of the call.
    pub jump: Option<&'a [u8]>,
}

/// A row of a call: its key and its number of cells.
pub type Asked<'a> = (&'a [u8], usize);

impl<'a> Verdict<'a> {
    /// Reads an answer about these rows. Anything that the host could send and that is not about them is
    /// refused.
    pub fn parse(body: &'a [u8], rows: &[Asked<'_>]) -> Result<Self, BadBody> {
        let mut read = Reader::new(body);
        let loaded = read_loads(&mut read)?;
        let judges_rows = read.flag()?;
        let mut results = Vec::new();
        let mut next_row = 0;
        for _ in 0..read.count(8)? {
            let row = read.u32()? as usize;
            let asked = rows.get(row).filter(|_| row >= next_row);
            let &(key, cells) = asked.ok_or(BadBody(
                "a result is of no row that was asked about, or out of order",
            ))?;
            next_row = row + 1;
            results.push((row, kept(&mut read, key, cells)?));
        }
        let ended = read.flag()?;
        let jump = if read.flag()? { Some(read.bytes()?) } else { None };
        read.end()?;
        Ok(Self {
            loaded,
            judges_rows,
            results,
            ended,
            jump,
        })
    }
}

fn kept<'a>(read: &mut Reader<'a>, row: &[u8], cells: usize) -> Result<Vec<Kept<'a>>, BadBody> {
    let count = read.count(4)?;
    if count == 0 {
        return Err(BadBody("a result has no cells"));
    }
    let mut kept = Vec::with_capacity(count);
    for _ in 0..count {
        kept.push(match read.u32()? {
            NEW => Kept::New(NewCell::parse(read.bytes()?, row)?),
            index if (index as usize) < cells => Kept::Same(index as usize),
            _ => return Err(BadBody("a result has a cell that its row has not")),
        });
    }
    Ok(kept)
}

pub(crate) fn read_loads(read: &mut Reader<'_>) -> Result<Vec<Loaded>, BadBody> {
    let count = read.count(12)?;
    let mut loaded = Vec::with_capacity(count);
    for _ in 0..count {
        loaded.push(Loaded {
            class: read.text()?,
            jar: read.text()?,
            digest: read.text()?,
        });
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(build: impl FnOnce(&mut Writer)) -> Writer {
        let mut body = Writer::new();
        body.u32(0).u8(0);
        build(&mut body);
        body
    }

    fn key_value(row: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        key.extend_from_slice(&(row.len() as u16).to_be_bytes());
        key.extend_from_slice(row);
        key.extend_from_slice(b"\x01fq");
        key.extend_from_slice(&7_u64.to_be_bytes());
        key.push(4);
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(key.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&1_u32.to_be_bytes());
        bytes.extend_from_slice(&key);
        bytes.push(b'v');
        bytes
    }

    #[test]
    fn a_verdict_is_read() {
        let cell = key_value(b"b");
        let body = answer(|body| {
            body.u32(1).u32(1).u32(2).u32(0).u32(NEW).bytes(&cell);
            body.u8(0).u8(1).bytes(b"next");
        });
        let rows: [Asked<'_>; 2] = [(b"a", 1), (b"b", 1)];
        let verdict = Verdict::parse(body.as_slice(), &rows).unwrap();
        let (row, kept) = &verdict.results[0];
        assert_eq!((*row, kept[0]), (1, Kept::Same(0)));
        assert!(matches!(kept[1], Kept::New(NewCell { value: b"v", .. })));
        assert_eq!((verdict.ended, verdict.jump), (false, Some(&b"next"[..])));
    }

    type Build<'b> = &'b dyn Fn(&mut Writer);

    /// Answers that are well formed and not about what was asked are refused.
    #[test]
    fn nonsense_is_refused() {
        let rows: [Asked<'_>; 2] = [(b"a", 1), (b"b", 1)];
        let foreign = key_value(b"c");
        let cases: [(&str, Build<'_>); 6] = [
            ("of no row", &|body| {
                body.u32(1).u32(2).u32(1).u32(0);
            }),
            ("out of order", &|body| {
                body.u32(2).u32(1).u32(1).u32(0).u32(0).u32(1).u32(0);
            }),
            ("that its row has not", &|body| {
                body.u32(1).u32(0).u32(1).u32(1);
            }),
            ("has no cells", &|body| {
                body.u32(1).u32(0).u32(0);
            }),
            ("of another row", &|body| {
                body.u32(1).u32(0).u32(1).u32(NEW).bytes(&foreign);
            }),
            ("no KeyValue", &|body| {
                body.u32(1).u32(0).u32(1).u32(NEW).bytes(&[0; 19]);
            }),
        ];
        for (text, build) in cases {
            let body = answer(|body| {
                build(body);
                body.u8(0).u8(0);
            });
            let refused = Verdict::parse(body.as_slice(), &rows).unwrap_err();
            assert!(refused.0.contains(text), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_verdict_or_an_error(
            bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..200)
        ) {
            let rows: [Asked<'_>; 3] = [(b"a", 1), (b"b", 3), (b"", 2)];
            if let Ok(verdict) = Verdict::parse(&bytes, &rows) {
                for (row, kept) in &verdict.results {
                    let in_row = |cell: &Kept<'_>| !matches!(cell, Kept::Same(index) if *index >= rows[*row].1);
                    prop_assert!(kept.iter().all(in_row));
                }
            }
        }

        #[test]
        fn any_bytes_are_a_cell_or_an_error(
            mut bytes in prop::collection::vec(any::<u8>(), 20..80), key in 0_u8..70, value in 0_u8..70
        ) {
            bytes[..8].copy_from_slice(&[0, 0, 0, key, 0, 0, 0, value]);
            if let Ok(cell) = NewCell::parse(&bytes, b"") {
                prop_assert!(cell.key.len() + cell.value.len() + 8 <= bytes.len());
            }
        }
    }
}

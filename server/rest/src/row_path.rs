//! Keys, columns and times in a path: `rows[/columns[/times]]`.
//!
//! ```text
//! rows     row | start,stop | prefix*          the stop row is exclusive
//! columns  family | family:qualifier , ...     the first colon divides; `family:` is the empty qualifier
//! times    t | a,b                             [0, t) and [a, b)
//! ```
//!
//! `/`, `,` and `*` are read before anything is decoded, so an encoded comma belongs to its key. The star
//! may be encoded.

use crate::encoding::{Encoding, shown};
use crate::{Malformed, Result};

/// The rows of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One row.
    One(Vec<u8>),
    /// From a row to another one, which is not part of it. An empty stop row means the end.
    Range {
        /// First row.
        start: Vec<u8>,
        /// The row behind the last one.
        stop: Vec<u8>,
    },
    /// Rows that begin with the prefix.
    Prefix(Vec<u8>),
}

/// The times of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Below this time.
    Below(i64),
    /// From a time to another one, which is not part of it.
    Between(i64, i64),
}

/// A column: a family, or a family with a qualifier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column {
    /// Name of the family.
    pub family: Vec<u8>,
    /// The qualifier; `None` for the whole family.
    pub qualifier: Option<Vec<u8>>,
}

impl Column {
    /// A column from its text: the first colon divides.
    pub fn of(text: &[u8]) -> Self {
        match text.iter().position(|byte| *byte == b':') {
            None => Self {
                family: text.to_vec(),
                qualifier: None,
            },
            Some(colon) => Self {
                family: text[..colon].to_vec(),
                qualifier: Some(text[colon + 1..].to_vec()),
            },
        }
    }
}

/// Parsed row path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPath {
    /// The rows.
    pub rows: Rows,
    /// The columns, sorted, each once; none for all.
    pub columns: Vec<Column>,
    /// The times.
    pub times: Option<Times>,
}

/// Cuts a final star off, encoded or not.
pub fn cut_star(text: &[u8]) -> Option<&[u8]> {
    text.strip_suffix(b"*")
        .or_else(|| text.strip_suffix(b"%2A"))
        .or_else(|| text.strip_suffix(b"%2a"))
}

impl RowPath {
    /// Reads a row path, still percent-encoded. Slashes in front are left out.
    pub fn parse(path: &[u8], encoding: Encoding) -> Result<Self> {
        let first = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
        let mut parts = path[first..].split(|byte| *byte == b'/');
        let rows = rows(parts.next().unwrap_or_default(), encoding)?;
        let columns = columns(parts.next().unwrap_or_default(), encoding)?;
        let times = times(parts.next().unwrap_or_default())?;
        if let Some(more) = parts.find(|part| !part.is_empty()) {
            return Err(Malformed(format!(
                "the path has {} behind row, columns and times: a slash in a key is written %2F",
                shown(more)
            )));
        }
        Ok(Self { rows, columns, times })
    }

    /// The only row; an error where the path means several.
    pub fn only_row(&self) -> Result<&[u8]> {
        match &self.rows {
            Rows::One(row) => Ok(row),
            Rows::Range { .. } | Rows::Prefix(_) => Err(Malformed::new(
                "the path must name one row: ranges (start,stop) and prefixes (prefix*) can be read, and not be written or deleted",
            )),
        }
    }
}

fn rows(text: &[u8], encoding: Encoding) -> Result<Rows> {
    if let Some(comma) = text.iter().position(|byte| *byte == b',') {
        let (start, stop) = (&text[..comma], &text[comma + 1..]);
        if cut_star(start).is_some() {
            return Err(Malformed::new(
                "a range of rows cannot begin with a prefix: write start,stop or prefix*",
            ));
        }
        return Ok(Rows::Range {
            start: encoding.decode(start)?,
            stop: encoding.decode(stop)?,
        });
    }
    match cut_star(text) {
        Some(prefix) => Ok(Rows::Prefix(encoding.decode(prefix)?)),
        None => Ok(Rows::One(encoding.decode(text)?)),
    }
}

/// Columns of a list with commas: sorted, each once.
pub fn columns(text: &[u8], encoding: Encoding) -> Result<Vec<Column>> {
    let parts = text.split(|byte| *byte == b',').filter(|part| !part.is_empty());
    let mut columns = parts
        .map(|part| Ok(Column::of(&encoding.decode(part)?)))
        .collect::<Result<Vec<_>>>()?;
    columns.sort();
    columns.dedup();
    Ok(columns)
}

fn times(text: &[u8]) -> Result<Option<Times>> {
    if text.is_empty() {
        return Ok(None);
    }
    let malformed = || {
        Malformed(format!(
            "the times in the path must be a time in milliseconds or two with a comma between, not {}",
            shown(text)
        ))
    };
    let text = std::str::from_utf8(text).map_err(|_| malformed())?;
    let time = |text: &str| {
        text.parse::<i64>()
            .ok()
            .filter(|time| *time >= 0)
            .ok_or_else(malformed)
    };
    Ok(Some(
        match text.split_once(',').or_else(|| text.split_once("%2C")) {
            None => Times::Below(time(text)?),
            Some((first, last)) => {
                let (first, last) = (time(first)?, time(last)?);
                if first > last {
                    return Err(malformed());
                }
                Times::Between(first, last)
            }
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Result<RowPath> {
        RowPath::parse(path.as_bytes(), Encoding::Plain)
    }

    fn column(family: &str, qualifier: Option<&str>) -> Column {
        Column {
            family: family.into(),
            qualifier: qualifier.map(Into::into),
        }
    }

    #[test]
    fn keys_are_single_rows_ranges_or_prefixes() {
        let one = |key: &[u8]| Rows::One(key.to_vec());
        for (path, rows) in [
            ("r", one(b"r")),
            ("//r", one(b"r")),
            ("a%2Fb", one(b"a/b")),
            ("a%2Cb", one(b"a,b")),
            ("a+b", one(b"a b")),
            ("a%20b", one(b"a b")),
            ("a*b", one(b"a*b")),
            ("%FF%FE", one(b"\xff\xfe")),
            (
                "a,b",
                Rows::Range {
                    start: b"a".to_vec(),
                    stop: b"b".to_vec(),
                },
            ),
            (
                "a,",
                Rows::Range {
                    start: b"a".to_vec(),
                    stop: Vec::new(),
                },
            ),
            ("p*", Rows::Prefix(b"p".to_vec())),
            ("p%2A", Rows::Prefix(b"p".to_vec())),
        ] {
            assert_eq!(parse(path).unwrap().rows, rows, "{path}");
        }
        let encoded = RowPath::parse(b"__4,AAE/ZjpxLHg", Encoding::UrlSafe).unwrap();
        assert_eq!(
            encoded.rows,
            Rows::Range {
                start: b"\xff\xfe".to_vec(),
                stop: b"\x00\x01".to_vec()
            }
        );
        assert_eq!(encoded.columns, [column("f", Some("q,x"))]);
        assert!(parse("a*,b").is_err());
        assert!(parse("a,b").unwrap().only_row().is_err() && parse("p*/f:q").unwrap().only_row().is_err());
    }

    #[test]
    fn columns_are_sorted_and_divided_at_the_first_colon() {
        let columns = parse("r/g,f:b:c,f:,f:a,g").unwrap().columns;
        assert_eq!(
            columns,
            [
                column("f", Some("")),
                column("f", Some("a")),
                column("f", Some("b:c")),
                column("g", None),
            ]
        );
    }

    #[test]
    fn times_are_one_or_two_numbers() {
        assert_eq!(parse("r/f:a/6").unwrap().times, Some(Times::Below(6)));
        assert_eq!(parse("r/f:a/5,7").unwrap().times, Some(Times::Between(5, 7)));
        assert_eq!(parse("r//6").unwrap().times, Some(Times::Below(6)));
        for wrong in [
            "r/f:a/x",
            "r/f:a/7,5",
            "r/f:a/-1",
            "r/f:a/1,2,3",
            "r/f:a/5/x",
            "r/f/99999999999999999999",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(!error.0.contains('\n'), "{wrong}: {error}");
        }
        assert!(parse("r/f:a/5/").is_ok());
    }
}

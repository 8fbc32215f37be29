//! Describes a store file for people: `basalt dump` prints it, and pages show parts of it.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use super::blocks::Want;
use super::index::IndexBlock;
use super::reader::Reader;
use super::{ReadOptions, file_info};
use crate::cell::{Cell, CellCursor, Key, KeyBuf};
use crate::error::{Error, Result};
use crate::schema::{Escaped, escape};

/// Prints trailer, file info and, with `cells`, every cell. Stops with an error at the first
/// damaged block.
pub fn dump(reader: &Arc<Reader>, cells: bool, out: &mut dyn Write) -> Result<()> {
    let io = |source| Error::io("writing the dump of", reader.path(), source);
    write_summary(reader, out).map_err(io)?;
    if !cells {
        return Ok(());
    }
    writeln!(out, "\ncells").map_err(io)?;
    let mut cursor = reader.cursor(ReadOptions::WHOLE_FILE);
    let start = KeyBuf::first_on_row(b"", b"");
    cursor.seek(start.as_key())?;
    while let Some(cell) = cursor.cell() {
        writeln!(out, "  {}", Shown(cell)).map_err(io)?;
        cursor.advance()?;
    }
    Ok(())
}

/// The properties of a file, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Facts of the trailer, each with its name.
    pub trailer: Vec<(&'static str, String)>,
    /// Keys and values of the file info.
    pub file_info: Vec<(String, String)>,
    /// A line for each bloom filter.
    pub blooms: Vec<String>,
}

/// Trailer, file info and bloom filters of an open file.
pub fn summary(reader: &Arc<Reader>) -> Summary {
    let (trailer, properties) = (&reader.trailer, reader.properties());
    let mut facts = vec![
        ("bytes", properties.file_bytes.to_string()),
        ("cells", trailer.cells.to_string()),
        ("compression", trailer.compression.to_string()),
        ("index levels", trailer.levels.to_string()),
        ("root index entries", trailer.root_entries.to_string()),
        ("bytes uncompressed", trailer.plain_bytes.to_string()),
        ("index uncompressed", trailer.index_plain_bytes.to_string()),
        ("load-on-open offset", trailer.load_on_open_offset.to_string()),
        ("file info offset", trailer.file_info_offset.to_string()),
    ];
    if let Some((first, last)) = trailer.data_blocks {
        facts.push(("data blocks", format!("{first} to {last}")));
    }
    if let Some(sample) = &properties.column_sample {
        facts.push(("column sample", sample.describe()));
    }
    if let Some(rows) = &properties.row_figures {
        facts.push(("tombstones", rows.tombstones.to_string()));
        if rows.run.count > 0 {
            let (first, last) = (escape(&rows.run.first), escape(&rows.run.last));
            facts.push((
                "most tombstones in sequence",
                format!("{}, rows {first} to {last}", rows.run.count),
            ));
        }
        let row = escape(&rows.largest.first);
        facts.push(("largest row", format!("{row}, {} bytes", rows.largest.count)));
    }
    let checksum = if trailer.marked { "right" } else { "none" };
    facts.push(("trailer checksum", checksum.to_owned()));
    let shown = |(key, value): (&Vec<u8>, &Vec<u8>)| (escape(key), info_value(key, value));
    Summary {
        trailer: facts,
        file_info: properties.file_info.iter().map(shown).collect(),
        blooms: reader.describe_blooms(),
    }
}

fn write_summary(reader: &Arc<Reader>, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = summary(reader);
    writeln!(out, "store file {}", reader.path().display())?;
    writeln!(out, "\ntrailer")?;
    for (name, value) in &summary.trailer {
        writeln!(out, "  {name:<21} {value}")?;
    }
    writeln!(out, "\nfile info")?;
    for (key, value) in &summary.file_info {
        writeln!(out, "  {key} = {value}")?;
    }
    for line in &summary.blooms {
        writeln!(out, "\n{line}")?;
    }
    Ok(())
}

/// An entry of the block index that leads to a data block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where the block begins.
    pub offset: u64,
    /// Size on disk in bytes.
    pub bytes: u32,
    /// First key of the block, or a shortened one that sorts before it and after all blocks before.
    pub key: KeyBuf,
}

/// Up to `limit` entries of the block index, the first `skip` left out. Other index blocks are read
/// only to count their entries.
pub fn index_entries(reader: &Arc<Reader>, skip: usize, limit: usize) -> Result<Vec<IndexEntry>> {
    let mut page = IndexPage {
        skip,
        limit,
        entries: Vec::new(),
    };
    page.walk(reader, &reader.root, reader.trailer.levels)?;
    Ok(page.entries)
}

/// A part of the block index that is being collected.
struct IndexPage {
    /// Entries that are still to be passed over.
    skip: usize,
    limit: usize,
    entries: Vec<IndexEntry>,
}

impl IndexPage {
    /// Walks an index block that has `levels` levels, itself included. An index is at most
    /// `LEVELS_MAX` deep, which the reader has checked.
    fn walk(&mut self, reader: &Arc<Reader>, index: &IndexBlock, levels: u32) -> Result<()> {
        let first = if levels <= 1 {
            let passed = self.skip.min(index.len());
            self.skip -= passed;
            passed
        } else {
            0
        };
        for entry in first..index.len() {
            if self.entries.len() >= self.limit {
                break;
            }
            let handle = index.handle(entry);
            if levels > 1 {
                let want = if levels == 2 {
                    Want::Leaf
                } else {
                    Want::Intermediate
                };
                let block = reader.block(want, handle, ReadOptions::WHOLE_FILE)?;
                self.walk(reader, block.index(), levels - 1)?;
            } else {
                self.entries.push(IndexEntry {
                    offset: handle.offset,
                    bytes: handle.bytes,
                    key: KeyBuf::copy_of(index.key(entry)),
                });
            }
        }
        Ok(())
    }
}

/// A value of the file info in the form that fits its key.
fn info_value(key: &[u8], value: &[u8]) -> String {
    let is_key = [file_info::LAST_KEY, file_info::BIGGEST_KEY]
        .iter()
        .any(|name| name.as_bytes() == key);
    if is_key && let Some(key) = Key::parse(value) {
        return ShownKey(key).to_string();
    }
    if value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        return escape(value);
    }
    if let [byte] = value {
        return (*byte != 0).to_string();
    }
    if let Ok(number) = value.try_into().map(i32::from_be_bytes) {
        return number.to_string();
    }
    if let Ok(number) = value.try_into().map(i64::from_be_bytes) {
        return number.to_string();
    }
    escape(value)
}

/// A key as HBase's tools print it: row/family:qualifier/timestamp/type.
struct ShownKey<'a>(Key<'a>);

impl fmt::Display for ShownKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0;
        write!(
            f,
            "{}/{}:{}/{}/{:?}",
            Escaped(key.row()),
            Escaped(key.family()),
            Escaped(key.qualifier()),
            key.timestamp(),
            key.cell_type()
        )
    }
}

struct Shown<'a>(Cell<'a>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = self.0;
        write!(
            f,
            "{}/seq={} value={}",
            ShownKey(cell.key),
            cell.seq,
            Escaped(cell.value)
        )?;
        for (tag_type, value) in crate::cell::tags(cell.tags) {
            write!(f, " tag {tag_type}={}", Escaped(value))?;
        }
        Ok(())
    }
}

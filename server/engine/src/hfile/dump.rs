//! Prints a store file for people (`basalt dump`).

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use super::reader::Reader;
use super::{ReadOptions, file_info};
use crate::cache::Priority;
use crate::cell::{Cell, CellCursor, Key, KeyBuf};
use crate::error::{Error, Result};

const OPTIONS: ReadOptions = ReadOptions {
    cache_blocks: false,
    priority: Priority::Single,
    memory_only: false,
    sequential: true,
};

/// Prints trailer, file info and, if `cells` says so, every cell. Also stops with an error at the first damaged block.
pub fn dump(reader: &Arc<Reader>, cells: bool, out: &mut dyn Write) -> Result<()> {
    let io = |source| Error::io("writing the dump of", reader.path(), source);
    write_summary(reader, out).map_err(io)?;
    if !cells {
        return Ok(());
    }
    writeln!(out, "\ncells").map_err(io)?;
    let mut cursor = reader.cursor(OPTIONS);
    let start = KeyBuf::first_on_row(b"", b"");
    cursor.seek(start.as_key())?;
    while let Some(cell) = cursor.cell() {
        writeln!(out, "  {}", Shown(cell)).map_err(io)?;
        cursor.advance()?;
    }
    Ok(())
}

fn write_summary(reader: &Arc<Reader>, out: &mut dyn Write) -> std::io::Result<()> {
    let (trailer, properties) = (&reader.trailer, reader.properties());
    writeln!(out, "store file {}", reader.path().display())?;
    writeln!(out, "\ntrailer")?;
    writeln!(out, "  bytes                 {}", properties.file_bytes)?;
    writeln!(out, "  cells                 {}", trailer.cells)?;
    writeln!(out, "  compression           {}", trailer.compression)?;
    writeln!(out, "  index levels          {}", trailer.levels)?;
    writeln!(out, "  root index entries    {}", trailer.root_entries)?;
    writeln!(out, "  bytes uncompressed    {}", trailer.plain_bytes)?;
    writeln!(out, "  index uncompressed    {}", trailer.index_plain_bytes)?;
    writeln!(out, "  load-on-open offset   {}", trailer.load_on_open_offset)?;
    writeln!(out, "  file info offset      {}", trailer.file_info_offset)?;
    if let Some((first, last)) = trailer.data_blocks {
        writeln!(out, "  data blocks           {first} to {last}")?;
    }
    let checksum = if trailer.marked { "right" } else { "none" };
    writeln!(out, "  trailer checksum      {checksum}")?;
    writeln!(out, "\nfile info")?;
    for (key, value) in &properties.file_info {
        writeln!(out, "  {} = {}", key.escape_ascii(), info_value(key, value))?;
    }
    for line in reader.describe_blooms() {
        writeln!(out, "\n{line}")?;
    }
    Ok(())
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
        return value.escape_ascii().to_string();
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
    value.escape_ascii().to_string()
}

/// A key as HBase's tools print it: row/family:qualifier/timestamp/type.
struct ShownKey<'a>(Key<'a>);

impl fmt::Display for ShownKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0;
        write!(
            f,
            "{}/{}:{}/{}/{:?}",
            key.row().escape_ascii(),
            key.family().escape_ascii(),
            key.qualifier().escape_ascii(),
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
            cell.value.escape_ascii()
        )?;
        for (tag_type, value) in crate::cell::tags(cell.tags) {
            write!(f, " tag {tag_type}={}", value.escape_ascii())?;
        }
        Ok(())
    }
}

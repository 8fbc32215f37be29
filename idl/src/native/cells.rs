//! Cells of a cell block, in HBase's KeyValueCodec and KeyValueCodecWithTags.
//!
//! ```text
//! int32 n | int32 key length | int32 value length
//!         | int16 row length | row | int8 family length | family | qualifier
//!         | int64 timestamp | int8 type
//!         | value | int16 tags length | tags
//! ```
//!
//! `n` counts everything after itself. KeyValueCodecWithTags writes the tags and their length, but
//! only for a cell that has tags; KeyValueCodec never does. Cells follow each other without count
//! or separator.

/// Bytes of a key beside row, family and qualifier.
const KEY_OVERHEAD: usize = 2 + 1 + 8 + 1;

/// Bytes of a cell in a block beside its key, value and tags, at most.
pub const CELL_OVERHEAD_MAX: usize = 4 + 8 + 2;

/// Timestamp that means "the server's time".
pub const LATEST_TIMESTAMP: i64 = i64::MAX;

/// The type of a cell: a value or a kind of tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellType {
    /// A value.
    Put = 4,
    /// A tombstone for one version.
    Delete = 8,
    /// A tombstone for all cells of a family with exactly this timestamp.
    DeleteFamilyVersion = 10,
    /// A tombstone for all versions of a column up to the timestamp.
    DeleteColumn = 12,
    /// A tombstone for all cells of a family up to the timestamp.
    DeleteFamily = 14,
}

impl CellType {
    /// The type with this code; `None` if the code is unknown.
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            4 => Self::Put,
            8 => Self::Delete,
            10 => Self::DeleteFamilyVersion,
            12 => Self::DeleteColumn,
            14 => Self::DeleteFamily,
            _ => return None,
        })
    }
}

/// Why a cell block cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The block ends inside a cell, or lengths of a cell contradict each other.
    #[error("cell block: {what} at byte {at} does not fit")]
    Length {
        /// The part of the cell.
        what: &'static str,
        /// Where in the block the cell begins.
        at: usize,
    },
    /// An unknown type.
    #[error("cell block: unknown cell type {code} at byte {at}")]
    Type {
        /// The code.
        code: u8,
        /// Where in the block the cell begins.
        at: usize,
    },
    /// The block has fewer cells than the message says.
    #[error("cell block: ended after {0} cells, the message says there are more")]
    Missing(usize),
}

/// A decoded cell, whose parts are slices of the cell block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireCell<'a> {
    /// Row.
    pub row: &'a [u8],
    /// Family.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Milliseconds, or [`LATEST_TIMESTAMP`].
    pub timestamp: i64,
    /// Type.
    pub cell_type: CellType,
    /// Value.
    pub value: &'a [u8],
    /// Tags, each with its length; empty when there are none.
    pub tags: &'a [u8],
}

/// The cells of a block, first to last. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    block: &'a [u8],
    at: usize,
    taken: usize,
}

impl<'a> Cells<'a> {
    /// The cells of an uncompressed block.
    pub fn new(block: &'a [u8]) -> Self {
        Self {
            block,
            at: 0,
            taken: 0,
        }
    }

    /// The next cell, which a message has announced; an error at the end of the block.
    #[inline]
    pub fn require(&mut self) -> Result<WireCell<'a>, CellError> {
        self.next().unwrap_or(Err(CellError::Missing(self.taken)))
    }

    /// Moves past the next cell, which a message has announced, without decoding it.
    #[inline]
    pub fn skip_one(&mut self) -> Result<(), CellError> {
        let at = self.at;
        let mut rest = &self.block[at..];
        if rest.is_empty() {
            return Err(CellError::Missing(self.taken));
        }
        let error = |what| CellError::Length { what, at };
        let length = take_u32(&mut rest).ok_or(error("cell length"))?;
        take(&mut rest, length).ok_or(error("cell"))?;
        self.at = self.block.len() - rest.len();
        self.taken += 1;
        Ok(())
    }

    /// Where in the block the next cell begins.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether all cells have been read.
    pub fn is_empty(&self) -> bool {
        self.at >= self.block.len()
    }

    fn read(&mut self) -> Result<WireCell<'a>, CellError> {
        let at = self.at;
        let error = |what| CellError::Length { what, at };
        let mut rest = &self.block[at..];
        let length = take_u32(&mut rest).ok_or(error("cell length"))?;
        let mut cell = take(&mut rest, length).ok_or(error("cell"))?;
        let key_length = take_u32(&mut cell).ok_or(error("key length"))?;
        let value_length = take_u32(&mut cell).ok_or(error("value length"))?;
        let mut key = take(&mut cell, key_length).ok_or(error("key"))?;
        let value = take(&mut cell, value_length).ok_or(error("value"))?;
        let tags = take_tags(cell).ok_or(error("tags"))?;
        let (row_length, rest_of_key) = key.split_first_chunk::<2>().ok_or(error("row length"))?;
        key = rest_of_key;
        let row = take(&mut key, usize::from(u16::from_be_bytes(*row_length))).ok_or(error("row"))?;
        let (&family_length, rest_of_key) = key.split_first().ok_or(error("family length"))?;
        key = rest_of_key;
        let family = take(&mut key, usize::from(family_length)).ok_or(error("family"))?;
        let (key, &code) = key
            .split_last_chunk::<1>()
            .map(|(key, code)| (key, &code[0]))
            .ok_or(error("type"))?;
        let (qualifier, timestamp) = key.split_last_chunk::<8>().ok_or(error("timestamp"))?;
        let cell_type = CellType::from_code(code).ok_or(CellError::Type { code, at })?;
        self.at = self.block.len() - rest.len();
        self.taken += 1;
        Ok(WireCell {
            row,
            family,
            qualifier,
            timestamp: i64::from_be_bytes(*timestamp),
            cell_type,
            value,
            tags,
        })
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Result<WireCell<'a>, CellError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_empty() {
            return None;
        }
        let cell = self.read();
        if cell.is_err() {
            self.at = self.block.len();
        }
        Some(cell)
    }
}

impl WireCell<'_> {
    /// Bytes of the cell in a block.
    pub fn encoded_len(&self) -> usize {
        let key = KEY_OVERHEAD + self.row.len() + self.family.len() + self.qualifier.len();
        4 + 8 + key + self.value.len() + tags_len(self.tags)
    }

    /// Appends the cell to a block.
    /// REQUIRES: the row has at most 32,767 bytes and the family at most 127, as in HBase.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let key_len = KEY_OVERHEAD + self.row.len() + self.family.len() + self.qualifier.len();
        put_lengths(key_len, self.value.len(), self.tags, out);
        out.extend_from_slice(&(self.row.len() as u16).to_be_bytes());
        out.extend_from_slice(self.row);
        out.push(self.family.len() as u8);
        out.extend_from_slice(self.family);
        out.extend_from_slice(self.qualifier);
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.push(self.cell_type as u8);
        out.extend_from_slice(self.value);
        put_tags(self.tags, out);
    }
}

/// Appends a cell to a block. `key` has the form of HFiles, which is also that of cell blocks.
pub fn put_stored_cell(key: &[u8], value: &[u8], tags: &[u8], out: &mut Vec<u8>) {
    put_lengths(key.len(), value.len(), tags, out);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    put_tags(tags, out);
}

fn put_lengths(key_len: usize, value_len: usize, tags: &[u8], out: &mut Vec<u8>) {
    let length = 8 + key_len + value_len + tags_len(tags);
    out.reserve(4 + length);
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(&(key_len as u32).to_be_bytes());
    out.extend_from_slice(&(value_len as u32).to_be_bytes());
}

fn tags_len(tags: &[u8]) -> usize {
    if tags.is_empty() { 0 } else { 2 + tags.len() }
}

fn put_tags(tags: &[u8], out: &mut Vec<u8>) {
    if !tags.is_empty() {
        out.extend_from_slice(&(tags.len() as u16).to_be_bytes());
        out.extend_from_slice(tags);
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_u32(bytes: &mut &[u8]) -> Option<usize> {
    let (value, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_be_bytes(*value)).ok()
}

/// The tags of a cell, from the bytes behind its value: none, or a length and that many bytes.
fn take_tags(mut rest: &[u8]) -> Option<&[u8]> {
    if rest.is_empty() {
        return Some(rest);
    }
    let (length, tags) = rest.split_first_chunk::<2>()?;
    rest = tags;
    (usize::from(u16::from_be_bytes(*length)) == rest.len()).then_some(rest)
}

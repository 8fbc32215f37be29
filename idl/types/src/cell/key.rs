//! Flat keys: building, taking apart, comparing whole keys and the first bytes of their parts.

use std::cmp::Ordering;

use super::CellType;

/// Bytes of a flat key besides row, family and qualifier.
const FIXED_BYTES: usize = 2 + 1 + 8 + 1;

/// A flat key (see the module comment of `cell`). Always well-formed: made by `KeyBuf` or checked by
/// [`Key::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// No key is shorter.
    pub const BYTES_MIN: usize = FIXED_BYTES;

    /// Checks the lengths and the type; for bytes from a disk or a socket.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let row_len = usize::from(u16::from_be_bytes(*bytes.first_chunk::<2>()?));
        let family_len = usize::from(*bytes.get(2 + row_len)?);
        if bytes.len() < FIXED_BYTES + row_len + family_len {
            return None;
        }
        CellType::from_code(bytes[bytes.len() - 1])?;
        Some(Self(bytes))
    }

    /// Wraps bytes that are known to be a flat key.
    /// REQUIRES: they were built by `KeyBuf` or have passed [`Key::parse`]; otherwise later calls
    /// may panic.
    #[inline]
    pub fn trusted(bytes: &'a [u8]) -> Self {
        debug_assert!(Self::parse(bytes).is_some(), "not a flat key: {bytes:?}");
        Self(bytes)
    }

    /// Bytes of the key that [`KeyBuf::append`] makes of these parts.
    #[inline]
    pub fn len_of(row: &[u8], family: &[u8], qualifier: &[u8]) -> usize {
        FIXED_BYTES + row.len() + family.len() + qualifier.len()
    }

    /// The flat bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    #[inline]
    fn row_len(self) -> usize {
        usize::from(u16::from_be_bytes([self.0[0], self.0[1]]))
    }

    /// The row.
    #[inline]
    pub fn row(self) -> &'a [u8] {
        &self.0[2..2 + self.row_len()]
    }

    /// Whether the key is of that row. Compares the last byte first, in which neighbouring rows mostly
    /// differ.
    #[inline]
    pub fn is_of_row(self, row: &[u8]) -> bool {
        let own = self.row();
        own.last() == row.last() && own == row
    }

    /// The family.
    #[inline]
    pub fn family(self) -> &'a [u8] {
        let at = 2 + self.row_len();
        &self.0[at + 1..at + 1 + usize::from(self.0[at])]
    }

    /// The qualifier.
    #[inline]
    pub fn qualifier(self) -> &'a [u8] {
        let at = 2 + self.row_len();
        &self.0[at + 1 + usize::from(self.0[at])..self.0.len() - 9]
    }

    /// The timestamp in milliseconds.
    #[inline]
    pub fn timestamp(self) -> i64 {
        let end = self.0.len() - 1;
        i64::from_be_bytes(
            self.0[end - 8..end]
                .try_into()
                .expect("a flat key ends with 9 bytes of timestamp and type"),
        )
    }

    /// The type's code.
    #[inline]
    pub fn type_code(self) -> u8 {
        self.0[self.0.len() - 1]
    }

    /// The type.
    #[inline]
    pub fn cell_type(self) -> CellType {
        CellType::from_code(self.type_code())
            .expect("a flat key's type was checked when it was built or parsed")
    }

    /// Everything before the timestamp: row, family, qualifier with their lengths. Two cells are of one
    /// column iff this is equal.
    #[inline]
    pub fn column_bytes(self) -> &'a [u8] {
        &self.0[..self.0.len() - 9]
    }
}

/// Order of two columns: row, family, qualifier.
#[inline]
pub(super) fn compare_columns(left: Key<'_>, right: Key<'_>) -> Ordering {
    let family_at = 2 + left.row_len();
    if left.row_len() == right.row_len() && left.0[family_at] == right.0[family_at] {
        // Row, length of the family, family and qualifier stand one behind the other: one comparison instead
        // of three.
        return left.column_bytes()[2..].cmp(&right.column_bytes()[2..]);
    }
    left.row()
        .cmp(right.row())
        .then_with(|| left.family().cmp(right.family()))
        .then_with(|| left.qualifier().cmp(right.qualifier()))
}

/// Order of two flat keys. Sequence ids, which are not part of the key, break ties (greater first).
#[inline]
pub fn compare_keys(left: Key<'_>, right: Key<'_>) -> Ordering {
    compare_columns(left, right)
        .then_with(|| right.timestamp().cmp(&left.timestamp()))
        .then_with(|| right.type_code().cmp(&left.type_code()))
}

/// The first four bytes of a part of a key as a number that sorts as they do, with zeros where there are
/// none.
///
/// Made in registers, as are the longer ones: bytes that are copied to memory by ones and twos and loaded
/// together stall the processor until the copies have left its store buffer
/// (docs/decisions/0005-arena-skiplist.md).
#[inline]
pub fn leading4(bytes: &[u8]) -> u32 {
    match *bytes {
        [a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]),
        [a, b, c] => u32::from_be_bytes([a, b, c, 0]),
        [a, b] => u32::from_be_bytes([a, b, 0, 0]),
        [a] => u32::from_be_bytes([a, 0, 0, 0]),
        [] => 0,
    }
}

/// The first eight bytes, as [`leading4`] makes a number of them.
#[inline]
fn leading8(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let first = u64::from(leading4(bytes)) << 32;
    // For four to seven bytes: the first four and the last four. Where they overlap they are the
    // same.
    bytes.last_chunk::<4>().map_or(first, |last| {
        first | u64::from(u32::from_be_bytes(*last)) << (8 * (8 - bytes.len()))
    })
}

/// The first sixteen bytes, as [`leading4`] makes a number of them.
#[inline]
pub fn leading16(bytes: &[u8]) -> u128 {
    if let Some(first) = bytes.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    let first = u128::from(leading8(bytes)) << 64;
    // As in `leading8`.
    bytes.last_chunk::<8>().map_or(first, |last| {
        first | u128::from(u64::from_be_bytes(*last)) << (8 * (16 - bytes.len()))
    })
}

/// Whether two short names are equal: most qualifiers are, and calling `memcmp` would take longer.
#[inline]
pub fn is_equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() > 16 || left.len() != right.len() {
        return left == right;
    }
    leading16(left) == leading16(right)
}

/// An owned flat key: seek targets, last keys, index keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBuf(Vec<u8>);

impl KeyBuf {
    /// The longest row that a flat key can hold; longer than the row of any cell.
    pub const ROW_BYTES_MAX: usize = u16::MAX as usize;

    /// A key of these parts.
    #[inline]
    pub fn new(row: &[u8], family: &[u8], qualifier: &[u8], timestamp: i64, cell_type: CellType) -> Self {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + row.len() + family.len() + qualifier.len());
        Self::append(&mut bytes, row, family, qualifier, timestamp, cell_type);
        Self(bytes)
    }

    /// Appends the flat bytes of a key to `out`.
    ///
    /// A row that is longer than its length field can express is truncated. It can only be a seek
    /// target: rows of cells have at most [`ROW_MAX_BYTES`](super::ROW_MAX_BYTES), which is checked
    /// where requests enter the engine, and they compare with the truncated row as with the whole
    /// one.
    /// REQUIRES: the family is within its limit.
    pub fn append(
        out: &mut Vec<u8>,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        cell_type: CellType,
    ) {
        let row = &row[..row.len().min(Self::ROW_BYTES_MAX)];
        let row_len = row.len() as u16;
        let family_len = u8::try_from(family.len()).expect("family length is checked when a family is made");
        out.extend_from_slice(&row_len.to_be_bytes());
        out.extend_from_slice(row);
        out.push(family_len);
        out.extend_from_slice(family);
        out.extend_from_slice(qualifier);
        out.extend_from_slice(&timestamp.to_be_bytes());
        out.push(cell_type as u8);
    }

    /// Before every cell of `row` in `family`.
    #[inline]
    pub fn first_on_row(row: &[u8], family: &[u8]) -> Self {
        Self::new(row, family, b"", i64::MAX, CellType::Maximum)
    }

    /// Before every cell of the column.
    #[inline]
    pub fn first_on_column(row: &[u8], family: &[u8], qualifier: &[u8]) -> Self {
        Self::new(row, family, qualifier, i64::MAX, CellType::Maximum)
    }

    /// After every cell of the column.
    #[inline]
    pub fn last_on_column(row: &[u8], family: &[u8], qualifier: &[u8]) -> Self {
        Self::new(row, family, qualifier, i64::MIN, CellType::Minimum)
    }

    /// Copies a key.
    #[inline]
    pub fn copy_of(key: Key<'_>) -> Self {
        Self(key.bytes().to_vec())
    }

    /// Replaces the content, keeping the allocation.
    #[inline]
    pub fn assign(&mut self, key: Key<'_>) {
        self.0.clear();
        self.0.extend_from_slice(key.bytes());
    }

    /// The borrowed form.
    /// REQUIRES: built from parts or assigned; the empty default is not a key.
    #[inline]
    pub fn as_key(&self) -> Key<'_> {
        Key::trusted(&self.0)
    }

    /// Whether nothing has been assigned yet.
    #[inline]
    pub fn is_unset(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the numbers equal those of the bytes padded with zeros. Method: all lengths around the
    /// limits.
    #[test]
    fn missing_bytes_are_zero() {
        for len in 0..20 {
            let bytes: Vec<u8> = (0..len).map(|at| 0xf0 ^ (at * 7)).collect();
            let mut padded = bytes.clone();
            padded.resize(20, 0);
            assert_eq!(leading4(&bytes).to_be_bytes(), padded[..4], "{len}");
            assert_eq!(leading8(&bytes).to_be_bytes(), padded[..8], "{len}");
            assert_eq!(leading16(&bytes).to_be_bytes(), padded[..16], "{len}");
        }
    }
}

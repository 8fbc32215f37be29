//! Cell blocks in the forms of HBase's other codecs, from and to that of KeyValueCodecWithTags
//! ([`cells`](super::cells)).
//!
//! ```text
//! CellCodec          row | family | qualifier | int64 timestamp | int8 type | value | int64 mvcc
//! CellCodecWithTags  row | family | qualifier | int64 timestamp | int8 type | value | tags | int64 mvcc
//! MessageCodec       varint length | protobuf message Cell, without tags
//! ```
//!
//! Each part of the first two has an int32 length in front. The mvcc number is ignored, and sent as 0.
//! A block is measured before it is converted, so that its memory is reserved exactly.

use bytes::Bytes;
use prost::Message as _;

use super::cells::{CellError, CellType, Cells, WireCell};
use super::compress::{Compressor, Room, UnpackError};
use super::messages;

/// A form of cells beside those of KeyValueCodec and KeyValueCodecWithTags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellForm {
    /// CellCodec.
    Cell,
    /// CellCodecWithTags.
    CellWithTags,
    /// MessageCodec.
    Message,
}

/// Bytes of the int32 lengths in front of parts, of the timestamp, the type and the mvcc number.
const LENGTH_BYTES: usize = 4;
const NUMBER_BYTES: usize = 8 + 1 + 8;

impl CellForm {
    /// All.
    pub const ALL: [Self; 3] = [Self::Cell, Self::CellWithTags, Self::Message];

    /// The form of a codec's name, without HBase's package; `None` if there is no such codec here.
    pub fn of_codec(name: &str) -> Option<Self> {
        match name {
            "CellCodec" => Some(Self::Cell),
            "CellCodecWithTags" => Some(Self::CellWithTags),
            "MessageCodec" => Some(Self::Message),
            _ => None,
        }
    }

    /// Whether cells keep their tags in this form.
    pub fn has_tags(self) -> bool {
        self == Self::CellWithTags
    }

    /// Converts a block to this form.
    pub fn encode(self, key_values: &[u8]) -> Result<Vec<u8>, CellError> {
        let mut out = Vec::with_capacity(self.encoded_len(key_values)?);
        for cell in Cells::new(key_values) {
            self.put(&cell?, &mut out);
        }
        Ok(out)
    }

    /// Bytes of a block in this form.
    pub fn encoded_len(self, key_values: &[u8]) -> Result<usize, CellError> {
        Cells::new(key_values).map(|cell| Ok(self.cell_len(&cell?))).sum()
    }

    fn cell_len(self, cell: &WireCell<'_>) -> usize {
        let parts = cell.row.len() + cell.family.len() + cell.qualifier.len() + cell.value.len();
        match self {
            Self::Cell => 4 * LENGTH_BYTES + NUMBER_BYTES + parts,
            Self::CellWithTags => 5 * LENGTH_BYTES + NUMBER_BYTES + parts + cell.tags.len(),
            Self::Message => {
                let len = message_len(cell);
                prost::length_delimiter_len(len) + len
            }
        }
    }

    fn put(self, cell: &WireCell<'_>, out: &mut Vec<u8>) {
        if self == Self::Message {
            return put_message(cell, out);
        }
        for part in [cell.row, cell.family, cell.qualifier] {
            put_part(part, out);
        }
        out.extend_from_slice(&cell.timestamp.to_be_bytes());
        out.push(cell.cell_type as u8);
        put_part(cell.value, out);
        if self == Self::CellWithTags {
            put_part(cell.tags, out);
        }
        out.extend_from_slice(&0_i64.to_be_bytes());
    }

    /// Converts a block of this form, to at most `max` bytes. The reservation of the returned bytes
    /// remains with `room`; after an error nothing remains reserved.
    pub fn decode(self, block: &Bytes, max: usize, room: &mut impl Room) -> Result<Vec<u8>, UnpackError> {
        let mut bytes = 0_usize;
        self.each(block, |cell| bytes += cell.encoded_len())?;
        if bytes > max {
            return Err(UnpackError::TooLarge(max));
        }
        if !room.reserve(bytes) {
            return Err(UnpackError::NoRoom(bytes));
        }
        let mut out = Vec::with_capacity(bytes);
        match self.each(block, |cell| cell.encode(&mut out)) {
            Ok(()) => Ok(out),
            Err(error) => {
                room.release(bytes);
                Err(error)
            }
        }
    }

    fn each(self, block: &Bytes, mut take: impl FnMut(&WireCell<'_>)) -> Result<(), UnpackError> {
        let mut rest = block.clone();
        while !rest.is_empty() {
            let at = block.len() - rest.len();
            if self == Self::Message {
                let cell = messages::Cell::decode_length_delimited(&mut rest)
                    .map_err(|error| malformed(at, format_args!("no message Cell: {error}")))?;
                take(&of_message(&cell, at)?);
            } else {
                let mut parts = &rest[..];
                take(&self.read(&mut parts, at)?);
                let read = rest.len() - parts.len();
                rest = rest.slice(read..);
            }
        }
        Ok(())
    }

    /// Takes a cell of lengths and parts off `rest`.
    fn read<'a>(self, rest: &mut &'a [u8], at: usize) -> Result<WireCell<'a>, UnpackError> {
        let row = part(rest).ok_or_else(|| cut(at, "row"))?;
        let family = part(rest).ok_or_else(|| cut(at, "family"))?;
        let qualifier = part(rest).ok_or_else(|| cut(at, "qualifier"))?;
        let timestamp = long(rest).ok_or_else(|| cut(at, "timestamp"))?;
        let (code, after) = rest.split_first().ok_or_else(|| cut(at, "type"))?;
        *rest = after;
        let value = part(rest).ok_or_else(|| cut(at, "value"))?;
        let tags = if self == Self::CellWithTags {
            part(rest).ok_or_else(|| cut(at, "tags"))?
        } else {
            b""
        };
        long(rest).ok_or_else(|| cut(at, "mvcc number"))?;
        checked(
            WireCell {
                row,
                family,
                qualifier,
                timestamp,
                cell_type: cell_type((*code).into(), at)?,
                value,
                tags,
            },
            at,
        )
    }
}

/// The cell of a message of MessageCodec. Absent parts are empty.
fn of_message(cell: &messages::Cell, at: usize) -> Result<WireCell<'_>, UnpackError> {
    checked(
        WireCell {
            row: cell.row.as_deref().unwrap_or_default(),
            family: cell.family.as_deref().unwrap_or_default(),
            qualifier: cell.qualifier.as_deref().unwrap_or_default(),
            timestamp: cell.timestamp.unwrap_or_default() as i64,
            cell_type: cell_type(cell.cell_type.unwrap_or_default(), at)?,
            value: cell.value.as_deref().unwrap_or_default(),
            tags: b"",
        },
        at,
    )
}

fn cell_type(code: i32, at: usize) -> Result<CellType, UnpackError> {
    u8::try_from(code)
        .ok()
        .and_then(CellType::from_code)
        .ok_or_else(|| malformed(at, format_args!("unknown cell type {code}")))
}

/// Refuses a cell whose parts have no place in a KeyValue.
fn checked(cell: WireCell<'_>, at: usize) -> Result<WireCell<'_>, UnpackError> {
    for (what, length, max) in [
        ("row", cell.row.len(), usize::from(i16::MAX.unsigned_abs())),
        ("family", cell.family.len(), usize::from(i8::MAX.unsigned_abs())),
        ("tags", cell.tags.len(), usize::from(u16::MAX)),
    ] {
        if length > max {
            return Err(malformed(
                at,
                format_args!("{what} of {length} bytes; the limit is {max}"),
            ));
        }
    }
    Ok(cell)
}

fn malformed(at: usize, what: std::fmt::Arguments<'_>) -> UnpackError {
    UnpackError::Cells(format!("{what} at byte {at}"))
}

fn cut(at: usize, what: &str) -> UnpackError {
    malformed(at, format_args!("{what} does not fit in the cell"))
}

/// Takes a part with its length off `rest`.
fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

fn long(rest: &mut &[u8]) -> Option<i64> {
    let (value, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(i64::from_be_bytes(*value))
}

fn put_part(part: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(part.len() as u32).to_be_bytes());
    out.extend_from_slice(part);
}

/// Numbers of the fields of a message, with their wire types.
const ROW: u8 = 1 << 3 | 2;
const FAMILY: u8 = 2 << 3 | 2;
const QUALIFIER: u8 = 3 << 3 | 2;
const TIMESTAMP: u8 = 4 << 3;
const CELL_TYPE: u8 = 5 << 3;
const VALUE: u8 = 6 << 3 | 2;

fn message_len(cell: &WireCell<'_>) -> usize {
    let bytes = |part: &[u8]| 1 + prost::length_delimiter_len(part.len()) + part.len();
    let timestamp = 1 + prost::encoding::encoded_len_varint(cell.timestamp as u64);
    [cell.row, cell.family, cell.qualifier, cell.value]
        .map(bytes)
        .into_iter()
        .sum::<usize>()
        + timestamp
        + 2
}

/// Writes the message by hand: HBase's client wants every field, also an empty one.
fn put_message(cell: &WireCell<'_>, out: &mut Vec<u8>) {
    let put_bytes = |field: u8, part: &[u8], out: &mut Vec<u8>| {
        out.push(field);
        prost::encoding::encode_varint(part.len() as u64, out);
        out.extend_from_slice(part);
    };
    prost::encoding::encode_varint(message_len(cell) as u64, out);
    put_bytes(ROW, cell.row, out);
    put_bytes(FAMILY, cell.family, out);
    put_bytes(QUALIFIER, cell.qualifier, out);
    out.push(TIMESTAMP);
    prost::encoding::encode_varint(cell.timestamp as u64, out);
    out.extend_from_slice(&[CELL_TYPE, cell.cell_type as u8]);
    put_bytes(VALUE, cell.value, out);
}

/// Encoding of a connection's cell blocks: another form, a compression, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// The form of the cells; `None`: that of KeyValueCodec and KeyValueCodecWithTags.
    pub form: Option<CellForm>,
    /// The compression of the block.
    pub compressor: Option<Compressor>,
}

impl Packing {
    /// This packing; `None` if it changes nothing.
    pub fn new(form: Option<CellForm>, compressor: Option<Compressor>) -> Option<Self> {
        (form.is_some() || compressor.is_some()).then_some(Self { form, compressor })
    }

    /// Bytes of a block before it is compressed.
    pub fn plain_len(self, key_values: &[u8]) -> Result<usize, CellError> {
        self.form
            .map_or(Ok(key_values.len()), |form| form.encoded_len(key_values))
    }

    /// Packs a block.
    pub fn pack(self, key_values: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let plain = match self.form {
            Some(form) => form.encode(&key_values).map_err(std::io::Error::other)?,
            None => key_values,
        };
        match self.compressor {
            Some(compressor) => compressor.pack(&plain),
            None => Ok(plain),
        }
    }

    /// Unpacks a block to at most `max` bytes in each of its forms. The reservation of the returned
    /// bytes remains with `room`; after an error nothing remains reserved.
    pub fn unpack(self, packed: &Bytes, max: usize, room: &mut impl Room) -> Result<Vec<u8>, UnpackError> {
        let Some(form) = self.form else {
            let compressor = self.compressor;
            return compressor.map_or_else(|| Ok(packed.to_vec()), |one| one.unpack(packed, max, room));
        };
        let Some(compressor) = self.compressor else {
            return form.decode(packed, max, room);
        };
        let plain = compressor.unpack(packed, max, room)?;
        let reserved = plain.capacity();
        let decoded = form.decode(&plain.into(), max, room);
        room.release(reserved);
        decoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Memory that is counted.
    #[derive(Default)]
    struct Counted(usize);

    impl Room for Counted {
        fn reserve(&mut self, bytes: usize) -> bool {
            self.0 += bytes;
            true
        }

        fn release(&mut self, bytes: usize) {
            self.0 -= bytes;
        }
    }

    fn block(cells: &[WireCell<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        for cell in cells {
            cell.encode(&mut out);
        }
        out
    }

    const CELL: WireCell<'static> = WireCell {
        row: b"row",
        family: b"f",
        qualifier: b"",
        timestamp: 7,
        cell_type: CellType::Put,
        value: b"value",
        tags: b"",
    };

    /// The bytes that HBase's encoders write.
    #[test]
    fn forms_are_hbases() {
        let found = CellForm::Cell.encode(&block(&[CELL])).unwrap();
        let expected =
            b"\0\0\0\x03row\0\0\0\x01f\0\0\0\0\0\0\0\0\0\0\0\x07\x04\0\0\0\x05value\0\0\0\0\0\0\0\0";
        assert_eq!(found, expected);
        let tagged = WireCell {
            tags: b"\0\x02\x01x",
            ..CELL
        };
        let found = CellForm::CellWithTags.encode(&block(&[tagged])).unwrap();
        assert_eq!(found[..34], expected[..34]);
        assert_eq!(found[34..], *b"\0\0\0\x04\0\x02\x01x\0\0\0\0\0\0\0\0");
        let found = CellForm::Message.encode(&block(&[CELL])).unwrap();
        assert_eq!(
            found,
            b"\x15\x0a\x03row\x12\x01f\x1a\0\x20\x07\x28\x04\x32\x05value"
        );
    }

    #[test]
    fn blocks_that_are_none_are_refused_with_their_place() {
        let mut cut = CellForm::Cell.encode(&block(&[CELL, CELL])).unwrap();
        let whole = cut.len() / 2;
        cut.pop();
        let rest = [&[0; 16][..], &[CellType::Put as u8], &[0; 12]].concat();
        let long_row = [&[0, 1, 0, 0][..], &vec![b'r'; 1 << 16], &rest].concat();
        for (form, bytes, text) in [
            (
                CellForm::Cell,
                cut,
                format!("mvcc number does not fit in the cell at byte {whole}"),
            ),
            (
                CellForm::Cell,
                b"\xff\xff\xff\xff".to_vec(),
                "row does not fit in the cell at byte 0".to_owned(),
            ),
            (
                CellForm::Cell,
                long_row,
                "row of 65536 bytes; the limit is 32767".to_owned(),
            ),
            (
                CellForm::CellWithTags,
                vec![0; 37],
                "unknown cell type 0 at byte 0".to_owned(),
            ),
            (
                CellForm::Message,
                vec![2, 0x28, 0x05],
                "unknown cell type 5 at byte 0".to_owned(),
            ),
            (CellForm::Message, vec![9, 1], "no message Cell: ".to_owned()),
        ] {
            let mut room = Counted::default();
            let error = form.decode(&bytes.into(), 1 << 20, &mut room).unwrap_err();
            assert!(error.to_string().contains(&text), "{error}");
            assert_eq!(room.0, 0);
        }
    }

    #[test]
    fn the_limit_counts_the_cells_that_the_engine_reads() {
        let packed: Bytes = CellForm::Message.encode(&block(&[CELL; 100])).unwrap().into();
        let bytes = block(&[CELL; 100]).len();
        let mut room = Counted::default();
        let decoded = CellForm::Message.decode(&packed, bytes, &mut room).unwrap();
        assert_eq!((decoded.len(), decoded.capacity(), room.0), (bytes, bytes, bytes));
        let mut room = Counted::default();
        assert_eq!(
            CellForm::Message.decode(&packed, bytes - 1, &mut room),
            Err(UnpackError::TooLarge(bytes - 1))
        );
        assert_eq!(room.0, 0);
    }

    proptest! {
        #[test]
        fn blocks_round_trip_in_every_packing(
            cells in proptest::collection::vec(
                (any::<([u8; 3], u8, i64)>(), proptest::collection::vec(any::<u8>(), 0..20)), 0..20),
            form in 0..4_usize,
            is_packed: bool,
        ) {
            let form = CellForm::ALL.get(form).copied();
            let has_tags = form.is_none_or(CellForm::has_tags);
            let cells: Vec<_> = cells.iter().map(|((row, family, timestamp), value)| WireCell {
                row,
                family: &row[..usize::from(family % 3)],
                timestamp: *timestamp,
                value,
                tags: if has_tags { value } else { b"" },
                ..CELL
            }).collect();
            let plain = block(&cells);
            let Some(packing) = Packing::new(form, is_packed.then_some(Compressor::Zlib)) else { return Ok(()) };
            let packed: Bytes = packing.pack(plain.clone()).unwrap().into();
            if !is_packed {
                prop_assert_eq!(packing.plain_len(&plain).unwrap(), packed.len());
            }
            let mut room = Counted::default();
            let found = packing.unpack(&packed, 1 << 20, &mut room).unwrap();
            prop_assert_eq!(room.0, found.capacity());
            prop_assert_eq!(found, plain);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, form in 0..3_usize) {
            let mut room = Counted::default();
            let found = CellForm::ALL[form].decode(&bytes.into(), 1 << 20, &mut room);
            prop_assert_eq!(room.0, found.map_or(0, |found| found.capacity()));
        }
    }
}

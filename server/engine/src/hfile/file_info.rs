//! The file info: keys and values about the file, in the load-on-open section.
//!
//! `PBUF`, then a length-delimited protobuf message of pairs, sorted by key. Numbers in values are
//! big-endian. HBase ignores keys that it does not know; ours begin with `basalt.`.

use std::collections::BTreeMap;

use prost::Message;

use super::Properties;
use super::block::Check;
use super::column_sample::ColumnSample;
use super::row_figures::RowFigures;
use super::trailer::Trailer;
use crate::cell::{Key, KeyBuf};
use crate::codec::Cursor;
use crate::id::{SeqId, Uuid};
use crate::schema::{BloomType, DataBlockEncoding};

const MAGIC: &[u8; 4] = b"PBUF";

/// Flat key of the last cell.
pub(super) const LAST_KEY: &str = "hfile.LASTKEY";
/// Average bytes of a key, i32.
pub(super) const AVERAGE_KEY_BYTES: &str = "hfile.AVG_KEY_LEN";
/// Average bytes of a value, i32.
pub(super) const AVERAGE_VALUE_BYTES: &str = "hfile.AVG_VALUE_LEN";
/// Wall-clock milliseconds, i64.
pub(super) const CREATED: &str = "hfile.CREATE_TIME_TS";
/// Most bytes of tags in a cell, i32. There iff cells have a tags length.
pub(super) const TAGS_BYTES_MAX: &str = "hfile.MAX_TAGS_LEN";
/// Whether encoded blocks compress their tags, bool.
pub(super) const TAGS_COMPRESSED: &str = "hfile.TAGS_COMPRESSED";
/// Flat key of the largest cell.
pub(super) const BIGGEST_KEY: &str = "hfile.KEY_OF_BIGGEST_CELL";
/// Bytes of the largest cell, i64.
pub(super) const BIGGEST_BYTES: &str = "hfile.LEN_OF_BIGGEST_CELL";
/// 1 (i32) when cells end with a sequence id.
pub(super) const CELL_VERSION: &str = "KEY_VALUE_VERSION";
/// Greatest sequence id of a cell, i64.
pub(super) const CELL_SEQ_MAX: &str = "MAX_MEMSTORE_TS_KEY";
/// Name of the encoding. HBase leaves it out for NONE.
pub(super) const ENCODING: &str = "DATA_BLOCK_ENCODING";
/// Greatest sequence id that the file stands for, i64.
pub(super) const SEQ_MAX: &str = "MAX_SEQ_ID_KEY";
/// Whether a compaction of all files wrote it, bool.
pub(super) const MAJOR: &str = "MAJOR_COMPACTION_KEY";
/// Kind of key in the bloom filter.
pub(super) const BLOOM_TYPE: &str = "BLOOM_FILTER_TYPE";
/// Bytes of a row in a filter of prefixes, i32.
pub(super) const BLOOM_PARAM: &str = "BLOOM_FILTER_PARAM";
/// Greatest key of the bloom filter.
pub(super) const BLOOM_LAST_KEY: &str = "LAST_BLOOM_KEY";
/// Family tombstones of both kinds, i64.
pub(super) const DELETE_FAMILY_CELLS: &str = "DELETE_FAMILY_COUNT";
/// Smallest and greatest timestamp, two i64; HBase 2 may also write a protobuf message.
pub(super) const TIME_RANGE: &str = "TIMERANGE";
/// Smallest timestamp of a put, i64; `Long.MAX_VALUE` without puts.
pub(super) const EARLIEST_PUT: &str = "EARLIEST_PUT_TS";
/// Encoding of index blocks; only NONE can be read here.
const INDEX_ENCODING: &str = "INDEX_BLOCK_ENCODING";
/// 16 bytes that say which file it is.
pub(super) const UUID: &str = "basalt.UUID";
/// Bytes of keys and values, i64.
pub(super) const DATA_BYTES: &str = "basalt.DATA_BYTES";
/// Hashes of some of the columns; see `column_sample`.
pub(super) const COLUMN_SAMPLE: &str = "basalt.COLUMN_SAMPLE";

/// The largest row and tombstones; see `row_figures`.
pub(super) const ROW_FIGURES: &str = "basalt.ROW_FIGURES";

#[derive(Clone, PartialEq, Eq, Message)]
struct Pair {
    #[prost(bytes = "vec", required, tag = "1")]
    first: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    second: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct FileInfoProto {
    #[prost(message, repeated, tag = "1")]
    map_entry: Vec<Pair>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct TimeRangeProto {
    #[prost(uint64, optional, tag = "1")]
    from: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    to: Option<u64>,
}

/// Keys and values about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileInfo(pub(super) BTreeMap<Vec<u8>, Vec<u8>>);

impl FileInfo {
    /// Sets a value.
    pub(super) fn set(&mut self, key: &str, value: impl AsRef<[u8]>) {
        self.0.insert(key.as_bytes().to_vec(), value.as_ref().to_vec());
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key.as_bytes()).map(Vec::as_slice)
    }

    fn i64(&self, key: &str) -> Check<Option<i64>> {
        self.get(key)
            .map(|value| {
                let value = value
                    .try_into()
                    .map_err(|_| format!("file info {key} is not eight bytes"))?;
                Ok(i64::from_be_bytes(value))
            })
            .transpose()
    }

    fn i32(&self, key: &str) -> Check<Option<i32>> {
        self.get(key)
            .map(|value| {
                let value = value
                    .try_into()
                    .map_err(|_| format!("file info {key} is not four bytes"))?;
                Ok(i32::from_be_bytes(value))
            })
            .transpose()
    }

    /// HBase's booleans are one byte, true being -1.
    fn bool(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|value| value.iter().any(|byte| *byte != 0))
    }

    fn key(&self, key: &str) -> Check<Option<KeyBuf>> {
        self.get(key)
            .map(|value| {
                let parsed = Key::parse(value).ok_or_else(|| format!("file info {key} is not a key"))?;
                Ok(KeyBuf::copy_of(parsed))
            })
            .transpose()
    }

    fn named<T: std::str::FromStr>(&self, key: &str) -> Check<Option<T>> {
        self.get(key)
            .map(|value| {
                std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| {
                        format!(
                            "file info {key} is {}, which is not supported",
                            value.escape_ascii()
                        )
                    })
            })
            .transpose()
    }

    /// The payload of the block.
    pub(super) fn encode(&self) -> Vec<u8> {
        let pairs = self.0.iter().map(|(first, second)| Pair {
            first: first.clone(),
            second: second.clone(),
        });
        let proto = FileInfoProto {
            map_entry: pairs.collect(),
        };
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&proto.encode_length_delimited_to_vec());
        out
    }

    /// Reads the payload of the block.
    pub(super) fn parse(payload: &[u8]) -> Check<Self> {
        let message = payload
            .strip_prefix(MAGIC)
            .ok_or("file info of HBase before 0.96 cannot be read")?;
        let proto =
            FileInfoProto::decode_length_delimited(message).map_err(|error| format!("file info: {error}"))?;
        let pairs = proto.map_entry.into_iter().map(|pair| (pair.first, pair.second));
        Ok(Self(pairs.collect()))
    }

    /// The parts of cells: tags, and whether they are compressed in encoded blocks; sequence id.
    pub(super) fn cell_parts(&self) -> Check<(bool, bool, bool)> {
        let tags = self.get(TAGS_BYTES_MAX).is_some();
        let seq = self.i32(CELL_VERSION)? == Some(1);
        Ok((tags, tags && self.bool(TAGS_COMPRESSED), seq))
    }

    /// Refuses files whose index blocks are encoded (HBase's `INDEX_BLOCK_ENCODING`, off unless asked for).
    pub(super) fn check_index_encoding(&self) -> Check<()> {
        match self.get(INDEX_ENCODING) {
            None | Some(b"NONE") => Ok(()),
            Some(encoding) => Err(format!(
                "index block encoding {} is not supported",
                encoding.escape_ascii()
            )),
        }
    }

    /// Takes the values that the engine acts on.
    pub(super) fn properties(
        mut self,
        trailer: &Trailer,
        file_bytes: u64,
        first_key: Option<KeyBuf>,
    ) -> Check<Properties> {
        let column_sample = self.0.remove(COLUMN_SAMPLE.as_bytes());
        let parse = |value: Vec<u8>| {
            ColumnSample::parse(&value).ok_or_else(|| format!("file info {COLUMN_SAMPLE} is malformed"))
        };
        let column_sample = column_sample.map(parse).transpose()?;
        let row_figures = self.0.remove(ROW_FIGURES.as_bytes());
        let parse = |value: Vec<u8>| {
            RowFigures::parse(&value).ok_or_else(|| format!("file info {ROW_FIGURES} is malformed"))
        };
        let row_figures = row_figures.map(parse).transpose()?;
        let bloom = self.named::<BloomType>(BLOOM_TYPE)?.unwrap_or(BloomType::None);
        let bloom_prefix_bytes = match bloom {
            BloomType::RowPrefix => self
                .i32(BLOOM_PARAM)?
                .and_then(|bytes| usize::try_from(bytes).ok())
                .filter(|bytes| *bytes > 0)
                .ok_or("a bloom filter of prefixes without their length")?,
            BloomType::None | BloomType::Row | BloomType::RowCol => 0,
        };
        let last_key = self.key(LAST_KEY)?;
        if trailer.cells > 0 && (last_key.is_none() || first_key.is_none()) {
            return Err("file with cells but without a first and last key".into());
        }
        let average = |key| Ok::<_, String>(u64::try_from(self.i32(key)?.unwrap_or(0)).unwrap_or(0));
        let estimate =
            (average(AVERAGE_KEY_BYTES)? + average(AVERAGE_VALUE_BYTES)?).saturating_mul(trailer.cells);
        let number = |key| {
            Ok::<_, String>(
                self.i64(key)?
                    .map_or(0, |value| u64::try_from(value).unwrap_or(0)),
            )
        };
        Ok(Properties {
            cells: trailer.cells,
            file_bytes,
            data_bytes: self.i64(DATA_BYTES)?.map_or(estimate, |bytes| bytes as u64),
            first_key: first_key.filter(|_| trailer.cells > 0),
            last_key,
            time_range: self.time_range()?,
            delete_family_cells: number(DELETE_FAMILY_CELLS)?,
            earliest_put: self.i64(EARLIEST_PUT)?.filter(|time| *time != i64::MAX),
            uuid: self
                .get(UUID)
                .map(|uuid| {
                    uuid.try_into()
                        .map(Uuid)
                        .map_err(|_| format!("file info {UUID} is not 16 bytes"))
                })
                .transpose()?,
            bloom,
            bloom_prefix_bytes,
            compression: trailer.compression,
            encoding: self.named(ENCODING)?.unwrap_or(DataBlockEncoding::None),
            tags: self.i32(TAGS_BYTES_MAX)?.is_some_and(|bytes| bytes != 0),
            max_seq: SeqId(number(SEQ_MAX)?),
            major: self.bool(MAJOR),
            column_sample,
            row_figures,
            file_info: self.0,
        })
    }

    fn time_range(&self) -> Check<Option<(i64, i64)>> {
        let Some(value) = self.get(TIME_RANGE) else {
            return Ok(None);
        };
        let malformed = || format!("file info {TIME_RANGE} is malformed");
        let (from, to) = if let Some(message) = value.strip_prefix(MAGIC) {
            let proto = TimeRangeProto::decode(message).map_err(|_| malformed())?;
            (proto.from.unwrap_or(0) as i64, proto.to.unwrap_or(0) as i64)
        } else {
            let mut cursor = Cursor::new(value);
            let (from, to) = (cursor.i64_be(), cursor.i64_be());
            (from.ok_or_else(malformed)?, to.ok_or_else(malformed)?)
        };
        Ok((from <= to).then_some((from, to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_round_trip_behind_the_magic() {
        let mut info = FileInfo::default();
        info.set(MAJOR, [0xff]);
        info.set(SEQ_MAX, 7_i64.to_be_bytes());
        let payload = info.encode();
        assert_eq!(payload[..4], *b"PBUF");
        let read = FileInfo::parse(&payload).unwrap();
        assert_eq!(read, info);
        assert!(read.bool(MAJOR) && !read.bool(TAGS_COMPRESSED));
        assert_eq!(read.i64(SEQ_MAX), Ok(Some(7)));
        assert!(read.i32(SEQ_MAX).is_err());
    }

    #[test]
    fn both_forms_of_a_time_range_are_read() {
        let mut info = FileInfo::default();
        info.set(TIME_RANGE, [5_i64.to_be_bytes(), 9_i64.to_be_bytes()].concat());
        assert_eq!(info.time_range(), Ok(Some((5, 9))));
        info.set(TIME_RANGE, b"PBUF\x08\x05\x10\x09");
        assert_eq!(info.time_range(), Ok(Some((5, 9))));
        info.set(
            TIME_RANGE,
            [i64::MAX.to_be_bytes(), (-1_i64).to_be_bytes()].concat(),
        );
        assert_eq!(info.time_range(), Ok(None), "a file without cells");
        info.set(TIME_RANGE, b"short");
        assert!(info.time_range().is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = FileInfo::parse(&[MAGIC.as_slice(), &bytes].concat());
        }
    }
}

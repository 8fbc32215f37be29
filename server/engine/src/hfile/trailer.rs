//! The trailer: the last 4096 bytes, where reading begins.
//!
//! ```text
//! +------------+--------------------------+---------+------------+----------------+------------------------+
//! | TRABLK"$   | FileTrailerProto, length-| zeros   | "BASALT1:" | CRC-32C of the | version u32 BE: minor  |
//! | 8 bytes    | delimited                |         | 8 bytes    | other bytes u32| << 24 or'ed with major |
//! +------------+--------------------------+---------+------------+----------------+------------------------+
//! ```
//!
//! HBase puts zeros where our mark and checksum are and skips over whatever is there. The trailer
//! is the one part of an HFile without a checksum; with ours, a flipped bit in it is detected too.
//! A file whose file info names us as the writer must have the mark.

use prost::Message;

use super::block::Check;
use crate::checksum;
use crate::schema::Compression;

/// Bytes of the trailer of version 3.
pub(super) const TRAILER_BYTES: usize = 4096;

const MAGIC: &[u8; 8] = b"TRABLK\"$";
const MARK: &[u8; 8] = b"BASALT1:";
const MARK_AT: usize = TRAILER_BYTES - 16;
const CRC_AT: usize = TRAILER_BYTES - 8;
const VERSION_AT: usize = TRAILER_BYTES - 4;
const MAJOR_VERSION: u32 = 3;
const MINOR_VERSION: u32 = 3;

/// HBase 2's name for the order of cells in files, kept for HBase 1.
const COMPARATOR: &str = "org.apache.hadoop.hbase.KeyValue$KVComparator";

/// Other names of the same order.
const COMPARATORS: [&str; 6] = [
    COMPARATOR,
    "org.apache.hadoop.hbase.KeyValue$KeyComparator",
    "org.apache.hadoop.hbase.CellComparator",
    "org.apache.hadoop.hbase.CellComparatorImpl",
    "org.apache.hadoop.hbase.InnerStoreCellComparator",
    "",
];

#[derive(Clone, PartialEq, Eq, Message)]
struct TrailerProto {
    #[prost(uint64, optional, tag = "1")]
    file_info_offset: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    load_on_open_data_offset: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    uncompressed_data_index_size: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    total_uncompressed_bytes: Option<u64>,
    #[prost(uint32, optional, tag = "5")]
    data_index_count: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    meta_index_count: Option<u32>,
    #[prost(uint64, optional, tag = "7")]
    entry_count: Option<u64>,
    #[prost(uint32, optional, tag = "8")]
    num_data_index_levels: Option<u32>,
    #[prost(uint64, optional, tag = "9")]
    first_data_block_offset: Option<u64>,
    #[prost(uint64, optional, tag = "10")]
    last_data_block_offset: Option<u64>,
    #[prost(string, optional, tag = "11")]
    comparator_class_name: Option<String>,
    #[prost(uint32, optional, tag = "12")]
    compression_codec: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "13")]
    encryption_key: Option<Vec<u8>>,
}

/// Content of the trailer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Where the file info block is.
    pub(super) file_info_offset: u64,
    /// Where the load-on-open section begins.
    pub(super) load_on_open_offset: u64,
    /// Bytes of all index blocks before compression.
    pub(super) index_plain_bytes: u64,
    /// Bytes of all blocks before compression, headers included.
    pub(super) plain_bytes: u64,
    /// Entries of the root index.
    pub(super) root_entries: u32,
    /// Entries of the meta index.
    pub(super) meta_entries: u32,
    /// Cells.
    pub(super) cells: u64,
    /// Levels of the data index.
    pub(super) levels: u32,
    /// First and last data block; `None` without cells.
    pub(super) data_blocks: Option<(u64, u64)>,
    /// Codec of all blocks.
    pub(super) compression: Compression,
    /// Whether our mark and a right checksum were there.
    pub(super) marked: bool,
}

/// HBase's numbers of the codecs. They are on disk: never renumber.
fn codec_number(compression: Compression) -> u32 {
    match compression {
        Compression::Gz => 1,
        Compression::None => 2,
        Compression::Snappy => 3,
        Compression::Lz4 => 4,
        Compression::Zstd => 6,
    }
}

impl Trailer {
    /// The trailer's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let proto = TrailerProto {
            file_info_offset: Some(self.file_info_offset),
            load_on_open_data_offset: Some(self.load_on_open_offset),
            uncompressed_data_index_size: Some(self.index_plain_bytes),
            total_uncompressed_bytes: Some(self.plain_bytes),
            data_index_count: Some(self.root_entries),
            meta_index_count: Some(self.meta_entries),
            entry_count: Some(self.cells),
            num_data_index_levels: Some(self.levels),
            first_data_block_offset: Some(self.data_blocks.map_or(u64::MAX, |(first, _)| first)),
            last_data_block_offset: Some(self.data_blocks.map_or(u64::MAX, |(_, last)| last)),
            comparator_class_name: Some(COMPARATOR.into()),
            compression_codec: Some(codec_number(self.compression)),
            encryption_key: None,
        };
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&proto.encode_length_delimited_to_vec());
        out.resize(TRAILER_BYTES, 0);
        out[MARK_AT..CRC_AT].copy_from_slice(MARK);
        out[VERSION_AT..].copy_from_slice(&(MINOR_VERSION << 24 | MAJOR_VERSION).to_be_bytes());
        let sum = sum(&out);
        out[CRC_AT..VERSION_AT].copy_from_slice(&sum.to_be_bytes());
        out
    }

    /// Reads the last [`TRAILER_BYTES`] of a file.
    pub(super) fn parse(bytes: &[u8; TRAILER_BYTES]) -> Check<Self> {
        let version = u32::from_be_bytes([
            bytes[VERSION_AT],
            bytes[VERSION_AT + 1],
            bytes[VERSION_AT + 2],
            bytes[VERSION_AT + 3],
        ]);
        let (major, minor) = (version & 0x00ff_ffff, version >> 24);
        if !bytes.starts_with(MAGIC) {
            return Err("not an HFile of version 3, or its end is missing: no trailer here".into());
        }
        if major != MAJOR_VERSION {
            return Err(format!("HFile version {major}.{minor} is not supported"));
        }
        let marked = bytes[MARK_AT..CRC_AT] == *MARK;
        if marked && bytes[CRC_AT..VERSION_AT] != sum(bytes).to_be_bytes() {
            return Err("checksum mismatch in the trailer".into());
        }
        let proto = TrailerProto::decode_length_delimited(&bytes[MAGIC.len()..MARK_AT])
            .map_err(|error| format!("trailer: {error}"))?;
        Self::from_proto(&proto, marked)
    }

    fn from_proto(proto: &TrailerProto, marked: bool) -> Check<Self> {
        if proto.encryption_key.is_some() {
            return Err("the file is encrypted, which is not supported".into());
        }
        let comparator = proto.comparator_class_name.as_deref().unwrap_or("");
        if !COMPARATORS.contains(&comparator) {
            return Err(format!(
                "cells in the order of {comparator}, which is not supported"
            ));
        }
        let number = proto.compression_codec.unwrap_or(codec_number(Compression::None));
        let compression = Compression::ALL
            .iter()
            .copied()
            .find(|compression| codec_number(*compression) == number)
            .ok_or_else(|| format!("compression codec {number} is not supported"))?;
        let (first, last) = (
            proto.first_data_block_offset.unwrap_or(u64::MAX),
            proto.last_data_block_offset.unwrap_or(u64::MAX),
        );
        let missing = |field: &str| format!("trailer without {field}");
        Ok(Self {
            file_info_offset: proto
                .file_info_offset
                .ok_or_else(|| missing("file info offset"))?,
            load_on_open_offset: proto
                .load_on_open_data_offset
                .ok_or_else(|| missing("load-on-open offset"))?,
            index_plain_bytes: proto.uncompressed_data_index_size.unwrap_or(0),
            plain_bytes: proto.total_uncompressed_bytes.unwrap_or(0),
            root_entries: proto
                .data_index_count
                .ok_or_else(|| missing("data index count"))?,
            meta_entries: proto.meta_index_count.unwrap_or(0),
            cells: proto.entry_count.ok_or_else(|| missing("entry count"))?,
            levels: proto.num_data_index_levels.unwrap_or(1),
            data_blocks: (first <= last && last != u64::MAX).then_some((first, last)),
            compression,
            marked,
        })
    }
}

fn sum(trailer: &[u8]) -> u32 {
    checksum::crc32c_append(checksum::crc32c(&trailer[..CRC_AT]), &trailer[VERSION_AT..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailer() -> Trailer {
        Trailer {
            file_info_offset: 500,
            load_on_open_offset: 400,
            index_plain_bytes: 90,
            plain_bytes: 1000,
            root_entries: 3,
            meta_entries: 0,
            cells: 12,
            levels: 1,
            data_blocks: Some((0, 200)),
            compression: Compression::Zstd,
            marked: true,
        }
    }

    #[test]
    fn round_trip() {
        let bytes: [u8; TRAILER_BYTES] = trailer().encode().try_into().unwrap();
        assert_eq!(Trailer::parse(&bytes), Ok(trailer()));
        assert_eq!(bytes[VERSION_AT..], [3, 0, 0, 3]);
    }

    /// A flipped bit is found, or the mark is gone (which the reader finds with the file info) and nothing
    /// else has changed.
    #[test]
    fn every_flipped_bit_is_found() {
        let good: [u8; TRAILER_BYTES] = trailer().encode().try_into().unwrap();
        for bit in 0..TRAILER_BYTES * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = Trailer::parse(&bytes) {
                assert!((MARK_AT..CRC_AT).contains(&(bit / 8)), "bit {bit}");
                assert_eq!(
                    read,
                    Trailer {
                        marked: false,
                        ..trailer()
                    }
                );
            }
        }
    }
}

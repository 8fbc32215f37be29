//! The block: every part of an HFile except the trailer.
//!
//! ```text
//! +---------+--------------+---------------+-------------+------+----------+---------------+=========+===========+
//! | magic   | on-disk size | plain size    | previous    | sum  | bytes    | on-disk size  | payload | checksums |
//! | 8 bytes | of payload + | of payload    | block of    | type | per      | of header +   |         | u32 each  |
//! |         | checksums u32| u32           | the kind i64| u8   | sum u32  | payload u32   |         |           |
//! +---------+--------------+---------------+-------------+------+----------+---------------+=========+===========+
//! ```
//!
//! Numbers are big-endian. There is one checksum per `bytes per sum` bytes of header and payload as they lie
//! on disk, so the header is covered as well. The payload is compressed with the file's codec. `previous
//! block` is the offset of the block before it of the same kind, -1 for the first.
//!
//! Pure functions of bytes; callers add the file's name and the offset to errors.

use std::borrow::Cow;

use super::compress::Codec;
use crate::checksum;
pub(super) use crate::codec::Check;
use crate::codec::Cursor;
use crate::schema::Compression;
use crate::seeded;

/// Bytes of a block's header.
pub(super) const HEADER_BYTES: usize = 33;

/// Bytes under one checksum in the blocks that we write (HBase: `hbase.hstore.bytes.per.checksum`).
pub(super) const BYTES_PER_CHECKSUM: usize = 16 * 1024;

/// Largest payload that we unpack. The cap exists so that a hostile header cannot ask for gigabytes.
pub(super) const PLAIN_BYTES_MAX: usize = 1 << 30;

/// Checksum types. The codes are on disk: never renumber.
const CHECKSUM_NONE: u8 = 0;
const CHECKSUM_CRC32: u8 = 1;
const CHECKSUM_CRC32C: u8 = 2;

/// Type of a block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Plain cells.
    Data,
    /// Encoded cells.
    EncodedData,
    /// Index of data blocks.
    LeafIndex,
    /// One chunk of a bloom filter.
    BloomChunk,
    /// A named block of the file's writer.
    Meta,
    /// Index of index blocks.
    IntermediateIndex,
    /// Topmost index, loaded on open.
    RootIndex,
    /// Keys and values about the file.
    FileInfo,
    /// Description of the row or column bloom filter.
    GeneralBloomMeta,
    /// Description of the bloom filter of family tombstones.
    DeleteFamilyBloomMeta,
}

impl BlockKind {
    /// All kinds.
    pub(super) const ALL: [Self; 10] = [
        Self::Data,
        Self::EncodedData,
        Self::LeafIndex,
        Self::BloomChunk,
        Self::Meta,
        Self::IntermediateIndex,
        Self::RootIndex,
        Self::FileInfo,
        Self::GeneralBloomMeta,
        Self::DeleteFamilyBloomMeta,
    ];

    /// The eight bytes that a block of the kind begins with.
    pub(super) fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Data => b"DATABLK*",
            Self::EncodedData => b"DATABLKE",
            Self::LeafIndex => b"IDXLEAF2",
            Self::BloomChunk => b"BLMFBLK2",
            Self::Meta => b"METABLKc",
            Self::IntermediateIndex => b"IDXINTE2",
            Self::RootIndex => b"IDXROOT2",
            Self::FileInfo => b"FILEINF2",
            Self::GeneralBloomMeta => b"BLMFMET2",
            Self::DeleteFamilyBloomMeta => b"DFBLMET2",
        }
    }

    fn from_magic(magic: [u8; 8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind.magic() == magic)
    }

    /// Whether it holds cells.
    pub(super) fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::EncodedData)
    }
}

/// A block's header, taken apart. The sizes are consistent with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Type of the block's content.
    pub(super) kind: BlockKind,
    /// Bytes on disk: header, payload and checksums.
    pub(super) disk_bytes: usize,
    /// Bytes of the payload once it is uncompressed.
    pub(super) plain_bytes: usize,
    /// Offset of the block before it of the same kind.
    pub(super) previous: Option<u64>,
    checksum_type: u8,
    bytes_per_checksum: usize,
    /// Bytes on disk without the checksums.
    covered_bytes: usize,
}

impl Header {
    /// Reads a header and checks that its numbers fit together. The checksums are not checked.
    pub(super) fn parse(bytes: &[u8]) -> Check<Self> {
        let mut cursor = Cursor::new(bytes);
        let magic = cursor.array::<8>().ok_or("block header is cut short")?;
        let kind = BlockKind::from_magic(magic).ok_or("no block begins here")?;
        let mut size = || cursor.i32_be().and_then(|size| usize::try_from(size).ok());
        let (Some(disk), Some(plain_bytes)) = (size(), size()) else {
            return Err("block header with a negative size".into());
        };
        let previous = cursor.i64_be().ok_or("block header is cut short")?;
        let checksum_type = cursor.u8().ok_or("block header is cut short")?;
        let mut size = || cursor.i32_be().and_then(|size| usize::try_from(size).ok());
        let (Some(bytes_per_checksum), Some(covered_bytes)) = (size(), size()) else {
            return Err("block header with a negative size".into());
        };
        let header = Self {
            kind,
            disk_bytes: disk + HEADER_BYTES,
            plain_bytes,
            previous: u64::try_from(previous).ok(),
            checksum_type,
            bytes_per_checksum,
            covered_bytes,
        };
        if !matches!(checksum_type, CHECKSUM_NONE | CHECKSUM_CRC32 | CHECKSUM_CRC32C) {
            return Err(format!("block with the unknown checksum type {checksum_type}"));
        }
        if previous < -1 || bytes_per_checksum == 0 || covered_bytes < HEADER_BYTES {
            return Err("block header with impossible numbers".into());
        }
        if covered_bytes + 4 * covered_bytes.div_ceil(bytes_per_checksum) != header.disk_bytes {
            return Err("sizes in the block header contradict each other".into());
        }
        if plain_bytes > PLAIN_BYTES_MAX {
            return Err(format!(
                "block of {plain_bytes} bytes; the limit is {PLAIN_BYTES_MAX}"
            ));
        }
        Ok(header)
    }

    fn verify_checksums(&self, block: &[u8]) -> Check<()> {
        let (covered, sums) = block.split_at(self.covered_bytes);
        for (index, (chunk, sum)) in covered
            .chunks(self.bytes_per_checksum)
            .zip(sums.chunks_exact(4))
            .enumerate()
        {
            let actual = match self.checksum_type {
                CHECKSUM_CRC32 => checksum::crc32(chunk),
                CHECKSUM_CRC32C => checksum::crc32c(chunk),
                // A block without checksums has zeros in their place. Requiring them detects the
                // flipped bit that turns type 2 into type 0.
                _ => 0,
            };
            if actual.to_be_bytes() != sum {
                let from = index * self.bytes_per_checksum;
                return Err(format!(
                    "checksum mismatch in a {:?} block, bytes {from} to {} of it",
                    self.kind,
                    from + chunk.len()
                ));
            }
        }
        Ok(())
    }
}

/// Verifies a block and unpacks its payload. `block` is the whole block and nothing else; if it is
/// owned and not compressed, its memory becomes the payload's.
pub(super) fn unpack(block: Cow<'_, [u8]>, compression: Compression) -> Check<(Header, Vec<u8>)> {
    let header = Header::parse(&block)?;
    if header.disk_bytes != block.len() {
        return Err(format!(
            "a {:?} block of {} bytes where one of {} is expected",
            header.kind,
            header.disk_bytes,
            block.len()
        ));
    }
    let is_data = matches!(header.kind, BlockKind::Data | BlockKind::EncodedData);
    let is_skipped =
        is_data && seeded::is_on("data-not-verified") || !is_data && seeded::is_on("index-not-verified");
    if !is_skipped {
        header.verify_checksums(&block)?;
    }
    let payload = HEADER_BYTES..header.covered_bytes;
    let plain = match block {
        Cow::Owned(mut block) if compression == Compression::None && payload.len() == header.plain_bytes => {
            block.truncate(payload.end);
            block.drain(..payload.start);
            block
        }
        block => super::compress::uncompress(compression, &block[payload], header.plain_bytes)?,
    };
    Ok((header, plain))
}

/// Size on disk of a block that is not compressed.
pub(super) fn plain_disk_bytes(payload_bytes: usize) -> usize {
    with_checksums(HEADER_BYTES + payload_bytes)
}

/// Size on disk of a header and payload of this many bytes.
fn with_checksums(covered_bytes: usize) -> usize {
    covered_bytes + 4 * covered_bytes.div_ceil(BYTES_PER_CHECKSUM)
}

/// Packs `payload` and appends the block to `out`. Returns the block's size on disk.
pub(super) fn pack(
    out: &mut Vec<u8>,
    kind: BlockKind,
    payload: &[u8],
    previous: Option<u64>,
    codec: &mut Codec,
) -> Check<usize> {
    if payload.len() > PLAIN_BYTES_MAX {
        return Err(format!(
            "a block of {} bytes; the limit is {PLAIN_BYTES_MAX}",
            payload.len()
        ));
    }
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    codec.compress(payload, out)?;
    let covered_bytes = out.len() - start;
    let disk_bytes = with_checksums(covered_bytes);

    let header = &mut out[start..start + HEADER_BYTES];
    header[..8].copy_from_slice(kind.magic());
    header[8..12].copy_from_slice(&((disk_bytes - HEADER_BYTES) as u32).to_be_bytes());
    header[12..16].copy_from_slice(&(payload.len() as u32).to_be_bytes());
    header[16..24].copy_from_slice(&previous.map_or(-1, |offset| offset as i64).to_be_bytes());
    header[24] = CHECKSUM_CRC32C;
    header[25..29].copy_from_slice(&(BYTES_PER_CHECKSUM as u32).to_be_bytes());
    header[29..33].copy_from_slice(&(covered_bytes as u32).to_be_bytes());

    for from in (start..start + covered_bytes).step_by(BYTES_PER_CHECKSUM) {
        let to = (from + BYTES_PER_CHECKSUM).min(start + covered_bytes);
        let sum = checksum::crc32c(&out[from..to]);
        out.extend_from_slice(&sum.to_be_bytes());
    }
    Ok(disk_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(payload: &[u8], compression: Compression) -> Vec<u8> {
        let mut out = Vec::new();
        let mut codec = Codec::new(compression).unwrap();
        let size = pack(&mut out, BlockKind::Meta, payload, Some(77), &mut codec).unwrap();
        assert_eq!(size, out.len());
        out
    }

    /// A packed payload unpacks to the same bytes, with every codec, for payloads around the size
    /// of one checksum chunk and of one codec chunk.
    #[test]
    fn round_trip() {
        for &compression in Compression::ALL {
            for len in [0, 1, 1000, BYTES_PER_CHECKSUM - HEADER_BYTES, 40_000, 700_000] {
                let payload: Vec<u8> = (0..len).map(|index| (index / 7 % 251) as u8).collect();
                let block = packed(&payload, compression);
                let (header, plain) = unpack(Cow::Borrowed(&block), compression).unwrap();
                let handed_over = unpack(Cow::Owned(block.clone()), compression).unwrap();
                assert_eq!(handed_over.1, plain);
                assert_eq!(plain, payload, "{compression} {len}");
                assert_eq!((header.kind, header.previous), (BlockKind::Meta, Some(77)));
            }
        }
    }

    /// No single flipped bit goes unnoticed, whatever field it hits: header, payload or checksum.
    #[test]
    fn every_flipped_bit_is_found() {
        let block = packed(b"twenty bytes of text", Compression::None);
        for bit in 0..block.len() * 8 {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                unpack(Cow::Borrowed(&damaged), Compression::None).is_err(),
                "bit {bit}"
            );
            assert!(
                unpack(Cow::Owned(damaged), Compression::None).is_err(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_block_without_checksums_is_accepted_only_with_zeros_in_their_place() {
        let mut block = packed(b"written by someone who trusts the disk", Compression::None);
        block[24] = CHECKSUM_NONE;
        assert!(unpack(Cow::Borrowed(&block), Compression::None).is_err());
        let sum_at = block.len() - 4;
        block[sum_at..].fill(0);
        assert!(unpack(Cow::Borrowed(&block), Compression::None).is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, plain_bytes in 0_usize..10_000) {
            let _ = unpack(Cow::Borrowed(&bytes), Compression::None);
            let _ = unpack(Cow::Owned(bytes.clone()), Compression::None);
            for &compression in Compression::ALL {
                let _ = super::super::compress::uncompress(compression, &bytes, plain_bytes);
            }
        }
    }
}

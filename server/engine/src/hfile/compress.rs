//! Compression of block payloads, byte for byte as HBase's codecs frame it.
//!
//! SNAPPY, LZ4 and ZSTD use Hadoop's block framing: a payload is a run of segments
//!
//! ```text
//! +--------------------+----------------------+------------------+     (the last two repeat until the segment's
//! | plain size of the  | packed size of chunk | chunk            |      plain size is reached)
//! | segment, u32 BE    | u32 BE               |                  |
//! +--------------------+----------------------+------------------+
//! ```
//!
//! GZ is one gzip stream. ZSTD is found in two forms: the framing above, by HBase's own codec
//! (`hbase-compression-zstd`, which works without native libraries), and bare zstd frames, by
//! Hadoop's native codec. We write the first and read both: a bare frame begins with zstd's magic
//! number, which as a segment size would be 650 MB.
//!
//! Sizes are checked before memory is taken: a payload unpacks to exactly the size in its
//! (checksummed) block header, and a size that the packed bytes cannot unpack to is rejected.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};

use crate::codec::Check;
use crate::schema::Compression;

/// Most plain bytes in one chunk. Hadoop's readers unpack a chunk into a buffer of 256 KiB and its writers
/// leave a sixth and 32 bytes of it for data that does not compress.
const CHUNK_BYTES_MAX: usize = 256 * 1024 - (256 * 1024 / 6 + 32);

const ZSTD_LEVEL: i32 = 3;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Most plain bytes that one packed byte of the codec's format can stand for.
fn plain_per_packed_byte(compression: Compression) -> usize {
    match compression {
        Compression::None => 1,
        // A copy of at most 64 bytes takes three (format_description.txt, 2.2).
        Compression::Snappy => 22,
        // Each byte of a long match length counts up to 255 (lz4_Block_format.md).
        Compression::Lz4 => 255,
        // A match of at most 258 bytes takes two bits (RFC 1951, 3.2.5).
        Compression::Gz => 1032,
        // A block of 128 KiB of one byte takes four (RFC 8878, 3.1.1.2).
        Compression::Zstd => 32 << 10,
    }
}

/// Packs payloads; keeps its algorithm's reusable state between calls.
pub(super) enum Codec {
    /// Stored as it is.
    None,
    /// Snappy.
    Snappy(Box<snap::raw::Encoder>),
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd(zstd::bulk::Compressor<'static>),
    /// gzip.
    Gz,
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Snappy(_) => "Snappy",
            Self::Lz4 => "Lz4",
            Self::Zstd(_) => "Zstd",
            Self::Gz => "Gz",
        })
    }
}

impl Codec {
    /// The codec of a family.
    pub(super) fn new(compression: Compression) -> Check<Self> {
        Ok(match compression {
            Compression::None => Self::None,
            Compression::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 => Self::Lz4,
            Compression::Zstd => {
                Self::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(|error| format!("zstd: {error}"))?)
            }
            Compression::Gz => Self::Gz,
        })
    }

    /// Appends the packed form of `plain` to `out`.
    pub(super) fn compress(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Check<()> {
        match self {
            Self::None => out.extend_from_slice(plain),
            Self::Gz => {
                let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
                encoder
                    .write_all(plain)
                    .and_then(|()| encoder.finish().map(drop))
                    .map_err(|error| format!("gzip: {error}"))?;
            }
            Self::Snappy(_) | Self::Lz4 | Self::Zstd(_) => {
                out.extend_from_slice(&(plain.len() as u32).to_be_bytes());
                for chunk in plain.chunks(CHUNK_BYTES_MAX) {
                    self.compress_chunk(chunk, out)?;
                }
            }
        }
        Ok(())
    }

    fn compress_chunk(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Check<()> {
        let size_at = out.len();
        let bound = match self {
            Self::Snappy(_) => snap::raw::max_compress_len(chunk.len()),
            Self::Zstd(_) => zstd::zstd_safe::compress_bound(chunk.len()),
            _ => lz4_flex::block::get_maximum_output_size(chunk.len()),
        };
        out.resize(size_at + 4 + bound, 0);
        let target = &mut out[size_at + 4..];
        let packed = match self {
            Self::Snappy(encoder) => encoder
                .compress(chunk, target)
                .map_err(|error| format!("snappy: {error}")),
            Self::Zstd(compressor) => compressor
                .compress_to_buffer(chunk, target)
                .map_err(|error| format!("zstd: {error}")),
            _ => lz4_flex::block::compress_into(chunk, target).map_err(|error| format!("lz4: {error}")),
        }?;
        out.truncate(size_at + 4 + packed);
        out[size_at..size_at + 4].copy_from_slice(&(packed as u32).to_be_bytes());
        Ok(())
    }
}

/// Unpacks a payload that is known to be `plain_bytes` long once unpacked; any other length is an error.
/// REQUIRES: `plain_bytes` is at most `PLAIN_BYTES_MAX`.
pub(super) fn uncompress(compression: Compression, packed: &[u8], plain_bytes: usize) -> Check<Vec<u8>> {
    if plain_bytes > packed.len().saturating_mul(plain_per_packed_byte(compression)) {
        return Err(format!(
            "payload of {} bytes where the block header says {plain_bytes}",
            packed.len()
        ));
    }
    match compression {
        Compression::None if packed.len() == plain_bytes => Ok(packed.to_vec()),
        Compression::None => Err(format!(
            "payload of {} bytes where the block header says {plain_bytes}",
            packed.len()
        )),
        Compression::Gz => uncompress_gzip(packed, plain_bytes),
        Compression::Zstd if packed.starts_with(&ZSTD_MAGIC) => {
            let mut plain = vec![0; plain_bytes];
            match unzstd(packed, &mut plain)? {
                size if size == plain_bytes => Ok(plain),
                size => Err(format!(
                    "payload unpacks to {size} bytes, the block header says {plain_bytes}"
                )),
            }
        }
        Compression::Snappy | Compression::Lz4 | Compression::Zstd => {
            uncompress_framed(compression, packed, plain_bytes)
        }
    }
}

fn uncompress_gzip(packed: &[u8], plain_bytes: usize) -> Check<Vec<u8>> {
    let mut plain = Vec::new();
    // One byte more than promised is enough to notice a stream that goes on; the vector grows with
    // the bytes that arrive.
    flate2::read::GzDecoder::new(packed)
        .take(plain_bytes as u64 + 1)
        .read_to_end(&mut plain)
        .map_err(|error| format!("gzip: {error}"))?;
    if plain.len() != plain_bytes {
        return Err(format!(
            "payload does not unpack to the {plain_bytes} bytes of the block header"
        ));
    }
    Ok(plain)
}

fn uncompress_framed(compression: Compression, packed: &[u8], plain_bytes: usize) -> Check<Vec<u8>> {
    let mut input = crate::codec::Cursor::new(packed);
    let mut plain = vec![0; plain_bytes];
    let mut done = 0;
    while done < plain_bytes {
        let segment = input.u32_be().ok_or("compressed payload is cut short")? as usize;
        let end = done
            .checked_add(segment)
            .filter(|end| *end <= plain_bytes && segment > 0)
            .ok_or("compressed segment does not fit into the block")?;
        while done < end {
            let chunk = input
                .u32_be()
                .and_then(|size| input.bytes(size as usize))
                .ok_or("compressed payload is cut short")?;
            let target = &mut plain[done..end];
            let size = match compression {
                Compression::Snappy => unsnappy(chunk, target)?,
                Compression::Zstd => unzstd(chunk, target)?,
                _ => lz4_flex::block::decompress_into(chunk, target)
                    .map_err(|error| format!("lz4: {error}"))?,
            };
            if size == 0 {
                return Err("compressed chunk without content".into());
            }
            done += size;
        }
    }
    Ok(plain)
}

fn unsnappy(chunk: &[u8], target: &mut [u8]) -> Check<usize> {
    snap::raw::Decoder::new()
        .decompress(chunk, target)
        .map_err(|error| format!("snappy: {error}"))
}

fn unzstd(chunk: &[u8], target: &mut [u8]) -> Check<usize> {
    thread_local! {
        /// Making a decompression context takes longer than unpacking a block, so each thread keeps
        /// one.
        static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    DECOMPRESSOR.with_borrow_mut(|slot| {
        let decompressor = match slot {
            Some(decompressor) => decompressor,
            None => slot.insert(zstd::bulk::Decompressor::new().map_err(|error| format!("zstd: {error}"))?),
        };
        decompressor
            .decompress_to_buffer(chunk, target)
            .map_err(|error| format!("zstd: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bare zstd frames, as Hadoop's native codec writes them, are read.
    #[test]
    fn bare_zstd_frames_are_read() {
        let plain = b"the same words, the same words, the same words".to_vec();
        let packed = zstd::bulk::compress(&plain, 3).unwrap();
        assert_eq!(
            uncompress(Compression::Zstd, &packed, plain.len()).unwrap(),
            plain
        );
        assert!(uncompress(Compression::Zstd, &packed, plain.len() + 1).is_err());
        assert!(uncompress(Compression::Zstd, &packed, plain.len() - 1).is_err());
    }

    /// The framing is fixed by Hadoop: segment size, chunk size, chunk, and no chunk above the
    /// limit of its readers.
    #[test]
    fn framing_is_hadoops() {
        let plain = vec![7; CHUNK_BYTES_MAX + 10];
        let mut packed = Vec::new();
        Codec::new(Compression::Snappy)
            .unwrap()
            .compress(&plain, &mut packed)
            .unwrap();
        assert_eq!(packed[..4], (plain.len() as u32).to_be_bytes());
        let first = u32::from_be_bytes(packed[4..8].try_into().unwrap()) as usize;
        assert_eq!(
            snap::raw::decompress_len(&packed[8..8 + first]).unwrap(),
            CHUNK_BYTES_MAX
        );
        assert_eq!(snap::raw::decompress_len(&packed[12 + first..]).unwrap(), 10);
    }

    /// A size that the packed bytes cannot have takes no memory: the largest that a header may
    /// claim, with every codec.
    #[test]
    fn impossible_sizes_are_refused_before_anything_is_unpacked() {
        for &compression in Compression::ALL {
            let error = uncompress(compression, &[0; 40], 1 << 30).unwrap_err();
            assert!(error.contains("payload of 40 bytes"), "{compression}: {error}");
        }
    }

    /// The best possible compression still unpacks: the limits are those of the formats, not of
    /// ordinary data.
    #[test]
    fn a_megabyte_of_one_byte_comes_back() {
        let plain = vec![7; 1 << 20];
        for &compression in Compression::ALL {
            let mut packed = Vec::new();
            Codec::new(compression)
                .unwrap()
                .compress(&plain, &mut packed)
                .unwrap();
            let back = uncompress(compression, &packed, plain.len());
            assert!(
                back.as_ref() == Ok(&plain),
                "{compression}: {} bytes",
                packed.len()
            );
        }
    }

    #[test]
    fn wrong_sizes_are_refused() {
        for &compression in Compression::ALL {
            let mut packed = Vec::new();
            Codec::new(compression)
                .unwrap()
                .compress(&[1; 1000], &mut packed)
                .unwrap();
            assert!(uncompress(compression, &packed, 999).is_err(), "{compression}");
            assert!(uncompress(compression, &packed, 1001).is_err(), "{compression}");
            assert!(
                uncompress(compression, &packed[..packed.len() - 1], 1000).is_err(),
                "{compression}"
            );
        }
    }
}

//! Compression of cell blocks, with the codecs that clients name in the connection header.
//!
//! A compressed cell block is one stream. Its length in the frame is the compressed one, and the
//! plain length is not sent. The stream has one of these forms:
//!
//! | classes | form |
//! | --- | --- |
//! | Hadoop's DefaultCodec and DeflateCodec | zlib stream |
//! | Hadoop's GzipCodec | gzip stream |
//! | Hadoop's and HBase's SnappyCodec and Lz4Codec, HBase's ZstdCodec | Hadoop's block framing |
//! | Hadoop's ZStandardCodec | zstd frames |
//!
//! ```text
//! block framing, repeated to the end:
//!   int32 plain size of the segment | one or more of: int32 packed size of a chunk | chunk
//! ```
//!
//! [`Compressor::unpack`] reserves memory ([`Room`]) before it allocates, and only for bytes that
//! the stream has really unpacked to or, for a segment, that its packed bytes can unpack to. The
//! output never exceeds the limit that the caller gives.

use std::io::{Read, Write};

/// Most plain bytes in one chunk. Hadoop's readers unpack a chunk into a buffer of 256 KiB, and its
/// writers leave a sixth of it and 32 bytes for data that does not compress.
const CHUNK_BYTES_MAX: usize = (256 << 10) - ((256 << 10) / 6 + 32);
/// Bytes that are taken from a stream at a time.
const PIECE_BYTES: usize = 8 << 10;
/// Most plain bytes for each packed byte that are allocated before anything is unpacked.
const FIRST_FACTOR: usize = 8;
const ZSTD_LEVEL: i32 = 3;
/// The code by which zstd says that the output does not fit (`ZSTD_error_dstSize_tooSmall`).
const ZSTD_TOO_SMALL: usize = 0usize.wrapping_sub(70);

/// A compression of cell blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// A zlib stream.
    Zlib,
    /// A gzip stream.
    Gzip,
    /// Snappy in block framing.
    Snappy,
    /// LZ4 in block framing.
    Lz4,
    /// Zstandard in block framing.
    ZstdBlocks,
    /// Zstandard frames.
    Zstd,
}

/// Why a block cannot be unpacked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// Not a block of this compression.
    #[error("compressed cell block: {0}")]
    Malformed(String),
    /// Not a block of this form of cells.
    #[error("cell block: {0}")]
    Cells(String),
    /// The block unpacks to more than the limit.
    #[error("compressed cell block: it unpacks to more than {0} bytes")]
    TooLarge(usize),
    /// [`Room::reserve`] has refused.
    #[error("compressed cell block: no memory for {0} bytes")]
    NoRoom(usize),
}

fn malformed(what: impl std::fmt::Display) -> UnpackError {
    UnpackError::Malformed(what.to_string())
}

/// Budget for the memory of unpacked blocks.
pub trait Room {
    /// Reserves bytes that are about to be allocated; false if there are none.
    fn reserve(&mut self, bytes: usize) -> bool;
    /// Releases bytes that were freed.
    fn release(&mut self, bytes: usize);
}

const HADOOP: &str = "org.apache.hadoop.io.compress.";
const HBASE: &str = "org.apache.hadoop.hbase.io.compress.";

impl Compressor {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::Zlib,
        Self::Gzip,
        Self::Snappy,
        Self::Lz4,
        Self::ZstdBlocks,
        Self::Zstd,
    ];

    /// The compression of a Java class; `None` if it is not served.
    pub fn of_class(class: &str) -> Option<Self> {
        let hadoops = class.strip_prefix(HADOOP).and_then(|name| match name {
            "DefaultCodec" | "DeflateCodec" => Some(Self::Zlib),
            "GzipCodec" => Some(Self::Gzip),
            "SnappyCodec" => Some(Self::Snappy),
            "Lz4Codec" => Some(Self::Lz4),
            "ZStandardCodec" => Some(Self::Zstd),
            _ => None,
        });
        let hbases = || {
            class.strip_prefix(HBASE).and_then(|name| match name {
                "xerial.SnappyCodec" | "aircompressor.SnappyCodec" => Some(Self::Snappy),
                "lz4.Lz4Codec" | "aircompressor.Lz4Codec" => Some(Self::Lz4),
                "zstd.ZstdCodec" | "aircompressor.ZstdCodec" => Some(Self::ZstdBlocks),
                _ => None,
            })
        };
        hadoops.or_else(hbases)
    }

    /// Packs a cell block.
    pub fn pack(self, plain: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(plain.len() / 2 + 64);
        match self {
            Self::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::fast());
                encoder.write_all(plain)?;
                encoder.finish()?;
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
                encoder.write_all(plain)?;
                encoder.finish()?;
            }
            Self::Zstd => out = zstd::bulk::compress(plain, ZSTD_LEVEL)?,
            Self::Snappy | Self::Lz4 | Self::ZstdBlocks => {
                out.extend_from_slice(&(plain.len() as u32).to_be_bytes());
                for chunk in plain.chunks(CHUNK_BYTES_MAX) {
                    let packed = self.pack_chunk(chunk)?;
                    out.extend_from_slice(&(packed.len() as u32).to_be_bytes());
                    out.extend_from_slice(&packed);
                }
            }
        }
        Ok(out)
    }

    /// Packs a chunk of block framing.
    fn pack_chunk(self, chunk: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Snappy => Ok(snap::raw::Encoder::new().compress_vec(chunk)?),
            Self::Lz4 => Ok(lz4_flex::block::compress(chunk)),
            _ => zstd::bulk::compress(chunk, ZSTD_LEVEL),
        }
    }

    /// Unpacks a cell block to at most `max` bytes. The reservation of the returned bytes remains
    /// with `room`; after an error nothing remains reserved.
    pub fn unpack(self, packed: &[u8], max: usize, room: &mut impl Room) -> Result<Vec<u8>, UnpackError> {
        let mut plain = Plain {
            bytes: Vec::new(),
            len: 0,
            max,
            room,
        };
        let unpacked = match self {
            Self::Zlib => plain.take_stream(flate2::read::ZlibDecoder::new(packed), packed.len()),
            Self::Gzip => plain.take_stream(flate2::read::MultiGzDecoder::new(packed), packed.len()),
            Self::Zstd => plain.take_zstd(packed),
            Self::Snappy | Self::Lz4 | Self::ZstdBlocks => plain.take_segments(self, packed),
        };
        match unpacked {
            Ok(()) => Ok(plain.finish()),
            Err(error) => {
                plain.release();
                Err(error)
            }
        }
    }

    /// Most plain bytes that one packed byte can stand for in block framing.
    fn plain_per_packed_byte(self) -> usize {
        match self {
            // A copy of at most 64 bytes takes three (Snappy's format description, 2.2).
            Self::Snappy => 22,
            // Each byte of a long match length counts up to 255 (LZ4's block format).
            Self::Lz4 => 255,
            // A block of 128 KiB of one byte takes four (RFC 8878, 3.1.1.2).
            _ => 32 << 10,
        }
    }

    /// Unpacks a chunk of block framing; returns its plain size.
    fn unpack_chunk(self, chunk: &[u8], target: &mut [u8]) -> Result<usize, UnpackError> {
        match self {
            Self::Snappy => snap::raw::Decoder::new()
                .decompress(chunk, target)
                .map_err(|error| malformed(format_args!("snappy: {error}"))),
            Self::Lz4 => lz4_flex::block::decompress_into(chunk, target)
                .map_err(|error| malformed(format_args!("lz4: {error}"))),
            _ => unzstd(chunk, target).map_err(|code| malformed(zstd_text(code))),
        }
    }
}

/// Unpacks zstd frames. The error is zstd's code.
fn unzstd(packed: &[u8], target: &mut [u8]) -> Result<usize, usize> {
    zstd::zstd_safe::DCtx::create().decompress(target, packed)
}

fn zstd_text(code: usize) -> String {
    format!("zstd: {}", zstd::zstd_safe::get_error_name(code))
}

/// The output of a block that is being unpacked.
struct Plain<'a, R: Room> {
    /// Allocated bytes, of which `len` are unpacked. Their capacity is reserved.
    bytes: Vec<u8>,
    len: usize,
    max: usize,
    room: &'a mut R,
}

impl<R: Room> Plain<'_, R> {
    /// Makes room for `more` bytes, and returns all room that there is.
    fn space(&mut self, more: usize) -> Result<&mut [u8], UnpackError> {
        if more > self.max - self.len {
            return Err(UnpackError::TooLarge(self.max));
        }
        if more > self.bytes.len() - self.len {
            self.grow((self.len + more).max(self.bytes.len() * 2).min(self.max))?;
        }
        Ok(&mut self.bytes[self.len..])
    }

    /// Moves the output to a buffer of `capacity` bytes. Both are reserved while they exist.
    fn grow(&mut self, capacity: usize) -> Result<(), UnpackError> {
        if !self.room.reserve(capacity) {
            return Err(UnpackError::NoRoom(capacity));
        }
        let mut bytes = vec![0; capacity];
        bytes[..self.len].copy_from_slice(&self.bytes[..self.len]);
        let before = std::mem::replace(&mut self.bytes, bytes).len();
        self.room.release(before);
        Ok(())
    }

    fn take_stream(&mut self, mut stream: impl Read, packed_len: usize) -> Result<(), UnpackError> {
        self.space(packed_len.min(self.max))?;
        let mut piece = [0; PIECE_BYTES];
        loop {
            let count = stream.read(&mut piece).map_err(malformed)?;
            if count == 0 {
                return Ok(());
            }
            self.space(count)?[..count].copy_from_slice(&piece[..count]);
            self.len += count;
        }
    }

    /// Unpacks into a buffer that is doubled for as long as zstd finds it too small.
    fn take_zstd(&mut self, packed: &[u8]) -> Result<(), UnpackError> {
        self.space((packed.len() * FIRST_FACTOR).min(self.max))?;
        loop {
            match unzstd(packed, &mut self.bytes) {
                Ok(size) => {
                    self.len = size;
                    return Ok(());
                }
                Err(ZSTD_TOO_SMALL) if self.bytes.len() < self.max => {
                    self.grow((self.bytes.len() * 2).clamp(1, self.max))?;
                }
                Err(ZSTD_TOO_SMALL) => return Err(UnpackError::TooLarge(self.max)),
                Err(code) => return Err(malformed(zstd_text(code))),
            }
        }
    }

    fn take_segments(&mut self, compressor: Compressor, mut packed: &[u8]) -> Result<(), UnpackError> {
        while !packed.is_empty() {
            let size = take_u32(&mut packed)?;
            if size > packed.len().saturating_mul(compressor.plain_per_packed_byte()) {
                return Err(malformed(format_args!(
                    "a segment of {size} bytes in {} packed ones",
                    packed.len()
                )));
            }
            self.space(size)?;
            let end = self.len + size;
            while self.len < end {
                let chunk_len = take_u32(&mut packed)?;
                let (chunk, rest) = packed.split_at_checked(chunk_len).ok_or_else(cut_short)?;
                packed = rest;
                match compressor.unpack_chunk(chunk, &mut self.bytes[self.len..end])? {
                    0 => return Err(malformed("a chunk without content")),
                    size => self.len += size,
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }

    fn release(self) {
        self.room.release(self.bytes.len());
    }
}

fn cut_short() -> UnpackError {
    malformed("it is cut short")
}

fn take_u32(bytes: &mut &[u8]) -> Result<usize, UnpackError> {
    let (value, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut_short)?;
    *bytes = rest;
    Ok(u32::from_be_bytes(*value) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room of a fixed size.
    struct Fixed {
        left: usize,
        used: usize,
        most: usize,
    }

    impl Fixed {
        fn new(left: usize) -> Self {
            Self {
                left,
                used: 0,
                most: 0,
            }
        }
    }

    impl Room for Fixed {
        fn reserve(&mut self, bytes: usize) -> bool {
            let fits = self.used + bytes <= self.left;
            self.used += if fits { bytes } else { 0 };
            self.most = self.most.max(self.used);
            fits
        }

        fn release(&mut self, bytes: usize) {
            self.used -= bytes;
        }
    }

    fn unpack(compressor: Compressor, packed: &[u8], max: usize) -> Result<Vec<u8>, UnpackError> {
        compressor.unpack(packed, max, &mut Fixed::new(usize::MAX))
    }

    /// Data that packs to about a tenth.
    fn rows() -> Vec<u8> {
        (0..60_000u32)
            .flat_map(|number| format!("row{:08} value of a column;", number / 7).into_bytes())
            .collect()
    }

    #[test]
    fn packed_bytes_are_unpacked() {
        for compressor in Compressor::ALL {
            for plain in [Vec::new(), b"x".to_vec(), vec![7; 3 << 20], rows()] {
                let packed = compressor.pack(&plain).unwrap();
                let back = unpack(compressor, &packed, 4 << 20);
                assert!(
                    back.as_ref() == Ok(&plain),
                    "{compressor:?}, {} bytes",
                    plain.len()
                );
            }
        }
    }

    /// The bytes of zlib, gzip, Snappy and LZ4 for `abc`, the latter two in Hadoop's framing.
    #[test]
    fn forms_are_those_of_hadoop() {
        let of = |compressor, bytes: &[u8]| {
            assert_eq!(
                unpack(compressor, bytes, 100).as_deref(),
                Ok(&b"abc"[..]),
                "{compressor:?}"
            );
        };
        of(Compressor::Zlib, b"\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27");
        of(
            Compressor::Gzip,
            b"\x1f\x8b\x08\0\0\0\0\0\x02\xff\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0",
        );
        let snappy = b"\0\0\0\x03\0\0\0\x05\x03\x08abc";
        of(Compressor::Snappy, snappy);
        assert_eq!(Compressor::Snappy.pack(b"abc").unwrap(), snappy);
        let lz4 = b"\0\0\0\x03\0\0\0\x04\x30abc";
        of(Compressor::Lz4, lz4);
        assert_eq!(Compressor::Lz4.pack(b"abc").unwrap(), lz4);
        // Two segments, and a segment of two chunks.
        of(
            Compressor::Lz4,
            b"\0\0\0\x01\0\0\0\x02\x10a\0\0\0\x02\0\0\0\x02\x10b\0\0\0\x02\x10c",
        );
        let large = Compressor::Snappy.pack(&vec![7; CHUNK_BYTES_MAX + 10]).unwrap();
        assert_eq!(large[..4], (CHUNK_BYTES_MAX as u32 + 10).to_be_bytes());
        let first = u32::from_be_bytes(large[4..8].try_into().unwrap()) as usize;
        let chunk = &large[8..8 + first];
        assert_eq!(snap::raw::decompress_len(chunk).unwrap(), CHUNK_BYTES_MAX);
    }

    #[test]
    fn the_limit_and_the_room_are_kept() {
        let plain = rows();
        for compressor in Compressor::ALL {
            let packed = compressor.pack(&plain).unwrap();
            assert_eq!(
                unpack(compressor, &packed, plain.len() - 1),
                Err(UnpackError::TooLarge(plain.len() - 1)),
                "{compressor:?}"
            );
            let mut room = Fixed::new(3 * plain.len());
            assert!(compressor.unpack(&packed, plain.len(), &mut room).is_ok());
            assert!(
                (plain.len()..2 * plain.len()).contains(&room.used),
                "{compressor:?}"
            );
            let mut little = Fixed::new(plain.len() / 2);
            let refused = compressor.unpack(&packed, plain.len(), &mut little);
            assert!(matches!(refused, Err(UnpackError::NoRoom(_))), "{compressor:?}");
            assert_eq!(little.used, 0, "{compressor:?}");
        }
    }

    #[test]
    fn a_block_that_is_not_one_is_refused_within_little_memory() {
        for compressor in Compressor::ALL {
            for bytes in [&[0xff; 40][..], b"\x7f\xff\xff\xff\0\0\0\x05\x03\x08abc", b"\0\0"] {
                let mut room = Fixed::new(usize::MAX);
                let refused = compressor.unpack(bytes, 64 << 20, &mut room);
                assert!(
                    matches!(refused, Err(UnpackError::Malformed(_))),
                    "{compressor:?}"
                );
                assert!(room.most < 1 << 10, "{compressor:?}: {} bytes", room.most);
                assert_eq!(room.used, 0, "{compressor:?}");
            }
            let mut cut = compressor.pack(&rows()).unwrap();
            cut.truncate(cut.len() / 2);
            assert!(matches!(
                unpack(compressor, &cut, 4 << 20),
                Err(UnpackError::Malformed(_))
            ));
        }
    }

    #[test]
    fn codecs_are_found_by_their_classes() {
        for (class, compressor) in [
            (
                "org.apache.hadoop.io.compress.DefaultCodec",
                Some(Compressor::Zlib),
            ),
            ("org.apache.hadoop.io.compress.GzipCodec", Some(Compressor::Gzip)),
            (
                "org.apache.hadoop.io.compress.SnappyCodec",
                Some(Compressor::Snappy),
            ),
            ("org.apache.hadoop.io.compress.Lz4Codec", Some(Compressor::Lz4)),
            (
                "org.apache.hadoop.io.compress.ZStandardCodec",
                Some(Compressor::Zstd),
            ),
            (
                "org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec",
                Some(Compressor::ZstdBlocks),
            ),
            ("org.apache.hadoop.io.compress.BZip2Codec", None),
            ("SnappyCodec", None),
        ] {
            assert_eq!(Compressor::of_class(class), compressor, "{class}");
        }
    }
}

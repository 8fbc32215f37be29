//! Column families: their options, and the engine's view of them.

use std::fmt;

use super::{Attributes, check_family_name, insane, parse_attribute};
use crate::cell::ROW_MAX_BYTES;
use crate::error::{Error, Result};

/// A TTL of for ever, in seconds (HBase: `HConstants.FOREVER`).
pub const FOREVER_SECONDS: i32 = i32::MAX;

/// The name of the length of prefixes in a family's configuration (HBase:
/// `BloomFilterUtil.PREFIX_LENGTH_KEY`).
const BLOOM_PREFIX_LENGTH: &str = "RowPrefixBloomFilter.prefix_length";

macro_rules! named_codes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// HBase's spelling.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of an option of a family. The error for an unknown value lists all known
            /// ones.
            fn of_option(attributes: &Attributes, option: &str, default: Self, family: &[u8]) -> Result<Self> {
                parse_attribute(attributes, option, default).map_err(|_| {
                    let value = attributes.get(option.as_bytes()).map_or(&[][..], Vec::as_slice);
                    Error::DoNotRetry(format!(
                        "{option} of family {} has the unknown value {}; known are {}",
                        super::limits::Brief(family),
                        super::limits::Brief(value),
                        [$($text),+].join(", ")
                    ))
                })
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> std::result::Result<Self, ()> {
                Self::ALL.iter().copied().find(|value| value.as_str().eq_ignore_ascii_case(text)).ok_or(())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named_codes! {
    /// How blocks of store files are compressed.
    Compression {
        /// Not.
        None = "NONE",
        /// Snappy in Hadoop's block framing.
        Snappy = "SNAPPY",
        /// LZ4 in Hadoop's block framing.
        Lz4 = "LZ4",
        /// Zstandard frames.
        Zstd = "ZSTD",
        /// A gzip stream per block.
        Gz = "GZ",
    }
}

named_codes! {
    /// Kind of key in a store file's bloom filter.
    BloomType {
        /// No bloom filter.
        None = "NONE",
        /// Rows.
        Row = "ROW",
        /// Columns of rows.
        RowCol = "ROWCOL",
        /// The first bytes of rows, as many as [`FamilyDescriptor::bloom_prefix_bytes`].
        RowPrefix = "ROWPREFIX_FIXED_LENGTH",
    }
}

named_codes! {
    /// How cells are laid out inside a data block.
    DataBlockEncoding {
        /// Plain KeyValues.
        None = "NONE",
        /// Common key prefixes left out.
        Prefix = "PREFIX",
        /// Differences of all key parts.
        Diff = "DIFF",
        /// Differences, faster to read.
        FastDiff = "FAST_DIFF",
        /// Plain KeyValues with an index of the rows in the block.
        RowIndexV1 = "ROW_INDEX_V1",
    }
}

named_codes! {
    /// Whether deleted cells stay readable for raw scans and time ranges before the delete.
    KeepDeletedCells {
        /// Dropped at flush and compaction.
        False = "FALSE",
        /// Kept, bounded by VERSIONS and TTL.
        True = "TRUE",
        /// Kept until the tombstone is older than TTL.
        Ttl = "TTL",
    }
}

/// A column family as the client described it.
///
/// `attributes` holds every option in HBase's raw form (`VERSIONS` => `3`); the engine uses the
/// typed fields, which are parsed from them once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyDescriptor {
    /// Name of the family, without colon.
    pub name: Vec<u8>,
    /// Every option that was set, raw. Defaults that were not set are not in here.
    pub attributes: Attributes,
    /// Free-form configuration, stored and returned unchanged.
    pub configuration: Attributes,
    /// VERSIONS: versions of a column kept.
    pub max_versions: i32,
    /// MIN_VERSIONS: versions kept although they are older than the TTL.
    pub min_versions: i32,
    /// TTL in seconds.
    pub ttl_seconds: i32,
    /// BLOCKSIZE: target size of a data block before compression, in bytes.
    pub block_bytes: i32,
    /// BLOCKCACHE: whether reads put data blocks into the cache.
    pub block_cache: bool,
    /// IN_MEMORY: whether its blocks have priority in the cache.
    pub in_memory: bool,
    /// BLOOMFILTER.
    pub bloom: BloomType,
    /// COMPRESSION.
    pub compression: Compression,
    /// DATA_BLOCK_ENCODING.
    pub encoding: DataBlockEncoding,
    /// KEEP_DELETED_CELLS.
    pub keep_deleted_cells: KeepDeletedCells,
}

impl FamilyDescriptor {
    /// A family with default options.
    pub fn new(name: &[u8]) -> Self {
        Self::from_attributes(name, Attributes::new()).expect("an empty set of options has nothing to refuse")
    }

    /// A family with these raw options. Refuses unreadable values, not unusual ones; see [`Self::check`].
    pub fn from_attributes(name: &[u8], attributes: Attributes) -> Result<Self> {
        let ttl_seconds = match attributes.get(b"TTL".as_slice()).map(Vec::as_slice) {
            Some(b"FOREVER") => FOREVER_SECONDS,
            _ => parse_attribute(&attributes, "TTL", FOREVER_SECONDS)?,
        };
        Ok(Self {
            max_versions: parse_attribute(&attributes, "VERSIONS", 1)?,
            min_versions: parse_attribute(&attributes, "MIN_VERSIONS", 0)?,
            ttl_seconds,
            block_bytes: parse_attribute(&attributes, "BLOCKSIZE", 65_536)?,
            block_cache: parse_bool(&attributes, "BLOCKCACHE", true),
            in_memory: parse_bool(&attributes, "IN_MEMORY", false),
            bloom: BloomType::of_option(&attributes, "BLOOMFILTER", BloomType::Row, name)?,
            compression: Compression::of_option(&attributes, "COMPRESSION", Compression::None, name)?,
            // The default is the row index (D7); an explicit NONE is honoured.
            encoding: DataBlockEncoding::of_option(
                &attributes,
                "DATA_BLOCK_ENCODING",
                DataBlockEncoding::RowIndexV1,
                name,
            )?,
            keep_deleted_cells: KeepDeletedCells::of_option(
                &attributes,
                "KEEP_DELETED_CELLS",
                KeepDeletedCells::False,
                name,
            )?,
            name: name.to_vec(),
            attributes,
            configuration: Attributes::new(),
        })
    }

    /// A copy of the family with one option set.
    pub fn with(mut self, option: &str, value: impl fmt::Display) -> Result<Self> {
        self.attributes
            .insert(option.as_bytes().to_vec(), value.to_string().into_bytes());
        let configuration = std::mem::take(&mut self.configuration);
        let mut changed = Self::from_attributes(&self.name, self.attributes)?;
        changed.configuration = configuration;
        Ok(changed)
    }

    /// TTL in milliseconds; `i64::MAX` for FOREVER.
    pub fn ttl_ms(&self) -> i64 {
        if self.ttl_seconds == FOREVER_SECONDS {
            i64::MAX
        } else {
            i64::from(self.ttl_seconds) * 1_000
        }
    }

    /// Bytes of a row in a bloom filter of type [`BloomType::RowPrefix`], from the family's
    /// configuration; 0 with any other type. Refuses a length that is missing or not that of a row
    /// (HBase: `BloomFilterUtil.getBloomFilterParam`).
    pub fn bloom_prefix_bytes(&self) -> Result<usize> {
        if self.bloom != BloomType::RowPrefix {
            return Ok(0);
        }
        let name = super::Escaped(&self.name);
        let Some(raw) = self.configuration.get(BLOOM_PREFIX_LENGTH.as_bytes()) else {
            return Err(insane(format!(
                "BLOOMFILTER ROWPREFIX_FIXED_LENGTH of column family {name} needs {BLOOM_PREFIX_LENGTH} in its configuration."
            )));
        };
        let length = std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok());
        length
            .filter(|length| (1..=ROW_MAX_BYTES).contains(length))
            .ok_or_else(|| {
                insane(format!(
                    "{BLOOM_PREFIX_LENGTH} of column family {name} must be a number between 1 and {ROW_MAX_BYTES}, not {}.",
                    super::Escaped(raw)
                ))
            })
    }

    /// HBase's sanity checks (`TableDescriptorChecker`).
    pub fn check(&self) -> Result<()> {
        check_family_name(&self.name)?;
        let refuse = |what: String| Err(insane(what));
        let name = super::Escaped(&self.name);
        if self.ttl_seconds <= 0 {
            return refuse(format!("TTL for column family {name} must be positive."));
        }
        if !(1 << 10..=16 << 20).contains(&self.block_bytes) {
            return refuse(format!(
                "Block size for column family {name} must be between 1K and 16MB."
            ));
        }
        if self.min_versions < 0 {
            return refuse(format!(
                "Min versions for column family {name} must be at least 0."
            ));
        }
        if self.max_versions <= 0 {
            return refuse(format!("Max versions for column family {name} must be positive."));
        }
        if self.min_versions > self.max_versions {
            return refuse(format!(
                "Min versions <{}> must be less than max versions <{}>.",
                self.min_versions, self.max_versions
            ));
        }
        self.bloom_prefix_bytes().map(drop)
    }
}

/// Java's `Boolean.parseBoolean`: true only for "true" in any case.
pub(super) fn parse_bool(attributes: &Attributes, name: &str, default: bool) -> bool {
    attributes
        .get(name.as_bytes())
        .map_or(default, |raw| raw.eq_ignore_ascii_case(b"true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_hbases() {
        let family = FamilyDescriptor::new(b"f");
        assert_eq!(
            (family.max_versions, family.min_versions, family.ttl_seconds),
            (1, 0, FOREVER_SECONDS)
        );
        assert_eq!(
            (family.block_bytes, family.block_cache, family.in_memory),
            (65_536, true, false)
        );
        assert_eq!(
            (family.bloom, family.compression),
            (BloomType::Row, Compression::None)
        );
        assert!(family.check().is_ok());
        assert_eq!(family.ttl_ms(), i64::MAX);
    }

    #[test]
    fn options_are_read_and_checked() {
        let family = FamilyDescriptor::new(b"f")
            .with("COMPRESSION", "zstd")
            .unwrap()
            .with("TTL", 60)
            .unwrap();
        assert_eq!((family.compression, family.ttl_ms()), (Compression::Zstd, 60_000));
        let refused = FamilyDescriptor::new(b"f")
            .with("COMPRESSION", "BZIP9")
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "COMPRESSION of family f has the unknown value BZIP9; known are NONE, SNAPPY, LZ4, ZSTD, GZ"
        );
        assert!(FamilyDescriptor::new(b"f").with("VERSIONS", "many").is_err());
        for (option, value) in [
            ("TTL", "0"),
            ("BLOCKSIZE", "1023"),
            ("VERSIONS", "0"),
            ("MIN_VERSIONS", "2"),
        ] {
            let family = FamilyDescriptor::new(b"f").with(option, value).unwrap();
            assert!(family.check().is_err(), "{option}={value}");
        }
    }

    #[test]
    fn a_bloom_filter_of_prefixes_needs_their_length() {
        let mut family = FamilyDescriptor::new(b"f");
        assert_eq!(family.bloom_prefix_bytes().unwrap(), 0);
        family = family.with("BLOOMFILTER", "ROWPREFIX_FIXED_LENGTH").unwrap();
        let check = |family: &FamilyDescriptor| family.check().unwrap_err().to_string();
        assert!(check(&family).contains("needs RowPrefixBloomFilter.prefix_length"));
        let key = BLOOM_PREFIX_LENGTH.as_bytes().to_vec();
        for wrong in ["0", "-1", "32768", "ten", ""] {
            family.configuration.insert(key.clone(), wrong.into());
            assert!(check(&family).contains("between 1 and 32767"), "{wrong}");
        }
        family.configuration.insert(key, b"32767".to_vec());
        assert_eq!(family.bloom_prefix_bytes().unwrap(), 32_767);
        assert!(family.check().is_ok());
    }
}

//! Designs that put something in front of a key of any bytes: a bucket, or a hash.
//!
//! Both derive the prefix from the key with MD5, which every language has, so that other programs can find
//! the same rows. MD5 protects nothing here; it only spreads.

use std::ops::RangeBounds;

use md5::{Digest, Md5};

use super::presplit::even_points;
use super::{
    KeyDesign, KeyError, RowRange, check_regions, check_scans, is_crossed, not_of_design, single_key,
    sorted_range, split_prefix,
};

/// A bucket byte in front of the key: the first four bytes of the key's MD5 as a big-endian number, modulo
/// the number of buckets. Writes go to all buckets; a range query scans every bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salt {
    buckets: u16,
}

impl Salt {
    /// A design with 1 to 256 buckets. The number is part of the data: rows written with another one are not
    /// found.
    pub fn new(buckets: u16) -> Result<Salt, KeyError> {
        if !(1..=256).contains(&buckets) {
            return Err(KeyError::OutOfRange {
                part: "number of buckets",
                value: buckets.into(),
                range: "1..=256".to_owned(),
            });
        }
        Ok(Salt { buckets })
    }

    fn bucket(&self, key: &[u8]) -> u8 {
        let hash: [u8; 16] = Md5::digest(key).into();
        let [a, b, c, d, ..] = hash;
        let bucket = u32::from_be_bytes([a, b, c, d]) % u32::from(self.buckets);
        u8::try_from(bucket).expect("less than 256 buckets' last number")
    }
}

impl KeyDesign for Salt {
    type Key = Vec<u8>;

    fn encode(&self, key: &Vec<u8>) -> Result<Vec<u8>, KeyError> {
        Ok(prefixed(&[self.bucket(key)], key))
    }

    fn decode(&self, row: &[u8]) -> Result<Vec<u8>, KeyError> {
        let (bucket, key) = split_prefix(row, 1)?;
        if bucket != [self.bucket(key)] {
            return Err(not_of_design(row, "its bucket is not that of its key"));
        }
        Ok(key.to_vec())
    }

    /// Borders of buckets, as long as there are enough; within buckets beyond that, as if keys were random.
    fn split_points(&self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
        let buckets = u128::from(self.buckets);
        check_regions(regions, buckets << 32)?;
        let whole = regions as u128 <= buckets;
        let points = (1..regions as u128).map(|index| {
            // A fixed-point number of buckets, with 64 bits behind the point.
            let at = ((index * buckets) << 64) / regions as u128;
            let bucket = u8::try_from(at >> 64).expect("below the number of buckets");
            let mut point = vec![bucket];
            if !whole {
                point.extend((at as u64).to_be_bytes());
                trim_zeros(&mut point, 1);
            }
            point
        });
        Ok(points.collect())
    }

    fn scan_ranges(&self, keys: impl RangeBounds<Vec<u8>>) -> Result<Vec<RowRange>, KeyError> {
        if is_crossed(&keys) {
            return Ok(Vec::new());
        }
        if let Some(key) = single_key(&keys) {
            return Ok(vec![RowRange::single(self.encode(key)?)]);
        }
        (0..self.buckets)
            .map(|bucket| {
                let prefix = [u8::try_from(bucket).expect("at most 256 buckets")];
                sorted_range(&prefix, &keys, |key| Ok(prefixed(&prefix, key)))
            })
            .collect()
    }
}

/// The first bytes of the key's MD5 in front of the key. Spreads better than [`Salt`] and needs no number of
/// buckets, but a range query scans every prefix: only designs of one or two bytes can answer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashPrefix {
    bytes: usize,
}

impl HashPrefix {
    /// A design with 1 to 16 bytes of hash. The number is part of the data.
    pub fn new(bytes: usize) -> Result<HashPrefix, KeyError> {
        if !(1..=16).contains(&bytes) {
            return Err(KeyError::OutOfRange {
                part: "number of hash bytes",
                value: bytes as i128,
                range: "1..=16".to_owned(),
            });
        }
        Ok(HashPrefix { bytes })
    }

    fn hash(&self, key: &[u8]) -> Vec<u8> {
        let hash: [u8; 16] = Md5::digest(key).into();
        hash.iter().copied().take(self.bytes).collect()
    }
}

impl KeyDesign for HashPrefix {
    type Key = Vec<u8>;

    fn encode(&self, key: &Vec<u8>) -> Result<Vec<u8>, KeyError> {
        Ok(prefixed(&self.hash(key), key))
    }

    fn decode(&self, row: &[u8]) -> Result<Vec<u8>, KeyError> {
        let (hash, key) = split_prefix(row, self.bytes)?;
        if hash != self.hash(key) {
            return Err(not_of_design(row, "its hash is not that of its key"));
        }
        Ok(key.to_vec())
    }

    /// Even points of the hash.
    fn split_points(&self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
        let width = self.bytes.min(8);
        even_points(regions, width)
    }

    fn scan_ranges(&self, keys: impl RangeBounds<Vec<u8>>) -> Result<Vec<RowRange>, KeyError> {
        if is_crossed(&keys) {
            return Ok(Vec::new());
        }
        if let Some(key) = single_key(&keys) {
            return Ok(vec![RowRange::single(self.encode(key)?)]);
        }
        let bits = u32::try_from(self.bytes * 8).expect("at most 128");
        let prefixes = 1u128.checked_shl(bits).unwrap_or(u128::MAX);
        check_scans(prefixes)?;
        (0..prefixes)
            .map(|number| {
                let number = number.to_be_bytes();
                let prefix = &number[number.len() - self.bytes..];
                sorted_range(prefix, &keys, |key| Ok(prefixed(prefix, key)))
            })
            .collect()
    }
}

fn prefixed(prefix: &[u8], key: &[u8]) -> Vec<u8> {
    [prefix, key].concat()
}

/// Drops zero bytes at the end, but keeps the first `keep` bytes.
fn trim_zeros(point: &mut Vec<u8>, keep: usize) {
    while point.len() > keep && point.last() == Some(&0) {
        point.pop();
    }
}

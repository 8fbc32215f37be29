//! db_bench's keys and values.
//!
//! ```text
//! key    number, 8 bytes big-endian | '0' eight times
//! value  a piece of a megabyte in which every 100 bytes repeat as many random ones as the compression ratio says
//! ```

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 16;

/// The key of a number.
pub(super) fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'0'; KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// A key that is one byte longer, and so not in the database.
pub(super) fn missing_key(number: u64) -> [u8; KEY_BYTES + 1] {
    let mut missing = [b'0'; KEY_BYTES + 1];
    missing[..KEY_BYTES].copy_from_slice(&key(number));
    missing
}

/// Values of one thread.
#[derive(Debug)]
pub(super) struct Values {
    data: Vec<u8>,
    value_bytes: usize,
    next: usize,
}

impl Values {
    const POOL_BYTES: usize = 1 << 20;
    const PIECE_BYTES: usize = 100;

    pub(super) fn new(seed: u64, value_bytes: usize, compression_ratio: f64) -> Values {
        let mut random = SmallRng::seed_from_u64(seed);
        let raw_bytes = ((Self::PIECE_BYTES as f64 * compression_ratio) as usize).clamp(1, Self::PIECE_BYTES);
        let mut data = Vec::with_capacity(Self::POOL_BYTES + Self::PIECE_BYTES);
        while data.len() < Self::POOL_BYTES.max(value_bytes) {
            // Printable, as db_bench's.
            let raw: Vec<u8> = (0..raw_bytes).map(|_| random.random_range(b' '..=b'~')).collect();
            data.extend(raw.iter().cycle().take(Self::PIECE_BYTES));
        }
        Values {
            data,
            value_bytes,
            next: 0,
        }
    }

    /// The next value.
    pub(super) fn next(&mut self) -> &[u8] {
        if self.next + self.value_bytes > self.data.len() {
            self.next = 0;
        }
        let value = &self.data[self.next..self.next + self.value_bytes];
        self.next += self.value_bytes;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_db_bench() {
        assert_eq!(&key(0x0102), b"\0\0\0\0\0\0\x01\x0200000000");
        assert_eq!(&missing_key(0x0102), b"\0\0\0\0\0\0\x01\x02000000000");
        assert!((0..1_000).is_sorted_by_key(key));
    }

    #[test]
    fn values_have_their_length_and_repeat_by_the_ratio() {
        let mut values = Values::new(1, 250, 0.5);
        for _ in 0..10_000 {
            assert_eq!(values.next().len(), 250);
        }
        let mut values = Values::new(1, 100, 0.5);
        let value = values.next();
        assert_eq!(value[..50], value[50..]);
        assert_ne!(value[..25], value[25..50]);
        assert_eq!(Values::new(1, 3 << 20, 1.0).next().len(), 3 << 20);
        assert!(Values::new(1, 0, 1.0).next().is_empty());
    }
}

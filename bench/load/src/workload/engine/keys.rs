//! db_bench's keys and values.
//!
//! ```text
//! key    number, 8 bytes big-endian | '0' eight times
//! value  a piece of a megabyte in which every 100 bytes repeat as many random ones as the compression ratio says
//! ```

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// A key.
pub type Key = [u8; KEY_BYTES];

/// The key of a number.
pub(super) fn key(number: u64) -> Key {
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
    /// Number of the next value.
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

    /// The next `count` values.
    pub(super) fn next(&mut self, count: usize) -> impl Iterator<Item = &[u8]> {
        let (data, bytes, first) = (&self.data, self.value_bytes, self.next);
        // Values that follow each other in the data; behind the last one that fits, from its beginning on.
        let values = data.len().checked_div(bytes).unwrap_or(1);
        self.next = (first + count) % values;
        (0..count).map(move |value| &data[(first + value) % values * bytes..][..bytes])
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
            assert_eq!(values.next(1).map(<[u8]>::len).sum::<usize>(), 250);
        }
        let mut values = Values::new(1, 100, 0.5);
        let first: Vec<Vec<u8>> = values.next(2).map(<[u8]>::to_vec).collect();
        let value = &first[0];
        assert_eq!(value[..50], value[50..]);
        assert_ne!(value[..25], value[25..50]);
        let mut again = Values::new(1, 100, 0.5);
        let singly: Vec<Vec<u8>> = (0..2)
            .flat_map(|_| again.next(1).map(<[u8]>::to_vec).collect::<Vec<_>>())
            .collect();
        assert_eq!(first, singly);
        let lengths = |value_bytes, count| -> Vec<usize> {
            Values::new(1, value_bytes, 1.0)
                .next(count)
                .map(<[u8]>::len)
                .collect()
        };
        assert_eq!(lengths(3 << 20, 2), [3 << 20, 3 << 20]);
        assert_eq!(lengths(0, 2), [0, 0]);
    }
}

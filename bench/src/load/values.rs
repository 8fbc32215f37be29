//! Random values to write. Each is a slice of one pool, so that making values costs nothing beside sending them.

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

/// Bytes of the pool, besides one value's length.
const POOL_BYTES: usize = 1 << 20;

/// Where values come from. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pool: Bytes,
}

impl Values {
    /// For values of up to so many bytes.
    pub(crate) fn new(seed: u64, value_bytes_max: usize) -> Values {
        let mut pool = vec![0; POOL_BYTES + value_bytes_max];
        SmallRng::seed_from_u64(seed).fill_bytes(&mut pool);
        Values { pool: pool.into() }
    }

    /// A value of so many bytes.
    /// REQUIRES: no more than `value_bytes_max`.
    pub(crate) fn next(&self, random: &mut impl Rng, bytes: usize) -> Bytes {
        let at = random.random_range(0..=POOL_BYTES);
        self.pool.slice(at..at + bytes)
    }
}

//! The simulator's dice: SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
//! 2014).
//!
//! One u64 of state, the same numbers on every machine and for ever: a seed in a bug report stays
//! valid. Not for secrets.

/// A stream of numbers that follows from its seed.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The stream of that seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number, all 64 bits of it.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0. The bias of the remainder is too small for a
    /// test to see.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// Overwrites `bytes` with noise.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let noise = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&noise[..chunk.len()]);
        }
    }

    /// An independent stream that is derived from this one's position and `salt`; this one does not
    /// move.
    #[must_use]
    pub fn fork(&self, salt: u64) -> Self {
        Self::new(Self::new(self.state ^ Self::new(salt).next_u64()).next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as published with the reference implementation.
    #[test]
    fn numbers_are_splitmixs() {
        let mut dice = SplitMix64::new(1_234_567);
        let drawn = [dice.next_u64(), dice.next_u64(), dice.next_u64()];
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }
}

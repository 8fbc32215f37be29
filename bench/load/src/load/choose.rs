//! Which key an operation uses: the choices of YCSB, over the numbers from 0.
//!
//! | distribution | chosen keys |
//! | --- | --- |
//! | sequential | one number after the other, over all tasks |
//! | uniform | all alike |
//! | zipfian | few numbers often, scattered over the whole space: YCSB's scrambled form |
//! | latest | as zipfian, with the newest numbers the most popular |
//! | hotspot | a share of the operations within a share of the numbers, uniform in each |
//! | exponential | the newest numbers the most: a share of the operations within a share of the numbers, ever fewer behind it |
//!
//! The zipfian numbers follow Gray et al., "Quickly Generating Billion-Record Synthetic Databases", with
//! YCSB's constant 0.99. The scrambled form draws from 10 billion ranks and hashes the rank, so popular keys
//! do not lie together.

use clap::ValueEnum;
use rand::{Rng, RngExt};

/// A distribution by its name in YCSB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// One after the other.
    Sequential,
    /// All alike.
    Uniform,
    /// Few keys often, scattered.
    Zipfian,
    /// New keys often.
    Latest,
    /// A hot set.
    Hotspot,
    /// New keys often, old ones exponentially less.
    Exponential,
}

/// YCSB's zipfian constant.
const THETA: f64 = 0.99;
/// Ranks of the scrambled form, and the sum over them: those of YCSB.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Chooses keys. Cheap to clone: one for each task.
#[derive(Clone, Debug)]
pub struct Chooser {
    distribution: Distribution,
    zipfian: Zipfian,
    shape: Shape,
    /// Rate of the exponential distribution.
    gamma: f64,
}

/// YCSB's properties of the distributions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// `hotspot` only.
    pub hot: Hot,
    /// `exponential` only.
    pub exponential: Exponential,
}

/// YCSB's `hotspotdatafraction` and `hotspotopnfraction`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hot {
    /// Share of the keys that are hot.
    pub data_fraction: f64,
    /// Share of the operations that go to them.
    pub operation_fraction: f64,
}

impl Default for Hot {
    fn default() -> Hot {
        Hot {
            data_fraction: 0.2,
            operation_fraction: 0.8,
        }
    }
}

/// YCSB's `exponential.percentile` and `exponential.frac`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// Per cent of the operations that go to the newest keys.
    pub percentile: f64,
    /// Share of the keys that are these.
    pub fraction: f64,
}

impl Default for Exponential {
    fn default() -> Exponential {
        Exponential {
            percentile: 95.0,
            fraction: 0.857_142_857_1,
        }
    }
}

impl Exponential {
    /// Rate at which keys become less popular, for this number of keys.
    fn gamma(self, keys: u64) -> f64 {
        -(-self.percentile / 100.0).ln_1p() / (keys as f64 * self.fraction)
    }
}

impl Chooser {
    /// A chooser for `keys` keys at the start.
    pub fn new(distribution: Distribution, keys: u64, shape: Shape) -> Chooser {
        let zipfian = match distribution {
            Distribution::Latest => Zipfian::new(keys.max(1)),
            _ => Zipfian::scrambled(),
        };
        Chooser {
            distribution,
            zipfian,
            shape,
            gamma: shape.exponential.gamma(keys.max(1)),
        }
    }

    /// A number below `keys`, for operation `index`. `keys` may grow from call to call.
    /// REQUIRES: at least one key.
    pub fn next(&mut self, index: u64, keys: u64, random: &mut impl Rng) -> u64 {
        match self.distribution {
            Distribution::Sequential => index % keys,
            Distribution::Uniform => random.random_range(0..keys),
            Distribution::Zipfian => fnv_hash(self.zipfian.rank(random.random())) % keys,
            Distribution::Latest => {
                self.zipfian.grow(keys);
                keys - 1 - self.zipfian.rank(random.random()).min(keys - 1)
            }
            Distribution::Hotspot => {
                let hot_keys = ((keys as f64 * self.shape.hot.data_fraction) as u64).clamp(1, keys);
                if hot_keys == keys || random.random::<f64>() < self.shape.hot.operation_fraction {
                    random.random_range(0..hot_keys)
                } else {
                    random.random_range(hot_keys..keys)
                }
            }
            Distribution::Exponential => {
                // YCSB redraws until the key is below `keys`; here it is drawn at once, with the
                // distribution function cut off there.
                let cut = (-self.gamma * keys as f64).exp_m1();
                let back = -(random.random::<f64>() * cut).ln_1p() / self.gamma;
                keys - 1 - (back as u64).min(keys - 1)
            }
        }
    }
}

/// Ranks from 0, the first the most popular.
#[derive(Clone, Debug)]
struct Zipfian {
    ranks: u64,
    /// The sum of `1 / rank^THETA`.
    zeta: f64,
}

impl Zipfian {
    fn new(ranks: u64) -> Zipfian {
        Zipfian {
            ranks,
            zeta: zeta(0, ranks),
        }
    }

    fn scrambled() -> Zipfian {
        Zipfian {
            ranks: SCRAMBLED_RANKS,
            zeta: SCRAMBLED_ZETA,
        }
    }

    fn grow(&mut self, ranks: u64) {
        if ranks > self.ranks {
            self.zeta += zeta(self.ranks, ranks);
            self.ranks = ranks;
        }
    }

    /// The rank for a random number from 0 to 1.
    fn rank(&self, random: f64) -> u64 {
        let scaled = random * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1.min(self.ranks - 1);
        }
        let ranks = self.ranks as f64;
        let two = zeta(0, 2);
        let eta = (1.0 - (2.0 / ranks).powf(1.0 - THETA)) / (1.0 - two / self.zeta);
        let rank = ranks * (eta * random - eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as u64).min(self.ranks - 1)
    }
}

/// The sum of `1 / rank^THETA` over the ranks behind `from` up to `to`, counted from 1. Term by
/// term up to a million; beyond it the integral with its first correction, whose error is far below
/// the precision of a float.
fn zeta(from: u64, to: u64) -> f64 {
    const EXACT: u64 = 1_000_000;
    let term = |rank: u64| (rank as f64).powf(-THETA);
    let exact_end = to.min(EXACT.max(from));
    let exact: f64 = (from + 1..=exact_end).map(term).sum();
    if to <= exact_end {
        return exact;
    }
    let (start, end) = (exact_end as f64, to as f64);
    let integral = (end.powf(1.0 - THETA) - start.powf(1.0 - THETA)) / (1.0 - THETA);
    exact + integral + (term(to) - term(exact_end)) / 2.0
}

/// YCSB's hash of a number: FNV-1a over its eight bytes, the lowest first, as a positive number.
pub fn fnv_hash(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    (hash as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    fn counts(distribution: Distribution, keys: u64, draws: u64) -> Vec<u64> {
        let mut chooser = Chooser::new(distribution, keys, Shape::default());
        let mut random = SmallRng::seed_from_u64(1);
        let mut counts = vec![0; usize::try_from(keys).unwrap()];
        for index in 0..draws {
            counts[usize::try_from(chooser.next(index, keys, &mut random)).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn each_distribution_has_its_form() {
        let draws = 100_000;
        assert!(
            counts(Distribution::Sequential, 100, draws)
                .iter()
                .all(|count| *count == 1_000)
        );
        let uniform = counts(Distribution::Uniform, 100, draws);
        assert!(
            uniform.iter().all(|count| (800..1_200).contains(count)),
            "{uniform:?}"
        );
        let latest = counts(Distribution::Latest, 1_000, draws);
        // The share of the first rank is 1 / zeta(1000) = 12.9 %, and half of that for the next.
        assert!((12_000..14_000).contains(&latest[999]), "{}", latest[999]);
        assert!((6_000..7_200).contains(&latest[998]), "{}", latest[998]);
        let zipfian = counts(Distribution::Zipfian, 1_000, draws);
        // Rank 0 is 1 / 26.47 of the draws, and lies where its hash says.
        let hottest = usize::try_from(fnv_hash(0) % 1_000).unwrap();
        assert!((3_500..4_500).contains(&zipfian[hottest]), "{}", zipfian[hottest]);
        let hotspot = counts(Distribution::Hotspot, 100, draws);
        let hot: u64 = hotspot[..20].iter().sum();
        assert!((79_000..81_000).contains(&hot), "{hot}");
    }

    /// 95 % within the newest 6/7 of the numbers, of those that are not beyond the oldest: 1 - e^(-gamma n)
    /// with gamma n = 7/6 ln 20 = 3.495, so 0.969 of all draws.
    #[test]
    fn exponential_choices_are_of_the_newest() {
        let counts = counts(Distribution::Exponential, 700, 100_000);
        let newest: u64 = counts[100..].iter().sum();
        assert!((97_700..98_300).contains(&newest), "0.95 / 0.9697: {newest}");
        // The newest hundredth: (1 - e^-0.03495) / 0.9697.
        let hundredth: u64 = counts[693..].iter().sum();
        assert!((3_350..3_750).contains(&hundredth), "{hundredth}");
        assert!(counts[0] > 0, "the oldest is chosen too");
    }

    /// Nearly all draws are beyond the oldest number: those within are nearly uniform, and take no longer.
    #[test]
    fn an_exponential_choice_does_not_depend_on_luck() {
        let exponential = Exponential {
            percentile: 1.0,
            fraction: 1e12,
        };
        let shape = Shape {
            exponential,
            ..Shape::default()
        };
        let mut chooser = Chooser::new(Distribution::Exponential, 10, shape);
        let mut random = SmallRng::seed_from_u64(1);
        let mut counts = [0; 10];
        for index in 0..10_000 {
            counts[usize::try_from(chooser.next(index, 10, &mut random)).unwrap()] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1_150).contains(count)),
            "{counts:?}"
        );
    }

    /// The hash of 0 and 1 that YCSB's `Utils.fnvhash64` gives: FNV-1a as published, and Java's absolute
    /// value.
    #[test]
    fn the_hash_is_that_of_ycsb() {
        let plain = |number: u64| {
            let mut hash = 0xcbf2_9ce4_8422_2325u64;
            for place in 0..8 {
                hash ^= (number >> (8 * place)) & 0xff;
                hash = hash.wrapping_mul(1_099_511_628_211);
            }
            hash as i64
        };
        for number in [0, 1, 77, u64::MAX] {
            assert_eq!(fnv_hash(number), plain(number).unsigned_abs());
        }
        // FNV-1a of eight zero bytes, from the published test vectors' arithmetic.
        assert_eq!(fnv_hash(0), 0xa8c7_f832_281a_39c5u64.cast_signed().unsigned_abs());
    }

    #[test]
    fn sums_over_many_ranks_are_close_to_exact() {
        let term = |rank: u64| (rank as f64).powf(-THETA);
        let exact: f64 = (1..=2_000_000).map(term).sum();
        assert!((zeta(0, 2_000_000) - exact).abs() < 1e-6);
        assert!((zeta(0, 700) + zeta(700, 2_000_000) - exact).abs() < 1e-6);
        assert!((zeta(0, SCRAMBLED_RANKS) - SCRAMBLED_ZETA).abs() < 1e-4);
    }

    #[test]
    fn a_growing_space_is_used_up_to_its_end() {
        let mut chooser = Chooser::new(Distribution::Latest, 10, Shape::default());
        let mut random = SmallRng::seed_from_u64(1);
        let newest = (10..2_000).filter(|keys| chooser.next(0, *keys, &mut random) == keys - 1);
        assert!(newest.count() > 200, "the newest key is the most popular");
    }
}

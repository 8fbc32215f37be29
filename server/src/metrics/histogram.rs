//! A histogram: how many values were at most as large as each of some bounds.
//!
//! Network threads record into one histogram for every call. Each adds to a part that few others share,
//! so that they do not take a cache line from each other. A part is allocated by its first value: most
//! methods are never called.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use metrics::HistogramFn;

const PARTS: usize = 8;

/// Unused places at the end of a part, as long as a cache line: the next allocation may be another part.
const PADDING: usize = 8;

thread_local! {
    /// The part that this thread adds to.
    static PART: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % PARTS
    };
}

/// What was recorded.
#[derive(Debug)]
pub(super) struct Buckets {
    /// Upper bounds, ascending. Values above the last are counted behind it.
    bounds: &'static [f64],
    /// The counts of the values by the first bound that is not below them, one more for values above
    /// all bounds, the sum of the values as bits of an f64, and the padding.
    parts: [OnceLock<Box<[AtomicU64]>>; PARTS],
}

/// The sums over all parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counts {
    /// By bound, the values that are at most the bound.
    pub(super) up_to: Vec<(f64, u64)>,
    pub(super) all: u64,
    pub(super) sum: f64,
}

impl Buckets {
    /// REQUIRES: the bounds ascend.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            parts: Default::default(),
        }
    }

    /// The part of this thread.
    fn part(&self) -> &[AtomicU64] {
        // A thread that is about to end may have no number any more.
        let part = PART.try_with(|part| *part).unwrap_or_default();
        let places = self.bounds.len() + 2 + PADDING;
        self.parts[part].get_or_init(|| (0..places).map(|_| AtomicU64::new(0)).collect())
    }

    /// Counts while others record: a value may be in the counts and not yet in the sum.
    pub(super) fn counts(&self) -> Counts {
        let mut by_bucket = vec![0; self.bounds.len() + 1];
        let mut sum = 0.0;
        for part in self.parts.iter().filter_map(OnceLock::get) {
            for (bucket, count) in by_bucket.iter_mut().zip(part) {
                *bucket += count.load(Ordering::Relaxed);
            }
            sum += f64::from_bits(part[by_bucket.len()].load(Ordering::Relaxed));
        }
        let mut all = 0;
        let mut up_to = Vec::with_capacity(by_bucket.len());
        for (index, count) in by_bucket.into_iter().enumerate() {
            all += count;
            up_to.extend(self.bounds.get(index).map(|bound| (*bound, all)));
        }
        Counts { up_to, all, sum }
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        let part = self.part();
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        part[bucket].fetch_add(count as u64, Ordering::Relaxed);
        let sum = &part[self.bounds.len() + 1];
        let added = |bits| Some((f64::from_bits(bits) + value * count as f64).to_bits());
        // The closure has an answer for every value, so this does not fail.
        let _ = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_for_the_bounds_that_are_not_below_it() {
        let buckets = Buckets::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.0, 2.5] {
            buckets.record(value);
        }
        buckets.record_many(0.25, 2);
        let counts = Counts {
            up_to: vec![(1.0, 4), (2.0, 6)],
            all: 7,
            sum: 8.0,
        };
        assert_eq!(buckets.counts(), counts);
    }

    #[test]
    fn without_values_there_are_zeros() {
        let counts = Counts {
            up_to: vec![(1.0, 0)],
            all: 0,
            sum: 0.0,
        };
        assert_eq!(Buckets::new(&[1.0]).counts(), counts);
    }

    /// Goal: no value is lost, whichever threads record. Method: more threads than parts.
    #[test]
    fn values_of_all_threads_are_counted() {
        let buckets = Buckets::new(&[10.0]);
        std::thread::scope(|scope| {
            for _ in 0..PARTS + 2 {
                scope.spawn(|| (0..1_000).for_each(|_| buckets.record(0.5)));
            }
        });
        let all = 1_000 * (PARTS as u64 + 2);
        let counts = buckets.counts();
        assert_eq!((counts.all, counts.up_to), (all, vec![(10.0, all)]));
        assert!((counts.sum - all as f64 / 2.0).abs() < 1e-9);
    }
}

//! Stripes: the parts into which a large store is cut by rows, each compacted by itself (HBase:
//! `StripeStoreEngine`).
//!
//! A merge of all files needs the space of all files a second time, so a store that is compacted as
//! a whole takes twice its size at times. A stripe's merge needs the space of a stripe.
//!
//! A stripe is not stored anywhere. It follows from the first and last rows of the files:
//!
//! 1. Files whose row ranges overlap, directly or by way of others, are a *component*. No row has
//!    cells in two components.
//! 2. Neighbouring components are one stripe until the stripe has half the *target*: a share of the
//!    store's bytes, [`StripeLimits::bytes_min`] at least. So what deletes and TTL leave of a stripe joins
//!    its neighbour, and a store has at most [`StripeLimits::count_max`] stripes.
//! 3. A store below twice the smallest target is one stripe.
//!
//! A flush starts a file at each boundary, the first row of a stripe. A compaction takes neighbours
//! in the order of one stripe's files; one of all files of a stripe that has twice the target cuts
//! its output at rows, into about the target each. A file that is in the way of that, such as a bulk
//! load over all rows, makes one stripe of those that it overlaps until such a compaction has it.
//!
//! A flush writes a file in each stripe that it has cells of, however small. A piece that went with
//! its neighbour would overlap both stripes, and so make them one; their number bounds the number of
//! small files.
//!
//! Tombstones may go in a merge of all files of a stripe: no other file has a cell of their rows.
//!
//! Pure functions of plain values.

use super::{StoreFile, StoreVersion};
use crate::options::Options;
use crate::schema::TableDescriptor;
use crate::seeded;

/// Sizes of stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripeLimits {
    /// Smallest target of a stripe; 0: the store is one stripe.
    pub bytes_min: u64,
    /// Maximum number of stripes; at least 2.
    pub count_max: u64,
}

/// The properties of a file that stripes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRange<'a> {
    /// The first row, or one before it.
    pub first: &'a [u8],
    /// The last row, or one behind it.
    pub last: &'a [u8],
    /// Bytes of the file.
    pub bytes: u64,
}

impl<'a> RowRange<'a> {
    /// The rows of a file that its region sees. A file without such rows counts as one at the
    /// region's start, so that one compaction drops all of these.
    pub(crate) fn of(file: &'a StoreFile) -> Self {
        let (properties, clip) = (file.properties(), file.clip());
        let bytes = file.meta().bytes;
        let start = &clip.start[..];
        let none = Self {
            first: start,
            last: start,
            bytes,
        };
        let (Some(first), Some(last)) = (&properties.first_key, &properties.last_key) else {
            return none;
        };
        let (first, last) = (first.as_key().row().max(start), last.as_key().row());
        if last < start || !clip.is_before_end(first) {
            return none;
        }
        let last = if clip.is_before_end(last) {
            last
        } else {
            &clip.end[..]
        };
        Self { first, last, bytes }
    }
}

/// One stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stripe {
    /// Its files, as indexes into the files of the store, ascending.
    pub files: Vec<usize>,
    /// The first row of its files.
    pub first: Vec<u8>,
    /// The last row of its files.
    pub last: Vec<u8>,
    /// Bytes of its files.
    pub bytes: u64,
    /// Maximum number of its files that overlap at one row.
    pub depth: usize,
}

/// The stripes of a store, in the order of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stripes {
    /// None if the store has no files.
    pub stripes: Vec<Stripe>,
    /// Bytes that a stripe should have; `None`: the store is too small for stripes.
    pub target: Option<u64>,
}

impl Stripes {
    /// The stripes of these files, given in the store's order.
    pub(crate) fn of(files: &[RowRange<'_>], limits: StripeLimits) -> Self {
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let target = (limits.bytes_min > 0 && bytes >= limits.bytes_min.saturating_mul(2))
            .then(|| limits.bytes_min.max(bytes / (limits.count_max / 2).max(1)));
        let mut stripes: Vec<Stripe> = Vec::new();
        for component in components(files) {
            match stripes.last_mut() {
                Some(last) if target.is_none_or(|target| last.bytes < target / 2) => last.take_in(component),
                _ => stripes.push(component),
            }
        }
        // The last one has no neighbour behind it.
        if stripes.len() > 1
            && target.is_some_and(|target| stripes.last().is_some_and(|last| last.bytes < target / 2))
            && let (Some(dust), Some(last)) = (stripes.pop(), stripes.last_mut())
        {
            last.take_in(dust);
        }
        for stripe in &mut stripes {
            stripe.files.sort_unstable();
        }
        Self { stripes, target }
    }

    /// The stripes of a store.
    pub(crate) fn of_store(store: &StoreVersion, table: &TableDescriptor, options: &Options) -> Self {
        let files: Vec<_> = store.files.iter().map(|file| RowRange::of(file)).collect();
        Self::of(&files, limits(store, table, options))
    }

    /// The rows at which a flush begins a file: the first ones of all stripes but the first.
    pub(crate) fn boundaries(&self) -> Vec<Vec<u8>> {
        let later = self.stripes.iter().skip(1);
        later.map(|stripe| stripe.first.clone()).collect()
    }

    /// Maximum number of files that a read of one row may have to look into. In a store without
    /// stripes, the number of its files.
    pub(crate) fn depth(&self) -> usize {
        let depths = self.stripes.iter().map(|stripe| match self.target {
            Some(_) => stripe.depth,
            None => stripe.files.len(),
        });
        depths.max().unwrap_or(0)
    }

    /// The bytes after which a compaction of all files of `stripe` begins another file; `None`: it
    /// writes one.
    pub(crate) fn piece_bytes(&self, stripe: &Stripe) -> Option<u64> {
        self.target
            .filter(|target| stripe.bytes >= target.saturating_mul(2))
    }
}

impl Stripe {
    fn take_in(&mut self, other: Self) {
        self.files.extend(other.files);
        self.bytes += other.bytes;
        self.depth = self.depth.max(other.depth);
        self.last = other.last;
    }
}

/// Sizes of the stripes of a store, as its table says by HBase's attribute or else the settings do.
fn limits(store: &StoreVersion, table: &TableDescriptor, options: &Options) -> StripeLimits {
    let on = table.stripes(&store.family).unwrap_or(true);
    StripeLimits {
        bytes_min: if on { options.compaction_stripe_bytes } else { 0 },
        count_max: options.compaction_stripes_max,
    }
}

/// The components of the files, in the order of rows, each as a stripe.
fn components(files: &[RowRange<'_>]) -> Vec<Stripe> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|index| files[*index].first);
    let mut found: Vec<Stripe> = Vec::new();
    // The last rows of the files of the present component that may overlap the next one.
    let mut open: Vec<&[u8]> = Vec::new();
    for index in order {
        let file = files[index];
        open.retain(|last| *last >= file.first);
        open.push(file.last);
        let overlaps =
            |last: &&mut Stripe| file.first <= &last.last[..] && !seeded::is_on("stripes-miss-an-overlap");
        match found.last_mut().filter(overlaps) {
            Some(component) => {
                component.files.push(index);
                component.bytes += file.bytes;
                component.depth = component.depth.max(open.len());
                if file.last > &component.last[..] {
                    component.last = file.last.to_vec();
                }
            }
            None => found.push(Stripe {
                files: vec![index],
                first: file.first.to_vec(),
                last: file.last.to_vec(),
                bytes: file.bytes,
                depth: 1,
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Random;

    const LIMITS: StripeLimits = StripeLimits {
        bytes_min: 10,
        count_max: 8,
    };

    /// Files as `first-last:bytes`, oldest first; the stripes as `first-last[indexes] bytes depth`.
    fn show(files: &str, limits: StripeLimits) -> String {
        let files: Vec<_> = files
            .split_whitespace()
            .map(|file| {
                let (rows, bytes) = file.split_once(':').unwrap();
                let (first, last) = rows.split_once('-').unwrap();
                RowRange {
                    first: first.as_bytes(),
                    last: last.as_bytes(),
                    bytes: bytes.parse().unwrap(),
                }
            })
            .collect();
        let stripes = Stripes::of(&files, limits).stripes;
        let shown = stripes.iter().map(|stripe| {
            let (first, last) = (stripe.first.escape_ascii(), stripe.last.escape_ascii());
            format!(
                "{first}-{last}{:?} {} {}",
                stripe.files, stripe.bytes, stripe.depth
            )
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn files_that_overlap_share_a_stripe() {
        for (files, expected) in [
            ("", ""),
            ("a-c:9 x-z:9", "a-z[0, 1] 18 1"),
            ("a-c:10 x-z:10", "a-c[0] 10 1; x-z[1] 10 1"),
            ("x-z:10 a-c:10 b-d:1 y-y:1", "a-d[1, 2] 11 2; x-z[0, 3] 11 2"),
            ("a-c:10 c-f:10 f-z:10", "a-z[0, 1, 2] 30 2"),
            ("a-c:10 x-z:10 b-y:1", "a-z[0, 1, 2] 21 2"),
        ] {
            assert_eq!(show(files, LIMITS), expected, "{files}");
        }
    }

    /// A stripe below half the target joins its neighbour, at either end and in the middle.
    #[test]
    fn dust_joins_its_neighbour() {
        for (files, expected) in [
            ("a-b:4 c-d:10 e-f:10", "a-d[0, 1] 14 1; e-f[2] 10 1"),
            ("a-b:10 c-d:4 e-f:10", "a-b[0] 10 1; c-f[1, 2] 14 1"),
            ("a-b:10 c-d:10 e-f:4", "a-b[0] 10 1; c-f[1, 2] 14 1"),
            (
                "a-b:1 c-d:1 e-f:1 g-h:1 i-j:1 k-l:15",
                "a-j[0, 1, 2, 3, 4] 5 1; k-l[5] 15 1",
            ),
        ] {
            assert_eq!(show(files, LIMITS), expected, "{files}");
        }
    }

    #[test]
    fn large_stores_have_larger_stripes() {
        let files = |bytes: u64| {
            let of = |row: u8| {
                let row = char::from(b'a' + row);
                format!("{row}1-{row}2:{bytes} ")
            };
            (0..16).map(of).collect::<String>()
        };
        let count = |bytes| show(&files(bytes), LIMITS).split(';').count();
        assert_eq!((count(1), count(2), count(5), count(1000)), (1, 5, 8, 8));
        let off = StripeLimits {
            bytes_min: 0,
            ..LIMITS
        };
        assert_eq!(show("a-b:100 c-d:100", off), "a-d[0, 1] 200 1");
    }

    /// For any files: each is in one stripe, no two stripes overlap, and none has files of
    /// another between its own rows.
    #[test]
    fn stripes_part_the_files() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let rows: Vec<(Vec<u8>, Vec<u8>, u64)> = (0..random.below(30))
                .map(|_| {
                    let first = random.below(200) as u8;
                    let most = if random.one_in(8) { 55 } else { 10 };
                    let width = random.below(most) as u8;
                    (vec![first], vec![first + width], 1 + random.below(20) as u64)
                })
                .collect();
            let ranges = rows.iter().map(|(first, last, bytes)| RowRange {
                first,
                last,
                bytes: *bytes,
            });
            let files: Vec<_> = ranges.collect();
            let stripes = Stripes::of(&files, LIMITS);
            let mut seen: Vec<_> = stripes
                .stripes
                .iter()
                .flat_map(|stripe| stripe.files.clone())
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..files.len()).collect::<Vec<_>>(), "seed {seed}");
            for pair in stripes.stripes.windows(2) {
                assert!(pair[0].last < pair[1].first, "seed {seed}");
            }
            for stripe in &stripes.stripes {
                let of = stripe.files.iter().map(|index| files[*index]);
                assert_eq!(of.clone().map(|file| file.first).min(), Some(&stripe.first[..]));
                assert_eq!(of.clone().map(|file| file.last).max(), Some(&stripe.last[..]));
                let at = |row: u8| {
                    of.clone()
                        .filter(|file| file.first[0] <= row && row <= file.last[0])
                        .count()
                };
                assert_eq!((0..=u8::MAX).map(at).max(), Some(stripe.depth), "seed {seed}");
            }
            assert!(stripes.stripes.len() as u64 <= LIMITS.count_max, "seed {seed}");
        }
    }
}

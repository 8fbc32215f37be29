//! A sample of the columns of a file, from which compactions estimate how many versions a merge would drop,
//! without reading a block.
//!
//! A column (row and qualifier) is in the sample if its hash is at most `u64::MAX >> halvings`. All files use
//! the same hash, so those of several files that are below the lowest of their limits are a sample of the
//! columns of all of them, in which a column is found once for each file that has it. `halvings` grows as the
//! file does: the sample has at most [`COLUMNS_MAX`] columns, and about half as many or more if the file has.
//!
//! In the file info, `basalt.COLUMN_SAMPLE`: the halvings, one byte; then the hashes, eight bytes each,
//! big-endian, ascending.

/// Most columns of a sample: 4 KiB of hashes. An estimate of a share of a fifth is then wrong by 2 % of the
/// columns, more or less.
const COLUMNS_MAX: usize = 512;

/// Multiplier of the hash: the fraction of the golden ratio, 64 bits of it, which is odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The sample of a complete file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnSample {
    halvings: u8,
    /// Ascending.
    hashes: Vec<u64>,
}

impl ColumnSample {
    /// Reads a value of the file info; `None` if it is malformed.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (halvings, hashes) = value.split_first()?;
        let (hashes, rest) = hashes.as_chunks::<8>();
        let hashes: Vec<_> = hashes.iter().map(|hash| u64::from_be_bytes(*hash)).collect();
        let is_sound = rest.is_empty()
            && *halvings < 64
            && hashes.len() <= COLUMNS_MAX
            && hashes.is_sorted()
            && hashes.last().is_none_or(|last| *last <= limit(*halvings));
        let halvings = *halvings;
        is_sound.then_some(Self { halvings, hashes })
    }

    /// The value of the file info.
    pub(super) fn encode(&self) -> Vec<u8> {
        let hashes = self.hashes.iter().flat_map(|hash| hash.to_be_bytes());
        std::iter::once(self.halvings).chain(hashes).collect()
    }

    /// Its size, for people.
    pub(super) fn describe(&self) -> String {
        format!("{}, one column in {}", self.hashes.len(), 1_u64 << self.halvings)
    }

    /// How many of the sampled cells of these files a merge of them drops, and how many there are, if the
    /// newest `versions` of a column are kept and a file has one version of it.
    pub(crate) fn overwritten<'a>(
        samples: impl Iterator<Item = &'a Self> + Clone,
        versions: usize,
    ) -> (usize, usize) {
        let limit = limit(samples.clone().map(|sample| sample.halvings).max().unwrap_or(0));
        let mut hashes: Vec<u64> = samples.flat_map(|sample| sample.up_to(limit)).copied().collect();
        hashes.sort_unstable();
        let columns = hashes.chunk_by(|one, other| one == other);
        let dropped = columns.map(|cells| cells.len().saturating_sub(versions)).sum();
        (dropped, hashes.len())
    }

    fn up_to(&self, limit: u64) -> &[u64] {
        &self.hashes[..self.hashes.partition_point(|hash| *hash <= limit)]
    }
}

/// The greatest hash in a sample.
fn limit(halvings: u8) -> u64 {
    u64::MAX >> halvings
}

/// Takes the sample while a file is written.
#[derive(Debug, Default)]
pub(super) struct ColumnSampler(ColumnSample);

impl ColumnSampler {
    /// Adds a column, each once.
    pub(super) fn add(&mut self, row: &[u8], qualifier: &[u8]) {
        let sample = &mut self.0;
        let hash = hash(row, qualifier);
        if hash > limit(sample.halvings) {
            return;
        }
        sample.hashes.push(hash);
        if sample.hashes.len() > COLUMNS_MAX {
            sample.halvings += 1;
            let limit = limit(sample.halvings);
            sample.hashes.retain(|hash| *hash <= limit);
        }
    }

    /// The sample of the columns so far.
    pub(super) fn finish(&self) -> ColumnSample {
        let mut sample = self.0.clone();
        sample.hashes.sort_unstable();
        sample
    }
}

/// The hash of a column. On disk: never change it.
fn hash(row: &[u8], qualifier: &[u8]) -> u64 {
    let mut hash = MULTIPLIER ^ row.len() as u64;
    for part in [row, qualifier] {
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            hash = fold(hash, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = fold(hash, u64::from_le_bytes(last));
    }
    fold(hash, qualifier.len() as u64)
}

/// One step of the hash: both halves of a product of 128 bits.
fn fold(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(MULTIPLIER);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: impl Iterator<Item = u32>) -> ColumnSample {
        let mut sampler = ColumnSampler::default();
        for row in rows {
            sampler.add(format!("row{row:09}").as_bytes(), b"q");
        }
        sampler.finish()
    }

    fn overwritten(samples: &[&ColumnSample], versions: usize) -> (usize, usize) {
        ColumnSample::overwritten(samples.iter().copied(), versions)
    }

    /// Goal: the estimate is right for files of very different sizes, whatever they share.
    #[test]
    fn the_share_of_a_large_and_some_small_files_is_estimated() {
        let base = sample(0..1_000_000);
        assert!((COLUMNS_MAX / 2 - 64..=COLUMNS_MAX).contains(&base.hashes.len()));
        for (overlap, expected) in [(1, 0.2 / 1.2), (4, 0.05 / 1.2)] {
            // Ten files of 20,000 rows, of which one in `overlap` is in the first as well.
            let small: Vec<_> = (0..10)
                .map(|file| {
                    let row = move |at: u32| {
                        at * 50 + file + if at.is_multiple_of(overlap) { 0 } else { 2_000_000 }
                    };
                    sample((0..20_000).map(row))
                })
                .collect();
            let all: Vec<_> = std::iter::once(&base).chain(&small).collect();
            let (dropped, cells) = overwritten(&all, 1);
            let found = dropped as f64 / cells as f64;
            assert!((found - expected).abs() < 0.05, "{found} instead of {expected}");
            assert_eq!(overwritten(&all, 2).0, 0, "none has three versions");
        }
    }

    /// Goal: small files are counted exactly, and versions that stay are not counted.
    #[test]
    fn few_columns_are_all_in_the_sample() {
        let (one, two) = (sample(0..100), sample(50..150));
        assert_eq!(overwritten(&[&one, &two], 1), (50, 200));
        assert_eq!(overwritten(&[&one, &one, &one], 2), (100, 300));
        assert_eq!(overwritten(&[&one], 1), (0, 100));
        assert_eq!(overwritten(&[], 1), (0, 0));
        assert_eq!(overwritten(&[&ColumnSample::default()], 1), (0, 0));
    }

    /// The hash is part of the format: samples of files that were written before must stay right.
    #[test]
    fn hashes_and_bytes_are_of_the_format() {
        assert_eq!(hash(b"row", b"qualifier"), 0x2e4b_2862_19dd_3e27);
        assert_ne!(hash(b"ab", b"c"), hash(b"a", b"bc"));
        assert_ne!(hash(b"a\0", b""), hash(b"a", b""));
        let sample = sample(0..3_000);
        assert_eq!(ColumnSample::parse(&sample.encode()), Some(sample.clone()));
        let mut cut = sample.encode();
        cut.pop();
        for wrong in [&cut[..], b"", b"\x40", b"\x01\xff\0\0\0\0\0\0\0"] {
            assert!(ColumnSample::parse(wrong).is_none(), "{wrong:?}");
        }
    }
}

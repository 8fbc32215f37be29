//! How evenly writes are spread over regions: counts, and two measures.

/// How uneven counts are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unevenness {
    /// The largest count divided by the mean: 1 when even, the number of regions when one has all.
    pub(crate) peak_to_mean: f64,
    /// The Gini coefficient: 0 when even, 1 - 1/regions when one has all.
    pub(crate) gini: f64,
}

impl Unevenness {
    /// Unevenness of these counts. No counts, or nothing counted, is even.
    pub(crate) fn of(counts: &[u64]) -> Unevenness {
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return Unevenness {
                peak_to_mean: 1.0,
                gini: 0.0,
            };
        }
        let mut sorted = counts.to_vec();
        sorted.sort_unstable();
        let (regions, total) = (sorted.len() as f64, total as f64);
        let peak = sorted.last().copied().unwrap_or_default() as f64;
        // With counts sorted upwards and ranks from 1: G = 2 * sum(rank * count) / (n * total) - (n + 1) / n.
        let weighted: f64 = (1..)
            .zip(&sorted)
            .map(|(rank, count)| f64::from(rank) * *count as f64)
            .sum();
        Unevenness {
            peak_to_mean: peak * regions / total,
            gini: 2.0 * weighted / (regions * total) - (regions + 1.0) / regions,
        }
    }
}

/// The regions of a table by their first row keys, to count writes where the server does not.
#[derive(Clone, Debug)]
pub(crate) struct RegionMap {
    /// Ascending; the first is empty.
    starts: Vec<Vec<u8>>,
}

impl RegionMap {
    /// `starts` in any order.
    pub(crate) fn new(mut starts: Vec<Vec<u8>>) -> RegionMap {
        starts.sort();
        RegionMap { starts }
    }

    pub(crate) fn starts(&self) -> &[Vec<u8>] {
        &self.starts
    }

    /// The index of the region that holds the row.
    pub(crate) fn index_of(&self, row: &[u8]) -> usize {
        let behind = self.starts.partition_point(|start| start.as_slice() <= row);
        behind.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(counts: &[u64], peak_to_mean: f64, gini: f64) {
        let found = Unevenness::of(counts);
        assert!(
            (found.peak_to_mean - peak_to_mean).abs() < 1e-9,
            "{counts:?}: {found:?}"
        );
        assert!((found.gini - gini).abs() < 1e-9, "{counts:?}: {found:?}");
    }

    #[test]
    fn unevenness_has_its_known_values() {
        check(&[5, 5, 5, 5], 1.0, 0.0);
        check(&[0, 0, 0, 8], 4.0, 0.75);
        check(&[1, 2, 3], 1.5, 2.0 / 9.0);
        check(&[3, 1, 2], 1.5, 2.0 / 9.0);
        check(&[], 1.0, 0.0);
        check(&[0, 0], 1.0, 0.0);
        check(&[9], 1.0, 0.0);
    }

    #[test]
    fn a_row_on_a_border_belongs_to_the_region_that_starts_there() {
        let map = RegionMap::new(vec![b"m".to_vec(), Vec::new(), b"t".to_vec()]);
        let found = [&b"a"[..], b"m", b"m0", b"s", b"t", b"\xff"].map(|row| map.index_of(row));
        assert_eq!(found, [0, 1, 1, 1, 2, 2]);
    }
}

//! A table's part of a column: a few keys in order, each with the traffic from it up to the next.
//!
//! Made of points, which are samples or the contents of other slices. Points of one key are added
//! up. If more are left than there is room for, neighbours are grouped so that each group has about
//! the same share of the traffic: where traffic is high, keys stay apart. A group is named by a key
//! that is as short as possible, and a hot key by itself. A group never reaches over a region's
//! boundary, unless there are more regions with samples than half the groups.

use smallvec::SmallVec;

use super::bytes::{Bytes, put_u32};
use super::{Amounts, Kind};

/// A key, in place when it is as short as most are.
pub(super) type SampledKey = SmallVec<[u8; 24]>;

/// Traffic of a key, or of the keys from it on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) key: SampledKey,
    pub(super) amounts: Amounts,
}

/// An entry of a slice.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where its key ends in the slice's keys.
    end: u32,
    amounts: Amounts,
}

/// Points, packed.
#[derive(Clone, Debug, Default)]
pub(super) struct Slice {
    keys: Box<[u8]>,
    entries: Box<[Entry]>,
}

/// Memory of a slice besides its entries and keys: the struct, the table's name beside it, two
/// allocations.
pub(super) const SLICE_BYTES: usize = 128;

impl Slice {
    /// A slice of at most `bytes` of these points; `None` when not even one fits. `boundaries`: start keys of
    /// regions, in order.
    pub(super) fn of(points: Vec<Point>, boundaries: &[Vec<u8>], bytes: usize) -> Option<Self> {
        let points = added_up(points);
        let mut parts = points.len();
        loop {
            let groups = group(&points, parts, boundaries, &Kind::ALL);
            let keys: Vec<&[u8]> = if parts == points.len() {
                points.iter().map(|point| &point.key[..]).collect()
            } else {
                separators(&points, &groups, boundaries)
            };
            let size = SLICE_BYTES
                + keys
                    .iter()
                    .map(|key| key.len() + size_of::<Entry>())
                    .sum::<usize>();
            if size <= bytes {
                return Some(Self::pack(&points, &groups, &keys)).filter(|slice| !slice.entries.is_empty());
            }
            if parts <= 1 {
                return None;
            }
            // The length of whole keys does not tell how short they will be in groups.
            let fewer = if parts == points.len() {
                (bytes / size_of::<Entry>()).min(parts - 1)
            } else {
                parts * bytes / size * 9 / 10
            };
            parts = fewer.clamp(1, parts - 1);
        }
    }

    fn pack(points: &[Point], groups: &[usize], group_keys: &[&[u8]]) -> Self {
        let mut keys = Vec::new();
        let mut entries = Vec::with_capacity(groups.len());
        for (index, (first, key)) in groups.iter().zip(group_keys).enumerate() {
            let end = groups.get(index + 1).copied().unwrap_or(points.len());
            keys.extend_from_slice(key);
            entries.push(Entry {
                end: u32::try_from(keys.len())
                    .expect("a slice is smaller than a column, and that is a few kilobytes"),
                amounts: sum(points[*first..end].iter().map(|point| point.amounts)),
            });
        }
        Self {
            keys: keys.into(),
            entries: entries.into(),
        }
    }

    /// Points of the slice, in the order of keys.
    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let end = entry.end as usize;
            let key = SampledKey::from_slice(&self.keys[start..end]);
            start = end;
            Point {
                key,
                amounts: entry.amounts,
            }
        })
    }

    /// Appends it as bytes ([`super::store`]).
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_u32(out, self.keys.len());
        out.extend_from_slice(&self.keys);
        put_u32(out, self.entries.len());
        for entry in &self.entries {
            out.extend_from_slice(&entry.end.to_le_bytes());
            for amount in entry.amounts {
                out.extend_from_slice(&amount.to_le_bytes());
            }
        }
    }

    /// Reads what [`Self::encode`] has written; `None` if it is malformed.
    pub(super) fn decode(from: &mut Bytes<'_>) -> Option<Self> {
        let keys = from.u32()?;
        let keys: Box<[u8]> = from.take(keys)?.into();
        let count = from.u32()?;
        let mut before = 0;
        let mut entries = Vec::new();
        for _ in 0..count {
            let end = u32::from_le_bytes(from.array()?);
            let mut amounts = [0.0; 3];
            for amount in &mut amounts {
                *amount = f32::from_le_bytes(from.array()?);
            }
            let is_sound = end >= before
                && end as usize <= keys.len()
                && amounts.iter().all(|amount| amount.is_finite() && *amount >= 0.0);
            if !is_sound {
                return None;
            }
            before = end;
            entries.push(Entry { end, amounts });
        }
        Some(Self {
            keys,
            entries: entries.into(),
        })
    }

    /// Reads and writes of the table.
    pub(super) fn requests(&self) -> f64 {
        let requests = |entry: &Entry| f64::from(entry.amounts[0]) + f64::from(entry.amounts[1]);
        self.entries.iter().map(requests).sum()
    }

    /// Everything that went to the table.
    #[cfg(test)]
    pub(super) fn total(&self) -> Amounts {
        sum(self.entries.iter().map(|entry| entry.amounts))
    }

    /// Bytes in use.
    pub(super) fn used_bytes(&self) -> usize {
        SLICE_BYTES + self.keys.len() + self.entries.len() * size_of::<Entry>()
    }
}

/// A short key for each group: after all keys before the group, not after its first, and in the
/// same region as that. A single hot key is kept whole: users look for it.
fn separators<'a>(points: &'a [Point], groups: &[usize], boundaries: &'a [Vec<u8>]) -> Vec<&'a [u8]> {
    let total = sum(points.iter().map(|point| point.amounts));
    let separator = |(index, first): (usize, &usize)| {
        let key = &points[*first].key[..];
        let end = groups.get(index + 1).copied().unwrap_or(points.len());
        let is_hot =
            end - first == 1 && share(&points[*first], total, &Kind::ALL) * groups.len() as f64 > 1.5;
        let Some(before) = first
            .checked_sub(1)
            .map(|before| &points[before].key)
            .filter(|_| !is_hot)
        else {
            return key;
        };
        let common = key
            .iter()
            .zip(before.iter())
            .take_while(|(left, right)| left == right);
        let short = &key[..key.len().min(common.count() + 1)];
        let region = boundaries.partition_point(|start| start.as_slice() <= key);
        match region.checked_sub(1).map(|region| &boundaries[region][..]) {
            Some(start) if start > short => start,
            _ => short,
        }
    };
    groups.iter().enumerate().map(separator).collect()
}

/// The point's part of the whole, in the mean of these kinds.
fn share(point: &Point, total: Amounts, kinds: &[Kind]) -> f64 {
    let shares = kinds.iter().map(|kind| {
        let (amount, total) = (point.amounts[*kind as usize], total[*kind as usize]);
        if total > 0.0 {
            f64::from(amount) / f64::from(total)
        } else {
            0.0
        }
    });
    shares.sum::<f64>() / kinds.len() as f64
}

pub(super) fn sum(amounts: impl Iterator<Item = Amounts>) -> Amounts {
    // In double precision: single precision loses increments of one after sixteen million.
    let sum = amounts.fold([0.0_f64; 3], |mut sum, amounts| {
        for (sum, amount) in sum.iter_mut().zip(amounts) {
            *sum += f64::from(amount);
        }
        sum
    });
    sum.map(|amount| amount as f32)
}

/// The points in the order of their keys, each key once.
pub(super) fn added_up(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|left, right| left.key.cmp(&right.key));
    points.dedup_by(|next, kept| {
        let is_same = next.key == kept.key;
        if is_same {
            kept.amounts = sum([kept.amounts, next.amounts].into_iter());
        }
        is_same
    });
    points
}

/// Cuts points, which are in order, into about `parts` groups of equal shares of these kinds, and at
/// boundaries; returns the first point of each.
pub(super) fn group(points: &[Point], parts: usize, boundaries: &[Vec<u8>], kinds: &[Kind]) -> Vec<usize> {
    if parts >= points.len() {
        return (0..points.len()).collect();
    }
    let region_of = |key: &[u8]| boundaries.partition_point(|start| start.as_slice() <= key);
    let regions: Vec<usize> = points.iter().map(|point| region_of(&point.key)).collect();
    let crossings = regions.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let cuts_at_regions = crossings <= parts / 2;
    let quantiles = if cuts_at_regions { parts - crossings } else { parts };
    let total = sum(points.iter().map(|point| point.amounts));
    let mut groups = Vec::new();
    let (mut before, mut filled) = (0.0, 0);
    for (index, point) in points.iter().enumerate() {
        // In which quantile the middle of the point's share lies.
        let own = share(point, total, kinds);
        let quantile = (((before + own / 2.0) * quantiles as f64) as usize).min(quantiles - 1);
        let is_new_region = cuts_at_regions && index > 0 && regions[index] != regions[index - 1];
        if index == 0 || quantile > filled || is_new_region {
            groups.push(index);
        }
        filled = filled.max(quantile);
        before += own;
    }
    groups
}

//! Ranges of rows that are done. An empty end is the end of the table.

use std::collections::BTreeMap;

use bytes::Bytes;

/// A range: its first row, and the first row behind it.
pub(super) type Range = (Bytes, Bytes);

/// Disjoint ranges that do not touch: end by start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    ends: BTreeMap<Bytes, Bytes>,
}

impl Ranges {
    pub(super) fn of(ranges: impl IntoIterator<Item = Range>) -> Self {
        let mut all = Self::default();
        for range in ranges {
            all.add(range);
        }
        all
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.ends.iter().map(|(start, end)| (start.clone(), end.clone()))
    }

    /// Adds a range. One without rows changes nothing.
    pub(super) fn add(&mut self, (mut start, mut end): Range) {
        if !end.is_empty() && start >= end {
            return;
        }
        let joined: Vec<Range> = self.iter().filter(|range| touches(range, &start, &end)).collect();
        for (from, to) in joined {
            self.ends.remove(&from);
            start = start.min(from);
            if is_behind(&to, &end) {
                end = to;
            }
        }
        self.ends.insert(start, end);
    }

    /// The parts of a range that are missing, in their order.
    pub(super) fn missing(&self, (start, end): Range) -> Vec<Range> {
        let (mut missing, mut at) = (Vec::new(), start);
        for (from, to) in self.iter() {
            if !to.is_empty() && to <= at {
                continue;
            }
            if !end.is_empty() && from >= end {
                break;
            }
            if from > at {
                missing.push((at, from));
            }
            if to.is_empty() {
                return missing;
            }
            at = to;
        }
        if end.is_empty() || at < end {
            missing.push((at, end));
        }
        missing
    }
}

/// Whether one end is behind another.
fn is_behind(one: &Bytes, other: &Bytes) -> bool {
    !other.is_empty() && (one.is_empty() || one > other)
}

/// Whether a range overlaps another or borders on it.
fn touches((from, to): &Range, start: &Bytes, end: &Bytes) -> bool {
    (end.is_empty() || from <= end) && (to.is_empty() || to >= start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Range {
        let (start, end) = text.split_once('-').unwrap();
        (
            Bytes::copy_from_slice(start.as_bytes()),
            Bytes::copy_from_slice(end.as_bytes()),
        )
    }

    fn shown(ranges: impl IntoIterator<Item = Range>) -> String {
        let texts = ranges.into_iter().map(|(start, end)| {
            format!(
                "{}-{}",
                String::from_utf8_lossy(&start),
                String::from_utf8_lossy(&end)
            )
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ranges_are_joined_and_what_is_missing_is_left() {
        for (added, joined, asked, missing) in [
            ("", "", "-", "-"),
            ("b-d", "b-d", "-", "-b d-"),
            ("b-d d-f", "b-f", "a-g", "a-b f-g"),
            ("d-f b-d", "b-f", "b-f", ""),
            ("b-d c-f", "b-f", "c-d", ""),
            ("b-c e-f", "b-c e-f", "-", "-b c-e f-"),
            ("b-c e-f", "b-c e-f", "c-e", "c-e"),
            ("-c m-", "-c m-", "-", "c-m"),
            ("-", "-", "-", ""),
            ("-", "-", "x-", ""),
            ("m- b-c", "b-c m-", "a-z", "a-b c-m"),
            ("c- a-z", "a-", "-", "-a"),
            ("c-c d-a", "", "a-b", "a-b"),
            ("a-b", "a-b", "b-", "b-"),
            ("c-", "c-", "a-b", "a-b"),
        ] {
            let ranges = Ranges::of(added.split_whitespace().map(range));
            assert_eq!(shown(ranges.iter()), joined, "{added}");
            assert_eq!(shown(ranges.missing(range(asked))), missing, "{added}: {asked}");
        }
    }
}

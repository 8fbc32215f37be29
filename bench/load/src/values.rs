//! Values to write: random bytes, or real flights as text. Each is a slice of one pool, so that making values
//! costs nothing beside sending them.
//!
//! The pool of flights has a line for each flight, in the order of time, as many as fit [`TEXT_BYTES_MAX`]:
//!
//! ```text
//! 2001-01-01T00:01:00 delay=5 distance=300 LAS PHX
//! ```
//!
//! A value begins where a flight begins and goes on with the following ones until it has its length. Behind
//! the last flight of the pool comes the first.

use std::sync::Arc;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::flights::Flights;

/// Bytes of the random pool, besides one value's length.
const POOL_BYTES: usize = 1 << 20;
/// Most bytes of flights as text: 1.3 million of those of the published file.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Flights as text, each a line. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    text: Bytes,
    /// Where each line begins.
    starts: Arc<[u32]>,
}

impl Lines {
    /// The first flights.
    /// REQUIRES: at least one.
    pub(crate) fn new(flights: &Flights) -> Lines {
        Lines::up_to(flights, TEXT_BYTES_MAX)
    }

    fn up_to(flights: &Flights, bytes_max: usize) -> Lines {
        let (mut text, mut starts) = (String::new(), Vec::new());
        for index in 0..flights.len() {
            let line = flights.line(index);
            if !starts.is_empty() && text.len() + line.len() >= bytes_max {
                break;
            }
            starts.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
            text += &line;
            text.push('\n');
        }
        Lines {
            text: text.into(),
            starts: starts.into(),
        }
    }

    fn start(&self, place: usize) -> usize {
        self.starts.get(place).map_or(self.text.len(), |at| *at as usize)
    }

    /// Line `number` without its end, counted round and round.
    pub(crate) fn line(&self, number: u64) -> String {
        let place = (number % self.starts.len() as u64) as usize;
        let line = &self.text[self.start(place)..self.start(place + 1) - 1];
        String::from_utf8_lossy(line).into_owned()
    }

    /// `bytes` bytes from the line at `place` on.
    fn value(&self, place: usize, bytes: usize) -> Bytes {
        let start = self.start(place);
        if start + bytes <= self.text.len() {
            return self.text.slice(start..start + bytes);
        }
        let mut value = Vec::with_capacity(bytes);
        value.extend_from_slice(&self.text[start..]);
        while value.len() < bytes {
            let more = self.text.len().min(bytes - value.len());
            value.extend_from_slice(&self.text[..more]);
        }
        value.into()
    }
}

/// Where values come from. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Values {
    pool: Pool,
}

#[derive(Clone, Debug)]
enum Pool {
    Random(Bytes),
    Flights(Lines),
}

impl Values {
    /// Random bytes, for values of up to `value_bytes_max` bytes.
    pub fn new(seed: u64, value_bytes_max: usize) -> Values {
        let mut pool = vec![0; POOL_BYTES + value_bytes_max];
        SmallRng::seed_from_u64(seed).fill_bytes(&mut pool);
        Values {
            pool: Pool::Random(pool.into()),
        }
    }

    /// Flights, for values of any length.
    pub(crate) fn flights(lines: Lines) -> Values {
        Values {
            pool: Pool::Flights(lines),
        }
    }

    /// A value of `bytes` bytes.
    /// REQUIRES: no more than `value_bytes_max`.
    pub fn next(&self, random: &mut impl Rng, bytes: usize) -> Bytes {
        match &self.pool {
            Pool::Random(pool) => {
                let at = random.random_range(0..=POOL_BYTES);
                pool.slice(at..at + bytes)
            }
            Pool::Flights(lines) => lines.value(random.random_range(0..lines.starts.len()), bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::small_file;

    /// The lines of the small file.
    const TEXT: &str = "2001-01-01T00:01:00 delay=-5 distance=100 LAS XYZ\n\
                        2001-01-01T00:01:00 distance=100 ATL XYZ\n\
                        2001-01-01T00:02:01.000001 delay=7 distance=100 LAS XYZ\n";

    fn flights() -> Flights {
        Flights::read(small_file().path()).unwrap()
    }

    #[test]
    fn a_value_begins_with_a_flight_and_goes_round() {
        let values = Values::flights(Lines::new(&flights()));
        let starts: Vec<usize> = std::iter::once(0)
            .chain(TEXT.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let mut random = SmallRng::seed_from_u64(1);
        let mut begun = std::collections::BTreeSet::new();
        for bytes in [0, 1, 48, 200, TEXT.len(), 3 * TEXT.len() + 7] {
            for _ in 0..50 {
                let value = values.next(&mut random, bytes);
                assert_eq!(value.len(), bytes);
                let from = |start: &usize| TEXT[*start..].bytes().chain(TEXT.bytes().cycle());
                let start = starts[..3]
                    .iter()
                    .find(|start| from(start).take(bytes).eq(value.iter().copied()));
                let start = start.unwrap_or_else(|| panic!("{value:?} does not begin with a flight"));
                begun.insert(*start);
            }
        }
        assert_eq!(begun.len(), 3, "every flight begins a value");
    }

    #[test]
    fn the_same_seed_gives_the_same_values() {
        for values in [Values::new(3, 30), Values::flights(Lines::new(&flights()))] {
            let three = |seed| {
                let mut random = SmallRng::seed_from_u64(seed);
                [(); 9].map(|()| values.next(&mut random, 30))
            };
            assert_eq!(three(1), three(1));
            assert_ne!(three(1), three(2));
        }
    }

    #[test]
    fn the_text_ends_with_the_last_flight_that_fits() {
        let count = |bytes_max| Lines::up_to(&flights(), bytes_max).starts.len();
        let first_two = TEXT.match_indices('\n').nth(1).unwrap().0 + 1;
        assert_eq!(count(first_two), 2);
        assert_eq!(count(first_two - 1), 1);
        assert_eq!(count(1), 1, "one there is always");
        assert_eq!(count(TEXT.len()), 3);
        let lines = Lines::up_to(&flights(), first_two);
        assert_eq!(lines.line(3), lines.line(1));
        assert_eq!(lines.line(0) + "\n" + &lines.line(1) + "\n", TEXT[..first_two]);
    }
}

//! Growing delay of logins after failures, by address and user, and by address alone.
//!
//! A login counts as failed when it begins, so that many at once delay each other; a success takes
//! that back. The first failures of a pair of address and user cost nothing, then the delay doubles
//! from 100 ms to 30 s. An address alone gets more free failures: several users share it behind a
//! gateway.
//!
//! Failures are forgotten 15 minutes after the last one. A user is never delayed for failures from
//! other addresses: strangers could lock it out.
//!
//! Memory is fixed: 8 places for each of 4,096 buckets. A full bucket forgets the entry with the
//! fewest failures. A flood of made-up names from one address still meets the delay of that
//! address.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const BUCKETS: usize = 4096;
const PLACES: usize = 8;

/// Failures without a delay.
const FREE_OF_PAIR: u32 = 3;
const FREE_OF_ADDRESS: u32 = 20;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
const FORGOTTEN_AFTER: Duration = Duration::from_mins(15);

/// Delays of logins. Callers pass the time; the lock is held for a few comparisons.
#[derive(Debug)]
pub struct Delays {
    /// Seeded, so that clients cannot choose their bucket.
    hasher: RandomState,
    buckets: Box<[Mutex<[Option<Entry>; PLACES]>]>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    failures: u32,
    last: Instant,
}

impl Default for Delays {
    fn default() -> Self {
        let bucket = || Mutex::new([None; PLACES]);
        Self {
            hasher: RandomState::new(),
            buckets: std::iter::repeat_with(bucket).take(BUCKETS).collect(),
        }
    }
}

impl Delays {
    /// Counts a login that begins, and returns how long it must wait before its proof is verified.
    /// Call [`Self::succeeded`] when it was right.
    pub fn begin(&self, address: IpAddr, user: &str, now: Instant) -> Duration {
        let failures_of_pair = self.change(self.pair(address, user), now, |before| before.saturating_add(1));
        let failures_of_address = self.change(self.address(address), now, |before| before.saturating_add(1));
        let of_pair = delay(failures_of_pair, FREE_OF_PAIR);
        of_pair.max(delay(failures_of_address, FREE_OF_ADDRESS))
    }

    /// Forgets the failures of address and user, and takes back what [`Self::begin`] counted for
    /// the address.
    pub fn succeeded(&self, address: IpAddr, user: &str, now: Instant) {
        self.change(self.pair(address, user), now, |_| 0);
        self.change(self.address(address), now, |before| before.saturating_sub(1));
    }

    fn pair(&self, address: IpAddr, user: &str) -> u64 {
        self.hasher.hash_one((network(address), user))
    }

    fn address(&self, address: IpAddr) -> u64 {
        self.hasher.hash_one(network(address))
    }

    /// Changes a number of failures, and returns the one before.
    fn change(&self, key: u64, now: Instant, change: impl FnOnce(u32) -> u32) -> u32 {
        let mut places = self.buckets[key as usize % BUCKETS].lock();
        let failures = |place: &Option<Entry>| {
            let remembered =
                place.filter(|entry| now.saturating_duration_since(entry.last) < FORGOTTEN_AFTER);
            remembered.map_or(0, |entry| entry.failures)
        };
        let is_own = |place: &Option<Entry>| place.is_some_and(|entry| entry.key == key);
        let own = places.iter().position(is_own);
        let before = own.map_or(0, |at| failures(&places[at]));
        let after = change(before);
        let at = own.or_else(|| (0..PLACES).min_by_key(|at| failures(&places[*at])));
        let place = &mut places[at.expect("a bucket has places")];
        if after > 0 {
            *place = Some(Entry {
                key,
                failures: after,
                last: now,
            });
        } else if own.is_some() {
            *place = None;
        }
        before
    }
}

/// An IPv6 client has a whole /64, and chooses from it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

fn delay(failures: u32, free: u32) -> Duration {
    match failures.checked_sub(free) {
        None => Duration::ZERO,
        Some(beyond) => FIRST.saturating_mul(1 << beyond.min(16)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn millis(delays: &Delays, address: IpAddr, user: &str, now: Instant) -> u128 {
        delays.begin(address, user, now).as_millis()
    }

    #[test]
    fn the_delay_grows_and_ends_with_success() {
        let (delays, now) = (Delays::default(), Instant::now());
        let waits: Vec<u128> = (0..14).map(|_| millis(&delays, HERE, "bob", now)).collect();
        assert_eq!(
            waits,
            [
                0, 0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000
            ]
        );
        assert_eq!(millis(&delays, THERE, "bob", now), 0);
        assert_eq!(millis(&delays, HERE, "ada", now), 0);
        delays.succeeded(HERE, "bob", now);
        assert_eq!(millis(&delays, HERE, "bob", now), 0);
    }

    #[test]
    fn failures_are_forgotten() {
        let (delays, now) = (Delays::default(), Instant::now());
        for _ in 0..5 {
            delays.begin(HERE, "bob", now);
        }
        let later = now + FORGOTTEN_AFTER;
        let before = later.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(millis(&delays, HERE, "bob", before), 400);
        assert_eq!(millis(&delays, HERE, "bob", before + FORGOTTEN_AFTER), 0);
    }

    #[test]
    fn made_up_names_meet_the_delay_of_their_address() {
        let (delays, now) = (Delays::default(), Instant::now());
        let waits: Vec<u128> = (0..22)
            .map(|at| millis(&delays, HERE, &format!("user{at}"), now))
            .collect();
        assert_eq!(waits[..20], [0; 20]);
        assert_eq!(waits[20..], [100, 200]);
        // Right logins do not use up what the address has for free.
        for _ in 0..100 {
            delays.begin(THERE, "ada", now);
            delays.succeeded(THERE, "ada", now);
        }
        assert_eq!(millis(&delays, THERE, "bob", now), 0);
    }

    #[test]
    fn addresses_of_one_network_count_as_one() {
        let (delays, now) = (Delays::default(), Instant::now());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for at in 0..3 {
            delays.begin(address(&format!("fd00::{at}")), "bob", now);
        }
        assert_eq!(millis(&delays, address("fd00::99"), "bob", now), 100);
        assert_eq!(millis(&delays, address("fd00:0:0:1::99"), "bob", now), 0);
    }

    /// Goal: a flood of names evicts only entries with fewer failures than the one attacked.
    #[test]
    fn a_flood_does_not_reset_a_delay() {
        let (delays, now) = (Delays::default(), Instant::now());
        for _ in 0..10 {
            delays.begin(HERE, "bob", now);
        }
        for at in 0..100_000 {
            delays.begin(THERE, &format!("user{at}"), now);
        }
        assert_eq!(millis(&delays, HERE, "bob", now), 12_800);
    }
}

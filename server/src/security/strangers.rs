//! Connections that have not logged in, counted for each address.
//!
//! A connection takes a place, memory and a handshake before its client has proved anything. Where users
//! must log in, an address has at most `security.unauthenticated_per_address` such connections, so that one
//! machine cannot take the places of all others. A connection stops counting when its client has logged in.
//!
//! Networks of 64 bits count as one IPv6 address: their owner has all addresses in them.
//!
//! Invariant: an address that has no such connection has no entry.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Bits of an IPv6 address that name a host in its network.
const HOST_BITS: u32 = 64;

/// Numbers of connections that have not logged in, by address. Without a limit nothing is counted.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    max: Option<usize>,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that has not logged in. Its clones are the same connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stranger(Option<Arc<Counted>>);

#[derive(Debug)]
struct Counted {
    strangers: Arc<Strangers>,
    address: IpAddr,
    is_open: AtomicBool,
}

impl Strangers {
    /// With at most `max` connections of an address; without a limit if it is `None`.
    pub(crate) fn new(max: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            max,
            counts: Mutex::default(),
        })
    }

    /// Counts a new connection. The error is the limit, if its address has as many.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Stranger, usize> {
        let Some(max) = self.max else {
            return Ok(Stranger::default());
        };
        let address = network_of(address);
        let mut counts = self.counts.lock();
        let count = counts.entry(address).or_default();
        if *count >= max {
            return Err(max);
        }
        *count += 1;
        Ok(Stranger(Some(Arc::new(Counted {
            strangers: Arc::clone(self),
            address,
            is_open: AtomicBool::new(true),
        }))))
    }

    fn remove(&self, address: IpAddr) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

impl Stranger {
    /// Ends the counting: the client has logged in.
    pub(crate) fn logged_in(&self) {
        if let Some(counted) = &self.0 {
            counted.end();
        }
    }
}

impl Counted {
    fn end(&self) {
        if self.is_open.swap(false, Ordering::AcqRel) {
            self.strangers.remove(self.address);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.end();
    }
}

fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Goal: an address has so many connections that have not logged in, whatever becomes of them, and no
    /// other address has fewer for it.
    #[test]
    fn connections_count_until_they_log_in_or_end() {
        let strangers = Strangers::new(Some(2));
        let here = address("10.1.2.3");
        let (first, second) = (strangers.admit(here).unwrap(), strangers.admit(here).unwrap());
        assert_eq!(strangers.admit(here).unwrap_err(), 2);
        assert_eq!(strangers.admit(address("::ffff:10.1.2.3")).unwrap_err(), 2);
        let other = strangers.admit(address("10.1.2.4")).unwrap();
        let of_first = first.clone();
        first.logged_in();
        of_first.logged_in();
        let third = strangers.admit(here).unwrap();
        drop((first, of_first));
        strangers.admit(here).unwrap_err();
        drop(second);
        let fourth = strangers.admit(here).unwrap();
        strangers.admit(here).unwrap_err();
        drop((third, fourth, other));
        assert!(strangers.counts.lock().is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let strangers = Strangers::new(Some(1));
        let _first = strangers.admit(address("2001:db8:1:2::1")).unwrap();
        strangers.admit(address("2001:db8:1:2:ffff::9")).unwrap_err();
        strangers.admit(address("2001:db8:1:3::1")).unwrap();
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let strangers = Strangers::new(None);
        let all: Vec<Stranger> = (0..100)
            .map(|_| strangers.admit(address("10.1.2.3")).unwrap())
            .collect();
        assert!(strangers.counts.lock().is_empty());
        all[0].logged_in();
    }
}

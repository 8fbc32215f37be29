//! Impersonation: which user may act for which others, from where (Hadoop: `hadoop.proxyuser.*`).
//!
//! Denied unless the rule of the acting user matches the other user, by name or group, and the
//! client's address. `*` as a user or group stands for all users except superusers, who must be
//! named: a gateway's rule is not a way to all rights.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Users;
use crate::{Error, Reason, Refused, Result};

/// The word for all users, groups or hosts.
const ALL: &str = "*";

/// The right of one user to act for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyRule {
    /// The user that acts.
    pub proxy: String,
    /// Users for which it acts, or `*`.
    #[serde(default)]
    pub users: Vec<String>,
    /// Groups for whose members it acts, or `*`.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Addresses from which it acts.
    pub hosts: Vec<Hosts>,
}

/// Addresses: `*`, `10.1.2.3`, `10.0.0.0/8`, `fd00::/8`. Names are not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Every address.
    All,
    /// Addresses that have the first bits of this one.
    Network(IpAddr, u8),
}

impl Hosts {
    /// Whether the address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        match *self {
            Self::All => true,
            Self::Network(network, bits) => {
                let (network, address) = (network.to_canonical(), address.to_canonical());
                network.is_ipv4() == address.is_ipv4() && prefix(network, bits) == prefix(address, bits)
            }
        }
    }
}

/// The first bits of an address.
fn prefix(address: IpAddr, bits: u8) -> u128 {
    let (value, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    value.checked_shr(width - u32::from(bits)).unwrap_or(0)
}

impl FromStr for Hosts {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == ALL {
            return Ok(Self::All);
        }
        let parse = || {
            let (address, bits) = text.split_once('/').unzip();
            let address: IpAddr = address.unwrap_or(text).parse().ok()?;
            let width = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(width), |bits| bits.parse().ok())?;
            (bits <= width).then_some(Self::Network(address, bits))
        };
        parse().ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            Error::Invalid(format!(
                "{shown:?} is not *, an IP address or a network such as 10.0.0.0/8"
            ))
        })
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str(ALL),
            Self::Network(address, bits) => write!(f, "{address}/{bits}"),
        }
    }
}

impl Serialize for Hosts {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl Users {
    /// Fails unless `real`, the authenticated user, may act for `effective`. A user may act for
    /// itself. The address is unknown on connections without one, such as Unix sockets; only `*`
    /// matches these.
    pub fn may_impersonate(
        &self,
        real: &str,
        effective: &str,
        address: Option<IpAddr>,
    ) -> std::result::Result<(), Refused> {
        if real == effective {
            return Ok(());
        }
        let user = self.active_user(effective)?;
        let lists = |rule: &ProxyRule, name: &str| {
            rule.users
                .iter()
                .any(|listed| listed == name || listed == ALL && !user.superuser)
                || !user.superuser
                    && rule
                        .groups
                        .iter()
                        .any(|group| group == ALL || user.groups.contains(group))
        };
        let is_allowed = self.proxies.iter().any(|rule| {
            let at_host = |hosts: &Hosts| match address {
                Some(address) => hosts.contains(address),
                None => *hosts == Hosts::All,
            };
            rule.proxy == real && lists(rule, effective) && rule.hosts.iter().any(at_host)
        });
        if is_allowed {
            Ok(())
        } else {
            Err(Refused(Reason::Impersonation))
        }
    }
}

//! Addresses to listen on: an IP address or a host name, and a port.
//!
//! A name is resolved when the port is bound, so reading settings needs no network. `localhost`
//! and the names below it are 127.0.0.1 (RFC 6761). Any other name counts as one that other
//! machines can reach, whatever it resolves to.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::hosts;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address with its port.
    Ip(SocketAddr),
    /// A host name with its port.
    Name(String, u16),
}

impl Address {
    /// The port; 0: the system chooses.
    pub fn port(&self) -> u16 {
        match self {
            Self::Ip(address) => address.port(),
            Self::Name(_, port) => *port,
        }
    }

    /// The IP address, if it is known without a resolver.
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Name(name, port) => {
                hosts::is_localhost(name).then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
            }
        }
    }

    /// Whether machines other than this one may reach a port that listens there.
    pub fn is_open(&self) -> bool {
        self.ip()
            .is_none_or(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Ip(address));
        }
        let refuse = |why: &str| {
            format!(
                "{text:?} is no address to listen on: {why}, as in 127.0.0.1:9090, [::1]:9090 or localhost:9090"
            )
        };
        let (name, port) = text.rsplit_once(':').ok_or_else(|| refuse("it needs a port"))?;
        if !hosts::is_name(name) {
            return Err(refuse("it needs an IP address or a host name"));
        }
        let port = port
            .parse()
            .map_err(|_| refuse("its port is no number up to 65535"))?;
        Ok(Self::Name(name.to_owned(), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The word for no address.
const OFF: &str = "off";

/// An address to listen on, or `off`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionalAddress(pub Option<Address>);

impl FromStr for OptionalAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            OFF => Ok(Self(None)),
            _ => text
                .parse()
                .map(|address| Self(Some(address)))
                .map_err(|error| format!("{error}, or {OFF}")),
        }
    }
}

impl Serialize for OptionalAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            None => serializer.serialize_str(OFF),
            Some(address) => address.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OptionalAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Describes the ports that other machines can reach; `None` when there are none.
pub(super) fn exposure(ports: &[(&str, &Address)], missing: &str) -> Option<String> {
    let open = ports.iter().filter(|(_, listen)| listen.is_open());
    let open: Vec<String> = open
        .map(|(setting, listen)| format!("{setting} = {listen}"))
        .collect();
    (!open.is_empty()).then(|| {
        format!(
            "This server is open to strangers: anyone who reaches {} can read and delete everything, for the server has {missing} \
             (server.insecure = true).",
            open.join(" or ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, ip, is_open) in [
            ("127.0.0.1:0", Some("127.0.0.1:0"), false),
            ("[::1]:9090", Some("[::1]:9090"), false),
            ("[::ffff:127.0.0.1]:4", Some("[::ffff:127.0.0.1]:4"), false),
            ("0.0.0.0:9090", Some("0.0.0.0:9090"), true),
            ("10.0.0.1:1", Some("10.0.0.1:1"), true),
            ("localhost:9090", Some("127.0.0.1:9090"), false),
            ("db.LocalHost:1", Some("127.0.0.1:1"), false),
            ("basalt:9090", None, true),
            ("notlocalhost:1", None, true),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.ip(), ip.map(|ip| ip.parse().unwrap()), "{text}");
            assert_eq!(address.is_open(), is_open, "{text}");
        }
        for wrong in [
            "",
            "9090",
            ":9090",
            "localhost",
            "local host:1",
            "::1:9090",
            "a:65536",
            "a:b",
        ] {
            let error = wrong.parse::<Address>().unwrap_err();
            assert!(
                error.contains(&format!("{wrong:?}")) && error.contains("localhost:9090"),
                "{error}"
            );
        }
    }

    #[test]
    fn an_optional_address_may_be_off() {
        assert_eq!("off".parse(), Ok(OptionalAddress(None)));
        let address = "127.0.0.1:8080".parse::<OptionalAddress>().unwrap();
        assert_eq!(address.0.map(|address| address.port()), Some(8080));
        let error = "on".parse::<OptionalAddress>().unwrap_err();
        assert!(error.ends_with(", or off"), "{error}");
    }

    #[test]
    fn open_ports_are_named() {
        let port = |text: &str| text.parse::<Address>().unwrap();
        let closed = [
            port("127.0.0.1:1"),
            port("[::1]:2"),
            port("127.8.0.1:3"),
            port("[::ffff:127.0.0.1]:4"),
        ];
        for listen in &closed {
            assert_eq!(exposure(&[("server.listen", listen)], "no users"), None);
        }
        let text = exposure(
            &[
                ("server.listen", &port("0.0.0.0:9090")),
                ("http.listen", &port("127.0.0.1:9095")),
            ],
            "no users",
        );
        let text = text.unwrap();
        assert!(
            text.contains("server.listen = 0.0.0.0:9090 can") && !text.contains("http.listen"),
            "{text}"
        );
        let both = exposure(
            &[
                ("server.listen", &port("[::]:1")),
                ("http.listen", &port("10.0.0.1:2")),
            ],
            "no users",
        )
        .unwrap();
        assert!(
            both.contains("server.listen = [::]:1 or http.listen = 10.0.0.1:2"),
            "{both}"
        );
    }
}

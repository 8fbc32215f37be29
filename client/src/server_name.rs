//! Names of servers.

use std::fmt;

use basalt_idl::native::messages;

/// A server of a cluster: its address and when it started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName {
    /// The host as the cluster names it. The client resolves it.
    pub host: String,
    /// The port of its RPC.
    pub port: u16,
    /// When it started, in milliseconds since 1970: a restarted server has another one. 0 if unknown.
    pub start_code: u64,
}

impl ServerName {
    /// `host:port`.
    pub fn address(&self) -> String {
        // An IPv6 address needs brackets before a port.
        if self.host.contains(':') && !self.host.starts_with('[') {
            return format!("[{}]:{}", self.host, self.port);
        }
        format!("{}:{}", self.host, self.port)
    }

    /// From `info:server` and `info:serverstartcode` of `hbase:meta`.
    pub(super) fn of_meta(server: &[u8], start_code: Option<&[u8]>) -> Option<ServerName> {
        let (host, port) = std::str::from_utf8(server).ok()?.rsplit_once(':')?;
        let start_code = start_code.and_then(|code| code.try_into().ok());
        Some(ServerName {
            host: host.to_owned(),
            port: port.parse().ok()?,
            start_code: start_code.map_or(0, u64::from_be_bytes),
        })
    }

    /// From HBase's form: `host,port,startcode`.
    pub(super) fn of_text(text: &str) -> Option<ServerName> {
        let mut parts = text.rsplitn(3, ',');
        let (start_code, port, host) = (parts.next()?, parts.next()?, parts.next()?);
        Some(ServerName {
            host: host.to_owned(),
            port: port.parse().ok()?,
            start_code: start_code.parse().ok()?,
        })
    }

    pub(super) fn of_message(name: &messages::ServerName) -> ServerName {
        ServerName {
            host: name.host_name.clone(),
            port: u16::try_from(name.port.unwrap_or_default()).unwrap_or_default(),
            start_code: name.start_code.unwrap_or_default(),
        }
    }

    pub(super) fn to_message(&self) -> messages::ServerName {
        messages::ServerName {
            host_name: self.host.clone(),
            port: Some(self.port.into()),
            start_code: Some(self.start_code),
        }
    }
}

/// HBase's form: `host,port,startcode`.
impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.host, self.port, self.start_code)
    }
}

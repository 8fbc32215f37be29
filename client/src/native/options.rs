//! The registry of a cluster and the limits of its client. The defaults are those of HBase's client.

use std::sync::Arc;
use std::time::Duration;

use super::observer::Observer;
use crate::error::{Error, Result};
use crate::security::Security;

/// Port of ZooKeeper where an entry of the quorum names none.
pub const ZOOKEEPER_PORT: u16 = 2181;

/// Base node of HBase in ZooKeeper: `zookeeper.znode.parent`.
pub const BASE_ZNODE: &str = "/hbase";

/// The registry, which names the server of `hbase:meta` and the active master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registry {
    /// In ZooKeeper, which every version of HBase maintains.
    ZooKeeper {
        /// Addresses `host:port`. They are tried in turn.
        servers: Vec<String>,
        /// The base node, for example `/hbase`.
        base: String,
    },
    /// From masters and region servers by ClientMetaService: HBase 2.5 and later.
    Rpc {
        /// Addresses `host:port`. They are tried in turn.
        servers: Vec<String>,
    },
}

impl Registry {
    /// ZooKeeper with `hbase.zookeeper.quorum`, a list of `host` or `host:port` separated by commas.
    /// `client_port` is the port of entries without one.
    pub fn zookeeper(quorum: &str, client_port: u16, base: &str) -> Result<Registry> {
        let base = base.trim_end_matches('/');
        if !base.starts_with('/') {
            return Err(Error::InvalidRequest(format!(
                "base znode '{base}' does not start with '/': HBase's default is {BASE_ZNODE}"
            )));
        }
        Ok(Registry::ZooKeeper {
            servers: addresses("quorum", quorum, Some(client_port))?,
            base: base.to_owned(),
        })
    }

    /// The registry of a cluster key, as replication peers have one:
    ///
    /// - `QUORUM:PORT:/BASE`, the quorum a list of `host` or `host:port` separated by commas
    /// - `hbase+zk://QUORUM/BASE`
    /// - `hbase+rpc://host:port,host:port`
    pub fn of_cluster_key(key: &str) -> Result<Registry> {
        if let Some(servers) = key.strip_prefix("hbase+rpc://") {
            return Registry::bootstrap(servers);
        }
        if let Some(rest) = key.strip_prefix("hbase+zk://") {
            let (quorum, base) = rest.split_once('/').unwrap_or((rest, &BASE_ZNODE[1..]));
            return Registry::zookeeper(quorum, ZOOKEEPER_PORT, &format!("/{base}"));
        }
        let mut parts = key.rsplitn(3, ':');
        let (base, port, quorum) = (parts.next(), parts.next(), parts.next());
        let port = port.and_then(|port| port.parse().ok());
        match (quorum, port, base) {
            (Some(quorum), Some(port), Some(base)) if base.len() > 1 && base.starts_with('/') => {
                Registry::zookeeper(quorum, port, base)
            }
            _ => Err(Error::InvalidRequest(format!(
                "Cluster key passed {key} is invalid, the format should be:hbase.zookeeper.quorum:hbase.zookeeper.property.clientPort:zookeeper.znode.parent, or hbase+rpc://host:port"
            ))),
        }
    }

    /// The RPC registry with `hbase.client.bootstrap.servers`, a list of `host:port` separated by commas.
    pub fn bootstrap(servers: &str) -> Result<Registry> {
        let servers = addresses("list of bootstrap servers", servers, None)?;
        Ok(Registry::Rpc { servers })
    }
}

/// Reads a list of addresses.
fn addresses(what: &str, list: &str, default_port: Option<u16>) -> Result<Vec<String>> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let servers = entries.map(|entry| address(what, entry, default_port));
    let servers = servers.collect::<Result<Vec<_>>>()?;
    if servers.is_empty() {
        return Err(Error::InvalidRequest(format!("{what} '{list}' names no server")));
    }
    Ok(servers)
}

fn address(what: &str, entry: &str, default_port: Option<u16>) -> Result<String> {
    let wrong = |text: &str| Err(Error::InvalidRequest(format!("{what}: '{entry}' {text}")));
    match (entry.rsplit_once(':'), default_port) {
        (None, Some(port)) => Ok(format!("{entry}:{port}")),
        (None, None) => wrong("has no port: name servers as host:port"),
        (Some((host, port)), _) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(entry.to_owned()),
        (Some(_), _) => wrong("is not host:port"),
    }
}

/// The registry of a cluster, and the limits of its client.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The registry that names the servers.
    pub registry: Registry,
    /// The user as whom calls are made. Default: `USER` of the environment, else `basalt`. A server
    /// with users takes the user from the login instead.
    pub user: String,
    /// TLS and the login: a client certificate or a token. Connections to ZooKeeper have the same
    /// TLS, since Basalt answers them on the same port. Default neither.
    pub security: Security,
    /// Longest time to connect to one server, with TLS handshake and login. Default 10 s.
    pub connect_timeout: Duration,
    /// Longest time of one RPC, `hbase.rpc.timeout`. Default 60 s.
    pub call_timeout: Duration,
    /// Longest time of an operation with all its retries, `hbase.client.operation.timeout`; of a scan, the
    /// time without a result. Default 20 min.
    pub operation_timeout: Duration,
    /// Attempts of an operation after the first, `hbase.client.retries.number`. Default 15.
    pub retries: u32,
    /// Pause after the first failed attempt, `hbase.client.pause`. Later pauses are 2, 3, 5, 10, 20, 40, 100
    /// and 200 times as long. Default 100 ms.
    pub pause: Duration,
    /// Longest pause, however many attempts have failed. Default none: as the factors say.
    pub pause_max: Duration,
    /// The first pause after an answer that says the server is overloaded. Default 500 ms.
    pub overload_pause: Duration,
    /// Most calls in flight on one connection; further calls wait. Default 256.
    pub calls_in_flight: usize,
    /// A connection without calls for this long is closed; [`Duration::MAX`]: never. Default 2 min.
    pub idle_timeout: Duration,
    /// Longest reply in bytes. Default 256 MiB.
    pub reply_bytes_max: usize,
    /// Size of one fetch of a scan in bytes, `hbase.client.scanner.max.result.size`. Default 2 MiB.
    pub fetch_bytes: u64,
    /// Most actions of a batch in one call. Default 2,048.
    pub batch_actions: usize,
    /// Bytes of cells after which a batch goes on in a further call. Default 4 MiB.
    pub batch_bytes: usize,
    /// Java class that compresses cell blocks, `hbase.client.rpc.compressor`, for example
    /// `org.apache.hadoop.io.compress.GzipCodec`. Default none.
    pub compressor: Option<String>,
    /// Whether replies have the tags of cells ([`Cell::tags`](crate::Cell::tags)), as the codec
    /// KeyValueCodecWithTags has them. Default false.
    pub tags: bool,
    /// Whether an operation fails with [`Error::Away`] after one round of attempts to reach `hbase:meta` and
    /// the registry, and is not repeated until its time is over. Default false.
    pub fails_when_away: bool,
    /// Is told about calls, connections and look-ups. Default none.
    pub observer: Option<Arc<dyn Observer>>,
}

impl ClusterOptions {
    /// The default limits.
    pub fn new(registry: Registry) -> ClusterOptions {
        ClusterOptions {
            registry,
            user: std::env::var("USER").unwrap_or_else(|_| "basalt".to_owned()),
            security: Security::none(),
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_mins(1),
            operation_timeout: Duration::from_mins(20),
            retries: 15,
            pause: Duration::from_millis(100),
            pause_max: Duration::MAX,
            overload_pause: Duration::from_millis(500),
            calls_in_flight: 256,
            idle_timeout: Duration::from_mins(2),
            reply_bytes_max: 256 << 20,
            fetch_bytes: 2 << 20,
            batch_actions: 2_048,
            batch_bytes: 4 << 20,
            compressor: None,
            tags: false,
            fails_when_away: false,
            observer: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_has_default_ports() {
        let registry = Registry::zookeeper("a, b:2182,", ZOOKEEPER_PORT, "/hbase/").unwrap();
        let expected = Registry::ZooKeeper {
            servers: vec!["a:2181".to_owned(), "b:2182".to_owned()],
            base: "/hbase".to_owned(),
        };
        assert_eq!(registry, expected);
    }

    #[test]
    fn cluster_keys_are_those_of_hbase_and_uris() {
        let zookeeper = |servers: &[&str], base: &str| Registry::ZooKeeper {
            servers: servers.iter().map(|server| (*server).to_owned()).collect(),
            base: base.to_owned(),
        };
        for (key, expected) in [
            ("a,b:2181:/hbase", zookeeper(&["a:2181", "b:2181"], "/hbase")),
            ("a:1,b:2:2181:/x/y", zookeeper(&["a:1", "b:2"], "/x/y")),
            ("hbase+zk://a:1,b/hbase", zookeeper(&["a:1", "b:2181"], "/hbase")),
        ] {
            assert_eq!(Registry::of_cluster_key(key).unwrap(), expected, "{key}");
        }
        let rpc = Registry::bootstrap("a:1,b:2").unwrap();
        assert_eq!(Registry::of_cluster_key("hbase+rpc://a:1,b:2").unwrap(), rpc);
        for key in [
            "",
            "a",
            "a:2181",
            "a:x:/hbase",
            "a:2181:hbase",
            "a:2181:/",
            "hbase+rpc://a",
        ] {
            assert!(Registry::of_cluster_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn bad_addresses_are_named() {
        for (list, text) in [
            ("", "names no server"),
            ("a:b", "'a:b'"),
            (":1", "':1'"),
            ("a", "no port"),
        ] {
            let error = Registry::bootstrap(list).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let error = Registry::zookeeper("a", 1, "hbase").unwrap_err().to_string();
        assert!(error.contains("'hbase'"), "{error}");
    }
}

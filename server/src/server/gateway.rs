//! The cluster behind a gateway: its client, and whether it answers.
//!
//! A task looks at the cluster every few seconds (`service::remote::health`); `/readyz`, pages and metrics
//! show what it has seen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::native::{Cluster, Region};
use basalt_engine::engine::RegionInfo;
use basalt_engine::id::RegionId;
use basalt_engine::schema::TableName;
use parking_lot::Mutex;

use crate::observe::metrics::ClusterCalls;

/// The cluster behind a gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    cluster: Cluster,
    /// As the settings name it.
    key: String,
    read_only: bool,
    calls: Arc<ClusterCalls>,
    /// The last look; `None` before the first.
    seen: Mutex<Option<Seen>>,
}

/// A look at the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The server of `hbase:meta`, or why it does not answer.
    pub(crate) meta: Result<String, String>,
    /// The region servers.
    pub(crate) servers: Vec<SeenServer>,
    pub(crate) at: Instant,
}

/// A region server.
#[derive(Clone, Debug)]
pub(crate) struct SeenServer {
    pub(crate) name: String,
    /// How long its answer took, or why there was none.
    pub(crate) answer: Result<Duration, String>,
}

impl Seen {
    fn silent(&self) -> impl Iterator<Item = (&str, &str)> {
        let silent = |server: &'_ SeenServer| server.answer.is_err();
        let servers = self.servers.iter().filter(move |server| silent(server));
        servers.filter_map(|server| Some((&*server.name, server.answer.as_ref().err()?.as_str())))
    }

    /// Why calls cannot be answered; `None` if they can.
    fn reason(&self) -> Option<String> {
        if let Err(error) = &self.meta {
            return Some(format!("hbase:meta does not answer: {error}"));
        }
        let (silent, all) = (self.silent().count(), self.servers.len());
        let (name, error) = self.silent().next()?;
        (silent * 2 > all)
            .then(|| format!("{silent} of {all} region servers do not answer, {name} for one: {error}"))
    }
}

impl Gateway {
    pub(crate) fn new(cluster: Cluster, key: &str, read_only: bool, calls: Arc<ClusterCalls>) -> Self {
        Self {
            cluster,
            key: key.to_owned(),
            read_only,
            calls,
            seen: Mutex::default(),
        }
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster as the settings name it.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Whether all changes are refused.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn calls(&self) -> &ClusterCalls {
        &self.calls
    }

    /// Records a look. Logs when the cluster begins or ceases to answer.
    pub(crate) fn saw(&self, seen: Seen) {
        let reason = seen.reason();
        let silent = seen.silent().count();
        let answering = seen.servers.len() - silent;
        self.calls.looked_at(reason.is_none(), answering, silent);
        let before = self.seen.lock().replace(seen);
        match (before.map(|before| before.reason()), reason) {
            (None | Some(None), Some(reason)) => {
                tracing::warn!("cluster {} does not answer: {reason}", self.key);
            }
            (None | Some(Some(_)), None) => tracing::info!("cluster {} answers", self.key),
            _ => {}
        }
    }

    /// The last look.
    pub(crate) fn seen(&self) -> Option<Seen> {
        self.seen.lock().clone()
    }

    /// Why calls cannot be answered; `None` if they can.
    pub(crate) fn away(&self) -> Option<String> {
        match &*self.seen.lock() {
            Some(seen) => seen.reason(),
            None => Some("the cluster was not asked yet".to_owned()),
        }
    }

    /// The known regions of a table, by start key. Makes no call.
    pub(crate) fn regions(&self, table: &TableName) -> Vec<RegionInfo> {
        let Ok(name) = table.to_string().parse() else {
            return Vec::new();
        };
        let regions = self.cluster.known_regions(&name).into_iter();
        regions.map(|region| region_info(table, &region)).collect()
    }
}

/// A region of the cluster.
pub(crate) fn region_info(table: &TableName, region: &Region) -> RegionInfo {
    RegionInfo {
        // The other side's own number is not known; its creation time differs in each region of a table.
        id: RegionId(region.id),
        table: table.clone(),
        start: region.start_key.to_vec(),
        end: region.end_key.to_vec(),
        created_ms: region.id,
        encoded_name: String::from_utf8_lossy(region.encoded_name()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(meta: Result<(), &str>, answering: usize, silent: usize) -> Seen {
        let server = |number: usize, answer: Result<Duration, String>| SeenServer {
            name: format!("server-{number}"),
            answer,
        };
        let answering = (0..answering).map(|number| server(number, Ok(Duration::ZERO)));
        let silent = (0..silent).map(|number| server(100 + number, Err("refused".to_owned())));
        Seen {
            meta: meta.map(|()| "m".to_owned()).map_err(str::to_owned),
            servers: answering.chain(silent).collect(),
            at: Instant::now(),
        }
    }

    /// Goal: the gateway is ready as long as meta and at least half of the servers answer.
    #[test]
    fn most_servers_must_answer() {
        for (answering, silent, is_ready) in [
            (0, 0, true),
            (3, 0, true),
            (2, 2, true),
            (1, 2, false),
            (0, 1, false),
        ] {
            let reason = seen(Ok(()), answering, silent).reason();
            assert_eq!(reason.is_none(), is_ready, "{answering} {silent}: {reason:?}");
        }
        let reason = seen(Ok(()), 1, 2).reason().unwrap();
        assert!(
            reason.contains("2 of 3") && reason.contains("server-100 for one: refused"),
            "{reason}"
        );
        let reason = seen(Err("nobody"), 3, 0).reason().unwrap();
        assert!(
            reason.contains("hbase:meta") && reason.contains("nobody"),
            "{reason}"
        );
    }
}

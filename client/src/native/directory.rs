//! The server of `hbase:meta` and the active master, from ZooKeeper or the RPC registry.
//!
//! The servers of the registry are tried in turn, beginning with the one that answered last, until
//! one answers. Each has [`ClusterOptions::connect_timeout`] for its answer. If all fail, the error
//! is that of the last one. The address of the master is kept until a call to it fails; that of
//! meta is kept with the other regions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use basalt_idl::native::messages::{
    self, GetActiveMasterRequest, GetActiveMasterResponse, GetClusterIdRequest, GetClusterIdResponse,
    GetMetaRegionLocationsRequest, GetMetaRegionLocationsResponse, Master, MetaRegionServer,
};
use basalt_idl::native::znode;
use prost::Message;
use tokio::time::{Instant, timeout_at};

use super::connection::Call;
use super::connection::Service;
use super::connections::Connections;
use super::options::{ClusterOptions, Registry};
use super::zookeeper;
use crate::error::{Error, Result};
use crate::server_name::ServerName;

/// The addresses of the cluster's central servers.
#[derive(Debug)]
pub(super) struct Directory {
    options: Arc<ClusterOptions>,
    connections: Arc<Connections>,
    /// Index of the registry's server that answered last.
    answered: AtomicUsize,
    master: Mutex<Option<ServerName>>,
}

/// A question to the registry.
#[derive(Clone, Copy, Debug)]
enum Question {
    ClusterId,
    Meta,
    Master,
}

/// The answer as text or as a server.
#[derive(Debug)]
enum Found {
    Id(String),
    Server(ServerName),
}

impl Directory {
    pub(super) fn new(options: Arc<ClusterOptions>, connections: Arc<Connections>) -> Directory {
        Directory {
            options,
            connections,
            answered: AtomicUsize::new(0),
            master: Mutex::default(),
        }
    }

    /// The id of the cluster.
    pub(super) async fn cluster_id(&self, deadline: Instant) -> Result<String> {
        match self.ask(Question::ClusterId, deadline).await? {
            Found::Id(id) => Ok(id),
            Found::Server(server) => Ok(server.to_string()),
        }
    }

    /// The region servers that have registered, from ZooKeeper; `None` with the RPC registry.
    pub(super) async fn region_servers(&self, deadline: Instant) -> Result<Option<Vec<ServerName>>> {
        let Registry::ZooKeeper { servers, base } = &self.options.registry else {
            return Ok(None);
        };
        let path = format!("{base}/rs");
        let mut outcome = Err(Error::InvalidRequest("the registry has no server".to_owned()));
        for server in servers {
            let asking = zookeeper::get_children(server, &path, &self.options);
            let limit = deadline.min(Instant::now() + self.options.connect_timeout);
            outcome = timeout_at(limit, asking).await.unwrap_or_else(|_| {
                Err(Error::Timeout {
                    what: "looking up the region servers at",
                    target: server.clone(),
                    limit: self.options.connect_timeout,
                })
            });
            if outcome.is_ok() {
                break;
            }
        }
        let names = outcome?;
        Ok(Some(
            names
                .iter()
                .filter_map(|name| ServerName::of_text(name))
                .collect(),
        ))
    }

    /// The server of `hbase:meta`.
    pub(super) async fn meta_server(&self, deadline: Instant) -> Result<ServerName> {
        self.server(Question::Meta, deadline).await
    }

    /// The active master.
    pub(super) async fn master(&self, deadline: Instant) -> Result<ServerName> {
        if let Some(master) = self.lock_master().clone() {
            return Ok(master);
        }
        let master = self.server(Question::Master, deadline).await?;
        *self.lock_master() = Some(master.clone());
        Ok(master)
    }

    /// Evicts the cached master, so that the next call looks it up again.
    pub(super) fn evict_master(&self) {
        *self.lock_master() = None;
    }

    fn lock_master(&self) -> std::sync::MutexGuard<'_, Option<ServerName>> {
        self.master.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn server(&self, question: Question, deadline: Instant) -> Result<ServerName> {
        match self.ask(question, deadline).await? {
            Found::Server(server) => Ok(server),
            Found::Id(id) => Err(unusable(&id, "the answer is no server")),
        }
    }

    async fn ask(&self, question: Question, deadline: Instant) -> Result<Found> {
        let (Registry::ZooKeeper { servers, .. } | Registry::Rpc { servers }) = &self.options.registry;
        let first = self.answered.load(Ordering::Relaxed);
        let mut outcome = None;
        for place in (0..servers.len()).map(|ahead| (first + ahead) % servers.len()) {
            let asked = self.ask_one(&servers[place], question, deadline).await;
            if asked.is_ok() {
                self.answered.store(place, Ordering::Relaxed);
                return asked;
            }
            outcome = Some(asked);
        }
        outcome.unwrap_or_else(|| Err(Error::InvalidRequest("the registry has no server".to_owned())))
    }

    async fn ask_one(&self, server: &str, question: Question, deadline: Instant) -> Result<Found> {
        let began = Instant::now();
        let deadline = deadline.min(began + self.options.connect_timeout);
        let asking = async {
            match &self.options.registry {
                Registry::ZooKeeper { base, .. } => self.ask_zookeeper(server, base, question).await,
                Registry::Rpc { .. } => self.ask_rpc(server, question, deadline).await,
            }
        };
        timeout_at(deadline, asking).await.unwrap_or_else(|_| {
            Err(Error::Timeout {
                what: question.text(),
                target: server.to_owned(),
                limit: deadline.saturating_duration_since(began),
            })
        })
    }

    async fn ask_zookeeper(&self, server: &str, base: &str, question: Question) -> Result<Found> {
        let path = format!("{base}/{}", question.node());
        let data = zookeeper::get_data(server, &path, &self.options).await?;
        let found = match question {
            Question::ClusterId => znode::decode::<messages::ClusterId>(&data)
                .map(|node| node.cluster_id)
                .or_else(|| bare_id(&data))
                .map(Found::Id),
            Question::Meta => znode::decode::<MetaRegionServer>(&data)
                .map(|node| Found::Server(ServerName::of_message(&node.server))),
            Question::Master => {
                znode::decode::<Master>(&data).map(|node| Found::Server(ServerName::of_message(&node.master)))
            }
        };
        found.ok_or_else(|| unusable(server, &format!("{path} is not a node of HBase")))
    }

    async fn ask_rpc(&self, server: &str, question: Question, deadline: Instant) -> Result<Found> {
        let no_server = |what: &str| unusable(server, &format!("there is no {what}"));
        match question {
            Question::ClusterId => {
                let answer: GetClusterIdResponse = self
                    .call(server, "GetClusterId", &GetClusterIdRequest {}, deadline)
                    .await?;
                answer
                    .cluster_id
                    .map(Found::Id)
                    .ok_or_else(|| no_server("cluster id"))
            }
            Question::Meta => {
                let request = GetMetaRegionLocationsRequest {};
                let answer: GetMetaRegionLocationsResponse = self
                    .call(server, "GetMetaRegionLocations", &request, deadline)
                    .await?;
                let primary = answer.meta_locations.iter();
                let mut primary =
                    primary.filter(|place| place.region_info.replica_id.unwrap_or_default() == 0);
                let server = primary.find_map(|place| place.server_name.as_ref());
                found(server).ok_or_else(|| no_server("server of hbase:meta"))
            }
            Question::Master => {
                let answer: GetActiveMasterResponse = self
                    .call(server, "GetActiveMaster", &GetActiveMasterRequest {}, deadline)
                    .await?;
                found(answer.server_name.as_ref()).ok_or_else(|| no_server("active master"))
            }
        }
    }

    async fn call<M: Message + Default>(
        &self,
        server: &str,
        method: &'static str,
        request: &impl Message,
        deadline: Instant,
    ) -> Result<M> {
        let call = Call {
            method,
            region: None,
            priority: 0,
            deadline,
            opens_scanner: false,
        };
        let server = Arc::from(server);
        let connection = self.connections.get(&server, Service::Registry, deadline).await?;
        Ok(connection.call(&call, request, b"").await?.message)
    }
}

/// The id as text, as consumers of replication write it that are no clusters.
fn bare_id(data: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(data).ok()?;
    let is_id = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_id.then(|| text.to_owned())
}

fn found(server: Option<&messages::ServerName>) -> Option<Found> {
    server.map(|name| Found::Server(ServerName::of_message(name)))
}

/// The error for a registry's answer without the wanted entry. A later answer may have it, when the cluster
/// has started.
fn unusable(server: &str, what: &str) -> Error {
    Error::Registry {
        target: server.to_owned(),
        what: what.to_owned(),
    }
}

impl Question {
    fn node(self) -> &'static str {
        match self {
            Question::ClusterId => "hbaseid",
            Question::Meta => "meta-region-server",
            Question::Master => "master",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Question::ClusterId => "looking up the cluster id at",
            Question::Meta => "looking up the server of hbase:meta at",
            Question::Master => "looking up the master at",
        }
    }
}

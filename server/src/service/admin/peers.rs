//! Replication peers. All calls need the right of an operator of the whole server, as in HBase.
//!
//! The texts of refusals are HBase's (`ReplicationPeerManager`).

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::filter::JavaRegex;

use super::{AdminCall, run_admin};
use crate::security::{Action, Target};
use crate::server::copies::peers::{Peer, PeerConfig, Peers, SourceLoad};
use crate::service::{Failure, remote};

/// Longest id of a peer.
const ID_BYTES_MAX: usize = 200;

fn operate<T>(
    call: &AdminCall,
    work: impl FnOnce(&Engine, &Peers) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        work(backend.engine()?, &call.server().copies().peers)
    })
}

/// Changes a peer, alone and only while peers may be changed.
fn change<T>(
    call: &AdminCall,
    work: impl FnOnce(&Engine, &Peers) -> Result<T, Failure>,
) -> Result<T, Failure> {
    operate(call, |engine, peers| {
        if !peers.modifications() {
            return Err(Failure::do_not_retry("Replication peer modification disabled"));
        }
        peers.change(|| work(engine, peers))
    })
}

fn find(peers: &Peers, id: &str) -> Result<Arc<Peer>, Failure> {
    peers.get(id).ok_or_else(|| Failure::unknown_peer(id))
}

fn check_new(peers: &Peers, id: &str) -> Result<(), Failure> {
    if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains(['-', '/']) {
        return Err(Failure::do_not_retry(format!(
            "Found invalid peer name: {id}; a name has 1 to {ID_BYTES_MAX} bytes, and neither - nor /"
        )));
    }
    if peers.get(id).is_some() {
        return Err(Failure::do_not_retry(format!(
            "Replication peer {id} already exists"
        )));
    }
    Ok(())
}

/// Refuses a cluster that cannot be reached, and this one.
fn check_cluster(engine: &Engine, key: &str) -> Result<(), Failure> {
    let id = remote::peer_id(key).map_err(|failure| {
        Failure::do_not_retry(format!(
            "Can't get peerClusterId for clusterKey={key}: {}",
            failure.message()
        ))
    })?;
    if id == engine.cluster_id().to_string() {
        return Err(Failure::do_not_retry(format!(
            "Invalid cluster key: {key}, should not replicate to itself for HBaseInterClusterReplicationEndpoint"
        )));
    }
    Ok(())
}

/// Adds a peer that gets the edits from now on. Blocks until the peer's cluster has told its id.
pub(crate) fn add(call: &AdminCall, id: &str, config: PeerConfig, enabled: bool) -> Result<(), Failure> {
    operate(call, |engine, peers| {
        check_new(peers, id)?;
        config.check().map_err(Failure::do_not_retry)?;
        check_cluster(engine, &config.cluster_key)
    })?;
    change(call, |engine, peers| {
        check_new(peers, id)?;
        let position = peers.add(engine, id, config, enabled)?;
        tracing::info!("replication peer {id} gets the edits from position {position} on");
        Ok(())
    })
}

/// Removes a peer, and the log that is kept for it alone.
pub(crate) fn remove(call: &AdminCall, id: &str) -> Result<(), Failure> {
    change(call, |engine, peers| {
        find(peers, id)?;
        peers.remove(engine, id)?;
        tracing::info!("replication peer {id} is removed");
        Ok(())
    })
}

/// Enables or disables a peer.
pub(crate) fn set_enabled(call: &AdminCall, id: &str, enabled: bool) -> Result<(), Failure> {
    change(call, |engine, peers| {
        let peer = find(peers, id)?;
        let state = if enabled { "enabled" } else { "disabled" };
        if peer.enabled == enabled {
            return Err(Failure::do_not_retry(format!(
                "Replication peer {id} has already been {state}"
            )));
        }
        let changed = Peer {
            enabled,
            ..Peer::clone(&peer)
        };
        peers.replace(engine, changed)?;
        tracing::info!("replication peer {id} is {state}");
        Ok(())
    })
}

/// Replaces the configuration of a peer. Its options are added to those that the peer has; an empty value
/// removes one.
pub(crate) fn update(call: &AdminCall, id: &str, mut config: PeerConfig) -> Result<(), Failure> {
    change(call, |engine, peers| {
        let peer = find(peers, id)?;
        let old = &peer.config;
        if config.cluster_key != old.cluster_key {
            return Err(Failure::do_not_retry(format!(
                "Changing the cluster key on an existing peer is not allowed. Existing key '{}' for peer {id} does not match new key '{}'",
                old.cluster_key, config.cluster_key
            )));
        }
        if config.endpoint != old.endpoint {
            return Err(Failure::do_not_retry(format!(
                "Changing the replication endpoint implementation class on an existing peer is not allowed. Existing class '{}' for peer {id} does not match new class '{}'",
                old.endpoint, config.endpoint
            )));
        }
        let mut options: BTreeMap<_, _> = old.options.clone();
        options.append(&mut config.options);
        options.retain(|_, value| !value.is_empty());
        config.options = options;
        config.check().map_err(Failure::do_not_retry)?;
        let changed = Peer {
            config: Arc::new(config),
            ..Peer::clone(&peer)
        };
        Ok(peers.replace(engine, changed)?)
    })
}

/// A peer.
pub(crate) fn get(call: &AdminCall, id: &str) -> Result<Arc<Peer>, Failure> {
    operate(call, |_, peers| find(peers, id))
}

/// The peers whose whole id matches a Java pattern, by id; all without one.
pub(crate) fn list(call: &AdminCall, pattern: Option<&str>) -> Result<Vec<Arc<Peer>>, Failure> {
    let pattern = pattern.map(JavaRegex::whole).transpose()?;
    // A server without tables of its own has none, and HBase's tools ask each server.
    run_admin(call, Action::Admin, Target::Server, |_| {
        let mut all = call.server().copies().peers.all();
        all.retain(|peer| {
            pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_found_in(peer.id.as_bytes()))
        });
        Ok(all)
    })
}

/// Turns the switch of changes of peers; returns its value before.
pub(crate) fn set_modifications(call: &AdminCall, on: bool) -> Result<bool, Failure> {
    operate(call, |_, peers| Ok(peers.set_modifications(on)))
}

/// Whether peers may be changed.
pub(crate) fn modifications(call: &AdminCall) -> Result<bool, Failure> {
    operate(call, |_, peers| Ok(peers.modifications()))
}

/// The place in the log that a peer's source has to reach so that all writes that were made before this call
/// are durable at the peer. Fails for a peer that is disabled, which does not move.
pub(crate) fn end_to_wait_for(call: &AdminCall, id: &str) -> Result<u64, Failure> {
    operate(call, |engine, peers| {
        let peer = find(peers, id)?;
        if !peer.enabled {
            return Err(Failure::do_not_retry(format!(
                "Replication peer {id} is disabled, so nothing arrives there: enable_peer '{id}' first"
            )));
        }
        // Writes that have a sequence id and are not visible yet are included.
        Ok(engine.read_point().1.next().0)
    })
}

/// The figures of the sources of all peers, for the status of the cluster.
pub(crate) fn loads(call: &AdminCall) -> Vec<(String, SourceLoad)> {
    let now_ms = super::cluster::wall_ms(call);
    let peers = call.server().copies().peers.all().into_iter();
    peers
        .map(|peer| (peer.id.clone(), peer.figures.load(now_ms)))
        .collect()
}

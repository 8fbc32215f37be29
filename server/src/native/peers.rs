//! Replication peers: MasterService's calls about them, and their figures in the cluster's status.

use std::collections::{BTreeMap, BTreeSet};

use basalt_idl::native::messages::{self as pb, replication_state::State};
use bytes::Bytes;

use super::schema;
use crate::server::copies::peers::{Peer, PeerConfig, SourceLoad, TableFamilies};
use crate::service::admin::peers;
use crate::service::{AdminCall, Failure};

type Result<T> = std::result::Result<T, Failure>;

/// A peer's configuration from its message. HBase's classes have REPLICATE_ALL where a message has none.
pub(super) fn config(message: &pb::ReplicationPeer) -> Result<PeerConfig> {
    Ok(PeerConfig {
        cluster_key: message.clusterkey.clone().unwrap_or_default(),
        endpoint: message.replication_endpoint_impl.clone().unwrap_or_default(),
        data: message
            .data
            .iter()
            .map(|pair| (pair.first.to_vec(), pair.second.to_vec()))
            .collect(),
        options: message
            .configuration
            .iter()
            .map(|pair| (pair.name.clone(), pair.value.clone()))
            .collect(),
        table_families: table_families(&message.table_cfs)?,
        namespaces: names(&message.namespaces)?,
        bandwidth: message.bandwidth.unwrap_or_default(),
        replicate_all: message.replicate_all.unwrap_or(true),
        excluded_table_families: table_families(&message.exclude_table_cfs)?,
        excluded_namespaces: names(&message.exclude_namespaces)?,
        serial: message.serial.unwrap_or_default(),
    })
}

fn text(bytes: &Bytes) -> Result<String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Failure::do_not_retry("a namespace or family of a peer is not UTF-8"))
}

fn names(list: &[Bytes]) -> Result<BTreeSet<String>> {
    list.iter().map(text).collect()
}

fn table_families(list: &[pb::TableCf]) -> Result<TableFamilies> {
    let mut found = BTreeMap::new();
    for entry in list {
        let Some(table) = &entry.table_name else {
            return Err(Failure::do_not_retry("table-cfs of a peer without a table"));
        };
        let families = entry.families.iter().map(text).collect::<Result<_>>()?;
        found.insert(schema::table_name(table)?.to_string(), families);
    }
    Ok(found)
}

/// The message of a configuration.
pub(super) fn to_message(config: &PeerConfig) -> pb::ReplicationPeer {
    let bytes = |text: &String| Bytes::copy_from_slice(text.as_bytes());
    pb::ReplicationPeer {
        clusterkey: Some(config.cluster_key.clone()),
        replication_endpoint_impl: (!config.endpoint.is_empty()).then(|| config.endpoint.clone()),
        data: config
            .data
            .iter()
            .map(|(first, second)| pb::BytesBytesPair {
                first: Bytes::copy_from_slice(first),
                second: Bytes::copy_from_slice(second),
            })
            .collect(),
        configuration: config
            .options
            .iter()
            .map(|(name, value)| pb::NameStringPair {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
        table_cfs: to_table_cfs(&config.table_families),
        namespaces: config.namespaces.iter().map(bytes).collect(),
        bandwidth: Some(config.bandwidth),
        replicate_all: Some(config.replicate_all),
        exclude_table_cfs: to_table_cfs(&config.excluded_table_families),
        exclude_namespaces: config.excluded_namespaces.iter().map(bytes).collect(),
        serial: Some(config.serial),
    }
}

fn to_table_cfs(tables: &TableFamilies) -> Vec<pb::TableCf> {
    let entry = |(table, families): (&String, &Vec<String>)| {
        let (namespace, qualifier) = table.split_once(':').unwrap_or(("default", table));
        pb::TableCf {
            table_name: Some(pb::TableName {
                namespace: Bytes::copy_from_slice(namespace.as_bytes()),
                qualifier: Bytes::copy_from_slice(qualifier.as_bytes()),
            }),
            families: families
                .iter()
                .map(|family| Bytes::copy_from_slice(family.as_bytes()))
                .collect(),
        }
    };
    tables.iter().map(entry).collect()
}

/// A peer as HBase describes it.
pub(crate) fn description(peer: &Peer) -> pb::ReplicationPeerDescription {
    let state = if peer.enabled {
        State::Enabled
    } else {
        State::Disabled
    };
    pb::ReplicationPeerDescription {
        id: peer.id.clone(),
        state: pb::ReplicationState { state: state.into() },
        config: to_message(&peer.config),
    }
}

/// Runs a change, which is done when the call returns.
fn change(call: &AdminCall, work: impl FnOnce() -> Result<()>) -> Result<Option<u64>> {
    call.once((None, None), work)
}

pub(super) fn add(
    call: &AdminCall,
    request: &pb::AddReplicationPeerRequest,
) -> Result<pb::AddReplicationPeerResponse> {
    let enabled = request.peer_state.state() == State::Enabled;
    let config = config(&request.peer_config)?;
    let proc_id = change(call, || peers::add(call, &request.peer_id, config, enabled))?;
    Ok(pb::AddReplicationPeerResponse { proc_id })
}

pub(super) fn remove(call: &AdminCall, id: &str) -> Result<pb::RemoveReplicationPeerResponse> {
    let proc_id = change(call, || peers::remove(call, id))?;
    Ok(pb::RemoveReplicationPeerResponse { proc_id })
}

pub(super) fn enable(call: &AdminCall, id: &str) -> Result<pb::EnableReplicationPeerResponse> {
    let proc_id = change(call, || peers::set_enabled(call, id, true))?;
    Ok(pb::EnableReplicationPeerResponse { proc_id })
}

pub(super) fn disable(call: &AdminCall, id: &str) -> Result<pb::DisableReplicationPeerResponse> {
    let proc_id = change(call, || peers::set_enabled(call, id, false))?;
    Ok(pb::DisableReplicationPeerResponse { proc_id })
}

pub(super) fn get(call: &AdminCall, id: &str) -> Result<pb::GetReplicationPeerConfigResponse> {
    let peer = peers::get(call, id)?;
    Ok(pb::GetReplicationPeerConfigResponse {
        peer_id: peer.id.clone(),
        peer_config: to_message(&peer.config),
    })
}

pub(super) fn update(
    call: &AdminCall,
    request: &pb::UpdateReplicationPeerConfigRequest,
) -> Result<pb::UpdateReplicationPeerConfigResponse> {
    let config = config(&request.peer_config)?;
    let proc_id = change(call, || peers::update(call, &request.peer_id, config))?;
    Ok(pb::UpdateReplicationPeerConfigResponse { proc_id })
}

pub(super) fn list(call: &AdminCall, pattern: Option<&str>) -> Result<pb::ListReplicationPeersResponse> {
    let found = peers::list(call, pattern)?;
    Ok(pb::ListReplicationPeersResponse {
        peer_desc: found.iter().map(|peer| description(peer)).collect(),
    })
}

/// The figures of all sources, as HBase's region servers report them.
pub(super) fn loads(call: &AdminCall) -> Vec<pb::ReplicationLoadSource> {
    peers::loads(call).into_iter().map(to_load).collect()
}

fn to_load((id, load): (String, SourceLoad)) -> pb::ReplicationLoadSource {
    pb::ReplicationLoadSource {
        queue_id: Some(id.clone()),
        peer_id: id,
        age_of_last_shipped_op: load.age_ms,
        // The log is one queue: what waits is a part of one file, or nothing.
        size_of_log_queue: u32::from(load.next_written_ms > 0),
        time_stamp_of_last_shipped_op: load.shipped_written_ms,
        replication_lag: load.lag_ms,
        time_stamp_of_next_to_replicate: Some(load.next_written_ms),
        recovered: Some(false),
        running: Some(load.running),
        edits_since_restart: Some(load.shipped > 0),
        edits_read: Some(load.read),
        o_ps_shipped: Some(load.shipped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_comes_back_as_it_was_sent() {
        let table = pb::TableCf {
            table_name: Some(pb::TableName {
                namespace: Bytes::from_static(b"default"),
                qualifier: Bytes::from_static(b"t"),
            }),
            families: vec![Bytes::from_static(b"f"), Bytes::from_static(b"g")],
        };
        let message = pb::ReplicationPeer {
            clusterkey: Some("h:2181:/hbase".to_owned()),
            data: vec![pb::BytesBytesPair {
                first: Bytes::from_static(b"\xff"),
                second: Bytes::from_static(b"x"),
            }],
            configuration: vec![pb::NameStringPair {
                name: "a".to_owned(),
                value: "b".to_owned(),
            }],
            table_cfs: vec![table],
            namespaces: vec![Bytes::from_static(b"n")],
            bandwidth: Some(7),
            replicate_all: Some(false),
            serial: Some(true),
            ..pb::ReplicationPeer::default()
        };
        assert_eq!(to_message(&config(&message).unwrap()), message);
        let plain = config(&pb::ReplicationPeer::default()).unwrap();
        assert!(plain.replicate_all, "as HBase's class has it");
    }
}

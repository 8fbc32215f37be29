//! The commands on peers, and their refusals in HBase's words.

use super::*;

/// Goal: every call about peers has its effect, survives a start, and is refused as by HBase.
#[test]
fn every_call_on_peers_has_its_effect() {
    let (mut here, there) = (Node::start(&[]), Node::start(&[]));
    let add = |here: &Node, id: &str, config| here.add_peer(id, config, State::Disabled);
    add(&here, "p", config_of(&there.key())).expect("a peer");
    for (outcome, text) in [
        (
            add(&here, "p", config_of(&there.key())),
            "Replication peer p already exists",
        ),
        (
            add(&here, "a-b", config_of(&there.key())),
            "Found invalid peer name: a-b",
        ),
        (
            add(&here, "self", config_of(&here.key())),
            "should not replicate to itself",
        ),
        (
            add(&here, "bad", config_of("nowhere")),
            "Cluster key passed nowhere is invalid",
        ),
        (
            add(&here, "away", config_of("127.0.0.1:1:/hbase")),
            "Can't get peerClusterId for clusterKey=127.0.0.1:1:/hbase",
        ),
        (
            here.set_enabled("p", false),
            "Replication peer p has already been disabled",
        ),
        (here.set_enabled("none", true), "ReplicationPeerNotFoundException"),
    ] {
        let refused = refusal(outcome);
        assert!(refused.contains(text), "{refused}");
    }
    let contradiction = pb::ReplicationPeer {
        namespaces: vec![Bytes::from_static(b"ns")],
        ..config_of(&there.key())
    };
    let refused = refusal(add(&here, "c", contradiction));
    assert!(
        refused.contains("Need clean namespaces or table-cfs config"),
        "{refused}"
    );

    here.set_enabled("p", true).expect("enabled");
    let update = |here: &Node, peer_config| {
        let request = pb::UpdateReplicationPeerConfigRequest {
            peer_id: "p".to_owned(),
            peer_config,
        };
        here.ask::<pb::UpdateReplicationPeerConfigResponse>(Method::UpdateReplicationPeerConfig, &request)
    };
    let changed = pb::ReplicationPeer {
        bandwidth: Some(1 << 20),
        replicate_all: Some(false),
        table_cfs: vec![table_families("t", &[])],
        configuration: vec![pb::NameStringPair {
            name: "replication.source.maxretriesmultiplier".to_owned(),
            value: "3".to_owned(),
        }],
        ..config_of(&there.key())
    };
    update(&here, changed.clone()).expect("changed");
    let moved = pb::ReplicationPeer {
        clusterkey: Some(here.key()),
        ..changed.clone()
    };
    let refused = refusal(update(&here, moved));
    assert!(
        refused.contains("Changing the cluster key on an existing peer is not allowed"),
        "{refused}"
    );

    let switch = |here: &Node, on| {
        let request = pb::ReplicationPeerModificationSwitchRequest { on };
        here.ask::<pb::ReplicationPeerModificationSwitchResponse>(
            Method::ReplicationPeerModificationSwitch,
            &request,
        )
        .expect("turned")
        .previous_value
    };
    assert!(switch(&here, false));
    let refused = refusal(update(&here, changed));
    assert!(
        refused.contains("Replication peer modification disabled"),
        "{refused}"
    );
    assert!(!switch(&here, true));

    here.kill();
    here.restart();
    let peers = here.peers();
    let [peer] = &peers[..] else { panic!("{peers:?}") };
    assert_eq!((&*peer.id, peer.state.state()), ("p", State::Enabled));
    assert_eq!(peer.config.bandwidth(), 1 << 20);
    assert_eq!(peer.config.table_cfs, [table_families("t", &[])]);
    let options: Vec<&str> = peer
        .config
        .configuration
        .iter()
        .map(|pair| &pair.name[..])
        .collect();
    assert_eq!(
        options,
        [
            "replication.source.maxretriesmultiplier",
            "replication.source.sleepforretries"
        ],
        "options are merged"
    );
    let request = pb::RemoveReplicationPeerRequest {
        peer_id: "p".to_owned(),
    };
    let remove =
        |here: &Node| here.ask::<pb::RemoveReplicationPeerResponse>(Method::RemoveReplicationPeer, &request);
    remove(&here).expect("removed");
    assert!(refusal(remove(&here)).starts_with("ReplicationPeerNotFoundException"));
    assert!(here.peers().is_empty());
}

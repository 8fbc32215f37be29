//! Clusters that are peers of this one's replication.

use std::time::Duration;

use basalt_client::Error;
use basalt_client::native::{Cluster, ClusterOptions, Registry};

use super::wait;
use crate::service::Failure;

/// Longest time of a look-up at a peer, with its repetitions.
const LOOK_UP: Duration = Duration::from_secs(10);

/// User of the calls.
const USER: &str = "basalt";

/// A client of the cluster of that key. Connects when first used.
pub(crate) fn peer(key: &str) -> Result<Cluster, Error> {
    Ok(Cluster::new(ClusterOptions {
        user: USER.to_owned(),
        connect_timeout: LOOK_UP / 2,
        operation_timeout: LOOK_UP,
        call_timeout: LOOK_UP,
        retries: 1,
        ..ClusterOptions::new(Registry::of_cluster_key(key)?)
    }))
}

/// The id of the cluster of that key. Blocks.
pub(crate) fn peer_id(key: &str) -> Result<String, Failure> {
    let cluster = peer(key).map_err(|error| super::failure(&error))?;
    wait(cluster.cluster_id())
}

//! Versions, and the status of the cluster.

use basalt_engine::engine::RegionStats;
use basalt_rest::media::Media;
use basalt_rest::model::listing::{Node, RegionLoad, Status, Version, encode_cluster_version};

use super::answer::Reply;
use super::request::{Request, Result};
use crate::cluster::HBASE_VERSION;
use crate::service::admin::{cluster, regions};
use crate::service::listing::Listing;
use crate::service::{AdminCall, Failure};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

pub(super) fn version(asked: &Request) -> Result<Reply> {
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    let version = asked.ask(|call| {
        cluster::ask(call, |_| Version {
            server: format!("basalt/{}", env!("CARGO_PKG_VERSION")),
            version: HBASE_VERSION.to_owned(),
            revision: crate::COMMIT.to_owned(),
            jvm: "none".to_owned(),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        })
    })?;
    Ok(Reply::of(media, version.encode(media)))
}

pub(super) fn cluster_version(asked: &Request) -> Result<Reply> {
    let media = asked.accepted(Media::CLUSTER_VERSION)?;
    asked.ask(|call| cluster::ask(call, |_| ()))?;
    Ok(Reply::of(media, encode_cluster_version(HBASE_VERSION, media)))
}

pub(super) async fn cluster(asked: &mut Request) -> Result<Reply> {
    let media = asked.accepted(Media::DESCRIPTIONS)?;
    asked.reserve_listing(Listing::Cluster).await?;
    let nodes = asked.ask(nodes)?;
    Ok(Reply::of(media, Status { nodes }.encode(media)))
}

/// The servers with the loads of their regions: one, or the virtual ones of a rehearsal.
fn nodes(call: &AdminCall) -> Result<Vec<Node>, Failure> {
    let (server, status) = (call.server(), cluster::status(call)?);
    let placement = server.placement();
    let config = server.config();
    let calls = server.load().rates.since().calls(server.load().call_counts());
    let requests: f64 = calls.iter().map(|call| call.calls_per_second).sum();
    let count = placement.servers().len() as u64;
    let mut nodes: Vec<Node> = placement
        .servers()
        .iter()
        .map(|name| Node {
            name: format!("{}:{}", name.host, name.port),
            start_code: name.start_code as i64,
            requests: requests as u64 / count,
            heap_size_mb: (status.memstore_bytes + status.cache_bytes) / MIB / count,
            max_heap_size_mb: (config.memstore.total_bytes + config.block_cache.bytes) / MIB / count,
            regions: Vec::new(),
        })
        .collect();
    for region in regions::stats(call, None)? {
        let place = placement.place(region.region.id);
        if let Some(node) = nodes.get_mut(usize::from(place.server))
            && !place.is_unassigned
        {
            node.regions.push(load(&region));
        }
    }
    Ok(nodes)
}

fn load(region: &RegionStats) -> RegionLoad {
    let sizes = region.file_sizes;
    RegionLoad {
        name: region.region.name(),
        stores: region.flushed.len() as u64,
        storefiles: region.store_files,
        storefile_size_mb: region.store_file_bytes / MIB,
        storefile_index_size_kb: sizes.root_index_bytes / KIB,
        read_requests: region.reads,
        write_requests: region.writes,
        root_index_size_kb: sizes.root_index_bytes / KIB,
        total_static_index_size_kb: sizes.index_bytes / KIB,
        total_static_bloom_size_kb: sizes.bloom_bytes / KIB,
        memstore_size_mb: region.memstore_bytes / MIB,
    }
}

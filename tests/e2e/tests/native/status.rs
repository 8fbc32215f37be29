//! The cluster's status as native clients read it: sizes and requests of regions and servers.

use basalt_idl::native::messages::{
    ClusterStatus, FlushTableRequest, FlushTableResponse, GetClusterStatusRequest, GetClusterStatusResponse,
    GetRegionLoadRequest, GetRegionLoadResponse, RegionLoad, RegionSpecifier, Scan, ScanRequest,
    region_load::CompactionState,
};
use basalt_test_support::{Server, until};
use bytes::Bytes;

use super::client::{Client, start_with_table, table_name};
use super::requests::{value_of, write};

fn status(server: &Server) -> ClusterStatus {
    let mut master = Client::connect(server, "MasterService");
    let call = GetClusterStatusRequest::default();
    let answer: GetClusterStatusResponse = master.ask("GetClusterStatus", &call);
    answer.cluster_status
}

/// The load of the region, which is the same in both calls that report it.
fn load(server: &Server, region: &RegionSpecifier) -> RegionLoad {
    let status = status(server);
    let mut loads = status.live_servers[0].server_load.region_loads.iter();
    let load = loads
        .find(|load| load.region_specifier.value == region.value)
        .expect("the region has a load");
    let call = GetRegionLoadRequest {
        table_name: Some(table_name("t")),
    };
    let answer: GetRegionLoadResponse = Client::connect(server, "AdminService").ask("GetRegionLoad", &call);
    assert_eq!(answer.region_loads, std::slice::from_ref(load));
    load.clone()
}

/// Spark leaves out regions of size 0. A region with a cell has a size, as in HBase, in memory and in a
/// file; an empty one has none.
#[test]
fn a_small_region_has_a_size() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    let sizes = |load: &RegionLoad| {
        [
            load.mem_store_size_mb,
            load.storefile_size_mb,
            load.region_size_mb,
            load.store_uncompressed_size_mb,
            load.root_index_size_kb,
            load.storefile_index_size_kb.map(|size| size as u32),
            load.total_static_index_size_kb,
            load.total_static_bloom_size_kb,
        ]
        .map(Option::unwrap_or_default)
    };
    let empty = load(&server, &region);
    assert_eq!(sizes(&empty), [0; 8]);
    assert_eq!((empty.stores, empty.storefiles), (Some(1), Some(0)));
    assert_eq!(
        (empty.data_locality, empty.complete_sequence_id),
        (Some(0.0), Some(u64::MAX))
    );
    assert_eq!(empty.compaction_state(), CompactionState::None);

    write(&mut client, &region, "r", &[("q", b"v")]);
    let in_memory = load(&server, &region);
    assert_eq!(sizes(&in_memory), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(in_memory.write_requests_count, Some(1));

    let flush = FlushTableRequest {
        table_name: table_name("t"),
        ..FlushTableRequest::default()
    };
    Client::connect(&server, "MasterService").ask::<FlushTableResponse>("FlushTable", &flush);
    let flushed = load(&server, &region);
    assert_eq!(sizes(&flushed), [0, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!((flushed.storefiles, flushed.data_locality), (Some(1), Some(1.0)));
    assert!(flushed.blocks_total_weight > Some(0));
    assert_eq!(flushed.blocks_local_weight, flushed.blocks_total_weight);
    let seq = flushed.complete_sequence_id.expect("a sequence id");
    assert_ne!(seq, u64::MAX);
    let stores: Vec<_> = flushed
        .store_complete_sequence_id
        .iter()
        .map(|store| (store.family_name.clone(), store.sequence_id))
        .collect();
    assert_eq!(stores, [(Bytes::from_static(b"f"), seq)]);
    server.stop();
}

/// Reads, reads that found nothing behind a filter, and calls per second.
#[test]
fn requests_are_counted() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    for row in ["a", "b", "c"] {
        write(&mut client, &region, row, &[("q", b"v")]);
    }
    assert_eq!(value_of(&mut client, &region, "a").as_deref(), Some(&b"v"[..]));
    let filtered = ScanRequest {
        region: Some(region.clone()),
        scan: Some(Scan {
            filter: Some(super::scans::passes_no_value()),
            ..Scan::default()
        }),
        number_of_rows: Some(10),
        close_scanner: Some(true),
        ..ScanRequest::default()
    };
    client.call(3, "Scan", &filtered, b"");
    assert_eq!(client.response().expect("a response").header.exception, None);
    let load = load(&server, &region);
    assert_eq!(load.write_requests_count, Some(3));
    assert_eq!(load.read_requests_count, Some(4));
    assert_eq!(load.filtered_read_requests_count, Some(3));
    let of_server = || status(&server).live_servers[0].server_load.clone();
    let total = of_server().total_number_of_requests.expect("a number");
    assert!(total >= 5, "{total} calls");
    assert!(
        of_server().total_number_of_requests > Some(total),
        "a status is a call"
    );
    until("the rate of many calls", || {
        for _ in 0..100 {
            value_of(&mut client, &region, "a");
        }
        of_server().number_of_requests > Some(0)
    });
    server.stop();
}

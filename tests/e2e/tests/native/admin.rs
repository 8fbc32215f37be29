//! AdminService: replies that Java's client does not show.

use basalt_idl::native::messages::get_region_info_response::CompactionState;
use basalt_idl::native::messages::{
    CompactRegionRequest, CompactRegionResponse, CompactionSwitchRequest, CompactionSwitchResponse,
    FlushRegionRequest, FlushRegionResponse, GetClusterStatusRequest, GetClusterStatusResponse,
    GetRegionInfoRequest, GetRegionInfoResponse, RegionSpecifier,
};
use basalt_test_support::{Server, until};

use super::client::{Client, create, region};
use super::requests::write;

fn state(admin: &mut Client, region: &RegionSpecifier) -> CompactionState {
    let call = GetRegionInfoRequest {
        region: region.clone(),
        compaction_state: Some(true),
        ..GetRegionInfoRequest::default()
    };
    admin
        .ask::<GetRegionInfoResponse>("GetRegionInfo", &call)
        .compaction_state()
}

fn switch(admin: &mut Client, enabled: bool) -> bool {
    let call = CompactionSwitchRequest { enabled };
    admin
        .ask::<CompactionSwitchResponse>("CompactionSwitch", &call)
        .prev_state
}

/// The status lists the endpoints that every region has, as HBase lists those that are loaded.
#[test]
fn the_status_lists_the_endpoints() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut master = Client::connect(&server, "MasterService");
    let call = GetClusterStatusRequest::default();
    let answer: GetClusterStatusResponse = master.ask("GetClusterStatus", &call);
    let load = &answer.cluster_status.live_servers[0].server_load;
    let names: Vec<_> = load.coprocessors.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["AggregateImplementation", "MultiRowMutationEndpoint"]);
    server.stop();
}

/// A compaction that was requested shows in the region's state until it is done.
#[test]
fn a_requested_compaction_shows_until_it_is_done() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut admin = Client::connect(&server, "AdminService");
    let mut client = Client::connect(&server, "ClientService");
    for value in ["1", "2"] {
        write(&mut client, &region, "r", &[("q", value)]);
        let flush = FlushRegionRequest {
            region: region.clone(),
            ..FlushRegionRequest::default()
        };
        admin.ask::<FlushRegionResponse>("FlushRegion", &flush);
    }
    until("the policy's own compaction", || {
        state(&mut admin, &region) == CompactionState::None
    });
    assert!(switch(&mut admin, false));
    let compact = CompactRegionRequest {
        region: region.clone(),
        major: Some(true),
        ..CompactRegionRequest::default()
    };
    admin.ask::<CompactRegionResponse>("CompactRegion", &compact);
    assert_eq!(state(&mut admin, &region), CompactionState::Major);
    assert!(!switch(&mut admin, true));
    until("the major compaction", || {
        state(&mut admin, &region) == CompactionState::None
    });
    server.stop();
}

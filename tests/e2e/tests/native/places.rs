//! Moves, assignment and the balancer, with one server and in a rehearsal of several.

use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    AssignRegionRequest, AssignRegionResponse, BalanceRequest, BalanceResponse, DisableTableRequest,
    DisableTableResponse, EnableTableRequest, EnableTableResponse, GetClusterStatusRequest,
    GetClusterStatusResponse, MoveRegionRequest, MoveRegionResponse, OfflineRegionRequest,
    OfflineRegionResponse, RegionSpecifier, Scan, ScanRequest, ServerName, SetBalancerRunningRequest,
    SetBalancerRunningResponse, UnassignRegionRequest, UnassignRegionResponse,
    region_specifier::RegionSpecifierType,
};
use basalt_test_support::Server;
use bytes::Bytes;

use super::client::{Client, create, create_split, region, specifier, table_name};
use super::requests::{get, value_of, write};

/// The regions of `t` in key order, and a column of each in `hbase:meta`.
fn in_meta(server: &Server, qualifier: &str) -> Vec<(Bytes, String)> {
    let mut client = Client::connect(server, "ClientService");
    let scan = ScanRequest {
        region: Some(specifier(b"hbase:meta,,1")),
        scan: Some(Scan {
            start_row: Some(Bytes::from_static(b"t,,")),
            stop_row: Some(Bytes::from_static(b"t ,,")),
            ..Scan::default()
        }),
        number_of_rows: Some(100),
        close_scanner: Some(true),
        ..ScanRequest::default()
    };
    client.call(1, "Scan", &scan, b"");
    let response = client.response().expect("a response");
    let cells = Cells::new(&response.cells).map(|cell| cell.expect("a cell"));
    let of_column = cells.filter(|cell| cell.qualifier == qualifier.as_bytes());
    let shown = of_column.map(|cell| {
        let value = String::from_utf8_lossy(cell.value).into_owned();
        (Bytes::copy_from_slice(cell.row), value)
    });
    shown.collect()
}

/// The numbers of the virtual servers of the regions of `t`, in key order.
fn servers_of(server: &Server) -> String {
    let numbers = in_meta(server, "server").into_iter().map(|(_, address)| {
        let (host, _) = address.split_once(':').expect("host and port");
        host.trim_start_matches("rehearsal-").to_owned()
    });
    numbers.collect()
}

/// A region by its encoded name, as Java's client names it to the master.
fn encoded(name: &[u8]) -> RegionSpecifier {
    let encoded = name.rsplit(|byte| *byte == b'.').nth(1).expect("a full name");
    RegionSpecifier {
        r#type: RegionSpecifierType::EncodedRegionName.into(),
        value: Bytes::copy_from_slice(encoded),
    }
}

/// A connection to the master.
struct Master(Client);

impl Master {
    fn connect(server: &Server) -> Self {
        Self(Client::connect(server, "MasterService"))
    }

    /// The servers with the number of their regions, those of system tables left out.
    fn status(&mut self) -> Vec<(ServerName, usize)> {
        let call = GetClusterStatusRequest::default();
        let answer: GetClusterStatusResponse = self.0.ask("GetClusterStatus", &call);
        let status = answer.cluster_status;
        let live = status.live_servers.into_iter().map(|live| {
            let loads = live.server_load.region_loads.iter();
            let of_users = loads.filter(|load| !load.region_specifier.value.starts_with(b"hbase:"));
            (live.server, of_users.count())
        });
        let live: Vec<_> = live.collect();
        assert!(live.iter().map(|(name, _)| name).eq(&status.servers_name));
        live
    }

    fn move_to(&mut self, region: &RegionSpecifier, to: Option<&ServerName>) {
        let call = moved(region, to);
        self.0.ask::<MoveRegionResponse>("MoveRegion", &call);
    }

    /// Whether the balancer ran, and how many moves it planned and did.
    fn balance(&mut self, is_dry: bool) -> (bool, Option<u32>, Option<u32>) {
        let call = BalanceRequest {
            dry_run: Some(is_dry),
            ..BalanceRequest::default()
        };
        let answer: BalanceResponse = self.0.ask("Balance", &call);
        (
            answer.balancer_ran,
            answer.moves_calculated,
            answer.moves_executed,
        )
    }

    fn switch_balancer(&mut self, on: bool) -> Option<bool> {
        let call = SetBalancerRunningRequest {
            on,
            ..SetBalancerRunningRequest::default()
        };
        let answer: SetBalancerRunningResponse = self.0.ask("SetBalancerRunning", &call);
        answer.prev_balance_value
    }

    fn assign(&mut self, region: &RegionSpecifier) {
        self.0
            .ask::<AssignRegionResponse>("AssignRegion", &assigned(region));
    }

    fn unassign(&mut self, region: &RegionSpecifier) {
        self.0
            .ask::<UnassignRegionResponse>("UnassignRegion", &unassigned(region));
    }
}

fn moved(region: &RegionSpecifier, to: Option<&ServerName>) -> MoveRegionRequest {
    MoveRegionRequest {
        region: region.clone(),
        dest_server_name: to.cloned(),
    }
}

fn assigned(region: &RegionSpecifier) -> AssignRegionRequest {
    AssignRegionRequest {
        region: region.clone(),
        ..AssignRegionRequest::default()
    }
}

fn unassigned(region: &RegionSpecifier) -> UnassignRegionRequest {
    UnassignRegionRequest {
        region: region.clone(),
        ..UnassignRegionRequest::default()
    }
}

/// Regions of a rehearsal move between its servers, one by one and by the balancer, and `hbase:meta` and
/// the status follow.
#[test]
fn regions_move_between_the_servers_of_a_rehearsal() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &["rehearsal.servers=3"]);
    create_split(&server, "t", &["b", "c", "d", "e", "f"]);
    assert_eq!(servers_of(&server), "123123");
    let mut master = Master::connect(&server);
    let (names, loads): (Vec<_>, Vec<_>) = master.status().into_iter().unzip();
    assert_eq!(loads, [2, 2, 2]);
    let regions: Vec<_> = in_meta(&server, "state")
        .into_iter()
        .map(|(name, _)| encoded(&name))
        .collect();
    for region in &regions[..3] {
        master.move_to(region, Some(&names[2]));
    }
    assert_eq!(servers_of(&server), "333123");
    assert_eq!(
        master.status().iter().map(|(_, load)| *load).collect::<Vec<_>>(),
        [1, 1, 4]
    );
    master.move_to(&regions[5], None);
    assert_eq!(
        servers_of(&server),
        "333121",
        "the first of those with the fewest regions"
    );

    assert_eq!(master.switch_balancer(false), Some(true));
    assert_eq!(master.balance(false), (false, Some(0), Some(0)));
    assert_eq!(master.balance(true), (true, Some(1), Some(0)));
    assert_eq!(servers_of(&server), "333121");
    assert_eq!(master.switch_balancer(true), Some(false));
    assert_eq!(master.balance(false), (true, Some(1), Some(1)));
    assert_eq!(master.balance(false), (true, Some(0), Some(0)));
    assert_eq!(
        master.status().iter().map(|(_, load)| *load).collect::<Vec<_>>(),
        [2, 2, 2]
    );

    let stopped = ServerName {
        start_code: Some(1),
        ..names[0].clone()
    };
    let (class, text) = master
        .0
        .refusal("MoveRegion", &moved(&regions[0], Some(&stopped)), b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("there is no server rehearsal-1"), "{text}");
    server.stop();
}

/// One server has all regions: a move ends where it began, and the balancer finds nothing to do.
#[test]
fn with_one_server_nothing_moves() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let before = in_meta(&server, "server");
    let mut master = Master::connect(&server);
    let [(own, 1)] = &master.status()[..] else {
        panic!("one server with one region")
    };
    let region = region(&server, "t");
    master.move_to(&region, None);
    master.move_to(&region, Some(own));
    assert_eq!(master.balance(false), (true, Some(0), Some(0)));
    assert_eq!(in_meta(&server, "server"), before);
    let other = ServerName {
        host_name: "elsewhere".to_owned(),
        ..own.clone()
    };
    let (class, text) = master.0.refusal("MoveRegion", &moved(&region, Some(&other)), b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("there is no server elsewhere"), "{text}");
    let missing = moved(&encoded(b"t,,1.0123456789abcdef0123456789abcdef."), None);
    let (class, _) = master.0.refusal("MoveRegion", &missing, b"");
    assert_eq!(class, "UnknownRegionException");
    server.stop();
}

/// A region without a server takes no data calls until it is assigned, or its table is enabled. Calls
/// that do not fit its state are refused with HBase's classes.
#[test]
fn regions_are_unassigned_and_assigned() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    write(&mut client, &region, "r", &[("q", "v")]);
    let mut master = Master::connect(&server);
    let state = |server: &Server| in_meta(server, "state").remove(0).1;
    let closed = |client: &mut Client| {
        let (class, text) = client.refusal("Get", &get(&region, "r"), b"");
        assert_eq!(class, "NotServingRegionException");
        assert!(text.contains("is not online on"), "{text}");
    };
    let misfit = |master: &mut Master, method: &str| {
        let (class, text) = match method {
            "MoveRegion" => master.0.refusal(method, &moved(&region, None), b""),
            "UnassignRegion" => master.0.refusal(method, &unassigned(&region), b""),
            _ => master.0.refusal(method, &assigned(&region), b""),
        };
        assert_eq!(class, "DoNotRetryRegionException", "{method}");
        assert!(text.contains("Unexpected state for t,,"), "{text}");
    };
    misfit(&mut master, "AssignRegion");
    misfit(&mut master, "OfflineRegion");
    master.unassign(&region);
    assert_eq!(state(&server), "CLOSED");
    closed(&mut client);
    misfit(&mut master, "UnassignRegion");
    misfit(&mut master, "MoveRegion");
    let offline = OfflineRegionRequest {
        region: region.clone(),
    };
    master.0.ask::<OfflineRegionResponse>("OfflineRegion", &offline);
    master.assign(&region);
    assert_eq!(state(&server), "OPEN");
    assert_eq!(value_of(&mut client, &region, "r").as_deref(), Some(&b"v"[..]));

    master.unassign(&region);
    let disable = DisableTableRequest {
        table_name: table_name("t"),
        ..DisableTableRequest::default()
    };
    master.0.ask::<DisableTableResponse>("DisableTable", &disable);
    let (class, text) = master.0.refusal("AssignRegion", &assigned(&region), b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("t is disabled for t,,"), "{text}");
    let enable = EnableTableRequest {
        table_name: table_name("t"),
        ..EnableTableRequest::default()
    };
    master.0.ask::<EnableTableResponse>("EnableTable", &enable);
    assert_eq!(value_of(&mut client, &region, "r").as_deref(), Some(&b"v"[..]));
    server.stop();
}

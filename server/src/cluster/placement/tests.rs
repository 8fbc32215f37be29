//! Placement of an engine's regions, and its rows in `hbase:meta`.

use basalt_engine::engine::RegionInfo;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor};
use basalt_engine::{Get, Put, Scan};

use super::*;
use crate::config::Config;
use crate::rig;

/// An engine with a placement.
struct Cluster {
    engine: Arc<Engine>,
    placement: Arc<Placement>,
}

/// Three servers, and table `t` with six regions.
fn three_servers() -> Cluster {
    let disk = SimFs::new(1, SimOptions::default());
    let engine = rig::engine_on(&disk, &Config::default());
    let servers = (1..=3).map(|number| ServerName {
        host: format!("server-{number}"),
        port: 9090,
        start_code: 1_700_000_000_123,
    });
    let placement = Arc::new(Placement::new(servers.collect()));
    let directory = Arc::clone(&placement);
    engine.set_directory(directory);
    let splits = [&b"b"[..], b"c", b"d", b"e", b"f"].map(<[u8]>::to_vec).to_vec();
    let family = FamilyDescriptor::new(b"f");
    engine
        .create_table(TableDescriptor::new(t(), vec![family]), splits)
        .unwrap();
    Cluster { engine, placement }
}

fn t() -> TableName {
    "t".parse().unwrap()
}

impl Cluster {
    /// The table's regions in key order.
    fn regions(&self) -> Vec<RegionInfo> {
        self.engine.regions(&t()).unwrap()
    }

    /// The servers of the table's regions in key order.
    fn servers(&self) -> Vec<u16> {
        let place = |region: &RegionInfo| self.placement.place(region.id).server;
        self.regions().iter().map(place).collect()
    }

    /// A column of `hbase:meta` for the table's regions in key order.
    fn in_meta(&self, qualifier: &str) -> Vec<String> {
        let meta = self.engine.table("hbase:meta").unwrap();
        let rows = meta.scan(Scan::new()).map(Result::unwrap);
        rows.filter(|row| row.key().starts_with(b"t,"))
            .map(|row| {
                let value = row.value("info", qualifier).expect("every region has it");
                String::from_utf8(value.to_vec()).unwrap()
            })
            .collect()
    }

    fn move_region(&self, region: &RegionInfo, to: Option<u16>) -> Result<()> {
        self.placement.move_region(&self.engine, region, to)
    }
}

#[test]
fn regions_are_spread_and_moved() {
    let cluster = three_servers();
    assert_eq!(cluster.servers(), [0, 1, 2, 0, 1, 2]);
    let first = &cluster.regions()[0];
    cluster.move_region(first, Some(2)).unwrap();
    assert_eq!(cluster.servers(), [2, 1, 2, 0, 1, 2]);
    assert_eq!(
        cluster.in_meta("server"),
        [3, 2, 3, 1, 2, 3].map(|number| format!("server-{number}:9090"))
    );
    let unknown = cluster.move_region(first, Some(3)).unwrap_err();
    assert!(matches!(unknown, Error::InvalidArgument(_)), "{unknown}");
    let meta = &cluster.engine.regions(&"hbase:meta".parse().unwrap()).unwrap()[0];
    assert!(cluster.move_region(meta, Some(1)).is_err());
    // To the server with the fewest regions, which is not its own.
    cluster.move_region(first, None).unwrap();
    assert_eq!(cluster.servers()[0], 0);
    cluster.move_region(first, None).unwrap();
    assert_eq!(cluster.servers()[0], 1);
    let before = cluster.servers();
    assert_eq!(cluster.placement.plan_balance(), 1);
    assert_eq!(cluster.servers(), before);
    assert_eq!(cluster.placement.balance(&cluster.engine).unwrap(), 1);
    assert_eq!(cluster.placement.plan_balance(), 0);
    let mut loads = cluster.servers();
    loads.sort_unstable();
    assert_eq!(loads, [0, 0, 1, 1, 2, 2]);
    assert_eq!(cluster.placement.balance(&cluster.engine).unwrap(), 0);
}

#[test]
fn halves_stay_with_their_parent_and_merged_regions_with_the_first() {
    let cluster = three_servers();
    let second = cluster.regions()[1].id;
    let (left, right) = cluster.engine.split_region(second, Some(b"bm")).unwrap();
    assert_eq!(cluster.servers(), [0, 1, 1, 2, 0, 1, 2]);
    let servers = [&b"ba"[..], b"bz", b"c"].map(|row| {
        let region = cluster.engine.region_of(&t(), row).unwrap();
        cluster.placement.place(region.id).server
    });
    assert_eq!(servers, [1, 1, 2]);
    cluster.move_region(&right, Some(2)).unwrap();
    let merged = cluster.engine.merge_regions(&[left.id, right.id]).unwrap();
    assert_eq!(cluster.placement.place(merged.id).server, 1);
}

/// The engine's `gate` tests have the other data calls.
#[test]
fn a_region_that_is_not_assigned_takes_no_data_calls() {
    let Cluster { engine, placement } = &three_servers();
    let table = engine.table("t").unwrap();
    table.put(Put::new("b").cell("f", "q", "1")).unwrap();
    let second = &engine.regions(&t()).unwrap()[1];
    placement.unassign(engine, second).unwrap();
    let Err(Error::NotServingRegion(text)) = table.get(&Get::new("b")) else {
        panic!("the region has no server");
    };
    assert!(
        text.starts_with("t,b,") && text.ends_with(" is not online on server-2,9090,1700000000123"),
        "{text}"
    );
    table.get(&Get::new("a")).unwrap();
    placement.assign(engine, second).unwrap();
    table.get(&Get::new("b")).unwrap();
    // A table that is enabled is on servers as a whole.
    placement.unassign(engine, second).unwrap();
    engine.disable_table(&t()).unwrap();
    engine.enable_table(&t()).unwrap();
    table.get(&Get::new("b")).unwrap();
    // Nothing happens to one that is assigned.
    let before = placement.place(second.id);
    placement.assign(engine, second).unwrap();
    assert_eq!(placement.place(second.id), before);
}

/// In `hbase:meta`, an unassigned region is closed and has its last server.
#[test]
fn meta_shows_a_region_that_is_not_assigned() {
    let cluster = three_servers();
    let second = &cluster.regions()[1];
    cluster.placement.unassign(&cluster.engine, second).unwrap();
    assert_eq!(cluster.in_meta("state")[..3], ["OPEN", "CLOSED", "OPEN"]);
    assert_eq!(
        cluster.in_meta("server")[1],
        "server-2:9090",
        "as HBase leaves it"
    );
}

/// Regions of dropped tables are forgotten: a balance counts those that there are.
#[test]
fn regions_that_are_gone_have_no_place() {
    let Cluster { engine, placement } = &three_servers();
    engine.disable_table(&t()).unwrap();
    engine.truncate_table(&t(), false).unwrap();
    assert_eq!(placement.regions.read().placed.len(), 1);
    engine.reset().unwrap();
    assert!(placement.regions.read().placed.is_empty());
}

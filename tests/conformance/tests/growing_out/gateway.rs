//! `basalt gateway` in front of a real HBase with two region servers: HappyBase's tour, and a load of
//! HappyBase while regions are split and moved and HBase stops and starts again.

use std::path::Path;
use std::time::{Duration, Instant};

use basalt_client::native::{BASE_ZNODE, Cluster, ClusterOptions, Registry};
use basalt_client::{Connection, ConnectionOptions, FamilySchema, TableSchema};
use basalt_idl::thrift2::{TScan, args};
use basalt_test_support::{Oracle, Python, Server, happybase, until};
use bytes::Bytes;
use tokio::runtime::Runtime;

const TOUR: &str = include_str!("../../../e2e/python/tour.py");
const LOAD: &str = include_str!("gateway_load.py");

/// HBase, and a gateway to it.
struct Pair {
    gateway: Server,
    hbase: Oracle,
    key: String,
    dir: tempfile::TempDir,
}

impl Pair {
    /// `None` where HBase is not to be had.
    fn start() -> Option<Self> {
        let mut hbase = Oracle::start_with(&[
            "hbase.regionservers=2",
            "hbase.master.wait.on.regionservers.mintostart=2",
            "hbase.master.wait.on.regionservers.maxtostart=2",
            // The lease of a scanner.
            "hbase.client.scanner.timeout.period=4000",
        ])?;
        let port = hbase.zookeeper_port().expect("it runs");
        let key = format!("127.0.0.1:{port}:{BASE_ZNODE}");
        let dir = tempfile::tempdir().expect("a temporary folder");
        let gateway = Server::start_gateway(&dir.path().join("gateway"), &key, &[]);
        Some(Self {
            gateway,
            hbase,
            key,
            dir,
        })
    }

    /// A native client of HBase, for what an operator does.
    fn operator(&self) -> Cluster {
        Cluster::new(ClusterOptions::new(
            Registry::of_cluster_key(&self.key).expect("a key"),
        ))
    }

    fn address(&self) -> [String; 2] {
        let address = self.gateway.thrift;
        [address.ip().to_string(), address.port().to_string()]
    }

    fn is_ready(&self) -> bool {
        self.gateway.http_get("/readyz") == "ready\n"
    }

    /// Waits until no scanner is open in HBase.
    fn none_is_left(&mut self) {
        until("no scanner is left in HBase", || self.hbase.scanners() == Ok(0));
    }
}

/// Check 31: HappyBase does through the gateway all that it does with HBase's own.
#[test]
fn check_31_happybase_makes_its_tour() {
    let Some(python) = happybase() else { return };
    let Some(mut pair) = Pair::start() else { return };
    let [host, port] = pair.address();
    for (transport, protocol) in [("buffered", "binary"), ("framed", "compact")] {
        let output = python.run(TOUR, &[&host, &port, transport, protocol]);
        assert!(
            output.as_ref().is_ok_and(|text| text.trim() == "tour done"),
            "{transport} {protocol}: {}",
            output.unwrap_or_else(|error| error)
        );
    }
    pair.none_is_left();
}

/// A load of HappyBase: puts, batches, gets, scans and counters from several threads, until a file appears.
struct Load {
    running: std::thread::JoinHandle<Result<String, String>>,
    stop: std::path::PathBuf,
}

impl Load {
    fn start(python: &Python, pair: &Pair) -> Self {
        let stop = pair.dir.path().join("stop");
        let (python, [host, port]) = (python.clone(), pair.address());
        let file = stop.display().to_string();
        let running = std::thread::spawn(move || python.run(LOAD, &[&host, &port, &file]));
        Self { running, stop }
    }

    /// Ends it; its figures.
    fn end(self) -> serde_json::Value {
        std::fs::write(&self.stop, "").expect("a file in a folder of ours");
        let output = self.running.join().expect("no panics");
        let text = output.unwrap_or_else(|error| panic!("the load failed:\n{error}"));
        println!("{text}");
        serde_json::from_str(&text).expect("figures")
    }
}

/// Splits the table at a row, and waits for both daughters.
async fn split(operator: &Cluster, row: &'static str) {
    let table = operator.table("t").expect("a name");
    let before = table.region_list().await.expect("regions").len();
    operator.split_region("t", row).await.expect("a split");
    let deadline = Instant::now() + Duration::from_mins(1);
    while table
        .region_list()
        .await
        .is_ok_and(|regions| regions.len() <= before)
    {
        assert!(Instant::now() < deadline, "no daughters");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Moves each region to the other server; how many were moved.
async fn swap(operator: &Cluster) -> usize {
    let servers = operator.region_servers().await.expect("two servers");
    let regions = operator
        .table("t")
        .expect("a name")
        .region_list()
        .await
        .expect("regions");
    let mut moved = 0;
    for region in &regions {
        let other = servers.iter().find(|server| **server != region.server);
        // One that is in transition stays.
        moved += usize::from(operator.move_region(region, other).await.is_ok());
    }
    moved
}

/// Check 32: regions are split and moved under load, and HBase stops and starts, without a restart of the
/// gateway: calls fail clearly meanwhile and go on afterwards, no acknowledged write is lost, and no scanner
/// is left.
#[test]
fn check_32_regions_move_and_hbase_stops_and_starts() {
    let Some(python) = happybase() else { return };
    let Some(mut pair) = Pair::start() else { return };
    let runtime = Runtime::new().expect("a runtime");
    let operator = pair.operator();
    let schema = TableSchema::new("t")
        .expect("a name")
        .family(FamilySchema::new("f"));
    runtime.block_on(operator.create_table(schema)).expect("a table");
    let load = Load::start(&python, &pair);
    let done = |pair: &Pair| {
        let scrape = pair.gateway.http_get("/metrics");
        let mut lines = scrape.lines();
        let count =
            lines.find_map(|line| line.strip_prefix("basalt_cluster_calls_total{method=\"Mutate\"} "));
        // The series begins with the first call.
        count.map_or(0, |count| count.parse::<u64>().expect("a number"))
    };
    let goes_on = |pair: &Pair, what: &str| {
        let before = done(pair);
        until(what, || done(pair) > before + 100);
    };
    goes_on(&pair, "the load runs");
    // HBase splits a daughter only when a compaction has given it files of its own.
    runtime.block_on(split(&operator, "row-2"));
    goes_on(&pair, "the load goes on after the split");
    for _ in 0..2 {
        let moved = runtime.block_on(swap(&operator));
        assert!(moved > 0, "no region was moved");
        goes_on(&pair, "the load goes on after the moves");
    }
    pair.hbase.stop_hbase().expect("HBase stops");
    until("the gateway says that HBase is away", || {
        pair.gateway.http_get("/readyz").starts_with("not ready: ")
    });
    pair.hbase.start_hbase().expect("HBase starts");
    until("the gateway is ready again", || pair.is_ready());
    goes_on(&pair, "the load goes on after the restart");
    let figures = load.end();
    assert_eq!(figures["missing"], 0, "{figures}");
    assert_eq!(figures["wrong"], 0, "{figures}");
    let number = |name: &str| figures[name].as_i64().expect("a number");
    assert!(number("puts") > 300 && number("scans") > 5, "{figures}");
    // An increment that failed may have been made.
    let (counter, acknowledged, failed) = (number("counter"), number("counted"), number("uncertain"));
    assert!(
        (acknowledged..=acknowledged + failed).contains(&counter),
        "{figures}"
    );
    let errors = figures["errors"].as_array().expect("a list");
    let is_clear = |text: &str| {
        [
            "does not answer",
            "outcome is unknown",
            "Exception",
            "failed",
            "took longer",
            "broke",
        ]
        .iter()
        .any(|part| text.contains(part))
    };
    assert!(
        errors.iter().all(|text| text.as_str().is_some_and(is_clear)),
        "{figures}"
    );
    pair.none_is_left();
}

/// Check 32: a scanner whose client is slower than the lease of HBase reads on, and is closed when the client
/// leaves.
#[test]
fn check_32_a_slow_scanner_is_kept_and_closed() {
    const ROWS: usize = 300;
    let Some(mut pair) = Pair::start() else { return };
    let runtime = Runtime::new().expect("a runtime");
    let operator = pair.operator();
    let schema = TableSchema::new("t")
        .expect("a name")
        .family(FamilySchema::new("f"));
    runtime.block_on(async {
        operator.create_table(schema).await.expect("a table");
        let table = operator.table("t").expect("a name");
        let puts = (0..ROWS).map(|row| basalt_client::Put::new(format!("row-{row:04}")).cell("f", "q", "v"));
        table.put_multiple(puts).await.expect("puts");
    });
    let target = pair.gateway.thrift.to_string();
    let (mut connection, id) = runtime.block_on(async {
        let options = ConnectionOptions::default();
        let mut connection = Connection::open(&target, options).await.expect("a connection");
        let open = args::OpenScanner {
            table: Bytes::from_static(b"t"),
            tscan: TScan {
                caching: Some(10),
                ..TScan::default()
            },
        };
        let id = connection.call(&open).await.expect("a scanner");
        (connection, id)
    });
    let mut fetch = |rows: i32| {
        let next = args::GetScannerRows {
            scanner_id: id,
            num_rows: rows,
        };
        runtime.block_on(connection.call(&next)).expect("rows").len()
    };
    assert_eq!(fetch(10), 10);
    until("the lease was renewed for several leases", || {
        pair.gateway.metric("basalt_cluster_lease_renewals_total") >= 8
    });
    assert_eq!(pair.hbase.scanners(), Ok(1));
    assert_eq!(fetch(20), 20);
    let failed = pair.gateway.http_get("/metrics");
    assert!(!failed.contains("UnknownScannerException"), "the lease had ended");
    drop(connection);
    pair.none_is_left();
    assert!(Path::new(pair.dir.path()).exists());
}

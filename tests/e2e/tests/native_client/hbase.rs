//! The client against a real HBase: the same tour there and against Basalt has the same outcomes.

use basalt_client::native::{Action, Cluster, ClusterOptions, Registry, Table};
use basalt_client::{
    Append, Check, Delete, Error, FamilySchema, Get, Increment, Namespace, Put, Row, RowMutations, Scan,
    TableSchema,
};
use basalt_test_support::Oracle;
use tokio::runtime::Runtime;

use super::{Rig, create, fill};

/// A line for each step.
#[derive(Default)]
struct Outcomes(Vec<String>);

impl Outcomes {
    fn note(&mut self, step: &str, outcome: impl std::fmt::Debug) {
        self.0.push(format!("{step}: {outcome:?}"));
    }

    /// An outcome that may be an error, of which only the class counts.
    fn result<T: std::fmt::Debug>(&mut self, step: &str, outcome: Result<T, Error>) {
        match outcome {
            Ok(value) => self.note(step, value),
            Err(error) => {
                let class = error
                    .remote()
                    .map_or(error.to_string(), |remote| remote.class_name().to_owned());
                self.note(step, format!("fails with {class}"));
            }
        }
    }
}

/// Keys, qualifiers and values.
fn show(rows: &[Row]) -> Vec<String> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let cell = |cell: &basalt_client::Cell| format!("{}={}", text(&cell.qualifier), text(&cell.value));
    let cells = |row: &Row| row.cells.iter().map(cell).collect::<Vec<_>>().join(" ");
    rows.iter()
        .map(|row| format!("{} {}", text(&row.key), cells(row)))
        .collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it is applied to results")]
fn shown(row: Option<Row>) -> Vec<String> {
    show(row.as_slice())
}

async fn rows(table: &Table, outcomes: &mut Outcomes) {
    let put = Put::new("r")
        .cell_at("f", "q", 1, "old")
        .cell_at("f", "q", 2, "new")
        .cell("f", "p", "x");
    outcomes.result("put", table.put(put).await);
    outcomes.result("get", table.get(Get::new("r").versions(3)).await.map(shown));
    outcomes.result("exists", table.exists(Get::new("r").column("f", "none")).await);
    outcomes.result("increment", table.increment_column("r", "f", "n", 5).await);
    let increment = Increment::new("r").column("f", "n", -7).column("f", "m", 1);
    outcomes.result(
        "increments",
        table.increment(increment).await.map(|row| show(&[row])),
    );
    outcomes.result(
        "increment of text",
        table.increment_column("r", "f", "p", 1).await,
    );
    outcomes.result(
        "append",
        table
            .append(Append::new("r").column("f", "p", "y"))
            .await
            .map(|row| show(&[row])),
    );
    let put = |value: &str| Put::new("r").cell("f", "c", value);
    outcomes.result(
        "check absent",
        table.check_and_put(Check::absent("f", "c"), put("1")).await,
    );
    outcomes.result(
        "check absent again",
        table.check_and_put(Check::absent("f", "c"), put("2")).await,
    );
    let group = RowMutations::new("r")
        .put(put("3"))
        .delete(Delete::columns("r").column("f", "m"));
    outcomes.result(
        "check group",
        table
            .check_and_mutate(Check::equal("f", "c", "1"), group.clone())
            .await,
    );
    outcomes.result(
        "check group again",
        table.check_and_mutate(Check::equal("f", "c", "1"), group).await,
    );
    let group = RowMutations::new("r")
        .put(put("4"))
        .put(Put::new("r").cell("none", "q", "v"));
    outcomes.result("group of a missing family", table.mutate_row(group).await);
    outcomes.result(
        "delete version",
        table.delete(Delete::versions("r").column_at("f", "q", 2)).await,
    );
    outcomes.result("after", table.get(Get::new("r")).await.map(shown));
    outcomes.result(
        "check delete",
        table
            .check_and_delete(Check::equal("f", "c", "3"), Delete::row("r"))
            .await,
    );
    outcomes.result("gone", table.get(Get::new("r")).await.map(shown));
    outcomes.result(
        "missing family",
        table.get(Get::new("r").family("none")).await.map(shown),
    );
}

async fn batches(table: &Table, outcomes: &mut Outcomes) {
    let actions = vec![
        Action::Put(Put::new("a").cell("f", "q", "1")),
        Action::Put(Put::new("z").cell("none", "q", "1")),
        Action::Increment(Increment::new("m").column("f", "n", 3)),
        Action::Append(Append::new("z").column("f", "t", "z")),
        Action::RowMutations(RowMutations::new("k").put(Put::new("k").cell("f", "q", "1"))),
        Action::Get(Get::new("missing")),
        Action::Exists(Get::new("missing")),
    ];
    for (place, outcome) in table
        .batch(actions)
        .await
        .expect("valid actions")
        .into_iter()
        .enumerate()
    {
        outcomes.result(&format!("action {place}"), outcome.map(shown));
    }
    let gets = ["a", "z", "m", "k"].map(Get::new);
    let read = table
        .get_multiple(gets)
        .await
        .map(|rows| rows.into_iter().map(shown).collect::<Vec<_>>());
    outcomes.result("gets", read);
    outcomes.result(
        "deletes",
        table.delete_multiple(["a", "z", "m", "k"].map(Delete::row)).await,
    );
}

async fn scans(cluster: &Cluster, table: &Table, outcomes: &mut Outcomes) {
    fill(table, (0..200).map(|number| format!("row-{number:03}"))).await;
    for (name, scan) in [
        ("all", Scan::new()),
        ("reversed", Scan::new().reversed(true).rows_per_fetch(7)),
        ("range", Scan::new().start_row("row-045").stop_row("row-103")),
        (
            "prefix down",
            Scan::new().prefix("row-10").reversed(true).limit(4),
        ),
        (
            "filter",
            Scan::new().filter("RowFilter(=, 'substring:99') OR PrefixFilter('row-00')"),
        ),
        ("limit", Scan::new().limit(120).rows_per_fetch(50)),
    ] {
        let read = table.scan(scan).expect("a scan").collect().await;
        outcomes.result(name, read.map(|rows| show(&rows)));
    }
    let wide = (0..40).fold(Put::new("wide"), |put, number| {
        put.cell("f", format!("q{number:02}"), vec![b'v'; 1_000])
    });
    table.put(wide).await.expect("written");
    let whole = table
        .scan(Scan::new().start_row("wide"))
        .expect("a scan")
        .collect()
        .await
        .expect("read");
    outcomes.note("wide row", (whole.len(), whole[0].cells.len()));
    let pieces = Scan::new().start_row("wide").cells_per_piece(7);
    let pieces = table.scan(pieces).expect("a scan").collect().await.expect("read");
    outcomes.note(
        "pieces",
        pieces.iter().map(|piece| piece.cells.len()).collect::<Vec<_>>(),
    );

    let mut scanner = table.scanner(Scan::new().rows_per_fetch(10)).expect("a scan");
    let mut read = show(&scanner.next_batch().await.expect("read").expect("rows"));
    cluster.split_region("t", "row-020").await.expect("split");
    drop(scanner.renew().await);
    while let Some(rows) = scanner.next_batch().await.expect("read") {
        read.extend(show(&rows));
    }
    outcomes.note("scan during a split", (read.len(), read.is_sorted()));
    let region = table.region_with(b"row-150").await.expect("a region");
    outcomes.result("move", cluster.move_region(&region, None).await);
    outcomes.result("after the move", table.get(Get::new("row-150")).await.map(shown));
    outcomes.result("regions", table.regions().await.map(|regions| regions.len()));
    cluster.flush_table("t").await.expect("flushed");
}

async fn tables(cluster: &Cluster, table: &Table, outcomes: &mut Outcomes) {
    let schema = TableSchema::new("t")
        .expect("a name")
        .family(FamilySchema::new("f"));
    outcomes.result("create again", cluster.create_table(schema).await);
    outcomes.result("drop enabled", cluster.drop_table("t").await);
    cluster
        .add_family("t", FamilySchema::new("g").versions(2))
        .await
        .expect("added");
    let described = cluster.describe_table("t").await.expect("a schema");
    let families = described
        .families()
        .iter()
        .map(|family| (family.name.clone(), family.max_versions));
    outcomes.note("families", families.collect::<Vec<_>>());
    outcomes.result("disable", cluster.disable_table("t").await);
    outcomes.result("disable again", cluster.disable_table("t").await);
    outcomes.result(
        "get from a disabled table",
        table.get(Get::new("row-000")).await.map(shown),
    );
    outcomes.result("enable", cluster.enable_table("t").await);
    outcomes.result("available", cluster.is_table_available("t").await);
    cluster.disable_table("t").await.expect("disabled");
    outcomes.result("truncate", cluster.truncate_table("t", true).await);
    outcomes.result(
        "empty",
        table.first_rows(Scan::new(), 5).await.map(|rows| show(&rows)),
    );
    let namespace = Namespace {
        name: "ns".to_owned(),
        configuration: [("k".to_owned(), "v".to_owned())].into(),
    };
    outcomes.result("namespace", cluster.create_namespace(namespace.clone()).await);
    outcomes.result("namespace again", cluster.create_namespace(namespace).await);
    create(cluster, "ns:u", &[]).await;
    outcomes.result(
        "tables of it",
        cluster
            .list_tables_of_namespace("ns")
            .await
            .map(|names| format!("{names:?}")),
    );
    outcomes.result("drop it", cluster.drop_namespace("ns").await);
    cluster.disable_table("ns:u").await.expect("disabled");
    cluster.drop_table("ns:u").await.expect("dropped");
    outcomes.result("drop it empty", cluster.drop_namespace("ns").await);
    outcomes.result("missing table", cluster.describe_table("missing").await.map(drop));
    let missing = cluster.table("missing").expect("a name");
    outcomes.result("row of it", missing.get(Get::new("r")).await.map(shown));
}

async fn tour(cluster: &Cluster) -> Vec<String> {
    let mut outcomes = Outcomes::default();
    create(cluster, "t", &["row-050", "row-100"]).await;
    let table = cluster.table("t").expect("a name");
    rows(&table, &mut outcomes).await;
    batches(&table, &mut outcomes).await;
    scans(cluster, &table, &mut outcomes).await;
    tables(cluster, &table, &mut outcomes).await;
    let server = table.region_with(b"").await.expect("a region").server.address();
    let registry = Registry::bootstrap(&server).expect("an address");
    let again = Cluster::connect(ClusterOptions::new(registry))
        .await
        .expect("through a region server");
    outcomes.result("through the RPC registry", again.table_exists("t").await);
    cluster.disable_table("t").await.expect("disabled");
    cluster.drop_table("t").await.expect("dropped");
    outcomes.0
}

#[test]
fn a_real_hbase_has_the_same_outcomes() {
    let Some(mut oracle) = Oracle::start() else {
        return;
    };
    let port = oracle.zookeeper_port().expect("a port");
    let registry = Registry::zookeeper("127.0.0.1", port, "/hbase").expect("an address");
    let runtime = Runtime::new().expect("a runtime");
    let of_hbase = runtime.block_on(async {
        let cluster = Cluster::connect(ClusterOptions::new(registry))
            .await
            .expect("a cluster");
        tour(&cluster).await
    });
    drop(oracle);
    let rig = Rig::start();
    let of_basalt = rig.runtime.block_on(tour(&rig.cluster));
    for (hbase, basalt) in of_hbase.iter().zip(&of_basalt) {
        assert_eq!(basalt, hbase);
    }
    assert_eq!(of_basalt.len(), of_hbase.len());
    rig.server.stop();
}

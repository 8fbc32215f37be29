//! HBase's native protocol, as its Java client uses it: the same program works with Basalt and with a cluster
//! of HBase.
//!
//! A registry names the servers, and there are two: ZooKeeper, and the RPC registry of HBase 2.5 and later.
//! Basalt answers both, and everything else, on its one port.
//!
//! `cargo run -p basalt-client --example native [HOST:PORT]`; without an address, 127.0.0.1:9090.

use basalt_client::native::{Action, BASE_ZNODE, Cluster, ClusterOptions, Registry, ZOOKEEPER_PORT};
use basalt_client::{FamilySchema, Get, Increment, Put, Result, TableSchema};

const TABLE: &str = "example_native";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let target = std::env::args().nth(1);
    let target = target.as_deref().unwrap_or("127.0.0.1:9090");
    // `hbase.zookeeper.quorum` and `zookeeper.znode.parent` of a cluster; its port of ZooKeeper is 2181.
    let by_zookeeper = Registry::zookeeper(target, ZOOKEEPER_PORT, BASE_ZNODE)?;
    // `hbase.client.bootstrap.servers`: no ZooKeeper is needed.
    let by_rpc = Registry::bootstrap(target)?;

    let writer = Cluster::connect(ClusterOptions::new(by_zookeeper)).await?;
    let schema = TableSchema::new(TABLE)?.family(FamilySchema::new("f"));
    writer.create_table(schema).await?;
    writer
        .table(TABLE)?
        .put(Put::new("ada").cell("f", "born", "1815"))
        .await?;

    let reader = Cluster::connect(ClusterOptions::new(by_rpc)).await?;
    let people = reader.table(TABLE)?;
    // Actions of all kinds in one batch, each with an outcome of its own.
    let actions = vec![
        Action::Get(Get::new("ada").column("f", "born")),
        Action::Increment(Increment::new("ada").column("f", "visits", 1)),
        Action::Put(Put::new("grace").cell("no_such_family", "born", "1906")),
        Action::Get(Get::new("nobody")),
    ];
    for outcome in people.batch(actions).await? {
        match outcome {
            Ok(Some(row)) => println!("{} has {} cells", row.key.escape_ascii(), row.cells.len()),
            Ok(None) => println!("nothing"),
            Err(error) => println!("refused: {:?}", error.kind()),
        }
    }
    for region in people.regions().await? {
        println!("a region is served on port {}", region.port);
    }

    writer.disable_table(TABLE).await?;
    writer.drop_table(TABLE).await
}

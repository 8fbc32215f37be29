//! Puts, gets and versions: a column keeps its last values, each under the time at which it was written.
//!
//! `cargo run -p basalt-client --example versions [HOST:PORT]`; without an address, 127.0.0.1:9090.

use basalt_client::{Client, Delete, FamilySchema, Get, Put, Result, TableSchema};

const TABLE: &str = "example_versions";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let target = std::env::args().nth(1);
    let client = Client::connect(target.as_deref().unwrap_or("127.0.0.1:9090")).await?;
    // The family decides how many versions stay.
    let family = FamilySchema::new("f").versions(3);
    client
        .create_table(TableSchema::new(TABLE)?.family(family))
        .await?;
    let prices = client.table(TABLE)?;

    // Times are the server's clock unless the writer chooses them.
    for (time, price) in [(1_000, "10"), (2_000, "12"), (3_000, "11"), (4_000, "15")] {
        prices
            .put(Put::new("apple").timestamp(time).cell("f", "price", price))
            .await?;
    }

    if let Some(row) = prices.get(Get::new("apple")).await? {
        println!("now: {}", text(row.value("f", "price")));
    }
    // Three of four values are left: the oldest is over the limit of versions.
    if let Some(row) = prices.get(Get::new("apple").versions(10)).await? {
        for cell in row.versions("f", "price") {
            println!("at {}: {}", cell.timestamp, text(Some(&cell.value)));
        }
    }
    // A range of times ends before its second bound: this is the state at 3,000.
    if let Some(row) = prices.get(Get::new("apple").time_range(0..3_001)).await? {
        println!("then: {}", text(row.value("f", "price")));
    }
    // Deleting the newest version brings the one before it back.
    prices
        .delete(Delete::versions("apple").column_at("f", "price", 4_000))
        .await?;
    if let Some(row) = prices.get(Get::new("apple")).await? {
        println!("after the delete: {}", text(row.value("f", "price")));
    }

    client.disable_table(TABLE).await?;
    client.drop_table(TABLE).await
}

fn text(value: Option<&bytes::Bytes>) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |value| String::from_utf8_lossy(value).into_owned(),
    )
}

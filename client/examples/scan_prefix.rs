//! A scan by prefix: rows are sorted by key, so a well-chosen key prefix makes a query one short
//! scan.
//!
//! The key is `user/9999 - month`: a user's rows lie together, and counting the time down puts the newest
//! first.
//!
//! `cargo run -p basalt-client --example scan_prefix [HOST:PORT]`; without an address, 127.0.0.1:9090.

use basalt_client::{Client, FamilySchema, Put, Result, Scan, TableSchema};

const TABLE: &str = "example_scan_prefix";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let target = std::env::args().nth(1);
    let client = Client::connect(target.as_deref().unwrap_or("127.0.0.1:9090")).await?;
    client
        .create_table(TableSchema::new(TABLE)?.family(FamilySchema::new("f")))
        .await?;
    let orders = client.table(TABLE)?;

    let mut puts = Vec::new();
    for user in ["ada", "adam", "grace"] {
        for month in 1..=12_u16 {
            let put = Put::new(key(user, month)).cell("f", "month", month.to_string());
            puts.push(put.cell("f", "paid", if month % 2 == 0 { "yes" } else { "no" }));
        }
    }
    orders.put_multiple(puts).await?;

    // The separator belongs to the prefix: without it the rows of "adam" would come, too.
    let newest = orders.scan(Scan::new().prefix("ada/").limit(3))?;
    for row in newest.collect().await? {
        println!("{}", row.key.escape_ascii());
    }

    // A filter runs in the server, which sends matching rows only. One column of each is enough here.
    let unpaid = Scan::new()
        .prefix("grace/")
        .filter("SingleColumnValueFilter('f', 'paid', =, 'binary:no')");
    let mut rows = orders.scan(unpaid)?;
    let mut count = 0;
    // Rows arrive in batches while these are handled; a stream that is dropped closes its scanner.
    while rows.next().await?.is_some() {
        count += 1;
    }
    println!("grace has {count} unpaid orders");

    client.disable_table(TABLE).await?;
    client.drop_table(TABLE).await
}

fn key(user: &str, month: u16) -> String {
    format!("{user}/{:04}", 9_999 - month)
}

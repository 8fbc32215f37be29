//! Counters: an increment is one atomic step in the server, so concurrent writers need no lock and
//! lose nothing.
//!
//! `cargo run -p basalt-client --example counters [HOST:PORT]`; without an address, 127.0.0.1:9090.

use basalt_client::{Client, FamilySchema, Get, Increment, Result, Table, TableSchema, counter_from_value};

const TABLE: &str = "example_counters";

#[tokio::main]
async fn main() -> Result<()> {
    let target = std::env::args().nth(1);
    let client = Client::connect(target.as_deref().unwrap_or("127.0.0.1:9090")).await?;
    client
        .create_table(TableSchema::new(TABLE)?.family(FamilySchema::new("f")))
        .await?;
    let visits = client.table(TABLE)?;

    // Clones of a table share its client's connections.
    let visitors: Vec<_> = (0..8).map(|_| tokio::spawn(visit(visits.clone()))).collect();
    for visitor in visitors {
        visitor.await.expect("a visitor does not panic")?;
    }

    // A counter is a cell of eight bytes, so a get reads it, too.
    if let Some(row) = visits.get(Get::new("/index")).await? {
        for cell in &row.cells {
            println!(
                "{} = {}",
                cell.qualifier.escape_ascii(),
                counter_from_value(&cell.value)?
            );
        }
    }
    let left = visits.increment_column("/index", "f", "total", -200).await?;
    println!("reset: {left}");

    client.disable_table(TABLE).await?;
    client.drop_table(TABLE).await
}

async fn visit(visits: Table) -> Result<()> {
    for _ in 0..25 {
        // Both counters of the row change together or not at all.
        let visit = Increment::new("/index")
            .column("f", "total", 1)
            .column("f", "bytes", 512);
        visits.increment(visit).await?;
    }
    Ok(())
}

//! Salted keys: keys that grow with time would send every write to the last region. A bucket byte in front
//! spreads them, and a range is read from all buckets at once, merged into the order of the keys.
//!
//! `cargo run -p basalt-client --example salted_keys [HOST:PORT]`; without an address, 127.0.0.1:9090.

use basalt_client::keys::{KeyDesign, Salt, merge::scan_keys};
use basalt_client::{Client, FamilySchema, Put, Result, Scan, TableSchema};

const TABLE: &str = "example_salted_keys";
/// Part of the data: rows that were written with another number are not found.
const BUCKETS: u16 = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let target = std::env::args().nth(1);
    let client = Client::connect(target.as_deref().unwrap_or("127.0.0.1:9090")).await?;
    let design = Salt::new(BUCKETS)?;
    // A region for each bucket from the start.
    let splits = design.split_points(usize::from(BUCKETS))?;
    let schema = TableSchema::new(TABLE)?.family(FamilySchema::new("f"));
    client.create_table_split(schema, splits).await?;
    let events = client.table(TABLE)?;

    let times = 1_000..1_100_u32;
    let puts = times.map(|time| {
        let key = design.encode(&key(time))?;
        Ok(Put::new(key).cell("f", "time", time.to_string()))
    });
    events.put_multiple(puts.collect::<Result<Vec<_>>>()?).await?;

    for region in events.regions().await? {
        let rows = Scan::new().start_row(region.start_key).stop_row(region.end_key);
        let rows = events.scan(rows)?.collect().await?;
        println!("a region has {} rows", rows.len());
    }

    // One scan for each bucket; the rows come in the order of time.
    let mut rows = scan_keys(&events, design, key(1_010)..key(1_015), &Scan::new())?;
    while let Some((key, _row)) = rows.next().await? {
        println!("{}", String::from_utf8_lossy(&key));
    }

    client.disable_table(TABLE).await?;
    client.drop_table(TABLE).await
}

fn key(time: u32) -> Vec<u8> {
    format!("event-{time:08}").into_bytes()
}

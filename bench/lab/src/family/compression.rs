//! Compression against space and reads.

use std::time::Instant;

use basalt_client::{Compression, FamilySchema};
use basalt_load::error::Result;
use basalt_load::load::choose::fnv_hash;
use basalt_load::session::{Column, RowCells};
use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::reads::{Ask, key};
use super::{FAMILY, QUALIFIER, Run};
use crate::claims::{PartReport, Rule, Way};
use crate::compare;

/// Bytes of a row of flights: about as many as an order has.
const FLIGHTS_BYTES: usize = 150;

const ALGORITHMS: [(Compression, &str); 5] = [
    (Compression::NONE, "NONE"),
    (Compression::SNAPPY, "SNAPPY"),
    (Compression::LZ4, "LZ4"),
    (Compression::ZSTD, "ZSTD"),
    (Compression::GZ, "GZ"),
];

impl Run {
    pub(super) async fn compression(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "compression",
            "Which compression?",
            format!(
                "{} rows, each {}, in one table for each COMPRESSION, compacted into one file. Rows are read one by one and \
                 {} at a time.",
                arguments.rows,
                if lab.data.is_flights() {
                    format!("{FLIGHTS_BYTES} bytes of flights as text")
                } else {
                    "an order as JSON of about 150 bytes".to_owned()
                },
                arguments.scan_rows
            ),
        );
        let mut before = None;
        for (algorithm, name) in ALGORITHMS {
            let family = FamilySchema::new(FAMILY).compression(algorithm);
            let table = format!("compression_{}", name.to_lowercase());
            let tables = [lab.create(&table, vec![family], false).await?];
            lab.fill(&tables[0], arguments.rows, false, self.text_row())
                .await?;
            lab.flush(&tables[0]).await?;
            let started = Instant::now();
            lab.compact(&tables[0]).await?;
            let seconds = started.elapsed().as_secs_f64();
            let get = self.reads(Ask::Row, arguments.rows);
            let gets = lab.ask(name, &tables, arguments.reads, get).await?;
            let range = self.reads(Ask::Range(arguments.scan_rows), arguments.rows);
            let scans = lab.ask(name, &tables, arguments.scans, range).await?;
            let sizes = lab.sizes(&tables).await?;
            let mut way = Way::new(name);
            let each = sizes.map(|sizes| sizes.file_bytes / arguments.rows as f64);
            way.figure("file_bytes_per_row", each);
            way.figure("compaction_seconds", sizes.map(|_| seconds));
            way.latency("get_p50_ms", "get", &gets.measured);
            way.latency("scan_p50_ms", "scan", &scans.measured);
            part.add(way);
            if let Some((other, other_scans)) = &before {
                compare(&mut part, "scan", (*other, other_scans), (name, &scans));
            }
            before = Some((name, scans));
            lab.drop_tables(&tables).await?;
        }
        let cases = [
            (
                "ZSTD halves the space of text.",
                "file_bytes_per_row",
                ["ZSTD", "NONE"],
                Rule::AtMost(0.5),
            ),
            (
                "ZSTD takes less space than LZ4.",
                "file_bytes_per_row",
                ["ZSTD", "LZ4"],
                Rule::AtMost(0.9),
            ),
            (
                "Range reads of cached blocks cost the same: they are in the cache as they were before.",
                "scan_p50_ms",
                ["ZSTD", "NONE"],
                Rule::AtMost(1.2),
            ),
            (
                "GZ takes longer to write than LZ4.",
                "compaction_seconds",
                ["GZ", "LZ4"],
                Rule::AtLeast(1.2),
            ),
        ];
        for (claim, figure, ways, rule) in cases {
            part.judge(claim, figure, ways, rule);
        }
        Ok(part)
    }

    /// A row of text, by its number: flights, or an order.
    fn text_row(&self) -> impl Fn(u64) -> RowCells + Send + Sync + 'static {
        let seed = self.arguments.lab.load.seed;
        let data = &self.lab.data;
        let flights = data.is_flights().then(|| data.values(seed, FLIGHTS_BYTES));
        move |number| {
            let value = match &flights {
                Some(flights) => flights.next(&mut SmallRng::seed_from_u64(seed ^ number), FLIGHTS_BYTES),
                None => Bytes::from(order(number)),
            };
            RowCells {
                key: key(number),
                cells: vec![(
                    Column::new(FAMILY, Bytes::from_static(QUALIFIER.as_bytes())),
                    value,
                )],
            }
        }
    }
}

/// An order as a program would store it: text in which much repeats.
fn order(number: u64) -> String {
    const CITIES: [&str; 8] = [
        "Amsterdam",
        "Berlin",
        "Copenhagen",
        "Dublin",
        "Edinburgh",
        "Florence",
        "Geneva",
        "Helsinki",
    ];
    const STATES: [&str; 3] = ["received", "packed", "shipped"];
    let hash = fnv_hash(number);
    let city = CITIES[(hash % 8) as usize];
    let state = STATES[(hash / 8 % 3) as usize];
    format!(
        "{{\"order\": {number}, \"customer\": {}, \"city\": \"{city}\", \"state\": \"{state}\", \"currency\": \"EUR\", \
         \"total\": {}.{:02}, \"items\": {}, \"newsletter\": {}}}",
        hash % 100_000,
        hash % 1_000,
        hash / 1_000 % 100,
        hash % 9 + 1,
        hash.is_multiple_of(2),
    )
}

//! Bloom filters against reads that find nothing.

use basalt_client::{BloomType, FamilySchema};
use basalt_load::error::Result;
use basalt_load::session::{Column, RowCells};
use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::reads::{Ask, key};
use super::{FAMILY, Run};
use crate::claims::{PartReport, Rule, Way};
use crate::compare;

/// Files of each table. Each spans all keys, so without a filter a get looks into all of them.
const FILES: u64 = 4;
/// Columns of a row.
const COLUMNS: [&str; 3] = ["a", "b", "c"];
/// A column that no row has, between those that they have.
const ABSENT: &str = "bb";

const KINDS: [(BloomType, &str); 3] = [
    (BloomType::NONE, "NONE"),
    (BloomType::ROW, "ROW"),
    (BloomType::ROWCOL, "ROWCOL"),
];

impl Run {
    pub(super) async fn bloom(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "bloom",
            "Which bloom filter?",
            format!(
                "{} rows of three columns in one table for each BLOOMFILTER, in {FILES} files that each span all keys. Rows \
                 are read that are there, rows that are not, and a column that no row has.",
                arguments.rows
            ),
        );
        let absent = || vec![Column::new(FAMILY, ABSENT)];
        let mut before = None;
        for (kind, name) in KINDS {
            let family = FamilySchema::new(FAMILY).bloom_filter(kind);
            let table = format!("bloom_{}", name.to_lowercase());
            let tables = [lab.create(&table, vec![family], false).await?];
            for file in 0..FILES {
                let row = self.three_columns();
                let rows = arguments.rows / FILES;
                let filled = lab.fill(&tables[0], rows, false, move |number| row(number * FILES + file));
                filled.await?;
                lab.flush(&tables[0]).await?;
            }
            let rows = arguments.rows / FILES * FILES;
            let label = |what: &str| format!("{name}, {what}");
            let one = self.reads(Ask::Row, rows);
            let gets = lab
                .ask(&label("gets"), &tables, arguments.reads, one.clone())
                .await?;
            let missing = self.reads(Ask::MissingRow, rows);
            let misses = lab
                .ask(&label("misses"), &tables, arguments.reads, missing)
                .await?;
            let columns = lab
                .ask(
                    &label("absent column"),
                    &tables,
                    arguments.reads,
                    one.columns(absent()),
                )
                .await?;
            let mut way = Way::new(name);
            way.latency("get_p50_ms", "row", &gets.measured);
            way.figure("blocks_per_get", gets.blocks_each());
            way.latency("missing_row_p50_ms", "missing row", &misses.measured);
            way.figure("blocks_per_missing_row", misses.blocks_each());
            way.latency("absent_column_p50_ms", "absent column", &columns.measured);
            way.figure("blocks_per_absent_column", columns.blocks_each());
            let sizes = lab.sizes(&tables).await?;
            way.figure("files", sizes.map(|sizes| sizes.files));
            way.figure("file_bytes", sizes.map(|sizes| sizes.file_bytes));
            part.add(way);
            if let Some((other, other_gets, other_columns)) = &before {
                compare(&mut part, "row", (*other, other_gets), (name, &gets));
                compare(
                    &mut part,
                    "absent column",
                    (*other, other_columns),
                    (name, &columns),
                );
            }
            before = Some((name, gets, columns));
            lab.drop_tables(&tables).await?;
        }
        part.judge(
            "A filter of rows keeps reads of rows that are not there away from the files.",
            "blocks_per_missing_row",
            ["NONE", "ROW"],
            Rule::AtLeast(2.0),
        );
        part.judge(
            "Rows that are not there are answered faster with a filter of rows.",
            "missing_row_p50_ms",
            ["NONE", "ROW"],
            Rule::AtLeast(1.1),
        );
        part.judge(
            "A filter of rows also keeps reads of rows that are there away from the other files.",
            "blocks_per_get",
            ["NONE", "ROW"],
            Rule::AtLeast(2.0),
        );
        part.judge(
            "Only a filter of columns knows that a row does not have a column.",
            "blocks_per_absent_column",
            ["ROW", "ROWCOL"],
            Rule::AtLeast(2.0),
        );
        part.judge(
            "A filter of columns does not help a get that names none.",
            "blocks_per_missing_row",
            ["ROWCOL", "NONE"],
            Rule::AtLeast(0.9),
        );
        part.judge(
            "A filter of columns is larger than one of rows.",
            "file_bytes",
            ["ROWCOL", "ROW"],
            Rule::AtLeast(1.002),
        );
        Ok(part)
    }

    fn three_columns(&self) -> impl Fn(u64) -> RowCells + Send + Sync + 'static {
        let bytes = self.arguments.value_bytes as usize;
        let seed = self.arguments.lab.load.seed;
        let values = self.lab.data.values(seed, bytes);
        move |number| {
            let mut random = SmallRng::seed_from_u64(seed ^ number);
            let cell = |name: &'static str| {
                let column = Column::new(FAMILY, Bytes::from_static(name.as_bytes()));
                (column, values.next(&mut random, bytes))
            };
            RowCells {
                key: key(number),
                cells: COLUMNS.map(cell).to_vec(),
            }
        }
    }
}

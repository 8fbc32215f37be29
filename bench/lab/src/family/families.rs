//! One family against three with uneven load: a region flushes all of its families at once.

use basalt_client::FamilySchema;
use basalt_load::data::Data;
use basalt_load::error::Result;
use basalt_load::session::{Column, RowCells};
use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::Run;
use super::reads::{Ask, key};
use crate::claims::{PartReport, Rule, Way};
use crate::{Asked, compare};

/// Flushes, each with its share of the rows.
const FLUSHES: u64 = 4;
/// Bytes of the value that every row has.
const LARGE_BYTES: usize = 1_000;
/// Bytes of the values that every tenth row has.
const SMALL_BYTES: usize = 10;
/// One row in this many has the small columns.
const ROWS_PER_SMALL: u64 = 10;
/// Range reads for each whole-table read of one small column.
const SCANS_PER_READ: u64 = 10;

/// The families of the large column and of the two small ones.
type Families = [&'static str; 3];

impl Run {
    pub(super) async fn families(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let each = self.few_rows() / FLUSHES;
        let rows = each * FLUSHES;
        let mut part = PartReport::new(
            "families",
            "One family or three?",
            format!(
                "{rows} rows with a column of {LARGE_BYTES} bytes; every tenth has two columns of {SMALL_BYTES} bytes besides. \
                 All in one family, and each in its own. They were written with {FLUSHES} flushes and not compacted.",
            ),
        );
        let (one, three) = ("one family", "three families");
        let mut first: Option<(Asked, Asked)> = None;
        for (name, table, families) in [
            (one, "families_1", ["f", "f", "f"]),
            (three, "families_3", ["f", "g", "h"]),
        ] {
            let mut schemas: Vec<&str> = families.to_vec();
            schemas.dedup();
            let schemas = schemas.into_iter().map(FamilySchema::new).collect();
            let tables = [lab.create(table, schemas, false).await?];
            for flush in 0..FLUSHES {
                let row = uneven_row(families, arguments.lab.load.seed, &lab.data);
                let filled = lab.fill(&tables[0], each, false, move |number| {
                    row(number * FLUSHES + flush)
                });
                filled.await?;
                lab.flush(&tables[0]).await?;
            }
            let sizes = lab.sizes(&tables).await?;
            let get = self.reads(Ask::Row, rows);
            let gets = lab.ask(name, &tables, arguments.reads, get).await?;
            let small = vec![Column::new(families[1], Bytes::from_static(b"s"))];
            let small = self.reads(Ask::All, rows).columns(small);
            let times = arguments.scans.div_ceil(SCANS_PER_READ);
            let scans = lab.ask(name, &tables, times, small).await?;
            let mut way = Way::new(name);
            way.figure("files", sizes.map(|sizes| sizes.files));
            way.figure(
                "bytes_per_file",
                sizes.map(|sizes| sizes.file_bytes / sizes.files.max(1.0)),
            );
            way.latency("get_p50_ms", "get of a whole row", &gets.measured);
            way.figure("blocks_per_get", gets.blocks_each());
            way.latency("small_column_p50_ms", "scan of one small column", &scans.measured);
            way.figure("blocks_per_small_column", scans.blocks_each());
            part.add(way);
            if let Some((other_gets, other_scans)) = &first {
                compare(&mut part, "get", (one, other_gets), (three, &gets));
                compare(&mut part, "small column", (one, other_scans), (three, &scans));
            }
            first = Some((gets, scans));
            lab.drop_tables(&tables).await?;
        }
        let cases = [
            (
                "Every flush writes a file for each family, however little is in it.",
                "files",
                [three, one],
                Rule::AtLeast(2.0),
            ),
            (
                "With three families, files become small.",
                "bytes_per_file",
                [one, three],
                Rule::AtLeast(2.0),
            ),
            (
                "A whole row takes more blocks from three families.",
                "blocks_per_get",
                [three, one],
                Rule::AtLeast(1.1),
            ),
            (
                "A query for the small column alone reads fewer blocks if it has a family of its own.",
                "blocks_per_small_column",
                [one, three],
                Rule::AtLeast(2.0),
            ),
            (
                "A query for the small column alone takes less time if it has a family of its own.",
                "small_column_p50_ms",
                [one, three],
                Rule::AtLeast(1.5),
            ),
        ];
        for (claim, figure, ways, rule) in cases {
            part.judge(claim, figure, ways, rule);
        }
        Ok(part)
    }
}

/// Columns `l`, `s` and `t`, which sort alike in one family and in three.
fn uneven_row(
    families: Families,
    seed: u64,
    data: &Data,
) -> impl Fn(u64) -> RowCells + Send + Sync + 'static {
    let values = data.values(seed, LARGE_BYTES);
    move |number| {
        let mut random = SmallRng::seed_from_u64(seed ^ number);
        let [large, small, other] = families;
        let mut cells = vec![(
            Column::new(large, Bytes::from_static(b"l")),
            values.next(&mut random, LARGE_BYTES),
        )];
        // By the row's place within its flush, so that every flush has some.
        if (number / FLUSHES).is_multiple_of(ROWS_PER_SMALL) {
            for (family, qualifier) in [(small, &b"s"[..]), (other, b"t")] {
                let column = Column::new(family, Bytes::from_static(qualifier));
                cells.push((column, values.next(&mut random, SMALL_BYTES)));
            }
        }
        RowCells {
            key: key(number),
            cells,
        }
    }
}

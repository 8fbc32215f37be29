//! Long names of families and qualifiers against short ones: both stand in every cell.

use basalt_client::{Compression, DataBlockEncoding, FamilySchema};
use basalt_load::error::Result;
use basalt_load::load::choose::fnv_hash;
use basalt_load::session::{Column, RowCells};
use bytes::Bytes;

use super::Run;
use super::reads::{Ask, key};
use crate::claims::{PartReport, Rule, Way};
use crate::{Asked, compare};

/// A family and its qualifiers.
struct Names {
    family: &'static str,
    qualifiers: [&'static str; 4],
}

const LONG: Names = Names {
    family: "customer_information",
    qualifiers: [
        "date_of_last_order",
        "delivery_address_number",
        "loyalty_program_points",
        "number_of_orders",
    ],
};
const SHORT: Names = Names {
    family: "c",
    qualifiers: ["d", "n", "p", "q"],
};

impl Run {
    pub(super) async fn names(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "names",
            "What do long names cost?",
            format!(
                "{} rows of four numbers, with names such as {}:{} and with names such as {}:{}, as they are, with block \
                 encoding FAST_DIFF and with compression ZSTD, compacted into one file.",
                arguments.rows, LONG.family, LONG.qualifiers[0], SHORT.family, SHORT.qualifiers[0]
            ),
        );
        let (none, diff) = (DataBlockEncoding::NONE, DataBlockEncoding::FAST_DIFF);
        let mut first: Option<Asked> = None;
        let (plain, zstd) = (Compression::NONE, Compression::ZSTD);
        for (name, table, names, encoding, compression) in [
            ("long", "names_long", &LONG, none, plain),
            ("short", "names_short", &SHORT, none, plain),
            ("long, FAST_DIFF", "names_long_diff", &LONG, diff, plain),
            ("short, FAST_DIFF", "names_short_diff", &SHORT, diff, plain),
            ("long, ZSTD", "names_long_zstd", &LONG, none, zstd),
            ("short, ZSTD", "names_short_zstd", &SHORT, none, zstd),
        ] {
            let family = FamilySchema::new(names.family)
                .data_block_encoding(encoding)
                .compression(compression);
            let tables = [lab.create(table, vec![family], true).await?];
            let filled = lab
                .fill(&tables[0], arguments.rows, false, |number| row(names, number))
                .await?;
            lab.settle(&tables[0]).await?;
            let get = self.reads(Ask::Row, arguments.rows);
            let gets = lab.ask(name, &tables, arguments.reads, get).await?;
            let range = self.reads(Ask::Range(arguments.scan_rows), arguments.rows);
            let scans = lab.ask(name, &tables, arguments.scans, range).await?;
            let rows = arguments.rows as f64;
            let mut way = Way::new(name);
            way.figure("written_bytes_per_row", filled.bytes / rows);
            let sizes = lab.sizes(&tables).await?;
            way.figure("file_bytes_per_row", sizes.map(|sizes| sizes.file_bytes / rows));
            way.latency("get_p50_ms", "get", &gets.measured);
            way.figure("bytes_per_get", gets.bytes_each());
            way.latency("scan_p50_ms", "scan", &scans.measured);
            part.add(way);
            if let Some(first) = &first {
                compare(&mut part, "get", ("long", first), (name, &gets));
            } else {
                first = Some(gets);
            }
            lab.drop_tables(&tables).await?;
        }
        let cases = [
            (
                "Names are paid for in every cell on disk.",
                "file_bytes_per_row",
                ["long", "short"],
                Rule::AtLeast(1.5),
            ),
            (
                "Block encoding makes long names cheap on disk.",
                "file_bytes_per_row",
                ["long, FAST_DIFF", "short, FAST_DIFF"],
                Rule::AtMost(1.2),
            ),
            (
                "Compression makes long names cheap on disk.",
                "file_bytes_per_row",
                ["long, ZSTD", "short, ZSTD"],
                Rule::AtMost(1.2),
            ),
            (
                "On the wire, names are paid for whatever the encoding.",
                "bytes_per_get",
                ["long, FAST_DIFF", "short, FAST_DIFF"],
                Rule::AtLeast(1.5),
            ),
            (
                "Range reads with long names take longer.",
                "scan_p50_ms",
                ["long", "short"],
                Rule::AtLeast(1.1),
            ),
        ];
        for (claim, figure, ways, rule) in cases {
            part.judge(claim, figure, ways, rule);
        }
        Ok(part)
    }
}

/// A row of four numbers of eight bytes. Qualifiers of both kinds sort alike, so both kinds give the same
/// values.
fn row(names: &'static Names, number: u64) -> RowCells {
    let cell = |(place, qualifier): (usize, &'static str)| {
        let value = fnv_hash(number * 4 + place as u64).to_be_bytes();
        let column = Column::new(names.family, Bytes::from_static(qualifier.as_bytes()));
        (column, Bytes::copy_from_slice(&value))
    };
    RowCells {
        key: key(number),
        cells: names.qualifiers.into_iter().enumerate().map(cell).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads return columns in their order, so answers are equal only if both kinds of names sort alike.
    #[test]
    fn both_kinds_of_names_sort_alike() {
        assert!(LONG.qualifiers.is_sorted() && SHORT.qualifiers.is_sorted());
        let values = |names| row(names, 7).cells.into_iter().map(|(_, value)| value);
        assert!(values(&LONG).eq(values(&SHORT)));
    }
}

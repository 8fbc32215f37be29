//! Block size against point and range reads.

use basalt_client::FamilySchema;
use basalt_load::error::Result;

use super::reads::Ask;
use super::{FAMILY, Run};
use crate::claims::{PartReport, Rule, Way};
use crate::compare;

/// Bytes of a block, and its name.
const SIZES: [(i32, &str); 3] = [(4 << 10, "4 KiB"), (64 << 10, "64 KiB"), (256 << 10, "256 KiB")];
/// Warm reads for each cold one, so that cold reads seldom meet in a block.
const WARM_PER_COLD: u64 = 20;

impl Run {
    pub(super) async fn block_size(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "block-size",
            "Which block size?",
            format!(
                "{} rows of {} bytes in one table for each BLOCKSIZE, compacted into one file. Rows are read one by one, \
                 first from the disk and then from the cache, and {} at a time in the order of keys.",
                arguments.rows, arguments.value_bytes, arguments.scan_rows
            ),
        );
        let mut before = None;
        for (bytes, name) in SIZES {
            let family = FamilySchema::new(FAMILY).block_bytes(bytes);
            let table = format!("block_{}k", bytes >> 10);
            let tables = [lab.create(&table, vec![family], true).await?];
            lab.fill(&tables[0], arguments.rows, false, self.plain_row())
                .await?;
            lab.settle(&tables[0]).await?;
            let get = self.reads(Ask::Row, arguments.rows);
            let label = |what: &str| format!("{name}, {what}");
            let cold = lab
                .ask(
                    &label("cold"),
                    &tables,
                    arguments.reads.div_ceil(WARM_PER_COLD),
                    get.clone(),
                )
                .await?;
            let gets = lab.ask(&label("gets"), &tables, arguments.reads, get).await?;
            let range = self.reads(Ask::Range(arguments.scan_rows), arguments.rows);
            let scans = lab.ask(&label("scans"), &tables, arguments.scans, range).await?;
            let mut way = Way::new(name);
            let read = cold
                .server
                .map(|server| cold.each(server.misses) * f64::from(bytes));
            way.figure("read_bytes_per_cold_get", read);
            way.latency("get_p50_ms", "get", &gets.measured);
            way.figure("blocks_per_get", gets.blocks_each());
            way.latency("scan_p50_ms", "scan", &scans.measured);
            way.figure("blocks_per_scan", scans.blocks_each());
            way.figure(
                "file_bytes",
                lab.sizes(&tables).await?.map(|sizes| sizes.file_bytes),
            );
            part.add(way);
            if let Some((other, other_gets, other_scans)) = &before {
                compare(&mut part, "get", (*other, other_gets), (name, &gets));
                compare(&mut part, "scan", (*other, other_scans), (name, &scans));
            }
            before = Some((name, gets, scans));
            lab.drop_tables(&tables).await?;
        }
        part.judge(
            "Of a row that is not in the cache, small blocks read fewer bytes.",
            "read_bytes_per_cold_get",
            ["64 KiB", "4 KiB"],
            Rule::AtLeast(2.0),
        );
        part.judge(
            "A row that is in the cache is found faster in a small block.",
            "get_p50_ms",
            ["256 KiB", "4 KiB"],
            Rule::AtLeast(1.1),
        );
        part.judge(
            "A range read looks up fewer blocks if they are large.",
            "blocks_per_scan",
            ["4 KiB", "64 KiB"],
            Rule::AtLeast(2.0),
        );
        part.judge(
            "A range read takes less time with large blocks.",
            "scan_p50_ms",
            ["4 KiB", "64 KiB"],
            Rule::AtLeast(1.1),
        );
        part.judge(
            "Small blocks make files larger, because each has an entry in the index.",
            "file_bytes",
            ["4 KiB", "64 KiB"],
            Rule::AtLeast(1.01),
        );
        part.notes.push(
            "Bytes read for a cold get are blocks that were not in the cache, times BLOCKSIZE.".to_owned(),
        );
        Ok(part)
    }
}

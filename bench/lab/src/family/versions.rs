//! VERSIONS against space, reads and compaction.

use std::time::Instant;

use basalt_client::FamilySchema;
use basalt_load::error::Result;

use super::reads::Ask;
use super::{FAMILY, Run};
use crate::claims::{PartReport, Rule, Way};
use crate::compare;

/// How often each row is written, each time into a file of its own.
const WRITES: u64 = 5;

impl Run {
    pub(super) async fn versions(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let rows = self.few_rows();
        let mut part = PartReport::new(
            "versions",
            "What do old versions cost?",
            format!(
                "{rows} rows, each written {WRITES} times with a flush in between, with VERSIONS => 1 and with VERSIONS => \
                 {WRITES}. Ranges of {} rows are read before and after a major compaction.",
                arguments.scan_rows
            ),
        );
        let (one, five) = ("1 version", "5 versions");
        let mut other = None;
        for (name, versions) in [(one, 1), (five, 5)] {
            let family = FamilySchema::new(FAMILY).versions(versions);
            let table = format!("versions_{versions}");
            let tables = [lab.create(&table, vec![family], false).await?];
            for _ in 0..WRITES {
                lab.fill(&tables[0], rows, false, self.plain_row()).await?;
                lab.flush(&tables[0]).await?;
            }
            let range = self.reads(Ask::Range(arguments.scan_rows), rows);
            let label = format!("{name}, {WRITES} files");
            let before = lab.ask(&label, &tables, arguments.scans, range.clone()).await?;
            let size_before = lab.sizes(&tables).await?;
            let started = Instant::now();
            lab.compact(&tables[0]).await?;
            let seconds = started.elapsed().as_secs_f64();
            let size_after = lab.sizes(&tables).await?;
            let label = format!("{name}, one file");
            let after = lab.ask(&label, &tables, arguments.scans, range).await?;
            let mut way = Way::new(name);
            way.figure("file_bytes_before", size_before.map(|sizes| sizes.file_bytes));
            way.latency("scan_before_p50_ms", "scan of five files", &before.measured);
            way.figure("blocks_before", before.blocks_each());
            way.figure("compaction_seconds", size_after.map(|_| seconds));
            way.figure("file_bytes_after", size_after.map(|sizes| sizes.file_bytes));
            way.latency("scan_after_p50_ms", "scan of one file", &after.measured);
            way.figure("blocks_after", after.blocks_each());
            part.add(way);
            compare(&mut part, "scan", ("five files", &before), ("one file", &after));
            if let Some(other) = &other {
                compare(&mut part, "scan", (one, other), (five, &after));
            }
            other = Some(after);
            lab.drop_tables(&tables).await?;
        }
        part.judge_figures(
            "Versions that no read may return stay on disk until a compaction.",
            (one, "file_bytes_before"),
            (one, "file_bytes_after"),
            Rule::AtLeast(3.0),
        );
        part.judge(
            "Versions that are kept cost their space for good.",
            "file_bytes_after",
            [five, one],
            Rule::AtLeast(3.0),
        );
        part.judge_figures(
            "Until a compaction, a range read of the newest versions passes over the old ones.",
            (one, "scan_before_p50_ms"),
            (one, "scan_after_p50_ms"),
            Rule::AtLeast(1.2),
        );
        part.judge(
            "Versions that are kept are passed over by each range read, compacted or not.",
            "blocks_after",
            [five, one],
            Rule::AtLeast(2.0),
        );
        Ok(part)
    }
}

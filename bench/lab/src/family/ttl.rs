//! A time to live against what readers see, space and compaction.

use std::time::{Duration, Instant};

use basalt_client::FamilySchema;
use basalt_load::error::Result;

use super::reads::Ask;
use super::{FAMILY, Run};
use crate::claims::{PartReport, Rule, Way};

/// Between two looks at whether all rows have expired.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Time after its time to live for which a row is looked for.
const PATIENCE: Duration = Duration::from_secs(10);

impl Run {
    pub(super) async fn ttl(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let ttl_name = format!("TTL {} s", arguments.ttl);
        let rows = self.few_rows();
        let mut part = PartReport::new(
            "ttl",
            "What does a time to live free, and when?",
            format!(
                "{rows} rows in a table with TTL => {} and in one without, flushed. When the time is over, rows that a scan \
                 finds and the bytes of the files are counted, before and after a major compaction.",
                arguments.ttl
            ),
        );
        let forever = "forever";
        for (name, ttl) in [(forever, None), (ttl_name.as_str(), Some(arguments.ttl))] {
            let mut family = FamilySchema::new(FAMILY);
            if let Some(seconds) = ttl {
                family = family.ttl_seconds(i32::from(seconds));
            }
            let table = if ttl.is_some() { "ttl" } else { "forever" };
            let tables = [lab.create(table, vec![family], false).await?];
            lab.fill(&tables[0], rows, false, self.plain_row()).await?;
            lab.flush(&tables[0]).await?;
            let written = lab.sizes(&tables).await?;
            let wait = Duration::from_secs(u64::from(ttl.unwrap_or(0)));
            let visible = self.visible_rows(name, &tables, wait).await?;
            let before = lab.sizes(&tables).await?;
            let started = Instant::now();
            lab.compact(&tables[0]).await?;
            let compacted = started.elapsed().as_secs_f64();
            let after = lab.sizes(&tables).await?;
            let mut way = Way::new(name);
            way.figure("rows_written", rows as f64);
            way.figure("visible_rows", visible);
            way.figure("file_bytes_written", written.map(|sizes| sizes.file_bytes));
            way.figure("file_bytes_expired", before.map(|sizes| sizes.file_bytes));
            way.figure("file_bytes_compacted", after.map(|sizes| sizes.file_bytes));
            way.figure("compaction_seconds", after.map(|_| compacted));
            part.add(way);
            lab.drop_tables(&tables).await?;
        }
        part.judge(
            "Readers do not see expired cells, with or without a compaction.",
            "visible_rows",
            [&ttl_name, forever],
            Rule::AtMost(0.01),
        );
        part.judge_figures(
            "The bytes of expired cells stay on disk.",
            (&ttl_name, "file_bytes_expired"),
            (&ttl_name, "file_bytes_written"),
            Rule::AtLeast(0.9),
        );
        part.judge_figures(
            "A major compaction frees the space of expired cells.",
            (&ttl_name, "file_bytes_expired"),
            (&ttl_name, "file_bytes_compacted"),
            Rule::AtLeast(2.0),
        );
        Ok(part)
    }

    /// Rows that a scan finds once they can have expired.
    async fn visible_rows(&self, name: &str, tables: &[String], ttl: Duration) -> Result<f64> {
        let started = Instant::now();
        tokio::time::sleep(ttl).await;
        loop {
            let all = self.reads(Ask::All, self.few_rows());
            let asked = self.lab.ask(name, tables, 1, all).await?;
            let rows = asked.rows_each();
            if ttl.is_zero() || rows == 0.0 || started.elapsed() > ttl + PATIENCE {
                return Ok(rows);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

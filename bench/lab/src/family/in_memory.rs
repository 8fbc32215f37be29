//! IN_MEMORY against a scan that fills the cache with something else.

use basalt_client::FamilySchema;
use basalt_load::error::{During, Result};
use basalt_load::session::{Column, RowCells};
use basalt_load::values::Values;
use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::reads::{Ask, key};
use super::{FAMILY, QUALIFIER, Run};
use crate::claims::{Finding, PartReport, Rule, Way};
use crate::compare;

/// Most MiB that a scan reads unless it is asked to.
const POLLUTION_MIB_MAX: u64 = 1_536;
/// Bytes of a row that is there to fill the cache.
const POLLUTING_BYTES: usize = 32 << 10;
const CLAIM: &str = "Blocks of an IN_MEMORY family stay in the cache when a scan reads more than fits it.";

impl Run {
    pub(super) async fn in_memory(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "in-memory",
            "What does IN_MEMORY protect?",
            format!(
                "{} rows in a table with IN_MEMORY and in one without, read once. Then a scan reads a third table that is \
                 larger than the cache, and single rows of the first two are read.",
                self.few_rows()
            ),
        );
        if !lab.target.is_basalt {
            let why = "This server does not tell how large its block cache is.";
            part.findings.push(Finding::not_measured(CLAIM, why));
            return Ok(part);
        }
        let cache = lab.target.admin.block_cache().await;
        let cache = cache.during(|| "state of the block cache".to_owned())?;
        let capacity_mib = u64::try_from(cache.capacity_bytes).unwrap_or_default() >> 20;
        let auto = (capacity_mib + capacity_mib / 5 + 1).min(POLLUTION_MIB_MAX);
        let mib = arguments.pollution_mib.unwrap_or(auto);
        if mib <= capacity_mib {
            let why = format!(
                "The block cache has {capacity_mib} MiB, and the scan would read {mib}: nothing would leave it. Give \
                 --pollution-mib, or start the server with a smaller block_cache.bytes."
            );
            part.findings.push(Finding::not_measured(CLAIM, why));
            return Ok(part);
        }
        let (normal, protected) = ("without", "IN_MEMORY");
        let mut hot = Vec::new();
        for (name, in_memory) in [("normal", false), ("in_memory", true)] {
            let family = FamilySchema::new(FAMILY).in_memory(in_memory);
            let table = lab.create(name, vec![family], true).await?;
            lab.fill(&table, self.few_rows(), false, self.plain_row()).await?;
            lab.settle(&table).await?;
            hot.push(table);
        }
        let polluting = lab
            .create("polluting", vec![FamilySchema::new(FAMILY)], false)
            .await?;
        let rows = (mib << 20) / POLLUTING_BYTES as u64;
        lab.fill(&polluting, rows, true, polluting_row()).await?;
        lab.flush(&polluting).await?;
        for table in &hot {
            // A scan reads the rows, a get also the bloom filter, which would count as a miss
            // afterwards.
            for read in [self.reads(Ask::All, self.few_rows()), self.reads(Ask::Row, 1)] {
                lab.ask("warm up", std::slice::from_ref(table), 1, read).await?;
            }
        }
        let scan = self.reads(Ask::All, rows);
        let scanned = lab
            .ask("polluting scan", std::slice::from_ref(&polluting), 1, scan)
            .await?;
        let mut answers = Vec::new();
        for (table, name) in hot.iter().zip([normal, protected]) {
            let gets = self.reads(Ask::Row, self.few_rows());
            let asked = lab
                .ask(name, std::slice::from_ref(table), arguments.reads, gets)
                .await?;
            let mut way = Way::new(name);
            way.figure(
                "evictions_by_the_scan",
                scanned.server.map(|server| server.evictions),
            );
            way.figure("misses_afterwards", asked.server.map(|server| server.misses));
            way.latency("get_p50_ms", "get after the scan", &asked.measured);
            part.add(way);
            answers.push(asked);
        }
        if let [first, second] = &answers[..] {
            compare(&mut part, "get", (normal, first), (protected, second));
        }
        part.judge(
            CLAIM,
            "misses_afterwards",
            [normal, protected],
            Rule::AtLeast(2.0),
        );
        part.notes.push(format!(
            "The scan read {mib} MiB into a cache of {capacity_mib} MiB. Each miss is a block that has to be read again; \
             afterwards it is in the cache for the next get."
        ));
        hot.push(polluting);
        lab.drop_tables(&hot).await?;
        Ok(part)
    }
}

/// Random bytes, so that the scanned data is as large on disk as in memory.
fn polluting_row() -> impl Fn(u64) -> RowCells + Send + Sync + 'static {
    let values = Values::new(0, POLLUTING_BYTES);
    move |number| {
        let mut random = SmallRng::seed_from_u64(number);
        RowCells {
            key: key(number),
            cells: vec![(
                Column::new(FAMILY, Bytes::from_static(QUALIFIER.as_bytes())),
                values.next(&mut random, POLLUTING_BYTES),
            )],
        }
    }
}

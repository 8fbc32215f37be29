//! Distribution of a design's writes over regions, and over the servers of these regions: in sum,
//! and within a minute of the rows' own time. A benchmark writes days in seconds, so the skew
//! within a minute of the rows' time is not visible in the run's own time.

use std::collections::BTreeMap;

use basalt_load::error::{During, Result};
use basalt_load::tables::RegionPlace;

use super::Run;
use super::ingest::Ingested;
use super::numbering::Numbering;
use crate::designs::Design;
use crate::hotspot::design_report::{RegionLoad, ServerLoad, Spread};
use crate::region_load::{RegionMap, Unevenness};
use crate::rows::Rows;

impl Run {
    /// The regions of a table.
    pub(super) async fn region_map(&self, table: &str) -> Result<RegionMap> {
        let regions = self.tables().regions(table).await?.into_iter();
        Ok(RegionMap::new(
            regions.map(|region| region.start_key.to_vec()).collect(),
        ))
    }

    /// Writes by region, as the server counted them; as counted here if it does not count, or if
    /// regions were split or merged meanwhile, since the counts of new ones begin at zero.
    pub(super) async fn spread(
        &self,
        table: &str,
        design: &Design,
        regions: &RegionMap,
        ingested: &Ingested,
    ) -> Result<Spread> {
        let busiest = busiest_share(
            design,
            &self.rows,
            &ingested.numbering,
            ingested.rows_in_order,
            regions,
        )?;
        let mut counts = ingested.region_rows.clone();
        let mut counted_by = "client";
        if self.target.is_basalt {
            let metrics = self.target.admin.regions(Some(table)).await;
            let metrics = metrics.during(|| format!("region metrics of table {table}"))?;
            let same = metrics.iter().map(|region| region.start_key.as_ref());
            if same.eq(regions.starts().iter().map(Vec::as_slice)) {
                counted_by = "server";
                counts = metrics
                    .iter()
                    .map(|region| u64::try_from(region.write_requests).unwrap_or_default())
                    .collect();
            }
        }
        let now = self.tables().regions(table).await?;
        let regions: Vec<RegionLoad> = regions
            .starts()
            .iter()
            .zip(counts)
            .map(|(start, writes)| RegionLoad {
                start_key: start.escape_ascii().to_string(),
                server: server_of(&now, start),
                writes,
            })
            .collect();
        let servers = by_server(&regions);
        let of_regions: Vec<u64> = regions.iter().map(|region| region.writes).collect();
        let of_servers: Vec<u64> = servers.iter().map(|server| server.writes).collect();
        let (region, server) = (Unevenness::of(&of_regions), Unevenness::of(&of_servers));
        Ok(Spread {
            region_writes_counted_by: counted_by,
            region_peak_to_mean: region.peak_to_mean,
            region_gini: region.gini,
            region_busiest_share: busiest,
            splits: now.len() as i64 - regions.len() as i64,
            region_writes: regions,
            server_peak_to_mean: server.peak_to_mean,
            server_gini: server.gini,
            server_writes: servers,
        })
    }
}

/// Rows looked at for [`busiest_share`].
const SAMPLED_ROWS: u64 = 100_000;

/// The share of a minute's rows that the minute's busiest region takes, averaged over the first rows: 1 when
/// each minute goes to one region, even if regions take turns and the sums look even.
fn busiest_share(
    design: &Design,
    rows: &Rows,
    numbering: &Numbering,
    row_count: u64,
    regions: &RegionMap,
) -> Result<f64> {
    let mut counts = vec![0u64; regions.starts().len()];
    let (mut minute, mut busiest, mut total) = (None, 0u64, 0u64);
    for row in 0..row_count.min(SAMPLED_ROWS) {
        let Some(key) = numbering.key(rows, row) else {
            continue;
        };
        if minute.replace(key.minute) != Some(key.minute) {
            busiest += counts.iter().max().copied().unwrap_or_default();
            counts.fill(0);
        }
        counts[regions.index_of(&design.encode(key)?)] += 1;
        total += 1;
    }
    busiest += counts.iter().max().copied().unwrap_or_default();
    Ok(busiest as f64 / total.max(1) as f64)
}

/// The server of the region that holds this row.
fn server_of(regions: &[RegionPlace], row: &[u8]) -> String {
    let holds = |region: &&RegionPlace| region.start_key.as_ref() <= row;
    match regions.iter().rfind(holds) {
        Some(region) => region.server.clone(),
        None => "unknown".to_owned(),
    }
}

/// Servers in the order of their names.
fn by_server(regions: &[RegionLoad]) -> Vec<ServerLoad> {
    let mut servers: BTreeMap<&str, u64> = BTreeMap::new();
    for region in regions {
        *servers.entry(&region.server).or_default() += region.writes;
    }
    let load = |(server, writes): (&str, u64)| ServerLoad {
        server: server.to_owned(),
        writes,
    };
    servers.into_iter().map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::designs::{DesignName, DesignOptions};
    use crate::rows::Synthetic;

    /// Regions that take turns are as hot as one, although the sums are even.
    #[test]
    fn the_busiest_region_of_a_minute_is_found() {
        let options = DesignOptions {
            buckets: 4,
            hash_bytes: 1,
        };
        let rows = Rows::Synthetic(Synthetic::new(Some(6_000), 100, 8, 1));
        let share = |name| {
            let design = Design::new(name, options).unwrap();
            let mut starts = design.split_points(4, &rows.minutes(6_000)).unwrap();
            starts.push(Vec::new());
            let regions = RegionMap::new(starts);
            busiest_share(&design, &rows, &Numbering::Place, 6_000, &regions).unwrap()
        };
        assert!((share(DesignName::Sequential) - 1.0).abs() < 1e-9);
        assert!((share(DesignName::Minute) - 1.0).abs() < 1e-9);
        assert!((0.25..0.40).contains(&share(DesignName::Salted)));
    }

    #[test]
    fn regions_of_one_server_add_up() {
        let region = |start_key: &str, server: &str, writes| RegionLoad {
            start_key: start_key.to_owned(),
            server: server.to_owned(),
            writes,
        };
        let found = by_server(&[region("", "b", 3), region("m", "a", 5), region("t", "b", 4)]);
        let found: Vec<_> = found
            .iter()
            .map(|server| (server.server.as_str(), server.writes))
            .collect();
        assert_eq!(found, [("a", 5), ("b", 7)]);
    }

    /// After a split the old region's start is still held by the first half.
    #[test]
    fn a_row_is_on_the_server_of_its_region() {
        let region = |start: &'static str, server: &str| RegionPlace {
            start_key: start.into(),
            server: server.to_owned(),
        };
        let regions = [region("", "one"), region("f", "two"), region("m", "three")];
        assert_eq!(server_of(&regions, b""), "one");
        assert_eq!(server_of(&regions, b"m"), "three");
        assert_eq!(server_of(&regions, b"g"), "two");
    }
}

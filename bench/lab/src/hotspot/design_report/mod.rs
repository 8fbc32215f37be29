//! The report of `hotspot`: its data, which is also its JSON. Its layout is in `pages`, its
//! sentences in `story` and `conclusion`.

mod conclusion;
mod pages;
mod story;

pub(crate) use conclusion::{Important, conclude};
pub(crate) use pages::{html, markdown, table};
pub(crate) use story::tell;

use basalt_load::load::latency::LatencyReport;
use basalt_load::report::{Head, MeasuredReport};
use serde::Serialize;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// The result in a sentence.
    pub(crate) result: String,
    /// Which design to take, by what is important.
    pub(crate) advice: String,
    /// Says that there are no servers to spread over, and proposes a rehearsal; empty where there are some.
    pub(crate) rehearse: String,
    pub(crate) important: Vec<Important>,
    pub(crate) settings: Settings,
    pub(crate) designs: Vec<DesignReport>,
}

/// Settings shared by the designs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Settings {
    /// The interface that rows were written and read over.
    pub(crate) api: &'static str,
    pub(crate) rows: RowsReport,
    pub(crate) regions: u64,
    pub(crate) connections: u64,
    pub(crate) batch_rows: u64,
    /// `None`: closed loop.
    pub(crate) rate_rows_per_second: Option<u64>,
    pub(crate) duration_seconds: Option<u64>,
    pub(crate) buckets: u16,
    pub(crate) hash_bytes: u8,
    /// Sequence numbers taken from the server's counter at a time; 0: no counter.
    pub(crate) sequence_block: u32,
    /// `hour` or `day`.
    pub(crate) range: &'static str,
    pub(crate) range_from: String,
    pub(crate) range_to: String,
}

/// Where the rows came from.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowsReport {
    File {
        path: String,
        /// In the file.
        flights: u64,
        rows: u64,
    },
    Synthetic {
        /// `None`: as many as there was time for.
        rows: Option<u64>,
        value_bytes: u64,
        rows_per_minute: u32,
        seed: u64,
    },
}

/// One design.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DesignReport {
    pub(crate) name: &'static str,
    pub(crate) table: String,
    pub(crate) row_key: String,
    /// The design's benefit, with its figures, in a sentence.
    pub(crate) bought: String,
    /// The design's cost, with its figures, in a sentence.
    pub(crate) cost: String,
    /// Acknowledged.
    pub(crate) rows: u64,
    pub(crate) ingest_seconds: f64,
    /// Rows.
    pub(crate) ingest_ops_per_second: f64,
    /// Figures of the ingest, by batch; `errors` are those of point reads too.
    #[serde(flatten)]
    pub(crate) measured: MeasuredReport,
    pub(crate) rows_lost: u64,
    /// Blocks of sequence numbers taken from the server's counter.
    pub(crate) sequence_increments: u64,
    #[serde(flatten)]
    pub(crate) spread: Spread,
    /// `None`, and no fields, where the server does not say.
    #[serde(flatten)]
    pub(crate) work: Option<ServerWork>,
    pub(crate) point_reads: u64,
    pub(crate) point_reads_per_second: f64,
    pub(crate) point_read_latency_seconds: Option<LatencyReport>,
    /// The first row that was not as written.
    pub(crate) point_read_difference: Option<String>,
    #[serde(flatten)]
    pub(crate) range_read: RangeRead,
}

impl DesignReport {
    /// Difference between the rows that were read and those that were written.
    pub(crate) fn difference(&self) -> Option<String> {
        let difference = self.range_read.range_difference.as_ref();
        let difference = difference.or(self.point_read_difference.as_ref())?;
        Some(format!("{}: {difference}", self.name))
    }
}

/// How writes fell on regions and servers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spread {
    /// Source of the counts: `server` or `client`.
    pub(crate) region_writes_counted_by: &'static str,
    /// The busiest region's writes divided by the mean.
    pub(crate) region_peak_to_mean: f64,
    pub(crate) region_gini: f64,
    /// Share of the writes of a minute of the rows' own time that the minute's busiest region took.
    pub(crate) region_busiest_share: f64,
    /// Regions after the ingest less those before.
    pub(crate) splits: i64,
    pub(crate) region_writes: Vec<RegionLoad>,
    pub(crate) server_peak_to_mean: f64,
    pub(crate) server_gini: f64,
    pub(crate) server_writes: Vec<ServerLoad>,
}

/// One region.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RegionLoad {
    /// Escaped.
    pub(crate) start_key: String,
    /// Host, port and start code.
    pub(crate) server: String,
    pub(crate) writes: u64,
}

/// One server.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServerLoad {
    pub(crate) server: String,
    pub(crate) writes: u64,
}

/// Background work of the server during the ingest.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ServerWork {
    pub(crate) flushes: i64,
    pub(crate) compactions: i64,
}

impl ServerWork {
    pub(crate) fn since(self, before: ServerWork) -> ServerWork {
        ServerWork {
            flushes: self.flushes - before.flushes,
            compactions: self.compactions - before.compactions,
        }
    }
}

/// Reading an hour or a day in the order of time.
#[allow(
    clippy::struct_field_names,
    reason = "the names are those of the JSON, where they stand among others"
)]
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct RangeRead {
    pub(crate) range_rows: u64,
    pub(crate) range_scans: u64,
    /// The median of all reads.
    pub(crate) range_seconds: f64,
    /// Every read, fastest first.
    pub(crate) range_runs_seconds: Vec<f64>,
    /// Keys and cells of all rows that came.
    pub(crate) range_bytes_received: u64,
    /// Keys and cells of the requested rows.
    pub(crate) range_bytes_returned: u64,
    pub(crate) range_bytes_read_per_byte_returned: f64,
    /// Blocks that the server looked for in its cache, indexes and bloom filters included; `None` where it
    /// does not say.
    pub(crate) range_blocks_read: Option<i64>,
    /// Whether every read returned the written rows.
    pub(crate) range_equal: bool,
    pub(crate) range_difference: Option<String>,
}

#[cfg(test)]
mod tests;

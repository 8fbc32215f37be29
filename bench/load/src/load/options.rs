//! Options that all workloads over the network share.

use std::path::PathBuf;
use std::time::Duration;

use super::Plan;
use super::pacing::Pace;
use crate::data::DataOptions;
use crate::target::TargetOptions;

/// How to load the server.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadOptions {
    /// The server.
    #[command(flatten)]
    pub target: TargetOptions,
    /// The source of values.
    #[command(flatten)]
    pub data: DataOptions,
    /// Tasks at once, each with a connection of its own.
    #[arg(
        long,
        visible_aliases = ["connections", "nclients", "threadcount"],
        default_value_t = 8,
        value_parser = clap::value_parser!(u64).range(1..=1024)
    )]
    pub threads: u64,
    /// Measured time of each phase, in seconds. Default: until its operations are done.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub duration: Option<u64>,
    /// Operations that are due in a second, all tasks together (open loop); latencies count from when they
    /// were due. Default: each task sends its next operation when the last was answered (closed loop).
    #[arg(long, visible_alias = "ops-per-second", value_name = "OPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,
    /// Seconds at the start of each phase that are not measured.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub warm_up: u64,
    /// Seed of keys and values.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where report.html, report.md and report.json go.
    #[arg(long, value_name = "DIR", default_value = "bench-report")]
    pub out: PathBuf,
}

impl LoadOptions {
    /// A plan of `operations` operations of one row each; with `None`, the time or the workload ends it.
    pub fn plan(&self, label: &str, operations: Option<u64>) -> Plan {
        Plan {
            label: label.to_owned(),
            connections: self.threads,
            pace: self.rate.map_or(Pace::Closed, |rate| Pace::Open {
                requests_per_s: rate as f64,
            }),
            operations,
            rows_per_operation: 1,
            duration: self.duration.map(Duration::from_secs),
            warm_up: Duration::from_secs(self.warm_up),
        }
    }

    /// How requests follow each other, in words.
    pub fn pace_text(&self) -> String {
        match self.rate {
            Some(rate) => format!("{rate} operations a second (open loop)"),
            None => "closed loop".to_owned(),
        }
    }
}

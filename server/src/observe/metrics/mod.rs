//! Metrics: every name, label and meaning is in `names`; handles are resolved once and then only touched.
//!
//! Four kinds of source:
//! 1. Calls and connections record into handles of the global recorder ([`Calls`], [`Connections`]).
//! 2. The engine's events (a WAL group, a flush, a compaction) arrive through [`EngineEvents`] and record
//!    into histograms.
//! 3. Figures of the process are read from the system when a scrape comes (`process`).
//! 4. The engine's counters and gauges are read when a scrape comes ([`render`]). Those with a region label
//!    go through a recorder of their own that lives for one scrape, so that the series of a dropped or split
//!    region end at once.
//!
//! Invariant: the number of series is bounded: methods by the two services, regions by `metrics.max_regions`.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

mod calls;
mod engine_events;
pub(crate) mod names;
mod of_cluster;
mod process;
mod scrape;

pub(crate) use calls::{Api, CallCount, Calls, Connections, MethodMetrics, Port};
pub(crate) use engine_events::EngineEvents;
pub(crate) use of_cluster::ClusterCalls;
pub(crate) use process::usage as process_usage;
pub(crate) use scrape::{render, render_without_engine};

/// Installs the recorder for the process. The handle renders the recorded figures.
/// REQUIRES: called once, before any other function of this module.
pub(crate) fn install() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    // Without buckets, the exporter would make summaries of histograms.
    let mut builder = PrometheusBuilder::new();
    for (name, buckets) in names::HISTOGRAMS.iter().chain(of_cluster::HISTOGRAMS) {
        builder = builder.set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets)?;
    }
    let handle = builder.install_recorder()?;
    names::describe_all();
    ::metrics::gauge!(names::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION"), "commit" => crate::COMMIT)
        .set(1.0);
    process::describe();
    Ok(handle)
}

/// Drains the histograms' sample buffers. Must be called every second or so, or memory grows between scrapes.
pub(crate) const UPKEEP_PERIOD: Duration = Duration::from_secs(1);

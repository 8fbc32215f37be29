//! The report of `hotspot`: its data, which is also its JSON, and how it looks.

use comfy_table::{Cell, CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::latency::LatencyReport;
use crate::region_load::Unevenness;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) format: u32,
    pub(crate) workload: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) server: String,
    pub(crate) target: String,
    /// Since 1970.
    pub(crate) started_ms: u64,
    pub(crate) settings: Settings,
    pub(crate) designs: Vec<DesignReport>,
}

/// What the designs had in common.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Settings {
    pub(crate) rows: RowsReport,
    pub(crate) regions: u64,
    pub(crate) connections: u64,
    pub(crate) batch_rows: u64,
    /// `None`: closed loop.
    pub(crate) rate_rows_per_s: Option<u64>,
    pub(crate) duration_s: Option<u64>,
    pub(crate) buckets: u16,
    pub(crate) hash_bytes: u8,
    pub(crate) hour_from: String,
    pub(crate) hour_to: String,
}

/// Where the rows came from.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowsReport {
    File {
        path: String,
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
    pub(crate) design: &'static str,
    pub(crate) table: String,
    pub(crate) row_key: String,
    /// Acknowledged.
    pub(crate) rows: u64,
    pub(crate) seconds: f64,
    pub(crate) rows_per_s: f64,
    /// Of a batch, from when it was due (open loop) or sent (closed loop) until it was acknowledged.
    pub(crate) batch_latency: LatencyReport,
    /// Failed calls, those that were tried again included.
    pub(crate) errors: u64,
    pub(crate) rows_lost: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) timeline: TimelineReport,
    pub(crate) region_writes: RegionWrites,
    /// `None` where the server does not say.
    pub(crate) server_work: Option<ServerWork>,
    pub(crate) range_read: RangeReadReport,
}

/// Throughput over time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TimelineReport {
    pub(crate) slot_ms: u64,
    pub(crate) rows_per_s: Vec<f64>,
}

/// Writes by region.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RegionWrites {
    /// Who counted: `server` or `client`.
    pub(crate) source: &'static str,
    #[serde(flatten)]
    pub(crate) unevenness: Unevenness,
    /// Share of the writes of a moment that its busiest region took.
    pub(crate) busiest_share: f64,
    pub(crate) regions: Vec<RegionLoad>,
}

/// One region.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RegionLoad {
    /// Escaped.
    pub(crate) start_key: String,
    pub(crate) writes: u64,
}

/// What the server did in the background.
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

/// Reading one hour.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RangeReadReport {
    pub(crate) rows: u64,
    pub(crate) scans: u64,
    pub(crate) median_ms: f64,
    /// Every read, fastest first.
    pub(crate) runs_ms: Vec<f64>,
    /// Whether every read returned what was written.
    pub(crate) equal: bool,
    pub(crate) difference: Option<String>,
}

/// The report for a terminal.
pub(crate) fn table(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "design",
        "rows/s",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "max ms",
        "errors",
        "peak/mean",
        "Gini",
        "busiest",
        "flushes",
        "compactions",
        "hour: scans",
        "rows",
        "ms",
        "equal",
    ]);
    for design in &report.designs {
        let latency = &design.batch_latency;
        let ms = |us: u64| format!("{:.2}", us as f64 / 1e3);
        let work = |work: fn(&ServerWork) -> i64| {
            design
                .server_work
                .as_ref()
                .map_or_else(|| "-".to_owned(), |server| work(server).to_string())
        };
        let load = &design.region_writes;
        let cells = [
            design.design.to_owned(),
            format!("{:.0}", design.rows_per_s),
            ms(latency.p50_us),
            ms(latency.p99_us),
            ms(latency.p999_us),
            ms(latency.max_us),
            design.errors.to_string(),
            format!("{:.2}", load.unevenness.peak_to_mean),
            format!("{:.3}", load.unevenness.gini),
            format!("{:.0} %", load.busiest_share * 100.0),
            work(|work| work.flushes),
            work(|work| work.compactions),
            design.range_read.scans.to_string(),
            design.range_read.rows.to_string(),
            format!("{:.1}", design.range_read.median_ms),
            if design.range_read.equal { "yes" } else { "NO" }.to_owned(),
        ];
        let aligned = cells.into_iter().enumerate().map(|(column, text)| {
            let side = if column == 0 {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            };
            Cell::new(text).set_alignment(side)
        });
        table.add_row(aligned);
    }
    table.to_string()
}

/// The report as one HTML file.
pub(crate) fn html(report: &Report) -> Result<String> {
    let failed = |error: minijinja::Error| Error::Report(format!("{error:#}"));
    let mut environment = Environment::new();
    environment
        .add_template("hotspot.html", include_str!("../../templates/hotspot.html"))
        .map_err(failed)?;
    environment.add_filter("grouped", |number: f64| grouped(number));
    let template = environment.get_template("hotspot.html").map_err(failed)?;
    template
        .render(context! {
            report => Value::from(Serde(report)),
            style => include_str!("../../templates/report.css"),
            script => include_str!("../../templates/hotspot.js"),
            uplot_style => include_str!("../../assets/uPlot.min.css"),
            uplot_script => include_str!("../../assets/uPlot.iife.min.js"),
        })
        .map_err(failed)
}

/// A whole number with thin spaces between groups of three digits.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let length = digits.len();
    let spaced = digits.chars().enumerate().map(|(place, digit)| {
        let space = place > 0 && (length - place) % 3 == 0;
        format!("{}{digit}", if space { "\u{2009}" } else { "" })
    });
    spaced.collect()
}

#[cfg(test)]
mod tests;

//! The report of workloads that are a list of phases, each a mix of operations: `pe`, `ycsb`, `ids`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

use serde::Serialize;

use super::{Head, MeasuredReport, Section, markdown_table, markdown_words, page, terminal_table, write_all};
use crate::error::Result;
use crate::load::Measured;
use crate::load::latency::LatencyReport;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// Settings shared by the phases, by their names on the command line.
    pub(crate) settings: BTreeMap<String, String>,
    /// The phases in the order of their runs.
    pub phases: Vec<PhaseReport>,
}

/// A phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseReport {
    /// Name on the command line.
    pub name: String,
    /// Operations that were carried out.
    pub operations: u64,
    /// Rows that were read or written.
    pub rows: u64,
    /// Measured time.
    pub seconds: f64,
    /// Rate of the operations.
    pub ops_per_second: f64,
    /// Rate of the rows.
    pub rows_per_second: f64,
    /// Figures of all operations.
    #[serde(flatten)]
    pub measured: MeasuredReport,
    /// Figures by kind of operation, without kinds that did not occur.
    pub kinds: Vec<KindReport>,
    /// Operations that failed for good.
    pub given_up: u64,
    /// Operations that were due in an open loop and never begun.
    pub not_begun: u64,
    /// Further figures of the workload.
    pub figures: BTreeMap<&'static str, f64>,
}

/// One kind of operation.
#[derive(Clone, Debug, Serialize)]
pub struct KindReport {
    pub(crate) name: String,
    pub(crate) operations: u64,
    /// Read or written: fewer than operations when reads found nothing.
    pub(crate) rows: u64,
    pub(crate) given_up: u64,
    pub(crate) latency_seconds: LatencyReport,
}

impl LoadReport {
    /// A report without phases yet.
    pub fn new(head: Head) -> LoadReport {
        LoadReport {
            head,
            settings: BTreeMap::new(),
            phases: Vec::new(),
        }
    }

    /// Adds a setting.
    pub fn set(&mut self, name: &str, value: impl Display) {
        self.settings.insert(name.to_owned(), value.to_string());
    }
}

impl PhaseReport {
    /// The report of a phase, without further figures.
    pub fn new(name: &str, measured: &Measured) -> PhaseReport {
        let kind = |kind: &crate::load::KindMeasured| KindReport {
            name: kind.name.clone(),
            operations: kind.operations,
            rows: kind.rows,
            given_up: kind.given_up,
            latency_seconds: kind.latencies.report(),
        };
        let kinds: Vec<KindReport> = measured
            .kinds
            .iter()
            .filter(|kind| kind.operations + kind.given_up > 0)
            .map(kind)
            .collect();
        PhaseReport {
            name: name.to_owned(),
            operations: measured.operations(),
            rows: measured.rows(),
            seconds: measured.elapsed.as_secs_f64(),
            ops_per_second: measured.per_second(measured.operations()),
            rows_per_second: measured.per_second(measured.rows()),
            measured: MeasuredReport::new(measured),
            given_up: kinds.iter().map(|kind| kind.given_up).sum(),
            kinds,
            not_begun: measured.not_begun,
            figures: BTreeMap::new(),
        }
    }
}

impl LoadReport {
    /// The names of the figures that any phase has.
    fn figure_names(&self) -> Vec<&'static str> {
        let names = self.phases.iter().flat_map(|phase| phase.figures.keys());
        let names: BTreeSet<&'static str> = names.copied().collect();
        names.into_iter().collect()
    }

    /// A sentence for each phase in which the server was slower than the rate.
    fn slow_lines(&self) -> impl Iterator<Item = String> {
        let slow = self.phases.iter().filter(|phase| phase.not_begun > 0);
        slow.map(|phase| {
            format!(
                "{}: {} operations were due and never begun, because the server was slower than the rate.",
                phase.name, phase.not_begun
            )
        })
    }

    /// A line for each phase with all figures; a figure that it does not have is a dash.
    fn figure_lines(&self) -> Vec<Vec<String>> {
        let names = self.figure_names();
        let line = |phase: &PhaseReport| {
            let figures = names.iter().map(|name| match phase.figures.get(name) {
                Some(figure) => format!("{figure:.3}"),
                None => "-".to_owned(),
            });
            std::iter::once(phase.name.clone()).chain(figures).collect()
        };
        self.phases.iter().map(line).collect()
    }
}

/// The columns of the table, for a terminal and for Markdown.
const COLUMNS: [&str; 10] = [
    "operation",
    "count",
    "ops/s",
    "rows/s",
    "mean ms",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "p99.9 ms",
    "failed",
];

/// A line for each phase, and for each kind of a phase that has several.
fn lines(report: &LoadReport) -> Vec<[String; 10]> {
    let line =
        |name: String, seconds: f64, operations: u64, rows: u64, failed: u64, latency: &LatencyReport| {
            let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
            let rate = |count: u64| format!("{:.0}", count as f64 / seconds.max(1e-9));
            [
                name,
                operations.to_string(),
                rate(operations),
                rate(rows),
                ms(latency.mean),
                ms(latency.p50),
                ms(latency.p95),
                ms(latency.p99),
                ms(latency.p999),
                failed.to_string(),
            ]
        };
    let mut lines = Vec::new();
    for phase in &report.phases {
        lines.push(line(
            phase.name.clone(),
            phase.seconds,
            phase.operations,
            phase.rows,
            phase.given_up,
            &phase.measured.latency_seconds,
        ));
        for kind in phase.kinds.iter().filter(|_| phase.kinds.len() > 1) {
            lines.push(line(
                format!("{}: {}", phase.name, kind.name),
                phase.seconds,
                kind.operations,
                kind.rows,
                kind.given_up,
                &kind.latency_seconds,
            ));
        }
    }
    lines
}

/// Writes the report, and prints its table and where it is.
pub fn write(out: &Path, report: &LoadReport) -> Result<()> {
    let files = write_all(out, report, &markdown(report), &html(report)?)?;
    say!("{}\n{files}", table(report));
    Ok(())
}

/// The report for a terminal.
pub(crate) fn table(report: &LoadReport) -> String {
    let mut parts = vec![terminal_table(&COLUMNS, lines(report))];
    parts.extend(report.slow_lines());
    let names = report.figure_names();
    if !names.is_empty() {
        let head = [&["operation"], &names[..]].concat();
        parts.push(terminal_table(&head, report.figure_lines()));
    }
    parts.join("\n")
}

/// The report in Markdown.
pub fn markdown(report: &LoadReport) -> String {
    let names = report.figure_names();
    let figures = if names.is_empty() {
        String::new()
    } else {
        let head = [&["operation"], &names[..]].concat();
        markdown_table(&head, report.figure_lines()) + "\n"
    };
    let settings = report
        .settings
        .iter()
        .map(|(name, value)| [name.clone(), value.clone()]);
    let slow: String = report.slow_lines().map(|line| line + "\n\n").collect();
    format!(
        "# {}\n\n{} at {}, measured by {}.\n\n{}\n{slow}{figures}{}",
        report.head.workload,
        report.head.server,
        report.head.target,
        report.head.tool,
        markdown_table(&COLUMNS, lines(report)),
        markdown_words(&["setting", "value"], settings),
    )
}

/// The report as one HTML file.
pub(crate) fn html(report: &LoadReport) -> Result<String> {
    let title = format!("{} on {}", report.head.workload, report.head.server);
    page(&title, None::<&()>, &[Section::new("load", "load", report)?])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::latency::Latencies;
    use crate::load::retry::Failures;
    use crate::load::timeline::Timeline;
    use crate::load::{KindMeasured, Measured};
    use crate::report::REPORT_FORMAT;

    fn sample() -> LoadReport {
        let kind = |name: &str, operations, ms| {
            let mut latencies = Latencies::new();
            (0..operations).for_each(|_| latencies.record(Duration::from_millis(ms)));
            KindMeasured {
                name: name.to_owned(),
                operations,
                rows: operations * 2,
                given_up: 0,
                latencies,
            }
        };
        let mut timeline = Timeline::default();
        timeline.add(Duration::ZERO, 200);
        let measured = Measured {
            kinds: vec![kind("read", 75, 2), kind("update", 25, 4), kind("scan", 0, 1)],
            failures: Failures {
                calls: 3,
                first: Some("too <busy>".to_owned()),
            },
            timeline,
            not_begun: 7,
            elapsed: Duration::from_millis(500),
        };
        let mut report = LoadReport::new(Head {
            format: REPORT_FORMAT,
            workload: "ycsb",
            tool: "basalt-bench 0.0.0",
            server: "Basalt 0.0.0".to_owned(),
            target: "127.0.0.1:9090".to_owned(),
            started_ms: 1,
        });
        report.set("recordcount", 1_000);
        report.phases.push(PhaseReport {
            figures: BTreeMap::from([("disk_bytes_per_row", 41.5)]),
            ..PhaseReport::new("run", &measured)
        });
        report
    }

    #[test]
    fn phases_and_their_kinds_have_a_line_each() {
        let lines: Vec<_> = lines(&sample()).into_iter().map(|line| line.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "run 100 200 400 2.500 2.000 4.001 4.001 4.001 0",
                "run: read 75 150 300 2.000 2.000 2.000 2.000 2.000 0",
                "run: update 25 50 100 4.001 4.001 4.001 4.001 4.001 0",
            ]
        );
    }

    #[test]
    fn every_form_shows_settings_and_errors() {
        let report = sample();
        assert!(markdown(&report).contains("| recordcount | 1000 |"));
        for text in [markdown(&report), table(&report), html(&report).unwrap()] {
            assert!(
                text.contains("run: 7 operations were due and never begun"),
                "{text}"
            );
        }
        assert!(markdown(&report).contains("| operation | disk_bytes_per_row |"));
        assert!(table(&report).contains("run: update") && table(&report).contains("41.500"));
        let html = html(&report).unwrap();
        assert!(html.contains("too &lt;busy&gt;") && html.contains("recordcount"));
        for outside in [" src=", "<link", "@import", "url(http", "fetch("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}

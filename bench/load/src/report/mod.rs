//! The output of a run: `report.json` for programs, `report.md` for a repository or an issue, and
//! one `report.html` for people.
//!
//! The HTML has everything inside, script and style included, so it can be mailed and opened anywhere.

pub mod load;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use comfy_table::{Cell, CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::load::Measured;
use crate::load::latency::LatencyReport;
use crate::load::timeline::TimelineReport;
use crate::target::{Target, TargetOptions};
pub use page::{Section, page};

/// Version of the JSON. Raised when a field changes its meaning or goes away. Times are in seconds, unless a
/// name says otherwise.
pub const REPORT_FORMAT: u32 = 2;

/// The head of every report.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// [`REPORT_FORMAT`].
    pub format: u32,
    /// The command.
    pub workload: &'static str,
    /// Name and version of the program.
    pub tool: &'static str,
    /// Name and version of the server.
    pub server: String,
    /// Address of the server.
    pub target: String,
    /// When the run began, since 1970.
    pub started_ms: u64,
}

impl Head {
    /// The head of a run that starts now.
    pub fn new(workload: &'static str, target: &Target, options: &TargetOptions) -> Head {
        Head {
            format: REPORT_FORMAT,
            workload,
            tool: concat!("basalt-bench ", env!("CARGO_PKG_VERSION")),
            server: target.name.clone(),
            target: options.target.clone(),
            started_ms: since_1970_ms(SystemTime::now()),
        }
    }
}

/// Figures of every run through the load core: one design's ingest, one phase.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredReport {
    /// From when an operation was due (open loop) or sent (closed loop) until it was answered.
    pub latency_seconds: LatencyReport,
    /// Failed calls, those that were tried again included.
    pub errors: u64,
    /// Message of the first failed call.
    pub first_error: Option<String>,
    /// Throughput over time.
    pub timeline: TimelineReport,
}

impl MeasuredReport {
    /// The figures of a run, for its report.
    pub fn new(measured: &Measured) -> MeasuredReport {
        MeasuredReport {
            latency_seconds: measured.latencies().report(),
            errors: measured.failures.calls,
            first_error: measured.failures.first.clone(),
            timeline: measured.timeline.report(),
        }
    }
}

/// The names of the three files.
const FILES: [&str; 3] = ["report.json", "report.md", "report.html"];

/// Makes sure that reports can be written, before hours are spent on one.
pub fn create_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(|source| Error::File {
        path: dir.to_owned(),
        source,
    })
}

pub(crate) fn write_file(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

/// Writes all three files of a report and returns their paths, one a line.
pub fn write_all(dir: &Path, report: &impl Serialize, markdown: &str, html: &str) -> Result<String> {
    let json = to_json(report)?;
    let mut paths = Vec::new();
    for (name, text) in FILES.iter().zip([json.as_str(), markdown, html]) {
        let path = dir.join(name);
        write_file(&path, text)?;
        paths.push(path.display().to_string());
    }
    Ok(paths.join("\n"))
}

/// Writes the JSON alone and returns where.
pub(crate) fn write_json(path: &Path, report: &impl Serialize) -> Result<PathBuf> {
    write_file(path, &to_json(report)?)?;
    Ok(path.to_owned())
}

/// The text of `report.json`.
pub fn to_json(report: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string_pretty(report).map_err(|error| Error::Report(error.to_string()))?;
    Ok(json + "\n")
}

/// Milliseconds since 1970.
fn since_1970_ms(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
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

/// A whole number with commas between groups of three digits.
pub fn commas(number: f64) -> String {
    grouped(number).replace('\u{2009}', ",")
}

/// A number with at least three digits that count.
pub fn figure(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1_000.0 || value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// A table in Markdown. The first column stands left, the others right.
pub fn markdown_table<R: AsRef<[String]>>(head: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let side = |column| if column == 0 { "---" } else { "---:" };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut lines = vec![
        line(head.iter().map(|name| (*name).to_owned()).collect()),
        line((0..head.len()).map(|column| side(column).to_owned()).collect()),
    ];
    for row in rows {
        let cells = row.as_ref().iter();
        lines.push(line(cells.map(|cell| cell.replace('|', "\\|")).collect()));
    }
    lines.concat()
}

/// A table of words in Markdown: all columns stand left.
pub fn markdown_words<R: AsRef<[String]>>(head: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    markdown_table(head, rows).replacen("---:", "---", head.len())
}

/// A table for a terminal. The first column stands left, the others right.
pub fn terminal_table<R: AsRef<[String]>>(head: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(head);
    for row in rows {
        table.add_row(row.as_ref().iter().enumerate().map(|(column, text)| {
            let side = if column == 0 {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            };
            Cell::new(text).set_alignment(side)
        }));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let numbers = [1.0, 999.0, 1_000.0, 1_234_567.4].map(grouped);
        assert_eq!(commas(24_866.0), "24,866");
        assert_eq!(numbers, ["1", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567"]);
    }

    #[test]
    fn a_bar_in_a_cell_does_not_end_it() {
        let rows = [["x|y".to_owned(), "1".to_owned()]];
        let table = markdown_table(&["a", "b"], &rows);
        assert_eq!(table, "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n");
        assert!(markdown_words(&["a", "b"], &rows).contains("| --- | --- |"));
    }
}

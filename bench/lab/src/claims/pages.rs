//! The report for a terminal, for Markdown and for a browser.

use std::path::Path;

use basalt_load::error::{Error, Result};
use basalt_load::report::{Section, figure, markdown_table, markdown_words, page, terminal_table, write_all};
use basalt_load::say;

use super::{LabReport, PartReport};

/// The columns of the findings.
const FINDINGS: [&str; 4] = ["verdict", "claim", "measurement", "rule"];

/// Writes the report, and prints its tables and where it is; an error if ways gave different answers.
pub(crate) fn write(out: &Path, report: &LabReport) -> Result<()> {
    let files = write_all(out, report, &markdown(report), &html(report)?)?;
    say!("{}\n{files}", terminal(report));
    match report.difference() {
        Some(difference) => Err(Error::Different(difference)),
        None => Ok(()),
    }
}

fn head(part: &PartReport) -> Vec<String> {
    let columns = part.columns.iter().map(|name| name.replace('_', " "));
    std::iter::once(String::new()).chain(columns).collect()
}

/// A line for each way; a figure that is not known is a dash.
fn lines(part: &PartReport) -> Vec<Vec<String>> {
    let line = |way: &super::WayReport| {
        let figures = part.columns.iter().map(|name| match way.figures.get(name) {
            Some(value) => figure(*value),
            None => "-".to_owned(),
        });
        std::iter::once(way.name.clone()).chain(figures).collect()
    };
    part.ways.iter().map(line).collect()
}

fn findings(part: &PartReport) -> impl Iterator<Item = [String; 4]> {
    part.findings.iter().map(|finding| {
        [
            finding.verdict.text().to_owned(),
            finding.claim.clone(),
            finding.measurement.clone(),
            finding.rule.clone(),
        ]
    })
}

/// The remarks below the tables.
fn remarks(part: &PartReport) -> Vec<String> {
    let equal = (part.equal == Some(true))
        .then(|| format!("All ways gave equal answers to {} questions.", part.compared));
    equal
        .into_iter()
        .chain(part.difference.clone())
        .chain(part.notes.iter().cloned())
        .collect()
}

fn terminal(report: &LabReport) -> String {
    let mut out = Vec::new();
    for part in &report.parts {
        let head = head(part);
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        out.push(format!("\n{}", part.title));
        out.push(terminal_table(&head, lines(part)));
        for [verdict, claim, measurement, rule] in findings(part) {
            out.push(format!("{verdict}: {claim}\n    {measurement}"));
            if !rule.is_empty() {
                out.push(format!("    rule: {rule}"));
            }
        }
        out.extend(remarks(part));
    }
    out.join("\n")
}

/// The report in Markdown.
pub(crate) fn markdown(report: &LabReport) -> String {
    let mut out = vec![format!(
        "# {}\n\n{} at {}, measured by {}.\n",
        report.title, report.head.server, report.head.target, report.head.tool
    )];
    for part in &report.parts {
        let head = head(part);
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        out.push(format!(
            "\n## {}\n\n{}\n\n{}\n{}",
            part.title,
            part.setup,
            markdown_words(&FINDINGS, findings(part)),
            markdown_table(&head, lines(part)),
        ));
        out.extend(remarks(part).into_iter().map(|remark| format!("\n{remark}\n")));
    }
    let settings = report
        .settings
        .iter()
        .map(|(name, value)| [name.clone(), value.clone()]);
    out.push("\n".to_owned() + &markdown_words(&["setting", "value"], settings));
    out.concat()
}

/// The report as one HTML file.
pub(super) fn html(report: &LabReport) -> Result<String> {
    let title = format!("{} on {}", report.head.workload, report.head.server);
    page(&title, None::<&()>, &[Section::new("lab", "lab", report)?])
}

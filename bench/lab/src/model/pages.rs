//! The report for a terminal, for Markdown and for a browser.

use basalt_load::error::Result;
use basalt_load::report::{Section, markdown_table, markdown_words, page, terminal_table};

use super::report::{PatternReport, Report, ResultReport, number};

/// The columns of verdicts.
const VERDICTS: [&str; 4] = ["pattern", "layout", "verdict", "why, and how it is answered"];
/// The columns of figures.
const FIGURES: [&str; 10] = [
    "pattern",
    "layout",
    "wanted/s",
    "reached/s",
    "p50 ms",
    "p99 ms",
    "scans",
    "rows read",
    "returned",
    "busiest",
];

fn verdicts(report: &Report) -> impl Iterator<Item = [String; 4]> {
    results(report).map(|(pattern, result)| {
        let why = result.reasons.iter().cloned().chain([result.plan.clone()]);
        [
            pattern.name.clone(),
            result.layout.clone(),
            result.verdict.text().to_owned(),
            why.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; "),
        ]
    })
}

fn figures(report: &Report) -> impl Iterator<Item = [String; 10]> {
    let or_dash = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    results(report).map(move |(pattern, result)| {
        let is_read = pattern.kind != "write";
        let of_read = |value: f64| or_dash(is_read.then_some(value));
        [
            pattern.name.clone(),
            result.layout.clone(),
            or_dash(pattern.rate),
            or_dash(result.per_second),
            or_dash(result.p50_ms()),
            or_dash(result.p99_ms()),
            of_read(result.scans),
            of_read(result.rows_read),
            of_read(result.rows_returned),
            match result.busiest_share {
                Some(share) => format!(
                    "{:.0} % of {} {}",
                    share * 100.0,
                    result.parts_count,
                    result.parts
                ),
                None => "-".to_owned(),
            },
        ]
    })
}

fn results(report: &Report) -> impl Iterator<Item = (&PatternReport, &ResultReport)> {
    let patterns = report.patterns.iter();
    patterns.flat_map(|pattern| pattern.results.iter().map(move |result| (pattern, result)))
}

fn broken(report: &Report) -> Vec<[String; 4]> {
    let tables = report.tables.iter();
    let of_table = |table: &super::report::TableReport| {
        let name = table.name.clone();
        let broken = table.broken.clone().into_iter();
        broken.map(move |broken| [name.clone(), broken.layout, broken.what, broken.rule])
    };
    tables.flat_map(of_table).collect()
}

/// The report for a terminal.
pub(super) fn terminal(report: &Report) -> String {
    let mut out = vec![report.result.clone(), terminal_table(&FIGURES, figures(report))];
    for [pattern, layout, verdict, why] in verdicts(report) {
        out.push(format!("{verdict}: {pattern}, {layout}\n    {why}"));
    }
    for [table, layout, what, rule] in broken(report) {
        out.push(format!(
            "rule of thumb, table {table}, {layout}: {what}\n    {rule}"
        ));
    }
    if !report.rehearse.is_empty() {
        out.push(report.rehearse.clone());
    }
    out.push(report.advice.clone());
    out.join("\n")
}

/// The report in Markdown.
pub(super) fn markdown(report: &Report) -> String {
    let rules = broken(report);
    let rules = if rules.is_empty() {
        "HBase's rules of thumb are kept.\n".to_owned()
    } else {
        markdown_words(&["table", "layout", "what", "rule of thumb"], rules)
    };
    let loaded = report.layouts.iter().flat_map(|layout| {
        layout.tables.iter().map(|table| {
            [
                layout.name.clone(),
                table.table.clone(),
                format!("`{}`", table.key),
                table
                    .key_bytes
                    .map_or_else(|| "any".to_owned(), |bytes| bytes.to_string()),
                table.regions.to_string(),
                number(table.rows_per_second),
            ]
        })
    });
    let settings = report
        .settings
        .iter()
        .map(|(name, value)| [(*name).to_owned(), value.clone()]);
    let rehearse = if report.rehearse.is_empty() {
        String::new()
    } else {
        format!("{}\n\n", report.rehearse)
    };
    let code = report
        .layouts
        .iter()
        .flat_map(|layout| layout.code.iter().map(|file| format!("- `{file}`\n")));
    format!(
        "# {}\n\n**{}**\n\n{} at {}, measured by {}.\n\n{rehearse}{}\n## Verdicts\n\n{}\n## Figures\n\n{}\n## Tables\n\n{}\n{rules}\n\
         ## Code\n\n{}\n## Advice\n\n{}\n",
        report.title,
        report.result,
        report.head.server,
        report.head.target,
        report.head.tool,
        markdown_words(&["setting", "value"], settings),
        markdown_words(&VERDICTS, verdicts(report)),
        markdown_table(&FIGURES, figures(report)),
        markdown_table(
            &["layout", "table", "key", "bytes", "regions", "loaded rows/s"],
            loaded
        ),
        code.collect::<String>(),
        report.advice,
    )
}

/// The report as one HTML file.
pub(super) fn html(report: &Report) -> Result<String> {
    page(
        &report.title,
        None::<&()>,
        &[Section::new("model", "model", report)?],
    )
}

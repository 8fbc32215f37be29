//! The report for a terminal, for Markdown and for a browser.

use basalt_load::error::Result;
use basalt_load::report::{Section, markdown_table, markdown_words, page, terminal_table};

use super::{DesignReport, Report, RowsReport};

/// The columns of the table, for a terminal and for Markdown.
const COLUMNS: [&str; 15] = [
    "design",
    "rows/s",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "peak/mean",
    "Gini",
    "busiest",
    "flushes",
    "get p50 ms",
    "scans",
    "range ms",
    "read/returned",
    "errors",
    "equal",
];

fn cells(design: &DesignReport) -> [String; 15] {
    let ms = |seconds: f64| format!("{:.2}", seconds * 1e3);
    let (latency, spread, read) = (
        &design.measured.latency_seconds,
        &design.spread,
        &design.range_read,
    );
    let absent = || "-".to_owned();
    let equal = design.difference().is_none();
    [
        design.name.to_owned(),
        format!("{:.0}", design.ingest_ops_per_second),
        ms(latency.p50),
        ms(latency.p99),
        ms(latency.p999),
        format!("{:.2}", spread.region_peak_to_mean),
        format!("{:.3}", spread.region_gini),
        format!("{:.0} %", spread.region_busiest_share * 100.0),
        design.work.map_or_else(absent, |work| work.flushes.to_string()),
        design
            .point_read_latency_seconds
            .as_ref()
            .map_or_else(absent, |reads| ms(reads.p50)),
        read.range_scans.to_string(),
        format!("{:.1}", read.range_seconds * 1e3),
        format!("{:.1}", read.range_bytes_read_per_byte_returned),
        design.measured.errors.to_string(),
        if equal { "yes" } else { "NO" }.to_owned(),
    ]
}

/// The report for a terminal.
pub(crate) fn table(report: &Report) -> String {
    let table = terminal_table(&COLUMNS, report.designs.iter().map(cells));
    let lines = [&report.result, &table, &report.rehearse, &report.advice];
    let lines: Vec<&str> = lines
        .into_iter()
        .map(String::as_str)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("\n")
}

/// The report in Markdown.
pub(crate) fn markdown(report: &Report) -> String {
    let settings = &report.settings;
    let rows = match &settings.rows {
        RowsReport::File { path, flights, rows } => format!("{rows} of the {flights} flights of `{path}`"),
        RowsReport::Synthetic {
            rows: Some(rows),
            value_bytes,
            ..
        } => format!("{rows} rows of {value_bytes} bytes"),
        RowsReport::Synthetic { value_bytes, .. } => {
            format!("rows of {value_bytes} bytes, as many as there was time for")
        }
    };
    let pace = match settings.rate_rows_per_second {
        Some(rate) => format!("{rate} rows a second (open loop)"),
        None => "closed loop".to_owned(),
    };
    let table = markdown_table(&COLUMNS, report.designs.iter().map(cells));
    let sentences = markdown_words(
        &["design", "bought", "cost"],
        report
            .designs
            .iter()
            .map(|design| [design.name.to_owned(), design.bought.clone(), design.cost.clone()]),
    );
    let keys = markdown_words(
        &["design", "row key", "table"],
        report
            .designs
            .iter()
            .map(|design| [design.name, &design.row_key, &design.table].map(str::to_owned)),
    );
    format!(
        "# Which row key makes a hot region?\n\n**{result}**\n\n\
         {server} at {target}, measured by {tool}: {rows} for each design, in the order of time over {api}; {connections} connections, \
         batches of {batch} rows, {pace}, {regions} regions a table. The range is one {range}, from {from} to {to} UTC.\n\n\
         {rehearse}{table}\n{servers}{sentences}\n{keys}\n\
         Latency is that of a batch. *Busiest* is the share of a minute's rows that one region took. *Scans* and what \
         follows is about reading the range back in the order of time; *equal* says that all that was read is what was written.\n\n{advice}\n",
        result = report.result,
        advice = report.advice,
        rehearse = if report.rehearse.is_empty() {
            String::new()
        } else {
            format!("{}\n\n", report.rehearse)
        },
        servers = servers(report),
        server = report.head.server,
        target = report.head.target,
        tool = report.head.tool,
        api = settings.api,
        connections = settings.connections,
        batch = settings.batch_rows,
        regions = settings.regions,
        range = settings.range,
        from = settings.range_from,
        to = settings.range_to,
    )
}

/// How writes fell on servers, where there are several.
fn servers(report: &Report) -> String {
    let several = report
        .designs
        .iter()
        .any(|design| design.spread.server_writes.len() > 1);
    if !several {
        return String::new();
    }
    let row = |design: &DesignReport| {
        let spread = &design.spread;
        let writes = spread
            .server_writes
            .iter()
            .map(|server| server.writes.to_string());
        [
            design.name.to_owned(),
            format!("{:.2}", spread.server_peak_to_mean),
            format!("{:.3}", spread.server_gini),
            writes.collect::<Vec<_>>().join(", "),
        ]
    };
    let head = ["design", "servers, peak/mean", "Gini", "writes of each server"];
    markdown_table(&head, report.designs.iter().map(row)) + "\n"
}

/// The report as one HTML file.
pub(crate) fn html(report: &Report) -> Result<String> {
    let title = format!("Row-key designs on {}", report.head.server);
    page(
        &title,
        None::<&()>,
        &[Section::new("hotspot", "hotspot", report)?],
    )
}

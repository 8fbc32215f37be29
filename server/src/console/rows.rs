//! A read-only browser of a table's rows: a start or a prefix, a filter, versions, a time range; keys and
//! values as HBase's tools print them, and the same scan as text for the shell, HappyBase and Java.
//!
//! The scan passes the pipeline as every call does, with the rights of the user of the HTTP request and the
//! bounds of a fetch. A page has at most [`ROWS_MAX`] rows and some [`PAGE_BYTES`] of cells; what does not
//! fit is on the next one.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::Uri;
use axum::response::Response;
use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{Columns, FamilySelection, Scan, TimeRange};
use basalt_engine::schema::{Escaped, KeyLayout, TableName};
use maud::{Markup, html};

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page, Parameters, Refusal, Site, answer, show, table};
use crate::security::Caller;
use crate::server::Server;
use crate::service::scans::{self, Part};
use crate::service::{Call, Kept, Sender};

/// Rows on a page, unless `rows` asks for others.
const ROWS: i64 = 25;
/// Most rows on a page.
const ROWS_MAX: i64 = 100;
/// Bytes of cells from which on no further row is begun.
const PAGE_BYTES: usize = 128 << 10;
/// Most cells that are printed, and bytes of each value.
const CELLS_MAX: usize = 1_000;
const VALUE_BYTES_MAX: usize = 1 << 10;

/// Parameters of the page's address.
struct Asked {
    table: TableName,
    scan: Scan,
    rows: usize,
    /// The filter as it was given.
    filter: String,
}

/// The rows of a page, and whether more follow.
struct Found {
    batch: CellBatch,
    is_end: bool,
}

/// The page of `/tables/{table}/rows`.
pub(super) async fn handler(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(name): Path<String>,
    uri: Uri,
    Query(params): Parameters,
) -> Response {
    let params = Params::new(uri.path(), params);
    let read = async {
        let asked = asked(&name, &params)?;
        let found = find(&site.server, caller, &asked).await?;
        Ok((asked, found))
    };
    let read: Made<(Asked, Found)> = read.await;
    answer(site, move |server| {
        let (asked, found) = read?;
        page(server.engine(), &asked, &found, &params)
    })
    .await
}

fn asked(name: &str, params: &Params) -> Made<Asked> {
    let table = table::table_named(name)?;
    let bad = Refusal::BadRequest;
    let (start, prefix, stop) = (params.key("start")?, params.key("prefix")?, params.key("stop")?);
    if !prefix.is_empty() && !start.is_empty() && !start.starts_with(&prefix) {
        return Err(bad("start must begin with the prefix, or be left out".to_owned()));
    }
    let number = |name: &str, default: i64, least: i64, most: i64| {
        let number = params.number(name)?.unwrap_or(default);
        if (least..=most).contains(&number) {
            Ok(number)
        } else {
            Err(bad(format!(
                "{name} is {number}, and must be from {least} to {most}"
            )))
        }
    };
    let rows = number("rows", ROWS, 1, ROWS_MAX)?;
    let versions = number("versions", 1, 1, i64::from(i32::MAX))?;
    let (min, max) = (
        number("mintime", 0, 0, i64::MAX)?,
        number("maxtime", i64::MAX, 1, i64::MAX)?,
    );
    if max <= min {
        return Err(bad("maxtime must be a time after mintime".to_owned()));
    }
    let filter = params.get("filter").unwrap_or_default();
    let parsed = (!filter.is_empty())
        .then(|| FilterSpec::parse(filter.as_bytes()))
        .transpose()
        .map_err(|error| bad(format!("filter: {error}")))?;
    let column = params.get("column").unwrap_or_default();
    let mut scan = Scan {
        start_row: if start.is_empty() { prefix.clone() } else { start },
        stop_row: match behind_prefix(&prefix) {
            Some(end) if stop.is_empty() || end < stop => end,
            _ => stop,
        },
        ..Scan::default()
    };
    scan.spec.max_versions = i32::try_from(versions).unwrap_or(i32::MAX);
    scan.spec.time_range = TimeRange { min, max };
    scan.spec.filter = parsed.map(Arc::new);
    if !column.is_empty() {
        scan.spec.families = vec![selected(column)?];
    }
    Ok(Asked {
        table,
        scan,
        rows: rows as usize,
        filter: filter.to_owned(),
    })
}

/// `f` or `f:q`, printed.
fn selected(column: &str) -> Result<FamilySelection, Refusal> {
    let (family, qualifier) = match column.split_once(':') {
        Some((family, qualifier)) => (family, Some(qualifier)),
        None => (column, None),
    };
    Ok(FamilySelection {
        family: show::parse_key("column", family)?,
        columns: match qualifier {
            Some(qualifier) => Columns::Only(vec![show::parse_key("column", qualifier)?]),
            None => Columns::All,
        },
    })
}

/// The first key behind all that begin with the prefix; `None` where that is the end of the table, or
/// without a prefix.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

async fn find(server: &Arc<Server>, caller: Arc<Caller>, asked: &Asked) -> Made<Found> {
    let sender = Sender::new(caller, server.admission().memory());
    let mut kept = Kept::default();
    let mut call = Call::new(&sender, &mut kept, Instant::now());
    let part = Part {
        results: asked.rows,
        rows: asked.rows as u64,
        bytes: PAGE_BYTES,
        cuts_rows: true,
        may_be_empty: true,
        time: None,
    };
    let fetched =
        scans::fetch_part_once(server, &mut call, asked.table.clone(), asked.scan.clone(), part).await;
    let (batch, end) = fetched?;
    Ok(Found {
        batch,
        is_end: end.is_of_scan && !end.is_before_end,
    })
}

fn page(engine: &Engine, asked: &Asked, found: &Found, params: &Params) -> Made {
    let name = asked.table.to_string();
    let (descriptor, _) = engine.describe_table(&asked.table)?;
    let layout = descriptor.key_layout();
    let last = found.batch.rows().last();
    let next = last
        .filter(|_| !found.is_end)
        .map(|row| [row.key(), b"\0"].concat());
    let body = html! {
        p { "Table " a href=(show::path(&["tables", &name])) { (name) } ", read only. Keys and values are printed as HBase's shell prints them." }
        (form(asked, params))
        @if found.batch.row_count() == 0 {
            p.quiet { "No rows." }
        } @else {
            (cells(&found.batch, layout.as_ref()))
        }
        nav.pages aria-label="Pages of rows" {
            span { (show::of(found.batch.row_count() as u64, "row")) @if found.is_end { ", the last ones" } }
            @if let Some(next) = next {
                a rel="next" href=(params.with(&[("start", &Escaped(&next).to_string())])) { "next" }
            }
        }
        @if layout.is_none() {
            p.quiet {
                "The table attribute " code { "basalt.key_layout" } " (such as " code { "salt:1, user:8, reversed_time:8" } ") shows keys by their fields, here and in the key visualizer."
            }
        }
        (copies(asked))
    };
    Ok(Page {
        place: Place::Tables,
        title: format!("Rows of {name}"),
        body,
    })
}

fn form(asked: &Asked, params: &Params) -> Markup {
    let given = |name: &str| params.get(name).unwrap_or_default().to_owned();
    let text = |label: &str, name: &str, size: u32| {
        html! { label { (label) " " input name=(name) value=(given(name)) size=(size) autocomplete="off" spellcheck="false"; } }
    };
    html! {
        form.controls action=(show::path(&["tables", &asked.table.to_string(), "rows"])) method="get" {
            (text("start row", "start", 16)) (text("stop row", "stop", 16)) (text("prefix", "prefix", 12)) (text("column", "column", 10))
            (text("filter", "filter", 32)) (text("versions", "versions", 3)) (text("from timestamp", "mintime", 13)) (text("up to timestamp", "maxtime", 13))
            (text("rows", "rows", 3))
            button { "Show" }
        }
    }
}

fn cells(batch: &CellBatch, layout: Option<&KeyLayout>) -> Markup {
    let all: usize = batch.rows().map(|row| row.cells().count()).sum();
    let mut left = CELLS_MAX;
    let mut rows: Vec<Markup> = Vec::new();
    for row in batch.rows() {
        for (index, cell) in row.cells().take(left).enumerate() {
            rows.push(html! {
                tr {
                    @if index == 0 {
                        th scope="row" {
                            code { (Escaped(row.key()).to_string()) }
                            @if let Some(layout) = layout { br; span.quiet { (layout.show(row.key()).to_string()) } }
                        }
                    } @else { td {} }
                    td { code { (Escaped(cell.key.family()).to_string()) ":" (Escaped(cell.key.qualifier()).to_string()) } }
                    td.n { (cell.key.timestamp()) }
                    td { (value(cell.value)) }
                }
            });
        }
        left = CELLS_MAX - rows.len();
    }
    html! {
        div.wide { table {
            caption { "Cells" }
            thead { tr { th scope="col" { "row" } th scope="col" { "column" } th.n scope="col" { "timestamp" } th scope="col" { "value" } } }
            tbody { @for row in &rows { (row) } }
        } }
        // A fetch that ended inside a row does not know how many cells the row has.
        @if batch.rows().last().is_some_and(|row| row.partial) {
            p.quiet { "The last row has more cells than are shown: ask for a column." }
        } @else if all > rows.len() { p.quiet { (show::count((all - rows.len()) as u64)) " more cells of these rows are not shown: ask for a column." } }
    }
}

fn value(value: &[u8]) -> Markup {
    let shown = &value[..value.len().min(VALUE_BYTES_MAX)];
    html! {
        code.long { (Escaped(shown).to_string()) }
        @if shown.len() < value.len() { span.quiet { "... (" (show::bytes(value.len() as u64)) ")" } }
    }
}

/// The same scan for other clients.
fn copies(asked: &Asked) -> Markup {
    html! {
        h2 { "The same scan elsewhere" }
        @for (name, text) in [
            ("HBase shell", shell_text(asked)),
            ("HappyBase (Python)", happybase_text(asked)),
            ("Java", java_text(asked)),
        ] {
            details {
                summary { "Copy as " (name) }
                pre.schema.copy tabindex="0" aria-label=(name) { (text) }
            }
        }
    }
}

/// Bytes in the double quotes of Ruby, Python or Java. Quotes and what begins an interpolation are escaped as
/// bytes.
fn quoted(bytes: &[u8]) -> String {
    let escaped = |byte: &u8| match byte {
        b'"' | b'\\' | b'#' | b'$' => format!("\\x{byte:02X}"),
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    };
    format!("\"{}\"", bytes.iter().map(escaped).collect::<String>())
}

fn column_bytes(asked: &Asked) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let selected = asked.scan.spec.families.first()?;
    let qualifier = match &selected.columns {
        Columns::All => None,
        Columns::Only(qualifiers) => qualifiers.first().cloned(),
    };
    Some((selected.family.clone(), qualifier))
}

/// Family and qualifier with a colon between them.
fn column_name((family, qualifier): (Vec<u8>, Option<Vec<u8>>)) -> Vec<u8> {
    match qualifier {
        Some(qualifier) => [&family[..], b":", &qualifier].concat(),
        None => family,
    }
}

fn shell_text(asked: &Asked) -> String {
    let (scan, range) = (&asked.scan, asked.scan.spec.time_range);
    let mut options = Vec::new();
    for (name, row) in [("STARTROW", &scan.start_row), ("STOPROW", &scan.stop_row)] {
        if !row.is_empty() {
            options.push(format!("{name} => {}", quoted(row)));
        }
    }
    if let Some(column) = column_bytes(asked) {
        options.push(format!("COLUMNS => {}", quoted(&column_name(column))));
    }
    if !asked.filter.is_empty() {
        options.push(format!("FILTER => {}", quoted(asked.filter.as_bytes())));
    }
    if scan.spec.max_versions != 1 {
        options.push(format!("VERSIONS => {}", scan.spec.max_versions));
    }
    if range != TimeRange::ALL {
        options.push(format!("TIMERANGE => [{}, {}]", range.min, range.max));
    }
    options.push(format!("LIMIT => {}", asked.rows));
    format!("scan '{}', {{{}}}", asked.table, options.join(", "))
}

fn happybase_text(asked: &Asked) -> String {
    let scan = &asked.scan;
    let mut options = Vec::new();
    for (name, row) in [("row_start", &scan.start_row), ("row_stop", &scan.stop_row)] {
        if !row.is_empty() {
            options.push(format!("{name}=b{}", quoted(row)));
        }
    }
    if let Some(column) = column_bytes(asked) {
        options.push(format!("columns=[b{}]", quoted(&column_name(column))));
    }
    if !asked.filter.is_empty() {
        options.push(format!("filter=b{}", quoted(asked.filter.as_bytes())));
    }
    options.push(format!("limit={}", asked.rows));
    let mut text = String::new();
    if scan.spec.max_versions != 1 || scan.spec.time_range != TimeRange::ALL {
        text.push_str(
            "# HappyBase's scan has neither versions nor a time range: these are the newest cells.\n",
        );
    }
    let (table, options) = (&asked.table, options.join(", "));
    format!(
        "{text}table = connection.table('{table}')\nfor row, data in table.scan({options}):\n    print(row, data)"
    )
}

fn java_text(asked: &Asked) -> String {
    let (scan, range) = (&asked.scan, asked.scan.spec.time_range);
    // Java's strings have no bytes: Bytes.toBytesBinary reads the escapes, whose backslashes are doubled.
    let bytes = |bytes: &[u8]| format!("Bytes.toBytesBinary({})", quoted(bytes).replace("\\x", "\\\\x"));
    let mut lines = vec!["Scan scan = new Scan();".to_owned()];
    for (name, row) in [("withStartRow", &scan.start_row), ("withStopRow", &scan.stop_row)] {
        if !row.is_empty() {
            lines.push(format!("scan.{name}({});", bytes(row)));
        }
    }
    match column_bytes(asked) {
        Some((family, Some(qualifier))) => {
            lines.push(format!(
                "scan.addColumn({}, {});",
                bytes(&family),
                bytes(&qualifier)
            ));
        }
        Some((family, None)) => lines.push(format!("scan.addFamily({});", bytes(&family))),
        None => {}
    }
    if !asked.filter.is_empty() {
        lines.push(format!(
            "scan.setFilter(new ParseFilter().parseFilterString({}));",
            bytes(asked.filter.as_bytes())
        ));
    }
    if scan.spec.max_versions != 1 {
        lines.push(format!("scan.readVersions({});", scan.spec.max_versions));
    }
    if range != TimeRange::ALL {
        lines.push(format!("scan.setTimeRange({}L, {}L);", range.min, range.max));
    }
    lines.push(format!("scan.setLimit({});", asked.rows));
    lines.push(format!(
        "try (Table table = connection.getTable(TableName.valueOf(\"{}\"));\n     ResultScanner results = table.getScanner(scan)) {{\n  for (Result result : results) {{\n    System.out.println(result);\n  }}\n}}",
        asked.table
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &str)]) -> Made<Asked> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        asked("ns:t", &Params::new("/tables/ns:t/rows", given.collect()))
    }

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(behind_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(behind_prefix(b"\xff"), None);
        assert_eq!(behind_prefix(b""), None);
    }

    /// Goal: the texts for other clients say the same scan, whatever the bytes.
    #[test]
    fn the_scan_is_written_for_other_clients() {
        let asked = of(&[
            ("prefix", "a\"#\\x00"),
            ("column", "f:q\\x01"),
            ("filter", "PrefixFilter('a')"),
            ("versions", "3"),
            ("mintime", "5"),
            ("maxtime", "9"),
            ("rows", "7"),
        ])
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
        assert_eq!(
            shell_text(&asked),
            "scan 'ns:t', {STARTROW => \"a\\x22\\x23\\x00\", STOPROW => \"a\\x22\\x23\\x01\", COLUMNS => \"f:q\\x01\", \
             FILTER => \"PrefixFilter('a')\", VERSIONS => 3, TIMERANGE => [5, 9], LIMIT => 7}"
        );
        let python = happybase_text(&asked);
        assert!(
            python.contains("table.scan(row_start=b\"a\\x22\\x23\\x00\", row_stop=b\"a\\x22\\x23\\x01\", columns=[b\"f:q\\x01\"], filter=b\"PrefixFilter('a')\", limit=7)"),
            "{python}"
        );
        assert!(python.contains("neither versions nor a time range"), "{python}");
        let java = java_text(&asked);
        for line in [
            "scan.withStartRow(Bytes.toBytesBinary(\"a\\\\x22\\\\x23\\\\x00\"));",
            "scan.addColumn(Bytes.toBytesBinary(\"f\"), Bytes.toBytesBinary(\"q\\\\x01\"));",
            "scan.readVersions(3);",
            "scan.setTimeRange(5L, 9L);",
            "scan.setLimit(7);",
        ] {
            assert!(java.contains(line), "{line} is not in\n{java}");
        }
    }

    #[test]
    fn bad_parameters_are_refused_by_name() {
        for (given, words) in [
            (&[("rows", "101")][..], "rows is 101, and must be from 1 to 100"),
            (&[("versions", "0")], "versions is 0"),
            (&[("mintime", "9"), ("maxtime", "9")], "maxtime must be"),
            (&[("filter", "Nothing(")], "filter: "),
            (
                &[("prefix", "b"), ("start", "a")],
                "start must begin with the prefix",
            ),
            (&[("start", "\\x1")], "start has \\x without two"),
        ] {
            match of(given) {
                Err(Refusal::BadRequest(why)) => assert!(why.contains(words), "{why}"),
                other => panic!("{words}: {:?}", other.err()),
            }
        }
    }
}

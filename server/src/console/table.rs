//! One table: its schema, its hot rows, and its regions.

use std::time::Duration;

use basalt_engine::schema::{KeyLayout, TableName};
use maud::{Markup, html};

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page, Refusal, findings, region_list, show};
use crate::observe::heat::{self, HotKind, HotRow, HotTable};
use crate::server::Server;
use crate::thrift::schema;

/// Hot rows of each kind on the page.
const HOT_ROWS: usize = 10;

pub(super) fn page(server: &Server, name: &str, params: &Params) -> Made {
    let table = table_named(name)?;
    let (descriptor, state) = server.engine().describe_table(&table)?;
    let stats = server.engine().table_region_stats(&table)?;
    let note = server.rates().since();
    let sum = |figure: fn(&basalt_engine::engine::RegionStats) -> u64| stats.iter().map(figure).sum::<u64>();
    let name = table.to_string();
    let findings = findings::of_table(server, &table)?;
    let damaged = stats.iter().filter(|region| region.damaged_files > 0).count();
    let body = html! {
        @if damaged > 0 {
            p.alarm role="status" { (show::of(damaged as u64, "region")) " refused because a store file is missing or damaged: marked in the list, with the file on the region's page." }
        }
        p.figures {
            span { (state.as_str()) }
            span { b { (show::of(stats.len() as u64, "region")) } }
            span { b { (show::bytes(sum(|region| region.store_file_bytes))) } " in " (show::of(sum(|region| region.store_files), "store file")) }
            span { b { (show::bytes(sum(|region| region.memstore_bytes))) } " in memstores" }
            span { b { (show::count(sum(|region| region.reads))) } " reads, " b { (show::count(sum(|region| region.writes))) } " writes since the start" }
            span { a href=(show::path(&["tables", &name, "rows"])) { "Rows" } }
            span { a href=(show::link("/heat", &[("table", &name)])) { "Key visualizer" } }
            span { a href=(show::link("/slow", &[("table", &name)])) { "Slow requests" } }
        }
        h2 { "Schema" }
        pre.schema tabindex="0" aria-label="Schema as describe prints it" {
            @for line in schema::described(&descriptor) { (line) "\n" }
        }
        @if !findings.is_empty() {
            h2 #findings { "Findings" }
            (findings::listed(&findings))
        }
        (hot_rows(server, &table))
        h2 { "Regions" }
        (region_list::of_table(&stats, &note, params)?)
    };
    Ok(Page {
        place: Place::Tables,
        title: format!("Table {name}"),
        body,
    })
}

/// Where the hot rows of a table are.
pub(super) fn hot_rows_address(table: &TableName) -> String {
    format!("{}#hot-rows", show::path(&["tables", &table.to_string()]))
}

/// The rows that most requests go to, reads and writes side by side.
pub(super) fn hot_rows(server: &Server, table: &TableName) -> Markup {
    if !server.heat().is_on() {
        return html! {
            h2 #hot-rows { "Hot rows" }
            p.quiet { "They are not counted: " code { "key_visualizer.bytes" } " is 0." }
        };
    }
    let hot = server.heat().hot_rows(table);
    let [reads, writes] = &hot.kinds;
    let layout = server
        .engine()
        .describe_table(table)
        .ok()
        .and_then(|(table, _)| table.key_layout());
    let layout = layout.as_ref();
    html! {
        h2 #hot-rows { "Hot rows" }
        p {
            "Of the last " (show::duration(Duration::from_secs_f64(hot.seconds().floor()))) ". "
            "Counters are kept for " (heat::COUNTERS) " rows of each kind; a figure is too high by at most its error. "
            (sampling("reads", reads)) (sampling("writes", writes))
        }
        section.columns { (hot_rows_of("Reads", reads, &hot, layout)) (hot_rows_of("Writes", writes, &hot, layout)) }
    }
}

/// Says so if not each row was counted.
fn sampling(kind: &str, hot: &HotKind) -> Markup {
    let every = hot.total / hot.samples.max(1.0);
    html! {
        @if every > 1.005 {
            "One of " (format!("{every:.1}")) " " (kind) " was counted (" code { "key_visualizer.sample_every" }
            ", and fewer under load), so their figures are estimates. "
        }
    }
}

fn hot_rows_of(heading: &str, hot: &HotKind, of: &HotTable, layout: Option<&KeyLayout>) -> Markup {
    let kind = heading.to_lowercase();
    // A row that was asked for once is not hot, however few there are.
    let rows: Vec<&HotRow> = hot
        .rows
        .iter()
        .filter(|row| row.least() > 1.0)
        .take(HOT_ROWS)
        .collect();
    html! {
        @if hot.total <= 0.0 {
            p.quiet { "No " (kind) "." }
        } @else if rows.is_empty() {
            p.quiet { "No row stands out of " (show::of(hot.total.round() as u64, kind.trim_end_matches('s'))) "." }
        } @else {
            div.wide { table {
                caption { (heading) " by row, of " (show::count(hot.total.round() as u64)) " in all" }
                thead { tr {
                    th scope="col" { "row" } th scope="col" { "share" } th.n scope="col" { (kind) } th.n scope="col" { "a second" }
                    th.n scope="col" { "error at most" } th scope="col" { "counted since" }
                } }
                tbody { @for row in rows {
                    tr {
                        th scope="row" {
                            (show::key(&row.key, "empty")) @if row.is_cut() { " and longer" }
                            @if let Some(layout) = layout { br; span.quiet { (layout.show(&row.key).to_string()) } }
                        }
                        td { (show::meter(row.count, hot.total, &show::percent(row.count, hot.total))) }
                        td.n { (show::count(row.count.round() as u64)) }
                        td.n { (show::rate(row.count / of.seconds())) }
                        td.n { (show::count(row.error.round() as u64)) }
                        td { (show::time(row.since_ms)) }
                    }
                } }
            } }
        }
    }
}

/// A table's name, with a link to its page while the table exists.
pub(super) fn table_link(server: &Server, name: &str) -> Markup {
    let is_there =
        TableName::parse(name.as_bytes()).is_ok_and(|table| server.engine().describe_table(&table).is_ok());
    html! {
        @if is_there { a href=(show::path(&["tables", name])) { (name) } } @else { (name) " " span.quiet { "(gone)" } }
    }
}

/// A table's name in an address. An invalid name is treated as that of a missing table.
pub(super) fn table_named(name: &str) -> Result<TableName, Refusal> {
    TableName::parse(name.as_bytes()).map_err(|_| Refusal::NotFound(format!("There is no table {name}.")))
}

//! The hot rows of a table: a section of its page and of its map.

use std::time::Duration;

use basalt_engine::schema::{KeyLayout, TableName};
use maud::{Markup, html};

use super::show;
use crate::observe::heat::{self, HotKind, HotRow, HotTable};
use crate::server::Server;

/// Rows of each kind that are listed.
const LISTED: usize = 10;

/// Where the hot rows of a table are.
pub(super) fn address(table: &TableName) -> String {
    format!("{}#hot-rows", show::path(&["tables", &table.to_string()]))
}

/// The rows that most requests go to, reads and writes side by side.
pub(super) fn section(server: &Server, table: &TableName) -> Markup {
    if !server.load().heat.is_on() {
        return html! {
            h2 #hot-rows { "Hot rows" }
            p.quiet { "They are not counted: " code { "key_visualizer.bytes" } " is 0." }
        };
    }
    let hot = server.load().heat.hot_rows(table);
    let [reads, writes] = &hot.kinds;
    let layout = server
        .engine()
        .describe_table(table)
        .ok()
        .and_then(|(table, _)| table.key_layout());
    let layout = layout.as_ref();
    let share = |kind: &HotKind| kind.rows.first().map_or(0.0, |row| row.least() / kind.total);
    // The kind whose hottest row has the larger share stands first.
    let mut by_share = [("Reads", reads), ("Writes", writes)];
    by_share.sort_by(|left, right| share(right.1).total_cmp(&share(left.1)));
    html! {
        h2 #hot-rows { "Hot rows" }
        p {
            "Of the last " (show::duration(Duration::from_secs_f64(hot.seconds().floor()))) ". "
            "Counters are kept for " (heat::COUNTERS) " rows of each kind; a figure is too high by at most its error. "
            (sampling(reads, writes))
        }
        section.columns {
            @for (heading, of_this) in by_share { (of_kind(heading, of_this, &hot, layout)) }
        }
    }
}

/// Says so if not each row was counted.
fn sampling(reads: &HotKind, writes: &HotKind) -> Markup {
    let sampled: Vec<String> = [("reads", reads), ("writes", writes)]
        .into_iter()
        .map(|(kind, hot)| (kind, hot.total / hot.samples.max(1.0)))
        .filter(|(_, every)| *every > 1.005)
        .map(|(kind, every)| format!("one in {every:.1} {kind}"))
        .collect();
    html! {
        @if !sampled.is_empty() {
            "The server counts " (sampled.join(" and ")) " (" code { "key_visualizer.sample_every" }
            ", and fewer under load), so these figures are estimates. "
        }
    }
}

fn of_kind(heading: &str, hot: &HotKind, of: &HotTable, layout: Option<&KeyLayout>) -> Markup {
    let kind = heading.to_lowercase();
    // A row that was asked for once is not hot, however few there are.
    let rows: Vec<&HotRow> = hot
        .rows
        .iter()
        .filter(|row| row.least() > 1.0)
        .take(LISTED)
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
                        td.n { (show::rate(of.rate(row))) }
                        td.n { (show::count(row.error.round() as u64)) }
                        td { (show::time(row.since_ms)) }
                    }
                } }
            } }
        }
    }
}

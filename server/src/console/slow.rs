//! The slow log: calls that took long, and calls with large answers, in groups of one shape and one by one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maud::{Markup, html};

use super::frame::Place;
use super::paging::{Params, Part};
use super::table::table_link;
use super::{Made, Page, Refusal, show};
use crate::observe::slow_log::{Combine, FetchedRows, Kind, Query, Record};
use crate::server::Server;

/// Groups that are listed.
const GROUPS: usize = 20;
/// Thresholds that are listed.
const METHODS: usize = 12;
/// Characters of a region's encoded name that are shown; all of them are 32.
const REGION_CHARS: usize = 8;
/// Columns of the table of requests.
const COLUMNS: usize = 12;

pub(super) fn page(server: &Server, params: &Params) -> Made {
    let config = &server.settings().in_force().slow_log;
    let kind = match params.get("kind") {
        None | Some("slow") => Kind::Slow,
        Some("large") => Kind::Large,
        Some(other) => {
            return Err(Refusal::BadRequest(format!(
                "kind is {other}, and must be slow or large"
            )));
        }
    };
    let all = server.load().slow_log.find(&Query {
        kind,
        combine: Combine::All,
        region: None,
        client: None,
        table: params.get("table").map(str::to_owned),
        user: None,
        limit: usize::MAX,
    });
    let groups = groups(&all);
    let thresholds = thresholds(server);
    let shape = params.get("shape");
    let records: Vec<Arc<Record>> = all
        .into_iter()
        .filter(|record| shape.is_none_or(|shape| record.shape == shape))
        .filter(|record| params.get("method").is_none_or(|method| record.method == method))
        .collect();
    let part = Part::of(params, records.len())?;
    let to = |name: &str| {
        params.with(&[
            ("kind", name),
            ("page", ""),
            ("shape", ""),
            ("method", ""),
            ("table", ""),
        ])
    };
    let current = |own: Kind| (own == kind).then_some("page");
    let is_chosen = shape.is_some() || params.get("table").is_some();
    let body = html! {
        nav.tabs aria-label="Kinds" {
            a href=(to("slow")) aria-current=[current(Kind::Slow)] { "Slow requests" }
            a href=(to("large")) aria-current=[current(Kind::Large)] { "Large answers" }
        }
        p {
            @if config.enabled {
                "The last " (show::count(config.entries as u64)) " requests that took longer than "
                (show::duration(Duration::from_millis(config.threshold_ms))) " ("
                code { "slow_log.threshold_ms" } ")"
                @if config.percentile > 0.0 {
                    " or than " (config.percentile) " % of their method's of the last half minute (" code { "slow_log.percentile" }
                    "; one a second of each method)"
                }
                ", or had an answer larger than " (show::bytes(config.large_bytes)) " ("
                code { "slow_log.large_bytes" } "). They are in the log, too."
            } @else {
                "The slow log is off (" code { "slow_log.enabled" } ")."
            }
        }
        @if config.enabled && kind == Kind::Slow && !thresholds.is_empty() {
            p.quiet {
                "Now slow: "
                @for (index, (method, threshold)) in thresholds.iter().enumerate() {
                    @if index > 0 { ", " }
                    code { (method) } " beyond " (show::duration(*threshold))
                }
                "."
            }
        }
        @if is_chosen {
            p {
                "Only " @if let Some(method) = params.get("method") { code { (method) } " " }
                @if let Some(table) = params.get("table") { "of table " (table_link(server, table)) " " }
                @if let Some(shape) = shape { code { (shape) } " " }
                "· " a href=(to(params.get("kind").unwrap_or_default())) { "all of them" }
            }
        } @else if !records.is_empty() {
            (grouped(server, &groups, params))
        }
        (part.links(params, "requests"))
        @if records.is_empty() {
            p.quiet { @if kind == Kind::Slow { "No slow requests." } @else { "No large answers." } }
        } @else {
            div.wide { table {
                caption { "Requests, the newest first" }
                thead { tr {
                    th.n scope="col" { "request" } th.n scope="col" { "took" } th scope="col" { "method" } th scope="col" { "table" } th scope="col" { "region" }
                    th scope="col" { "client, user" } th.n scope="col" { "waited" } th.n scope="col" { "from disk" } th.n scope="col" { "rows read" }
                    th.n scope="col" { "returned" } th.n scope="col" { "answer" } th scope="col" { "began" }
                } }
                @for record in &records[part.first..part.end] { (row(server, record)) }
            } }
            p.quiet {
                "Below each request: its arguments. Waited: held back by a limit, or until a thread was free. From disk: blocks that were not in the block cache. Rows read: also those that a filter left out."
            }
        }
    };
    Ok(Page {
        place: Place::Slow,
        title: "Slow requests".to_owned(),
        body,
    })
}

/// The lower of both thresholds of each method that has one by percentile, the slowest first.
fn thresholds(server: &Server) -> Vec<(String, Duration)> {
    let fixed = Duration::from_millis(server.settings().in_force().slow_log.threshold_ms);
    let mut thresholds: Vec<(String, Duration)> = server
        .load()
        .slow_thresholds()
        .into_iter()
        .map(|(api, method, threshold)| (format!("{} {method}", api.as_str()), threshold.min(fixed)))
        .collect();
    thresholds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    thresholds.truncate(METHODS);
    thresholds
}

/// Two rows: the arguments are long, and would push columns out of the window.
fn row(server: &Server, record: &Record) -> Markup {
    let began_ms = u64::try_from(record.began_ms).unwrap_or_default();
    html! {
        tbody.pair { tr {
            td.n { (record.request) }
            td.n { (show::duration(record.took)) }
            th scope="row" { (record.method) }
            td { @if let Some(table) = &record.table { (table_link(server, table)) } }
            td { @if let Some(region) = &record.encoded_name { (region_link(server, region)) } }
            td { (record.client) @if !record.user.is_empty() { ", " (record.user) } }
            td.n { (show::duration(record.waited)) }
            td.n { (show::bytes(record.disk_bytes)) }
            td.n { @if let Some(rows) = record.rows { (show::count(rows.looked_at)) } }
            td.n { @if let Some(rows) = record.rows { (show::count(rows.returned)) } }
            td.n { (show::bytes(record.answer_bytes)) }
            td.when { (show::time(began_ms)) }
        }
        @if !record.arguments.is_empty() {
            tr { td {} td colspan=(COLUMNS - 1) { code.long { (record.arguments) } } }
        } }
    }
}

/// The beginning of a region's encoded name, with a link to its page while there is one.
fn region_link(server: &Server, name: &str) -> Markup {
    let short = html! { code title=(name) { (name.get(..REGION_CHARS).unwrap_or(name)) } };
    let is_there = server.has_tables() && server.engine().region_view(name).is_some();
    html! {
        @if is_there { a href=(show::path(&["regions", name])) { (short) } } @else { (short) }
        @if server.has_tables() && !is_there { " " span.quiet { "(gone)" } }
    }
}

/// Requests of one method, table and shape.
#[derive(Default)]
struct Group {
    took: Vec<Duration>,
    waited: Duration,
    disk_bytes: u64,
    /// Fetches only.
    rows: Option<FetchedRows>,
    last_ms: u64,
}

/// Key of a group: method, table, shape.
type Common = (&'static str, Option<String>, String);

/// The groups, those that took most time together first.
fn groups(records: &[Arc<Record>]) -> Vec<(Common, Group)> {
    let mut groups: BTreeMap<Common, Group> = BTreeMap::new();
    for record in records {
        let common = (record.method, record.table.clone(), record.shape.clone());
        let group = groups.entry(common).or_default();
        group.took.push(record.took);
        group.waited += record.waited;
        group.disk_bytes += record.disk_bytes;
        group.last_ms = group
            .last_ms
            .max(u64::try_from(record.began_ms).unwrap_or_default());
        if let Some(rows) = record.rows {
            let before = group.rows.unwrap_or_default();
            group.rows = Some(FetchedRows {
                looked_at: before.looked_at + rows.looked_at,
                returned: before.returned + rows.returned,
            });
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    for (_, group) in &mut groups {
        group.took.sort_unstable();
    }
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.took.iter().sum::<Duration>()));
    groups
}

fn grouped(server: &Server, groups: &[(Common, Group)], params: &Params) -> Markup {
    html! {
        div.wide { table {
            caption { "By shape: requests that differ in values only, those that took most time together first; waits, bytes from disk and rows are sums" }
            thead { tr {
                th scope="col" { "method" } th scope="col" { "table" } th scope="col" { "shape" } th.n scope="col" { "requests" }
                th.n scope="col" { "median" } th.n scope="col" { "longest" } th.n scope="col" { "waited" } th.n scope="col" { "from disk" }
                th.n scope="col" { "rows read" } th.n scope="col" { "returned" } th scope="col" { "last began" }
            } }
            tbody {
                @for ((method, table, shape), group) in groups.iter().take(GROUPS) {
                    tr {
                        th scope="row" { (method) }
                        td { @if let Some(table) = table { (table_link(server, table)) } }
                        td {
                            a href=(params.with(&[
                                ("shape", shape), ("method", method), ("table", table.as_deref().unwrap_or_default()), ("page", ""),
                            ])) { code.long { (shape) } }
                        }
                        td.n { (show::count(group.took.len() as u64)) }
                        td.n { (show::duration(group.took[group.took.len() / 2])) }
                        td.n { (show::duration(group.took.last().copied().unwrap_or_default())) }
                        td.n { (show::duration(group.waited)) }
                        td.n { (show::bytes(group.disk_bytes)) }
                        td.n { @if let Some(rows) = group.rows { (show::count(rows.looked_at)) } }
                        td.n { @if let Some(rows) = group.rows { (show::count(rows.returned)) } }
                        td.when { (show::time(group.last_ms)) }
                    }
                }
            }
        } }
    }
}

//! The slow log: calls that took long, and calls with large answers.

use maud::{Markup, html};

use super::frame::Place;
use super::paging::{Params, Part};
use super::table::table_link;
use super::{Made, Page, Refusal, show};
use crate::observe::slow_log::{Combine, Kind, Query, Record};
use crate::server::Server;

pub(super) fn page(server: &Server, params: &Params) -> Made {
    let config = &server.config().slow_log;
    let kind = match params.get("kind") {
        None | Some("slow") => Kind::Slow,
        Some("large") => Kind::Large,
        Some(other) => {
            return Err(Refusal::BadRequest(format!(
                "kind is {other}, and must be slow or large"
            )));
        }
    };
    let records = server.slow_log().find(&Query {
        kind,
        combine: Combine::All,
        region: None,
        client: None,
        table: None,
        user: None,
        limit: usize::MAX,
    });
    let part = Part::of(params, records.len())?;
    let to = |name: &str| params.with(&[("kind", name), ("page", "")]);
    let current = |own: Kind| (own == kind).then_some("page");
    let body = html! {
        nav.tabs aria-label="Kinds" {
            a href=(to("slow")) aria-current=[current(Kind::Slow)] { "Slow calls" }
            a href=(to("large")) aria-current=[current(Kind::Large)] { "Large answers" }
        }
        p {
            @if config.enabled {
                "The last " (show::count(config.entries as u64)) " calls that took longer than " (show::count(config.threshold_ms)) " ms ("
                code { "slow_log.threshold_ms" } ") or had an answer larger than " (show::bytes(config.large_bytes)) " ("
                code { "slow_log.large_bytes" } ")."
            } @else {
                "The slow log is off (" code { "slow_log.enabled" } ")."
            }
        }
        (part.links(params, "calls"))
        @if records.is_empty() { p.quiet { "There is none." } } @else {
            div.wide { table {
                caption { "Calls, the newest first" }
                thead { tr {
                    th.n scope="col" { "request" } th scope="col" { "began" } th scope="col" { "method" } th.n scope="col" { "took" } th.n scope="col" { "answer" } th scope="col" { "client" }
                    th scope="col" { "table" } th scope="col" { "region" } th scope="col" { "arguments" }
                } }
                tbody { @for record in &records[part.first..part.end] { (row(server, record)) } }
            } }
        }
    };
    Ok(Page {
        place: Place::Slow,
        title: "Slow requests".to_owned(),
        body,
    })
}

fn row(server: &Server, record: &Record) -> Markup {
    let began_ms = u64::try_from(record.began_ms).unwrap_or_default();
    html! {
        tr {
            td.n { (record.request) }
            td { (show::time(began_ms)) }
            th scope="row" { (record.method) }
            td.n { (show::duration(record.took)) }
            td.n { (show::bytes(record.answer_bytes)) }
            td { (record.client) }
            td { @if let Some(table) = &record.table { (table_link(server, table)) } }
            td { @if let Some(region) = &record.region { code { (region) } } }
            td { code.long { (record.arguments) } }
        }
    }
}

//! The first page of a gateway: whether the cluster answers, the last minutes as curves, the region servers,
//! and where the load is.

use std::time::{Duration, Instant};

use maud::{Markup, html};

use super::frame::Place;
use super::{Page, overview, show};
use crate::server::Server;
use crate::server::gateway::{Gateway, Seen};

pub(super) fn page(server: &Server, gateway: &Gateway) -> Page {
    let note = server.load().rates.since();
    let calls = note.calls(server.load().call_counts());
    let steps = server.load().rates.recent().steps();
    let body = html! {
        div #live-verdict data-live { (verdict(gateway)) }
        p.quiet {
            span #live-time data-live { "As of " (show::time(server.load().heat.now_ms())) "." } " The figure of each curve is of the last minute. "
            a href="/" { "Refresh" } " " span #live-state aria-live="polite" {}
        }
        section #live-curves.curves data-live aria-label="The last ten minutes" { (overview::curves(&steps)) }
        section #live-load data-live {
            (overview::called(&calls))
            p { a href="/heat" { "Key visualizer" } " · " a href="/slow" { "Slow requests" } }
        }
        section #live-cluster data-live {
            @if let Some(seen) = gateway.seen() { (servers(&seen)) }
        }
        section #live-state-of-server.columns data-live { (facts(server, gateway)) }
        script src="/assets/live.js" {}
    };
    Page {
        place: Place::Overview,
        title: "Basalt gateway".to_owned(),
        body,
    }
}

fn verdict(gateway: &Gateway) -> Markup {
    html! {
        @match gateway.away() {
            None => p #verdict.verdict.healthy role="status" {
                b { "The cluster answers." } " Its tables are those of " code { (gateway.key()) } "."
            }
            Some(reason) => section #verdict.verdict.unwell role="status" {
                p { b { "The cluster does not answer." } }
                ul { li { span.alarm { (reason) } } }
            }
        }
    }
}

/// The region servers, and how long they took to answer the last look.
fn servers(seen: &Seen) -> Markup {
    let since = Instant::now().saturating_duration_since(seen.at);
    html! {
        h2 { "Region servers" }
        p.quiet {
            "As of " (show::duration(since.max(Duration::from_secs(1)))) " ago. "
            @if let Ok(server) = &seen.meta { code { "hbase:meta" } " is on " (server) "." }
        }
        @if !seen.servers.is_empty() {
            div.wide { table {
                caption { "Each server is asked for its name" }
                thead { tr { th scope="col" { "server" } th.n scope="col" { "answer took" } } }
                tbody { @for server in &seen.servers {
                    tr {
                        th scope="row" { (server.name) }
                        @match &server.answer {
                            Ok(took) => td.n { (show::latency(*took)) },
                            Err(error) => td.n.alarm { (error) },
                        }
                    }
                } }
            } }
        }
    }
}

fn facts(server: &Server, gateway: &Gateway) -> Markup {
    let connections = &server.load().connections;
    let config = server.config();
    overview::pairs(
        "Gateway",
        &[
            ("version", html! { (env!("CARGO_PKG_VERSION")) }),
            ("commit", html! { code { (crate::COMMIT) } }),
            (
                "up since",
                html! { (show::moment(server.instance().started())) " (" (show::duration(server.instance().uptime())) ")" },
            ),
            ("cluster", html! { code { (gateway.key()) } }),
            (
                "calls",
                html! {
                    "at most " (show::duration(Duration::from_millis(config.gateway.deadline_ms))) " (" code { "gateway.deadline_ms" } ")"
                    @if gateway.is_read_only() { "; changes are refused (" code { "gateway.read_only" } ")" }
                },
            ),
            (
                "connections",
                html! {
                    (show::count(connections.main.open.get() as u64)) " of at most " (show::count(config.server.max_connections as u64))
                    " on the main port, " (show::count(connections.http.open.get() as u64)) " on the HTTP port"
                },
            ),
            (
                "open scanners",
                html! { (show::count(server.sessions().len() as u64)) },
            ),
        ],
    )
}

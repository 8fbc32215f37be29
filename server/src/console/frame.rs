//! The frame of every page: head, navigation, footer.

use maud::{DOCTYPE, Markup, html};

use super::Page;

/// Where a page stands in the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Overview,
    Tables,
    Heat,
    Findings,
    Cache,
    Jobs,
    Slow,
    Settings,
    Threads,
    /// Nowhere.
    Elsewhere,
}

const NAVIGATION: [(Place, &str, &str); 9] = [
    (Place::Overview, "/", "Overview"),
    (Place::Tables, "/tables", "Tables"),
    (Place::Heat, "/heat", "Key visualizer"),
    (Place::Findings, "/findings", "Findings"),
    (Place::Cache, "/cache", "Block cache"),
    (Place::Jobs, "/jobs", "Flushes and compactions"),
    (Place::Slow, "/slow", "Slow requests"),
    (Place::Settings, "/settings", "Configuration"),
    (Place::Threads, "/threads", "Threads and profiles"),
];

/// Pages of a gateway: those that are not about tables in this process.
const OF_GATEWAY: [Place; 5] = [
    Place::Overview,
    Place::Heat,
    Place::Slow,
    Place::Settings,
    Place::Threads,
];

/// The whole document, with the notices on top.
pub(super) fn frame(page: &Page, notices: &[String], is_gateway: bool) -> Markup {
    let is_there = |place: &Place| !is_gateway || OF_GATEWAY.contains(place);
    let navigation = NAVIGATION.iter().filter(|(place, ..)| is_there(place));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { @if page.title != "Basalt" { (page.title) " - " } "Basalt" }
                link rel="stylesheet" href="/assets/style.css";
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.brand href="/" { "Basalt" }
                    nav aria-label="Pages" {
                        ul {
                            @for (place, address, name) in navigation {
                                li { a href=(address) aria-current=[(*place == page.place).then_some("page")] { (name) } }
                            }
                        }
                    }
                }
                main id="main" tabindex="-1" {
                    @for notice in notices { p.notice role="note" { (notice) } }
                    h1 { (page.title) }
                    (page.body)
                }
                footer {
                    p { "Basalt " (crate::VERSION) ". Figures for Prometheus: " a href="/metrics" { "/metrics" } "." }
                }
            }
        }
    }
}

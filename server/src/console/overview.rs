//! The first page: version and uptime, load, memory, queues, and the hottest regions.

use basalt_engine::engine::RegionStats;
use maud::{Markup, html};

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page, jobs, region_list, show};
use crate::observe::rates::CallRate;
use crate::server::Server;

/// Methods and regions that are listed.
const LISTED: usize = 10;

#[expect(clippy::unnecessary_wraps, reason = "all pages have this form")]
pub(super) fn page(server: &Server, _params: &Params) -> Made {
    let stats = server.engine().region_stats();
    let note = server.rates().since();
    let calls = note.calls(server.call_counts());
    let body = html! {
        (state(server))
        section.columns {
            (facts(server, &stats))
            (memory(server))
        }
        (called(&calls))
        section.columns {
            (log(server))
            (background(server))
        }
        h2 { "Hottest regions" }
        (region_list::hottest(&stats, &note, LISTED))
        p { a href="/tables" { "All tables" } " · " a href="/heat" { "Key visualiser" } }
    };
    Ok(Page {
        place: Place::Overview,
        title: "Basalt".to_owned(),
        body,
    })
}

/// A line on top when something is wrong.
fn state(server: &Server) -> Markup {
    let (reasons, warnings) = (server.reasons(), server.warnings());
    html! {
        @if !server.is_ready() {
            p.alarm role="status" { "Calls are not accepted: the server is starting or stopping." }
        }
        @for reason in reasons.iter().chain(&warnings).chain(&server.damage()) {
            p.alarm role="status" { (reason) }
        }
        (jobs::paused(server))
    }
}

/// A table of names and values.
fn pairs(caption: &str, rows: &[(&str, Markup)]) -> Markup {
    html! {
        table {
            caption { (caption) }
            tbody {
                @for (name, value) in rows {
                    tr { th scope="row" { (name) } td { (value) } }
                }
            }
        }
    }
}

fn facts(server: &Server, stats: &[RegionStats]) -> Markup {
    let engine = server.engine();
    let disk = engine.disk();
    let user_tables = engine
        .tables()
        .iter()
        .filter(|(table, _)| !table.name.is_system())
        .count();
    let file_bytes: u64 = stats.iter().map(|region| region.store_file_bytes).sum();
    let files: u64 = stats.iter().map(|region| region.store_files).sum();
    pairs(
        "Server",
        &[
            (
                "version",
                html! {
                    (crate::VERSION)
                    @if let Some(rehearsal) = server.admission().capacity().rehearsal() { "; " (rehearsal) }
                },
            ),
            (
                "up since",
                html! { (show::moment(server.started())) " (" (show::duration(server.uptime())) ")" },
            ),
            ("Main port", html! { (server.main_address()) }),
            (
                "data directory",
                html! { code { (server.config().data.dir.display()) } },
            ),
            ("cluster id", html! { code { (engine.cluster_id()) } }),
            (
                "contents",
                html! {
                    (show::of(user_tables as u64, "table")) ", " (show::of(stats.len() as u64, "region")) ", "
                    (show::of(files, "store file")) ", " (show::bytes(file_bytes))
                },
            ),
            (
                "disk",
                html! { (show::bytes(disk.available_bytes)) " free of " (show::bytes(disk.total_bytes)) "; writes stop below " (show::bytes(disk.low_water_bytes)) },
            ),
            (
                "open scanners",
                html! { (show::count(server.sessions().len() as u64)) },
            ),
        ],
    )
}

fn memory(server: &Server) -> Markup {
    let engine = server.engine();
    let config = server.config();
    let cache = engine.cache_usage();
    let cached: u64 = cache.bytes.iter().sum::<u64>() + cache.pinned_bytes;
    let in_hand = server.admission().memory();
    let parts = [
        (
            "memstores",
            "memstore.total_bytes",
            engine.memstore_bytes(),
            config.memstore.total_bytes,
        ),
        ("block cache", "block_cache.bytes", cached, cache.capacity_bytes),
        (
            "calls in hand",
            "requests.memory_bytes",
            in_hand.used(),
            in_hand.limit(),
        ),
        (
            "key visualiser",
            "key_visualizer.bytes",
            server.heat().used_bytes() as u64,
            config.key_visualizer.bytes as u64,
        ),
    ];
    let (nonces, nonces_limit) = engine.nonce_bytes();
    html! {
        table {
            caption { "Memory" }
            thead { tr {
                th scope="col" { "part" } th.n scope="col" { "used" } th.n scope="col" { "budget" }
                th scope="col" { "share" } th scope="col" { "setting" }
            } }
            tbody {
                @for (name, setting, used, budget) in parts {
                    tr {
                        th scope="row" { (name) }
                        td.n { (show::bytes(used)) }
                        td.n { (show::bytes(budget)) }
                        td { (show::meter(used as f64, budget as f64, &show::percent(used as f64, budget as f64))) }
                        td { code { (setting) } }
                    }
                }
                tr {
                    th scope="row" { "nonces" }
                    td.n { (show::bytes(nonces)) }
                    td.n { (show::bytes(nonces_limit)) }
                    td { (show::meter(nonces as f64, nonces_limit as f64, &show::percent(nonces as f64, nonces_limit as f64))) }
                    td { "a share of " code { "memory.total_bytes" } }
                }
                tr {
                    th scope="row" { "held for scans" }
                    td.n { (show::bytes(engine.pinned_memstore_bytes())) }
                    td colspan="3" { "flushed memstores that open scans still read" }
                }
                tr {
                    th scope="row" { "kept for memstores" }
                    td.n { (show::bytes(engine.kept_memstore_bytes())) }
                    td colspan="3" { "memory of flushed memstores, for the next ones" }
                }
            }
        }
    }
}

fn called(calls: &[CallRate]) -> Markup {
    let sum = |figure: fn(&CallRate) -> f64| calls.iter().map(figure).sum::<f64>();
    let (all, failed) = (
        sum(|call| call.calls_per_second),
        sum(|call| call.failed_per_second),
    );
    html! {
        h2 { "Calls" }
        p.figures {
            span { b { (show::rate(all)) } " a second" }
            span class=[(failed > 0.0).then_some("alarm")] { b { (show::rate(failed)) } " errors a second" }
        }
        @if calls.is_empty() {
            p.quiet { "Nobody has called yet." }
        } @else {
            table {
                caption { "Busiest methods, over the last seconds" }
                thead { tr {
                    th scope="col" { "method" } th scope="col" { "interface" } th.n scope="col" { "a second" } th.n scope="col" { "calls" }
                    th.n scope="col" { "errors a second" } th.n scope="col" { "errors" }
                } }
                tbody {
                    @for call in calls.iter().take(LISTED) {
                        tr {
                            th scope="row" { (call.method) }
                            td { (call.api.as_str()) }
                            td.n { (show::rate(call.calls_per_second)) }
                            td.n { (show::count(call.calls)) }
                            td.n { (show::rate(call.failed_per_second)) }
                            td.n { (show::count(call.failed)) }
                        }
                    }
                }
            }
        }
    }
}

fn log(server: &Server) -> Markup {
    let engine = server.engine();
    let counters = engine.counters();
    let (first, last) = engine.wal_segments();
    let (read_point, assigned) = engine.read_point();
    let oldest = engine
        .oldest_unflushed()
        .map_or_else(|| "none".to_owned(), show::duration);
    pairs(
        "Write-ahead log",
        &[
            ("edits", html! { (show::count(counters.wal_appends.get())) }),
            (
                "written",
                html! {
                    (show::bytes(counters.wal_bytes.get())) " in " (show::count(counters.wal_groups.get())) " groups, "
                    (show::count(counters.wal_syncs.get())) " syncs"
                },
            ),
            (
                "segments",
                html! { (first) " to " (last) ", " (show::bytes(server.config().wal.segment_bytes)) " each" },
            ),
            ("oldest edit not in a file", html! { (oldest) }),
            (
                "edits not visible yet",
                html! { (show::count(assigned.0.saturating_sub(read_point.0))) },
            ),
        ],
    )
}

fn background(server: &Server) -> Markup {
    let engine = server.engine();
    let (queues, counters) = (engine.queues(), engine.counters());
    let compactions = counters.minor_compactions.get() + counters.major_compactions.get();
    let rows = [
        (
            "flushes",
            queues.flushes,
            counters.flushes.get(),
            counters.flush_failures.get(),
        ),
        (
            "compactions",
            queues.compactions,
            compactions,
            counters.compaction_failures.get(),
        ),
        ("splits", queues.splits, counters.splits.get(), 0),
    ];
    html! {
        table {
            caption { "Background work" }
            thead { tr {
                th scope="col" { "job" } th.n scope="col" { "waiting or running" } th.n scope="col" { "done" } th.n scope="col" { "failed" }
            } }
            tbody {
                @for (name, queued, done, failed) in rows {
                    tr {
                        th scope="row" { (name) } td.n { (queued) } td.n { (show::count(done)) }
                        td.n class=[(failed > 0).then_some("alarm")] { (show::count(failed)) }
                    }
                }
            }
        }
        p { a href="/jobs" { "What runs, and what ran last" } }
    }
}

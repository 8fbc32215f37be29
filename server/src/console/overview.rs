//! The first page: a verdict, the last minutes as curves, what the server is, its memory and budgets, and
//! where the load is.
//!
//! The parts with `data-live` are kept up to date by `assets/live.js`; without scripts there is a link.

use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::engine::RegionStats;
use maud::{Markup, html};

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page, curve, region_list, rehearsal, show, verdict};
use crate::observe::rates::CallRate;
use crate::observe::recent::{Step, quantile};
use crate::server::Server;

/// Methods and regions that are listed.
const LISTED: usize = 10;

#[expect(clippy::unnecessary_wraps, reason = "all pages have this form")]
pub(super) fn page(server: &Server, _params: &Params) -> Made {
    let stats = server.engine().region_stats();
    let note = server.load().rates.since();
    let calls = note.calls(server.load().call_counts());
    let steps = server.load().rates.recent().steps();
    let body = html! {
        div #live-verdict data-live {
            (verdict::verdict(server, &stats, &note, &steps))
        }
        p.quiet {
            span #live-time data-live { "As of " (show::time(server.load().heat.now_ms())) "." } " The figure of each curve is of the last minute. "
            a href="/" { "Refresh" } " " span #live-state aria-live="polite" {}
        }
        section #live-curves.curves data-live aria-label="The last ten minutes" { (curves(&steps)) }
        @if let Some(rehearsal) = server.admission().capacity().rehearsal() {
            section #live-rehearsal data-live { (rehearsal::section(server, rehearsal, &stats, &note)) }
        }
        section #live-load data-live {
            (called(&calls))
            h2 { "Hottest regions" }
            (region_list::hottest(&stats, &note, LISTED))
            p { a href="/tables" { "All tables" } " · " a href="/heat" { "Key visualizer" } " · " a href="/slow" { "Slow requests" } }
        }
        section #live-state-of-server.columns data-live {
            (facts(server, &stats))
            (memory(server, &steps))
            (log(server))
            (background(server.engine()))
        }
        script src="/assets/live.js" {}
    };
    Ok(Page {
        place: Place::Overview,
        title: "Basalt".to_owned(),
        body,
    })
}

/// Requests, errors, latencies and the processor of the last minutes.
pub(super) fn curves(steps: &[Step]) -> Markup {
    let minute = verdict::minute(steps);
    let seconds = minute
        .iter()
        .map(|step| step.length.as_secs_f64())
        .sum::<f64>()
        .max(1.0);
    let per_second = |figure: fn(&Step) -> u64| minute.iter().map(figure).sum::<u64>() as f64 / seconds;
    let each = |figure: &dyn Fn(&Step) -> Option<f64>| steps.iter().map(figure).collect::<Vec<_>>();
    let rates = |figure: fn(&Step) -> u64| each(&|step| Some(step.rate(figure(step))));
    let latency =
        |part: f64| each(&|step| quantile(std::iter::once(step), part).map(|took| took.as_secs_f64()));
    let (p50, p99) = (quantile(minute.iter(), 0.5), quantile(minute.iter(), 0.99));
    let shown = |took: Option<Duration>| took.map_or_else(|| "-".to_owned(), show::latency);
    let cpu = minute.iter().fold(0.0, |sum, step| sum + step.cpu.as_secs_f64()) / seconds;
    let memory = steps.last().map_or(0, |step| step.memory_bytes);
    html! {
        (curve::curve("Requests", &html! { (show::rate(per_second(|step| step.calls))) " a second" }, &[rates(|step| step.calls)], show::rate))
        (curve::curve("Errors", &html! { (show::rate(per_second(|step| step.failed))) " a second" }, &[rates(|step| step.failed)], show::rate))
        (curve::curve(
            "Latency", &html! { "p50 " (shown(p50)) ", p99 (dashed) " (shown(p99)) }, &[latency(0.5), latency(0.99)],
            |seconds| show::latency(Duration::from_secs_f64(seconds)),
        ))
        (curve::curve(
            "Processor", &html! { (format!("{cpu:.2}")) " of " (processors()) }, &[each(&|step| Some(step.processors()))],
            |processors| format!("{processors:.2}"),
        ))
        (curve::curve(
            "Memory", &html! { (show::bytes(memory)) }, &[each(&|step| Some(step.memory_bytes as f64))],
            |bytes| show::bytes(bytes as u64),
        ))
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A table of names and values.
pub(super) fn pairs(caption: &str, rows: &[(&str, Markup)]) -> Markup {
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
    let dir = &server.config().data.dir;
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
    let system = rustix::system::uname();
    let connections = &server.load().connections;
    pairs(
        "Server",
        &[
            ("version", html! { (env!("CARGO_PKG_VERSION")) }),
            ("commit", html! { code { (crate::COMMIT) } }),
            (
                "host",
                html! { (system.nodename().to_string_lossy()) ", process " (std::process::id()) },
            ),
            (
                "up since",
                html! { (show::moment(server.instance().started())) " (" (show::duration(server.instance().uptime())) ")" },
            ),
            ("main port", html! { (server.instance().main_address()) }),
            (
                "connections",
                html! {
                    (show::count(connections.main.open.get() as u64)) " of at most " (show::count(server.config().server.max_connections as u64))
                    " on the main port, " (show::count(connections.http.open.get() as u64)) " on the HTTP port"
                },
            ),
            (
                "open scanners",
                html! { (show::count(server.sessions().len() as u64)) },
            ),
            ("data directory", html! { code { (absolute.display()) } }),
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
        ],
    )
}

fn memory(server: &Server, steps: &[Step]) -> Markup {
    let engine = server.engine();
    let config = server.config();
    let cache = engine.cache_usage();
    let cached: u64 = cache.bytes.iter().sum::<u64>() + cache.pinned_bytes;
    let in_hand = server.admission().memory();
    let (nonces, nonces_limit) = engine.nonce_bytes();
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
            "key visualizer and hot rows",
            "key_visualizer.bytes",
            server.load().heat.used_bytes() as u64,
            config.key_visualizer.bytes as u64,
        ),
        ("nonces", "a share of memory.total_bytes", nonces, nonces_limit),
    ];
    let (pinned, kept) = (engine.pinned_memstore_bytes(), engine.kept_memstore_bytes());
    html! {
        div.wide { table {
            caption {
                "Memory" @if let Some(step) = steps.last() { ": " (show::bytes(step.memory_bytes)) " of the process" }
            }
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
                @if pinned > 0 { tr {
                    th scope="row" { "pinned by scans" }
                    td.n { (show::bytes(pinned)) }
                    td colspan="3" { "flushed memstores that open scans still read" }
                } }
                @if kept > 0 { tr {
                    th scope="row" { "kept for memstores" }
                    td.n { (show::bytes(kept)) }
                    td colspan="3" { "memory of flushed memstores, for the next ones" }
                } }
            }
        } }
    }
}

pub(super) fn called(calls: &[CallRate]) -> Markup {
    let busy: Vec<&CallRate> = calls
        .iter()
        .filter(|call| call.calls_per_second > 0.0)
        .take(LISTED)
        .collect();
    let all: u64 = calls.iter().map(|call| call.calls).sum();
    html! {
        h2 { "Requests" }
        @if busy.is_empty() {
            p.quiet { "No requests in the last seconds, " (show::count(all)) " since the start." }
        } @else {
            div.wide { table {
                caption { "Busiest methods over the last seconds; " (show::count(all)) " requests since the start" }
                thead { tr {
                    th scope="col" { "method" } th scope="col" { "interface" } th.n scope="col" { "a second" } th.n scope="col" { "since the start" }
                    th.n scope="col" { "errors a second" } th.n scope="col" { "errors since the start" }
                } }
                tbody {
                    @for call in busy {
                        tr {
                            th scope="row" { (call.method) }
                            td { (call.api.as_str()) }
                            td.n { (show::rate(call.calls_per_second)) }
                            td.n { (show::count(call.calls)) }
                            td.n class=[(call.failed_per_second > 0.0).then_some("alarm")] { (show::rate(call.failed_per_second)) }
                            td.n { (show::count(call.failed)) }
                        }
                    }
                }
            } }
        }
    }
}

fn log(server: &Server) -> Markup {
    let engine = server.engine();
    let counters = engine.counters();
    if counters.wal_appends.get() == 0 {
        return html! {};
    }
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

fn background(engine: &Engine) -> Markup {
    let (queues, counters) = (engine.queues(), engine.counters());
    let compactions = counters.minor_compactions.get() + counters.major_compactions.get();
    let mut rows = vec![
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
    rows.retain(|(_, queued, done, failed)| *queued > 0 || *done > 0 || *failed > 0);
    html! {
        div {
            @if rows.is_empty() {
                p.quiet { "No flush or compaction has run yet." }
            } @else { div.wide { table {
                caption { "Background work since the start" }
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
            } } }
            p { a href="/jobs" { "What runs, and what ran last" } }
        }
    }
}

//! The block cache, by priority, and the bloom filters that keep reads away from files.

use basalt_engine::Engine;
use maud::html;

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page, show};

/// In the order of the cache's figures, with the guaranteed share of each.
const PRIORITIES: [(&str, &str, &str); 3] = [
    (
        "single access",
        "25 %",
        "new blocks; when room is needed, those read again move on",
    ),
    ("multi access", "50 %", "blocks that were read again"),
    ("in memory", "25 %", "blocks of IN_MEMORY families"),
];

#[expect(clippy::unnecessary_wraps, reason = "all pages have this form")]
pub(super) fn page(engine: &Engine, _params: &Params) -> Made {
    let cache = engine.cache_usage();
    let counters = engine.counters();
    let hits: u64 = cache.hits.iter().sum();
    let used: u64 = cache.bytes.iter().sum::<u64>() + cache.pinned_bytes;
    let (used, capacity) = (used as f64, cache.capacity_bytes as f64);
    let handles = engine.handle_usage();
    let (asked, skipped) = (counters.bloom_checks.get(), counters.bloom_skips.get());
    let body = html! {
        p.figures {
            span { b { (show::bytes(used as u64)) } " of " (show::bytes(cache.capacity_bytes)) " used" }
            span { b { (show::percent(hits as f64, (hits + cache.misses) as f64)) } " of reads found their block" }
            span { b { (show::count(hits)) } " hits" }
            span { b { (show::count(cache.misses)) } " misses, read from disk" }
        }
        div.wide { table {
            caption { "Blocks by priority, since the start" }
            thead { tr {
                th scope="col" { "priority" } th scope="col" { "what" } th.n scope="col" { "its right" } th.n scope="col" { "bytes" } th scope="col" { "of the cache" }
                th.n scope="col" { "blocks" } th.n scope="col" { "hits" } th.n scope="col" { "evicted" }
            } }
            tbody {
                @for (index, (name, right, what)) in PRIORITIES.iter().enumerate() {
                    @let bytes = cache.bytes[index];
                    tr {
                        th scope="row" { (name) }
                        td { (what) }
                        td.n { (right) }
                        td.n { (show::bytes(bytes)) }
                        td { (show::meter(bytes as f64, capacity, &show::percent(bytes as f64, capacity))) }
                        td.n { (show::count(cache.blocks[index])) }
                        td.n { (show::count(cache.hits[index])) }
                        td.n { (show::count(cache.evictions[index])) }
                    }
                }
                tr {
                    th scope="row" { "pinned" }
                    td { "index and bloom blocks that open files keep" }
                    td.n { "25 % at most" }
                    td.n { (show::bytes(cache.pinned_bytes)) }
                    td { (show::meter(cache.pinned_bytes as f64, capacity, &show::percent(cache.pinned_bytes as f64, capacity))) }
                    td.n { "-" } td.n { "not counted" } td.n { "-" }
                }
            }
        } }
        table {
            caption { "Other figures, since the start" }
            tbody {
                tr { th scope="row" { "blocks put in" } td.n { (show::count(cache.insertions)) } }
                tr { th scope="row" { "of these, still in the cache" } td.n { (show::count(cache.blocks.iter().sum())) } }
                tr { th scope="row" { "evicted by others" } td.n { (show::count(cache.evictions.iter().sum())) } }
                tr { th scope="row" { "removed with their file, or pinned" } td.n { (show::count(cache.removals)) } }
                tr { th scope="row" { "blocks too large to be put in" } td.n { (show::count(cache.rejections)) } }
                tr {
                    th scope="row" { "store files open" }
                    td.n { (show::count(handles.open as u64)) " of at most " (show::count(handles.limit as u64)) }
                }
                tr { th scope="row" { "store files closed to open others" } td.n { (show::count(handles.evictions)) } }
                tr { th scope="row" { "bloom filter checks" } td.n { (show::count(asked)) } }
                tr {
                    th scope="row" { "bloom filter negatives: files not read" }
                    td.n { (show::count(skipped)) " (" (show::percent(skipped as f64, asked as f64)) ")" }
                }
                tr { th scope="row" { "bloom filter false positives: files read in vain" } td.n { (show::count(counters.bloom_false_positives.get())) } }
            }
        }
    };
    Ok(Page {
        place: Place::Cache,
        title: "Block cache".to_owned(),
        body,
    })
}

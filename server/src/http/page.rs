//! The status page: what runs, which tables and regions there are, and which of them work.

use std::fmt::Write as _;

use basalt_engine::engine::RegionStats;
use basalt_engine::schema::{Escaped, TableDescriptor, TableName, TableState};

use crate::api::Server;

/// Regions on the page; a line says how many more there are.
const REGIONS_SHOWN: usize = 500;

/// The page.
pub(super) fn status(server: &Server) -> String {
    let mut page = String::with_capacity(16 << 10);
    page.push_str(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Basalt</title><style>\
         body{font:15px/1.4 system-ui,sans-serif;margin:2rem;color:#222}table{border-collapse:collapse;margin:.5rem 0 2rem}\
         th,td{text-align:left;padding:.25rem .8rem;border-bottom:1px solid #ddd}td.n,th.n{text-align:right}\
         code{font:13px ui-monospace,monospace}h1{font-size:1.5rem}h2{font-size:1.1rem}\
         .bar{display:inline-block;height:.7rem;background:#c2410c}</style></head><body><h1>Basalt</h1>",
    );
    overview(&mut page, server);
    let stats = server.engine().region_stats();
    tables(&mut page, server, &stats);
    regions(&mut page, &stats);
    page.push_str("<p>Figures for Prometheus are at <a href=\"/metrics\">/metrics</a>.</p></body></html>");
    page
}

/// Appends formatted text; a `String` takes everything.
macro_rules! put {
    ($page:expr, $($arguments:tt)*) => {
        write!($page, $($arguments)*).expect("writing to a string cannot fail")
    };
}

fn overview(page: &mut String, server: &Server) {
    let engine = server.engine();
    let cache = engine.cache_usage();
    let hits: u64 = cache.hits.iter().sum();
    let queues = engine.queues();
    page.push_str("<table>");
    let mut row = |name: &str, value: String| put!(page, "<tr><th>{name}</th><td>{}</td></tr>", html(&value));
    row("version", env!("CARGO_PKG_VERSION").into());
    if let Some(rehearsal) = server.admission().capacity().rehearsal() {
        row("rehearsal", rehearsal.to_string());
    }
    row("cluster id", engine.cluster_id().to_string());
    row("data directory", server.config().data.dir.display().to_string());
    row(
        "memstores",
        format!(
            "{} of {}",
            bytes(engine.memstore_bytes()),
            bytes(server.config().memstore.total_bytes)
        ),
    );
    row(
        "block cache",
        format!(
            "{} of {}",
            bytes(cache.bytes.iter().sum::<u64>() + cache.pinned_bytes),
            bytes(cache.capacity_bytes)
        ),
    );
    row("block cache hit ratio", ratio(hits, hits + cache.misses));
    row(
        "background jobs",
        format!(
            "{} flushes, {} compactions, {} splits",
            queues.flushes, queues.compactions, queues.splits
        ),
    );
    let disk = engine.disk();
    row(
        "disk",
        match disk.suspended {
            Some(why) => format!("disk space: {why}"),
            None => format!(
                "{} free of {}; writes stop below {}",
                bytes(disk.available_bytes),
                bytes(disk.total_bytes),
                bytes(disk.low_water_bytes)
            ),
        },
    );
    row("open scanners", server.sessions().len().to_string());
    page.push_str("</table>");
}

fn tables(page: &mut String, server: &Server, stats: &[RegionStats]) {
    page.push_str(
        "<h2>Tables</h2><table><tr><th>table</th><th>state</th><th>families</th><th class=n>regions</th>\
         <th class=n>reads</th><th class=n>writes</th><th class=n>memstores</th><th class=n>store files</th></tr>",
    );
    for (table, state) in server.engine().tables() {
        if !table.name.is_system() {
            table_row(page, &table, state, stats);
        }
    }
    page.push_str("</table>");
}

fn table_row(page: &mut String, table: &TableDescriptor, state: TableState, stats: &[RegionStats]) {
    let of_table = || stats.iter().filter(|stats| stats.region.table == table.name);
    let sum = |figure: fn(&RegionStats) -> u64| of_table().map(figure).sum::<u64>();
    let families: Vec<String> = table
        .families
        .iter()
        .map(|family| Escaped(&family.name).to_string())
        .collect();
    put!(
        page,
        "<tr><td>{}</td><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td>\
         <td class=n>{}</td><td class=n>{}</td></tr>",
        html(&table.name.to_string()),
        state.as_str(),
        html(&families.join(", ")),
        of_table().count(),
        sum(|stats| stats.reads),
        sum(|stats| stats.writes),
        bytes(sum(|stats| stats.memstore_bytes)),
        bytes(sum(|stats| stats.store_file_bytes)),
    );
}

/// Regions in key order, with a bar for each one's share of its table's writes: the hot one is the long one.
fn regions(page: &mut String, stats: &[RegionStats]) {
    page.push_str(
        "<h2>Regions</h2><table><tr><th>table</th><th>start key</th><th>end key</th><th class=n>reads</th>\
         <th class=n>writes</th><th>share of the table's writes</th><th class=n>memstores</th><th class=n>store files</th>\
         <th class=n>size</th></tr>",
    );
    for region in stats.iter().take(REGIONS_SHOWN) {
        let share = share_of_writes(region, stats);
        put!(
            page,
            "<tr><td>{}</td><td><code>{}</code></td><td><code>{}</code></td><td class=n>{}</td><td class=n>{}</td>\
             <td><span class=bar style=\"width:{:.1}rem\"></span> {:.0} %</td><td class=n>{}</td><td class=n>{}</td>\
             <td class=n>{}</td></tr>",
            html(&region.region.table.to_string()),
            html(&Escaped(&region.region.start).to_string()),
            html(&Escaped(&region.region.end).to_string()),
            region.reads,
            region.writes,
            share * 10.0,
            share * 100.0,
            bytes(region.memstore_bytes),
            region.store_files,
            bytes(region.store_file_bytes),
        );
    }
    page.push_str("</table>");
    if let Some(more) = stats.len().checked_sub(REGIONS_SHOWN).filter(|more| *more > 0) {
        put!(page, "<p>{more} more regions are not shown.</p>");
    }
}

fn share_of_writes(region: &RegionStats, stats: &[RegionStats]) -> f64 {
    let of = |table: &TableName| {
        stats
            .iter()
            .filter(|stats| stats.region.table == *table)
            .map(|stats| stats.writes)
            .sum::<u64>()
    };
    match of(&region.region.table) {
        0 => 0.0,
        all => region.writes as f64 / all as f64,
    }
}

fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 {
        "no reads yet".into()
    } else {
        format!("{:.1} %", part as f64 * 100.0 / whole as f64)
    }
}

fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Text as HTML: row keys and names are somebody else's bytes.
fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_others_are_no_markup() {
        assert_eq!(html("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(
            (bytes(0), bytes(1023), bytes(1536)),
            ("0 B".into(), "1023 B".into(), "1.5 KiB".into())
        );
    }
}

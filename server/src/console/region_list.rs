//! Regions as rows of a table.

use std::cmp::Reverse;

use basalt_engine::engine::RegionStats;
use maud::{Markup, html};

use super::paging::{Column, Params, Part, number, text};
use super::{Made, show};
use crate::observe::rates::Note;

/// Columns by which regions can be sorted; the default is the order of keys.
const COLUMNS: &[Column] = &[
    text("key", "Start key"),
    text("name", "Encoded name"),
    number("reads", "Reads/s"),
    number("writes", "Writes/s"),
    number("all_reads", "Reads"),
    number("all_writes", "Writes"),
    number("memstore", "Memstore"),
    number("files", "Files"),
    number("size", "Size"),
];

/// A region and its reads and writes a second.
type Rated<'a> = (&'a RegionStats, [f64; 2]);

fn rated<'a>(stats: &'a [RegionStats], note: &Note) -> Vec<Rated<'a>> {
    let rate = |region: &'a RegionStats| (region, note.region(region.region.id, region.reads, region.writes));
    stats.iter().map(rate).collect()
}

/// A rate that can be compared, to the hundredth.
fn hundredths(rate: f64) -> u64 {
    (rate * 100.0) as u64
}

/// One page of a table's regions. `stats` are in key order.
pub(super) fn of_table(stats: &[RegionStats], note: &Note, params: &Params) -> Made<Markup> {
    let sorted = params.sort(COLUMNS)?;
    let part = Part::of(params, stats.len())?;
    let mut rows = rated(stats, note);
    match sorted.name {
        "name" => rows.sort_by(|left, right| left.0.region.encoded_name.cmp(&right.0.region.encoded_name)),
        "reads" => rows.sort_by_key(|(_, rates)| Reverse(hundredths(rates[0]))),
        "writes" => rows.sort_by_key(|(_, rates)| Reverse(hundredths(rates[1]))),
        "all_reads" => rows.sort_by_key(|(region, _)| Reverse(region.reads)),
        "all_writes" => rows.sort_by_key(|(region, _)| Reverse(region.writes)),
        "memstore" => rows.sort_by_key(|(region, _)| Reverse(region.memstore_bytes)),
        "files" => rows.sort_by_key(|(region, _)| Reverse(region.store_files)),
        "size" => rows.sort_by_key(|(region, _)| Reverse(region.store_file_bytes)),
        _ => {}
    }
    let most = rows.iter().map(|(_, rates)| rates[1]).fold(0.0, f64::max);
    Ok(html! {
        (part.links(params, "regions"))
        div.wide { table {
            caption { "Regions: requests over the last seconds, and since the start" }
            (params.head(COLUMNS, sorted))
            tbody {
                @for (region, rates) in &rows[part.first..part.end] {
                    tr {
                        td { (show::key(&region.region.start, "first")) }
                        th scope="row" { a href=(address(region)) { code { (region.region.encoded_name) } } }
                        td.n { (show::rate(rates[0])) }
                        td.n { (show::meter(rates[1], most, &show::rate(rates[1]))) }
                        td.n { (show::count(region.reads)) }
                        td.n { (show::count(region.writes)) }
                        td.n { (show::bytes(region.memstore_bytes)) }
                        td.n class=[(region.damaged_files > 0).then_some("alarm")] {
                            (show::count(region.store_files))
                            @if region.damaged_files > 0 { " and " (show::count(region.damaged_files)) " damaged" }
                        }
                        td.n { (show::bytes(region.store_file_bytes)) }
                    }
                }
            }
        } }
        (part.links(params, "regions"))
    })
}

/// The regions of all tables that were asked for most.
pub(super) fn hottest(stats: &[RegionStats], note: &Note, count: usize) -> Markup {
    let mut rows = rated(stats, note);
    rows.sort_by_cached_key(|(region, rates)| {
        Reverse((hundredths(rates[0] + rates[1]), region.reads + region.writes))
    });
    let all: f64 = rows.iter().map(|(_, rates)| rates[0] + rates[1]).sum();
    rows.truncate(count);
    rows.retain(|(_, rates)| rates[0] + rates[1] > 0.0);
    html! {
        @if rows.is_empty() {
            p.quiet { "No region was read from or written to in the last seconds." }
        } @else {
            div.wide { table {
                caption { "Regions with most requests over the last seconds" }
                thead { tr {
                    th scope="col" { "region" } th scope="col" { "table" } th scope="col" { "keys" } th.n scope="col" { "reads/s" }
                    th.n scope="col" { "writes/s" } th scope="col" { "share of all" }
                } }
                tbody {
                    @for (region, rates) in rows {
                        tr {
                            th scope="row" { a href=(address(region)) { code { (region.region.encoded_name) } } }
                            td { a href=(show::path(&["tables", &region.region.table.to_string()])) { (region.region.table) } }
                            td { (show::range(&region.region.start, &region.region.end)) }
                            td.n { (show::rate(rates[0])) }
                            td.n { (show::rate(rates[1])) }
                            td { (show::meter(rates[0] + rates[1], all, &show::percent(rates[0] + rates[1], all))) }
                        }
                    }
                }
            } }
        }
    }
}

/// Where a region's page is.
fn address(region: &RegionStats) -> String {
    show::path(&["regions", &region.region.encoded_name])
}

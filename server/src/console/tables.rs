//! All tables.

use std::cmp::Reverse;
use std::collections::HashMap;

use basalt_engine::schema::{Escaped, TableName};
use maud::html;

use super::frame::Place;
use super::paging::{Column, Params, Part, number, text};
use super::{Made, Page, show};
use crate::server::Server;

const COLUMNS: &[Column] = &[
    text("name", "Table"),
    text("state", "State"),
    text("families", "Families"),
    number("regions", "Regions"),
    number("reads", "Reads/s"),
    number("writes", "Writes/s"),
    number("memstore", "Memstores"),
    number("files", "Files"),
    number("size", "Size"),
];

/// Figures of a table's regions, added up.
#[derive(Clone, Copy, Default)]
struct Sums {
    regions: u64,
    rates: [f64; 2],
    memstore_bytes: u64,
    files: u64,
    file_bytes: u64,
}

pub(super) fn page(server: &Server, params: &Params) -> Made {
    let note = server.load().rates.since();
    let mut sums: HashMap<TableName, Sums> = HashMap::new();
    for region in server.engine().region_stats() {
        let rates = note.region(region.region.id, region.reads, region.writes);
        let sum = sums.entry(region.region.table).or_default();
        sum.regions += 1;
        sum.rates = [sum.rates[0] + rates[0], sum.rates[1] + rates[1]];
        sum.memstore_bytes += region.memstore_bytes;
        sum.files += region.store_files;
        sum.file_bytes += region.store_file_bytes;
    }
    let mut tables: Vec<_> = server
        .engine()
        .tables()
        .into_iter()
        .filter(|(table, _)| !table.name.is_system())
        .map(|(table, state)| {
            let sums = sums.get(&table.name).copied().unwrap_or_default();
            (table, state, sums)
        })
        .collect();
    let sorted = params.sort(COLUMNS)?;
    match sorted.name {
        "state" => tables.sort_by_key(|(_, state, _)| state.as_str()),
        "families" => tables.sort_by_key(|(table, ..)| table.families.len()),
        "regions" => tables.sort_by_key(|(.., sums)| Reverse(sums.regions)),
        "reads" => tables.sort_by(|left, right| right.2.rates[0].total_cmp(&left.2.rates[0])),
        "writes" => tables.sort_by(|left, right| right.2.rates[1].total_cmp(&left.2.rates[1])),
        "memstore" => tables.sort_by_key(|(.., sums)| Reverse(sums.memstore_bytes)),
        "files" => tables.sort_by_key(|(.., sums)| Reverse(sums.files)),
        "size" => tables.sort_by_key(|(.., sums)| Reverse(sums.file_bytes)),
        _ => {}
    }
    let part = Part::of(params, tables.len())?;
    let body = html! {
        @if tables.is_empty() {
            p.quiet { "There is no table yet." }
        }
        (part.links(params, "tables"))
        div.wide { table {
            caption { "Tables: sums over their regions" }
            (params.head(COLUMNS, sorted))
            tbody {
                @for (table, state, sums) in &tables[part.first..part.end] {
                    @let name = table.name.to_string();
                    tr {
                        th scope="row" { a href=(show::path(&["tables", &name])) { (name) } }
                        td { (state.as_str()) }
                        td {
                            @for (index, family) in table.families.iter().enumerate() {
                                @if index > 0 { ", " }
                                code { (Escaped(&family.name).to_string()) }
                            }
                        }
                        td.n { (show::count(sums.regions)) }
                        td.n { (show::rate(sums.rates[0])) }
                        td.n { (show::rate(sums.rates[1])) }
                        td.n { (show::bytes(sums.memstore_bytes)) }
                        td.n { (show::count(sums.files)) }
                        td.n { (show::bytes(sums.file_bytes)) }
                    }
                }
            }
        } }
    };
    Ok(Page {
        place: Place::Tables,
        title: "Tables".to_owned(),
        body,
    })
}

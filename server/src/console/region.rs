//! One region: its keys, its figures, its stores and their files.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::engine::{RegionStats, RegionVersion, StoreFile, refusal};
use basalt_engine::id::RegionId;
use basalt_engine::schema::Escaped;
use maud::{Markup, html};

use super::frame::Place;
use super::paging::{Params, Part};
use super::{Made, Page, Refusal, show};
use crate::server::Server;

pub(super) fn page(server: &Server, name: &str, params: &Params) -> Made {
    let (stats, version) = region_named(server.engine(), name)?;
    let region = &stats.region;
    let [reads, writes] = server
        .load()
        .rates
        .since()
        .region(region.id, stats.reads, stats.writes);
    let table = region.table.to_string();
    let heat = show::link(
        "/heat",
        &[
            ("table", &table),
            ("start", &Escaped(&region.start).to_string()),
            ("end", &Escaped(&region.end).to_string()),
            ("axis", "keys"),
        ],
    );
    let body = html! {
        @for file in version.damaged_files() {
            p.alarm role="status" { (refusal(region, file).to_string()) }
        }
        p {
            "of table " a href=(show::path(&["tables", &table])) { (table) } " · "
            a href=(heat) { "Key visualizer of its keys" }
        }
        table {
            caption { "Region" }
            tbody {
                tr { th scope="row" { "name" } td { code { (Escaped(&region.name()).to_string()) } } }
                tr { th scope="row" { "id, in the log" } td { (region.id) } }
                tr { th scope="row" { "start key" } td { (show::key(&region.start, "first")) } }
                tr { th scope="row" { "end key" } td { (show::key(&region.end, "last")) } }
                tr { th scope="row" { "created" } td { (show::time(region.created_ms)) } }
                tr { th scope="row" { "reads" } td { (show::rate(reads)) " a second, " (show::count(stats.reads)) " since the start" } }
                tr { th scope="row" { "writes" } td { (show::rate(writes)) " a second, " (show::count(stats.writes)) " since the start" } }
                tr {
                    th scope="row" { "refused writes" }
                    td { (show::count(stats.blocked_writes)) " because the memstore was full" }
                }
                tr {
                    th scope="row" { "flushes, compactions" }
                    td { (show::count(stats.flushes)) ", " (show::count(stats.compactions)) " since the start" }
                }
            }
        }
        (stores(&version))
        (files(&stats, &version, params)?)
    };
    Ok(Page {
        place: Place::Tables,
        title: format!("Region {}", region.encoded_name),
        body,
    })
}

/// The region of that encoded name, or of that id, which log lines have.
pub(super) fn region_named(
    engine: &Engine,
    name: &str,
) -> Result<(RegionStats, Arc<RegionVersion>), Refusal> {
    let of_id = name.parse().ok().and_then(|id| engine.encoded_name(RegionId(id)));
    let found = engine.region_view(of_id.as_deref().unwrap_or(name));
    found.ok_or_else(|| {
        Refusal::NotFound(format!(
            "There is no region {name}. It may have been split, merged or dropped."
        ))
    })
}

fn stores(version: &RegionVersion) -> Markup {
    html! {
        div.wide { table {
            caption { "Stores" }
            thead { tr {
                th scope="col" { "family" } th.n scope="col" { "memstore" } th.n scope="col" { "cells in it" } th.n scope="col" { "being flushed" }
                th.n scope="col" { "files" } th.n scope="col" { "size" } th.n scope="col" { "cells" }
            } }
            tbody {
                @for store in &version.stores {
                    @let frozen: u64 = store.frozen.iter().map(|memstore| memstore.bytes()).sum();
                    tr {
                        th scope="row" { code { (Escaped(&store.family.name).to_string()) } }
                        td.n { (show::bytes(store.active.bytes())) }
                        td.n { (show::count(store.active.cell_count())) }
                        td.n { (show::bytes(frozen)) }
                        td.n { (show::count(store.files.len() as u64)) }
                        td.n { (show::bytes(store.file_bytes())) }
                        td.n { (show::count(store.files.iter().map(|file| file.meta().cells).sum())) }
                    }
                }
            }
        } }
    }
}

fn files(stats: &RegionStats, version: &RegionVersion, params: &Params) -> Made<Markup> {
    let all: Vec<(&[u8], &Arc<StoreFile>)> = version
        .stores
        .iter()
        .flat_map(|store| store.files.iter().map(|file| (&store.family.name[..], file)))
        .collect();
    let part = Part::of(params, all.len())?;
    Ok(html! {
        (part.links(params, "store files"))
        @if all.is_empty() {
            p.quiet { "The region has no store files." }
        } @else {
            div.wide { table {
                caption { "Store files, the oldest first" }
                thead { tr {
                    th scope="col" { "file" } th scope="col" { "family" } th.n scope="col" { "size" } th.n scope="col" { "cells" } th scope="col" { "created" }
                    th.n scope="col" { "sequence id" } th scope="col" { "made by" } th scope="col" { "keys" }
                } }
                tbody {
                    @for (family, file) in &all[part.first..part.end] {
                        @let (meta, properties) = (file.meta(), file.properties());
                        @let id = meta.id.to_string();
                        tr {
                            th scope="row" {
                                a href=(show::path(&["regions", &stats.region.encoded_name, "files", &id])) { code { (id) } }
                            }
                            td { code { (Escaped(family).to_string()) } }
                            td.n { (show::bytes(meta.bytes)) }
                            td.n { (show::count(meta.cells)) }
                            td { (show::time(meta.created_ms)) }
                            td.n { (show::count(meta.max_seq.0)) }
                            td {
                                @if meta.major { "major compaction" } @else { "flush or minor compaction" }
                                @if file.is_clipped() { ", before a split" }
                            }
                            td {
                                @if let (Some(first), Some(last)) = (&properties.first_key, &properties.last_key) {
                                    (show::key(first.as_key().row(), "empty")) " to " (show::key(last.as_key().row(), "empty"))
                                }
                            }
                        }
                    }
                }
            } }
        }
    })
}

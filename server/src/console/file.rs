//! One store file: its trailer and file info, and its block index.

use std::sync::Arc;

use basalt_engine::engine::{StoreFile, index_entries, summary};
use basalt_engine::schema::{BloomType, Escaped};
use maud::{Markup, html};

use super::frame::Place;
use super::paging::{PAGE_ROWS, Params};
use super::{Made, Page, Refusal, region, show};
use crate::server::Server;

pub(super) fn page(server: &Server, region: &str, file: &str, params: &Params) -> Made {
    let (stats, version) = region::region_named(server.engine(), region)?;
    let found = version.stores.iter().find_map(|store| {
        let file = store.files.iter().find(|own| own.id().to_string() == file)?;
        Some((&store.family, file))
    });
    let Some((family, found)) = found else {
        return Err(Refusal::NotFound(format!(
            "There is no store file {file} in region {region}. It may have been compacted."
        )));
    };
    let summary = summary(found.reader());
    let region_address = show::path(&["regions", &stats.region.encoded_name]);
    let body = html! {
        p {
            "of region " a href=(region_address) { code { (stats.region.encoded_name) } } ", family " code { (Escaped(&family.name).to_string()) }
            ", table " a href=(show::path(&["tables", &stats.region.table.to_string()])) { (stats.region.table) }
        }
        p { code { (found.path().display()) } }
        section.columns {
            (contents(found))
            table {
                caption { "Trailer" }
                tbody {
                    @for (name, value) in &summary.trailer {
                        tr { th scope="row" { (name) } td { (value) } }
                    }
                }
            }
        }
        (block_index(found, params)?)
        details {
            summary { "File info" }
            div.wide { table {
                caption { "File info" }
                tbody {
                    @for (name, value) in &summary.file_info {
                        tr { th scope="row" { code { (name) } } td { code { (value) } } }
                    }
                }
            } }
        }
    };
    Ok(Page {
        place: Place::Tables,
        title: format!("Store file {file}"),
        body,
    })
}

fn contents(file: &Arc<StoreFile>) -> Markup {
    let (meta, properties) = (file.meta(), file.properties());
    html! {
        table {
            caption { "Contents" }
            tbody {
                tr { th scope="row" { "cells" } td { (show::count(meta.cells)) } }
                tr { th scope="row" { "size" } td { (show::bytes(meta.bytes)) ", of cells with " (show::bytes(properties.data_bytes)) } }
                tr { th scope="row" { "compression" } td { (properties.compression) } }
                tr { th scope="row" { "block encoding" } td { (properties.encoding) } }
                tr {
                    th scope="row" { "bloom filter" }
                    td {
                        (properties.bloom)
                        @if properties.bloom == BloomType::RowPrefix { " of " (properties.bloom_prefix_bytes) " bytes" }
                        @for line in summary(file.reader()).blooms { br; (line) }
                    }
                }
                @if let (Some(first), Some(last)) = (&properties.first_key, &properties.last_key) {
                    tr { th scope="row" { "first row" } td { (show::key(first.as_key().row(), "empty")) } }
                    tr { th scope="row" { "last row" } td { (show::key(last.as_key().row(), "empty")) } }
                }
                @if let Some((oldest, newest)) = properties.time_range {
                    tr { th scope="row" { "timestamps" } td { (timestamp(oldest)) " to " (timestamp(newest)) } }
                }
                tr { th scope="row" { "family tombstones" } td { (show::count(properties.delete_family_cells)) } }
                tr { th scope="row" { "sequence ids up to" } td { (show::count(meta.max_seq.0)) } }
                tr { th scope="row" { "created" } td { (show::time(meta.created_ms)) } }
                tr { th scope="row" { "made by" } td { @if meta.major { "major compaction" } @else { "flush or minor compaction" } } }
                @if file.is_clipped() {
                    tr {
                        th scope="row" { "shared" }
                        td { "written before a split; this region reads its own keys of it" }
                    }
                }
            }
        }
    }
}

/// A cell's timestamp: its number, and the moment if it is one.
fn timestamp(ms: i64) -> Markup {
    html! {
        (ms)
        @if let Some(ms) = u64::try_from(ms).ok().filter(|ms| (1_000_000_000_000..10_000_000_000_000).contains(ms)) {
            " (" (show::time(ms)) ")"
        }
    }
}

/// A page of the index. The number of blocks is known only at its end, so one more entry is
/// requested.
fn block_index(file: &Arc<StoreFile>, params: &Params) -> Made<Markup> {
    let page = params.page()?;
    let skip = (page - 1).saturating_mul(PAGE_ROWS);
    let mut entries = index_entries(file.reader(), skip, PAGE_ROWS + 1)?;
    let is_more = entries.len() > PAGE_ROWS;
    entries.truncate(PAGE_ROWS);
    if entries.is_empty() && page > 1 {
        return Err(Refusal::NotFound(format!("The block index has no page {page}.")));
    }
    let to = |page: usize| params.with(&[("page", &page.to_string())]);
    let links = html! {
        @if page > 1 || is_more {
            nav.pages aria-label="Pages of the block index" {
                span { "blocks from " (show::count(skip as u64 + 1)) " on" }
                @if page > 1 { a href=(to(1)) { "first" } " " a rel="prev" href=(to(page - 1)) { "previous" } }
                @if is_more { a rel="next" href=(to(page + 1)) { "next" } }
            }
        }
    };
    Ok(html! {
        h2 { "Block index" }
        (links)
        div.wide { table {
            caption { "Data blocks in their order, with the key from which on each has cells" }
            thead { tr {
                th.n scope="col" { "block" } th.n scope="col" { "offset" } th.n scope="col" { "size" } th scope="col" { "first row" } th scope="col" { "column" }
            } }
            tbody {
                @for (index, entry) in entries.iter().enumerate() {
                    @let key = entry.key.as_key();
                    tr {
                        th.n scope="row" { (show::count((skip + index) as u64 + 1)) }
                        td.n { (show::count(entry.offset)) }
                        td.n { (show::bytes(u64::from(entry.bytes))) }
                        td { (show::key(key.row(), "empty")) }
                        td { code { (Escaped(key.family()).to_string()) ":" (Escaped(key.qualifier()).to_string()) } }
                    }
                }
            }
        } }
        (links)
    })
}

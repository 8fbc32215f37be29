//! One table: its schema, its hot rows, and its regions.

use basalt_engine::schema::{TableDescriptor, TableName};
use basalt_idl::describe;
use maud::{Markup, html};

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page, Refusal, findings, hot_rows, region_list, show};
use crate::server::Server;
use crate::service::schema::{family_attributes, family_configuration, table_attributes};

pub(super) fn page(server: &Server, name: &str, params: &Params) -> Made {
    let table = table_named(name)?;
    let (descriptor, state) = server.engine().describe_table(&table)?;
    let stats = server.engine().table_region_stats(&table)?;
    let note = server.load().rates.since();
    let sum = |figure: fn(&basalt_engine::engine::RegionStats) -> u64| stats.iter().map(figure).sum::<u64>();
    let name = table.to_string();
    let findings = findings::of_table(server, &table)?;
    let damaged = stats.iter().filter(|region| region.damaged_files > 0).count();
    let body = html! {
        @if damaged > 0 {
            p.alarm role="status" { (show::of(damaged as u64, "region")) " refused because a store file is missing or damaged: marked in the list, with the file on the region's page." }
        }
        p.figures {
            span { (state.as_str()) }
            span { b { (show::of(stats.len() as u64, "region")) } }
            span { b { (show::bytes(sum(|region| region.store_file_bytes))) } " in " (show::of(sum(|region| region.store_files), "store file")) }
            span { b { (show::bytes(sum(|region| region.memstore_bytes))) } " in memstores" }
            span { b { (show::count(sum(|region| region.reads))) } " reads, " b { (show::count(sum(|region| region.writes))) } " writes since the start" }
            span { a href=(show::path(&["tables", &name, "rows"])) { "Rows" } }
            span { a href=(show::link("/heat", &[("table", &name)])) { "Key visualizer" } }
            span { a href=(show::link("/slow", &[("table", &name)])) { "Slow requests" } }
        }
        h2 { "Schema" }
        pre.schema tabindex="0" aria-label="Schema as describe prints it" {
            @for line in described(&descriptor) { (line) "\n" }
        }
        @if !findings.is_empty() {
            h2 #findings { "Findings" }
            (findings::listed(&findings))
        }
        (hot_rows::section(server, &table))
        h2 { "Regions" }
        (region_list::of_table(&stats, &note, params)?)
    };
    Ok(Page {
        place: Place::Tables,
        title: format!("Table {name}"),
        body,
    })
}

/// A table's name, with a link to its page while the table exists.
pub(super) fn table_link(server: &Server, name: &str) -> Markup {
    if !server.has_tables() {
        return html! { (name) };
    }
    let is_there = TableName::parse(name.as_bytes()).is_ok_and(|table| server.shows_table(&table));
    html! {
        @if is_there { a href=(show::path(&["tables", name])) { (name) } } @else { (name) " " span.quiet { "(gone)" } }
    }
}

/// A table's name in an address. An invalid name is treated as that of a missing table.
pub(super) fn table_named(name: &str) -> Result<TableName, Refusal> {
    TableName::parse(name.as_bytes()).map_err(|_| Refusal::NotFound(format!("There is no table {name}.")))
}

/// A table as `describe` in the shell prints it: a line of its own settings, then one for each family.
fn described(table: &TableDescriptor) -> Vec<String> {
    let families = table.families.iter().map(|family| {
        describe::family(
            &family.name,
            &family_attributes(family),
            &family_configuration(family),
        )
    });
    std::iter::once(describe::table(&table.name.to_string(), &table_attributes(table)))
        .chain(families)
        .collect()
}

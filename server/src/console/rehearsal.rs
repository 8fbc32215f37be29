//! The virtual servers of a rehearsal: their load, their limits, how long calls waited for them, and their
//! regions.

use basalt_engine::engine::RegionStats;
use maud::{Markup, html};

use super::show;
use crate::limits::capacity::Rehearsal;
use crate::observe::rates::Note;
use crate::server::Server;

/// Load and regions of a virtual server.
#[derive(Clone, Copy, Default)]
struct Regions {
    count: u64,
    rates: [f64; 2],
    file_bytes: u64,
}

/// The section of the overview.
pub(super) fn section(server: &Server, rehearsal: &Rehearsal, stats: &[RegionStats], note: &Note) -> Markup {
    let servers = server.placement().servers();
    let mut regions = vec![Regions::default(); servers.len()];
    for region in stats {
        let place = server.placement().place(region.region.id);
        if let Some(of) = regions
            .get_mut(usize::from(place.server))
            .filter(|_| !place.is_unassigned)
        {
            let rates = note.region(region.region.id, region.reads, region.writes);
            of.count += 1;
            of.rates = [of.rates[0] + rates[0], of.rates[1] + rates[1]];
            of.file_bytes += region.store_file_bytes;
        }
    }
    let load = |of: &Regions| of.rates[0] + of.rates[1];
    let all: f64 = regions.iter().map(load).sum();
    let uptime = server.instance().uptime().as_secs_f64().max(1.0);
    html! {
        h2 #rehearsal { "Rehearsal" }
        p { "This one server presents itself as " (servers.len()) " virtual servers, each with " (rehearsal.limits()) "." }
        div.wide { table {
            caption { "Virtual servers: load over the last seconds, and how long calls were held back since the start" }
            thead { tr {
                th scope="col" { "server" } th.n scope="col" { "regions" } th.n scope="col" { "size" } th.n scope="col" { "reads/s" } th.n scope="col" { "writes/s" }
                th scope="col" { "share of the load" } th.n scope="col" { "calls held back" } th.n scope="col" { "time held back" } th.n scope="col" { "of the time" }
            } }
            tbody {
                @for ((name, of), charged) in servers.iter().zip(&regions).zip(rehearsal.loads()) {
                    tr {
                        th scope="row" { (name.host) }
                        td.n { (show::count(of.count)) }
                        td.n { (show::bytes(of.file_bytes)) }
                        td.n { (show::rate(of.rates[0])) }
                        td.n { (show::rate(of.rates[1])) }
                        td { (show::meter(load(of), all, &show::percent(load(of), all))) }
                        td.n { (show::count(charged.held_calls)) }
                        td.n { (show::duration(charged.held)) }
                        td.n { (show::percent(charged.held.as_secs_f64(), uptime)) }
                    }
                }
            }
        } }
        p.quiet {
            "A server whose share is far above the others' is the one that a real cluster would wait for. Time held back is added up over calls, so it may be more than all of the time. "
            code { "balance" } " and " code { "move" } " in the shell move regions."
        }
    }
}

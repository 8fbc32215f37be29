//! The key visualizer's page: its parameters, the heat map, and the hottest ranges as a table for
//! browsers without scripts.
//!
//! The map is drawn by `assets/heat.js` from `/api/heat`; this page gives it the parameters and works without
//! it.

use std::collections::BTreeSet;
use std::time::Duration;

use basalt_engine::schema::{Escaped, TableName};
use maud::{Markup, html};

use super::frame::Place;
use super::heat_data::{Asked, asked};
use super::paging::Params;
use super::table::table_link;
use super::{Made, Page, Refusal, hot_rows, show};
use crate::observe::heat::{Axis, Kind, Picture};
use crate::server::Server;

/// Ranges in the table.
const LISTED: usize = 20;

/// Part of a table's requests from which its hottest row is named in the list of tables.
const HOT_SHARE: f64 = 0.05;

/// Rows that these are chosen from.
const ROWS: &str = "512";

/// Time spans that can be selected with one click.
const TIMES: [(&str, &str); 5] = [
    ("-600000", "10 minutes"),
    ("-3600000", "1 hour"),
    ("-21600000", "6 hours"),
    ("-86400000", "1 day"),
    ("-604800000", "1 week"),
];

/// Times back that a map can be compared with.
const COMPARED: [(&str, &str); 3] = [
    ("3600000", "beside an hour before"),
    ("86400000", "a day before"),
    ("604800000", "a week before"),
];

pub(super) fn page(server: &Server, params: &Params) -> Made {
    let body = if !server.load().heat.is_on() {
        html! { p { "The key visualizer is off: " code { "key_visualizer.bytes" } " is 0." } }
    } else if params.get("table").is_none() {
        choice(server, params)?
    } else {
        map(server, params)?
    };
    let title = match params.get("table") {
        Some(table) => format!("Key visualizer: {table}"),
        None => "Key visualizer".to_owned(),
    };
    Ok(Page {
        place: Place::Heat,
        title,
        body,
    })
}

/// A list of tables to choose from: tables with load, busiest first, then the others.
fn choice(server: &Server, params: &Params) -> Result<Markup, Refusal> {
    if params.get("compare").is_some() {
        return Err(Refusal::BadRequest(
            "compare needs a table: the map of all tables has one time".to_owned(),
        ));
    }
    let all = server.engine().tables();
    let there: BTreeSet<&TableName> = if server.has_tables() {
        all.iter().map(|(table, _)| &table.name).collect()
    } else {
        // Tables of the cluster are known from their first use on.
        BTreeSet::new()
    };
    let mut busy = server.load().heat.tables();
    busy.retain(|(name, _)| server.shows_table(name));
    let is_busy = |name: &TableName| busy.iter().any(|(other, _)| other == name);
    let quiet = there
        .iter()
        .copied()
        .filter(|name| !name.is_system() && !is_busy(name));
    let entry = |table: &TableName, requests: Option<f64>| {
        let name = table.to_string();
        html! {
            li {
                a href=(show::link("/heat", &[("table", &name)])) { (name) }
                @if let Some(requests) = requests { " " span.quiet { (show::of(requests.round() as u64, "row")) " read and written" } }
                @for kind in [Kind::Reads, Kind::Writes] { (hottest_row(server, table, kind)) }
            }
        }
    };
    Ok(html! {
        p { "Where in the key space of the tables reads and writes go, over time. Choose a table, or zoom into the map of the busiest." }
        @if !busy.is_empty() {
            (controls_of_all(params))
            (canvas(
                &params.with(&[]).replacen("/heat", "/api/heat", 1),
                &params.with(&[("from", ""), ("to", "")]),
                params.get("to").is_none(),
            ))
            script src="/assets/heat.js" {}
            (sampling(server))
        }
        @if busy.is_empty() { p.quiet { "Nothing was read or written since " (show::time(server.load().heat.oldest_ms())) "." } } @else {
            h2 { "Busy tables" }
            ul { @for (name, requests) in busy.iter().take(LISTED * 5) { (entry(name, Some(*requests))) } }
        }
        @if quiet.clone().next().is_some() {
            h2 { "Quiet tables" }
            ul { @for name in quiet.take(LISTED * 5) { (entry(name, None)) } }
        }
    })
}

/// The row that most of a table's reads or writes go to, if one stands out.
fn hottest_row(server: &Server, table: &TableName, kind: Kind) -> Markup {
    let hot = server.load().heat.hot_rows(table);
    let Some(of_kind) = hot.of_kind(kind) else {
        return html! {};
    };
    let row = of_kind
        .rows
        .first()
        .filter(|row| row.least() >= of_kind.total * HOT_SHARE);
    html! {
        @if let Some(row) = row {
            span.quiet { ", " (show::percent(row.least(), of_kind.total)) " of the " (kind.as_str()) " of the last minutes to " }
            a href=(hot_rows::address(table)) { (show::key(&row.key, "the empty row")) }
        }
    }
}

fn map(server: &Server, params: &Params) -> Result<Markup, Refusal> {
    let asked = asked(server, params)?;
    let query = &asked.query;
    let (start, end) = (Escaped(&query.start).to_string(), Escaped(&query.end).to_string());
    let tall = Params::new(
        "/heat",
        [
            ("table", query.table.to_string().as_str()),
            ("kind", query.kind.as_str()),
            ("axis", query.axis.as_str()),
            ("start", &start),
            ("end", &end),
            ("from", &query.from_ms.to_string()),
            ("to", params.get("to").unwrap_or_default()),
            ("rows", ROWS),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect(),
    );
    let listed = super::heat_data::asked(server, &tall)?;
    let picture = listed.picture(server);
    Ok(html! {
        (controls(server, &asked, params))
        (sampling(server))
        (canvas(
            &show::link("/api/heat", &[
                ("table", &query.table.to_string()), ("kind", query.kind.as_str()), ("axis", query.axis.as_str()), ("start", &start), ("end", &end),
                ("from", params.get("from").unwrap_or_default()), ("to", params.get("to").unwrap_or_default()),
            ]),
            &params.with(&[("start", ""), ("end", ""), ("from", ""), ("to", ""), ("axis", "")]),
            asked.follows,
        ))
        (compared(&asked, params)?)
        script src="/assets/heat.js" {}
        (hot_rows::section(server, &query.table))
        (hottest(server, &listed, &picture, params))
    })
}

/// Says so if not each row is counted.
fn sampling(server: &Server) -> Markup {
    let every = server.config().key_visualizer.sample_every;
    html! {
        @if every > 1 {
            p.quiet { "Keys are sampled: one row in " (every) " is counted, for as many (" code { "key_visualizer.sample_every" } ")." }
        }
    }
}

/// The map, which `assets/heat.js` draws: the address of its data, the page that a zoom goes to, and whether
/// it ends now.
fn canvas(data: &str, page: &str, follows: bool) -> Markup {
    html! {
        noscript { p { "The map needs a script. The lists below have the same figures." } }
        p #heat-help.quiet {
            "Move over the map, or focus it and use the arrow keys, to read values. Drag, or press Enter, to zoom into keys and time. Escape goes back."
        }
        (map_of("", data, page, follows))
    }
}

/// One map. `suffix` keeps the ids of two maps apart.
fn map_of(suffix: &str, data: &str, page: &str, follows: bool) -> Markup {
    let id = |name: &str| format!("{name}{suffix}");
    html! {
        div.heat id=(id("heat")) data-address=(data) data-page=(page) data-follow=(follows) {
            canvas id=(id("heat-map")) tabindex="0" role="img" aria-describedby=(format!("heat-help {}", id("heat-cell"))) aria-label="Heat map of keys over time" {}
            p.cell id=(id("heat-cell")) aria-live="polite" {}
            p.scale aria-hidden="true" {}
            p.controls {
                label { input type="checkbox" checked; " fold away times without load" }
                button type="button" { "Save as PNG" }
            }
        }
    }
}

/// The map of the same keys an earlier time, below the first and with its scale of brightness.
fn compared(asked: &Asked, params: &Params) -> Result<Markup, Refusal> {
    let Some(back_ms) = params.number("compare")? else {
        return Ok(html! {});
    };
    let Some(back_ms) = u64::try_from(back_ms).ok().filter(|back_ms| *back_ms > 0) else {
        return Err(Refusal::BadRequest(format!(
            "compare is {back_ms}, and must be a number of milliseconds to go back"
        )));
    };
    let query = &asked.query;
    let (from_ms, to_ms) = (
        query.from_ms.saturating_sub(back_ms),
        query.to_ms.saturating_sub(back_ms),
    );
    let (table, start, end) = (
        query.table.to_string(),
        Escaped(&query.start).to_string(),
        Escaped(&query.end).to_string(),
    );
    let data = show::link(
        "/api/heat",
        &[
            ("table", &table),
            ("kind", query.kind.as_str()),
            ("axis", query.axis.as_str()),
            ("start", &start),
            ("end", &end),
            ("from", &from_ms.to_string()),
            ("to", &to_ms.to_string()),
        ],
    );
    let page = params.with(&[
        ("start", ""),
        ("end", ""),
        ("from", ""),
        ("to", ""),
        ("axis", ""),
        ("compare", ""),
    ]);
    Ok(html! {
        h2 { (show::time(from_ms)) " to " (show::time(to_ms)) ", for comparison" }
        (map_of("-2", &data, &page, false))
    })
}

/// Kinds and times of the map of all tables as links.
fn controls_of_all(params: &Params) -> Markup {
    let current = |is_current: bool| is_current.then_some("true");
    let kind = params.get("kind").unwrap_or(Kind::Writes.as_str());
    let from = params.get("from").unwrap_or("-3600000");
    html! {
        div.controls {
            nav.tabs aria-label="What is counted" {
                @for own in Kind::ALL {
                    a href=(params.with(&[("kind", own.as_str())])) aria-current=[current(own.as_str() == kind)] { (own.as_str()) }
                }
            }
            nav.tabs aria-label="Time" {
                @for (ms, name) in TIMES {
                    a href=(params.with(&[("from", ms), ("to", "")])) aria-current=[current(ms == from)] { (name) }
                }
            }
        }
    }
}

/// Kinds, axes and times as links, and a form for keys.
fn controls(server: &Server, asked: &Asked, params: &Params) -> Markup {
    let query = &asked.query;
    let current = |is_current: bool| is_current.then_some("true");
    let from = params.get("from").unwrap_or("-3600000");
    let (start, end) = (Escaped(&query.start).to_string(), Escaped(&query.end).to_string());
    html! {
        p {
            "Table " (table_link(server, &query.table.to_string())) ", keys from " (show::range(&query.start, &query.end))
            @if !(query.start.is_empty() && query.end.is_empty()) {
                " · " a href=(params.with(&[("start", ""), ("end", ""), ("axis", "")])) { "all keys" }
            }
            @if !asked.follows {
                " · " (show::time(query.from_ms)) " to " (show::time(query.to_ms)) " · "
                a href=(params.with(&[("from", ""), ("to", "")])) { "the last hour" }
            }
        }
        div.controls {
            nav.tabs aria-label="What is counted" {
                @for kind in Kind::ALL {
                    a href=(params.with(&[("kind", kind.as_str())])) aria-current=[current(kind == query.kind)] { (kind.as_str()) }
                }
            }
            nav.tabs aria-label="Rows of the map" {
                @for axis in [Axis::Regions, Axis::Keys] {
                    a href=(params.with(&[("axis", axis.as_str())])) aria-current=[current(axis == query.axis)] { "by " (axis.as_str()) }
                }
            }
            nav.tabs aria-label="Time" {
                @for (ms, name) in TIMES {
                    a href=(params.with(&[("from", ms), ("to", "")])) aria-current=[current(asked.follows && ms == from)] { (name) }
                }
            }
            nav.tabs aria-label="Compare with an earlier time" {
                @for (ms, name) in COMPARED {
                    @let is_current = params.get("compare") == Some(ms);
                    a href=(params.with(&[("compare", if is_current { "" } else { ms })])) aria-current=[current(is_current)] { (name) }
                }
            }
            form action="/heat" method="get" {
                input type="hidden" name="table" value=(query.table);
                input type="hidden" name="kind" value=(query.kind.as_str());
                input type="hidden" name="from" value=(params.get("from").unwrap_or_default());
                input type="hidden" name="to" value=(params.get("to").unwrap_or_default());
                label { "from key " input name="start" value=(start) size="16" autocomplete="off" spellcheck="false"; }
                label { " up to key " input name="end" value=(end) size="16" autocomplete="off" spellcheck="false"; }
                button { "Show" }
            }
        }
    }
}

/// The ranges that most went to.
fn hottest(server: &Server, asked: &Asked, picture: &Picture, params: &Params) -> Markup {
    let mut rows: Vec<usize> = (0..picture.totals.len())
        .filter(|row| picture.totals[*row] >= 0.5)
        .collect();
    rows.sort_by(|left, right| picture.totals[*right].total_cmp(&picture.totals[*left]));
    let all: f64 = picture.totals.iter().sum();
    // At least one second: all load may be in a column that has just begun.
    let seconds = picture.load_seconds.max(1.0);
    let is_bytes = asked.query.kind == Kind::Bytes;
    let figure = |number: f64| {
        let whole = number.round() as u64;
        if is_bytes {
            show::bytes(whole)
        } else {
            show::count(whole)
        }
    };
    let rate = |number: f64| {
        if is_bytes {
            show::bytes(number.round() as u64)
        } else {
            show::rate(number)
        }
    };
    html! {
        h2 { "Hottest ranges" }
        @if rows.is_empty() { p.quiet { "Nothing of this kind went to these keys in this time." } } @else {
            div.wide { table {
                caption {
                    "Key ranges that most went to, of " (figure(all)) " " (asked.query.kind.as_str()) " in all, in the "
                    (show::duration(Duration::from_secs_f64(seconds))) " in which there were any"
                }
                thead { tr {
                    th scope="col" { "keys" } th scope="col" { "region" } th.n scope="col" { (asked.query.kind.as_str()) } th.n scope="col" { "a second" }
                    th scope="col" { "share" } th scope="col" { "look closer" }
                } }
                tbody {
                    @for row in rows.into_iter().take(LISTED) {
                        @let (start, end) = picture.range(row, &asked.query);
                        @let (region, regions) = asked.regions_of(start, end);
                        @let total = picture.totals[row];
                        tr {
                            th scope="row" { (show::range(start, end)) }
                            td {
                                @if let Some(region) = region {
                                    @if server.has_tables() {
                                        a href=(show::path(&["regions", &region.encoded_name])) { code { (region.encoded_name) } }
                                    } @else { code { (region.encoded_name) } }
                                }
                                @if regions > 1 { " and " (regions - 1) " more" }
                            }
                            td.n { (figure(total)) }
                            td.n { (rate(total / seconds)) }
                            td { (show::meter(total, all, &show::percent(total, all))) }
                            td {
                                a href=(params.with(&[
                                    ("start", &Escaped(start).to_string()), ("end", &Escaped(end).to_string()), ("axis", "keys"),
                                ])) { "zoom" }
                            }
                        }
                    }
                }
            } }
        }
    }
}

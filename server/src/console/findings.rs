//! Findings in words: what the key visualizer's data, hot rows, store files and schemas say about a table,
//! each with its range of keys, its share, its consequence and a cure.
//!
//! A finding is made anew for each page, from the last hour and from what store files say about
//! themselves. Rules of thumb for schemas are in `basalt_types::schema::rules_of_thumb`.

use basalt_engine::Engine;
use basalt_engine::engine::RegionStats;
use basalt_engine::schema::TableName;
use basalt_engine::schema::rules_of_thumb::{self, Contents, KeyLengths};
use maud::{Markup, html};

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page, Refusal, hot_rows, show};
use crate::observe::heat::{Axis, Kind, Motion, Query, motion};
use crate::server::Server;

/// Tables that the page of all tables looks at: those with most load.
const TABLES_MAX: usize = 50;

/// Time that is looked at.
const BACK_MS: u64 = 3_600_000;

/// Size of the picture that is looked at.
const ROWS: usize = 256;
const COLUMNS: usize = 120;

/// Requests of a table from which its shares say something.
const REQUESTS_MIN: f64 = 1_000.0;
/// Part of a table's requests from which a row is hot.
const HOT_ROW_SHARE: f64 = 0.1;
/// Rows of scans, and the part of them that filters left out.
const SCANNED_MIN: u64 = 10_000;
const FILTERED_SHARE: f64 = 0.9;
/// Cells of a store file, and the part of them that are tombstones.
const CELLS_MIN: u64 = 1_000;
const TOMBSTONES_SHARE: f64 = 0.3;
/// Tombstones in sequence.
const RUN_MIN: u64 = 1_000;
/// Bytes of a large row.
const LARGE_ROW_BYTES: u64 = 10 << 20;

/// Something that was noticed.
pub(super) struct Finding {
    what: &'static str,
    /// Keys that it is about.
    range: Markup,
    share: String,
    consequence: &'static str,
    cure: &'static str,
    /// Page of the documentation with figures.
    see: &'static str,
}

/// All findings about a table.
pub(super) fn of_table(server: &Server, table: &TableName) -> Result<Vec<Finding>, Refusal> {
    let (descriptor, _) = server.engine().describe_table(table)?;
    let stats = server.engine().table_region_stats(table)?;
    let mut findings = Vec::new();
    if server.load().heat.is_on() {
        findings.extend(of_motion(server, table));
        findings.extend(hot_rows(server, table));
    }
    findings.extend(filtered(&stats));
    let mut contents = Contents {
        regions: stats.len(),
        bytes: stats.iter().map(|region| region.store_file_bytes).sum(),
        largest_region_bytes: stats
            .iter()
            .map(|region| region.store_file_bytes)
            .max()
            .unwrap_or(0),
        ..Contents::default()
    };
    of_files(server.engine(), &stats, &mut findings, &mut contents);
    let broken = rules_of_thumb::of_descriptor(&descriptor, stats.len());
    for broken in broken.into_iter().chain(rules_of_thumb::of_contents(&contents)) {
        findings.push(Finding {
            what: "Rule of thumb",
            range: html! { "the schema" },
            share: broken.what,
            consequence: broken.rule,
            cure: broken.cure,
            see: "HBase's reference guide, Table Schema Rules Of Thumb",
        });
    }
    Ok(findings)
}

/// Sequential and salted keys.
fn of_motion(server: &Server, table: &TableName) -> Option<Finding> {
    let heat = &server.load().heat;
    let now_ms = heat.now_ms();
    // Times of a clock that was set back since are in the future.
    let first_ms = heat.first_ms(table).min(now_ms);
    let query = Query {
        table: table.clone(),
        kind: Kind::Writes,
        axis: Axis::Keys,
        start: Vec::new(),
        end: Vec::new(),
        from_ms: now_ms.saturating_sub(BACK_MS).max(first_ms),
        to_ms: now_ms + 1,
        rows_max: ROWS,
        columns_max: COLUMNS,
    };
    let picture = heat.picture(&query, &server.boundaries(table));
    let total: f64 = picture.totals.iter().sum();
    if total < REQUESTS_MIN {
        return None;
    }
    let (found, share) = motion(&picture)?;
    let (what, consequence, cure) = match found {
        Motion::Ascending => (
            "Sequential key",
            "One region takes every write at any time, however many regions and servers there are.",
            "Begin the key with a salt or a hash, or with the id that the rows belong to; then the time.",
        ),
        Motion::Descending => (
            "Sequential key, descending",
            "Reversed times put the newest row first, and all writes into the first region.",
            "Put the id that the rows belong to, or a salt, before the reversed time.",
        ),
        Motion::Salted(_) => (
            "Salted stripes",
            "Writes are spread evenly. A scan of a time reads one range for each salt.",
            "None needed for writes. Fewer salts make such scans cheaper, if the regions still share the load.",
        ),
    };
    let range = if let Motion::Salted(salts) = found {
        html! { (salts) " ranges, each in order of time" }
    } else {
        let busy = |row: &usize| picture.totals[*row] > 0.0;
        let rows = 0..picture.starts.len();
        let first = rows.clone().find(busy);
        let last = rows.rev().find(busy);
        show::range(
            first.map_or(&[][..], |row| picture.range(row, &query).0),
            last.map_or(&[][..], |row| picture.range(row, &query).1),
        )
    };
    Some(Finding {
        what,
        range,
        share: format!("{} of the writes of the last hour", show::percent(share, 1.0)),
        consequence,
        cure,
        see: "docs/schema-lab.md, Which row key makes a hot region?",
    })
}

fn hot_rows(server: &Server, table: &TableName) -> Vec<Finding> {
    let hot = server.load().heat.hot_rows(table);
    let mut findings = Vec::new();
    for (kind, consequence, cure) in [
        (
            Kind::Reads,
            "All reads of a row go to one region, and on a cluster to one server.",
            "Cache it in the client, or keep copies under several keys.",
        ),
        (
            Kind::Writes,
            "Writes of a row wait for its lock, one after the other, and go to one region.",
            "Spread it over several rows (a counter: add them up when reading), or gather writes in the client.",
        ),
    ] {
        let Some(of_kind) = hot.of_kind(kind).filter(|hot| hot.total >= REQUESTS_MIN) else {
            continue;
        };
        let Some(row) = of_kind
            .rows
            .first()
            .filter(|row| row.least() >= of_kind.total * HOT_ROW_SHARE)
        else {
            continue;
        };
        findings.push(Finding {
            what: "Hot row",
            range: html! { a href=(hot_rows::address(table)) { (show::key(&row.key, "empty")) } },
            share: format!(
                "{} of the {} of the last minutes, {} a second",
                show::percent(row.least(), of_kind.total),
                kind.as_str(),
                show::rate(hot.rate(row))
            ),
            consequence,
            cure,
            see: "docs/observing.md, Five questions of an incident",
        });
    }
    findings
}

/// Scans whose filters leave out nearly all that they read.
fn filtered(stats: &[RegionStats]) -> Option<Finding> {
    let worst = stats.iter().max_by_key(|region| region.filtered_reads)?;
    let (reads, filtered) = (worst.reads.max(worst.filtered_reads), worst.filtered_reads);
    if filtered < SCANNED_MIN || (filtered as f64) < reads as f64 * FILTERED_SHARE {
        return None;
    }
    Some(Finding {
        what: "Scan-heavy range",
        range: show::range(&worst.region.start, &worst.region.end),
        share: format!(
            "{} of {} rows read there since the start had no result",
            show::percent(filtered as f64, reads as f64),
            show::count(reads)
        ),
        consequence: "Scans read the whole range and return little of it: a filter saves the network, not the disk.",
        cure: "Put what the filter asks for at the front of the row key, or keep a second table with it as its key.",
        see: "docs/schema-lab.md, How are relations stored?",
    })
}

/// Tombstones and large rows, as store files say; adds figures for rules of thumb.
fn of_files(engine: &Engine, stats: &[RegionStats], findings: &mut Vec<Finding>, contents: &mut Contents) {
    let mut run: Option<(u64, Markup)> = None;
    let mut share: Option<(f64, Finding)> = None;
    let mut largest: Option<(u64, Markup)> = None;
    for region in stats {
        let Some((_, version)) = engine.region_view(&region.region.encoded_name) else {
            continue;
        };
        for file in version.stores.iter().flat_map(|store| &store.files) {
            let (meta, properties) = (file.meta(), file.properties());
            let keys = [&properties.first_key, &properties.last_key];
            let rows = keys.map(|key| key.as_ref().map_or(&[][..], |key| key.as_key().row()));
            for row in rows.iter().filter(|row| !row.is_empty()) {
                contents.row_keys = Some(KeyLengths::and(contents.row_keys, row.len()));
            }
            let biggest = properties.file_info.get(&b"hfile.LEN_OF_BIGGEST_CELL"[..]);
            let biggest = biggest.and_then(|bytes| Some(u64::from_be_bytes(bytes[..].try_into().ok()?)));
            contents.largest_cell_bytes = contents.largest_cell_bytes.max(biggest.unwrap_or(0));
            let Some(figures) = &properties.row_figures else {
                continue;
            };
            let of_range = figures.tombstones as f64 / (meta.cells as f64).max(1.0);
            if meta.cells >= CELLS_MIN
                && of_range >= TOMBSTONES_SHARE
                && share.as_ref().is_none_or(|(most, _)| of_range > *most)
            {
                share = Some((
                    of_range,
                    tombstones(
                        show::range(rows[0], rows[1]),
                        format!(
                            "{} of {} cells of a store file are tombstones",
                            show::percent(of_range, 1.0),
                            show::count(meta.cells)
                        ),
                    ),
                ));
            }
            if figures.run.count >= RUN_MIN && run.as_ref().is_none_or(|(most, _)| figures.run.count > *most)
            {
                run = Some((
                    figures.run.count,
                    show::range(&figures.run.first, &figures.run.last),
                ));
            }
            if figures.largest.count >= LARGE_ROW_BYTES
                && largest
                    .as_ref()
                    .is_none_or(|(most, _)| figures.largest.count > *most)
            {
                largest = Some((figures.largest.count, show::key(&figures.largest.first, "empty")));
            }
        }
    }
    if let Some((count, range)) = run {
        findings.push(tombstones(
            range,
            format!("{} tombstones in sequence", show::count(count)),
        ));
    } else if let Some((_, finding)) = share {
        findings.push(finding);
    }
    if let Some((bytes, range)) = largest {
        findings.push(Finding {
            what: "Large row",
            range,
            share: format!("{} in one store file", show::bytes(bytes)),
            consequence: "A row is never split: it stays in one region, and a get of all of it needs its size in memory.",
            cure: "Put a part of the column's name into the row key: more rows, each with fewer columns.",
            see: "docs/schema-lab.md, How is a feed stored?",
        });
    }
}

fn tombstones(range: Markup, share: String) -> Finding {
    Finding {
        what: "Tombstones read in vain",
        range,
        share,
        consequence: "A scan of these keys reads each tombstone and what it deletes, and returns nothing of it: queues are read so.",
        cure: "A major compaction removes them now (major_compact in the shell). Later: begin scans behind the deleted rows, or let cells end by TTL.",
        see: "docs/observing.md, Five questions of an incident",
    }
}

/// Findings as a list; with `heading` as a section of a table's page.
pub(super) fn listed(findings: &[Finding]) -> Markup {
    html! {
        @for finding in findings {
            article.finding {
                h3 { (finding.what) ": " (finding.range) }
                p { b { (finding.share) ". " } (finding.consequence) }
                p { b { "Cure: " } (finding.cure) " " span.quiet { "(" (finding.see) ")" } }
            }
        }
    }
}

/// Findings of all tables.
#[expect(clippy::unnecessary_wraps, reason = "all pages have this form")]
pub(super) fn page(server: &Server, _params: &Params) -> Made {
    let mut tables: Vec<TableName> = server
        .load()
        .heat
        .tables()
        .into_iter()
        .map(|(table, _)| table)
        .collect();
    let others = server.engine().tables();
    for (table, _) in &others {
        if !tables.contains(&table.name) {
            tables.push(table.name.clone());
        }
    }
    let left_out = others.iter().filter(|(table, _)| !table.name.is_system()).count();
    tables.retain(|table| !table.is_system() && others.iter().any(|(other, _)| other.name == *table));
    tables.truncate(TABLES_MAX);
    let left_out = left_out.saturating_sub(tables.len());
    let mut found = Vec::new();
    for table in tables {
        // A table that is dropped meanwhile has no findings.
        let findings = of_table(server, &table).unwrap_or_default();
        if !findings.is_empty() {
            found.push((table.to_string(), findings));
        }
    }
    let body = html! {
        p {
            "Rules over the key visualizer's last hour, hot rows, what flushes and compactions have noticed, and HBase's rules of thumb for schemas. "
            "A finding is a hint: what it costs depends on the load."
        }
        @if found.is_empty() { p.quiet { "No finding about any table." } }
        @for (table, findings) in &found {
            h2 { "Table " a href=(show::path(&["tables", table])) { (table) } }
            (listed(findings))
        }
        @if left_out > 0 {
            p.quiet { (show::of(left_out as u64, "quieter table")) " left out: each has its findings on its own page." }
        }
    };
    Ok(Page {
        place: Place::Findings,
        title: "Findings".to_owned(),
        body,
    })
}

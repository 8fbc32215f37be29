//! The verdict on top of the overview: healthy, or what is wrong, each with its remedy.
//!
//! A rule looks at the state of the server and at the last minutes. Rules name tables only while these
//! exist.

use std::time::Duration;

use basalt_engine::engine::{RegionStats, Work};
use basalt_engine::schema::TableName;
use maud::{Markup, html};

use super::{hot_rows, show};
use crate::observe::rates::Note;
use crate::observe::recent::{Step, quantile, slower};
use crate::server::Server;

/// Steps of the last minute.
const MINUTE: usize = 12;

/// Least number of requests in a minute from which a share or a quantile says something.
const REQUESTS_MIN: u64 = 50;

/// Part of requests that may fail.
const ERRORS_MAX: f64 = 0.01;

/// Latency that one of a hundred requests may exceed.
const P99_MAX: Duration = Duration::from_secs(1);

/// Requests of a minute that may take longer than that beside any number of quick ones.
const SLOW_MAX: u64 = 10;

/// Part of a table's requests, and requests per second, from which a row or region is hot. Those of the
/// alerts in grafana/alerts.yml.
const HOT_ROW: (f64, f64) = (0.25, 200.0);
const HOT_REGION: (f64, f64) = (0.8, 100.0);
/// Regions that a table has at least when one of them is called hot.
const REGIONS_MIN: usize = 4;

/// Part of a limit from which it is nearly reached.
const NEARLY: f64 = 0.9;

/// Something that is wrong.
struct Problem {
    what: Markup,
    remedy: Markup,
}

fn problem(what: impl Into<String>, remedy: Markup) -> Problem {
    let what = what.into();
    Problem {
        what: html! { (what) },
        remedy,
    }
}

/// The last minute's part of the steps.
pub(super) fn minute(steps: &[Step]) -> &[Step] {
    &steps[steps.len().saturating_sub(MINUTE)..]
}

/// The verdict. `stats` are the regions of all tables.
pub(super) fn verdict(server: &Server, stats: &[RegionStats], note: &Note, steps: &[Step]) -> Markup {
    let mut problems = of_state(server);
    problems.extend(of_limits(server));
    problems.extend(of_requests(minute(steps)));
    let rows = hot_rows(server);
    problems.extend(hot_regions(stats, note, &rows));
    problems.extend(rows.into_iter().map(|row| row.problem));
    html! {
        @if problems.is_empty() {
            p #verdict.verdict.healthy role="status" { b { "Healthy." } " No rule finds anything wrong." }
        } @else {
            section #verdict.verdict.unwell role="status" {
                p { b { (show::of(problems.len() as u64, "problem")) "." } }
                ul { @for problem in &problems {
                    li { span.alarm { (problem.what) } " " (problem.remedy) }
                } }
            }
        }
    }
}

/// Problems that the server itself reports.
fn of_state(server: &Server) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !server.instance().is_ready() {
        problems.push(problem(
            "Calls are not accepted: the server is starting or stopping.",
            html! {},
        ));
    }
    for reason in server.reasons() {
        let remedy = html! { "See \"Disk full\" and \"A disk that hangs\" in docs/operations/failures.md, and " a href="/jobs" { "flushes" } "." };
        problems.push(problem(format!("{reason}."), remedy));
    }
    for warning in server.warnings() {
        let remedy = html! { "See \"The clock\" in docs/operations/failures.md." };
        problems.push(problem(format!("{warning}."), remedy));
    }
    for damage in server.damage() {
        let remedy = html! { "See \"Damage\" in docs/operations/failures.md." };
        problems.push(problem(format!("{damage}."), remedy));
    }
    for (work, what, command) in [
        (
            Work::Flushes,
            "Flushes are paused: memstores fill up until writes are refused.",
            "flush_switch true",
        ),
        (
            Work::Compactions,
            "Compactions are paused: store files pile up, and reads get slower.",
            "compaction_switch true",
        ),
    ] {
        if server.engine().is_paused(work) {
            problems.push(problem(
                what,
                html! { code { (command) } " in the shell ends the pause." },
            ));
        }
    }
    problems
}

/// Limits that are nearly reached.
fn of_limits(server: &Server) -> Vec<Problem> {
    let config = server.config();
    let disk = server.engine().disk();
    let memory = server.admission().memory();
    let mut problems = Vec::new();
    if disk.suspended.is_none() && disk.available_bytes < 2 * disk.low_water_bytes {
        let free = show::bytes(disk.available_bytes);
        let remedy = html! { "Writes stop below " (show::bytes(disk.low_water_bytes)) ". Free space, or drop snapshots and tables." };
        problems.push(problem(format!("The disk has only {free} left."), remedy));
    }
    for (what, used, limit, setting) in [
        (
            "Memstores have used",
            server.engine().memstore_bytes(),
            config.memstore.total_bytes,
            "memstore.total_bytes",
        ),
        (
            "Calls in hand have used",
            memory.used(),
            memory.limit(),
            "requests.memory_bytes",
        ),
        (
            "Clients have opened",
            server.load().connections.main.open.get() as u64,
            config.server.max_connections as u64,
            "server.max_connections",
        ),
    ] {
        let share = used as f64 / (limit as f64).max(1.0);
        if (NEARLY..1.0).contains(&share) {
            let remedy = html! { "Raise " code { (setting) } ", or send less at a time." };
            let text = format!("{what} {} of {setting}.", show::percent(share, 1.0));
            problems.push(problem(text, remedy));
        }
    }
    problems
}

/// Calls of clients in the last minute.
fn of_requests(minute: &[Step]) -> Vec<Problem> {
    let sum = |figure: fn(&Step) -> u64| minute.iter().map(figure).sum::<u64>();
    let (calls, failed, stalled) = (
        sum(|step| step.calls),
        sum(|step| step.failed),
        sum(|step| step.stalled_writes),
    );
    let mut problems = Vec::new();
    if calls >= REQUESTS_MIN && failed as f64 > calls as f64 * ERRORS_MAX {
        let share = show::percent(failed as f64, calls as f64);
        let remedy = html! {
            "The table of methods below says which; with " code { "log.filter = \"basalt=debug,info\"" } " the log has each with its cause."
        };
        problems.push(problem(
            format!("{share} of the last minute's requests failed."),
            remedy,
        ));
    }
    if let Some(p99) = quantile(minute.iter(), 0.99).filter(|p99| calls >= REQUESTS_MIN && *p99 > P99_MAX) {
        let remedy = html! { a href="/slow" { "Slow requests" } " names them, and where their time went." };
        let text = format!("One of a hundred requests takes {} or more.", show::duration(p99));
        problems.push(problem(text, remedy));
    } else if let slow = slower(minute.iter(), P99_MAX)
        && slow > SLOW_MAX
    {
        let remedy = html! { a href="/slow" { "Slow requests" } " names them, and where their time went." };
        let slow = show::of(slow, "request");
        problems.push(problem(
            format!(
                "{slow} of the last minute took longer than {}.",
                show::duration(P99_MAX)
            ),
            remedy,
        ));
    }
    if stalled > 0 {
        let remedy = html! {
            "Memstores fill faster than flushes and compactions write: see " a href="/jobs" { "what runs" }
            ", spread a hot region, or look for another user of the disk."
        };
        let text = format!(
            "{} slowed or refused in the last minute.",
            show::of(stalled, "write")
        );
        problems.push(problem(text, remedy));
    }
    problems
}

/// A row that takes much of its table's reads or writes.
struct OneRow {
    table: TableName,
    kind: &'static str,
    problem: Problem,
}

fn hot_rows(server: &Server) -> Vec<OneRow> {
    let mut rows = Vec::new();
    for (name, kinds) in server.load().heat.hottest() {
        if name.is_system() || server.engine().describe_table(&name).is_err() {
            continue;
        }
        for (hottest, kind, cure) in [
            (
                kinds[0],
                "reads",
                "Cache it in the client, or copy it to several rows.",
            ),
            (
                kinds[1],
                "writes",
                "Spread it over several rows, and add them up when reading.",
            ),
        ] {
            let (share, rate) = HOT_ROW;
            if let Some(hottest) = hottest.filter(|row| row.share > share && row.per_second > rate) {
                let problem = Problem {
                    what: html! {
                        "One row of table " (name) " takes " (show::percent(hottest.share, 1.0)) " of its " (kind) "."
                    },
                    remedy: html! { a href=(hot_rows::address(&name)) { "Its key" } ". " (cure) },
                };
                rows.push(OneRow {
                    table: name.clone(),
                    kind,
                    problem,
                });
            }
        }
    }
    rows
}

/// Regions that take most of their table's reads or writes, apart from those that one hot row explains: a
/// split does not help there.
fn hot_regions(stats: &[RegionStats], note: &Note, rows: &[OneRow]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for regions in stats.chunk_by(|left, right| left.region.table == right.region.table) {
        let rates: Vec<[f64; 2]> = regions
            .iter()
            .map(|region| note.region(region.region.id, region.reads, region.writes))
            .collect();
        for (kind, name) in ["reads", "writes"].into_iter().enumerate() {
            let all: f64 = rates.iter().map(|rate| rate[kind]).sum();
            let hottest = rates
                .iter()
                .enumerate()
                .max_by(|left, right| left.1[kind].total_cmp(&right.1[kind]));
            let Some((at, rate)) = hottest.filter(|_| regions.len() >= REGIONS_MIN) else {
                continue;
            };
            let (share, least) = HOT_REGION;
            let region = &regions[at].region;
            let is_one_row = rows
                .iter()
                .any(|row| row.table == region.table && row.kind == name);
            if all > least && rate[kind] > all * share && !region.table.is_system() && !is_one_row {
                let of_table = region.table.to_string();
                problems.push(Problem {
                    what: html! {
                        "One of " (regions.len()) " regions of table " (of_table) " takes " (show::percent(rate[kind], all)) " of its " (name) "."
                    },
                    remedy: html! {
                        a href=(show::path(&["regions", &region.encoded_name])) { "The region" } ", and "
                        a href=(show::link("/heat", &[("table", &of_table), ("kind", name)])) { "its keys over time" }
                        ". Salt, hash or reverse the row key, or split the region."
                    },
                });
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::recent::{Recent, Totals};

    /// Goal: requests that take long are a problem, a hundredth of all or not.
    #[test]
    fn slow_requests_are_a_problem_beside_many_quick_ones() {
        let problems = |quick: u64, slow: u64| {
            let recent = Recent::new();
            (0..quick).for_each(|_| recent.took(Duration::from_millis(2)));
            (0..slow).for_each(|_| recent.took(Duration::from_secs(3)));
            recent.note(Totals {
                calls: quick + slow,
                ..Totals::default()
            });
            let problems = of_requests(&recent.steps()).into_iter();
            problems
                .map(|problem| problem.what.into_string())
                .collect::<Vec<_>>()
        };
        assert!(problems(10_000, SLOW_MAX).is_empty());
        assert_eq!(
            problems(10_000, 20),
            ["20 requests of the last minute took longer than 1s."]
        );
        let many = problems(1_000, 20);
        assert!(
            many.len() == 1 && many[0].starts_with("One of a hundred requests takes 3"),
            "{many:?}"
        );
    }
}

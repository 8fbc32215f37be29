//! Flushes and compactions: the running ones with their progress, and the last ones.

use basalt_engine::Engine;
use basalt_engine::engine::Work;
use basalt_engine::jobs::{ENDED_MAX, EndedJob, JobEnd, JobInfo, RunningJob};
use maud::{Markup, html};

use super::frame::Place;
use super::paging::Params;
use super::table::table_link;
use super::{Made, Page, show};
use crate::server::Server;

#[expect(clippy::unnecessary_wraps, reason = "all pages have this form")]
pub(super) fn page(server: &Server, _params: &Params) -> Made {
    let jobs = server.engine().jobs();
    let queues = server.engine().queues();
    let body = html! {
        (paused(server.engine()))
        p.figures {
            span { b { (queues.flushes) } " flushes, " b { (queues.compactions) } " compactions and " b { (queues.splits) } " splits wait or run" }
        }
        (running(server, &jobs.running()))
        (ended(server, &jobs.ended()))
    };
    Ok(Page {
        place: Place::Jobs,
        title: "Flushes and compactions".to_owned(),
        body,
    })
}

/// A line on top for each work that is paused.
pub(super) fn paused(engine: &Engine) -> Markup {
    let works = [
        (
            Work::Flushes,
            "Flushes are paused: memstores fill up until writes are refused.",
        ),
        (
            Work::Compactions,
            "Compactions are paused: store files pile up, and reads get slower.",
        ),
    ];
    html! {
        @for (work, text) in works {
            @if engine.is_paused(work) { p.alarm role="status" { (text) } }
        }
    }
}

/// Kind, table, region and family.
fn subject(server: &Server, info: &JobInfo) -> Markup {
    let table = info.table.to_string();
    html! {
        th scope="row" { (info.kind.as_str()) }
        td { (table_link(server, &table)) }
        td {
            @match server.engine().encoded_name(info.region) {
                Some(name) => a href=(show::path(&["regions", &name])) { code { (name) } },
                None => span.quiet { "gone (id " (info.region) ")" },
            }
        }
        td { @if let Some(family) = &info.family { code { (family) } } @else { "all" } }
    }
}

fn running(server: &Server, jobs: &[RunningJob]) -> Markup {
    html! {
        h2 { "Running" }
        @if jobs.is_empty() {
            p.quiet { "Nothing runs." }
        } @else {
            div.wide { table {
                caption { "Running jobs" }
                thead { tr {
                    th scope="col" { "job" } th scope="col" { "table" } th scope="col" { "region" } th scope="col" { "family" } th.n scope="col" { "inputs" }
                    th.n scope="col" { "bytes" } th.n scope="col" { "left" } th scope="col" { "progress" } th scope="col" { "began" } th.n scope="col" { "for" }
                } }
                tbody {
                    @for job in jobs {
                        @let done = job.info.input_bytes.saturating_sub(job.bytes_left());
                        @let percent = show::percent(done as f64, job.info.input_bytes as f64);
                        tr {
                            (subject(server, &job.info))
                            td.n { (job.info.inputs) }
                            td.n { (show::bytes(job.info.input_bytes)) }
                            td.n { (show::bytes(job.bytes_left())) }
                            td { progress max=(job.info.input_bytes.max(1)) value=(done) { (percent) } " " (percent) }
                            td { (show::time(job.began_ms)) }
                            td.n { (show::duration(job.took)) }
                        }
                    }
                }
            } }
        }
    }
}

fn ended(server: &Server, jobs: &[EndedJob]) -> Markup {
    html! {
        h2 { "Ended" }
        @if jobs.is_empty() {
            p.quiet { "Nothing has run since the start." }
        } @else {
            div.wide { table {
                caption { "The last " (ENDED_MAX) " jobs, the newest first" }
                thead { tr {
                    th scope="col" { "job" } th scope="col" { "table" } th scope="col" { "region" } th scope="col" { "family" } th.n scope="col" { "inputs" }
                    th.n scope="col" { "read" } th.n scope="col" { "written" } th scope="col" { "began" } th.n scope="col" { "took" } th scope="col" { "end" }
                } }
                tbody {
                    @for job in jobs {
                        tr {
                            (subject(server, &job.info))
                            td.n { (job.info.inputs) }
                            td.n { (show::bytes(job.info.input_bytes)) }
                            td.n { @if let JobEnd::Done { written_bytes } = job.end { (show::bytes(written_bytes)) } @else { "-" } }
                            td { (show::time(job.began_ms)) }
                            td.n { (show::duration(job.took)) }
                            td {
                                @match &job.end {
                                    JobEnd::Done { .. } => "done",
                                    JobEnd::Cancelled => "cancelled",
                                    JobEnd::Failed(why) => span.alarm { "failed: " (why) },
                                }
                            }
                        }
                    }
                }
            } }
        }
    }
}

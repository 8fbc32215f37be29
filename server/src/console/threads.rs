//! Threads: name, state and processor time of each; and a form for a profile.

use std::io;
use std::path::Path;
use std::time::Duration;

use maud::{Markup, html};

use super::frame::Place;
use super::paging::{PAGE_ROWS, Params};
use super::{Made, Page, show};
use crate::config::Config;
use crate::console::profile::{FREQUENCY_DEFAULT, FREQUENCY_MAX, SECONDS_DEFAULT, SECONDS_MAX};

/// Where Linux tells about the threads of this process.
const TASKS: &str = "/proc/self/task";

/// A thread.
#[derive(Debug, PartialEq, Eq)]
struct Thread {
    id: u64,
    name: String,
    /// As Linux says it: `S (sleeping)`.
    state: String,
    /// Processor time that it has used.
    cpu: Duration,
}

impl Thread {
    /// From the thread's folder. `None`: it has ended meanwhile.
    fn read(id: u64, folder: &Path) -> Option<Self> {
        let file = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let status = file("status")?;
        let state = status.lines().find_map(|line| line.strip_prefix("State:"))?;
        // The first number: nanoseconds on a processor. Some kernels do not count.
        let cpu = file("schedstat").and_then(|text| text.split(' ').next()?.parse().ok());
        Some(Self {
            id,
            name: file("comm")?.trim_end().to_owned(),
            state: state.trim().to_owned(),
            cpu: Duration::from_nanos(cpu.unwrap_or(0)),
        })
    }
}

/// All threads, the busiest first.
fn threads() -> io::Result<Vec<Thread>> {
    let mut threads = Vec::new();
    for entry in std::fs::read_dir(TASKS)? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        threads.extend(id.and_then(|id| Thread::read(id, &entry.path())));
    }
    threads.sort_by(|a, b| b.cpu.cmp(&a.cpu).then(a.id.cmp(&b.id)));
    Ok(threads)
}

#[expect(clippy::unnecessary_wraps, reason = "all pages have this form")]
pub(super) fn page(config: &Config, _params: &Params) -> Made {
    let body = html! {
        (profile(config.http.profiles))
        h2 { "Threads" }
        @match threads() {
            Ok(threads) => (list(&threads)),
            Err(error) => p.quiet { "This system does not tell about threads: " (TASKS) ": " (error) },
        }
    };
    Ok(Page {
        place: Place::Threads,
        title: "Threads and profiles".to_owned(),
        body,
    })
}

fn profile(enabled: bool) -> Markup {
    html! {
        h2 { "Profile" }
        @if enabled {
            p {
                "Where this server spends processor time, as a file that " code { "go tool pprof -http=: basalt-profile.pb" } " or Speedscope draws as a flame graph. It takes as long as you say."
            }
            form action="/debug/pprof/profile" method="post" {
                label { "seconds " input type="number" name="seconds" min="1" max=(SECONDS_MAX) value=(SECONDS_DEFAULT); } " "
                label { "samples a second " input type="number" name="frequency" min="1" max=(FREQUENCY_MAX) value=(FREQUENCY_DEFAULT); } " "
                button { "Take a profile" }
            }
        } @else {
            p.quiet { "Profiles are switched off: " code { "http.profiles" } " is false. Start with " code { "--set http.profiles=true" } " to take one." }
        }
    }
}

fn list(threads: &[Thread]) -> Markup {
    let shown = &threads[..threads.len().min(PAGE_ROWS)];
    let running = threads
        .iter()
        .filter(|thread| thread.state.starts_with('R'))
        .count();
    let on_disk = threads
        .iter()
        .filter(|thread| thread.state.starts_with('D'))
        .count();
    html! {
        p.figures {
            span { b { (threads.len()) } " threads" }
            span { b { (running) } " run" }
            span { b { (on_disk) } " wait for the disk" }
        }
        div.wide { table {
            caption { "The " (shown.len()) " threads that have used most processor time" }
            thead { tr { th scope="col" { "thread" } th.n scope="col" { "id" } th scope="col" { "state" } th.n scope="col" { "processor time" } } }
            tbody {
                @for thread in shown {
                    tr {
                        th scope="row" { code { (thread.name) } }
                        td.n { (thread.id) }
                        td { (thread.state) }
                        td.n { (show::duration(thread.cpu)) }
                    }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of the server's threads is in the list under its name; where the system does not list
    /// threads, the error says so.
    #[test]
    fn threads_are_listed_by_name() {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let (begun, named) = std::sync::mpsc::channel();
        // A thread gives itself its name, before anything else.
        let thread = std::thread::Builder::new()
            .name("a-name-of-ours".into())
            .spawn(move || {
                begun.send(()).unwrap();
                wait.recv()
            });
        named.recv().unwrap();
        match threads() {
            Ok(threads) => {
                let ours = threads.iter().find(|thread| thread.name == "a-name-of-ours");
                assert!(ours.is_some_and(|thread| !thread.state.is_empty()), "{threads:?}");
                assert!(threads.iter().any(|thread| !thread.cpu.is_zero()));
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
        }
        drop(done);
        thread.unwrap().join().unwrap().unwrap_err();
    }
}

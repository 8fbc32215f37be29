//! The process as Linux describes it in `/proc`, under the names that Prometheus' client libraries
//! have for these metrics.
//!
//! A scrape reads a handful of small files. A figure that the system does not give (no `/proc`, no
//! permission) has no series.

use std::fs;
use std::time::Duration;

use metrics::{Unit, counter, gauge};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::names::{self, metric_names};

metric_names! {
    counter CPU_SECONDS = "process_cpu_seconds_total", Unit::Seconds, "CPU time of the process, in whole seconds.";
    gauge RESIDENT_BYTES = "process_resident_memory_bytes", Unit::Bytes, "Memory in use.";
    gauge VIRTUAL_BYTES = "process_virtual_memory_bytes", Unit::Bytes, "Address space in use.";
    gauge VIRTUAL_MAX_BYTES = "process_virtual_memory_max_bytes", Unit::Bytes, "Limit of the address space; 0 is none.";
    gauge OPEN_FDS = "process_open_fds", Unit::Count, "Open file descriptors.";
    gauge MAX_FDS = "process_max_fds", Unit::Count, "Limit of file descriptors.";
    gauge THREADS = "process_threads", Unit::Count, "Threads.";
    gauge START_SECONDS = "process_start_time_seconds", Unit::Seconds,
        "When the process started, in seconds since 1970.";
}

/// Registers help texts and units with the installed recorder.
pub(super) fn describe() {
    names::describe(ALL);
}

/// Reads the figures into the installed recorder.
pub(super) fn publish() {
    let limit = |resource| getrlimit(resource).current;
    gauge!(VIRTUAL_MAX_BYTES).set(limit(Resource::As).unwrap_or(0) as f64);
    if let Some(max) = limit(Resource::Nofile) {
        gauge!(MAX_FDS).set(max as f64);
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        gauge!(OPEN_FDS).set(entries.count() as f64);
    }
    let Some(stat) = read("/proc/self/stat").as_deref().and_then(Stat::parse) else {
        return;
    };
    counter!(CPU_SECONDS).absolute(ticks(stat.cpu_ticks).as_secs());
    gauge!(THREADS).set(stat.threads as f64);
    gauge!(VIRTUAL_BYTES).set(stat.virtual_bytes as f64);
    gauge!(RESIDENT_BYTES).set((stat.resident_pages * page_size() as u64) as f64);
    if let Some(boot) = read("/proc/stat").as_deref().and_then(boot_seconds) {
        gauge!(START_SECONDS).set(boot as f64 + ticks(stat.start_ticks).as_secs_f64());
    }
}

/// Processor time and resident memory of the process, if the system tells them.
pub(crate) fn usage() -> Option<(Duration, u64)> {
    let stat = read("/proc/self/stat").as_deref().and_then(Stat::parse)?;
    Some((ticks(stat.cpu_ticks), stat.resident_pages * page_size() as u64))
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The fields of `/proc/self/stat` that are published.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// In user mode and in the kernel.
    cpu_ticks: u64,
    threads: u64,
    /// Since the machine booted.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    /// The second field, the program's name in parentheses, may contain spaces and parentheses: fields
    /// are counted from the last `)`.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_whitespace().collect();
        // `number` is the field's in proc_pid_stat(5), where the one after the name is the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)?.saturating_add(field(15)?),
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// When the machine booted, in seconds since 1970, from `/proc/stat`.
fn boot_seconds(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

fn ticks(ticks: u64) -> Duration {
    let per_second = clock_ticks_per_second().max(1);
    Duration::from_secs_f64(ticks as f64 / per_second as f64)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let text = format!("7 (a) S (b) R {}\n", numbers.join(" "));
        let stat = Stat {
            cpu_ticks: 14 + 15,
            threads: 20,
            start_ticks: 22,
            virtual_bytes: 23,
            resident_pages: 24,
        };
        assert_eq!(Stat::parse(&text), Some(stat));
        assert_eq!(Stat::parse("7 (a) R 4 5"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn the_boot_time_is_one_line_of_many() {
        assert_eq!(boot_seconds("cpu 1 2\nbtime 17\nprocesses 5\n"), Some(17));
        assert_eq!(boot_seconds("cpu 1 2\n"), None);
    }

    /// Goal: the figures are this process's. Method: compare them with values from other sources.
    #[test]
    fn the_figures_are_of_this_process() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, publish);
        let text = recorder.handle().render();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let value = line.and_then(|line| line.trim().parse().ok());
            value.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - value(START_SECONDS);
        assert!((-2.0..86_400.0).contains(&age), "started {age} seconds ago");
        assert!(value(RESIDENT_BYTES) >= 1e6 && value(RESIDENT_BYTES) < value(VIRTUAL_BYTES));
        assert!(value(OPEN_FDS) >= 3.0 && value(OPEN_FDS) <= value(MAX_FDS));
        assert!(value(THREADS) >= 1.0);
    }
}

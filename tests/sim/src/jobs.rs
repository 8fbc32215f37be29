//! Cases on several threads, with a line of progress.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::fs::sim::Harm;

/// Number of violations after which nothing more is tried.
static VIOLATIONS_MAX: AtomicUsize = AtomicUsize::new(10);

/// How often progress is printed.
const PROGRESS_PERIOD: Duration = Duration::from_secs(15);

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures(BTreeMap<&'static str, u64>);

impl Figures {
    /// Counts.
    pub fn add(&mut self, what: &'static str, count: u64) {
        *self.0.entry(what).or_default() += count;
    }

    /// Counts the effects of a power cut.
    pub(crate) fn harm(&mut self, harm: &Harm) {
        self.add("lost changes", harm.lost);
        self.add("torn writes", harm.torn);
        self.add("changes out of order", harm.reordered);
        self.add("files extended without their bytes", harm.extended);
    }

    /// A count so far.
    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            self.add(what, *count);
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        f.write_str(&parts.join(", "))
    }
}

/// Outcome of all cases.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Counts.
    pub figures: Figures,
    /// The first few violations.
    pub violations: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Fails a test with the violations.
    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "{}", self.violations.join("\n"));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in &self.violations {
            writeln!(f, "VIOLATION {violation}")?;
        }
        write!(
            f,
            "{}, {} violations, {:.1} s",
            self.figures,
            self.violations.len(),
            self.took.as_secs_f64()
        )
    }
}

thread_local! {
    /// The present case of this thread, to be named by a panic.
    static CASE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets the present case of this thread. A panic prints it.
pub(crate) fn trying(what: impl FnOnce() -> String) {
    CASE.with(|case| *case.borrow_mut() = what());
}

/// Stops after this many violations, instead of ten.
pub fn stop_after(violations: usize) {
    VIOLATIONS_MAX.store(violations, Ordering::Relaxed);
}

/// Makes panics name the present case. (A release build aborts on the first one.)
pub fn name_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let case = CASE.with(|case| case.borrow().clone());
        eprintln!("VIOLATION panic while trying {case}");
        before(info);
    }));
}

/// Tries cases `0..count`, `jobs` at a time. `case` adds to the figures and returns a violation.
/// With `say`, progress goes to standard error.
pub fn run(
    count: u64,
    jobs: usize,
    say: Option<&str>,
    case: impl Fn(u64, &mut Figures) -> Result<(), String> + Sync,
) -> Report {
    let began = Instant::now();
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let report = Mutex::new(Report::default());
    let said = Mutex::new(began);
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let mut figures = Figures::default();
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(number, &mut figures)));
            let verdict = tried.unwrap_or_else(|panic| {
                let text = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let case = CASE.with(|case| case.borrow().clone());
                Err(format!("{case}: panic: {}", text.unwrap_or_default()))
            });
            let Ok(mut report) = report.lock() else { return };
            report.figures.merge(&figures);
            if let Err(violation) = verdict {
                if let Some(label) = say {
                    eprintln!("{label}: VIOLATION {violation}");
                }
                report.violations.push(violation);
                over.fetch_or(
                    report.violations.len() >= VIOLATIONS_MAX.load(Ordering::Relaxed),
                    Ordering::Relaxed,
                );
            }
            let (Some(label), Ok(mut said)) = (say, said.lock()) else {
                continue;
            };
            if said.elapsed() >= PROGRESS_PERIOD {
                *said = Instant::now();
                eprintln!(
                    "{label}: {number} of {count}; {}, {} violations, {} s",
                    report.figures,
                    report.violations.len(),
                    began.elapsed().as_secs()
                );
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut report = report.into_inner().unwrap_or_default();
    report.took = began.elapsed();
    report
}

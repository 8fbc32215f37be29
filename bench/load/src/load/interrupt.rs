//! Ctrl-C ends a run early: the figures so far are printed, and the exit code is 130.
//!
//! 1. A phase of the load core registers when it begins ([`Phase::begin`]) and records its figures
//!    when it ends ([`Phase::end`]).
//! 2. The first Ctrl-C closes the schedule of the running phase. No further operation begins, those
//!    under way complete, and the phase ends with [`Error::Interrupted`], which ends the workload.
//! 3. The workload is dropped if no phase is running, if it does not end within [`GRACE`], or at a
//!    second Ctrl-C.
//! 4. `main` prints the figures of all phases.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::load::Measured;
use crate::load::pacing::Schedule;

/// Exit code after Ctrl-C: 128 plus the number of SIGINT.
pub(crate) const EXIT_CODE: u8 = 130;
/// Maximum time for operations under way to complete after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);

/// State shared with the Ctrl-C handler: one for the process.
#[derive(Debug, Default)]
struct State {
    is_interrupted: bool,
    /// The schedule of the running phase.
    running: Option<Arc<Schedule>>,
    /// Figures of the phases so far, one line for each.
    figures: Vec<String>,
}

static STATE: Mutex<State> = Mutex::new(State {
    is_interrupted: false,
    running: None,
    figures: Vec::new(),
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registration of a running phase of the load core.
pub(crate) struct Phase;

impl Phase {
    pub(crate) fn begin(schedule: &Arc<Schedule>) -> Phase {
        let mut state = state();
        if state.is_interrupted {
            schedule.close();
        }
        state.running = Some(Arc::clone(schedule));
        Phase
    }

    /// Records the figures; returns [`Error::Interrupted`] if Ctrl-C cut the phase short.
    #[expect(clippy::unused_self, reason = "the phase is over when it is dropped")]
    pub(crate) fn end(self, label: &str, measured: &Measured) -> Result<()> {
        let mut state = state();
        let figure = summary(label, measured, state.is_interrupted);
        state.figures.push(figure);
        if state.is_interrupted {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        state().running = None;
    }
}

fn summary(label: &str, measured: &Measured, is_interrupted: bool) -> String {
    let latencies = measured.latencies();
    let ms = |percentile| latencies.percentile(percentile) as f64 / 1e3;
    let given_up: u64 = measured.kinds.iter().map(|kind| kind.given_up).sum();
    format!(
        "{label}{}: {} operations, {} rows in {:.1} s ({:.0} rows/s), {given_up} given up, p50 {:.3} ms, p99 {:.3} ms",
        if is_interrupted { " (broken off)" } else { "" },
        measured.operations(),
        measured.rows(),
        measured.elapsed.as_secs_f64(),
        measured.per_second(measured.rows()),
        ms(50.0),
        ms(99.0),
    )
}

/// Returns the figures of the phases so far.
pub(crate) fn figures() -> Vec<String> {
    state().figures.clone()
}

/// Runs a workload until it ends or Ctrl-C drops it.
pub async fn until_interrupted(workload: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        outcome = workload => outcome,
        () = given_up() => Err(Error::Interrupted),
    }
}

/// Completes when the workload must be dropped because of Ctrl-C.
async fn given_up() {
    if interrupted().await.is_err() {
        // Without a handler the signal ends the process by default.
        return std::future::pending().await;
    }
    let running = {
        let mut state = state();
        state.is_interrupted = true;
        state.running.clone()
    };
    let Some(schedule) = running else { return };
    schedule.close();
    note!("interrupted: waiting for operations under way; Ctrl-C again ends the run at once");
    tokio::select! {
        _ = interrupted() => {}
        () = tokio::time::sleep(GRACE) => {}
    }
}

async fn interrupted() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Starts a thread that ends the process of this program at Ctrl-C, for workloads that do not run on tokio.
/// They print each figure as soon as it is complete, so nothing is left to print.
pub fn exit_at_ctrl_c(program: &str) {
    let program = program.to_owned();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        if runtime.block_on(interrupted()).is_ok() {
            note!("{program}: interrupted; the figures above are complete, the benchmark that ran has none");
            std::process::exit(i32::from(EXIT_CODE));
        }
    });
}

//! Ctrl-C: the run ends early, with the figures that there are, and exit code 130.
//!
//! 1. A phase of the load core registers when it begins ([`Phase::begin`]) and leaves its figures when it ends.
//! 2. The first Ctrl-C closes the schedule of the phase that runs: no operation is begun any more, those under way are waited for, and the
//!    phase ends with [`Error::Interrupted`](crate::error::Error::Interrupted), which ends the workload.
//! 3. A workload that has no phase running, or does not end within [`GRACE`], is dropped; so it is at a second Ctrl-C.
//! 4. `main` prints the figures of all phases.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::load::Measured;
use crate::load::pacing::Schedule;

/// The exit code of a program that Ctrl-C has ended: 128 and the signal's number.
pub(crate) const EXIT_CODE: u8 = 130;
/// How long operations under way may take.
const GRACE: Duration = Duration::from_secs(10);

/// What Ctrl-C has to know. There is one for the process, as there is one Ctrl-C.
#[derive(Debug, Default)]
struct State {
    is_interrupted: bool,
    /// Of the phase that runs.
    running: Option<Arc<Schedule>>,
    /// Figures of the phases so far, a line each.
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

/// A phase of the load core while it runs.
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

    /// Keeps the figures; an error if the phase was broken off.
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

/// The figures of the phases so far.
pub(crate) fn figures() -> Vec<String> {
    state().figures.clone()
}

/// Runs a workload until it ends or Ctrl-C ends it.
pub(crate) async fn until_interrupted(workload: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        outcome = workload => outcome,
        () = given_up() => Err(Error::Interrupted),
    }
}

/// Returns when a workload that Ctrl-C was to end has not ended.
async fn given_up() {
    if interrupted().await.is_err() {
        // Without a handler the signal ends the process at once, as it did before there was one.
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

/// Ends the process at Ctrl-C, for workloads that run on threads of their own. What they have printed is all that is measured.
pub(crate) fn exit_at_ctrl_c() {
    std::thread::spawn(|| {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        if runtime.block_on(interrupted()).is_ok() {
            note!(
                "basalt-bench: interrupted; the figures above are complete, the benchmark that ran has none"
            );
            std::process::exit(i32::from(EXIT_CODE));
        }
    });
}

//! Metrics: every name, label and meaning is in `names`; handles are resolved once and then only touched.
//!
//! Four kinds of source:
//! 1. Calls and connections record into handles of the global recorder ([`Recorder`], [`Calls`], [`Connections`]).
//! 2. The engine's events (a WAL group, a flush, a compaction) arrive through [`EngineEvents`] and record into histograms.
//! 3. Figures of the process are read from the system when a scrape comes (`process`).
//! 4. The engine's counters and gauges are read when a scrape comes ([`render`]). Those with a region label go through a
//!    recorder of their own that lives for one scrape, so that the series of a dropped or split region end at once.
//!
//! Invariant: the number of series is bounded: methods by the two services, regions by `metrics.max_regions`.

mod calls;
mod engine_events;
mod histogram;
pub(crate) mod names;
mod process;
mod recorder;
mod scrape;

pub(crate) use calls::{Api, CallCount, Calls, Connections, Port};
pub(crate) use engine_events::EngineEvents;
pub(crate) use recorder::Recorder;
pub(crate) use scrape::{publish_admission, render};

/// Installs the recorder for the process, and returns it to be rendered.
/// REQUIRES: called once, before any other function of this module.
pub(crate) fn install() -> Result<Recorder, ::metrics::SetRecorderError<Recorder>> {
    let recorder = Recorder::default();
    ::metrics::set_global_recorder(recorder.clone())?;
    names::describe_all();
    ::metrics::gauge!(names::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION"), "commit" => crate::COMMIT)
        .set(1.0);
    process::describe();
    Ok(recorder)
}

//! Recording of calls: each before it is sent and after it ended, with one clock for all.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use basalt_client::Error;
use basalt_histcheck::{ClientId, Event, History, Op, Outcome, Reply, Time};
use bytes::Bytes;

use super::Problem;

/// Problems found by tasks, for the main loop.
#[derive(Debug, Default)]
pub(super) struct Findings(Mutex<Vec<Problem>>);

impl Findings {
    pub(super) fn add(&self, problem: Problem) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(problem);
    }

    pub(super) fn first(&self) -> Option<Problem> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .first()
            .cloned()
    }
}

/// A monotonic clock. Copies tell the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch(Instant);

impl Watch {
    /// Time 0 is now; nothing is noted at it.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds, from 1 on.
    pub(super) fn now(self) -> Time {
        self.0.elapsed().as_nanos() as Time + 1
    }
}

/// The end of a call, for its caller.
#[derive(Debug)]
pub(super) enum Ended<T> {
    /// With this result.
    Done(T),
    /// The server is busy or its memory full: not carried out, may be tried again.
    Refused,
    /// The server is gone, or as good as: the client ends.
    Gone,
}

impl<T> Ended<T> {
    /// Continues with the result of a call.
    pub(super) fn and_then<U>(self, next: impl FnOnce(T) -> Ended<U>) -> Ended<U> {
        match self {
            Self::Done(result) => next(result),
            Self::Refused => Ended::Refused,
            Self::Gone => Ended::Gone,
        }
    }
}

/// Sorts the end of a call. An error that no right server gives in these workloads is a finding.
pub(super) fn ended<T>(workload: &'static str, findings: &Findings, result: Result<T, Error>) -> Ended<T> {
    match result {
        Ok(value) => Ended::Done(value),
        Err(Error::Server { can_retry: true, .. }) => Ended::Refused,
        Err(Error::Io { .. } | Error::Connect { .. }) => Ended::Gone,
        Err(error) => {
            findings.add(Problem::new(workload, format!("the server answered: {error}")));
            Ended::Gone
        }
    }
}

/// The events of one workload.
#[derive(Debug)]
pub(super) struct Recorder {
    watch: Watch,
    events: Mutex<Vec<Event>>,
    clients: AtomicU32,
}

impl Recorder {
    pub(super) fn new(watch: Watch) -> Self {
        Self {
            watch,
            events: Mutex::default(),
            clients: AtomicU32::new(0),
        }
    }

    /// A client that makes one call at a time.
    pub(super) fn client(self: &Arc<Self>, workload: &'static str, findings: &Arc<Findings>) -> Caller {
        Caller {
            recorder: Arc::clone(self),
            client: self.clients.fetch_add(1, Ordering::Relaxed),
            workload,
            findings: Arc::clone(findings),
        }
    }

    /// The server is certainly dead, and no call is under way.
    pub(super) fn crash(&self) {
        self.note(|time| Event::Crash { time });
    }

    /// All that was noted since the last time.
    pub(super) fn take(&self) -> History {
        let events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        History::from_events(events).expect("events are noted in order, under one lock")
    }

    /// Notes an event; the time is taken under the lock, so events are in order.
    fn note(&self, event: impl FnOnce(Time) -> Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event(self.watch.now()));
    }
}

/// One client of a [`Recorder`].
#[derive(Debug)]
pub(super) struct Caller {
    recorder: Arc<Recorder>,
    client: ClientId,
    workload: &'static str,
    findings: Arc<Findings>,
}

impl Caller {
    /// Makes a call and records it. `Gone` means that its outcome is unknown.
    pub(super) async fn call(
        &self,
        row: &Bytes,
        op: Op,
        call: impl Future<Output = Result<Reply, Error>>,
    ) -> Ended<Reply> {
        self.recorder.note(|time| Event::Invoke {
            time,
            client: self.client,
            row: row.clone(),
            op,
        });
        let result = call.await;
        // Nothing was sent: it is known that nothing happened.
        let unsent = matches!(result, Err(Error::Connect { .. }));
        let ended = ended(self.workload, &self.findings, result);
        let outcome = match &ended {
            Ended::Done(reply) => Outcome::Done(reply.clone()),
            Ended::Refused => Outcome::Refused,
            Ended::Gone if unsent => Outcome::Refused,
            Ended::Gone => Outcome::Unknown,
        };
        self.recorder.note(|time| Event::Return {
            time,
            client: self.client,
            outcome,
        });
        ended
    }
}

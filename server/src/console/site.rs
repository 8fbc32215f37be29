//! The state that the handlers of the HTTP port share.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::server::Server;

/// State shared by the handlers of all requests.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) server: Arc<Server>,
    pub(crate) recorder: PrometheusHandle,
    /// Where calls run that must end although their connection may not live that long.
    pub(crate) tasks: TaskTracker,
    /// Places of answers whose memory could not be reserved.
    pub(crate) places: Arc<Semaphore>,
    /// Whether a profile is being taken.
    pub(crate) profiling: Profiling,
    /// The server stops: waiting tasks are to end.
    pub(crate) stop: CancellationToken,
}

/// The place of the one profile that may run.
#[derive(Clone, Debug)]
pub(crate) struct Profiling(pub(super) Arc<Semaphore>);

impl Profiling {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

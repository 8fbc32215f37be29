//! Figures of the calls to the cluster.

use std::time::Duration;

use basalt_client::native::Observer;
use basalt_idl::native::exception::ExceptionClass;

use crate::observe::metrics::ClusterCalls;

/// Stands for a call without an answer.
const NO_ANSWER: &str = "no answer";
/// Stands for classes that HBase's clients do not know: the label has few values.
const OTHER: &str = "other";

impl Observer for ClusterCalls {
    fn called(&self, method: &'static str, took: Duration, outcome: Result<(), Option<&str>>) {
        let failed = match outcome {
            Ok(()) => None,
            Err(None) => Some(NO_ANSWER),
            Err(Some(class)) => Some(ExceptionClass::named(class).map_or(OTHER, |known| {
                let name = known.name();
                name.rsplit('.').next().unwrap_or(name)
            })),
        };
        Self::called(self, method, took, failed);
    }

    fn connected(&self, is_open: bool) {
        Self::connected(self, is_open);
    }

    fn lost(&self) {
        Self::lost(self);
    }

    fn looked_up(&self) {
        Self::looked_up(self);
    }

    fn repeated(&self) {
        Self::repeated(self);
    }
}

//! Runs the work of calls that may block on the blocking pool.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Failure;
use crate::limits::admission::Class;
use crate::server::Server;

impl Server {
    /// Runs the `work` of a data call where it may block, when its turn has come.
    /// REQUIRES: [`Admission::admit_to_queue_of`] has admitted the call.
    pub(crate) async fn run_queued<T: Send + 'static>(
        self: &Arc<Self>,
        class: Class,
        work: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _permit = self.admission().permit(class).await?;
        self.on_pool(work).await
    }

    /// Converts arguments with regular expressions, on the pool. Few calls do so at a time:
    /// [`Admission::compiler`] bounds those of [`Class::User`], their permits those of [`Class::System`].
    pub(crate) async fn compiled<T: Send + 'static>(
        self: &Arc<Self>,
        class: Class,
        convert: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _permit = match class {
            Class::User => Some(self.admission().compiler().await?),
            Class::System => None,
        };
        self.admission().admit_to_queue_of(class)?;
        self.run_queued(class, convert).await
    }

    /// Runs `work` where it may block, without queueing for a permit: schema changes and the like.
    pub(crate) async fn on_pool<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let server = Arc::clone(self);
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        run_blocking(Box::new(move || *place.lock() = Some(work(&server)))).await;
        // The pool refuses work only when the runtime is going down. A panic in it has ended the process
        // already in a release build, and is a bug that tests see as this error.
        let result = result.lock().take();
        result.unwrap_or_else(|| Err(basalt_engine::Error::ShuttingDown.into()))
    }
}

/// Runs work on the blocking pool. Not generic: the pool's tasks are compiled once, and not for each of some
/// two hundred closures.
async fn run_blocking(work: Box<dyn FnOnce() + Send>) {
    let ran = tokio::task::spawn_blocking(work).await;
    if let Err(error) = ran {
        tracing::debug!(%error, "work on the blocking pool has not ended");
    }
}

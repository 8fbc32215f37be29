//! Runs the work of calls that may block on the blocking pool.

use std::sync::Arc;

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
        match tokio::task::spawn_blocking(move || work(&server)).await {
            Ok(result) => result,
            // The pool refuses work only when the runtime is going down. A panic in it has ended the process
            // already in a release build, and is a bug that tests see as this error.
            Err(_) => Err(basalt_engine::Error::ShuttingDown.into()),
        }
    }
}

//! Work that blocks, on threads for it.

use crate::error::{Error, Result};

/// Runs work that blocks on the disk.
pub(crate) async fn on_pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::Refused("the program is stopping".into()))
}

//! Points for backups.

use basalt_engine::engine::Pin;

use super::{AdminCall, run_admin};
use crate::security::{Action, Target};
use crate::service::Failure;

/// Pins everything that the server holds, for the right of an operator. Blocks for a sync of the log.
pub(crate) fn pin(call: &AdminCall) -> Result<Pin, Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        Ok(backend.engine()?.pin()?)
    })
}

//! The last step of a change before its acknowledgement: a standby has it, if the settings ask for that, and
//! this server is still the primary.

use basalt_engine::engine::Place;
use basalt_engine::id::SeqId;

use super::{Backend, Failure};
use crate::server::Server;

/// Waits until a standby has a write that is durable here, if the settings say so. Fails if this server was
/// replaced meanwhile: it is unknown whether the next primary has the write.
pub(super) async fn write(server: &Server, seq: SeqId) -> Result<(), Failure> {
    let standbys = &server.copies().standbys;
    standbys.note_write();
    if standbys.must_confirm() {
        let wanted = Place {
            position: seq.next(),
            turn: 0,
        };
        standbys.confirmed(wanted).await;
    }
    still_primary(server)
}

/// Waits until a standby has made all changes of the schema, if the settings say so. Fails as [`write`] does.
/// Blocks.
pub(super) fn change(server: &Server) -> Result<(), Failure> {
    let standbys = &server.copies().standbys;
    standbys.note_write();
    if standbys.must_confirm()
        && let Backend::Local(engine) = Backend::of(server)
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        let wanted = Place {
            position: SeqId(0),
            turn: engine.turns()?,
        };
        runtime.block_on(standbys.confirmed(wanted));
    }
    still_primary(server)
}

fn still_primary(server: &Server) -> Result<(), Failure> {
    match server.copies().standing.refusal() {
        None => Ok(()),
        Some(text) => Err(Failure::not_serving(format!("{text}; it may have been applied"))),
    }
}

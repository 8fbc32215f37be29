//! `POST /backup`: makes a backup, and answers with its progress while it runs.
//!
//! The body is a JSON object ([`Wanted`]). The answer is lines of JSON ([`lines`]): `{"progress": {...}}`
//! twice a second, and the end. A client that disconnects ends the backup.
//!
//! [`access`](super::access) asks for the right of an operator, and so does the pin.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::response::Response;
use axum::routing::{Router, post};
use basalt_backup::{Figures, Made};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::lines;
use crate::backup::job::{Job, Wanted};
use crate::console::Site;
use crate::security::Caller;

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Time between two lines.
const PERIOD: Duration = Duration::from_millis(500);

/// The routes of this module.
pub(super) fn router() -> Router<Site> {
    Router::new()
        .route("/backup", post(back_up))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

async fn back_up(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Bytes,
) -> Response {
    let wanted: Wanted = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => return lines::wrong_body("{\"to\": \"file:/backups\"}", &error),
    };
    let (sender, received) = lines::channel();
    let work = tokio::spawn(run(site, caller, Arc::new(Job::new(wanted)), sender));
    lines::answer(received, AbortOnDropHandle::new(work))
}

/// Runs a job and sends its lines.
async fn run(site: Site, caller: Arc<Caller>, job: Arc<Job>, sender: mpsc::Sender<Value>) {
    let mut ticks = tokio::time::interval(PERIOD);
    let made = {
        let mut work = std::pin::pin!(Arc::clone(&job).run(Arc::clone(&site.server), caller));
        loop {
            tokio::select! {
                made = work.as_mut() => break made.map_err(|refusal| refusal.to_string()),
                () = site.stop.cancelled() => break Err("the server is stopping".to_owned()),
                _ = ticks.tick() => {
                    // A client that reads slowly gets fewer lines.
                    let _ = sender.try_send(progress(job.figures()));
                }
            }
        }
    };
    // Fails when the client has gone.
    let _ = sender.send(lines::last(made.map(|made| shown(&made)))).await;
}

fn progress(figures: Figures) -> Value {
    json!({ "progress": {
        "files": figures.files,
        "bytes_total": figures.bytes_total,
        "bytes_done": figures.bytes_done,
        "bytes_written": figures.bytes_moved,
    }})
}

fn shown(made: &Made) -> Value {
    json!({
        "id": made.id,
        "position": made.position,
        "files": made.files,
        "bytes": made.bytes,
        "bytes_written": made.written,
        "left_out": made.left_out,
    })
}

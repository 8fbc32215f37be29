//! `POST /backup`: makes a backup, and answers with its progress while it runs.
//!
//! The body is a JSON object ([`Wanted`]). The answer is lines of JSON: `{"progress": {...}}` twice a second,
//! and at the end `{"made": {...}}` or `{"error": "..."}`. Status 200 says that the work has begun, no more.
//! A client that disconnects ends the backup.
//!
//! [`access`](super::access) asks for the right of an operator, and so does the pin.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{Router, post};
use basalt_backup::{Figures, Made};
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::backup::job::{Job, Wanted};
use crate::console::Site;
use crate::security::Caller;

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Time between two lines.
const PERIOD: Duration = Duration::from_millis(500);

/// Lines that wait for a slow client. Progress that finds no place is left out.
const LINES: usize = 8;

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
        Err(error) => {
            let text = format!("the body must be like {{\"to\": \"file:/backups\"}}: {error}\n");
            return (StatusCode::BAD_REQUEST, text).into_response();
        }
    };
    let (lines, received) = mpsc::channel::<Value>(LINES);
    let work = AbortOnDropHandle::new(tokio::spawn(run(site, caller, Arc::new(Job::new(wanted)), lines)));
    // The work ends with the answer's body, which the library drops when the client has gone.
    let answered = stream::unfold((received, work), |(mut received, work)| async move {
        let line = received.recv().await?;
        Some((Ok::<_, Infallible>(format!("{line}\n")), (received, work)))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, Body::from_stream(answered)).into_response()
}

/// Runs a job and sends its lines.
async fn run(site: Site, caller: Arc<Caller>, job: Arc<Job>, lines: mpsc::Sender<Value>) {
    let mut ticks = tokio::time::interval(PERIOD);
    let made = {
        let mut work = std::pin::pin!(Arc::clone(&job).run(Arc::clone(&site.server), caller));
        loop {
            tokio::select! {
                made = work.as_mut() => break made.map_err(|refusal| refusal.to_string()),
                () = site.stop.cancelled() => break Err("the server is stopping".to_owned()),
                _ = ticks.tick() => {
                    // A client that reads slowly gets fewer lines.
                    let _ = lines.try_send(progress(job.figures()));
                }
            }
        }
    };
    let last = match made {
        Ok(made) => json!({ "made": shown(&made) }),
        Err(error) => json!({ "error": error }),
    };
    // Fails when the client has gone.
    let _ = lines.send(last).await;
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

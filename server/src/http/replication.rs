//! `POST /replication/wait`: waits until a replication peer has everything that was written before the call.
//!
//! The body is a JSON object ([`Wanted`]). The answer is lines of JSON ([`lines`]): `{"progress": {...}}`
//! once a second, and the end. The wait ends with the connection of its client.
//!
//! [`access`](super::access) asks for the right of an operator, and so does the call.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::response::Response;
use axum::routing::{Router, post};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::lines;
use crate::console::Site;
use crate::security::Caller;
use crate::service::admin::{AdminCall, cluster, peers};

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Time between two looks at the peer's position.
const LOOK: Duration = Duration::from_millis(10);

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// Content of the request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The peer's id.
    peer: String,
    /// Longest wait, in milliseconds. None: no limit.
    limit_ms: Option<u64>,
}

/// The routes of this module.
pub(super) fn router() -> Router<Site> {
    Router::new()
        .route("/replication/wait", post(wait))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

async fn wait(State(site): State<Site>, Extension(caller): Extension<Arc<Caller>>, body: Bytes) -> Response {
    let wanted: Wanted = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => return lines::wrong_body("{\"peer\": \"out\", \"limit_ms\": 60000}", &error),
    };
    let (sender, received) = lines::channel();
    let call = AdminCall::new(&site.server, &caller);
    let waiting = tokio::spawn(async move {
        let made = run(&call, &wanted, &sender).await;
        // Fails when the client has gone.
        let _ = sender.send(lines::last(made)).await;
    });
    lines::answer(received, AbortOnDropHandle::new(waiting))
}

async fn run(call: &AdminCall, wanted: &Wanted, lines: &mpsc::Sender<Value>) -> Result<Value, String> {
    let id = &wanted.peer;
    let time_ms = cluster::wall_ms(call);
    let end = peers::end_to_wait_for(call, id).map_err(|failure| failure.with_class())?;
    let (began, mut shown) = (Instant::now(), Instant::now());
    let limit = wanted.limit_ms.map(Duration::from_millis);
    loop {
        let Some(peer) = call.server().copies().peers.get(id) else {
            return Err(format!("replication peer {id} was removed during the wait"));
        };
        if !peer.enabled {
            return Err(format!("replication peer {id} was disabled during the wait"));
        }
        let load = peer.figures.load(cluster::wall_ms(call));
        if load.position >= end {
            let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            return Ok(json!({ "position": end, "time_ms": time_ms, "waited_ms": waited_ms }));
        }
        if let Some(limit) = limit.filter(|limit| began.elapsed() >= *limit) {
            let problem = match load.problem.as_str() {
                "" => String::new(),
                problem => format!("; the last attempt failed: {problem}"),
            };
            return Err(format!(
                "replication peer {id} is at position {} after {limit:?}, and not at {end}{problem}",
                load.position
            ));
        }
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            let progress = json!({
                "position": load.position,
                "end": end,
                "lag_ms": load.lag_ms,
                "problem": load.problem,
            });
            // A slow client gets fewer lines.
            let _ = lines.try_send(json!({ "progress": progress }));
        }
        tokio::time::sleep(LOOK).await;
    }
}

//! `POST /snapshots/import`: takes over a snapshot from files that the server can read, in the layout of
//! HBase's root directory, and makes a table of it if asked.
//!
//! The body is a JSON object ([`Wanted`]). The answer is lines of JSON ([`lines`]): `{"copied": PATH}` for
//! each file, and the end. Work that has begun goes on when the client disconnects.
//!
//! [`access`](super::access) asks for the right of an operator, and so does each call.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::response::Response;
use axum::routing::{Router, post};
use basalt_engine::schema::TableName;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::lines;
use crate::console::Site;
use crate::security::Caller;
use crate::service::Failure;
use crate::service::admin::{AdminCall, snapshots};
use crate::snapshot_files::import;

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Content of the request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The root directory, as the server sees it.
    from: PathBuf,
    /// The snapshot.
    name: String,
    /// The table that is made of it. The snapshot is removed then.
    table: Option<String>,
}

/// The routes of this module.
pub(super) fn router() -> Router<Site> {
    Router::new()
        .route("/snapshots/import", post(take_over))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

async fn take_over(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Bytes,
) -> Response {
    let wanted: Wanted = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => return lines::wrong_body("{\"from\": \"/srv/export\", \"name\": \"s\"}", &error),
    };
    let (sender, received) = lines::channel();
    let call = AdminCall::new(&site.server, &caller);
    // Copying takes long, and has a thread of its own for it: those of calls are for calls.
    site.tasks.spawn_blocking(move || {
        let made = run(&call, &wanted, &sender);
        // Fails when the client has gone.
        let _ = sender.blocking_send(lines::last(made));
    });
    lines::answer(received, ())
}

fn run(call: &AdminCall, wanted: &Wanted, lines: &mpsc::Sender<Value>) -> Result<Value, String> {
    let table = wanted
        .table
        .as_ref()
        .map(|name| TableName::parse(name.as_bytes()));
    let table = table.transpose().map_err(|error| error.to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let snapshot = import::read(&wanted.from, &wanted.name, now_ms).map_err(|error| error.to_string())?;
    let mut files = 0;
    snapshots::import(call, &snapshot.content, &mut |path| {
        files += 1;
        let _ = lines.try_send(json!({ "copied": path }));
    })
    .map_err(|failure| told(&failure))?;
    if let Some(table) = &table {
        let cloned = snapshots::clone(call, &wanted.name, table);
        let removed = snapshots::delete(call, &wanted.name);
        cloned.and(removed).map_err(|failure| told(&failure))?;
    }
    Ok(json!({
        "table": table.unwrap_or_else(|| snapshot.content.descriptor.name.clone()).to_string(),
        "regions": snapshot.content.regions.len(),
        "files": files,
        "left_out": snapshot.left_out,
    }))
}

/// A failure with its class: the message of some is a name alone.
fn told(failure: &Failure) -> String {
    let class = failure.class().rsplit('.').next().unwrap_or_default();
    format!("{class}: {}", failure.message())
}

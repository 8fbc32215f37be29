//! Answers that are lines of JSON, sent while long work goes on: progress, and at the end `{"made": {...}}`
//! or `{"error": "..."}`. Status 200 says that the work has begun, no more.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Lines that wait for a slow client. Progress that finds no place is left out.
const LINES: usize = 8;

/// A channel for the lines of an answer.
pub(super) fn channel() -> (mpsc::Sender<Value>, mpsc::Receiver<Value>) {
    mpsc::channel(LINES)
}

/// The answer with these lines. `work` is dropped with it, which happens when the client has gone.
pub(super) fn answer<W: Send + 'static>(received: mpsc::Receiver<Value>, work: W) -> Response {
    let lines = stream::unfold((received, work), |(mut received, work)| async move {
        let line = received.recv().await?;
        Some((Ok::<_, Infallible>(format!("{line}\n")), (received, work)))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, Body::from_stream(lines)).into_response()
}

/// The last line.
pub(super) fn last(made: Result<Value, String>) -> Value {
    match made {
        Ok(made) => json!({ "made": made }),
        Err(error) => json!({ "error": error }),
    }
}

/// The refusal of a body that is not like `example`.
pub(super) fn wrong_body(example: &str, error: &serde_json::Error) -> Response {
    let text = format!("the body must be like {example}: {error}\n");
    (StatusCode::BAD_REQUEST, text).into_response()
}

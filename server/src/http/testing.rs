//! Calls for tests as POST requests, for clients without Thrift: `/test/reset`, optionally with
//! `{"keep_clock": true}` or `{"template": true}`, `/test/template`, `/test/clock` with `{"advance_ms":
//! 60000}`, and `/test/faults` with a list of faults ([`crate::ephemeral::faults`]), which GET shows. Only an
//! ephemeral server answers them; others refuse with 403. Answers are JSON objects; an error has the member
//! `error`.

use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::Site;
use crate::ephemeral::faults::{from_json, to_json};
use crate::server::Server;
use crate::service::{Failure, Kind, testing};

/// The routes of this module.
pub(super) fn router() -> Router<Site> {
    Router::new()
        .route("/test/reset", post(reset))
        .route("/test/template", post(keep_template))
        .route("/test/clock", post(move_clock))
        .route("/test/faults", get(show_faults).post(set_faults))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 64 << 10;

/// How the clock moves.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveClock {
    advance_ms: i64,
}

/// Moves the clock, and returns its new time.
async fn move_clock(State(site): State<Site>, body: Bytes) -> Response {
    let wanted = serde_json::from_slice::<MoveClock>(&body).map_err(|error| {
        Failure::illegal_argument(format!(
            "the body must be like {{\"advance_ms\": 60000}}: {error}"
        ))
    });
    let now = wanted.and_then(|wanted| testing::advance_clock(&site.server, wanted.advance_ms));
    answer(now.map(|now_ms| json!({ "now_ms": now_ms })))
}

/// Shows the faults that are armed.
async fn show_faults(State(site): State<Site>) -> Response {
    let faults = testing::faults(&site.server, "/test/faults");
    answer(faults.map(|faults| to_json(&faults.list())))
}

/// Arms faults instead of the present ones, and shows them.
async fn set_faults(State(site): State<Site>, body: Bytes) -> Response {
    let set = || {
        let faults = testing::faults(&site.server, "/test/faults")?;
        faults.set(from_json(&body).map_err(Failure::illegal_argument)?);
        Ok(to_json(&faults.list()))
    };
    answer(set())
}

/// State that a reset keeps.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Reset {
    keep_clock: bool,
    /// Returns to the template, whose clock stays, instead of to an empty server.
    template: bool,
}

/// Keeps the tables as they are as the template.
async fn keep_template(State(site): State<Site>) -> Response {
    let began = Instant::now();
    let kept = site.server.on_pool(testing::keep_template).await;
    answer(kept.map(|tables| json!({ "tables": tables, "took_us": began.elapsed().as_micros() as u64 })))
}

/// Makes the server empty, and lists the removed objects.
async fn reset(State(site): State<Site>, body: Bytes) -> Response {
    let began = Instant::now();
    let wanted = if body.is_empty() {
        Ok(Reset::default())
    } else {
        serde_json::from_slice::<Reset>(&body).map_err(|error| {
            Failure::illegal_argument(format!(
                "the body must be empty or like {{\"keep_clock\": true}} or {{\"template\": true}}: {error}"
            ))
        })
    };
    let removed = match wanted {
        Ok(Reset { template: true, .. }) => {
            let kept = site.server.on_pool(testing::reset_to_template).await;
            let took_us = began.elapsed().as_micros() as u64;
            return answer(kept.map(|tables| json!({ "template_tables": tables, "took_us": took_us })));
        }
        Ok(Reset { keep_clock, .. }) => {
            let reset = move |server: &Server| testing::reset(server, keep_clock);
            site.server.on_pool(reset).await
        }
        Err(failure) => Err(failure),
    };
    answer(removed.map(|removed| {
        json!({
            "tables": removed.tables,
            "namespaces": removed.namespaces,
            "snapshots": removed.snapshots,
            "took_us": began.elapsed().as_micros() as u64,
        })
    }))
}

fn answer(result: Result<Value, Failure>) -> Response {
    let (status, value) = match result {
        Ok(value) => (StatusCode::OK, value),
        Err(failure) => {
            let status = match failure.kind() {
                Kind::IllegalArgument => StatusCode::BAD_REQUEST,
                _ if failure.can_retry() => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::FORBIDDEN,
            };
            (status, json!({ "error": failure.message() }))
        }
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, format!("{value}\n")).into_response()
}

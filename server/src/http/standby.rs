//! Standbys at the HTTP port: requests between a primary and its standbys, and those of an operator.
//!
//! ```text
//! GET  /standby/status    what this server is, and its standbys or its primary
//! POST /standby/promote   makes this standby the primary
//! POST /standby/remove    keeps no more log for a standby
//! POST /standby/copy      all data, for a new standby
//! POST /standby/log       the log from a place on
//! POST /standby/fence     there is a primary of a higher term
//! ```
//!
//! All of them need the right of an operator ([`access`](super::access)). The bodies are in `standby::wire`.

use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{Router, get, post};
use bytes::Bytes;
use futures_util::stream;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::console::Site;
use crate::server::copies::standing::Role;
use crate::service::Failure;
use crate::standby::leader::{self, Refusal, millis};
use crate::standby::wire::{self, Promoted, Remove, Status};

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 64 << 10;

/// The routes of this module.
pub(super) fn router() -> Router<Site> {
    Router::new()
        .route(wire::STATUS, get(status))
        .route(wire::PROMOTE, post(promote))
        .route(wire::COPY, post(copy))
        .route(wire::LOG, post(log))
        .route(wire::FENCE, post(fence))
        .route(wire::REMOVE, post(remove))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::NotPrimary(_) | Self::Other(_) => StatusCode::CONFLICT,
            Self::Gone(_) => StatusCode::GONE,
            Self::Failed(failure) if failure.can_retry() => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(_) => StatusCode::BAD_REQUEST,
        };
        (status, format!("{self}\n")).into_response()
    }
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    let wrong = |error| Failure::illegal_argument(format!("the body is none of another Basalt: {error}"));
    Ok(serde_json::from_slice(body).map_err(wrong)?)
}

async fn status(State(site): State<Site>) -> Json<Status> {
    Json(leader::status(&site.server))
}

async fn promote(State(site): State<Site>) -> Result<Json<Promoted>, Refusal> {
    let began = Instant::now();
    let copies = site.server.copies();
    match copies.standing.role() {
        Role::Standby => {}
        Role::Primary => {
            let text = format!(
                "this server is the primary of term {} already",
                copies.standing.term()
            );
            return Err(Refusal::Other(text));
        }
        role @ (Role::Fenced | Role::Copying) => {
            return Err(Refusal::Other(format!(
                "this server is no standby: it is {}",
                role.as_str()
            )));
        }
    }
    let (asked, answer) = oneshot::channel();
    let gone = "this standby is stopping, or is the primary by now";
    if copies.following.promotions().send(asked).await.is_err() {
        return Err(Refusal::Other(gone.to_owned()));
    }
    match answer.await {
        Ok(Ok(became)) => Ok(Json(Promoted {
            term: became.term,
            position: became.position,
            fenced: became.fenced,
            took_ms: millis(began.elapsed()),
            lag_ms: became.lag.map(millis),
            problem: became.problem,
        })),
        Ok(Err(why)) => Err(Refusal::Other(why)),
        Err(_) => Err(Refusal::Other(gone.to_owned())),
    }
}

async fn copy(State(site): State<Site>, body: Bytes) -> Result<Response, Refusal> {
    let wanted = parse(&body)?;
    let received = leader::copy(&site.server, wanted).await?;
    let pieces = stream::unfold(received, |mut received| async move {
        let piece = received.recv().await?;
        Some((piece, received))
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

async fn log(State(site): State<Site>, body: Bytes) -> Result<Response, Refusal> {
    let wanted = parse(&body)?;
    let answer = leader::log(&site.server, wanted).await?;
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, answer).into_response())
}

async fn fence(State(site): State<Site>, body: Bytes) -> Result<Response, Refusal> {
    let fence = parse(&body)?;
    let fenced = leader::fence(&site.server, fence).await?;
    Ok(Json(fenced).into_response())
}

async fn remove(State(site): State<Site>, body: Bytes) -> Result<StatusCode, Refusal> {
    let Remove { name } = parse(&body)?;
    leader::remove(&site.server, name).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! `GET /changes`: the stream of changes, as lines of JSON or as server-sent events; and its named readers.
//!
//! ```text
//! GET    /changes?tables=a,b[&from=now|POSITION|snapshot][&bytes=base64|escaped]
//! GET    /changes?reader=NAME[&from=...]
//! GET    /changes/readers
//! PUT    /changes/readers/NAME?tables=a,b[&from=POSITION]
//! POST   /changes/readers/NAME?position=POSITION
//! DELETE /changes/readers/NAME
//! ```
//!
//! Each asks for the right to read the tables by itself (`service::changes`); [`access`](super::access) lets
//! them pass. A stream ends with the connection, or with an object `{"error": ...}`. Docs: docs/changes.md.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{Router, get, put};
use basalt_engine::schema::TableName;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use super::answer::{Closing, watch};
use crate::console::Site;
use crate::limits::admission::MemoryPermit;
use crate::security::Caller;
use crate::service::Failure;
use crate::service::changes::{Form, Notation, Refusal, Start, Stream, Wanted, last, readers};

/// Parameters behind the question mark.
type Parameters = HashMap<String, String>;

/// The routes of this module.
pub(super) fn router() -> Router<Site> {
    Router::new()
        .route("/changes", get(changes))
        .route("/changes/readers", get(list))
        .route(
            "/changes/readers/{name}",
            put(create).post(advance).delete(remove),
        )
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::NoReader(_) => StatusCode::NOT_FOUND,
            Self::Exists(_) => StatusCode::CONFLICT,
            Self::Gone { .. } => StatusCode::GONE,
            Self::TooMany { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(failure) if failure.is_access_denied() => StatusCode::FORBIDDEN,
            Self::Failed(failure) if failure.is_no_table() => StatusCode::NOT_FOUND,
            Self::Failed(failure) if failure.can_retry() => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(_) => StatusCode::BAD_REQUEST,
        };
        (status, format!("{self}\n")).into_response()
    }
}

async fn changes(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
    Query(params): Query<Parameters>,
    request: Request,
) -> Result<Response, Refusal> {
    let wanted = wanted(&params, request.headers())?;
    let form = wanted.form;
    let sending = Sending {
        stream: Some(Stream::open(&site.server, &caller, wanted).await?),
        form,
        stop: site.stop.clone(),
        peer: request.extensions().get::<SocketAddr>().copied(),
        closing: request.extensions().get::<Closing>().cloned(),
        held: None,
    };
    let kind = match form {
        Form::Lines => "application/x-ndjson",
        Form::Events => "text/event-stream",
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")];
    let pieces = stream::unfold(sending, |mut sending| async move {
        let piece = sending.next().await?;
        Some((Ok::<_, Infallible>(piece), sending))
    });
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// A stream on its way to the client.
struct Sending {
    /// `None` once it has ended.
    stream: Option<Stream>,
    form: Form,
    stop: tokio_util::sync::CancellationToken,
    peer: Option<SocketAddr>,
    closing: Option<Closing>,
    /// The memory of the piece that the HTTP library has, and the watch over a client that does not take it.
    held: Option<(MemoryPermit, Option<AbortOnDropHandle<()>>)>,
}

impl Sending {
    /// The next bytes of the answer; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        self.held = None;
        let stream = self.stream.as_mut()?;
        let made = tokio::select! {
            made = stream.next() => made.map_err(|failure| failure.with_class()),
            () = self.stop.cancelled() => Err("the server is stopping".to_owned()),
        };
        match made {
            Ok(piece) => {
                self.hold(piece.permit);
                Some(piece.bytes)
            }
            Err(error) => {
                self.stream = None;
                Some(last(self.form, &error).into())
            }
        }
    }

    /// Keeps the memory of a piece until the next one is asked for. A client that does not take it loses its
    /// connection when others need the memory.
    fn hold(&mut self, permit: MemoryPermit) {
        let closing = self.closing.clone().filter(|_| permit.has_bytes());
        let watching = closing.map(|closing| {
            let slow = permit
                .memory()
                .slow_client(self.peer.map(|peer| peer.ip()), permit.bytes());
            watch(Arc::new(slow), closing)
        });
        self.held = Some((permit, watching));
    }
}

fn wanted(params: &Parameters, headers: &HeaderMap) -> Result<Wanted, Failure> {
    known(params, &["tables", "from", "reader", "bytes"])?;
    let accepts_events = headers
        .get(header::ACCEPT)
        .and_then(|accepted| accepted.to_str().ok())
        .is_some_and(|accepted| accepted.contains("text/event-stream"));
    // A browser opens the stream again by itself, with the id of the last event.
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let from = match (after, params.get("from").map(String::as_str)) {
        (Some(id), _) => Some(Start::Position(number("Last-Event-ID", id)?.saturating_add(1))),
        (None, None) => None,
        (None, Some("now")) => Some(Start::Now),
        (None, Some("snapshot")) => Some(Start::Snapshot),
        (None, Some(position)) => Some(Start::Position(number("from", position)?)),
    };
    Ok(Wanted {
        tables: tables(params)?,
        from,
        reader: params.get("reader").cloned(),
        notation: match params.get("bytes").map(String::as_str) {
            None | Some("base64") => Notation::Base64,
            Some("escaped") => Notation::Escaped,
            Some(other) => {
                return Err(Failure::illegal_argument(format!(
                    "bytes={other} is neither base64 nor escaped"
                )));
            }
        },
        form: if accepts_events { Form::Events } else { Form::Lines },
    })
}

async fn list(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Response, Refusal> {
    let server = Arc::clone(&site.server);
    let listed = site
        .server
        .on_pool(move |_| readers::list(&server, &caller))
        .await?;
    Ok(axum::Json(json!({ "readers": listed })).into_response())
}

async fn create(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(name): Path<String>,
    Query(params): Query<Parameters>,
) -> Result<Response, Refusal> {
    known(&params, &["tables", "from"])?;
    let tables = tables(&params)?;
    let position = match params.get("from").map(String::as_str) {
        None | Some("now") => None,
        Some(position) => Some(number("from", position)?),
    };
    let server = Arc::clone(&site.server);
    let created = site
        .server
        .on_pool(move |_| Ok(readers::create(&server, &caller, &name, &tables, position)))
        .await??;
    let answer = json!({ "name": created.name, "position": created.position.0 });
    Ok((StatusCode::CREATED, axum::Json(answer)).into_response())
}

async fn advance(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(name): Path<String>,
    Query(params): Query<Parameters>,
) -> Result<Response, Refusal> {
    known(&params, &["position"])?;
    let Some(position) = params.get("position") else {
        return Err(Failure::illegal_argument("position=POSITION is missing").into());
    };
    let position = number("position", position)?;
    let server = Arc::clone(&site.server);
    let position = site
        .server
        .on_pool(move |_| Ok(readers::advance(&server, &caller, &name, position)))
        .await??;
    Ok(axum::Json(json!({ "position": position })).into_response())
}

async fn remove(
    State(site): State<Site>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let server = Arc::clone(&site.server);
    site.server
        .on_pool(move |_| Ok(readers::remove(&server, &caller, &name)))
        .await??;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Fails if there is a parameter that is not known.
fn known(params: &Parameters, names: &[&str]) -> Result<(), Failure> {
    match params.keys().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::illegal_argument(format!(
            "there is no parameter {name}, but {}",
            names.join(", ")
        ))),
    }
}

fn tables(params: &Parameters) -> Result<Vec<TableName>, Failure> {
    let named = params.get("tables").map_or("", String::as_str);
    let names = named.split(',').filter(|name| !name.is_empty());
    let mut tables = Vec::new();
    for name in names {
        let table = TableName::parse(name.as_bytes())?;
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    Ok(tables)
}

fn number(name: &str, text: &str) -> Result<u64, Failure> {
    u64::from_str(text).map_err(|_| Failure::illegal_argument(format!("{name}={text} is no position")))
}

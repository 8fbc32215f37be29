//! The HTTP port: metrics and health; pages and profiles are in `console`, Thrift calls by POST in
//! `thrift::http`.
//!
//! A GET changes nothing and starts nothing. Requests of other sites' web pages are refused before any
//! route runs ([`guard`]), and so are those whose sender may not see the answer ([`access`]).

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::console::{self, Profiling, Site, profile};
use crate::server::Server;
use crate::server::gateway::Gateway;

mod access;
mod answer;
mod backup;
mod body;
mod changes;
pub(crate) mod connection;
mod guard;
mod lines;
mod replication;
mod snapshots;
mod standby;
mod testing;

pub(crate) use access::{Sender, caller_of, unauthorized};
pub(crate) use answer::{Answer, Closing, close_without_answer};
pub(crate) use body::{NotReceived, receive};

/// Puts the guard around a router: no route of it is reached without it.
pub(crate) fn guarded(server: &Server, router: Router) -> Router {
    let guard = Arc::new(guard::Guard::new(server.settings().allowed_hosts().clone()));
    router.layer(axum::middleware::from_fn_with_state(guard, guard::guard))
}

/// All that the HTTP port answers. `calls` are further routes with the same rules. `add` puts what other
/// protocols answer on this port in front of it, behind the guard.
pub(crate) fn site(
    server: Arc<Server>,
    recorder: PrometheusHandle,
    tasks: TaskTracker,
    stop: CancellationToken,
    calls: Router<Site>,
    add: impl FnOnce(Router) -> Router,
) -> Router {
    let guarded_by = Arc::clone(&server);
    let site = Site {
        server,
        recorder,
        tasks,
        places: Arc::new(Semaphore::new(answer::PLACES)),
        profiling: Profiling::new(),
        stop,
    };
    let of_tables = || {
        Router::new()
            .merge(backup::router())
            .merge(changes::router())
            .merge(snapshots::router())
            .merge(replication::router())
            .merge(standby::router())
            .merge(testing::router())
            .merge(console::router())
    };
    let pages = if guarded_by.has_tables() {
        of_tables()
    } else {
        console::router_of_gateway()
    };
    let routes = Router::new()
        .route("/", get(console::overview))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/debug/pprof/profile", post(profile::profile))
        .merge(calls)
        .merge(pages)
        .method_not_allowed_fallback(wrong_method)
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "not found: see / , /metrics , /healthz , /readyz , and for Thrift calls /thrift1 , /thrift2\n",
            )
        })
        .layer(axum::middleware::from_fn_with_state(
            site.clone(),
            answer::reserved,
        ))
        .layer(axum::middleware::from_fn_with_state(
            site.clone(),
            access::authorize,
        ))
        .with_state(site);
    guarded(&guarded_by, add(routes))
}

/// The library adds the header that says which methods there are.
async fn wrong_method(method: Method, uri: Uri) -> Response {
    let text = format!(
        "{method} is not answered at {}: see the header Allow\n",
        uri.path()
    );
    (StatusCode::METHOD_NOT_ALLOWED, text).into_response()
}

/// Prometheus' text format. Collecting walks over all regions, so it does not run on a network thread.
async fn metrics(State(site): State<Site>) -> Response {
    let rendered = tokio::task::spawn_blocking(move || site.server.render_metrics(&site.recorder)).await;
    match rendered {
        Ok(text) => {
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response(),
    }
}

/// 200 while calls are accepted, 503 before and after, and while the cluster behind a gateway does not
/// answer. A server with suspended writes or damaged regions is ready, because it answers reads. The text has
/// a line for each problem.
async fn ready(State(site): State<Site>) -> Response {
    if !site.server.instance().is_ready() {
        let text = "not ready: the server is starting or stopping\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    if let Some(reason) = site.server.gateway().and_then(Gateway::away) {
        let text = format!("not ready: {reason}\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    let mut warnings = site.server.warnings();
    warnings.extend(site.server.damage());
    let reasons = site.server.reasons();
    if reasons.is_empty() && warnings.is_empty() {
        return "ready\n".into_response();
    }
    let refused = reasons
        .iter()
        .map(|reason| format!("ready for reads; {reason}\n"));
    let warned = warnings.iter().map(|warning| format!("ready; {warning}\n"));
    refused.chain(warned).collect::<String>().into_response()
}

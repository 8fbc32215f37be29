//! The HTTP port: metrics, health, pages for people, profiles, and Thrift calls by POST. A GET
//! changes nothing and starts nothing. Requests of other sites' web pages are refused before any
//! route runs ([`guard`]).

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Server;
use crate::wire::{Listener, StrangerLog};

mod connection;
mod guard;
mod pages;
mod profile;
mod strangers;
mod testing;
mod thrift;

pub(crate) use guard::AllowedHosts;

/// What the handlers of all requests share.
#[derive(Clone)]
struct Site {
    server: Arc<Server>,
    recorder: PrometheusHandle,
    /// Where calls run that must end although their connection may not live that long.
    tasks: TaskTracker,
    /// Whether a profile is being taken.
    profiling: profile::Profiling,
    /// The server stops: what only waits is to end.
    stop: CancellationToken,
}

/// Serves the HTTP port until told to stop.
pub(crate) async fn serve(
    listener: Listener,
    server: Arc<Server>,
    recorder: PrometheusHandle,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let site = router(Site {
        server: Arc::clone(&server),
        recorder,
        tasks: tasks.clone(),
        profiling: profile::Profiling::new(),
        stop: stop.clone(),
    });
    let stopping = stop.clone();
    let strangers = Arc::new(StrangerLog::default());
    listener
        .accept(tasks, stop, |socket, peer| {
            let site = site.clone();
            let (server, stop) = (Arc::clone(&server), stopping.clone());
            let strangers = Arc::clone(&strangers);
            async move {
                let Some(socket) = strangers::turn_away(&server, socket, peer, &strangers, &stop).await
                else {
                    return;
                };
                if let Err(end) = connection::run(socket, peer, site, &server.config().thrift, stop).await {
                    tracing::debug!(%peer, "HTTP connection closed: {end}");
                }
            }
        })
        .await;
}

/// All routes. Java's Thrift 2 client posts to `/`: HBase's servlet is all there is on its port.
fn router(site: Site) -> Router {
    let guarded = Arc::new(guard::Guard::new(site.server.allowed_hosts().clone()));
    Router::new()
        .route("/", get(pages::overview).post(thrift::thrift2))
        .route("/thrift1", post(thrift::thrift1))
        .route("/thrift2", post(thrift::thrift2))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/debug/pprof/profile", post(profile::profile))
        .merge(testing::router())
        .merge(pages::router())
        .method_not_allowed_fallback(wrong_method)
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "not found: see / , /metrics , /healthz , /readyz , and for Thrift calls /thrift1 , /thrift2\n",
            )
        })
        // Around all of the above: routes added below this line would not be guarded.
        .layer(axum::middleware::from_fn_with_state(guarded, guard::guard))
        .with_state(site)
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
    let rendered = tokio::task::spawn_blocking(move || {
        let config = site.server.config();
        crate::metrics::publish_admission(site.server.admission());
        site.server.publish_counts();
        crate::metrics::render(
            &site.recorder,
            site.server.engine(),
            config.memstore.total_bytes,
            config.metrics.max_regions,
        )
    })
    .await;
    match rendered {
        Ok(text) => {
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response(),
    }
}

/// 200 while calls are accepted, 503 before and after. A server with suspended writes or damaged
/// regions is ready, because it answers reads. The text has a line for each problem.
async fn ready(State(site): State<Site>) -> Response {
    if !site.server.is_ready() {
        let text = "not ready: the server is starting or stopping\n";
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

//! The HTTP port: metrics, health, and the status page. Read-only: no request changes anything.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;

use crate::api::Server;

mod page;

#[derive(Clone)]
struct Site {
    server: Arc<Server>,
    recorder: PrometheusHandle,
}

/// All routes.
pub(crate) fn router(server: Arc<Server>, recorder: PrometheusHandle) -> Router {
    Router::new()
        .route("/", get(status_page))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "not found: see / , /metrics , /healthz , /readyz\n",
            )
        })
        .with_state(Site { server, recorder })
}

/// Prometheus' text format. Collecting walks over all regions, so it does not run on a network thread.
async fn metrics(State(site): State<Site>) -> Response {
    let rendered = tokio::task::spawn_blocking(move || {
        let config = site.server.config();
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

/// 200 while calls are accepted, 503 before and after.
async fn ready(State(site): State<Site>) -> Response {
    if site.server.is_ready() {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
    }
}

async fn status_page(State(site): State<Site>) -> Response {
    // The page has no script and loads nothing.
    let policy = (
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    );
    match tokio::task::spawn_blocking(move || page::status(&site.server)).await {
        Ok(page) => ([policy], Html(page)).into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response(),
    }
}

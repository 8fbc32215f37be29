//! Rights at the HTTP port. Pages, metrics and profiles show what only operators see, so they need the
//! right of an operator, whatever their path.
//!
//! Open to everybody are the answers of [`is_open`]: probes, which say nothing of tables, and Thrift's
//! calls, each of which asks by itself.
//!
//! Invariant: [`authorize`] is a layer around all routes, the fallback included. A refused request learns
//! nothing, not even whether its path exists.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::console::Site;
use crate::security::{Caller, Owner};
use crate::service::pipeline;

/// Refuses a request whose sender may not see what it asks for.
pub(super) async fn authorize(State(site): State<Site>, request: Request, next: Next) -> Response {
    if is_open(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<SocketAddr>().copied();
    let caller = Caller::anonymous(Owner::Http, peer);
    match pipeline::may_operate(&site.server, &caller) {
        Ok(()) => next.run(request).await,
        Err(refused) => (StatusCode::FORBIDDEN, format!("{}\n", refused.with_class())).into_response(),
    }
}

/// Whether the request needs no right of its own.
fn is_open(method: &Method, path: &str) -> bool {
    match path {
        "/healthz" | "/readyz" => true,
        "/" | "/thrift1" | "/thrift2" => method == Method::POST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::{Body, to_bytes};
    use basalt_engine::fs::sim::{SimFs, SimOptions};
    use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::config::Config;
    use crate::security::Access;

    /// A word that only the table of the test has.
    const SECRET: &str = "secret";

    /// Every path of the HTTP port, with the name of a table that exists, and one that does not exist.
    const PATHS: [(&str, &str); 20] = [
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/tables"),
        ("GET", "/tables/secret"),
        ("GET", "/tables/absent"),
        ("GET", "/regions/x"),
        ("GET", "/regions/x/files/y"),
        ("GET", "/cache"),
        ("GET", "/jobs"),
        ("GET", "/slow"),
        ("GET", "/settings"),
        ("GET", "/threads"),
        ("GET", "/heat"),
        ("GET", "/api/heat?table=secret"),
        ("GET", "/assets/style.css"),
        ("POST", "/debug/pprof/profile"),
        ("POST", "/test/reset"),
        ("POST", "/test/clock"),
        ("GET", "/test/faults"),
        ("GET", "/nothing"),
    ];

    async fn ask(access: Access, method: &str, path: &str) -> (StatusCode, String) {
        let config = Config::default();
        let engine = crate::rig::engine_on(&SimFs::new(1, SimOptions::default()), &config);
        let table = TableName::parse(SECRET.as_bytes()).unwrap();
        let descriptor = TableDescriptor::new(table, vec![FamilyDescriptor::new(b"f")]);
        engine.create_table(descriptor, Vec::new()).unwrap();
        let server = Arc::new(crate::rig::server_of(engine, config, 4).with_access(access));
        server.set_ready(true);
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new()
            .build_recorder()
            .handle();
        let site = crate::http::site(server, recorder, TaskTracker::new(), CancellationToken::new());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .body(Body::empty())
            .unwrap();
        let answer = TowerToHyperService::new(site).call(request).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn every_page_is_refused_where_nobody_may_see_it() {
        for (method, path) in PATHS {
            let (status, text) = ask(Access::Nobody, method, path).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}: {text}");
            assert_eq!(
                text,
                "org.apache.hadoop.hbase.security.AccessDeniedException: Insufficient permissions for user \
                 'anonymous' (scope=GLOBAL, action=ADMIN)\n",
                "{method} {path}"
            );
        }
    }

    #[tokio::test]
    async fn probes_are_answered_without_a_right_and_name_no_table() {
        for path in ["/healthz", "/readyz"] {
            let (status, text) = ask(Access::Nobody, "GET", path).await;
            assert_eq!(status, StatusCode::OK, "{path}: {text}");
            assert!(!text.contains(SECRET), "{path}: {text}");
        }
    }

    #[tokio::test]
    async fn pages_are_there_for_those_who_may_see_them() {
        let (status, text) = ask(Access::Everybody, "GET", "/tables").await;
        assert_eq!(status, StatusCode::OK);
        assert!(text.contains(SECRET));
    }
}

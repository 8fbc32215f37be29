//! HBase's REST interface, over HTTP.
//!
//! It is at the root of the main port, on a port of its own (`rest.listen`), and below `/rest/` on the HTTP
//! port. `basalt_rest` reads paths, headers and bodies, and writes bodies; this folder takes a request
//! through these steps:
//!
//! 1. the guard of the HTTP port, around all of this (`http::guarded`), then the login ([`entry`]);
//! 2. the method and the resource ([`methods`]); what the server refuses to everybody: writes where
//!    `rest.readonly` is set, and all writes that a web page sends;
//! 3. the body, received and unpacked within the memory for calls ([`body`]);
//! 4. the handler of the resource, which calls `service` ([`rows`], [`changes`], [`scan`], [`scanners`],
//!    [`schema`], [`namespaces`], [`status`]);
//! 5. the answer ([`answer`]), packed where the client accepts that; failures are rendered in [`faults`].
//!
//! Steps 3 to 5 run in a task of their own: when the client closes the connection, a write goes on to its
//! end. A scan is answered in chunks, the next of which is read when the client has taken the one before, so
//! that it costs as much memory as a chunk ([`stream`]).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio_util::task::TaskTracker;

use crate::observe::metrics::Api;
use crate::server::Server;

mod answer;
mod body;
mod cells;
mod changes;
mod entry;
mod faults;
mod methods;
mod multiget;
mod namespaces;
mod request;
mod rows;
mod scan;
mod scanners;
mod schema;
mod status;
mod stream;
mod value;

/// State that all requests share.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    server: Arc<Server>,
    tasks: TaskTracker,
    /// The path below which the resources are, without a slash at its end.
    prefix: &'static str,
}

/// The path of the resources on the HTTP port.
const PREFIX: &str = "/rest";

/// The interface at the root of a port.
pub(crate) fn site(server: &Arc<Server>, tasks: TaskTracker) -> Router {
    let gateway = Gateway {
        server: Arc::clone(server),
        tasks,
        prefix: "",
    };
    crate::http::guarded(server, Router::new().fallback(answer).with_state(gateway))
}

/// Adds the interface to a router, below [`PREFIX`].
pub(crate) fn beside(server: &Arc<Server>, tasks: TaskTracker, router: Router) -> Router {
    let gateway = Gateway {
        server: Arc::clone(server),
        tasks,
        prefix: PREFIX,
    };
    router.layer(axum::middleware::from_fn_with_state(gateway, choose))
}

async fn answer(State(gateway): State<Gateway>, request: Request) -> Response {
    entry::answer(gateway, request).await
}

/// Answers a request below [`PREFIX`], and passes on the others.
async fn choose(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let rest = request.uri().path().strip_prefix(PREFIX);
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        entry::answer(gateway, request).await
    } else {
        next.run(request).await
    }
}

/// The methods, as metrics number them.
pub(crate) fn methods() -> impl Iterator<Item = (Api, &'static str)> {
    methods::Method::ALL
        .iter()
        .map(|method| (Api::Rest, method.name()))
}

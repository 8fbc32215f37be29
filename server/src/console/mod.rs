//! Pages for people: running work, hot regions, the content of a store file. All of them useful
//! without a script and without Grafana.
//!
//! A page is made in one go on the blocking pool, from the engine's state in memory; only a store
//! file's page reads from disk. Lists are cut into pages of [`paging::PAGE_ROWS`] rows, so a table
//! of ten thousand regions is as quick as a small one.
//!
//! Invariants: a GET changes nothing. Text of others (row keys, names, arguments) reaches the page
//! through `maud`, which escapes it, and bytes through `Escaped` first, as HBase's tools print
//! them. The page loads nothing from other hosts, and [`POLICY`] makes the browser enforce that.

use std::collections::HashMap;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use maud::{Markup, html};

use crate::server::Server;
use crate::service::Failure;

mod cache;
mod curve;
mod file;
mod findings;
mod frame;
mod gateway;
mod heat;
mod heat_data;
mod hot_rows;
mod jobs;
mod overview;
mod paging;
pub(crate) mod profile;
mod region;
mod region_list;
mod rehearsal;
mod rows;
mod settings;
mod show;
mod site;
mod slow;
mod table;
mod tables;
mod threads;
mod verdict;

pub(crate) use site::{Profiling, Site};

use frame::Place;
use paging::Params;

/// Scripts and styles come from this server's own files; nothing else may be loaded, framed or
/// sent.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page's content: its title, which is its heading too, and its body.
struct Page {
    place: Place,
    title: String,
    body: Markup,
}

/// Why there is no page.
#[derive(Debug)]
enum Refusal {
    /// The requested thing does not exist; the text names it.
    NotFound(String),
    /// The address has a parameter that makes no sense; the text says which.
    BadRequest(String),
    /// The user of the request may not see it; the text names the missing right.
    Forbidden(String),
    /// The server cannot do it now; the text says why.
    Busy(String),
    /// Reading from disk failed.
    Failed(basalt_engine::Error),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let text = failure.message().to_owned();
        if failure.is_access_denied() {
            Self::Forbidden(text)
        } else if failure.is_no_table() {
            Self::NotFound(format!("There is no table {text}."))
        } else if failure.can_retry() {
            Self::Busy(text)
        } else {
            Self::BadRequest(text)
        }
    }
}

impl From<basalt_engine::Error> for Refusal {
    fn from(error: basalt_engine::Error) -> Self {
        match error {
            basalt_engine::Error::NoSuchTable(table) => Self::NotFound(format!("There is no table {table}.")),
            basalt_engine::Error::InvalidArgument(why) => Self::BadRequest(why),
            error => Self::Failed(error),
        }
    }
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn text(self) -> String {
        match self {
            Self::NotFound(text) | Self::BadRequest(text) | Self::Forbidden(text) | Self::Busy(text) => text,
            Self::Failed(error) => error.for_clients(),
        }
    }
}

type Made<T = Page> = Result<T, Refusal>;

/// Parameters behind the question mark.
type Parameters = Query<HashMap<String, String>>;

/// The routes of all pages but the first, and of the files that they load.
pub(crate) fn router() -> Router<Site> {
    Router::new()
        .route("/tables", list(tables::page))
        .route(
            "/tables/{table}",
            named(|server, names, params| table::page(server, names[0], params)),
        )
        .route("/tables/{table}/rows", get(rows::handler))
        .route(
            "/regions/{region}",
            named(|server, names, params| region::page(server, names[0], params)),
        )
        .route(
            "/regions/{region}/files/{file}",
            named(|server, names, params| file::page(server, names[0], names[1], params)),
        )
        .route("/findings", list(findings::page))
        .route(
            "/cache",
            list(|server, params| cache::page(server.engine(), params)),
        )
        .route("/jobs", list(jobs::page))
        .merge(router_of_gateway())
}

/// The routes of the pages that a gateway has, too, and of the files that they load.
pub(crate) fn router_of_gateway() -> Router<Site> {
    const CSS: &str = "text/css; charset=utf-8";
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    Router::new()
        .route("/slow", list(slow::page))
        .route(
            "/settings",
            list(|server, params| settings::page(server.settings(), params)),
        )
        .route(
            "/threads",
            list(|server, params| threads::page(server.config(), params)),
        )
        .route("/heat", list(heat::page))
        .route("/api/heat", get(heat_json))
        .route("/assets/style.css", asset(CSS, include_str!("assets/style.css")))
        .route("/assets/live.js", asset(SCRIPT, include_str!("assets/live.js")))
        .route("/assets/heat.js", asset(SCRIPT, include_str!("assets/heat.js")))
        .route(
            "/assets/icon.svg",
            asset("image/svg+xml", include_str!("assets/icon.svg")),
        )
}

/// The first page.
pub(crate) async fn overview(State(site): State<Site>, uri: Uri, Query(params): Parameters) -> Response {
    let params = Params::new(uri.path(), params);
    answer(site, move |server| match server.gateway() {
        None => overview::page(server, &params),
        Some(gateway) => Ok(gateway::page(server, gateway)),
    })
    .await
}

/// A page that has parameters only.
fn list(make: fn(&Server, &Params) -> Made) -> MethodRouter<Site> {
    get(
        async move |State(site): State<Site>, uri: Uri, Query(params): Parameters| {
            let params = Params::new(uri.path(), params);
            answer(site, move |server| make(server, &params)).await
        },
    )
}

/// A page of something whose names are in the path.
fn named(make: fn(&Server, &[&str], &Params) -> Made) -> MethodRouter<Site> {
    get(
        async move |State(site): State<Site>,
                    Path(names): Path<Vec<String>>,
                    uri: Uri,
                    Query(params): Parameters| {
            let params = Params::new(uri.path(), params);
            answer(site, move |server| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                make(server, &names, &params)
            })
            .await
        },
    )
}

/// A file that never changes while the server runs.
fn asset(kind: &'static str, text: &'static str) -> MethodRouter<Site> {
    get(async move || (headers("max-age=60"), [(header::CONTENT_TYPE, kind)], text))
}

/// Headers of everything here, besides those that the guard adds to every answer.
fn headers(caching: &'static str) -> [(HeaderName, HeaderValue); 2] {
    [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
    ]
}

/// Makes a page where it may take a moment, and sends it.
async fn answer(site: Site, make: impl FnOnce(&Server) -> Made + Send + 'static) -> Response {
    let made = tokio::task::spawn_blocking(move || {
        let is_gateway = !site.server.has_tables();
        let (status, page) = match make(&site.server) {
            Ok(page) => (StatusCode::OK, page),
            Err(refusal) => (refusal.status(), refused(refusal, is_gateway)),
        };
        let framed = frame::frame(&page, &notices(&site.server), is_gateway);
        (status, framed.into_string())
    });
    match made.await {
        Ok((status, page)) => (status, headers("no-store"), Html(page)).into_response(),
        Err(_) => stopping(),
    }
}

/// Notices on top of every page: exposure of the ports, and a rehearsal.
fn notices(server: &Server) -> Vec<String> {
    let rehearsal = server.admission().capacity().rehearsal();
    let rehearsal = rehearsal.map(|rehearsal| format!("This is {rehearsal}."));
    server.config().exposure().into_iter().chain(rehearsal).collect()
}

/// The page instead of one that is not there.
fn refused(refusal: Refusal, is_gateway: bool) -> Page {
    let title = match &refusal {
        Refusal::NotFound(_) => "Not found",
        Refusal::BadRequest(_) => "Not understood",
        Refusal::Forbidden(_) => "Not allowed",
        Refusal::Busy(_) => "Not now",
        Refusal::Failed(_) => "An error",
    };
    Page {
        place: Place::Elsewhere,
        title: title.to_owned(),
        body: html! {
            p { (refusal.text()) }
            @if is_gateway { p { a href="/" { "Overview" } } } @else { p { a href="/tables" { "All tables" } } }
        },
    }
}

async fn heat_json(State(site): State<Site>, Query(params): Parameters) -> Response {
    let made =
        tokio::task::spawn_blocking(move || heat_data::data(&site.server, &Params::new("/api/heat", params)));
    match made.await {
        Ok(Ok(data)) => (headers("no-store"), axum::Json(data)).into_response(),
        Ok(Err(refusal)) => {
            let status = refusal.status();
            (status, headers("no-store"), format!("{}\n", refusal.text())).into_response()
        }
        Err(_) => stopping(),
    }
}

/// The runtime takes no more work.
fn stopping() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response()
}

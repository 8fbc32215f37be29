//! The way of a request, from its login to its answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request as HttpRequest;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Method as HttpMethod, StatusCode, header};
use axum::response::{IntoResponse, Response};
use basalt_rest::query::Query;
use basalt_rest::route::Route;
use bytes::Bytes;

use super::answer::{self, Content, Reply};
use super::faults::Refusal;
use super::methods::Method;
use super::request::{About, Request, Result};
use super::{Gateway, body, changes, multiget, namespaces, rows, scan, scanners, schema, status};
use crate::http::{self, Closing};
use crate::limits::admission::{MemoryPermit, Purpose};
use crate::security::Caller;
use crate::service::pipeline::{self, End};
use crate::service::{Kept, Sender, Told};

/// Copies of a body while it is decoded: as received, and as the model's values. What the model takes beyond
/// that is reserved by its handler.
const BODY_COPIES: usize = 2;
/// A body that needs less more memory reserves nothing for it.
const SMALL_BYTES: u64 = 16 << 10;

/// Answers a request. The guard has let it through.
pub(super) async fn answer(gateway: Gateway, request: HttpRequest) -> Response {
    let began = Instant::now();
    let server = gateway.server.clone();
    let (caller, ticket) = match http::caller_of(&server, &request).await {
        Ok((caller, _)) if caller.user().is_none() && server.security().authenticates() => {
            return http::unauthorized(
                server.security(),
                "the request has no login: Basic with user and password, Bearer with a token, a Kerberos ticket where \
                 kerberos.keytab is set, or a client certificate",
            );
        }
        Ok(admitted) => admitted,
        Err(text) => return http::unauthorized(server.security(), &text),
    };
    ticket.on(answer_of(gateway, request, caller, began).await)
}

/// Answers a request of this caller.
async fn answer_of(gateway: Gateway, request: HttpRequest, caller: Arc<Caller>, began: Instant) -> Response {
    let server = gateway.server.clone();
    let path = request.uri().path();
    let path = path.strip_prefix(gateway.prefix).unwrap_or(path).to_owned();
    let route = Route::of(&path);
    if request.method() == HttpMethod::OPTIONS {
        return options(&route);
    }
    let method = match admit(&gateway, &request, &route) {
        Ok(method) => method,
        Err(Refused { refusal, allow }) => {
            let mut response = refused(&refusal);
            if let Some(allow) = allow {
                response
                    .headers_mut()
                    .insert(header::ALLOW, header::HeaderValue::from_static(allow));
            }
            return response;
        }
    };
    let sender = Sender::new(caller, server.admission().memory());
    // Dropped when the client closes the connection.
    let _told = Told::of(&sender);
    let tasks = gateway.tasks.clone();
    let closing = request.extensions().get::<Closing>().cloned();
    let asked = Request {
        method,
        is_head: request.method() == HttpMethod::HEAD,
        path,
        query: Query::parse(request.uri().query().unwrap_or_default()),
        headers: request.headers().clone(),
        is_encrypted: (request.extensions().get::<http::Sender>()).is_some_and(|sender| sender.is_encrypted),
        body: Bytes::new(),
        kept: Kept::default(),
        sender,
        began,
        closing,
        arguments_bytes: 0,
        about: About::new(
            &route,
            request.uri().path_and_query().map_or("", PathAndQuery::as_str),
        ),
        gateway,
    };
    // In a task of its own: when the client closes the connection, this future is dropped, but a write must
    // go on to its end.
    match tasks.spawn(serve(asked, route, request)).await {
        Ok(response) => response,
        // A task ends early only with the runtime.
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the server is stopping\n").into_response(),
    }
}

/// A request that is refused before its handler, with the methods that its resource has if it is for that.
struct Refused {
    refusal: Refusal,
    allow: Option<&'static str>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, allow: None }
    }
}

/// The method of a request, if the server answers that at all.
fn admit(gateway: &Gateway, request: &HttpRequest, route: &Route) -> Result<Method, Refused> {
    let refuse = |status, text: &str| Refused::from(Refusal::new(status, text));
    let method = Method::of(request.method(), route).map_err(|allowed| {
        if allowed.is_empty() {
            return Refusal::not_found(format!(
                "there is nothing at {}: rows are at /TABLE/ROW, the tables at /",
                request
                    .uri()
                    .path()
                    .chars()
                    .take(200)
                    .collect::<String>()
                    .escape_debug()
            ))
            .into();
        }
        let text = format!("{} is not answered here: see the header Allow", request.method());
        Refused {
            refusal: Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text),
            allow: Some(allowed),
        }
    })?;
    let reads = matches!(*request.method(), HttpMethod::GET | HttpMethod::HEAD);
    if !reads && request.headers().contains_key(header::ORIGIN) {
        return Err(refuse(
            StatusCode::FORBIDDEN,
            "the request comes from a web page (it has the header Origin), and web pages may not write",
        ));
    }
    if acts_for_another(request.headers(), request.uri().query()) {
        return Err(refuse(
            StatusCode::FORBIDDEN,
            "the request has doAs, but acting for another user is not supported",
        ));
    }
    if gateway.server.config().rest.readonly && method.writes() {
        return Err(refuse(
            StatusCode::FORBIDDEN,
            "the interface is read-only (rest.readonly)",
        ));
    }
    Ok(method)
}

fn acts_for_another(headers: &HeaderMap, query: Option<&str>) -> bool {
    let is_do_as = |name: &str| name.eq_ignore_ascii_case("doas");
    let mut parameters = query.unwrap_or_default().split('&');
    headers.contains_key("doas")
        || parameters.any(|part| is_do_as(part.split('=').next().unwrap_or_default()))
}

fn options(route: &Route) -> Response {
    match Method::of(&HttpMethod::OPTIONS, route) {
        Err("") | Ok(_) => StatusCode::NOT_FOUND.into_response(),
        Err(allowed) => (StatusCode::OK, [(header::ALLOW, allowed)]).into_response(),
    }
}

/// A refusal without a request.
fn refused(refusal: &Refusal) -> Response {
    let Reply { status, headers, .. } = answer::refused(refusal);
    (status, headers, format!("{}\n", refusal.text)).into_response()
}

/// Receives the body, runs the handler, and renders the answer.
async fn serve(mut asked: Request, route: Route, request: HttpRequest) -> Response {
    let server = asked.gateway.server.clone();
    let mut permit = MemoryPermit::empty(server.admission().memory());
    let received = receive(&mut asked, request, &mut permit).await;
    let outcome = match received {
        // Boxed: a task would have the size of the largest handler.
        Ok(()) => Box::pin(handle(&mut asked, route)).await,
        Err(refusal) => Err(refusal),
    };
    asked.body = Bytes::new();
    drop(permit);
    let (reply, failed, message) = match outcome {
        Ok(reply) => (reply, None, String::new()),
        Err(refusal) => {
            let class = (refusal.status != StatusCode::NOT_MODIFIED && refusal.class != "NotFound")
                .then_some(refusal.class);
            (answer::refused(&refusal), class, refusal.text)
        }
    };
    // A scan that is answered in chunks settles its call at its end.
    if let Content::Whole(bytes) = &reply.body {
        server.load().connections.sent_bytes.add(bytes.len() as u64);
        let method = asked.method.described();
        let end = End {
            failed,
            message: &message,
            answer_bytes: bytes.len(),
        };
        let about = asked.about.clone();
        let (server, mut call) = asked.call();
        about.describe(&mut call);
        pipeline::settle(&server, &call, method, end);
    }
    answer::render(asked, reply).await
}

/// Receives the body of a request that has one, and reserves memory for what is decoded from it.
async fn receive(asked: &mut Request, request: HttpRequest, permit: &mut MemoryPermit) -> Result<()> {
    if matches!(*request.method(), HttpMethod::GET | HttpMethod::HEAD) {
        // Some clients send a body with each request; it means nothing here, and the connection reads past
        // it.
        return Ok(());
    }
    let peer = request.extensions().get::<SocketAddr>().map(SocketAddr::ip);
    let packing = asked
        .header(header::CONTENT_ENCODING)
        .map(str::to_ascii_lowercase);
    let is_packed = match packing.as_deref() {
        None | Some("" | "identity") => false,
        Some("gzip" | "x-gzip") => true,
        Some(_) => {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the Content-Encoding of the body must be gzip or identity",
            ));
        }
    };
    let server = asked.gateway.server.clone();
    let mut body = http::receive(request, &server, peer, permit).await?;
    if is_packed {
        body = body::unpack(&server, body, permit).await?;
    }
    let bytes = BODY_COPIES * body.len();
    if bytes > permit.bytes() as usize {
        let more = bytes as u64 - permit.bytes();
        if more > SMALL_BYTES {
            permit.add(more, Purpose::Arrive).await?;
        }
    }
    asked.body = body;
    Ok(())
}

async fn handle(asked: &mut Request, route: Route) -> Result<Reply> {
    match (asked.method, route) {
        (Method::Get, Route::Rows(table, path)) => rows::get(asked, &table, &path).await,
        (Method::Put, Route::Rows(table, path)) => changes::put(asked, &table, &path).await,
        (Method::Delete, Route::Rows(table, path)) => changes::delete(asked, &table, &path).await,
        (_, Route::Multiget(table, columns)) => multiget::get(asked, &table, &columns).await,
        (_, Route::Scan(table, prefix)) => scan::scan(asked, &table, &prefix).await,
        (_, Route::Scanners(table)) => scanners::open(asked, &table).await,
        (Method::CloseScanner, Route::Scanner(_, id)) => scanners::close(asked, &id),
        (_, Route::Scanner(_, id)) => scanners::fetch(asked, &id).await,
        (Method::ListTables, _) => schema::list(asked).await,
        (_, Route::Exists(table)) => schema::exists(asked, &table),
        (_, Route::Regions(table)) => schema::regions(asked, &table).await,
        (Method::GetSchema, Route::Schema(table)) => schema::get(asked, &table).await,
        (Method::DeleteTable, Route::Schema(table)) => schema::delete(asked, &table).await,
        (_, Route::Schema(table)) => schema::put(asked, &table).await,
        (Method::ListNamespaces, _) => namespaces::list(asked).await,
        (Method::ListNamespaceTables, Route::NamespaceTables(name)) => namespaces::tables(asked, &name).await,
        (Method::GetNamespace, Route::Namespace(name)) => namespaces::get(asked, &name).await,
        (_, Route::Namespace(name) | Route::NamespaceTables(name)) => namespaces::change(asked, name).await,
        (Method::Version, _) => status::version(asked),
        (Method::ClusterVersion, _) => status::cluster_version(asked),
        (Method::ClusterStatus, _) => status::cluster(asked).await,
        (method, route) => Err(Refusal::not_found(format!(
            "{} has no resource {route:?}",
            method.name()
        ))),
    }
}

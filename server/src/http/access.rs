//! Rights at the HTTP port. Pages, metrics and profiles show what only operators see, so they need the
//! right of an operator, whatever their path.
//!
//! Open to everybody are the answers of [`is_open`]: probes, which say nothing of tables, and Thrift's
//! calls and the streams of changes, each of which asks by itself.
//!
//! A request is of the user in its header `Authorization` (`Basic` with password or token, `Bearer` with
//! a token; inside TLS or on this machine; `Negotiate` with a Kerberos ticket), or of the certificate of its
//! connection. A wrong login is refused whatever it asks for.
//!
//! Invariant: [`authorize`] is a layer around all routes, the fallback included. A refused request learns
//! nothing, not even whether its path exists.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use basalt_security::sasl::http::{is_negotiate, negotiate_answer};

use crate::console::Site;
use crate::security::{Caller, Login, Owner, Registered, Security, Stranger};
use crate::server::Server;
use crate::service::pipeline;

/// The sender of the requests of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) peer: SocketAddr,
    pub(crate) is_encrypted: bool,
    /// The login of the connection's certificate.
    pub(crate) login: Option<Login>,
    /// The connection, as long as no request of it has had a login.
    pub(crate) stranger: Stranger,
    pub(crate) security: Arc<Security>,
}

impl Sender {
    /// Registers the login of the certificate for as long as the connection lives.
    pub(super) fn registered(&self) -> Option<Registered> {
        let login = self.login.as_ref()?;
        Some(self.security.register(login, None))
    }
}

/// Challenge that makes a browser ask for user and password.
const CHALLENGE: &str = "Basic realm=\"basalt\", charset=\"UTF-8\"";

/// Adds the [`Caller`] to a request as an extension, and refuses the request if its sender may not
/// see what it asks for.
pub(super) async fn authorize(State(site): State<Site>, mut request: Request, next: Next) -> Response {
    let security = Arc::clone(site.server.security());
    let (caller, answer) = match caller_of(&site.server, &request).await {
        Ok(admitted) => admitted,
        Err(text) => return unauthorized(&security, &text),
    };
    let is_anonymous = caller.user().is_none();
    if is_anonymous && site.server.security().authenticates() && is_of_changes(request.uri().path()) {
        return unauthorized(&security, "Authentication is required");
    }
    if !is_open(request.method(), request.uri().path())
        && let Err(refused) = pipeline::may_operate(&site.server, &caller)
    {
        let text = refused.with_class();
        if is_anonymous && site.server.security().authenticates() {
            return unauthorized(&security, &text);
        }
        return (StatusCode::FORBIDDEN, format!("{text}\n")).into_response();
    }
    request.extensions_mut().insert(caller);
    answer.on(next.run(request).await)
}

/// The answer to a ticket: a header of the response. Without a ticket there is none.
#[derive(Debug, Default)]
pub(crate) struct TicketAnswer(Option<HeaderValue>);

impl TicketAnswer {
    /// The answer to a token, which may be empty.
    fn new(token: Option<&[u8]>) -> Self {
        Self(HeaderValue::from_str(&negotiate_answer(token)).ok())
    }

    /// Adds the header. `Persistent-Auth: false` says that a ticket is for one request: some clients take it
    /// for the login of the connection.
    pub(crate) fn on(self, mut response: Response) -> Response {
        if let Some(value) = self.0 {
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, value);
            headers.insert("persistent-auth", HeaderValue::from_static("false"));
        }
        response
    }
}

/// The caller of a request, by its login, and the answer to its ticket. Fails with a text if the login is
/// wrong.
pub(crate) fn caller_of<'s>(
    server: &'s Server,
    request: &Request,
) -> impl Future<Output = Result<(Arc<Caller>, TicketAnswer), String>> + use<'s> {
    let sender = request.extensions().get::<Sender>().cloned();
    let header = request.headers().get(header::AUTHORIZATION).cloned();
    let peer = request.extensions().get::<SocketAddr>().copied();
    async move {
        let (login, answer) = login(server.security(), sender, header).await?;
        let owner = login
            .as_ref()
            .map_or(Owner::Http, |login| server.security().http_owner(login));
        Ok((Caller::of_login(owner, peer, login), answer))
    }
}

/// The login of a request, with the answer to its ticket; `None` without one, and on a server without
/// logins.
async fn login(
    security: &Arc<Security>,
    sender: Option<Sender>,
    header: Option<HeaderValue>,
) -> Result<(Option<Login>, TicketAnswer), String> {
    if !security.authenticates() {
        return Ok((None, TicketAnswer::default()));
    }
    let Some(header) = header else {
        let login = sender.and_then(|sender| sender.login);
        return Ok((login, TicketAnswer::default()));
    };
    let is_encrypted = sender.as_ref().is_some_and(|sender| sender.is_encrypted);
    let peer = sender.as_ref().map(|sender| sender.peer);
    let ip = peer.map(|peer| peer.ip());
    let has_ticket = is_negotiate(header.as_bytes());
    if !has_ticket && !Security::is_private(is_encrypted, ip) {
        return Err("a password or token is accepted inside TLS only: use https".to_owned());
    }
    let login = if has_ticket {
        let negotiated = security.http_ticket(header.as_bytes(), ip).await;
        negotiated.map(|(login, token)| (login, TicketAnswer::new(token.as_deref())))
    } else {
        let login = security.http_login(header.as_bytes(), ip).await;
        login.map(|login| (login, TicketAnswer::default()))
    };
    match &login {
        Ok(_) => sender.iter().for_each(|sender| sender.stranger.logged_in()),
        Err(failed) => security.note_login("http", peer, is_encrypted, Err(*failed)),
    }
    login
        .map(|(login, answer)| (Some(login), answer))
        .map_err(|failed| failed.to_string())
}

/// Asks for a login.
pub(crate) fn unauthorized(security: &Security, text: &str) -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, CHALLENGE)];
    let mut response = (StatusCode::UNAUTHORIZED, challenge, format!("{text}\n")).into_response();
    if security.negotiates() {
        let challenge = HeaderValue::from_static("Negotiate");
        response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Whether the request needs no right of its own.
fn is_open(method: &Method, path: &str) -> bool {
    match path {
        "/healthz" | "/readyz" => true,
        "/" | "/thrift1" | "/thrift2" => method == Method::POST,
        path => is_of_changes(path),
    }
}

/// Whether a path is that of the stream of changes, or of its readers.
fn is_of_changes(path: &str) -> bool {
    path.strip_prefix("/changes")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
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
    const PATHS: [(&str, &str); 25] = [
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/tables"),
        ("GET", "/tables/secret"),
        ("GET", "/tables/absent"),
        ("GET", "/tables/secret/rows"),
        ("GET", "/findings"),
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
        ("POST", "/backup"),
        ("POST", "/snapshots/import"),
        ("POST", "/replication/wait"),
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
        server.instance().set_ready(true);
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new()
            .build_recorder()
            .handle();
        let site = crate::http::site(
            server,
            recorder,
            TaskTracker::new(),
            CancellationToken::new(),
            axum::Router::new(),
            |site| site,
        );
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

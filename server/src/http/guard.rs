//! The guard of the HTTP port: refuses requests that a foreign web page can make a browser send,
//! before any route runs.
//!
//! A browser on an operator's machine can reach ports that the network cannot, and runs pages of
//! any site. For every method and path:
//!
//! 1. `Host` must be an IP address, `localhost`, a name below it, or a name in
//!    `http.allowed_hosts`. Otherwise, a page whose name is pointed at this server after it was
//!    loaded (DNS rebinding) has the same origin as the server and may read everything.
//! 2. `Sec-Fetch-Site` must say that the request comes from this server's own pages or from the
//!    user (`same-origin`, `none`). Programs other than browsers do not send this header.
//! 3. `Origin` must name this server. In a request other than GET and HEAD, `Referer` must, too.
//!
//! Every answer has headers that forbid framing, guessing its content type, and embedding by other
//! sites.
//!
//! Invariant: [`guard`] is a layer around all routes, the fallback included, so no route is reached
//! without it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;

use crate::config::AllowedHosts;
use crate::observe::log_limit::LogLimit;

/// Time between two log lines about refused requests.
const LOG_PERIOD: Duration = Duration::from_mins(1);

/// Most bytes of a foreign name that an error repeats.
const SHOWN_BYTES_MAX: usize = 100;

/// Policy of answers without one of their own: nothing may be loaded, and no page may frame them.
const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; frame-ancestors 'none'");

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error(
        "the request has no header Host, or several; it must have one, with the address or name of this server (http.allowed_hosts)"
    )]
    NoHost,
    #[error(
        "this server does not answer to the host name {0}. It answers to IP addresses, to localhost, and to the names in the setting \
         http.allowed_hosts. If the name is this server's, add it: --set 'http.allowed_hosts=[\"NAME\"]'. A Prometheus that scrapes by \
         name needs that, too"
    )]
    UnknownHost(String),
    #[error(
        "the request comes from a page of another site (Sec-Fetch-Site: {0}), and such requests are refused. Type or paste the address \
         into the browser's address bar instead"
    )]
    OtherSite(String),
    #[error(
        "the request comes from a page of another site ({header}: {value}), and such requests are refused"
    )]
    OtherPage { header: &'static str, value: String },
}

impl Refused {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoHost | Self::UnknownHost(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::OtherSite(_) | Self::OtherPage { .. } => StatusCode::FORBIDDEN,
        }
    }
}

/// Checks requests against the names of this server.
#[derive(Debug)]
pub(super) struct Guard {
    names: AllowedHosts,
    log_limit: Mutex<LogLimit>,
}

impl Guard {
    /// Accepts these names, besides addresses and `localhost`.
    pub(super) fn new(names: AllowedHosts) -> Self {
        Self {
            names,
            log_limit: Mutex::new(LogLimit::every(LOG_PERIOD)),
        }
    }

    fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refused::NoHost);
        };
        let own = text(host);
        // A request line may name a host, too (`GET http://name/ HTTP/1.1`).
        for authority in uri.authority().map(Authority::as_str).into_iter().chain([own]) {
            if !self.is_own(authority) {
                return Err(Refused::UnknownHost(shown(authority)));
            }
        }
        if let Some(site) = headers.get("sec-fetch-site").map(text)
            && !matches!(site, "same-origin" | "none")
        {
            return Err(Refused::OtherSite(shown(site)));
        }
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let pages = [
            ("Origin", header::ORIGIN, true),
            ("Referer", header::REFERER, !reads),
        ];
        for (name, header, is_asked) in pages {
            let Some(page) = headers.get(header).filter(|_| is_asked).map(text) else {
                continue;
            };
            if !authority_of(page).is_some_and(|authority| authority.eq_ignore_ascii_case(own)) {
                return Err(Refused::OtherPage {
                    header: name,
                    value: shown(page),
                });
            }
        }
        Ok(())
    }

    /// Whether `host[:port]` is an address or a name of this server.
    fn is_own(&self, authority: &str) -> bool {
        if let Some(rest) = authority.strip_prefix('[') {
            let Some((address, port)) = rest.split_once(']') else {
                return false;
            };
            let address = address.split('%').next().unwrap_or_default();
            return is_port(port) && address.parse::<Ipv6Addr>().is_ok();
        }
        let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        is_port(port) && (host.parse::<Ipv4Addr>().is_ok() || self.is_own_name(host))
    }

    fn is_own_name(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        // A name below `localhost` cannot be pointed elsewhere (RFC 6761).
        host == "localhost" || host.ends_with(".localhost") || self.names.has(host)
    }

    /// Logs a refusal, at most one in [`LOG_PERIOD`], so that a scrape that is refused every few
    /// seconds does not fill the log.
    fn log(&self, refused: &Refused) {
        if let Some(left_out) = self.log_limit.lock().next(Instant::now()) {
            tracing::warn!(left_out, "HTTP request refused: {refused}");
        }
    }
}

/// Whether `text` is empty, or a colon and a port.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        None => text.is_empty(),
        Some(digits) => digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// `host[:port]` of an address such as `http://host:port/path`.
fn authority_of(address: &str) -> Option<&str> {
    let rest = address
        .strip_prefix("http://")
        .or_else(|| address.strip_prefix("https://"))?;
    rest.split(['/', '?', '#']).next()
}

/// The header's text. Values that are not visible ASCII become a text that matches no name and no
/// address.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("\u{fffd}")
}

/// The beginning of a foreign text, quoted, for an error.
fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    format!("{:?}", &text[..end])
}

/// Answers a request, or refuses it.
pub(super) async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.check(request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => {
            guard.log(&refused);
            (refused.status(), format!("{refused}\n")).into_response()
        }
    };
    protect(response.headers_mut());
    response
}

/// Adds headers that restrict the browser, except those that the answer already has.
fn protect(headers: &mut HeaderMap) {
    let (name, value) = (HeaderName::from_static, HeaderValue::from_static);
    let all = [
        (header::X_CONTENT_TYPE_OPTIONS, value("nosniff")),
        (header::X_FRAME_OPTIONS, value("DENY")),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, value("same-origin")),
        (name("cross-origin-resource-policy"), value("same-origin")),
        (name("cross-origin-opener-policy"), value("same-origin")),
    ];
    for (name, value) in all {
        headers.entry(name).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, uri: &str, headers: &[(&'static str, &str)]) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let names = ["Basalt.example".to_owned(), "db".to_owned()];
        Guard::new(AllowedHosts::new(&names)).check(method, &uri.parse().unwrap(), &map)
    }

    fn get(headers: &[(&'static str, &str)]) -> Result<(), Refused> {
        check(&Method::GET, "/", headers)
    }

    #[test]
    fn addresses_localhost_and_allowed_names_are_answered() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9095",
            "192.168.1.7:9095",
            "[::1]",
            "[::1]:9095",
            "[fe80::1%eth0]:9095",
            "localhost",
            "LocalHost:9095",
            "localhost.",
            "basalt.localhost:9095",
            "basalt.EXAMPLE:9095",
            "db",
            "db:",
        ] {
            assert_eq!(get(&[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_names_are_refused_with_the_name_and_the_setting() {
        for host in [
            "rebound.evil.example",
            "127.0.0.1.evil.example:9095",
            "localhost.evil.example",
            "evil-localhost",
            "xdb",
            "db.evil.example",
            "127.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.1:9095:1",
            "127.0.0.1@evil.example",
            "[::1",
            "[::1]x",
            "[127.0.0.1]",
            "::1",
            "127.0.0.1:port",
            "",
            " 127.0.0.1 evil.example",
        ] {
            let refused = get(&[("host", host)]).expect_err(host);
            assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST);
            let text = refused.to_string();
            assert!(
                text.contains(host) && text.contains("http.allowed_hosts"),
                "{text}"
            );
        }
        assert_eq!(get(&[]), Err(Refused::NoHost));
        assert_eq!(
            get(&[("host", "localhost"), ("host", "evil.example")]),
            Err(Refused::NoHost)
        );
        let absolute = |uri| check(&Method::GET, uri, &[("host", "127.0.0.1")]);
        assert_eq!(absolute("http://127.0.0.1:9095/tables"), Ok(()));
        assert!(absolute("http://evil.example/tables").is_err());
        let long = get(&[("host", &"x".repeat(5_000))]).unwrap_err().to_string();
        assert!(long.len() < 500, "{long}");
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let own = ("host", "127.0.0.1:9095");
        for site in ["same-origin", "none"] {
            assert_eq!(get(&[own, ("sec-fetch-site", site)]), Ok(()), "{site}");
        }
        for site in ["cross-site", "same-site", "", "Same-Origin", "new-word"] {
            let refused = get(&[own, ("sec-fetch-site", site)]).expect_err(site);
            assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        }
        for method in [Method::GET, Method::POST, Method::OPTIONS] {
            for origin in [
                "http://evil.example",
                "http://127.0.0.1:3000",
                "null",
                "127.0.0.1:9095",
            ] {
                let refused = check(&method, "/", &[own, ("origin", origin)]);
                assert!(refused.is_err(), "{method} {origin}");
            }
            let same = check(&method, "/", &[own, ("origin", "http://127.0.0.1:9095")]);
            assert_eq!(same, Ok(()), "{method}");
        }
        // A link from another site, in a browser that sends only `Referer`.
        let foreign = ("referer", "http://wiki.example/page?of=127.0.0.1:9095");
        assert_eq!(get(&[own, foreign]), Ok(()));
        assert!(check(&Method::POST, "/", &[own, foreign]).is_err());
        let page = ("referer", "http://127.0.0.1:9095/threads?x");
        assert_eq!(check(&Method::POST, "/", &[own, page]), Ok(()));
    }
}

//! A request as its handler sees it, and the calls that handlers make.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, header};
use basalt_engine::schema::TableName;
use basalt_rest::Malformed;
use basalt_rest::encoding::Encoding;
use basalt_rest::media::Media;
use basalt_rest::query::Query;
use basalt_rest::route::Route;
use bytes::Bytes;

use super::Gateway;
use super::faults::Refusal;
use super::methods::Method;
use crate::http::Closing;
use crate::server::Server;
use crate::service::listing::{self, Listing};
use crate::service::{AdminCall, Call, Failure, Kept, Sender, arguments};

/// The outcome of a handler.
pub(super) type Result<T, E = Refusal> = std::result::Result<T, E>;

/// A request whose login is known.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) gateway: Gateway,
    pub(super) method: Method,
    pub(super) is_head: bool,
    /// The path, still encoded, without the prefix.
    pub(super) path: String,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) is_encrypted: bool,
    /// The body, received and unpacked; empty for reads.
    pub(super) body: Bytes,
    pub(super) sender: Sender,
    pub(super) kept: Kept,
    pub(super) began: Instant,
    pub(super) closing: Option<Closing>,
    /// Memory of the arguments, beyond what is free.
    pub(super) arguments_bytes: usize,
    /// Subject of the request, for the slow log.
    pub(super) about: About,
}

/// Subject of a request, for the slow log.
#[derive(Clone, Debug)]
pub(super) struct About {
    table: Option<TableName>,
    /// Path and query, cut.
    target: String,
}

/// Most letters of a path and query that are noted.
const TARGET_LETTERS_MAX: usize = 200;

impl About {
    pub(super) fn new(route: &Route, target: &str) -> Self {
        Self {
            table: route.table().and_then(|name| table(name).ok()),
            target: target.chars().take(TARGET_LETTERS_MAX).collect(),
        }
    }

    /// Notes it in a call.
    pub(super) fn describe(&self, call: &mut Call<'_>) {
        if let Some(table) = &self.table {
            call.description.table(table);
        }
        call.description.words(format!("path={}", self.target));
    }
}

impl Request {
    pub(super) fn server(&self) -> &Arc<Server> {
        &self.gateway.server
    }

    /// A header that is text.
    pub(super) fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// How keys are encoded: the header wins over the parameter.
    pub(super) fn encoding(&self) -> Result<Encoding> {
        let name = match self.header("encoding") {
            Some(name) => Some(name),
            None => self.query.text("e")?,
        };
        Ok(name.map(Encoding::from_name).transpose()?.unwrap_or_default())
    }

    /// The media type of the answer.
    pub(super) fn accepted(&self, offers: &[Media]) -> Result<Media> {
        let accept = self.headers.get_all(header::ACCEPT).iter();
        let accept = accept.filter_map(|value| value.to_str().ok());
        Media::choose(accept, offers).ok_or_else(|| {
            Refusal::new(
                axum::http::StatusCode::NOT_ACCEPTABLE,
                format!(
                    "the header Accept allows none of the types of this answer: {}",
                    Media::names(offers)
                ),
            )
        })
    }

    /// The media type of the body; one value without a header.
    pub(super) fn content_type(&self) -> Result<Media> {
        let Some(value) = self.header(header::CONTENT_TYPE) else {
            return Ok(Media::Binary);
        };
        Media::of_content_type(value).ok_or_else(|| unsupported_media(value))
    }

    /// Whether the header Accept-Encoding allows gzip.
    pub(super) fn accepts_gzip(&self) -> bool {
        let values = self.headers.get_all(header::ACCEPT_ENCODING).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
            is_gzip && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32)))
        })
    }

    /// The absolute address of a path on this server. The guard has checked the host.
    pub(super) fn location(&self, path: &str) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let host = self.header(header::HOST).unwrap_or_default();
        format!("{scheme}://{host}{}{path}", self.gateway.prefix)
    }

    /// The call that a data request is part of.
    pub(super) fn call(&mut self) -> (Arc<Server>, Call<'_>) {
        let server = Arc::clone(&self.gateway.server);
        let mut call = Call::new(&self.sender, &mut self.kept, self.began);
        call.arguments_bytes = self.arguments_bytes;
        (server, call)
    }

    /// Asks about tables, regions or the server: the answer is in memory.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&AdminCall) -> Result<T, Failure>) -> Result<T> {
        let call = AdminCall::new(self.server(), &self.sender.caller);
        Ok(question(&call)?)
    }

    /// Runs a change of schema where it may block.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AdminCall) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let call = AdminCall::new(self.server(), &self.sender.caller);
        Ok(self.server().on_pool(move |_| work(&call)).await?)
    }

    /// Reserves the memory of an answer that lists what there is.
    pub(super) async fn reserve_listing(&mut self, listing: Listing<'_>) -> Result<()> {
        let (server, mut call) = self.call();
        Ok(listing::reserve(&server, listing, call.reply()).await?)
    }
}

pub(super) fn unsupported_media(value: &str) -> Refusal {
    Refusal::new(
        axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE,
        format!(
            "the Content-Type {:?} is not read here: cells and schemas are {}, a single value is application/octet-stream",
            value.chars().take(80).collect::<String>(),
            Media::names(Media::SCANNED)
        ),
    )
}

/// The table of a path.
pub(super) fn table(name: &[u8]) -> Result<TableName> {
    // A name that no table can have is one that does not exist.
    arguments::table(Some(&Bytes::copy_from_slice(name))).map_err(|failure| Refusal {
        status: axum::http::StatusCode::NOT_FOUND,
        ..Refusal::from(failure)
    })
}

/// Checks a number that must be positive.
pub(super) fn positive(name: &str, number: i32) -> Result<i32> {
    if number < 1 {
        return Err(Malformed::new(format!("the parameter {name} must be positive, not {number}")).into());
    }
    Ok(number)
}

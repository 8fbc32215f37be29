//! Profiles on demand: where this process spends processor time, in the form of `go tool pprof`, which
//! Speedscope and others draw as flame graphs.
//!
//! 1. The request's parameters are checked; there is one profile at a time. A profile costs
//!    processor time, so it requires `http.profiles` and a POST: no link and no image in a page
//!    starts one.
//! 2. The library sets a timer that counts the processor time of all threads. Each time it fires,
//!    the running thread records its stack. A waiting thread uses no processor time, and is not
//!    included.
//! 3. After `seconds`, or when the client has gone or the server stops, the timer is taken away.
//! 4. On the blocking pool, addresses become names and the answer is written.
//!
//! Stacks within the C library are not walked, since a lock held there at such a moment (of its
//! allocator) would not be released: time in it, system calls among them, is left out.
//!
//! Invariant: without a request nothing runs and nothing is held.

use std::collections::HashMap;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use pprof::{Frames, ProfilerGuard, ProfilerGuardBuilder};
use tokio::sync::OwnedSemaphorePermit;

use super::Site;

mod proto;

/// Longest profile.
pub(crate) const SECONDS_MAX: u16 = 300;
/// Most samples in a second of processor time.
pub(crate) const FREQUENCY_MAX: u16 = 999;
/// Not a round number, so that samples do not coincide with work that is done a hundred times a
/// second.
pub(crate) const FREQUENCY_DEFAULT: u16 = 99;
/// Seconds of a profile.
pub(crate) const SECONDS_DEFAULT: u16 = 10;

/// Longest form. It has three short parameters.
const FORM_BYTES_MAX: usize = 1 << 10;

/// Libraries whose stacks are not walked.
const LEFT_OUT: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// Parameters of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    seconds: u64,
    frequency: i32,
}

impl Request {
    /// Parses the parameters; an error names the parameter and its limit.
    fn parse(given: &HashMap<String, String>) -> Result<Self, String> {
        let number = |name: &str, default: u16, max: u16| match given.get(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| (1..=max).contains(number))
                .ok_or_else(|| format!("{name} is {text:?}, and must be a whole number from 1 to {max}")),
        };
        let mut unknown = given
            .keys()
            .filter(|name| !["seconds", "frequency"].contains(&name.as_str()));
        if let Some(name) = unknown.next() {
            return Err(format!(
                "there is no parameter {name:?}: there are seconds and frequency"
            ));
        }
        Ok(Self {
            seconds: number("seconds", SECONDS_DEFAULT, SECONDS_MAX)?.into(),
            frequency: number("frequency", FREQUENCY_DEFAULT, FREQUENCY_MAX)?.into(),
        })
    }
}

/// A profile that is being taken; dropping it ends that. The timer is removed before the slot is
/// free.
struct Recording {
    guard: ProfilerGuard<'static>,
    _place: OwnedSemaphorePermit,
}

impl Recording {
    fn begin(frequency: i32, place: OwnedSemaphorePermit) -> Result<Self, pprof::Error> {
        let guard = ProfilerGuardBuilder::default()
            .frequency(frequency)
            .blocklist(&LEFT_OUT)
            .build()?;
        Ok(Self { guard, _place: place })
    }

    /// The stacks that were seen, and how often each.
    fn end(self) -> Result<Vec<Stack>, pprof::Error> {
        let report = self.guard.report().build()?;
        drop(self);
        let stacks = report.data.iter().filter_map(|(frames, samples)| {
            let samples = u64::try_from(*samples).ok()?;
            Some(Stack::new(frames, samples))
        });
        Ok(stacks.collect())
    }
}

/// A function in a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Function {
    name: String,
    file: String,
}

/// A stack that was seen.
#[derive(Clone, Debug)]
struct Stack {
    thread: String,
    /// From the outermost call on, each with its line; inlined ones have entries of their own.
    calls: Vec<(Function, u32)>,
    samples: u64,
}

impl Stack {
    fn new(frames: &Frames, samples: u64) -> Self {
        // The library has the innermost first.
        let symbols = frames.frames.iter().flatten().rev();
        let call = |symbol: &pprof::Symbol| {
            let function = Function {
                name: symbol.name(),
                file: symbol.filename().into_owned(),
            };
            (function, symbol.lineno())
        };
        Self {
            thread: frames.thread_name_or_id(),
            calls: symbols.map(call).collect(),
            samples,
        }
    }
}

/// The parameters of a form.
async fn form(body: Body, limit: Duration) -> Result<HashMap<String, String>, String> {
    let received = tokio::time::timeout(limit, to_bytes(body, FORM_BYTES_MAX)).await;
    let received = received
        .map_err(|_| format!("the body was not complete after {limit:?} (server.message_timeout_ms)"))?;
    let bytes = received.map_err(|error| {
        format!("the body cannot be read, or is longer than {FORM_BYTES_MAX} bytes: {error}")
    })?;
    // A form has the syntax of a query string.
    let text = std::str::from_utf8(&bytes).map_err(|error| format!("the body is no form: {error}"))?;
    let uri: Uri = format!("/?{text}")
        .parse()
        .map_err(|error| format!("the body is no form: {error}"))?;
    let Query(given) = Query::try_from_uri(&uri).map_err(|error| format!("the body is no form: {error}"))?;
    Ok(given)
}

/// Answers `POST /debug/pprof/profile`. Parameters are in the query string, or in the body as a
/// form.
pub(crate) async fn profile(
    State(site): State<Site>,
    Query(mut given): Query<HashMap<String, String>>,
    body: Body,
) -> Response {
    let config = site.server.config();
    if !config.http.profiles {
        return refuse(
            StatusCode::FORBIDDEN,
            "profiles are switched off: http.profiles is false. Start with --set http.profiles=true to take one",
        );
    }
    match form(body, Duration::from_millis(config.server.message_timeout_ms)).await {
        Ok(more) => given.extend(more),
        Err(why) => return refuse(StatusCode::BAD_REQUEST, &why),
    }
    let request = match Request::parse(&given) {
        Ok(request) => request,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, &why),
    };
    let Ok(place) = site.profiling.0.try_acquire_owned() else {
        return refuse(
            StatusCode::CONFLICT,
            "a profile is being taken already: there is one at a time",
        );
    };
    let begun = tokio::task::spawn_blocking(move || Recording::begin(request.frequency, place));
    let recording = match begun.await {
        Ok(Ok(recording)) => recording,
        Ok(Err(error)) => return failed(&error),
        Err(_) => return stopping(),
    };
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(request.seconds)) => {}
        () = site.stop.cancelled() => return stopping(),
    }
    let written = tokio::task::spawn_blocking(move || {
        let stacks = recording.end()?;
        Ok::<_, pprof::Error>((!stacks.is_empty()).then(|| write(&stacks, request)))
    });
    match written.await {
        Ok(Ok(Some(answer))) => answer,
        Ok(Ok(None)) => refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "no samples: next to no processor time was used; ask for more seconds or a higher frequency",
        ),
        Ok(Err(error)) => failed(&error),
        Err(_) => stopping(),
    }
}

fn write(stacks: &[Stack], request: Request) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"basalt-profile.pb\"",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, proto::encode(stacks, request.seconds, request.frequency)).into_response()
}

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}

fn failed(error: &pprof::Error) -> Response {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("no profile: {error}"))
}

fn stopping() -> Response {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "stopping")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &[(&str, &str)]) -> Result<Request, String> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Request::parse(&given.collect())
    }

    #[test]
    fn parameters_have_defaults_and_limits() {
        let default = Request {
            seconds: 10,
            frequency: 99,
        };
        assert_eq!(parse(&[]), Ok(default));
        let largest = Request {
            seconds: 300,
            frequency: 999,
        };
        assert_eq!(parse(&[("seconds", "300"), ("frequency", "999")]), Ok(largest));
        for (name, value, says) in [
            (
                "seconds",
                "0",
                "seconds is \"0\", and must be a whole number from 1 to 300",
            ),
            ("seconds", "301", "from 1 to 300"),
            ("seconds", "1.5", "from 1 to 300"),
            (
                "frequency",
                "1000",
                "frequency is \"1000\", and must be a whole number from 1 to 999",
            ),
            ("frequency", "-1", "from 1 to 999"),
            ("second", "1", "there is no parameter \"second\""),
        ] {
            let error = parse(&[(name, value)]).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}

//! A server of objects that speaks as much of S3's protocol as the backups need, and fails: it is slow,
//! refuses requests, breaks off before and after their effect, answers with objects that were replaced, and
//! lists late what was written and removed.
//!
//! Faults are drawn from a seed, in the order of the requests. Objects themselves are kept: what was
//! acknowledged is there in the end. A thread for each connection; requests share one lock, which is not held
//! while one is slow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most keys of a listing.
const PAGE: usize = 200;

/// How often requests fail, of a thousand each, and for how long lists are late.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Requests that take up to a fifth of a second.
    pub slow: u64,
    /// Requests that are refused without effect.
    pub refused: u64,
    /// Requests whose connection ends in the middle of the answer, after their effect.
    pub cut: u64,
    /// Reads of a replaced object that get the one before.
    pub old: u64,
    /// Longest time until a change is listed; each has its own.
    pub lag: Duration,
}

/// One object, or the mark that there is none any more.
#[derive(Clone, Debug)]
struct Version {
    bytes: Option<Arc<Vec<u8>>>,
    written: SystemTime,
    /// Listings show it from then on.
    listed: Instant,
}

#[derive(Debug)]
struct State {
    /// Versions of each object, the newest last, two at most.
    objects: BTreeMap<String, Vec<Version>>,
    random: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    faults: Mutex<Faults>,
    /// A part of names, and how many more objects with it are taken.
    limit: Mutex<Option<(String, u64)>>,
    failed: AtomicU64,
    stop: AtomicBool,
}

/// The server. It ends when it is dropped.
#[derive(Debug)]
pub struct ObjectServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Request {
    method: String,
    /// Without the query.
    path: String,
    query: BTreeMap<String, String>,
    only_if_new: bool,
    /// Tag that the object must have.
    tag: Option<String>,
    /// First byte of a read that goes on, and the one behind its last.
    range: Option<(usize, Option<usize>)>,
    body: Vec<u8>,
}

struct Answer {
    status: &'static str,
    written: Option<SystemTime>,
    tag: String,
    body: Arc<Vec<u8>>,
    /// The bytes of the body that are sent.
    sent: Range<usize>,
}

impl ObjectServer {
    /// Starts a server without objects. It has one bucket, whatever its name.
    pub fn start(seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                objects: BTreeMap::new(),
                random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            }),
            faults: Mutex::default(),
            limit: Mutex::default(),
            failed: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                if accepting.stop.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(socket), shared) = (socket, Arc::clone(&accepting)) else {
                    continue;
                };
                // The client sees a connection that ends, which is what it is for.
                std::thread::spawn(move || serve(&shared, &socket));
            }
        });
        Ok(Self { address, shared })
    }

    /// Changes what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        *locked(&self.shared.faults) = faults;
    }

    /// Takes `count` more objects with this part in their names, and refuses the others.
    pub fn limit(&self, part: &str, count: u64) {
        *locked(&self.shared.limit) = Some((part.to_owned(), count));
    }

    /// Objects that are still taken of those with a limit.
    pub fn left(&self) -> Option<u64> {
        locked(&self.shared.limit).as_ref().map(|(_, count)| *count)
    }

    /// Takes all objects again.
    pub fn end_limit(&self) {
        *locked(&self.shared.limit) = None;
    }

    /// Requests that have failed or were answered with something old.
    pub fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Names of all objects that there are now, whatever listings show.
    pub fn names(&self) -> Vec<String> {
        let state = locked(&self.shared.state);
        let objects = state.objects.iter();
        let there = objects.filter(|(_, versions)| versions.last().is_some_and(|last| last.bytes.is_some()));
        there.map(|(name, _)| name.clone()).collect()
    }

    /// Variables with which a program of ours finds this server behind `s3:` URLs.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Wakes the thread that accepts; it may have ended.
        drop(TcpStream::connect(self.address));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// A number below `end`.
    fn draw(&self, end: u64) -> u64 {
        let mut state = locked(&self.state);
        state.random ^= state.random << 13;
        state.random ^= state.random >> 7;
        state.random ^= state.random << 17;
        (state.random >> 11) % end.max(1)
    }

    /// Draws an event with a probability in thousandths.
    fn happens(&self, of_thousand: u64) -> bool {
        self.draw(1000) < of_thousand
    }

    fn note_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn faults(&self) -> Faults {
        *locked(&self.faults)
    }
}

fn serve(shared: &Shared, socket: &TcpStream) {
    let mut reader = BufReader::new(socket);
    while let Ok(Some(request)) = read(&mut reader) {
        let faults = shared.faults();
        if shared.happens(faults.slow) {
            std::thread::park_timeout(Duration::from_millis(shared.draw(200)));
        }
        let answer = if shared.happens(faults.refused) {
            shared.note_failure();
            plain("503 Slow Down", Vec::new())
        } else {
            answer(shared, &request, &faults)
        };
        let is_cut = shared.happens(faults.cut);
        if is_cut {
            shared.note_failure();
        }
        if write(socket, &answer, request.method == "HEAD", is_cut).is_err() || is_cut {
            return;
        }
    }
}

/// The next request; `None` at the end of the connection.
fn read(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    });
    let mut request = Request {
        method: method.to_owned(),
        path: decoded(path),
        query: query.collect(),
        only_if_new: false,
        tag: None,
        range: None,
        body: Vec::new(),
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
            "if-none-match" => request.only_if_new = true,
            "if-match" => request.tag = Some(value.trim().to_owned()),
            "range" => request.range = range(value),
            _ => {}
        }
    }
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

/// `bytes=FIRST-` or `bytes=FIRST-LAST`.
fn range(value: &str) -> Option<(usize, Option<usize>)> {
    let (first, last) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
    let end = last.parse::<usize>().ok().map(|last| last + 1);
    Some((first.parse().ok()?, end))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        rest = if byte.is_some() { &behind[2..] } else { behind };
        bytes.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn plain(status: &'static str, body: Vec<u8>) -> Answer {
    Answer {
        status,
        written: None,
        tag: String::new(),
        sent: 0..body.len(),
        body: Arc::new(body),
    }
}

fn answer(shared: &Shared, request: &Request, faults: &Faults) -> Answer {
    // The bucket's name comes first.
    let path = request.path.trim_start_matches('/');
    let name = path.split_once('/').map_or("", |(_, name)| name);
    match request.method.as_str() {
        "PUT" => put(shared, request, name, faults),
        "GET" if name.is_empty() => list(shared, request),
        "GET" | "HEAD" => get(shared, request, name, faults),
        "POST" if request.query.contains_key("delete") => delete(shared, request, faults),
        _ => plain("501 Not Implemented", Vec::new()),
    }
}

/// Adds a version of an object.
fn change(shared: &Shared, name: &str, bytes: Option<Vec<u8>>, faults: &Faults) -> String {
    let lag_ms = u64::try_from(faults.lag.as_millis()).unwrap_or(u64::MAX);
    let lag = Duration::from_millis(shared.draw(lag_ms + 1));
    let version = Version {
        bytes: bytes.map(Arc::new),
        written: SystemTime::now(),
        listed: Instant::now() + lag,
    };
    let mut state = locked(&shared.state);
    let tag = tag(&version);
    let versions = state.objects.entry(name.to_owned()).or_default();
    versions.push(version);
    if let [.., before, last] = &versions[..] {
        *versions = vec![before.clone(), last.clone()];
    }
    tag
}

fn tag(version: &Version) -> String {
    let since = version
        .written
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("\"{:x}\"", since.as_nanos())
}

fn put(shared: &Shared, request: &Request, name: &str, faults: &Faults) -> Answer {
    if let Some((part, count)) = &mut *locked(&shared.limit)
        && name.contains(part.as_str())
    {
        let Some(left) = count.checked_sub(1) else {
            shared.note_failure();
            return plain("503 Slow Down", Vec::new());
        };
        *count = left;
    }
    let is_there = {
        let state = locked(&shared.state);
        let versions = state.objects.get(name);
        versions
            .and_then(|versions| versions.last())
            .is_some_and(|last| last.bytes.is_some())
    };
    if request.only_if_new && is_there {
        return plain("412 Precondition Failed", Vec::new());
    }
    let tag = change(shared, name, Some(request.body.clone()), faults);
    Answer {
        tag,
        ..plain("200 OK", Vec::new())
    }
}

fn get(shared: &Shared, request: &Request, name: &str, faults: &Faults) -> Answer {
    let wants_old = shared.happens(faults.old);
    let state = locked(&shared.state);
    let versions = state.objects.get(name).map_or(&[][..], Vec::as_slice);
    let version = match versions {
        // One that was there before: no object is answered as one that never was.
        [old, _] if wants_old && old.bytes.is_some() => {
            shared.note_failure();
            Some(old)
        }
        versions => versions.last(),
    };
    let found = version.and_then(|version| Some((version, version.bytes.as_ref()?)));
    let Some((version, bytes)) = found else {
        return plain("404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>".to_vec());
    };
    let tag = tag(version);
    if request.tag.as_ref().is_some_and(|wanted| *wanted != tag) {
        return plain("412 Precondition Failed", Vec::new());
    }
    let (first, end) = request.range.unwrap_or((0, None));
    let end = end.unwrap_or(bytes.len()).min(bytes.len());
    Answer {
        status: if request.range.is_some() {
            "206 Partial Content"
        } else {
            "200 OK"
        },
        written: Some(version.written),
        tag,
        sent: first.min(end)..end,
        body: Arc::clone(bytes),
    }
}

fn delete(shared: &Shared, request: &Request, faults: &Faults) -> Answer {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let mut answer = String::from("<DeleteResult>");
    for key in body.split("<Key>").skip(1) {
        let key = key.split("</Key>").next().unwrap_or_default();
        change(shared, key, None, faults);
        let _ = write!(answer, "<Deleted><Key>{key}</Key></Deleted>");
    }
    plain("200 OK", (answer + "</DeleteResult>").into_bytes())
}

/// The version that listings show.
fn listed(versions: &[Version], now: Instant) -> Option<&Version> {
    let shown = versions.iter().rev().find(|version| version.listed <= now);
    shown.filter(|version| version.bytes.is_some())
}

fn list(shared: &Shared, request: &Request) -> Answer {
    let parameter = |name: &str| request.query.get(name).map_or("", String::as_str);
    let (prefix, now) = (parameter("prefix"), Instant::now());
    let after = parameter("start-after").max(parameter("continuation-token"));
    let state = locked(&shared.state);
    let mut found = state.objects.iter().filter_map(|(name, versions)| {
        let version = listed(versions, now)?;
        let is_wanted = name.starts_with(prefix) && name.as_str() > after;
        is_wanted.then_some((name, version))
    });
    let page: Vec<_> = found.by_ref().take(PAGE).collect();
    let mut text = String::from("<ListBucketResult>");
    for (name, version) in &page {
        let bytes = version.bytes.as_ref().map_or(0, |bytes| bytes.len());
        let _ = write!(
            text,
            "<Contents><Key>{name}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{bytes}</Size></Contents>",
            humantime::format_rfc3339_millis(version.written),
            tag(version).replace('"', "&quot;"),
        );
    }
    if let (Some((last, _)), Some(_)) = (page.last(), found.next()) {
        let _ = write!(text, "<NextContinuationToken>{last}</NextContinuationToken>");
    }
    plain("200 OK", (text + "</ListBucketResult>").into_bytes())
}

fn write(mut socket: &TcpStream, answer: &Answer, is_head: bool, is_cut: bool) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {}\r\nContent-Length: {}\r\n",
        answer.status,
        answer.sent.len()
    );
    if answer.status.starts_with("206") {
        let (first, last) = (answer.sent.start, answer.sent.end.saturating_sub(1));
        let _ = write!(
            head,
            "Content-Range: bytes {first}-{last}/{}\r\n",
            answer.body.len()
        );
    }
    if !answer.tag.is_empty() {
        let _ = write!(head, "ETag: {}\r\n", answer.tag);
    }
    if let Some(written) = answer.written {
        let _ = write!(head, "Last-Modified: {}\r\n", date(written));
    }
    let mut bytes = (head + "\r\n").into_bytes();
    if !is_head {
        bytes.extend_from_slice(&answer.body[answer.sent.clone()]);
    }
    if is_cut {
        bytes.truncate(bytes.len() / 2);
    }
    socket.write_all(&bytes)
}

/// `29 Nov 2026 12:58:03 +0000`.
fn date(time: SystemTime) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let month = text[5..7]
        .parse::<usize>()
        .map_or("Jan", |month| MONTHS[(month + 11) % 12]);
    format!("{} {month} {} {} +0000", &text[8..10], &text[..4], &text[11..19])
}

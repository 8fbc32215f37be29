//! The calls of a connection that wait for their responses, and their end when the connection ends.
//!
//! A call registers, is sent, and waits ([`Registered`]). One that ends early takes its registration along,
//! so that its response is discarded. If it opens a scanner, a note remains: the scanner of a late response
//! is closed.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use basalt_idl::native::frame::{CONNECTION_CALL_ID, Request, Response};
use basalt_idl::native::messages::{ExceptionResponse, RequestHeader, ScanRequest, ScanResponse};
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::security::alert;

/// State that the callers share with the reader and the writer.
#[derive(Debug)]
pub(super) struct Shared {
    calls: Mutex<Calls>,
    next_id: AtomicU32,
}

#[derive(Debug)]
struct Calls {
    waiting: HashMap<u32, oneshot::Sender<Result<Response, Lost>>>,
    /// Calls without a waiting caller that have opened scanners.
    abandoned: HashSet<u32>,
    lost: Option<Lost>,
    /// When the last bytes arrived.
    received: Instant,
}

/// The reason for the end of a connection.
#[derive(Clone, Debug)]
pub(super) enum Lost {
    Io(io::ErrorKind, String),
    /// The server ended it with an exception.
    Exception(Box<ExceptionResponse>),
    Malformed(String),
    /// The server has rejected the client's certificate.
    Rejected(String),
}

impl Lost {
    pub(super) fn closed(text: &str) -> Lost {
        Lost::Io(io::ErrorKind::UnexpectedEof, text.to_owned())
    }

    pub(super) fn of_socket(error: &io::Error) -> Lost {
        match alert(error) {
            Some(what) => Lost::Rejected(what),
            None => Lost::Io(error.kind(), error.to_string()),
        }
    }
}

impl Shared {
    pub(super) fn new() -> Shared {
        Shared {
            calls: Mutex::new(Calls {
                waiting: HashMap::new(),
                abandoned: HashSet::new(),
                lost: None,
                received: Instant::now(),
            }),
            next_id: AtomicU32::new(0),
        }
    }

    /// Whether the connection has not ended.
    pub(super) fn is_usable(&self) -> bool {
        self.lock().lost.is_none()
    }

    /// Records that bytes have arrived.
    pub(super) fn note_received(&self) {
        self.lock().received = Instant::now();
    }

    /// When bytes arrived last.
    pub(super) fn received(&self) -> Instant {
        self.lock().received
    }

    /// Registers a call; fails if the connection has ended. `frames` take the close of a scanner.
    pub(super) fn register<'a>(
        &'a self,
        id: u32,
        frames: &'a mpsc::Sender<Vec<u8>>,
    ) -> Result<Registered<'a>, Lost> {
        let (sender, response) = oneshot::channel();
        let mut calls = self.lock();
        if let Some(lost) = &calls.lost {
            return Err(lost.clone());
        }
        calls.waiting.insert(id, sender);
        drop(calls);
        Ok(Registered {
            shared: self,
            frames,
            id,
            response,
            opens_scanner: false,
            is_done: false,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection and all its calls.
    pub(super) fn fail(&self, lost: &Lost) {
        let mut calls = self.lock();
        let lost = calls.lost.get_or_insert_with(|| lost.clone()).clone();
        for (_, waiting) in calls.waiting.drain() {
            // A call that was dropped needs no answer.
            drop(waiting.send(Err(lost.clone())));
        }
    }

    /// Ends the connection unless calls wait.
    pub(super) fn close_if_idle(&self) -> bool {
        let mut calls = self.lock();
        if calls.waiting.is_empty() {
            calls.lost = Some(Lost::closed("it was closed because it was idle"));
        }
        calls.lost.is_some()
    }

    /// Ids stay positive in Java.
    pub(super) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 1)
    }

    /// Gives a response to its call. Returns the frame that closes the scanner of an abandoned call.
    pub(super) fn respond(&self, response: Response) -> Result<Option<Vec<u8>>, Lost> {
        let id = response.header.call_id.unwrap_or_default();
        if id == CONNECTION_CALL_ID {
            let exception = response.header.exception.unwrap_or_default();
            return Err(Lost::Exception(Box::new(exception)));
        }
        let mut calls = self.lock();
        let is_abandoned = calls.abandoned.remove(&id);
        if let Some(waiting) = calls.waiting.remove(&id) {
            // A call that was dropped needs no answer.
            drop(waiting.send(Ok(response)));
            return Ok(None);
        }
        drop(calls);
        Ok(is_abandoned.then(|| self.close_of(&response)).flatten())
    }

    /// The frame that closes the scanner that a response has opened, if it is open.
    fn close_of(&self, response: &Response) -> Option<Vec<u8>> {
        let opened = ScanResponse::decode(response.result.clone()).ok()?;
        if opened.more_results == Some(false) {
            return None;
        }
        let header = RequestHeader {
            call_id: Some(self.next_id()),
            method_name: Some("Scan".to_owned()),
            ..RequestHeader::default()
        };
        let request = ScanRequest {
            scanner_id: Some(opened.scanner_id?),
            close_scanner: Some(true),
            number_of_rows: Some(0),
            ..ScanRequest::default()
        };
        let mut frame = Vec::new();
        Request::encode(&header, &request, b"", &mut frame);
        Some(frame)
    }
}

/// A call that waits. Dropping it discards its response.
pub(super) struct Registered<'a> {
    shared: &'a Shared,
    frames: &'a mpsc::Sender<Vec<u8>>,
    id: u32,
    response: oneshot::Receiver<Result<Response, Lost>>,
    /// Whether it opens a scanner. Set once it is sent.
    pub(super) opens_scanner: bool,
    is_done: bool,
}

impl Registered<'_> {
    /// Waits for the response; `None` if the connection was dropped.
    pub(super) async fn response(mut self) -> Option<Result<Response, Lost>> {
        let response = (&mut self.response).await;
        self.is_done = true;
        response.ok()
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut calls = self.shared.lock();
        if calls.waiting.remove(&self.id).is_some() {
            if self.opens_scanner && calls.lost.is_none() {
                calls.abandoned.insert(self.id);
            }
            return;
        }
        drop(calls);
        // The response has arrived and was not read.
        if self.opens_scanner
            && let Ok(Ok(response)) = self.response.try_recv()
            && let Some(close) = self.shared.close_of(&response)
        {
            send_later(self.frames, close);
        }
    }
}

/// Sends a frame from a task of its own, where there is a runtime. A connection that has ended has lost its
/// scanners, or their leases end.
pub(super) fn send_later(frames: &mpsc::Sender<Vec<u8>>, frame: Vec<u8>) {
    let frames = frames.clone();
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { drop(frames.send(frame).await) });
    }
}

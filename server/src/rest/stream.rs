//! Rows of a scan in chunks, each of which is read when the client has taken the one before.
//!
//! The scan is a session, which ends with the answer: when the last row was read, when a read fails, and when
//! the client closes the connection. A failure after the first chunk cannot have a status any more: the
//! answer is cut off, which clients see as an error.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::HttpBody;
use basalt_engine::cell::CellBatch;
use basalt_rest::model::writer::CellSetWriter;
use bytes::Bytes;
use hyper::body::Frame;

use super::body::Packer;
use super::cells;
use super::faults::Refusal;
use super::methods::Method;
use super::request::{About, Request, Result};
use crate::http::{Answer, Closing};
use crate::limits::admission::MemoryPermit;
use crate::server::Server;
use crate::service::pipeline::{self, End};
use crate::service::{Call, Kept, Sender, scans};

/// Bytes of cells after which a chunk begins no further row.
const CHUNK_BYTES: usize = 256 << 10;
/// Most rows of a chunk.
const CHUNK_ROWS: usize = 4_096;

/// Reads the rows of a session.
#[derive(Debug)]
pub(super) struct Reader {
    server: Arc<Server>,
    sender: Sender,
    kept: Kept,
    began: Instant,
    method: Method,
    id: i32,
    /// Elements that may still be read.
    left: usize,
    is_over: bool,
    answer_bytes: usize,
    failed: Option<(&'static str, String)>,
    /// Whether the end of the call is noted here: it is noted with a whole answer otherwise.
    settles: bool,
    about: About,
    closing: Option<Closing>,
}

impl Reader {
    /// Reads the session with that id, at most `limit` elements.
    pub(super) fn new(asked: &Request, id: i32, limit: usize) -> Self {
        let server = Arc::clone(asked.server());
        // A sender of its own: that of the request is told that its client has gone when the answer begins. A
        // client that goes during the answer drops this.
        let sender = Sender::new(Arc::clone(&asked.sender.caller), server.admission().memory());
        Self {
            sender,
            kept: Kept::default(),
            began: asked.began,
            method: asked.method,
            id,
            left: limit,
            is_over: false,
            answer_bytes: 0,
            failed: None,
            settles: false,
            about: asked.about.clone(),
            closing: asked.closing.clone(),
            server,
        }
    }

    /// The next rows; none at the end.
    pub(super) async fn fetch(&mut self) -> Result<CellBatch> {
        if self.is_over || self.left == 0 {
            self.is_over = true;
            return Ok(CellBatch::new());
        }
        let mut call = Call::new(&self.sender, &mut self.kept, self.began);
        let rows = self.left.min(CHUNK_ROWS);
        match scans::fetch_rows(&self.server, &mut call, self.id, rows, CHUNK_BYTES).await {
            Ok((batch, is_end)) => {
                self.left -= batch.row_count().min(self.left);
                self.is_over = is_end || self.left == 0 || batch.is_empty();
                Ok(batch)
            }
            Err(failure) => {
                self.failed = Some((failure.label(), failure.message().to_owned()));
                self.is_over = true;
                Err(failure.into())
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        scans::close(self.server.sessions(), &self.sender.caller, self.id);
        if self.settles {
            self.server
                .load()
                .connections
                .sent_bytes
                .add(self.answer_bytes as u64);
            let mut call = Call::new(&self.sender, &mut self.kept, self.began);
            self.about.describe(&mut call);
            let (failed, message) = match &self.failed {
                None => (None, ""),
                Some((class, message)) => (Some(*class), &message[..]),
            };
            let end = End {
                failed,
                message,
                answer_bytes: self.answer_bytes,
            };
            pipeline::settle(&self.server, &call, self.method.described(), end);
        }
    }
}

/// The first chunk of an answer.
pub(super) enum Chunk {
    /// It is all of it.
    Last(Vec<u8>),
    /// More follow; the first one is kept.
    More,
}

/// Reads and encodes the chunks of an answer.
#[derive(Debug)]
struct Source {
    reader: Reader,
    writer: CellSetWriter,
    packer: Option<Packer>,
}

impl Source {
    /// The next chunk, not packed, with its reservation.
    async fn next(&mut self) -> Result<(Vec<u8>, MemoryPermit)> {
        let batch = self.reader.fetch().await?;
        let mut out = Vec::with_capacity(batch.data_bytes() * 2);
        for row in batch.rows() {
            if let Err(error) = self.writer.row(row.key(), cells::cells(&row), &mut out) {
                self.reader.is_over = true;
                self.reader.failed = Some(("FrameTooLarge", error.to_string()));
                return Err(Refusal::malformed(error.to_string()));
            }
        }
        if self.reader.is_over {
            self.writer.finish(&mut out);
        }
        let mut call = Call::new(&self.reader.sender, &mut self.reader.kept, self.reader.began);
        call.put_batch(batch);
        let mut permit = MemoryPermit::empty(self.reader.server.admission().memory());
        permit.set(out.capacity());
        Ok((out, permit))
    }

    /// Packs a chunk, if the client wants that.
    fn packed(&mut self, plain: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let Some(packer) = &mut self.packer else {
            return Ok(plain);
        };
        let mut bytes = packer.piece(&plain)?;
        if self.reader.is_over
            && let Some(packer) = self.packer.take()
        {
            bytes.extend(packer.finish()?);
        }
        Ok(bytes)
    }

    fn answer(&mut self, plain: Vec<u8>, mut permit: MemoryPermit) -> std::io::Result<Answer> {
        let bytes = self.packed(plain)?;
        self.reader.answer_bytes += bytes.len();
        permit.set(bytes.capacity());
        let peer = self.reader.sender.caller.ip();
        Ok(Answer::new(
            bytes.into(),
            permit,
            peer,
            self.reader.closing.clone(),
        ))
    }
}

type Reading = Pin<Box<dyn Future<Output = (Box<Source>, Result<(Vec<u8>, MemoryPermit)>)> + Send>>;

/// An answer in chunks.
pub(super) struct Chunks {
    /// `None` while a chunk is read, and after a failure.
    source: Option<Box<Source>>,
    /// The chunk that was read and is not packed yet.
    first: Option<(Vec<u8>, MemoryPermit)>,
    reading: Option<Reading>,
    /// The chunk that the client takes.
    current: Option<Answer>,
}

impl std::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Chunks {
    pub(super) fn new(reader: Reader, writer: CellSetWriter) -> Self {
        let source = Source {
            reader,
            writer,
            packer: None,
        };
        Self {
            source: Some(Box::new(source)),
            first: None,
            reading: None,
            current: None,
        }
    }

    /// Reads the first chunk.
    pub(super) async fn first(&mut self) -> Result<Chunk> {
        let Some(source) = &mut self.source else {
            return Ok(Chunk::Last(Vec::new()));
        };
        let (bytes, permit) = source.next().await?;
        if source.reader.is_over {
            source.reader.kept.reply = Some(permit);
            return Ok(Chunk::Last(bytes));
        }
        source.reader.settles = true;
        self.first = Some((bytes, permit));
        Ok(Chunk::More)
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.source.as_ref().map_or(0, |source| source.writer.rows())
    }

    /// The reservation of an answer that is whole.
    pub(super) fn take_reply(&mut self) -> Option<MemoryPermit> {
        self.source
            .as_mut()
            .and_then(|source| source.reader.kept.reply.take())
    }

    /// Packs the answer with gzip.
    pub(super) fn pack(&mut self) {
        if let Some(source) = &mut self.source {
            source.packer = Some(Packer::new());
        }
    }

    /// The next chunk as it is sent.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<std::io::Result<Answer>>> {
        let (mut source, read) = if let Some(first) = self.first.take() {
            match self.source.take() {
                Some(source) => (source, Ok(first)),
                None => return Poll::Ready(None),
            }
        } else {
            let reading = match (&mut self.reading, self.source.take()) {
                (Some(reading), _) => reading,
                (None, Some(source)) if source.reader.is_over => return Poll::Ready(None),
                (none, Some(mut source)) => none.insert(Box::pin(async move {
                    let read = source.next().await;
                    (source, read)
                })),
                (None, None) => return Poll::Ready(None),
            };
            let read = ready!(reading.as_mut().poll(context));
            self.reading = None;
            read
        };
        Poll::Ready(Some(match read {
            Ok((bytes, permit)) => {
                let answer = source.answer(bytes, permit);
                self.source = Some(source);
                answer
            }
            Err(refusal) => Err(std::io::Error::other(refusal.text)),
        }))
    }
}

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        loop {
            if let Some(current) = &mut this.current {
                match Pin::new(current).poll_frame(context) {
                    Poll::Ready(None) => this.current = None,
                    Poll::Ready(Some(Ok(frame))) => return Poll::Ready(Some(Ok(frame))),
                    Poll::Ready(Some(Err(never))) => match never {},
                    Poll::Pending => return Poll::Pending,
                }
            } else {
                match ready!(this.poll_chunk(context)) {
                    None => return Poll::Ready(None),
                    Some(answer) => this.current = Some(answer?),
                }
            }
        }
    }
}

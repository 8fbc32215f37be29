//! The part of ZooKeeper's protocol that a client of HBase needs: connect, read one node or its children,
//! close.
//!
//! Every packet is an int32 length and that many bytes; strings and buffers have an int32 length of their
//! own. A session lives for one look-up, as with gohbase and asynchbase.

use std::io;

use bytes::{Buf, BufMut, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::options::ClusterOptions;
use crate::error::{Error, Result};
use crate::stream::{self, Stream};

const GET_DATA: i32 = 4;
const GET_CHILDREN: i32 = 8;
const CLOSE: i32 = -11;
/// Error code of a node that does not exist.
const NO_NODE: i32 = -101;
/// Session timeout that the client asks for.
const SESSION_MS: i32 = 30_000;
/// Longest packet that is read, in bytes: ZooKeeper's own limit for nodes.
const PACKET_BYTES_MAX: usize = 1 << 20;
/// The methods in errors.
const METHOD: &str = "a look-up";

/// The data of a node.
pub(super) async fn get_data(server: &str, path: &str, options: &ClusterOptions) -> Result<Bytes> {
    let mut session = Session::connect(server, options).await?;
    let data = session.get_data(path).await;
    session.close().await;
    data
}

/// The names of a node's children.
pub(super) async fn get_children(server: &str, path: &str, options: &ClusterOptions) -> Result<Vec<String>> {
    let mut session = Session::connect(server, options).await?;
    let children = session.get_children(path).await;
    session.close().await;
    children
}

struct Session<'a> {
    server: &'a str,
    stream: Stream,
}

impl<'a> Session<'a> {
    async fn connect(server: &'a str, options: &ClusterOptions) -> Result<Session<'a>> {
        let connecting = Stream::connect(server, &options.security);
        let stream = stream::within(options.connect_timeout, server, connecting).await?;
        let mut session = Session { server, stream };
        session.open().await?;
        Ok(session)
    }

    async fn open(&mut self) -> Result<()> {
        let mut request = Vec::new();
        request.put_i32(0);
        request.put_i64(0);
        request.put_i32(SESSION_MS);
        request.put_i64(0);
        put_buffer(&[0; 16], &mut request);
        request.put_u8(0);
        self.send(&request).await?;
        let mut answer = self.receive().await?;
        let _version = self.take_i32(&mut answer)?;
        match self.take_i32(&mut answer)? {
            timeout if timeout > 0 => Ok(()),
            _ => Err(self.malformed("the session has no timeout")),
        }
    }

    async fn get_data(&mut self, path: &str) -> Result<Bytes> {
        let mut answer = self.ask(GET_DATA, path).await?;
        self.take_buffer(&mut answer, path)
    }

    async fn get_children(&mut self, path: &str) -> Result<Vec<String>> {
        let mut answer = self.ask(GET_CHILDREN, path).await?;
        let count = self.take_i32(&mut answer)?;
        let mut children = Vec::new();
        for _ in 0..count {
            let name = self.take_buffer(&mut answer, path)?;
            children.push(String::from_utf8_lossy(&name).into_owned());
        }
        Ok(children)
    }

    /// Asks about a node without a watch. Returns the answer behind its head.
    async fn ask(&mut self, operation: i32, path: &str) -> Result<Bytes> {
        let mut request = Vec::new();
        request.put_i32(1);
        request.put_i32(operation);
        put_buffer(path.as_bytes(), &mut request);
        request.put_u8(0);
        self.send(&request).await?;
        let mut answer = self.receive().await?;
        let _xid = self.take_i32(&mut answer)?;
        let _zxid = answer.try_get_i64().map_err(|error| self.malformed(&error))?;
        match self.take_i32(&mut answer)? {
            0 => {}
            NO_NODE => {
                return Err(Error::Registry {
                    target: self.server.to_owned(),
                    what: format!(
                        "ZooKeeper has no node {path}: HBase is not running, or its base znode is another one"
                    ),
                });
            }
            code => return Err(self.malformed(&format!("error {code} for {path}"))),
        }
        Ok(answer)
    }

    fn take_buffer(&self, answer: &mut Bytes, path: &str) -> Result<Bytes> {
        let length = self.take_i32(answer)?;
        match usize::try_from(length) {
            Ok(length) if length <= answer.len() => Ok(answer.split_to(length)),
            _ => Err(self.malformed(&format!("{path} claims {length} bytes"))),
        }
    }

    /// Ends the session. One that cannot be ended expires on the server.
    async fn close(mut self) {
        let mut request = Vec::new();
        request.put_i32(2);
        request.put_i32(CLOSE);
        drop(self.send(&request).await);
    }

    async fn send(&mut self, packet: &[u8]) -> Result<()> {
        let mut bytes = Vec::with_capacity(4 + packet.len());
        put_buffer(packet, &mut bytes);
        let sent = self.stream.write_all(&bytes).await;
        sent.map_err(|error| self.io(error))?;
        let flushed = self.stream.flush().await;
        flushed.map_err(|error| self.io(error))
    }

    async fn receive(&mut self) -> Result<Bytes> {
        let length = self.stream.read_u32().await.map_err(|error| self.io(error))? as usize;
        if length > PACKET_BYTES_MAX {
            return Err(self.malformed(&format!("packet of {length} bytes")));
        }
        let mut packet = vec![0; length];
        let received = self.stream.read_exact(&mut packet).await;
        received.map_err(|error| self.io(error))?;
        Ok(packet.into())
    }

    fn take_i32(&self, packet: &mut Bytes) -> Result<i32> {
        packet.try_get_i32().map_err(|error| self.malformed(&error))
    }

    fn io(&self, source: io::Error) -> Error {
        let source = match source.kind() {
            kind @ io::ErrorKind::UnexpectedEof => io::Error::new(kind, stream::closed_text(false)),
            _ => source,
        };
        stream::broken(&format!("ZooKeeper at {}", self.server), METHOD, source)
    }

    fn malformed(&self, what: &(impl ToString + ?Sized)) -> Error {
        Error::Malformed {
            target: format!("ZooKeeper at {}", self.server),
            method: METHOD,
            what: what.to_string(),
        }
    }
}

fn put_buffer(bytes: &[u8], out: &mut Vec<u8>) {
    out.put_i32(i32::try_from(bytes.len()).expect("requests are short"));
    out.put_slice(bytes);
}

//! A client of the HTTP port that sends given bytes and returns the answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_idl::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter};
use basalt_idl::{Call, CallError, call};
use bytes::Bytes;

/// A connection.
pub(crate) struct Http(BufReader<TcpStream>);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A request with these header lines, each ended by a line break, and the length of its body.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    request_as("127.0.0.1", method, path, headers, body)
}

/// A request with this `Host` header, these header lines, and the length of its body.
fn request_as(host: &str, method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

impl Http {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the HTTP port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        Self(BufReader::new(socket))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("the server reads");
    }

    /// The next answer; `None` when the server has closed the connection.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                assert!(head.is_empty(), "half an answer: {head:?}");
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let mut lines = head.into_iter();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                Some((name.to_lowercase(), value.to_owned()))
            })
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().expect("a number"))];
        self.0.read_exact(&mut body).expect("a body is whole");
        Some(Answer {
            status,
            headers,
            body,
        })
    }

    /// One request and its answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        self.send(&request(method, path, headers, body));
        self.answer().expect("the server answers")
    }

    /// Sends a request with this `Host` header and returns the reply.
    pub(crate) fn ask_as(
        &mut self,
        host: &str,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Answer {
        self.send(&request_as(host, method, path, headers, body));
        self.answer().expect("the server answers")
    }

    /// A call in the strict binary protocol.
    pub(crate) fn call<C: Call>(
        &mut self,
        path: &str,
        args: &C,
    ) -> Result<C::Success, CallError<C::Exception>> {
        let mut message = Vec::new();
        call::write_call(&mut BinaryWriter::new(&mut message), 7, args);
        let body = self.thrift(path, &message);
        call::read_reply::<C, _>(&mut BinaryReader::new(body), 7).expect("the answer is well-formed")
    }

    /// A call in the compact protocol.
    pub(crate) fn call_compact<C: Call>(
        &mut self,
        path: &str,
        args: &C,
    ) -> Result<C::Success, CallError<C::Exception>> {
        let mut message = Vec::new();
        call::write_call(&mut CompactWriter::new(&mut message), 7, args);
        let body = self.thrift(path, &message);
        call::read_reply::<C, _>(&mut CompactReader::new(body), 7).expect("the answer is well-formed")
    }

    /// The message that answers this one.
    pub(crate) fn thrift(&mut self, path: &str, message: &[u8]) -> Bytes {
        let answer = self.ask("POST", path, "Content-Type: application/x-thrift\r\n", message);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/x-thrift"));
        answer.body.into()
    }
}

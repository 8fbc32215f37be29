//! A client that speaks any protocol over any transport, and sends given bytes, however wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use basalt_idl::wire::{BinaryReader, CompactReader, MessageHeader, MessageScanner, Protocol, Reader, Scan};
use basalt_idl::{Call, CallError, Decode, TApplicationException, call};
use basalt_test_support::Server;
use bytes::Bytes;

use super::bad_messages::written;

/// All protocols.
pub(crate) const PROTOCOLS: [Protocol; 3] = [Protocol::BinaryStrict, Protocol::BinaryOld, Protocol::Compact];

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Framed,
    Unframed,
    Http,
}

/// The transports of the main port.
pub(crate) const SOCKETS: [Transport; 2] = [Transport::Framed, Transport::Unframed];

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A Thrift message.
    Message(Bytes),
    /// An HTTP status other than 200, with its text.
    Status(u16, String),
    /// The end of the connection.
    End,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    protocol: Protocol,
    transport: Transport,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(server: &Server, protocol: Protocol, transport: Transport) -> Self {
        let address = match transport {
            Transport::Http => server.http,
            _ => server.thrift,
        };
        let socket = TcpStream::connect(address).expect("the port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        socket.set_nodelay(true).expect("a socket has options");
        Self {
            socket,
            protocol,
            transport,
            received: Vec::new(),
        }
    }

    /// The message as it goes over the transport.
    pub(crate) fn wrapped(&self, message: &[u8]) -> Vec<u8> {
        let head = match self.transport {
            Transport::Unframed => Vec::new(),
            Transport::Framed => (message.len() as u32).to_be_bytes().to_vec(),
            Transport::Http => format!(
                "POST /thrift2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
                message.len()
            )
            .into_bytes(),
        };
        [&head[..], message].concat()
    }

    /// Sends bytes as they are. That the server does not take them all is no failure: it may have heard
    /// enough.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        let wrapped = self.wrapped(message);
        self.send_raw(&wrapped);
    }

    /// Closes the sending side, so that the server does not wait for more.
    pub(crate) fn finish(&mut self) {
        // Fails when the server has ended the connection already.
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// Reads until `done` says how long the answer is; `None` at the end of the connection.
    fn read_until(&mut self, mut done: impl FnMut(&[u8]) -> Option<usize>) -> Option<Vec<u8>> {
        loop {
            if let Some(length) = done(&self.received) {
                return Some(self.received.drain(..length).collect());
            }
            let mut piece = [0; 8192];
            match self.socket.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer within a minute: {error}"),
            }
        }
    }

    pub(crate) fn answer(&mut self) -> Answer {
        let answer = match self.transport {
            Transport::Framed => self.read_until(|bytes| {
                let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
                (bytes.len() >= 4 + length).then_some(4 + length)
            }),
            Transport::Unframed => {
                // Answers are strict whatever the question was.
                let protocol = match self.protocol {
                    Protocol::Compact => Protocol::Compact,
                    _ => Protocol::BinaryStrict,
                };
                self.read_until(|bytes| match MessageScanner::new(protocol, 1 << 30).feed(bytes) {
                    Ok(Scan::Complete { len }) => Some(len),
                    Ok(Scan::NeedMore) => None,
                    Err(error) => panic!("an answer that is no message: {error}: {bytes:02x?}"),
                })
            }
            Transport::Http => self.read_until(|bytes| {
                let text = String::from_utf8_lossy(bytes);
                let (head, _) = text.split_once("\r\n\r\n")?;
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("Content-Length: "));
                let length = length.map_or(0, |length| length.parse().expect("a number"));
                (bytes.len() >= head.len() + 4 + length).then_some(head.len() + 4 + length)
            }),
        };
        let Some(mut answer) = answer else {
            assert!(self.received.is_empty(), "half an answer: {:02x?}", self.received);
            return Answer::End;
        };
        match self.transport {
            Transport::Unframed => Answer::Message(answer.into()),
            Transport::Framed => Answer::Message(answer.split_off(4).into()),
            Transport::Http => {
                let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
                let body = answer.split_off(head.expect("seen above") + 4);
                let head = String::from_utf8_lossy(&answer);
                match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
                    Some(200) => Answer::Message(body.into()),
                    Some(status) => Answer::Status(status, String::from_utf8_lossy(&body).into_owned()),
                    None => panic!("no status: {head}"),
                }
            }
        }
    }

    /// The exception outside the interface that came back, with its header.
    pub(crate) fn exception(&mut self) -> (MessageHeader, TApplicationException) {
        let Answer::Message(answer) = self.answer() else {
            panic!("no message came back")
        };
        match self.protocol {
            Protocol::Compact => read_exception(CompactReader::new(answer)),
            _ => read_exception(BinaryReader::new(answer)),
        }
    }

    pub(crate) fn call<C: Call>(&mut self, args: &C) -> Result<C::Success, CallError<C::Exception>> {
        self.send(&written(self.protocol, 7, args));
        let Answer::Message(answer) = self.answer() else {
            panic!("{} was not answered", C::METHOD.name)
        };
        let reply = match self.protocol {
            Protocol::Compact => call::read_reply::<C, _>(&mut CompactReader::new(answer), 7),
            _ => call::read_reply::<C, _>(&mut BinaryReader::new(answer), 7),
        };
        reply.expect("the answer is well-formed")
    }
}

fn read_exception<R: Reader>(mut reader: R) -> (MessageHeader, TApplicationException) {
    let header = reader.message_begin().expect("a header");
    let exception = TApplicationException::decode(&mut reader).expect("an exception");
    (header, exception)
}

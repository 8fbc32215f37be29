//! A blocking native connection with one call in flight.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_idl::native::frame::{Request, Response, put_connection_header};
use basalt_idl::native::messages::{ConnectionHeader, RequestHeader, VersionInfo};
use bytes::Bytes;
use prost::Message;

use crate::Value;
use crate::connection::NoAnswer;

use super::response;
use super::service::ClientKind;

/// Longest time without a byte of an answer.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Longest response that is read, in bytes.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// Preamble of a client without Kerberos.
const PREAMBLE: &[u8] = b"HBas\0\x50";

/// The response to a call.
#[derive(Clone, Debug)]
pub enum Reply<M> {
    /// The method's message, and the cell block.
    Success(M, Bytes),
    /// The exception of the response header, as a value.
    Exception(Value),
}

/// A connection to ClientService. After [`NoAnswer`] it cannot be used any more.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    kind: ClientKind,
    call_id: u32,
}

impl Connection {
    /// Connects, and sends the bytes that precede the first call.
    pub fn open(server: SocketAddr, kind: ClientKind) -> Result<Self, NoAnswer> {
        let mut socket = TcpStream::connect(server)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        let mut hello = PREAMBLE.to_vec();
        put_connection_header(&header(kind), &mut hello);
        socket.write_all(&hello)?;
        Ok(Connection {
            socket,
            kind,
            call_id: 0,
        })
    }

    /// The kind of client that the connection presents itself as.
    pub fn kind(&self) -> ClientKind {
        self.kind
    }

    /// Sends a call and waits for its answer.
    pub fn call<M: Message + Default>(
        &mut self,
        method: &'static str,
        parameter: &impl Message,
        cells: &[u8],
    ) -> Result<Reply<M>, NoAnswer> {
        self.call_id += 1;
        let header = RequestHeader {
            call_id: Some(self.call_id),
            method_name: Some(method.to_owned()),
            ..RequestHeader::default()
        };
        let mut out = Vec::new();
        Request::encode(&header, parameter, cells, &mut out);
        self.socket.write_all(&out)?;
        let malformed = |error: &dyn std::fmt::Display| NoAnswer::Malformed(method, error.to_string());
        let response = Response::decode(self.frame(method)?).map_err(|error| malformed(&error))?;
        if response.header.call_id != Some(self.call_id) {
            return Err(malformed(&"answers another call"));
        }
        if let Some(exception) = &response.header.exception {
            return Ok(Reply::Exception(response::exception(exception)));
        }
        let message = M::decode(response.result).map_err(|error| malformed(&error))?;
        Ok(Reply::Success(message, response.cells))
    }

    /// The next frame, without its length.
    fn frame(&mut self, method: &'static str) -> Result<Bytes, NoAnswer> {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > RESPONSE_BYTES_MAX {
            let text = format!("a response of {length} bytes");
            return Err(NoAnswer::Malformed(method, text));
        }
        let mut frame = vec![0; length];
        self.socket.read_exact(&mut frame)?;
        Ok(frame.into())
    }
}

fn header(kind: ClientKind) -> ConnectionHeader {
    let codec = "org.apache.hadoop.hbase.codec.KeyValueCodec";
    let version = VersionInfo {
        version: "2.6.1".to_owned(),
        version_major: Some(2),
        version_minor: Some(6),
        ..VersionInfo::default()
    };
    ConnectionHeader {
        service_name: Some("ClientService".to_owned()),
        cell_block_codec_class: (kind != ClientKind::Bare).then(|| codec.to_owned()),
        version_info: (kind != ClientKind::Versionless).then_some(version),
        ..ConnectionHeader::default()
    }
}

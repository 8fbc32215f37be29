//! Frames: a request or a response with its header, message and cell block.
//!
//! ```text
//! request:   int32 total | varint h | RequestHeader (h)  | varint p | parameter (p) | cell block
//! response:  int32 total | varint h | ResponseHeader (h) | varint p | result (p)    | cell block
//! ```
//!
//! `total` counts everything after itself. A response with an exception ends after its header. The
//! header holds the length of the cell block. Decoders take a frame without its `total`.

use bytes::{Buf, Bytes};
use prost::Message;
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

use super::messages::{CellBlockMeta, ConnectionHeader, ExceptionResponse, RequestHeader, ResponseHeader};

/// Call id of a response that answers the connection and no call.
pub const CONNECTION_CALL_ID: u32 = u32::MAX;

/// Why a frame cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A part of the frame claims more bytes than the frame has.
    #[error("{part} of {claimed} bytes in a frame that has {left} left")]
    Truncated {
        /// The part.
        part: &'static str,
        /// The length that it claims.
        claimed: u64,
        /// Bytes that the frame has left.
        left: usize,
    },
    /// A varint that does not end.
    #[error("the length of {0} is not a varint")]
    Length(&'static str),
    /// A header that is not the protobuf message it should be.
    #[error("malformed {part}: {error}")]
    Message {
        /// The part.
        part: &'static str,
        /// The decoder's error.
        error: String,
    },
    /// Bytes behind the cell block.
    #[error("{0} bytes behind the end of the call")]
    Trailing(usize),
}

/// Fields that a server reads of a [`RequestHeader`]; the rest is skipped.
#[derive(Clone, PartialEq, Message)]
pub struct CallHeader {
    /// Number of the call, which its response repeats.
    #[prost(uint32, optional, tag = "1")]
    pub call_id: Option<u32>,
    /// See [`Self::method`].
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub method_name: Option<Bytes>,
    /// Whether the call has a message.
    #[prost(bool, optional, tag = "4")]
    pub request_param: Option<bool>,
    /// Length of the cell block.
    #[prost(message, optional, tag = "5")]
    pub cell_block_meta: Option<CellBlockMeta>,
    /// Milliseconds for which the client waits.
    #[prost(uint32, optional, tag = "7")]
    pub timeout: Option<u32>,
}

impl CallHeader {
    /// Name of the method; empty if there is none, or it is not text.
    pub fn method(&self) -> &str {
        let name = self.method_name.as_deref().unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }
}

/// A decoded call.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Call id, method, deadline.
    pub header: CallHeader,
    /// The method's protobuf message.
    pub parameter: Bytes,
    /// The cell block as it was sent: compressed if the connection header says so.
    pub cells: Bytes,
}

impl Request {
    /// Reads a request. The parts are slices of `frame`.
    pub fn decode(mut frame: Bytes) -> Result<Self, FrameError> {
        let header = Self::decode_header(&mut frame)?;
        let parameter = if header.request_param == Some(true) {
            take_delimited(&mut frame, "request parameter")?
        } else {
            Bytes::new()
        };
        let cells = take_cells(&mut frame, header.cell_block_meta.as_ref())?;
        if !frame.is_empty() {
            return Err(FrameError::Trailing(frame.len()));
        }
        Ok(Self {
            header,
            parameter,
            cells,
        })
    }

    /// Reads the header alone, from the beginning of a frame that may not be whole yet.
    pub fn decode_header(frame: &mut Bytes) -> Result<CallHeader, FrameError> {
        decode_message(take_delimited(frame, "request header")?, "request header")
    }

    /// Appends a request; `cells` is the cell block as it is to be sent.
    pub fn encode(header: &RequestHeader, parameter: &impl Message, cells: &[u8], out: &mut Vec<u8>) {
        let mut header = header.clone();
        header.request_param = Some(true);
        header.cell_block_meta = cell_block_meta(cells.len());
        let total = delimited_len(&header) + delimited_len(parameter) + cells.len();
        out.reserve(4 + total);
        out.extend_from_slice(&(total as u32).to_be_bytes());
        put_delimited(&header, out);
        put_delimited(parameter, out);
        out.extend_from_slice(cells);
    }
}

/// A decoded response.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Call id and exception.
    pub header: ResponseHeader,
    /// The method's protobuf message; empty when there is an exception.
    pub result: Bytes,
    /// The cell block as it was sent.
    pub cells: Bytes,
}

impl Response {
    /// Reads a response. The parts are slices of `frame`.
    pub fn decode(mut frame: Bytes) -> Result<Self, FrameError> {
        let header: ResponseHeader =
            decode_message(take_delimited(&mut frame, "response header")?, "response header")?;
        let result = if header.exception.is_some() {
            Bytes::new()
        } else {
            take_delimited(&mut frame, "result")?
        };
        let cells = take_cells(&mut frame, header.cell_block_meta.as_ref())?;
        if !frame.is_empty() {
            return Err(FrameError::Trailing(frame.len()));
        }
        Ok(Self {
            header,
            result,
            cells,
        })
    }
}

/// Appends a response up to its cell block. The caller appends exactly `cells_len` bytes of cells.
pub fn begin_response(call_id: u32, result: &impl Message, cells_len: usize, out: &mut Vec<u8>) {
    let header = response_header(call_id, cells_len);
    let total = delimited_len(&header) + delimited_len(result) + cells_len;
    out.reserve(4 + total);
    put_head(&header, result, total, out);
}

/// A response up to its cell block of `cells_len` bytes, which is sent from a buffer of its own.
pub fn response_head(call_id: u32, result: &impl Message, cells_len: usize) -> Vec<u8> {
    let header = response_header(call_id, cells_len);
    let head_len = delimited_len(&header) + delimited_len(result);
    let mut head = Vec::with_capacity(4 + head_len);
    put_head(&header, result, head_len + cells_len, &mut head);
    head
}

/// As [`response_head`], for a message that is encoded already.
pub fn encoded_response_head(call_id: u32, result: &[u8], cells_len: usize) -> Vec<u8> {
    let mut head = Vec::with_capacity(RESPONSE_HEADER_BYTES + result.len());
    put_encoded_head(call_id, result, cells_len, &mut head);
    head
}

fn put_head(header: &ResponseHeader, result: &impl Message, total: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(total as u32).to_be_bytes());
    put_delimited(header, out);
    put_delimited(result, out);
}

/// Appends a response whose message is encoded already, with its cell block as it is to be sent.
pub fn put_encoded_response(call_id: u32, result: &[u8], cells: &[u8], out: &mut Vec<u8>) {
    out.reserve(RESPONSE_HEADER_BYTES + result.len() + cells.len());
    put_encoded_head(call_id, result, cells.len(), out);
    out.extend_from_slice(cells);
}

/// About what a response takes besides its message and cells.
const RESPONSE_HEADER_BYTES: usize = 32;

fn put_encoded_head(call_id: u32, result: &[u8], cells_len: usize, out: &mut Vec<u8>) {
    let header = response_header(call_id, cells_len);
    let result_len = encoded_len_varint(result.len() as u64) + result.len();
    let total = delimited_len(&header) + result_len + cells_len;
    out.extend_from_slice(&(total as u32).to_be_bytes());
    put_delimited(&header, out);
    encode_varint(result.len() as u64, out);
    out.extend_from_slice(result);
}

fn response_header(call_id: u32, cells_len: usize) -> ResponseHeader {
    ResponseHeader {
        // Written even if it is 0: Java counts calls from 0, and a missing id is malformed.
        call_id: Some(call_id),
        cell_block_meta: cell_block_meta(cells_len),
        ..ResponseHeader::default()
    }
}

/// Appends a response that is an exception.
pub fn put_exception(call_id: u32, exception: ExceptionResponse, out: &mut Vec<u8>) {
    let header = ResponseHeader {
        call_id: Some(call_id),
        exception: Some(exception),
        ..ResponseHeader::default()
    };
    out.extend_from_slice(&(delimited_len(&header) as u32).to_be_bytes());
    put_delimited(&header, out);
}

/// Reads a connection header, which has no length inside its frame.
pub fn decode_connection_header(frame: Bytes) -> Result<ConnectionHeader, FrameError> {
    decode_message(frame, "connection header")
}

/// Appends a connection header with its frame length.
pub fn put_connection_header(header: &ConnectionHeader, out: &mut Vec<u8>) {
    out.extend_from_slice(&(header.encoded_len() as u32).to_be_bytes());
    header.encode(out).expect("a Vec grows");
}

fn cell_block_meta(length: usize) -> Option<CellBlockMeta> {
    (length > 0).then_some(CellBlockMeta {
        length: Some(length as u32),
    })
}

fn delimited_len(message: &impl Message) -> usize {
    let length = message.encoded_len();
    encoded_len_varint(length as u64) + length
}

fn put_delimited(message: &impl Message, out: &mut Vec<u8>) {
    encode_varint(message.encoded_len() as u64, out);
    message.encode(out).expect("a Vec grows");
}

fn decode_message<M: Message + Default>(bytes: Bytes, part: &'static str) -> Result<M, FrameError> {
    M::decode(bytes).map_err(|error| FrameError::Message {
        part,
        error: error.to_string(),
    })
}

fn take_delimited(frame: &mut Bytes, part: &'static str) -> Result<Bytes, FrameError> {
    let length = decode_varint(frame).map_err(|_| FrameError::Length(part))?;
    take(frame, length, part)
}

fn take_cells(frame: &mut Bytes, meta: Option<&CellBlockMeta>) -> Result<Bytes, FrameError> {
    let length = meta.and_then(|meta| meta.length).unwrap_or_default();
    take(frame, u64::from(length), "cell block")
}

fn take(frame: &mut Bytes, length: u64, part: &'static str) -> Result<Bytes, FrameError> {
    match usize::try_from(length) {
        Ok(length) if length <= frame.remaining() => Ok(frame.split_to(length)),
        _ => Err(FrameError::Truncated {
            part,
            claimed: length,
            left: frame.remaining(),
        }),
    }
}

//! The frames of a native connection: the connection header, then requests; and responses, as the
//! client reads them.
//!
//! ```text
//! input = how u8 | frames: u32 length | that many bytes
//! how   = bit 0: the frames are responses, and there is no connection header
//! ```
//!
//! A header decoded alone equals the header decoded with its frame. A frame that decodes is encoded
//! again and decodes to the same.

use basalt_idl::native::compress::Compressor;
use basalt_idl::native::frame::{
    FrameError, Request, Response, decode_connection_header, put_connection_header, put_encoded_response,
    put_exception,
};
use basalt_idl::native::preamble::Preamble;
use bytes::{Buf as _, Bytes};
use prost::Message as _;

use super::rpc_messages::DECODED_PER_BYTE;
use crate::memory;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((&how, stream)) = input.split_first() else {
        return;
    };
    if let Some(preamble) = stream.first_chunk() {
        Preamble::parse(*preamble);
    }
    let mut frames = frames(stream);
    if how & 1 != 0 {
        frames.for_each(|frame| response(&frame));
        return;
    }
    if let Some(frame) = frames.next() {
        connection_header(&frame);
    }
    frames.for_each(|frame| request(&frame));
}

/// The frames of a stream, as a connection takes them off its buffer.
pub(super) fn frames(stream: &[u8]) -> impl Iterator<Item = Bytes> {
    let mut rest = Bytes::copy_from_slice(stream);
    std::iter::from_fn(move || {
        let length = rest.first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        if rest.len() - 4 < length {
            return None;
        }
        rest.advance(4);
        Some(rest.split_to(length))
    })
}

/// Reads a frame within the memory for it.
fn bounded<T>(frame: &Bytes, read: fn(Bytes) -> Result<T, FrameError>) -> Option<T> {
    let beside = DECODED_PER_BYTE * frame.len();
    memory::bounded(frame.len(), beside, || read(frame.clone())).ok()
}

fn connection_header(frame: &Bytes) {
    let Some(header) = bounded(frame, decode_connection_header) else {
        return;
    };
    let class = header.cell_block_compressor_class.as_deref();
    class.and_then(Compressor::of_class);
    let mut written = Vec::new();
    put_connection_header(&header, &mut written);
    let again = decode_connection_header(Bytes::from(written).slice(4..));
    assert_eq!(
        again,
        Ok(header),
        "a connection header does not read what it wrote"
    );
}

fn request(frame: &Bytes) {
    let alone = Request::decode_header(&mut frame.clone());
    let Some(request) = bounded(frame, Request::decode) else {
        return;
    };
    assert_eq!(
        alone.as_ref(),
        Ok(&request.header),
        "another header when it is read alone"
    );
    let parts = request.parameter.len() + request.cells.len();
    assert!(
        parts < frame.len(),
        "parts of {parts} bytes in a frame of {}",
        frame.len()
    );
}

fn response(frame: &Bytes) {
    let Some(response) = bounded(frame, Response::decode) else {
        return;
    };
    let mut written = Vec::new();
    let call_id = response.header.call_id.unwrap_or_default();
    match response.header.exception.clone() {
        Some(exception) => put_exception(call_id, exception, &mut written),
        None => put_encoded_response(call_id, &response.result, &response.cells, &mut written),
    }
    let again = Response::decode(Bytes::from(written).slice(4..)).expect("it was written here");
    assert_eq!(again.header.exception, response.header.exception);
    assert_eq!(
        again.result, response.result,
        "a response does not read what it wrote"
    );
    if response.header.exception.is_none() {
        assert_eq!(
            again.cells, response.cells,
            "a response does not read what it wrote"
        );
    }
    assert!(again.header.encoded_len() <= frame.len() + 16);
}

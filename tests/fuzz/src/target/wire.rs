//! Input of a connection of the main port: bytes to messages to calls, as the server does it.
//!
//! ```text
//! input = how u8 | bytes as they arrive
//! how   = low four bits: size of the pieces, of which there are at most 64; bit 7: a connection that takes only small messages
//! ```
//!
//! 1. The bytes become messages all at once and piece by piece: the same messages, and the same end.
//! 2. A message's method is looked up, its arguments are checked and then decoded. The check and
//!    decoding refuse the same arguments, with the same error.
//! 3. A decoded message is encoded again, and decodes to the same bytes. So do results, which the
//!    client reads.

use std::cell::Cell;

use basalt_idl::call::{MethodDescriptor, TApplicationException};
use basalt_idl::dispatch::{Service, which_service};
use basalt_idl::schema::{Decode as _, Recode, StructDescriptor, check};
use basalt_idl::wire::{
    BinaryReader, CompactReader, Detected, MessageKind, Protocol, Reader, WireError, detect,
};
use basalt_idl::{admin, thrift1, thrift2};
use basalt_server::config::Config;
use basalt_server::thrift::messages::{Messages, ProtocolError, WireFormat};
use bytes::{Bytes, BytesMut};

use super::hash_of;
use crate::memory;

/// The pieces in which bytes arrive, by the low bits of the first byte.
const PIECES: [usize; 16] = [1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 100, 255, 512, 1000, 2000];

/// Most pieces: more take longer and show nothing more.
const PIECES_MAX: usize = 64;

/// First bytes that suffice to detect a protocol.
const FIRST_BYTES: usize = 8;

/// Results are decoded without a check before: values built before an error is met may take as much
/// memory as a decoded message.
const RESULT_BYTES: usize = memory::DECODED_BYTES;

/// The other limit of messages that is tried.
const SMALL_MESSAGE_BYTES: usize = 1 << 10;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((&how, stream)) = input.split_first() else {
        return;
    };
    let mut settings = Config::default();
    if how & 0x80 != 0 {
        settings.server.max_message_bytes = SMALL_MESSAGE_BYTES;
    }
    let whole = told_apart(&settings, stream, stream.len().max(1));
    let piece_bytes = PIECES[usize::from(how & 0x0f)].max(stream.len().div_ceil(PIECES_MAX));
    let pieces = told_apart(&settings, stream, piece_bytes);
    assert_eq!(whole, pieces, "other messages when the bytes come in pieces");
    // The end of the connection was looked at above.
    let _ = receive(
        &settings,
        stream,
        stream.len().max(1),
        &mut |wire_format, message| {
            if wire_format.protocol == Protocol::Compact {
                handle(wire_format.protocol, &message, CompactReader::new);
            } else {
                handle(wire_format.protocol, &message, BinaryReader::new);
            }
        },
    );
}

/// Result of a connection's bytes: how many messages, a hash of them, and why it ended.
type Outcome = (usize, u64, Result<(), ProtocolError>);

fn told_apart(settings: &Config, stream: &[u8], piece_bytes: usize) -> Outcome {
    let seen = Cell::new((0, 0));
    let end = memory::bounded(stream.len(), 0, || {
        seen.set((0, 0));
        receive(settings, stream, piece_bytes, &mut |wire_format, message| {
            let (count, hash) = seen.get();
            seen.set((
                count + 1,
                hash_of(&(hash, wire_format.framed, wire_format.protocol, message)),
            ));
        })
    });
    let (count, hash) = seen.get();
    (count, hash, end)
}

/// Receives `stream` in pieces of a given size, if its first bytes are Thrift's. The protocol is the same
/// for any number of them that suffices.
fn receive(
    settings: &Config,
    stream: &[u8],
    piece_bytes: usize,
    take: &mut dyn FnMut(WireFormat, Bytes),
) -> Result<(), ProtocolError> {
    let Detected::Thrift { protocol, framed } = detect(stream) else {
        return Ok(());
    };
    let first_bytes = stream.iter().enumerate().map(|(end, _)| detect(&stream[..end]));
    for detected in first_bytes.take(FIRST_BYTES) {
        assert!(
            matches!(detected, Detected::NeedMore) || detected == Detected::Thrift { protocol, framed },
            "{detected:?} of fewer bytes"
        );
    }
    let mut messages = Messages::new(settings, WireFormat { protocol, framed }, BytesMut::new());
    for piece in stream.chunks(piece_bytes) {
        messages.space().extend_from_slice(piece);
        while let Some((wire_format, message)) = messages.next_message()? {
            take(wire_format, message);
        }
    }
    Ok(())
}

/// Handles a message as the server does, or as the client does an answer.
fn handle<R: Reader + Clone>(protocol: Protocol, message: &Bytes, reader_of: fn(Bytes) -> R) {
    let mut reader = reader_of(message.clone());
    let Ok(header) = reader.message_begin() else {
        return;
    };
    let body = message.slice(reader.position()..);
    if header.kind == MessageKind::Exception {
        // Whether it decodes is its sender's business.
        let _ = memory::bounded(body.len(), 0, || {
            TApplicationException::decode(&mut reader_of(body.clone()))
        });
        return;
    }
    for method in methods(header.name(), &reader) {
        if header.kind == MessageKind::Reply {
            let recode = method.recode_result;
            let decoded = memory::bounded(body.len(), RESULT_BYTES, || recode(protocol, body.clone()));
            reads_what_it_wrote(method.name, recode, protocol, decoded);
        } else {
            arguments(method.name, method.args, protocol, &body, reader_of);
        }
    }
}

/// The methods that a message may mean, as `api` finds them.
fn methods<R: Reader + Clone>(name: &str, arguments: &R) -> Vec<&'static MethodDescriptor> {
    let one = || thrift1::Method::from_name(name).map(thrift1::Method::descriptor);
    let two = || thrift2::Method::from_name(name).map(thrift2::Method::descriptor);
    let found = match which_service(name, arguments) {
        Ok(Service::Thrift1) => [one(), None],
        Ok(Service::Thrift2) => [two(), None],
        Ok(Service::Either) => [one(), two()],
        Ok(Service::Admin) => [
            admin::Method::from_name(name).map(admin::Method::descriptor),
            None,
        ],
        Ok(Service::Unknown) | Err(_) => [None, None],
    };
    found.into_iter().flatten().collect()
}

fn arguments<R: Reader>(
    name: &str,
    of: &StructDescriptor,
    protocol: Protocol,
    body: &Bytes,
    reader_of: fn(Bytes) -> R,
) {
    let checked = memory::bounded(body.len(), 0, || check(&mut reader_of(body.clone()), of));
    // Refused arguments are never decoded: the memory of decoding them does not count.
    let decoded = if checked.is_ok() {
        memory::bounded(body.len(), 0, || (of.recode)(protocol, body.clone()))
    } else {
        (of.recode)(protocol, body.clone())
    };
    assert_eq!(
        checked.as_ref().err(),
        decoded.as_ref().err(),
        "{name}: checking and decoding disagree"
    );
    reads_what_it_wrote(name, of.recode, protocol, decoded);
}

fn reads_what_it_wrote(name: &str, recode: Recode, protocol: Protocol, decoded: Result<Vec<u8>, WireError>) {
    if let Ok(written) = decoded {
        let again = recode(protocol, Bytes::from(written.clone()));
        assert_eq!(again, Ok(written), "{name} does not read what it wrote");
    }
}

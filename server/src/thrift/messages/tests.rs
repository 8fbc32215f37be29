//! Goal: bytes become the messages that were sent, however they arrive, and unacceptable messages
//! are refused with a text.

use super::*;
use basalt_idl::wire::{BinaryWriter, Detected, MessageKind, Writer, detect};

/// The messages of a connection with these settings that begins with these bytes, of which none has
/// been received.
fn messages_of(config: &Config, first: &[u8]) -> Messages {
    let Detected::Thrift { protocol, framed } = detect(first) else {
        panic!("{} is not Thrift", first.escape_ascii());
    };
    Messages::new(config, WireFormat { protocol, framed }, BytesMut::new())
}

fn call(name: &str) -> Vec<u8> {
    let mut message = Vec::new();
    let mut writer = BinaryWriter::new(&mut message);
    writer.message_begin(name, MessageKind::Call, 1);
    writer.struct_begin();
    writer.struct_end();
    message
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = (message.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    frame
}

/// Two messages, cut at every place, in both framings: always the same two messages.
#[test]
fn pieces_make_messages() {
    let (first, second) = (call("getTableNames"), call("getClusterId"));
    for frame in [true, false] {
        let wrap = |message: &[u8]| if frame { framed(message) } else { message.to_vec() };
        let stream = [wrap(&first), wrap(&second)].concat();
        for cut in 0..=stream.len() {
            let mut messages = messages_of(&Config::default(), &stream);
            let mut got = Vec::new();
            for piece in [&stream[..cut], &stream[cut..]] {
                messages.space().extend_from_slice(piece);
                while let Some((wire_format, message)) = messages.next_message().unwrap() {
                    assert_eq!(wire_format.framed, frame);
                    got.push(message.to_vec());
                }
            }
            assert_eq!(
                got,
                [first.clone(), second.clone()],
                "framed {frame}, cut at {cut}"
            );
            assert!(!messages.has_partial());
        }
    }
}

#[test]
fn a_length_over_the_limit_is_refused_before_its_bytes_arrive() {
    let mut config = Config::default();
    config.server.max_message_bytes = 1 << 20;
    let claim = [&b"\x00\xff\xff\xff"[..], &call("getTableNames")].concat();
    let (bytes, limit) = (0xff_ffff, 1 << 20);
    assert_eq!(refused(&config, &claim), ProtocolError::TooLarge { bytes, limit });
}

/// A length within the limit is only a claim until its bytes arrive.
#[test]
fn a_claimed_length_takes_no_memory() {
    let mut config = Config::default();
    config.server.max_message_bytes = 16 << 20;
    let claim = [&(15_u32 << 20).to_be_bytes()[..], &call("getTableNames")].concat();
    let mut messages = messages_of(&config, &claim);
    messages.space().extend_from_slice(&claim);
    for _ in 0..10 {
        assert_eq!(messages.next_message(), Ok(None));
        messages.space().extend_from_slice(&[0; 1000]);
    }
    let bytes = messages.buffered_bytes();
    assert!(bytes <= 4 * BULK_READ_BYTES, "{bytes} bytes for 10 KB");
}

/// The error that refuses these bytes.
fn refused(config: &Config, bytes: &[u8]) -> ProtocolError {
    let mut messages = messages_of(config, bytes);
    messages.space().extend_from_slice(bytes);
    messages.next_message().expect_err("to be refused")
}

/// Each of the settings refuses the wire formats that it excludes, and no other, once the header is
/// here.
#[test]
fn pinned_settings_refuse_other_speech() {
    use ThriftProtocol::{Binary, Compact};
    use ThriftTransport::{Framed, Unframed};
    let auto = Config::default().thrift;
    let compact = {
        let mut message = Vec::new();
        let mut writer = basalt_idl::wire::CompactWriter::new(&mut message);
        writer.message_begin("getTableNames", MessageKind::Call, 1);
        writer.struct_begin();
        writer.struct_end();
        message
    };
    let binary = call("getTableNames");
    for (protocol, transport, word) in [
        (Some(Binary), None, "thrift.protocol is \"binary\""),
        (Some(Compact), None, "thrift.protocol is \"compact\""),
        (None, Some(Framed), "thrift.transport is \"framed\""),
        (None, Some(Unframed), "thrift.transport is \"unframed\""),
    ] {
        let mut config = Config::default();
        config.thrift.protocol = protocol.unwrap_or(auto.protocol);
        config.thrift.transport = transport.unwrap_or(auto.transport);
        for (message, is_compact) in [(&binary, false), (&compact, true)] {
            for (bytes, is_framed) in [(message.clone(), false), (framed(message), true)] {
                let is_allowed = protocol.is_none_or(|protocol| (protocol == Compact) == is_compact)
                    && transport.is_none_or(|transport| (transport == Framed) == is_framed);
                let mut messages = messages_of(&config, &bytes);
                if is_allowed {
                    messages.space().extend_from_slice(&bytes);
                    assert!(messages.next_message().unwrap().is_some(), "{word}");
                    continue;
                }
                // All but the end of the struct is the header, and one byte less is not.
                let header = bytes.len() - 1;
                messages.space().extend_from_slice(&bytes[..header - 1]);
                assert_eq!(
                    messages.next_message(),
                    Ok(None),
                    "{word}: not before the header is here"
                );
                messages.space().extend_from_slice(&bytes[header - 1..header]);
                let error = messages.next_message().unwrap_err().to_string();
                assert!(error.contains(word), "{error}");
            }
        }
    }
}

/// A frame too short for a header is refused when it is whole.
#[test]
fn a_forbidden_frame_without_a_header_is_refused() {
    let mut config = Config::default();
    config.thrift.transport = ThriftTransport::Unframed;
    let error = refused(&config, b"\x00\x00\x00\x04\x80\x01\x00\x01");
    assert!(matches!(error, ProtocolError::Transport { .. }), "{error}");
}

/// Goal: messages of one size come by one read each. Method: as many as several buffers hold; the
/// rest of one would be too small.
#[test]
fn there_is_room_for_a_message_like_the_last_one() {
    let mut message = Vec::new();
    write_call_with(&mut message, &vec![b'x'; 20_000]);
    let mut messages = messages_of(&Config::default(), &message);
    for number in 0..20 {
        let space = messages.space();
        let room = space.capacity() - space.len();
        assert!(
            number == 0 || room > message.len(),
            "{room} bytes for number {number}"
        );
        space.extend_from_slice(&message);
        let (_, got) = messages.next_message().unwrap().unwrap();
        assert_eq!(got, message);
    }
    messages.release();
    let room = messages.space().capacity();
    assert!(room < 2 * READ_BYTES, "{room} bytes after a rest");
}

/// A call with one argument.
fn write_call_with(message: &mut Vec<u8>, argument: &[u8]) {
    let mut writer = BinaryWriter::new(message);
    writer.message_begin("getTableNames", MessageKind::Call, 1);
    writer.struct_begin();
    writer.field_begin(1, basalt_idl::wire::WireType::Binary);
    writer.binary(argument);
    writer.struct_end();
}

/// Goal: the memory of a large message is known before it is allocated, and is no more than the
/// message needs. Method: a message of 1 MiB in small pieces, with a check before each.
#[test]
fn a_large_message_says_what_it_needs_and_takes_no_more() {
    let mut message = Vec::new();
    write_call_with(&mut message, &vec![b'x'; 1 << 20]);
    let message = framed(&message);
    let mut messages = messages_of(&Config::default(), &message);
    for piece in message.chunks(30_000) {
        assert_eq!(messages.next_message(), Ok(None));
        let (before, said) = (messages.buffered_bytes(), messages.space_bytes());
        let space = messages.space();
        assert!(space.capacity() <= said, "{} of {said} bytes", space.capacity());
        let grown = space.capacity() != before;
        assert!(!grown || said >= before + space.capacity() || before < 2 * READ_BYTES);
        let room = space.capacity() - space.len();
        assert!(room > 0);
        // Like a socket: only as much as there is room for.
        let (now, later) = piece.split_at(piece.len().min(room));
        space.extend_from_slice(now);
        if !later.is_empty() {
            messages.space().extend_from_slice(later);
        }
    }
    let bytes = messages.buffered_bytes();
    assert!(bytes <= message.len() + 4, "{bytes} bytes for {}", message.len());
    assert!(messages.next_message().unwrap().is_some());
}

/// Only the head of a refused large message is examined.
#[test]
fn the_head_of_a_message_is_little() {
    let mut messages = messages_of(&Config::default(), &framed(&call("getTableNames")));
    messages.space().extend_from_slice(&(1_u32 << 20).to_be_bytes());
    messages.space().extend_from_slice(&call("getTableNames"));
    messages.space().extend_from_slice(&vec![0; 1 << 19]);
    assert_eq!(messages.next_message(), Ok(None));
    assert!(messages.partial().len() <= HEAD_BYTES);
    messages.discard();
    assert_eq!(messages.buffered_bytes(), 0);
}

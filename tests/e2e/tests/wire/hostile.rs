//! Goal: input that no well-behaved client sends harms no other client. Method: the table of bad
//! messages in every protocol and over every transport, with another connection that must be served
//! after each.

use basalt_idl::thrift1::args::GetTableNames;
use basalt_idl::wire::{BinaryReader, CompactReader, MessageKind, Protocol, Reader};
use basalt_test_support::Server;

use super::bad_messages;
use super::speech::{Answer, Client, PROTOCOLS, Transport};

/// Room for memory that the allocator retains, threads and the largest of the messages.
const MEMORY_GROWTH_MAX: u64 = 64 << 20;

/// Whether an answer says no: an exception of any kind, an HTTP error, or the end.
fn is_refusal(protocol: Protocol, answer: Answer) -> bool {
    fn is_exception<R: Reader>(mut reader: R) -> bool {
        let header = reader.message_begin().expect("answers are well-formed");
        reader.struct_begin().expect("answers are well-formed");
        let field = reader.field_begin().expect("answers are well-formed");
        header.kind == MessageKind::Exception || field.is_some_and(|field| field.id != 0)
    }
    match answer {
        Answer::Message(message) if protocol == Protocol::Compact => {
            is_exception(CompactReader::new(message))
        }
        Answer::Message(message) => is_exception(BinaryReader::new(message)),
        Answer::Status(status, _) => (400..500).contains(&status),
        Answer::End => true,
    }
}

fn others_are_served(transport: Transport) {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut healthy = Client::connect(&server, Protocol::BinaryStrict, Transport::Framed);
    healthy.call(&GetTableNames {}).expect("served");
    let before = server.resident_bytes();
    for protocol in PROTOCOLS {
        for bad in bad_messages::table(protocol) {
            let mut client = Client::connect(&server, protocol, transport);
            client.send(&bad.message);
            if transport != Transport::Http {
                // A message that is too short would be waited for.
                client.finish();
            }
            let refused = is_refusal(protocol, client.answer());
            assert!(
                refused || bad.may_pass,
                "{protocol:?}: {} was not refused",
                bad.what
            );
            let names = healthy.call(&GetTableNames {}).expect("served");
            assert!(names.is_empty(), "{protocol:?}: {} made a table", bad.what);
        }
    }
    let grown = server.peak_resident_bytes().saturating_sub(before);
    assert!(grown <= MEMORY_GROWTH_MAX, "memory grew by {grown} bytes");
    server.stop();
}

#[test]
fn bad_messages_in_frames_harm_nobody() {
    others_are_served(Transport::Framed);
}

#[test]
fn bad_messages_without_frames_harm_nobody() {
    others_are_served(Transport::Unframed);
}

#[test]
fn bad_messages_over_http_harm_nobody() {
    others_are_served(Transport::Http);
}

/// Frames that lie about their length: the rest is waited for, not guessed, and another message in the wrong
/// place is no message.
#[test]
fn frames_that_lie_end_their_connection() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["server.message_timeout_ms=500"]);
    let before = server.resident_bytes();
    let mut healthy = Client::connect(&server, Protocol::Compact, Transport::Unframed);
    for protocol in PROTOCOLS {
        let message = bad_messages::written(protocol, 3, &GetTableNames {});
        let claims = [
            0_u32,
            1,
            7,
            message.len() as u32 - 1,
            message.len() as u32 + 1,
            1 << 20,
            64 << 20,
            u32::MAX,
        ];
        let mut clients: Vec<Client> = claims
            .iter()
            .map(|claim| {
                let mut client = Client::connect(&server, protocol, Transport::Framed);
                client.send_raw(&[&claim.to_be_bytes()[..], &message].concat());
                client
            })
            .collect();
        for client in &mut clients {
            while client.answer() != Answer::End {}
        }
        healthy.call(&GetTableNames {}).expect("served");
    }
    let grown = server.peak_resident_bytes().saturating_sub(before);
    assert!(grown <= 16 << 20, "claims of 64 MiB took {grown} bytes");
    server.stop();
}

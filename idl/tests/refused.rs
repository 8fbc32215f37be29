//! Goal: a refused message costs at most twice the received bytes and 64 KiB of memory, and little
//! stack. Method: the table of bad messages, through detection, scanner, dispatch, check and
//! decoding as the server does it, on a small stack, with an allocator that counts.

mod bad_messages;
mod counting;

use basalt_idl::call::MethodDescriptor;
use basalt_idl::dispatch::{Service, which_service};
use basalt_idl::wire::{
    BinaryReader, CompactReader, MessageKind, MessageScanner, Protocol, Reader, Scan, WireError,
};
use basalt_idl::{admin, schema, thrift1, thrift2};
use bytes::Bytes;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const PROTOCOLS: [Protocol; 3] = [Protocol::BinaryStrict, Protocol::BinaryOld, Protocol::Compact];

/// The method that the server would call; Thrift 2's where both are possible.
fn method_of<R: Reader + Clone>(name: &str, arguments: &R) -> Option<&'static MethodDescriptor> {
    let service = match which_service(name, arguments).ok()? {
        Service::Thrift1 => thrift1::SERVICE,
        Service::Thrift2 | Service::Either => thrift2::SERVICE,
        Service::Admin => admin::SERVICE,
        Service::Unknown => return None,
    };
    service.methods.iter().copied().find(|method| method.name == name)
}

/// Whether a message is refused before it reaches a handler.
fn is_refused<R: Reader + Clone>(mut reader: R, protocol: Protocol, message: &Bytes) -> bool {
    let Ok(header) = reader.message_begin() else {
        return true;
    };
    if header.kind != MessageKind::Call {
        return true;
    }
    let Some(method) = method_of(header.name(), &reader) else {
        return true;
    };
    let arguments = message.slice(reader.position()..);
    schema::check(&mut reader, method.args).is_err() || (method.args.recode)(protocol, arguments).is_err()
}

fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn refusals_cost_little() {
    for protocol in PROTOCOLS {
        let table = bad_messages::table(protocol);
        assert!(table.len() >= 400, "{protocol:?}: only {} messages", table.len());
        on_small_stack(move || {
            for bad in table {
                let message = Bytes::from(bad.message);
                // The message itself is once the received bytes.
                let limit = message.len() + (64 << 10);
                let (refused, peak) = counting::peak_of(|| match protocol {
                    Protocol::Compact => is_refused(CompactReader::new(message.clone()), protocol, &message),
                    _ => is_refused(BinaryReader::new(message.clone()), protocol, &message),
                });
                assert!(
                    refused || bad.may_pass,
                    "{protocol:?}: {} was not refused",
                    bad.what
                );
                assert!(
                    peak <= limit,
                    "{protocol:?}: {} took {peak} bytes, {limit} allowed",
                    bad.what
                );
                let (_, peak) = counting::peak_of(|| scan(protocol, &message));
                assert!(
                    peak <= 64 << 10,
                    "{protocol:?}: {} took {peak} bytes in the scanner",
                    bad.what
                );
            }
        });
    }
}

/// As the bytes of an unframed message arrive.
fn scan(protocol: Protocol, message: &Bytes) -> Result<Scan, WireError> {
    let mut scanner = MessageScanner::new(protocol, 64 << 20);
    for end in (0..message.len()).step_by(4096) {
        if let done @ (Ok(Scan::Complete { .. }) | Err(_)) = scanner.feed(&message[..end]) {
            return done;
        }
    }
    scanner.feed(message)
}

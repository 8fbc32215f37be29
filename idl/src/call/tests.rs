//! Goal: clients decode the server's replies, and reject replies to another call. Method: write
//! replies with the server's functions and read them with the client's.

use bytes::Bytes;

use super::*;
use crate::thrift2::{self, THBaseException, TIOError, TResult};
use crate::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter};

type Reply<C> = Result<Result<<C as Call>::Success, CallError<<C as Call>::Exception>>, WireError>;

/// The client's result from the reply that the body writes, in both protocols, to call 7.
macro_rules! reply {
    ($call:ty, |$writer:ident| $body:expr) => {{
        let (mut binary, mut compact) = (Vec::new(), Vec::new());
        {
            let $writer = &mut BinaryWriter::new(&mut binary);
            $body;
        }
        {
            let $writer = &mut CompactWriter::new(&mut compact);
            $body;
        }
        let from_binary: Reply<$call> =
            read_reply::<$call, _>(&mut BinaryReader::new(Bytes::from(binary)), 7);
        let from_compact: Reply<$call> =
            read_reply::<$call, _>(&mut CompactReader::new(Bytes::from(compact)), 7);
        assert_eq!(from_binary, from_compact);
        from_binary
    }};
}

fn failed<C: Call>(reply: Reply<C>) -> (TApplicationExceptionType, String)
where
    C::Success: std::fmt::Debug,
{
    match reply {
        Ok(Err(CallError::Application(failure))) => (failure.kind.unwrap(), failure.message.unwrap()),
        other => panic!("expected a failure outside the interface, got {other:?}"),
    }
}

use thrift2::args::{Get, GetClusterId, OpenScanner, Put};

#[test]
fn a_result_arrives() {
    let result = TResult {
        row: Some(Bytes::from("r")),
        ..Default::default()
    };
    let typed = reply!(Get, |writer| write_reply::<Get, _>(
        writer,
        7,
        &Ok(result.clone())
    ));
    assert_eq!(typed, Ok(Ok(result.clone())));
    let streamed = reply!(Get, |writer| write_reply_with(writer, "get", 7, |writer| {
        writer.field_begin(0, WireType::Struct);
        writer.struct_begin();
        writer.binary_field(1, b"r");
        writer.field_begin(2, WireType::List);
        writer.list_begin(WireType::Struct, 0);
        writer.struct_end();
    }));
    assert_eq!(streamed, Ok(Ok(result)));
    let number = reply!(OpenScanner, |writer| write_reply::<OpenScanner, _>(
        writer,
        7,
        &Ok(-5)
    ));
    assert_eq!(number, Ok(Ok(-5)));
}

#[test]
fn void_is_an_empty_result() {
    assert_eq!(
        reply!(Put, |writer| write_reply_with(writer, "put", 7, |_| {})),
        Ok(Ok(()))
    );
    assert_eq!(
        reply!(Put, |writer| write_reply::<Put, _>(writer, 7, &Ok(()))),
        Ok(Ok(()))
    );
}

#[test]
fn a_declared_exception_arrives() {
    let thrown = THBaseException::from(TIOError {
        message: Some("no such table".into()),
        can_retry: Some(false),
    });
    let reply = reply!(Get, |writer| write_exception_reply(writer, "get", 7, &thrown));
    assert_eq!(reply, Ok(Err(CallError::Declared(thrown.clone()))));
    assert_eq!(thrown.to_string(), "TIOError: no such table");
    // A method that does not declare it has no result then.
    let reply = reply!(GetClusterId, |writer| write_exception_reply(
        writer,
        "getClusterId",
        7,
        &thrown
    ));
    assert_eq!(
        reply,
        Err(WireError::MissingResult {
            method: "getClusterId"
        })
    );
}

#[test]
fn a_failure_outside_the_interface_arrives() {
    let failure = TApplicationException::unknown_method("get");
    let reply = reply!(Get, |writer| write_application_exception(
        writer, "get", 7, &failure
    ));
    let text = "Invalid method name: 'get'".to_owned();
    assert_eq!(
        failed::<Get>(reply),
        (TApplicationExceptionType::UNKNOWN_METHOD, text)
    );
}

#[test]
fn replies_to_something_else_are_seen() {
    let other_method = failed::<Put>(reply!(Put, |writer| write_reply_with(writer, "get", 7, |_| {})));
    assert_eq!(other_method.0, TApplicationExceptionType::WRONG_METHOD_NAME);
    let other_call = failed::<Put>(reply!(Put, |writer| write_reply_with(writer, "put", 8, |_| {})));
    let text = "call 7 of put was answered with a reply to call 8".to_owned();
    assert_eq!(other_call, (TApplicationExceptionType::BAD_SEQUENCE_ID, text));
    let no_reply = failed::<Put>(reply!(Put, |writer| write_call(writer, 7, &Put::default())));
    assert_eq!(no_reply.0, TApplicationExceptionType::INVALID_MESSAGE_TYPE);
    let nothing = reply!(Get, |writer| write_reply_with(writer, "get", 7, |_| {}));
    assert_eq!(nothing, Err(WireError::MissingResult { method: "get" }));
}

#[test]
fn undecodable_bytes_have_a_code_and_a_text_for_the_caller() {
    let told = |error: &WireError| TApplicationException::from(error).kind.unwrap();
    assert_eq!(
        told(&WireError::UnknownKind { code: 9 }),
        TApplicationExceptionType::INVALID_MESSAGE_TYPE
    );
    assert_eq!(
        told(&WireError::MissingResult { method: "get" }),
        TApplicationExceptionType::MISSING_RESULT
    );
    let error = WireError::TooDeep { offset: 70 };
    assert_eq!(told(&error), TApplicationExceptionType::PROTOCOL_ERROR);
    let text = TApplicationException::from(&error).message.unwrap();
    assert_eq!(text, "nesting at byte 70 is deeper than the limit of 64");
}

/// The name in a call may have any length; that in its error reply has not.
#[test]
fn error_replies_repeat_no_long_name() {
    let name = "m".repeat(1 << 20);
    let exception = TApplicationException::unknown_method(&name);
    let mut out = Vec::new();
    write_application_exception(&mut BinaryWriter::new(&mut out), &name, 1, &exception);
    assert!(out.len() < 512, "{}", out.len());
    assert_eq!(brief("get"), "get");
}

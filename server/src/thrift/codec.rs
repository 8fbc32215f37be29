//! The two protocols as types, and the answer to one call.

use basalt_engine::cell::{BATCH_FREE_BYTES, CellBatch};
use basalt_idl::admin::BasaltException;
use basalt_idl::call::MethodDescriptor;
use basalt_idl::call::{ServiceException, encode_result};
use basalt_idl::thrift1::HbaseException;
use basalt_idl::thrift2::THBaseException;
use basalt_idl::wire::{
    BinaryReader, BinaryWriter, CompactReader, CompactWriter, MessageKind, Reader, WireType, Writer,
};
use basalt_idl::{Call, TApplicationException, TApplicationExceptionType, call};
use bytes::Bytes;

use super::exceptions::FromFailure;
use super::to_thrift;
use crate::observe::metrics::Api;
use crate::service::Caller;
use crate::service::Failure;

/// A protocol: how to read a message and write an answer.
pub(crate) trait Codec: Send + Sync + 'static {
    /// Reads a message.
    type Reader: Reader + Clone + Send;
    /// Writes an answer.
    type Writer<'a>: Writer;

    /// A reader at the start of a message.
    fn reader(message: Bytes) -> Self::Reader;
    /// A writer that appends to `out`.
    fn writer(out: &mut Vec<u8>) -> Self::Writer<'_>;
}

/// TBinaryProtocol. Old, unversioned calls are read; answers are always strict, as the Java server's are.
#[derive(Debug)]
pub(crate) struct Binary;

/// TCompactProtocol.
#[derive(Debug)]
pub(crate) struct Compact;

impl Codec for Binary {
    type Reader = BinaryReader;
    type Writer<'a> = BinaryWriter<'a>;

    fn reader(message: Bytes) -> Self::Reader {
        BinaryReader::new(message)
    }

    fn writer(out: &mut Vec<u8>) -> Self::Writer<'_> {
        BinaryWriter::new(out)
    }
}

impl Codec for Compact {
    type Reader = CompactReader;
    type Writer<'a> = CompactWriter<'a>;

    fn reader(message: Bytes) -> Self::Reader {
        CompactReader::new(message)
    }

    fn writer(out: &mut Vec<u8>) -> Self::Writer<'_> {
        CompactWriter::new(out)
    }
}

/// Where the answer to one call goes. Exactly one of its methods is called, once.
#[derive(Debug)]
pub(crate) struct Reply<'a, P> {
    out: &'a mut Vec<u8>,
    seqid: i32,
    /// The exception's class for the metrics, once the call has failed.
    failed: Option<&'static str>,
    codec: std::marker::PhantomData<P>,
}

impl<'a, P: Codec> Reply<'a, P> {
    pub(crate) fn new(out: &'a mut Vec<u8>, seqid: i32) -> Self {
        Self {
            out,
            seqid,
            failed: None,
            codec: std::marker::PhantomData,
        }
    }

    /// Why the call failed, as a metrics label.
    pub(crate) fn failed(&self) -> Option<&'static str> {
        self.failed
    }

    /// The result as the interface's own type, or the failure.
    pub(crate) fn result<C>(&mut self, result: Result<C::Success, Failure>)
    where
        C: Call,
        C::Exception: FromFailure,
    {
        match result {
            Ok(success) => {
                let mut writer = P::writer(self.out);
                writer.message_begin(C::METHOD.name, MessageKind::Reply, self.seqid);
                encode_result::<C, _>(&mut writer, &Ok(success));
            }
            Err(failure) => self.failure::<C>(&failure),
        }
    }

    /// A result that `write` encodes straight into the answer, or the failure. The result's batch
    /// goes back to the caller.
    /// REQUIRES: the output of `write` has the method's result type, whose wire type is
    /// `wire_type`.
    pub(crate) fn encoded<C, T>(
        &mut self,
        caller: &mut Caller,
        result: Result<T, Failure>,
        wire_type: WireType,
        write: impl FnOnce(&mut P::Writer<'_>, &T),
    ) where
        C: Call,
        C::Exception: FromFailure,
        T: AsMut<CellBatch> + Into<CellBatch>,
    {
        match result {
            Ok(mut value) => {
                let batch = value.as_mut();
                let bytes = to_thrift::reply_bytes(batch);
                if bytes > BATCH_FREE_BYTES {
                    caller.reply().take_over(batch.give(bytes) as u64);
                    // Exact: a large reply must not grow by doubling, beyond its reservation.
                    self.out.reserve_exact(bytes);
                }
                let mut writer = P::writer(self.out);
                call::write_reply_with(&mut writer, C::METHOD.name, self.seqid, wire_type, |writer| {
                    write(writer, &value);
                });
                caller.put_batch(value.into());
            }
            Err(failure) => self.failure::<C>(&failure),
        }
    }

    fn failure<C>(&mut self, failure: &Failure)
    where
        C: Call,
        C::Exception: FromFailure,
    {
        self.failed = Some(failure.label());
        let declared = |id: i16| C::METHOD.throws.iter().any(|throws| throws.id == id);
        let mut writer = P::writer(self.out);
        match C::Exception::from_failure(failure, declared) {
            exception if declared(exception.id()) => {
                call::write_exception_reply(&mut writer, C::METHOD.name, self.seqid, &exception);
            }
            _ => {
                let exception =
                    TApplicationException::new(TApplicationExceptionType::INTERNAL_ERROR, failure.message());
                call::write_application_exception(&mut writer, C::METHOD.name, self.seqid, &exception);
            }
        }
    }

    /// Answers a call that was refused before its arguments were decoded, with the I/O exception of
    /// its interface where the method declares it.
    pub(crate) fn refused(&mut self, api: Api, method: &'static MethodDescriptor, failure: &Failure) {
        self.failed = Some(failure.label());
        let declared = |id: i16| method.throws.iter().any(|throws| throws.id == id);
        let mut writer = P::writer(self.out);
        match api {
            Api::Thrift1 => {
                let exception = HbaseException::from_failure(failure, declared);
                if declared(exception.id()) {
                    return call::write_exception_reply(&mut writer, method.name, self.seqid, &exception);
                }
            }
            Api::Thrift2 => {
                let exception = THBaseException::from_failure(failure, declared);
                if declared(exception.id()) {
                    return call::write_exception_reply(&mut writer, method.name, self.seqid, &exception);
                }
            }
            Api::Native => unreachable!("a native reply is no Thrift reply"),
            Api::Admin => {
                let exception = BasaltException::from_failure(failure, declared);
                if declared(exception.id()) {
                    return call::write_exception_reply(&mut writer, method.name, self.seqid, &exception);
                }
            }
        }
        let exception =
            TApplicationException::new(TApplicationExceptionType::INTERNAL_ERROR, failure.message());
        call::write_application_exception(&mut writer, method.name, self.seqid, &exception);
    }

    /// A failure outside the interface.
    pub(crate) fn application(&mut self, method: &str, exception: &TApplicationException) {
        self.failed = Some("TApplicationException");
        call::write_application_exception(&mut P::writer(self.out), method, self.seqid, exception);
    }
}

//! The two protocols as types, and the answer to one call.

use basalt_engine::cell::BATCH_FREE_BYTES;
use basalt_idl::admin::BasaltException;
use basalt_idl::call::{MethodDescriptor, ServiceException};
use basalt_idl::serve::{self, Answer};
use basalt_idl::thrift1::HbaseException;
use basalt_idl::thrift2::THBaseException;
use basalt_idl::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter, Reader, Writer};
use basalt_idl::{Call, TApplicationException, TApplicationExceptionType, call};
use bytes::Bytes;

use super::exceptions::FromFailure;
use super::handlers::{Called, Context};
use super::to_thrift;
use crate::service::Failure;

/// Largest answer whose memory need not be reserved: a region has three rows in its name and
/// boundaries.
const UNRESERVED_BYTES: u64 = 128 << 10;

/// A protocol: how to read a message and write an answer.
pub(crate) trait Codec: Send + Sync + 'static {
    type Reader: Reader + Clone + Send;
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

    /// A call that was refused before its arguments were decoded.
    pub(crate) fn refused(&mut self, called: Called, failure: &Failure) {
        match called {
            Called::Thrift1(method) => self.failure::<HbaseException>(method.descriptor(), failure),
            Called::Thrift2(method) => self.failure::<THBaseException>(method.descriptor(), failure),
            Called::Admin(method) => self.failure::<BasaltException>(method.descriptor(), failure),
        }
    }

    /// A failure, as the exception of the interface where the method declares it.
    fn failure<E: ServiceException + FromFailure>(&mut self, method: &MethodDescriptor, failure: &Failure) {
        let declared = |id: i16| method.throws.iter().any(|throws| throws.id == id);
        let exception = E::from_failure(failure, declared);
        self.failed = Some(failure.label());
        let mut writer = P::writer(self.out);
        if declared(exception.id()) {
            call::write_exception_reply(&mut writer, method.name, self.seqid, &exception);
        } else {
            let kind = TApplicationExceptionType::INTERNAL_ERROR;
            let exception = TApplicationException::new(kind, failure.message());
            call::write_application_exception(&mut writer, method.name, self.seqid, &exception);
        }
    }

    pub(crate) fn application(&mut self, method: &str, exception: &TApplicationException) {
        self.failed = Some("TApplicationException");
        call::write_application_exception(&mut P::writer(self.out), method, self.seqid, exception);
    }
}

impl<'c, P: Codec, E: ServiceException + FromFailure> serve::Reply<E, Context<'c>> for Reply<'_, P> {
    fn outcome<M: Call<Exception = E>>(
        &mut self,
        context: &mut Context<'c>,
        outcome: Result<impl Answer<M::Success, Context<'c>>, Failure>,
    ) {
        let mut answer = match outcome {
            Ok(answer) => answer,
            Err(failure) => return self.failure::<E>(&M::METHOD, &failure),
        };
        if let Some(batch) = answer.buffer() {
            let bytes = to_thrift::reply_bytes(batch);
            if bytes > BATCH_FREE_BYTES {
                context.call.reply().take_over(batch.give(bytes) as u64);
                // Exact: a large reply must not grow by doubling, beyond its reservation.
                self.out.reserve_exact(bytes);
            }
        }
        let before = self.out.len();
        {
            let mut writer = P::writer(self.out);
            call::write_reply_with(&mut writer, M::METHOD.name, self.seqid, |writer| {
                answer.encode_field(0, writer);
            });
        }
        if cfg!(debug_assertions) {
            let reserved = context.call.reply().bytes() + context.call.arguments_bytes as u64;
            assert!(
                (self.out.len() - before) as u64 <= reserved + UNRESERVED_BYTES,
                "the memory of an answer of {} is not reserved: thrift::listed",
                M::METHOD.name
            );
        }
        if let Some(batch) = answer.buffer() {
            context.call.put_batch(std::mem::take(batch));
        }
    }
}

//! Thrift 1, Thrift 2 and BasaltAdmin.
//!
//! A message comes in as bytes, its reply leaves as bytes (`connection` and `http` call
//! `Server::call`):
//!
//! 1. the header, and which of the three services the call is for (`basalt_idl::dispatch`);
//! 2. the arguments as the interface's types: `from_thrift` converts them;
//! 3. one handler (`handlers`), in `hbase1`, `hbase2` or `basalt_admin`, which calls `service`;
//! 4. the reply: `to_thrift` encodes results, `exceptions` renders failures.
//!
//! `messages` cuts received bytes into messages and is public for fuzzers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use basalt_engine::cell::CellBatch;
use basalt_idl::call::MethodDescriptor;
use basalt_idl::dispatch::{Service, service_at, which_service};
use basalt_idl::serve::Reply as _;
use basalt_idl::wire::{MessageKind, Protocol, Reader, WireError};
use basalt_idl::{TApplicationException, TApplicationExceptionType, admin, thrift1, thrift2};
use bytes::Bytes;

use crate::limits::admission::{MemoryPermit, Purpose};
use crate::observe::metrics::Api;
use crate::server::Server;
use crate::service::faults::Consequence;
use crate::service::pipeline::{self, End};
use crate::service::{Call, Kept, Sender};

mod access;
mod basalt_admin;
mod codec;
pub(crate) mod connection;
mod exceptions;
mod faults;
mod from_thrift;
mod handlers;
mod hbase1;
mod hbase2;
pub(crate) mod http;
mod listed;
pub mod messages;
pub(crate) mod sasl;
mod schema;
mod slow_log;
mod to_thrift;

use codec::{Binary, Codec, Compact, Reply};
use from_thrift::Puts;
use handlers::{Called, Context};

/// A connection's sender, the service that it speaks, and its state between calls.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) sender: Sender,
    speaks: Speaks,
    kept: Kept,
    /// The last call has met a fault that closes the connection without an answer.
    pub(crate) is_cut: bool,
}

/// The services that a caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// Both: each call decides. The service of the last call that belongs to one decides the
    /// meaning of `getThriftServerType`.
    Both(Option<Service>),
    /// This one, since the call came to a place of its own.
    Only(Service),
}

impl Client {
    /// A client that may call both of HBase's services.
    pub(crate) fn of_both(sender: Sender) -> Self {
        Self::new(sender, Speaks::Both(None))
    }

    /// A client that came to a place of `service`.
    pub(crate) fn of(service: Service, sender: Sender) -> Self {
        Self::new(sender, Speaks::Only(service))
    }

    fn new(sender: Sender, speaks: Speaks) -> Self {
        Self {
            sender,
            speaks,
            kept: Kept::default(),
            is_cut: false,
        }
    }

    /// The reservation for the reply of the last call, if the reply is large.
    pub(crate) fn take_reply(&mut self) -> Option<MemoryPermit> {
        self.kept.reply.take()
    }

    /// Memory that is kept for the next call.
    fn kept_bytes(&self) -> usize {
        self.kept.batch.as_ref().map_or(0, CellBatch::memory_bytes)
    }

    /// Releases the memory that is kept for the next call.
    fn release(&mut self) {
        self.kept.batch = None;
    }
}

/// Arguments up to this size are decoded without a check beforehand, as long as they take at most
/// [`UNRESERVED_BYTES`]. Decoding itself reports errors in them.
const UNCHECKED_BYTES: usize = 32 << 10;
/// Most memory of lists and maps in unchecked arguments. Arguments that need more are checked, and
/// their memory is reserved, before they are decoded: an element of one byte on the wire may take
/// 320 bytes in memory.
const UNRESERVED_BYTES: usize = 64 << 10;

/// The methods of the three services, in the order in which metrics number them.
pub(crate) fn methods() -> impl Iterator<Item = (Api, &'static str)> {
    let of =
        |api, names: &'static [&'static MethodDescriptor]| names.iter().map(move |method| (api, method.name));
    of(Api::Thrift1, thrift1::SERVICE.methods)
        .chain(of(Api::Thrift2, thrift2::SERVICE.methods))
        .chain(of(Api::Admin, admin::SERVICE.methods))
}

impl Server {
    /// Answers one message. If it cannot be answered (a reply instead of a call), `out` gets a
    /// refusal.
    pub(crate) async fn call(
        self: &Arc<Self>,
        client: &mut Client,
        protocol: Protocol,
        message: Bytes,
        out: &mut Vec<u8>,
    ) {
        if protocol == Protocol::Compact {
            // Boxed: its reader is the larger one, and most clients speak the binary protocol.
            Box::pin(self.call_as::<Compact>(client, message, out)).await;
        } else {
            pin!(self.call_as::<Binary>(client, message, out)).await;
        }
    }

    async fn call_as<P: Codec>(self: &Arc<Self>, client: &mut Client, message: Bytes, out: &mut Vec<u8>) {
        let began = Instant::now();
        let (length_before, whole) = (out.len(), message.clone());
        let Client {
            sender,
            speaks,
            kept,
            is_cut,
        } = client;
        let mut reader = P::reader(message);
        let header = match reader.message_begin() {
            Ok(header) => header,
            Err(error) => {
                return Reply::<P>::new(out, 0).application("", &TApplicationException::from(&error));
            }
        };
        let mut reply = Reply::<P>::new(out, header.seqid);
        if !matches!(header.kind, MessageKind::Call | MessageKind::Oneway) {
            let text = format!("a message of kind {:?} is not a call", header.kind);
            let exception = TApplicationException::new(TApplicationExceptionType::INVALID_MESSAGE_TYPE, text);
            return reply.application(header.name(), &exception);
        }
        let called = match self.service_of(speaks, header.name(), &reader) {
            Ok(service) => Called::of(service, header.name()),
            Err(error) => return reply.application(header.name(), &TApplicationException::from(&error)),
        };
        let Some(called) = called else {
            let exception = TApplicationException::unknown_method(header.name());
            return reply.application(header.name(), &exception);
        };
        let fault = match self.armed_faults() {
            None => None,
            // Boxed: only a server that a test owns has faults.
            Some(faults) => {
                Box::pin(faults::meet(self, faults, &sender.caller, called, reader.clone())).await
            }
        };
        if matches!(fault, Some(Consequence::DropsConnection)) {
            *is_cut = true;
            return;
        }
        let mut context = Context {
            server: self,
            call: Call::new(sender, kept, began),
        };
        let is_small = reader.remaining() <= UNCHECKED_BYTES;
        let mut outcome = if let Some(Consequence::Fails(failure)) = &fault {
            reply.refused(called, failure);
            Ok(())
        } else if is_small {
            reader.limit_memory(UNRESERVED_BYTES);
            pin!(called.answer(&mut context, reader, &mut reply)).await
        } else {
            Err(WireError::TooMuchMemory {
                offset: reader.position(),
                needed: UNRESERVED_BYTES,
                left: 0,
            })
        };
        if matches!(outcome, Err(WireError::TooMuchMemory { .. })) {
            // Boxed: few calls have arguments this large.
            outcome = Box::pin(self.dispatch_large(&mut context, called, whole, &mut reply)).await;
        }
        if let Err(error) = outcome {
            reply.application(header.name(), &TApplicationException::from(&error));
        }
        let failed = reply.failed();
        if matches!(fault, Some(Consequence::DropsReply)) {
            *is_cut = true;
            return out.truncate(length_before);
        }
        let end = End {
            failed,
            message: "",
            answer_bytes: out.len() - length_before,
        };
        pipeline::settle(self, &context.call, called.method(), end);
    }

    /// The service of the call. Never [`Service::Either`].
    fn service_of<R: Reader + Clone>(
        &self,
        speaks: &mut Speaks,
        method: &str,
        arguments: &R,
    ) -> Result<Service, WireError> {
        match speaks {
            Speaks::Only(service) => Ok(service_at(*service, method)),
            Speaks::Both(last) => Ok(match which_service(method, arguments)? {
                Service::Either => last.unwrap_or(self.default_service()),
                service @ (Service::Thrift1 | Service::Thrift2) => *last.insert(service),
                other => other,
            }),
        }
    }

    /// Runs a method whose arguments may take much memory. The encoded arguments are checked before
    /// they are decoded. Arguments that the interface does not allow are refused with a message
    /// that names the field, and the connection stays open. For the others, memory is reserved:
    /// [`ARGUMENT_COPIES`] times their decoded size, and the size of the message for the log record
    /// of a write.
    async fn dispatch_large<P: Codec>(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        called: Called,
        message: Bytes,
        reply: &mut Reply<'_, P>,
    ) -> Result<(), WireError> {
        let message_bytes = message.len();
        let mut reader = P::reader(message);
        reader.message_begin()?;
        let mut walker = reader.clone();
        let before = walker.memory_left();
        basalt_idl::schema::check(&mut walker, called.descriptor().args)?;
        let decoded = before - walker.memory_left();
        drop(walker);
        let arguments_bytes = message_bytes + ARGUMENT_COPIES * decoded;
        context.call.arguments_bytes = arguments_bytes;
        let mut permit = MemoryPermit::empty(self.admission().memory());
        let reserved = permit.add(arguments_bytes as u64, Purpose::Arrive).await;
        if let Err(busy) = reserved {
            self.admission().count(busy);
            reply.refused(called, &busy.into());
            return Ok(());
        }
        called.answer(context, reader, reply).await
    }

    fn default_service(&self) -> Service {
        if self.config().thrift.default_api == 1 {
            Service::Thrift1
        } else {
            Service::Thrift2
        }
    }

    /// Answers the received part of a message that will not be read to its end.
    pub(crate) fn refuse(
        protocol: Protocol,
        partial: Bytes,
        reason: &TApplicationException,
        out: &mut Vec<u8>,
    ) {
        fn refuse_as<P: Codec>(partial: Bytes, reason: &TApplicationException, out: &mut Vec<u8>) {
            if let Ok(header) = P::reader(partial).message_begin() {
                Reply::<P>::new(out, header.seqid).application(header.name(), reason);
            }
        }
        if protocol == Protocol::Compact {
            refuse_as::<Compact>(partial, reason, out);
        } else {
            refuse_as::<Binary>(partial, reason, out);
        }
    }
}

/// Copies of decoded arguments: as the interface's types and as the engine's.
const ARGUMENT_COPIES: usize = 2;

impl Called {
    /// Runs the method. Fails, before anything is done, when the arguments do not match the
    /// interface.
    async fn answer<P: Codec>(
        self,
        context: &mut Context<'_>,
        mut arguments: P::Reader,
        reply: &mut Reply<'_, P>,
    ) -> Result<(), WireError> {
        match self {
            Self::Thrift1(method) => pin!(method.answer(context, &mut arguments, reply)).await,
            Self::Thrift2(method) => {
                // Bulk writes in the usual form have a decoder of their own.
                if method == thrift2::Method::PutMultiple
                    && let Some(puts) = Puts::decode(&mut arguments.clone(), &arguments.message())
                {
                    let outcome = pin!(context.put_usual(puts)).await;
                    reply.outcome::<thrift2::args::PutMultiple>(context, outcome);
                    return Ok(());
                }
                pin!(method.answer(context, &mut arguments, reply)).await
            }
            Self::Admin(method) => {
                if let Err(failure) = listed::reserve(context.server, self, &mut context.call).await {
                    reply.refused(self, &failure);
                    return Ok(());
                }
                method.answer(context, &mut arguments, reply).await
            }
        }
    }
}

#[cfg(test)]
mod refusals;
#[cfg(test)]
mod tests;

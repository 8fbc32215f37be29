//! The server's side of the Thrift services: handlers, and the dispatch of calls to them.
//!
//! `thrift_service!` declares for each service, from the attributes of its methods:
//!
//! | item | purpose |
//! | --- | --- |
//! | `ReadHandlers`, `WriteHandlers` | an async handler for each method of the class; `Self` is a [`Context`] |
//! | `AdminHandlers` | a blocking handler for each method of class `admin`; `Self` is the context's [`Context::Admin`] |
//! | `Method::answer` | decodes the arguments, runs the handler, hands its outcome to a [`Reply`] |
//!
//! A method without a handler does not compile. A handler has its method's name in the IDL.
//!
//! A handler returns an [`Answer`]: a value of the interface's type, or a type of the server that encodes
//! as one, so that results need not be copied into the interface's types. The reply decides how a failure
//! is written.

use crate::call::{Call, ServiceException};
use crate::schema::Encode;
use crate::wire::Writer;

/// The call that is being answered, as the handlers of all services see it.
pub trait Context: Send + Sized {
    /// Type whose methods are the handlers of class `admin`.
    type Admin;
    /// Why a handler has no result.
    type Failure: Send + 'static;
    /// Memory that results are collected in, and that a context uses again for the next one.
    type Buffer;

    /// Runs `work` on a thread that may block.
    fn on_pool<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Self::Admin) -> Result<T, Self::Failure> + Send + 'static,
    ) -> impl Future<Output = Result<T, Self::Failure>> + Send;
}

/// The result of a method that returns `T` in the interface.
pub trait Answer<T, C: Context> {
    /// Writes it as a field of type `T`.
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W);

    /// The memory that it is in, if that belongs to the context.
    fn buffer(&mut self) -> Option<&mut C::Buffer> {
        None
    }
}

impl<T: Encode, C: Context> Answer<T, C> for T {
    #[inline]
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        Encode::encode_field(self, id, writer);
    }
}

/// The reply to one call of a service with the exceptions `E`.
pub trait Reply<E: ServiceException, C: Context> {
    /// Writes the outcome of a method's handler.
    fn outcome<M: Call<Exception = E>>(
        &mut self,
        context: &mut C,
        outcome: Result<impl Answer<M::Success, C>, C::Failure>,
    );
}

//! The methods of the three services, and where their handlers are.
//!
//! `basalt_idl` declares the handlers of each service as traits, one for each class of methods, and
//! generates the dispatch. A handler is registered by being in one of these implementations:
//!
//! | class | handlers are methods of | Thrift 1 | Thrift 2 | BasaltAdmin |
//! | --- | --- | --- | --- | --- |
//! | read | [`Context`] | `hbase1::reads` | `hbase2::reads` | |
//! | write | [`Context`] | `hbase1::writes` | `hbase2::writes` | |
//! | admin | [`AdminCall`], on the pool | `hbase1::admin` | `hbase2::admin` | `basalt_admin` |
//!
//! Reads and writes run on the network thread, and go to the pool themselves where they may block.

use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use basalt_idl::call::MethodDescriptor;
use basalt_idl::dispatch::Service;
use basalt_idl::serve;
use basalt_idl::{admin, thrift1, thrift2};

use crate::observe::metrics::Api;
use crate::server::Server;
use crate::service::pipeline;
use crate::service::{AdminCall, Call, Failure};

/// The outcome of a handler.
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The call that is being answered: handlers of reads and writes are its methods.
pub(super) struct Context<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) call: Call<'a>,
}

impl Context<'_> {
    /// Asks about tables, regions or the server: the answer is in memory.
    pub(super) fn ask<T>(&mut self, question: impl FnOnce(&AdminCall) -> Result<T>) -> Result<T> {
        let call = AdminCall::new(self.server, self.call.caller());
        let answer = question(&call);
        call.describe(&mut self.call.description);
        answer
    }
}

impl serve::Context for Context<'_> {
    type Admin = AdminCall;
    type Failure = Failure;
    type Buffer = CellBatch;

    async fn on_pool<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&AdminCall) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let call = AdminCall::new(self.server, self.call.caller());
        let on_pool = call.clone();
        let answer = self.server.on_pool(move |_| work(&on_pool)).await;
        call.describe(&mut self.call.description);
        answer
    }
}

/// A method of one of the services.
#[derive(Clone, Copy, Debug)]
pub(super) enum Called {
    Thrift1(thrift1::Method),
    Thrift2(thrift2::Method),
    Admin(admin::Method),
}

impl Called {
    /// The method of that name; `None` if the service does not have it.
    pub(super) fn of(service: Service, name: &str) -> Option<Self> {
        match service {
            Service::Thrift1 => thrift1::Method::from_name(name).map(Self::Thrift1),
            Service::Thrift2 => thrift2::Method::from_name(name).map(Self::Thrift2),
            Service::Admin => admin::Method::from_name(name).map(Self::Admin),
            Service::Either | Service::Unknown => None,
        }
    }

    /// Service of the method, and its number there.
    pub(super) fn number(self) -> (Api, usize) {
        match self {
            Self::Thrift1(method) => (Api::Thrift1, method as usize),
            Self::Thrift2(method) => (Api::Thrift2, method as usize),
            Self::Admin(method) => (Api::Admin, method as usize),
        }
    }

    /// The method for metrics and logs.
    pub(super) fn method(self) -> pipeline::Method {
        let (api, number) = self.number();
        let MethodDescriptor { service, name, .. } = *self.descriptor();
        pipeline::Method {
            api,
            number,
            service,
            name,
        }
    }

    /// Arguments, result and attributes of the method.
    pub(super) fn descriptor(self) -> &'static MethodDescriptor {
        match self {
            Self::Thrift1(method) => method.descriptor(),
            Self::Thrift2(method) => method.descriptor(),
            Self::Admin(method) => method.descriptor(),
        }
    }
}

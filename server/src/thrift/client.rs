//! A client of the Thrift services: a caller, and which of HBase's services it speaks.

use basalt_idl::dispatch::Service;

use crate::service::Caller;

/// A caller and the service that it speaks.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) caller: Caller,
    pub(super) speaks: Speaks,
}

/// The services that a caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    /// Both: each call decides. The service of the last call that belongs to one decides the
    /// meaning of `getThriftServerType`.
    Both(Option<Service>),
    /// This one, since the call came to a place of its own.
    Only(Service),
}

impl Client {
    /// A client that may call both of HBase's services.
    pub(super) fn of_both(caller: Caller) -> Self {
        Self {
            caller,
            speaks: Speaks::Both(None),
        }
    }

    /// A client that came to a place of `service`.
    pub(crate) fn of(service: Service, caller: Caller) -> Self {
        Self {
            caller,
            speaks: Speaks::Only(service),
        }
    }
}

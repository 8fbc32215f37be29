//! Calls as data: values whose types are known only by their descriptors, their text, their bytes, and
//! connections.
//!
//! Tests that send the same call to two servers, print it, shrink it and keep it in a file need calls that
//! are data and not types. [`value`] has the values, [`text`] prints and reads them, [`wire`] writes and
//! reads them in Thrift's binary protocol, [`connection`] talks to a server. [`native`] describes and makes
//! calls of HBase's native protocol in the same way, [`rest`] those of its REST interface. Nothing here is
//! shared with the crates `basalt-client` and `basalt-rest`, so a fault of theirs cannot hide one of the
//! server.
//!
//! The descriptors are those of `basalt-idl`, so a method or field that it has can be called from here.

pub mod connection;
mod described;
mod fields;
pub mod native;
pub mod rest;
pub mod text;
pub mod value;
pub mod wire;

pub use connection::{Answer, Connection};
pub use value::Value;

use basalt_idl::call::MethodDescriptor;
use basalt_idl::{admin, thrift1, thrift2};

/// One of the services of the shared port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Api {
    /// `Hbase`.
    One,
    /// `THBaseService`.
    Two,
    /// ClientService of the native protocol.
    Native,
    /// HBase's REST interface.
    Rest,
    /// `BasaltAdmin`, which a real HBase does not have.
    Admin,
}

impl Api {
    /// How scripts name it.
    pub fn name(self) -> &'static str {
        match self {
            Api::One => "1",
            Api::Two => "2",
            Api::Native => "n",
            Api::Rest => "r",
            Api::Admin => "admin",
        }
    }

    /// The service of that name.
    pub fn from_name(name: &str) -> Option<Api> {
        [Api::One, Api::Two, Api::Native, Api::Rest, Api::Admin]
            .into_iter()
            .find(|api| api.name() == name)
    }

    /// The method of that name in the IDL.
    pub fn method(self, name: &str) -> Option<&'static MethodDescriptor> {
        let service = match self {
            Api::One => thrift1::SERVICE,
            Api::Two => thrift2::SERVICE,
            Api::Native => native::service::SERVICE,
            Api::Rest => rest::service::SERVICE,
            Api::Admin => admin::SERVICE,
        };
        service.methods.iter().copied().find(|method| method.name == name)
    }
}

//! The types of a build without Kerberos. They have no values, so that code which uses them compiles in
//! every build, and is left out of this one.

use std::convert::Infallible;

use super::{Failure, NOT_BUILT_IN, Peer, Service, Step};
use crate::{Error, Refused};

/// The keys of a service: there are none in this build.
#[derive(Debug)]
pub struct Acceptor(Infallible);

/// A login: there is none in this build.
#[derive(Debug)]
pub struct Exchange(Infallible);

impl Acceptor {
    /// Fails: this build has no Kerberos.
    pub fn open(_: &Service<'_>) -> Result<Self, Error> {
        Err(Error::Invalid(NOT_BUILT_IN.to_owned()))
    }

    /// The principal of the service.
    pub fn principal(&self) -> &str {
        match self.0 {}
    }

    /// Whether HTTP requests may have tickets.
    pub fn negotiates(&self) -> bool {
        match self.0 {}
    }

    /// The user of a principal, by the rules.
    pub fn user_of(&self, _: &str) -> Result<String, Refused> {
        match self.0 {}
    }

    /// Begins a login.
    pub fn exchange(&self) -> Exchange {
        match self.0 {}
    }

    /// Verifies the token of an HTTP request; returns the client and the answer to its token.
    pub fn negotiate(&self, _: &[u8]) -> Result<(Peer, Option<Vec<u8>>), Failure> {
        match self.0 {}
    }
}

impl Exchange {
    /// The client's principal, once that is proved.
    pub fn principal(&self) -> Option<&str> {
        match self.0 {}
    }

    /// Takes a message of the client.
    pub fn step(self, _: &[u8]) -> Result<Step, Failure> {
        match self.0 {}
    }
}

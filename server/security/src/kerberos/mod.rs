//! Kerberos: logins with tickets (GSSAPI for native RPC and Thrift, SPNEGO for HTTP).
//!
//! | module | contents |
//! | --- | --- |
//! | [`rules`] | `auth_to_local`: the user of a principal |
//! | `acceptor` | the keys of the service, and the exchange of RFC 4752 |
//! | `keys` | the keys of a keytab as a credential of the GSS library |
//!
//! 1. [`Acceptor::open`] reads the keytab, once, at the start.
//! 2. [`Acceptor::exchange`] begins a login. [`Exchange::step`] takes a message of the client, and gives
//!    the next one of the server or the [`Peer`].
//! 3. [`Acceptor::negotiate`] takes the only token of an HTTP request.
//! 4. With a protection beyond [`Protection::Authentication`], everything after the login is wrapped
//!    ([`Wrap`]).
//!
//! The steps read the keytab and the replay cache, so they block: not for network threads. Wrapping only
//! computes. Messages have at most [`TOKEN_BYTES_MAX`] bytes, which the callers check on the frame.
//!
//! Without the feature `kerberos` there is no [`Acceptor`]: [`Acceptor::open`] fails and says which build
//! has it. Rules are parsed and checked in every build.

use std::path::Path;
use std::str::FromStr;

use crate::{Error, Refused};

pub mod rules;

#[cfg(feature = "kerberos")]
mod acceptor;
#[cfg(not(feature = "kerberos"))]
#[path = "without.rs"]
mod acceptor;
#[cfg(feature = "kerberos")]
mod keys;

pub use acceptor::{Acceptor, Exchange};
use rules::Rules;

/// Longest message of a client. Tickets of Active Directory list the groups of the user, so they are longer
/// than all messages of other mechanisms.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Plaintext that a wrapped piece has at most.
pub const PIECE_BYTES_MAX: usize = 32 << 10;

/// Whether this build has Kerberos.
pub const IS_BUILT_IN: bool = cfg!(feature = "kerberos");

/// The sentence of a build without Kerberos.
pub const NOT_BUILT_IN: &str = "this program was built without Kerberos, as all static packages are: build one with it \
     (cargo build --release --features kerberos, which needs libkrb5-dev and libclang), or remove the settings of the \
     section kerberos";

/// Protection of the bytes after a login (HBase: `hbase.rpc.protection`; SASL: QOP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// None (`auth`).
    Authentication,
    /// Changed bytes are noticed (`auth-int`).
    Integrity,
    /// Encrypted as well (`auth-conf`).
    Privacy,
}

impl Protection {
    /// The bit of RFC 4752, section 3.3.
    pub fn bit(self) -> u8 {
        match self {
            Self::Authentication => 1,
            Self::Integrity => 2,
            Self::Privacy => 4,
        }
    }

    /// The protection with this bit.
    pub fn of_bit(bit: u8) -> Option<Self> {
        [Self::Authentication, Self::Integrity, Self::Privacy]
            .into_iter()
            .find(|protection| protection.bit() == bit)
    }
}

impl FromStr for Protection {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "authentication" => Ok(Self::Authentication),
            "integrity" => Ok(Self::Integrity),
            "privacy" => Ok(Self::Privacy),
            _ => {
                let shown: String = text.chars().take(32).collect();
                Err(Error::Invalid(format!(
                    "{shown:?} is no protection: there are authentication, integrity and privacy"
                )))
            }
        }
    }
}

/// The service that a server is.
#[derive(Clone, Copy, Debug)]
pub struct Service<'a> {
    /// File with the keys of the principals.
    pub keytab: &'a Path,
    /// `service/host@REALM`, for native RPC and Thrift.
    pub principal: &'a str,
    /// `HTTP/host@REALM`. Empty: that of the principal's host, if the keytab has it.
    pub http_principal: &'a str,
    /// Rules of `auth_to_local`, in the order in which they are tried.
    pub rules: &'a [String],
    /// Protections that clients may choose.
    pub protections: &'a [String],
}

/// A service whose values are understood. The keytab has not been read.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The rules, with the realm of the principal as the default realm.
    pub rules: Rules,
    /// Protections that clients may choose: at least one.
    pub protections: Vec<Protection>,
}

impl Service<'_> {
    /// Parses rules, protections and principals.
    pub fn check(&self) -> Result<Checked, Error> {
        let realm = realm_of_service("kerberos.principal", self.principal)?;
        if !self.http_principal.is_empty() {
            realm_of_service("kerberos.http_principal", self.http_principal)?;
        }
        let protections = self.protections.iter().map(|text| text.parse());
        let protections: Vec<Protection> = protections.collect::<Result<_, _>>()?;
        if protections.is_empty() {
            return Err(Error::Invalid(
                "kerberos.protection is empty: name at least one of authentication, integrity and privacy"
                    .into(),
            ));
        }
        Ok(Checked {
            rules: Rules::parse(realm, self.rules)?,
            protections,
        })
    }
}

/// The realm of `service/host@REALM`.
fn realm_of_service<'a>(setting: &str, principal: &'a str) -> Result<&'a str, Error> {
    let parsed = rules::Principal::parse(principal).filter(|principal| principal.second.is_some());
    parsed.map(|principal| principal.realm).ok_or_else(|| {
        let shown: String = principal.chars().take(256).collect();
        Error::Invalid(format!(
            "{setting} is {shown:?}, and must be the principal of a service, such as hbase/db.example.org@EXAMPLE.ORG"
        ))
    })
}

/// A client that has proved its principal.
#[derive(Debug)]
pub struct Peer {
    /// The principal, whole.
    pub principal: String,
    /// The user for which it acts, if its last message names another one than itself. A principal or a
    /// short name.
    pub acts_for: Option<String>,
    /// How the bytes after the login are protected; `None` if they are as they are.
    pub wrap: Option<Box<dyn Wrap>>,
}

/// Protects the bytes of a connection, piece by piece, in order.
pub trait Wrap: Send + std::fmt::Debug {
    /// Most bytes of one piece that is wrapped.
    fn piece_bytes_max(&self) -> usize;
    /// Protects a piece.
    fn wrap(&mut self, piece: &[u8]) -> Result<Vec<u8>, String>;
    /// The bytes of a protected piece. Fails with a text for logs if it was changed, repeated or left out.
    fn unwrap(&mut self, piece: &[u8]) -> Result<Vec<u8>, String>;
}

/// The next step of a login.
#[derive(Debug)]
pub enum Step {
    /// The client is to answer this message.
    Challenge(Exchange, Vec<u8>),
    /// The login is complete; nothing is sent.
    Complete(Peer),
}

/// A failed login.
#[derive(Debug)]
pub struct Failure {
    /// For the client and the audit log.
    pub refused: Refused,
    /// The GSS library's text, for the log.
    pub text: String,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self {
            refused,
            text: refused.0.as_str().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service<'a>(principal: &'a str, rules: &'a [String], protections: &'a [String]) -> Service<'a> {
        Service {
            keytab: Path::new("/nowhere"),
            principal,
            http_principal: "",
            rules,
            protections,
        }
    }

    #[test]
    fn a_wrong_service_is_named() {
        let (rules, protections) = (["DEFAULT".to_owned()], ["privacy".to_owned()]);
        let checked = service("hbase/db@R", &rules, &protections).check().unwrap();
        assert_eq!(checked.protections, [Protection::Privacy]);
        for principal in ["hbase@R", "hbase/db", "", "a/b/c@R"] {
            let error = service(principal, &rules, &protections)
                .check()
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("{principal:?}")), "{error}");
        }
        let wrong = ["auth-conf".to_owned()];
        let error = service("hbase/db@R", &rules, &wrong)
            .check()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("auth-conf") && error.contains("privacy"),
            "{error}"
        );
        let error = service("hbase/db@R", &rules, &[])
            .check()
            .unwrap_err()
            .to_string();
        assert!(error.contains("kerberos.protection"), "{error}");
        let wrong = ["RULE:x".to_owned()];
        service("hbase/db@R", &wrong, &protections).check().unwrap_err();
    }

    #[test]
    fn bits_are_those_of_the_rfc() {
        for (word, bit) in [("authentication", 1), ("integrity", 2), ("privacy", 4)] {
            let protection: Protection = word.parse().unwrap();
            assert_eq!(
                (protection.bit(), Protection::of_bit(bit)),
                (bit, Some(protection))
            );
        }
        assert_eq!(Protection::of_bit(0), None);
        assert_eq!(Protection::of_bit(3), None);
    }

    /// A build without the feature refuses the settings, and names the build that has it.
    #[cfg(not(feature = "kerberos"))]
    #[test]
    fn a_build_without_kerberos_says_which_has_it() {
        let (rules, protections) = (["DEFAULT".to_owned()], ["privacy".to_owned()]);
        let error = Acceptor::open(&service("hbase/db@R", &rules, &protections)).unwrap_err();
        assert!(error.to_string().contains("--features kerberos"), "{error}");
    }
}

//! Certificates: an own authority, names in verified certificates, TLS settings.
//!
//! | module | contents |
//! | --- | --- |
//! | [`authority`] | makes the CA, server and client certificates, as PEM files |
//! | [`tls`] | settings of TLS from PEM files, reloaded without dropping connections |
//! | this one | user and expiry of a certificate |
//!
//! Keys are ECDSA P-256. Key files have mode 0600.

pub mod authority;
pub mod tls;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::x509::AttributeTypeAndValue;

pub use authority::Authority;
pub use tls::{Certificates, ClientCertificates, Files};

use crate::users::check_name;
use crate::{Reason, Refused};

/// The part of a certificate that is the user's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameFrom {
    /// Common name (CN) of the subject.
    #[default]
    CommonName,
    /// Subject alternative name of type DNS.
    Dns,
    /// Subject alternative name of type e-mail (RFC 822).
    Email,
}

/// The user of a client certificate that TLS has verified. There must be exactly one such name, and
/// it must be a possible name of a user.
pub fn user_of(der: &[u8], from: NameFrom) -> Result<String, Refused> {
    let no_name = Refused(Reason::NoName);
    let certificate = parse(der).ok_or(no_name)?;
    let names = match from {
        NameFrom::CommonName => {
            let names = certificate.subject().iter_common_name();
            let names: Result<Vec<&str>, _> = names.map(AttributeTypeAndValue::as_str).collect();
            names.map_err(|_| no_name)?
        }
        NameFrom::Dns | NameFrom::Email => {
            let extension = certificate.subject_alternative_name().map_err(|_| no_name)?;
            let names = extension
                .iter()
                .flat_map(|extension| &extension.value.general_names);
            names.filter_map(|name| alternative(name, from)).collect()
        }
    };
    match names[..] {
        [name] if check_name("user", name).is_ok() => Ok(name.to_owned()),
        _ => Err(no_name),
    }
}

fn alternative<'a>(name: &GeneralName<'a>, from: NameFrom) -> Option<&'a str> {
    match (name, from) {
        (GeneralName::DNSName(text), NameFrom::Dns) | (GeneralName::RFC822Name(text), NameFrom::Email) => {
            Some(text)
        }
        _ => None,
    }
}

/// End of validity; `None` if the bytes are no certificate.
pub fn expires(der: &[u8]) -> Option<SystemTime> {
    let end = parse(der)?.validity().not_after.timestamp();
    Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(end).unwrap_or_default()))
}

fn parse(der: &[u8]) -> Option<X509Certificate<'_>> {
    let (rest, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    rest.is_empty().then_some(certificate)
}

#[cfg(test)]
mod tests;

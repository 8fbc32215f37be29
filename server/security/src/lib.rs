//! Basalt's users, tokens, certificates, rights and audit log.
//!
//! | module | contents |
//! | --- | --- |
//! | [`secret`] | bytes that are wiped when dropped and never printed |
//! | [`error`] | errors for operators, refusals for clients |
//! | [`mod@file`] | files that are replaced whole, under a lock |
//! | [`password`] | argon2id hashes |
//! | [`token`] | HBase's delegation tokens: identifier, signature, token file |
//! | [`users`] | users, token keys, issued tokens, proxy rules, and their file |
//! | [`sasl`] | DIGEST-MD5, PLAIN, EXTERNAL: message in, message out |
//! | [`kerberos`] | rules of principals; with the feature `kerberos`, logins with tickets |
//! | [`certificate`] | own certificate authority, names in certificates, TLS settings |
//! | [`rights`] | HBase's permissions: entries, index, checks, and their file |
//! | [`delay`] | growing delay after failed logins |
//! | [`audit`] | audit log as JSON lines |
//!
//! Invariants: no sockets and no async runtime; only `audit` has a thread. The clock is an
//! argument, except in file times. Nothing secret is displayed, also not in errors. Bytes from
//! clients are bounded before they are parsed, and secrets are compared in constant time.
//!
//! Values such as [`users::Users`] and [`rights::Rights`] are immutable for their readers: a server
//! holds them in an `ArcSwap` and publishes a new one after each change of its file.

pub mod audit;
pub mod certificate;
pub mod delay;
pub mod error;
pub mod file;
pub mod kerberos;
pub mod password;
pub mod rights;
pub mod sasl;
pub mod secret;
pub mod token;
pub mod users;

pub use error::{Error, Reason, Refused, Result};
pub use secret::{Fingerprints, Secret};

/// Milliseconds since 1970, as HBase's messages count them. 0 for times before.
pub fn millis(time: std::time::SystemTime) -> u64 {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

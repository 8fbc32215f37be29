//! SASL mechanisms: message in, message out.
//!
//! | module | mechanism | proves |
//! | --- | --- | --- |
//! | [`digest`] | DIGEST-MD5 (RFC 2831), `auth` only | a token, without sending it |
//! | [`plain`] | PLAIN (RFC 4616) | a password or token, inside TLS or on loopback |
//! | [`external`] | EXTERNAL (RFC 4422) | the certificate of the TLS connection |
//! | [`http`] | HTTP's Basic, Bearer and Negotiate | a password or token, inside TLS or on loopback; a ticket |
//!
//! GSSAPI is in [`crate::kerberos`].
//!
//! Framing is the caller's: native RPC and Thrift have their own. Messages of clients have at most
//! [`MESSAGE_BYTES_MAX`] bytes; callers check that on the frame, before they read it, and the
//! mechanisms check it again.

pub mod digest;
pub mod external;
pub mod http;
pub mod plain;

/// Maximum length of a client's message (RFC 2831, 2.1.2).
pub const MESSAGE_BYTES_MAX: usize = 4096;

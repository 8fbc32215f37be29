//! The first bytes of a native connection.
//!
//! ```text
//! "HBas" 00 50        RPC, version 0, authentication SIMPLE; the connection header follows
//! "HBas" 00 51 | 52   the same with KERBEROS or DIGEST
//! "Regist"            asks for the cluster id (HBase 2.6 and later); one response, then close
//! "Securi"            asks for the server's principal; one response, then another preamble
//! ```

/// Length of every preamble, bytes.
pub const PREAMBLE_BYTES: usize = 6;

/// Version of the RPC protocol.
pub const RPC_VERSION: u8 = 0;

/// Text that the refusal of an unknown preamble must contain: newer clients take it to mean that
/// the server does not support "Regist".
pub const EXPECTED_HEADER: &str = "Expected HEADER=HBas";

/// Status 0 and code -88: a client with KERBEROS or DIGEST must continue with SIMPLE.
pub const SWITCH_TO_SIMPLE: [u8; 8] = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xa8];

/// Authentication method of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// The user name in the connection header is accepted without proof.
    Simple,
    /// SASL with GSSAPI.
    Kerberos,
    /// SASL with a delegation token.
    Digest,
}

/// The first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// RPC; the connection header follows.
    Rpc(Authentication),
    /// "Regist": asks for the cluster id.
    Registry,
    /// "Securi": asks for the server's principal.
    Security,
    /// "HBas" with a version other than [`RPC_VERSION`].
    WrongVersion(u8),
    /// "HBas" with an unknown authentication code.
    BadAuthentication(u8),
    /// Anything else.
    Unknown,
}

impl Preamble {
    /// Reads a preamble.
    pub fn parse(bytes: [u8; PREAMBLE_BYTES]) -> Self {
        match bytes {
            [b'H', b'B', b'a', b's', RPC_VERSION, code] => match code {
                80 => Self::Rpc(Authentication::Simple),
                81 => Self::Rpc(Authentication::Kerberos),
                82 => Self::Rpc(Authentication::Digest),
                other => Self::BadAuthentication(other),
            },
            [b'H', b'B', b'a', b's', version, _] => Self::WrongVersion(version),
            _ if &bytes == b"Regist" => Self::Registry,
            _ if &bytes == b"Securi" => Self::Security,
            _ => Self::Unknown,
        }
    }
}

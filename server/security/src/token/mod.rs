//! HBase's delegation tokens, and where they are written down.
//!
//! | part | bytes |
//! | --- | --- |
//! | identifier | `int32 length`, then the protobuf message `TokenIdentifier` |
//! | password | HMAC-SHA1 of the identifier under one of the server's keys |
//! | as DIGEST-MD5 login | user: base64 of the identifier; password: base64 of the password |
//! | as text (bearer, password) | base64url of the identifier, a dot, base64url of the password |
//! | as file | module `file` |
//!
//! A token is valid as long as its key and its record are in the file of users:
//! `Users::find_token`.

mod file;
mod vint;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use prost::Message;
use ring::hmac;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use file::{Entry, TokenFile};

use crate::{Reason, Refused, Result, Secret, secret};

/// Kind of HBase's tokens.
pub const KIND: &str = "HBASE_AUTH_TOKEN";

/// The service that registry connections of some clients look for instead of the cluster id.
pub const DEFAULT_SERVICE: &str = "default-cluster";

/// Maximum length of an identifier. Names of users are shorter.
pub const IDENTIFIER_BYTES_MAX: usize = 1 << 10;

const KEY_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 20;

/// The protobuf message in an identifier.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TokenIdentifier {
    /// 0: `HBASE_AUTH_TOKEN`.
    #[prost(int32, required, tag = "1")]
    pub kind: i32,
    /// Name of the user, UTF-8.
    #[prost(bytes = "vec", required, tag = "2")]
    pub username: Vec<u8>,
    /// Number of the key that signs.
    #[prost(int32, required, tag = "3")]
    pub key_id: i32,
    /// Milliseconds since 1970.
    #[prost(int64, optional, tag = "4")]
    pub issue_date: Option<i64>,
    /// Milliseconds since 1970.
    #[prost(int64, optional, tag = "5")]
    pub expiration_date: Option<i64>,
    /// Number of the token: its record's key.
    #[prost(int64, optional, tag = "6")]
    pub sequence_number: Option<i64>,
}

impl TokenIdentifier {
    /// The signed bytes: the message behind its length.
    pub fn to_bytes(&self) -> Vec<u8> {
        let message = self.encode_to_vec();
        let length = u32::try_from(message.len()).expect("names of users are bounded");
        [&length.to_be_bytes()[..], &message].concat()
    }

    /// Parses an identifier. It has authority only together with its signature.
    pub fn parse(bytes: &[u8]) -> std::result::Result<Self, Refused> {
        let malformed = Refused(Reason::Malformed);
        if bytes.len() > IDENTIFIER_BYTES_MAX {
            return Err(malformed);
        }
        let (length, message) = bytes.split_first_chunk().ok_or(malformed)?;
        if u32::from_be_bytes(*length) as usize != message.len() {
            return Err(malformed);
        }
        let parsed = Self::decode(message).map_err(|_| malformed)?;
        if parsed.kind == 0 {
            Ok(parsed)
        } else {
            Err(malformed)
        }
    }
}

/// A key that signs tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenKey {
    /// Number of the key, in the identifiers that it signs.
    pub id: i32,
    #[serde(with = "secret::encoded")]
    secret: Secret,
}

impl TokenKey {
    /// A new key of 256 bits.
    pub fn random(id: i32) -> Result<Self> {
        let secret = Secret::random(KEY_BYTES)?;
        Ok(Self { id, secret })
    }

    /// Whether the key has 256 bits.
    pub(crate) fn is_whole(&self) -> bool {
        self.secret.expose().len() == KEY_BYTES
    }

    /// The signature, which is the token's password.
    pub fn sign(&self, identifier: &[u8]) -> Secret {
        Secret::new(hmac::sign(&self.hmac(), identifier).as_ref())
    }

    /// Whether the signature is this key's, in constant time.
    pub fn verify(&self, identifier: &[u8], signature: &[u8]) -> bool {
        hmac::verify(&self.hmac(), identifier, signature).is_ok()
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, self.secret.expose())
    }
}

/// A token: what a client holds.
#[derive(Clone, Debug)]
pub struct Token {
    /// The signed bytes. They name the user and are not secret.
    pub identifier: Vec<u8>,
    /// The signature.
    pub password: Secret,
}

impl Token {
    /// The user of a DIGEST-MD5 login.
    pub fn digest_user(&self) -> String {
        BASE64_STANDARD.encode(&self.identifier)
    }

    /// The password of a DIGEST-MD5 login.
    pub fn digest_password(&self) -> Secret {
        digest_password(&self.password)
    }

    /// The token as one word, for `Authorization: Bearer` and as a password.
    pub fn to_text(&self) -> Zeroizing<String> {
        let [identifier, password] =
            [&self.identifier, self.password.expose()].map(|bytes| BASE64_URL_SAFE_NO_PAD.encode(bytes));
        Zeroizing::new(format!("{identifier}.{}", Zeroizing::new(password).as_str()))
    }

    /// Parses the form of [`Self::to_text`]; `None` for all other text, such as a password.
    pub fn from_text(text: &str) -> Option<Self> {
        let (identifier, password) = text.split_once('.')?;
        if identifier.len() > IDENTIFIER_BYTES_MAX * 4 / 3 + 2 || password.len() > SIGNATURE_BYTES * 2 {
            return None;
        }
        let identifier = BASE64_URL_SAFE_NO_PAD.decode(identifier).ok()?;
        let password = Secret::new(BASE64_URL_SAFE_NO_PAD.decode(password).ok()?);
        let is_token =
            password.expose().len() == SIGNATURE_BYTES && TokenIdentifier::parse(&identifier).is_ok();
        is_token.then_some(Self { identifier, password })
    }
}

/// The password of a DIGEST-MD5 login with a token whose signature this is.
pub fn digest_password(signature: &Secret) -> Secret {
    Secret::new(BASE64_STANDARD.encode(signature.expose()))
}

/// The identifier in the user of a DIGEST-MD5 login.
pub fn identifier_of_digest_user(user: &str) -> std::result::Result<Vec<u8>, Refused> {
    let malformed = Refused(Reason::Malformed);
    if user.len() > IDENTIFIER_BYTES_MAX * 4 / 3 + 4 {
        return Err(malformed);
    }
    BASE64_STANDARD.decode(user).map_err(|_| malformed)
}

#[cfg(test)]
mod tests;

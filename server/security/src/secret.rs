//! Bytes that are wiped when dropped and never printed.

use std::fmt;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{Error, Result};

/// A password, key or signature. `Debug` prints `[secret]`; there is no `Display` and no
/// `PartialEq`.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes, so that no other copy of them stays.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Random bytes of the operating system.
    pub fn random(len: usize) -> Result<Self> {
        let mut bytes = Zeroizing::new(vec![0; len]);
        SystemRandom::new().fill(&mut bytes).map_err(|_| Error::Random)?;
        Ok(Self(bytes))
    }

    /// The bytes, for the one place that uses them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text; `None` if they are not UTF-8.
    pub fn expose_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Compares in constant time. Only the lengths influence the duration.
    pub fn matches(&self, other: &[u8]) -> bool {
        self.0.ct_eq(other).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Secrets in our own JSON files, as base64url. Not `Serialize` on [`Secret`] itself: a secret must
/// not reach another document by accident.
pub(crate) mod encoded {
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use serde::{Deserialize, Deserializer, Serializer, de};
    use zeroize::Zeroizing;

    use super::Secret;

    pub(crate) fn serialize<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
        let text = Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(secret.expose()));
        serializer.serialize_str(&text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&**text);
        bytes
            .map(Secret::new)
            .map_err(|_| de::Error::custom("a secret is not base64url"))
    }
}

/// Fingerprints of secrets under a key of this process, to recognize a secret without keeping it.
pub struct Fingerprints(hmac::Key);

impl Fingerprints {
    /// Fingerprints under a new random key.
    pub fn new() -> Result<Self> {
        let key = Secret::random(32)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, key.expose())))
    }

    /// The fingerprint of a secret.
    pub fn of(&self, secret: &[u8]) -> [u8; 32] {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(hmac::sign(&self.0, secret).as_ref());
        fingerprint
    }
}

impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprints")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "[secret] Some(\n    [secret],\n)"
        );
        assert!(secret.matches(b"hunter2"));
        assert!(!secret.matches(b"hunter3"));
        assert!(!secret.matches(b"hunter"));
    }

    #[test]
    fn a_fingerprint_is_of_one_secret_and_one_key() {
        let [first, second] = [(); 2].map(|()| Fingerprints::new().unwrap());
        assert_eq!(first.of(b"hunter2"), first.of(b"hunter2"));
        assert_ne!(first.of(b"hunter2"), first.of(b"hunter3"));
        assert_ne!(first.of(b"hunter2"), second.of(b"hunter2"));
    }

    #[test]
    fn random_secrets_differ() {
        let [first, second] = [(); 2].map(|()| Secret::random(32).unwrap());
        assert_eq!(first.expose().len(), 32);
        assert!(!first.matches(second.expose()));
    }
}

//! The key of an encrypted backup.
//!
//! A key file has 64 hexadecimal digits, 32 bytes, as `openssl rand -hex 32` prints them, and must be
//! readable by its owner only. Three keys are derived from it (HKDF with SHA-256): one encrypts objects
//! (AES-256-GCM, a random nonce for each), one makes their names (HMAC with SHA-256, so that a name does not
//! tell whether a store has a known content), and one value recognizes the key.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::digest::{Digest, to_hex};
use crate::error::{Error, Result};

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Bits of a mode that give access to group and others.
const OTHERS: u32 = 0o077;

/// Encrypts objects and names them.
pub struct Key {
    encryption: LessSafeKey,
    names: hmac::Key,
    check: String,
    random: SystemRandom,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Length of a derived key.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl Key {
    /// Reads a key file.
    pub fn read(path: &Path) -> Result<Self> {
        let refused = |what: &str| Error::Refused(format!("the key file {} {what}", path.display()));
        let metadata =
            fs::metadata(path).map_err(|source| Error::io("reading the key file", path, source))?;
        if metadata.mode() & OTHERS != 0 {
            return Err(refused("can be read by others: chmod 600"));
        }
        let text = fs::read_to_string(path).map(Zeroizing::new);
        let text = text.map_err(|source| Error::io("reading the key file", path, source))?;
        let bytes = from_hex(text.trim()).ok_or_else(|| {
            refused("must have 64 hexadecimal digits and nothing else: openssl rand -hex 32 makes them")
        })?;
        Self::new(&bytes).ok_or_else(|| refused("cannot be used"))
    }

    fn new(bytes: &[u8; KEY_BYTES]) -> Option<Self> {
        let secret = Salt::new(HKDF_SHA256, b"basalt backup 1").extract(bytes);
        let derive = |purpose: &[u8]| {
            let mut key = Zeroizing::new([0; KEY_BYTES]);
            secret.expand(&[purpose], Length).ok()?.fill(&mut *key).ok()?;
            Some(key)
        };
        let encryption = UnboundKey::new(&AES_256_GCM, &*derive(b"encryption")?).ok()?;
        Some(Self {
            encryption: LessSafeKey::new(encryption),
            names: hmac::Key::new(hmac::HMAC_SHA256, &*derive(b"names")?),
            check: to_hex(&*derive(b"check")?),
            random: SystemRandom::new(),
        })
    }

    /// Recognizes the key and says nothing about it.
    pub(crate) fn check(&self) -> &str {
        &self.check
    }

    /// The digest of some content.
    pub(crate) fn digest(&self, parts: [&[u8]; 2]) -> Digest {
        let mut context = hmac::Context::with_key(&self.names);
        for part in parts {
            context.update(part);
        }
        Digest::of_slice(context.sign().as_ref())
    }

    /// Encrypts in place and appends the tag. Returns the nonce.
    pub(crate) fn encrypt(&self, head: &[u8], buffer: &mut Vec<u8>, from: usize) -> Option<[u8; NONCE_LEN]> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let tag = self.encryption.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(head),
            &mut buffer[from..],
        );
        buffer.extend_from_slice(tag.ok()?.as_ref());
        Some(nonce)
    }

    /// Decrypts in place; `None`: another key, or other bytes.
    pub(crate) fn decrypt(&self, head: &[u8], nonce: [u8; NONCE_LEN], sealed: &mut [u8]) -> Option<usize> {
        let opened =
            self.encryption
                .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(head), sealed);
        Some(opened.ok()?.len())
    }
}

fn from_hex(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let digits = text.as_bytes();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(bytes)
}

//! The bytes of an object.
//!
//! ```text
//! 0          8         9      10       11      16       48       60
//! +----------+---------+------+--------+-------+--------+--------+---------+----------+
//! | magic    | version | kind | cipher | zeros | digest | nonce  | payload | tag      |
//! | basaltbk | u8 = 1  | u8   | u8     |       | 32 B   | 12 B   |         | 16 B     |
//! +----------+---------+------+--------+-------+--------+--------+---------+----------+
//! cipher  0: in clear; the nonce is zeros, and there is no tag
//!         1: AES-256-GCM; bytes 0 to 48 are authenticated too
//! digest  of the kind (1 byte) and the payload in clear: SHA-256, or HMAC with SHA-256 with a key
//! kind    1 chunk (its name is the digest), 2 catalogue, 3 piece of the log
//! ```
//!
//! A reader rejects everything else, so a damaged, cut or exchanged object is never taken for another. Kinds
//! and ciphers are never renumbered.

use bytes::Bytes;

use crate::digest::{DIGEST_BYTES, Digest};
use crate::key::Key;

/// Bytes before the payload.
pub(crate) const HEAD_BYTES: usize = 60;

/// Bytes that are authenticated with the payload.
const AUTHENTICATED_BYTES: usize = 48;

/// Bytes behind an encrypted payload.
pub(crate) const TAG_BYTES: usize = 16;

const MAGIC: [u8; 8] = *b"basaltbk";
const VERSION: u8 = 1;
const DIGEST_AT: usize = 16;

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Chunk = 1,
    Catalogue = 2,
    Log = 3,
}

/// The digest of a payload.
pub(crate) fn digest_of(key: Option<&Key>, kind: Kind, payload: &[u8]) -> Digest {
    let parts = [&[kind as u8][..], payload];
    key.map_or_else(|| Digest::of(parts), |key| key.digest(parts))
}

/// A buffer for a payload of `bytes` bytes, with room for what an object has around it.
pub(crate) fn buffer(bytes: usize) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(HEAD_BYTES + bytes + TAG_BYTES);
    buffer.resize(HEAD_BYTES, 0);
    buffer
}

/// Makes an object of a payload that stands behind [`HEAD_BYTES`] bytes.
pub(crate) fn seal(key: Option<&Key>, kind: Kind, digest: &Digest, mut buffer: Vec<u8>) -> Option<Bytes> {
    buffer[..8].copy_from_slice(&MAGIC);
    buffer[8..11].copy_from_slice(&[VERSION, kind as u8, u8::from(key.is_some())]);
    buffer[DIGEST_AT..AUTHENTICATED_BYTES].copy_from_slice(&digest.0);
    if let Some(key) = key {
        let mut head = [0; AUTHENTICATED_BYTES];
        head.copy_from_slice(&buffer[..AUTHENTICATED_BYTES]);
        let nonce = key.encrypt(&head, &mut buffer, HEAD_BYTES)?;
        buffer[AUTHENTICATED_BYTES..HEAD_BYTES].copy_from_slice(&nonce);
    }
    Some(buffer.into())
}

/// The payload of an object of this kind, and its digest; or what is wrong with it.
pub(crate) fn open(key: Option<&Key>, kind: Kind, object: Bytes) -> Result<(Bytes, Digest), String> {
    let Some(head) = object.first_chunk::<HEAD_BYTES>().copied() else {
        return Err(format!("it has {} bytes, fewer than a head", object.len()));
    };
    if head[..8] != MAGIC {
        return Err("it is no object of a backup: wrong magic".into());
    }
    if head[8] != VERSION {
        return Err(format!(
            "it has version {}, and this release reads version {VERSION}: use the release that wrote it, or a later one",
            head[8]
        ));
    }
    if head[9] != kind as u8 || head[11..DIGEST_AT] != [0; 5] {
        return Err("it is an object of another kind".into());
    }
    let digest = Digest::of_slice(&head[DIGEST_AT..DIGEST_AT + DIGEST_BYTES]);
    let payload = match (head[10], key) {
        (0, None) => object.slice(HEAD_BYTES..),
        (1, Some(key)) => {
            let mut nonce = [0; HEAD_BYTES - AUTHENTICATED_BYTES];
            nonce.copy_from_slice(&head[AUTHENTICATED_BYTES..]);
            let mut sealed = Vec::from(object);
            let bytes = key.decrypt(&head[..AUTHENTICATED_BYTES], nonce, &mut sealed[HEAD_BYTES..]);
            let bytes = bytes.ok_or("its bytes or its key are other ones than those it was written with")?;
            Bytes::from(sealed).slice(HEAD_BYTES..HEAD_BYTES + bytes)
        }
        (0, Some(_)) => return Err("it is not encrypted, and the others are".into()),
        (1, None) => return Err("it is encrypted, and no key was given".into()),
        (cipher, _) => return Err(format!("it has the unknown cipher {cipher}")),
    };
    if digest_of(key, kind, &payload) != digest {
        return Err("its content does not have the digest in its head".into());
    }
    Ok((payload, digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::key;

    fn object(key: Option<&Key>, kind: Kind, payload: &[u8]) -> (Bytes, Digest) {
        let digest = digest_of(key, kind, payload);
        let mut filled = buffer(payload.len());
        filled.extend_from_slice(payload);
        (seal(key, kind, &digest, filled).unwrap(), digest)
    }

    #[test]
    fn an_object_is_read_as_it_was_written() {
        let key = key(1);
        for key in [None, Some(&key)] {
            for payload in [&b""[..], b"x", &vec![7; 100_000]] {
                let (bytes, digest) = object(key, Kind::Chunk, payload);
                let (read, found) = open(key, Kind::Chunk, bytes).unwrap();
                assert_eq!((&read[..], found), (payload, digest));
            }
        }
    }

    /// Goal: no flipped bit and no cut is overlooked, and a payload does not appear in clear.
    #[test]
    fn every_damage_is_found() {
        let key = key(1);
        let payload = b"a secret payload";
        for key in [None, Some(&key)] {
            let (bytes, _) = object(key, Kind::Catalogue, payload);
            let shows = bytes.windows(payload.len()).any(|window| window == payload);
            assert_eq!(shows, key.is_none());
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let found = open(key, Kind::Catalogue, damaged.into());
                // A nonce in clear stands for nothing.
                let unused = key.is_none() && (AUTHENTICATED_BYTES..HEAD_BYTES).contains(&(bit / 8));
                assert_eq!(found.is_ok(), unused, "bit {bit}");
            }
            for length in 0..bytes.len() {
                open(key, Kind::Catalogue, bytes.slice(..length)).unwrap_err();
            }
        }
    }

    #[test]
    fn kinds_and_keys_are_not_exchanged() {
        let (mine, other) = (key(1), key(2));
        let (bytes, digest) = object(Some(&mine), Kind::Chunk, b"payload");
        open(Some(&other), Kind::Chunk, bytes.clone()).unwrap_err();
        open(Some(&mine), Kind::Log, bytes.clone()).unwrap_err();
        assert!(open(None, Kind::Chunk, bytes).unwrap_err().contains("no key"));
        assert_ne!(digest, object(Some(&other), Kind::Chunk, b"payload").1);
        let (clear, _) = object(None, Kind::Chunk, b"payload");
        assert!(
            open(Some(&mine), Kind::Chunk, clear)
                .unwrap_err()
                .contains("not encrypted")
        );
    }
}

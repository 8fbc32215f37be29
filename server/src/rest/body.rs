//! Bodies that are packed with gzip, both ways.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::faults::Refusal;
use super::request::Result;
use crate::limits::admission::MemoryPermit;
use crate::server::Server;

/// Bytes that are unpacked before memory is reserved for more.
const STEP_BYTES: usize = 64 << 10;

/// Unpacks a body. A body that grows beyond the largest message is refused: a few bytes may stand for very
/// many.
pub(super) async fn unpack(server: &Server, packed: Bytes, permit: &mut MemoryPermit) -> Result<Bytes> {
    let limit = server.config().server.max_message_bytes;
    let before = permit.bytes() as usize;
    let mut decoder = MultiGzDecoder::new(&packed[..]);
    let mut plain = Vec::new();
    loop {
        permit.raise(before + 2 * plain.len() + 2 * STEP_BYTES).await?;
        let mut step = decoder.by_ref().take(STEP_BYTES as u64);
        let count = step
            .read_to_end(&mut plain)
            .map_err(|error| Refusal::malformed(format!("the body is not gzip: {error}")))?;
        if plain.len() > limit {
            return Err(Refusal::new(
                axum::http::StatusCode::PAYLOAD_TOO_LARGE,
                format!("the unpacked body has more bytes than server.max_message_bytes, {limit}"),
            ));
        }
        if count == 0 {
            return Ok(plain.into());
        }
    }
}

/// Packs the pieces of an answer.
pub(super) struct Packer(GzEncoder<Vec<u8>>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    pub(super) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Packs a piece, so that the client can unpack all of it at once.
    pub(super) fn piece(&mut self, plain: &[u8]) -> std::io::Result<Vec<u8>> {
        self.0.write_all(plain)?;
        self.0.flush()?;
        Ok(std::mem::take(self.0.get_mut()))
    }

    /// The end of the answer.
    pub(super) fn finish(self) -> std::io::Result<Vec<u8>> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn packed(bytes: &[u8]) -> Bytes {
        let mut packer = Packer::new();
        let (half, rest) = bytes.split_at(bytes.len() / 2);
        let mut out = packer.piece(half).unwrap();
        out.extend(packer.piece(rest).unwrap());
        out.extend(packer.finish().unwrap());
        out.into()
    }

    #[tokio::test]
    async fn bodies_are_packed_and_unpacked() {
        let server = crate::rig::server(Config::default());
        let mut permit = MemoryPermit::empty(server.admission().memory());
        for length in [0, 1, 300_000] {
            let bytes: Vec<u8> = (0..length)
                .map(|number: u32| number.wrapping_mul(number) as u8)
                .collect();
            assert_eq!(unpack(&server, packed(&bytes), &mut permit).await.unwrap(), bytes);
        }
        assert!(
            unpack(&server, Bytes::from_static(b"no gzip"), &mut permit)
                .await
                .is_err()
        );
    }

    /// Goal: a small body that stands for a huge one is refused before it is unpacked.
    #[tokio::test]
    async fn a_body_that_grows_too_large_is_refused() {
        let mut config = Config::default();
        config.server.max_message_bytes = 1 << 20;
        let server = crate::rig::server(config);
        let mut permit = MemoryPermit::empty(server.admission().memory());
        let bomb = packed(&vec![0; 100 << 20]);
        let refusal = unpack(&server, bomb, &mut permit).await.unwrap_err();
        assert_eq!(refusal.status, axum::http::StatusCode::PAYLOAD_TOO_LARGE);
        assert!(permit.bytes() < 4 << 20, "{}", permit.bytes());
    }
}

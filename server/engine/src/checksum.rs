//! Checksums of everything on disk. The algorithms come from crates; this module fixes which one is used
//! where.

/// CRC-32C (Castagnoli) of `bytes`: WAL and manifest frames, and HFile blocks with checksum type 2.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Continues a CRC-32C over more bytes.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// CRC-32 (IEEE), HFile checksum type 1, met in files that HBase wrote with
/// `hbase.hstore.checksum.algorithm=CRC32`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of both polynomials, from the catalogue of parametrised CRC algorithms.
    #[test]
    fn check_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), crc32c(b"123456789"));
    }
}

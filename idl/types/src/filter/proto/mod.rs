//! Filters as protobuf (`filterBytes` of Thrift 2), the form in which HBase's own clients send them.
//!
//! ```text
//! hbase.pb.Filter { name: "org.apache.hadoop.hbase.filter.PrefixFilter", serialized_filter: PrefixFilter { prefix } }
//! ```
//!
//! Filters inside filters are serialised again, so protobuf's own depth limit does not see them; we count
//! levels ourselves. Bytes of inner messages are slices of the one input, not copies. A missing required
//! field is an error, as in Java.

mod decode;
mod encode;
mod messages;

use prost::Message as _;
use prost::bytes::Bytes;

use super::{Comparator, FilterSender, FilterSpec};
use crate::{Error, Result};

/// Longest serialised filter.
pub const FILTER_BYTES_MAX: usize = 1 << 20;

/// Package of HBase's filter and comparator classes.
const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";

impl FilterSpec {
    /// Reads a serialised `hbase.pb.Filter`. `seed` is for `RandomRowFilter`: each seed draws other rows.
    pub fn decode(bytes: &[u8], seed: u64) -> Result<Self> {
        check_size("filter", bytes)?;
        let message = messages::Filter::decode(Bytes::copy_from_slice(bytes))
            .map_err(|error| Error::DoNotRetry(format!("malformed hbase.pb.Filter: {error}")))?;
        decode::Decoder::new(seed)
            .filter(&message, 1)
            .map_err(final_error)
    }

    /// Reads a serialised `hbase.pb.Filter` as [`Self::decode`] does. A tree with a class that HBase does not
    /// bring along is kept as it is, for a host of user code ([`Self::user_code`]).
    pub fn decode_with_user_code(bytes: &[u8], seed: u64, sender: &FilterSender) -> Result<Self> {
        match Self::decode(bytes, seed) {
            Err(Error::UnknownClass { class, .. }) => Ok(Self::of_user_code(class, bytes, sender)),
            decoded => decoded,
        }
    }

    /// The filter as a serialised `hbase.pb.Filter`.
    pub fn encode(&self) -> Vec<u8> {
        encode::filter(self).encode_to_vec()
    }
}

impl Comparator {
    /// Reads a serialised `hbase.pb.Comparator`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        check_size("comparator", bytes)?;
        let message = messages::Comparator::decode(Bytes::copy_from_slice(bytes))
            .map_err(|error| Error::DoNotRetry(format!("malformed hbase.pb.Comparator: {error}")))?;
        decode::comparator(&message).map_err(final_error)
    }
}

fn check_size(what: &str, bytes: &[u8]) -> Result<()> {
    if bytes.len() > FILTER_BYTES_MAX {
        let message = format!("{what} of {} bytes, more than {FILTER_BYTES_MAX}", bytes.len());
        return Err(Error::DoNotRetry(message));
    }
    Ok(())
}

/// HBase refuses a filter that makes no sense with an exception that clients do not retry.
fn final_error(error: Error) -> Error {
    match error {
        Error::InvalidArgument(text) => Error::DoNotRetry(text),
        other => other,
    }
}

#[cfg(test)]
mod tests;

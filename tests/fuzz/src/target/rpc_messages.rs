//! The protobuf messages of native calls: requests as the server reads them, responses as the client
//! does.
//!
//! ```text
//! input = which u8 | message
//! which = number of the message in `MESSAGES`, modulo their number
//! ```
//!
//! A message that decodes is encoded again and decodes to the same. Decoding takes at most
//! [`DECODED_PER_BYTE`] bytes for each byte of the message. The server reserves the memory that a
//! message takes before it decodes it.

use basalt_idl::native::messages as pb;
use bytes::Bytes;
use prost::Message;

use crate::memory;

/// Memory that decoding may take for each byte of a message: an empty element of a repeated field
/// takes two bytes of it, and a vector that grows has three times the room of its elements for a
/// moment.
pub const DECODED_PER_BYTE: usize = 1 << 10;

/// Decodes a message and writes it again; `None` if it is malformed.
type Recode = fn(Bytes) -> Option<Vec<u8>>;

fn recode<M: Message + Default>(message: Bytes) -> Option<Vec<u8>> {
    M::decode(message).ok().map(|message| message.encode_to_vec())
}

/// The messages that are tried: those with the deepest and the longest contents.
pub const MESSAGES: &[(&str, Recode)] = &[
    ("GetRequest", recode::<pb::GetRequest>),
    ("MutateRequest", recode::<pb::MutateRequest>),
    ("MultiRequest", recode::<pb::MultiRequest>),
    ("ScanRequest", recode::<pb::ScanRequest>),
    ("BulkLoadHFileRequest", recode::<pb::BulkLoadHFileRequest>),
    (
        "CoprocessorServiceRequest",
        recode::<pb::CoprocessorServiceRequest>,
    ),
    ("CreateTableRequest", recode::<pb::CreateTableRequest>),
    ("ModifyTableRequest", recode::<pb::ModifyTableRequest>),
    (
        "GetTableDescriptorsRequest",
        recode::<pb::GetTableDescriptorsRequest>,
    ),
    ("CreateNamespaceRequest", recode::<pb::CreateNamespaceRequest>),
    ("SnapshotRequest", recode::<pb::SnapshotRequest>),
    ("MergeTableRegionsRequest", recode::<pb::MergeTableRegionsRequest>),
    (
        "ClearRegionBlockCacheRequest",
        recode::<pb::ClearRegionBlockCacheRequest>,
    ),
    ("LogRequest", recode::<pb::LogRequest>),
    ("SlowLogResponseRequest", recode::<pb::SlowLogResponseRequest>),
    ("GetResponse", recode::<pb::GetResponse>),
    ("MultiResponse", recode::<pb::MultiResponse>),
    ("ScanResponse", recode::<pb::ScanResponse>),
    (
        "GetTableDescriptorsResponse",
        recode::<pb::GetTableDescriptorsResponse>,
    ),
    ("GetClusterStatusResponse", recode::<pb::GetClusterStatusResponse>),
];

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((&which, message)) = input.split_first() else {
        return;
    };
    let (name, recode) = MESSAGES[usize::from(which) % MESSAGES.len()];
    let message = Bytes::copy_from_slice(message);
    let beside = DECODED_PER_BYTE * message.len();
    let written = memory::bounded(message.len(), beside, || recode(message.clone()).ok_or(()));
    if let Ok(written) = written {
        let again = recode(Bytes::from(written.clone()));
        assert_eq!(again, Some(written), "{name} does not read what it wrote");
    }
}

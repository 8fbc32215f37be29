//! The values of the system tables' cells: messages of HBase's `HBase.proto`. Field numbers are the
//! wire's: never change them.
//!
//! All fields are optional here, because HBase writes every field, also one that has its default value.

use prost::Message;

use crate::region::RegionInfo;
use crate::schema::{NamespaceDescriptor, TableState};

/// HBase's prefix of stored messages, which tells them from an older form without it.
const MAGIC: &[u8] = b"PBUF";

#[derive(Clone, PartialEq, Message)]
struct TableNameMessage {
    #[prost(bytes = "vec", optional, tag = "1")]
    namespace: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    qualifier: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct RegionInfoMessage {
    #[prost(uint64, optional, tag = "1")]
    region_id: Option<u64>,
    #[prost(message, optional, tag = "2")]
    table_name: Option<TableNameMessage>,
    #[prost(bytes = "vec", optional, tag = "3")]
    start_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    end_key: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "5")]
    offline: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    split: Option<bool>,
    #[prost(int32, optional, tag = "7")]
    replica_id: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TableStateMessage {
    /// ENABLED 0, DISABLED 1, DISABLING 2, ENABLING 3.
    #[prost(int32, optional, tag = "1")]
    state: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct NameStringPair {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct NamespaceDescriptorMessage {
    #[prost(bytes = "vec", optional, tag = "1")]
    name: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    configuration: Vec<NameStringPair>,
}

/// `info:regioninfo`
pub(super) fn region_info(region: &RegionInfo) -> Vec<u8> {
    let message = RegionInfoMessage {
        region_id: Some(region.created_ms),
        table_name: Some(TableNameMessage {
            namespace: Some(region.table.namespace().into()),
            qualifier: Some(region.table.qualifier().into()),
        }),
        start_key: Some(region.start.clone()),
        end_key: Some(region.end.clone()),
        offline: Some(false),
        split: Some(false),
        replica_id: Some(0),
    };
    [MAGIC, &message.encode_to_vec()].concat()
}

/// `table:state`
pub(super) fn table_state(state: TableState) -> Vec<u8> {
    let code = match state {
        TableState::Enabled => 0,
        TableState::Disabled => 1,
    };
    TableStateMessage { state: Some(code) }.encode_to_vec()
}

/// `info:d` of a namespace
pub(super) fn namespace(namespace: &NamespaceDescriptor) -> Vec<u8> {
    let configuration = namespace
        .configuration
        .iter()
        .map(|(name, value)| NameStringPair {
            name: Some(name.clone()),
            value: Some(value.clone()),
        });
    NamespaceDescriptorMessage {
        name: Some(namespace.name.clone().into_bytes()),
        configuration: configuration.collect(),
    }
    .encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RegionId;
    use crate::manifest::RegionMeta;
    use crate::schema::TableName;

    /// The values that HBase 2.6 had in these cells.
    #[test]
    fn values_are_hbases() {
        let region = RegionInfo::of_meta(&RegionMeta {
            id: RegionId(1),
            table: TableName::parse(b"ns1:u").unwrap(),
            start: b"\x01".to_vec(),
            end: b" a,b".to_vec(),
            created_ms: 1_795_293_941_701,
        });
        let expected =
            b"PBUF\x08\xc5\x9f\xee\xfe\x9f4\x12\x08\n\x03ns1\x12\x01u\x1a\x01\x01\"\x04 a,b(\x000\x008\x00";
        assert_eq!(region_info(&region), expected);
        assert_eq!(table_state(TableState::Enabled), b"\x08\x00");
        assert_eq!(table_state(TableState::Disabled), b"\x08\x01");
        let descriptor = NamespaceDescriptor {
            name: "ns1".into(),
            configuration: [("b", "2"), ("a", "1")]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
        };
        assert_eq!(
            namespace(&descriptor),
            b"\n\x03ns1\x12\x06\n\x01a\x12\x011\x12\x06\n\x01b\x12\x012"
        );
    }
}

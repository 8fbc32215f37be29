//! The shapes of messages of the master's and the region server's administration, for the bound on the
//! memory of their arguments ([`arguments`](super::arguments)).
//!
//! A long option or name needs its own size a few times; what multiplies is a repeated field, whose
//! element may take two bytes of a message and hundreds of bytes once it is decoded. Methods whose
//! messages have one are listed here; a test compares the list with the generated messages.

use std::mem::size_of;

use basalt_engine::schema::FamilyDescriptor;
use basalt_idl::native::messages::{
    AdminServiceMethod, BytesBytesPair, ColumnFamilySchema, MasterServiceMethod, NameStringPair,
    RegionSpecifier, TableName,
};
use bytes::Bytes;

use super::peer::Method;
use super::shape::{GROWTH, LEAF, Shape, field, text};

/// Copies of a text: the message's, the engine's, the manifest's.
pub(super) const COPIES: usize = 3;
/// A node of a map of options with its two buffers.
const OPTION: usize = 160;
const PAIR: usize = GROWTH * size_of::<BytesBytesPair>() + OPTION;
const STRING_PAIR: usize = GROWTH * size_of::<NameStringPair>() + OPTION;
const NAMED_TABLE: usize = GROWTH * (size_of::<TableName>() + size_of::<Bytes>());
const KEY: usize = GROWTH * (size_of::<Bytes>() + size_of::<Vec<u8>>());
const FAMILY_BYTES: usize = GROWTH * (size_of::<ColumnFamilySchema>() + size_of::<FamilyDescriptor>());

static FAMILY: Shape = Shape(&[text(2, PAIR), text(3, STRING_PAIR)]);
static TABLE: Shape = Shape(&[
    text(2, PAIR),
    field(3, FAMILY_BYTES, &FAMILY),
    text(4, STRING_PAIR),
]);
static CREATE_TABLE: Shape = Shape(&[field(1, 0, &TABLE), text(2, KEY)]);
static MODIFY_TABLE: Shape = Shape(&[field(2, 0, &TABLE)]);
static MODIFY_FAMILY: Shape = Shape(&[field(2, FAMILY_BYTES, &FAMILY)]);
static FLUSH_TABLE: Shape = Shape(&[text(2, KEY)]);
static DESCRIPTORS: Shape = Shape(&[text(1, NAMED_TABLE)]);
static NAMESPACE: Shape = Shape(&[text(2, STRING_PAIR)]);
static NAMESPACE_CALL: Shape = Shape(&[field(1, 0, &NAMESPACE)]);
static PROCEDURE: Shape = Shape(&[text(4, STRING_PAIR)]);
static PROCEDURE_CALL: Shape = Shape(&[field(1, 0, &PROCEDURE)]);
static REGIONS: Shape = Shape(&[text(1, GROWTH * size_of::<RegionSpecifier>())]);

/// The shape of a method's message; `None` if it has repeated fields that have no shape here. Then
/// everything that can be read as a field is counted as an element of one.
pub(super) fn shape(method: Method) -> Option<&'static Shape> {
    match method {
        Method::Master(method) => of_master(method),
        Method::Admin(method) => of_admin(method),
        Method::Client(_) => None,
        Method::ClientMeta(_) | Method::BootstrapNode(_) => Some(&LEAF),
    }
}

fn of_master(method: MasterServiceMethod) -> Option<&'static Shape> {
    use MasterServiceMethod as Of;
    Some(match method {
        Of::CreateTable => &CREATE_TABLE,
        Of::ModifyTable => &MODIFY_TABLE,
        Of::AddColumn | Of::ModifyColumn => &MODIFY_FAMILY,
        Of::FlushTable => &FLUSH_TABLE,
        Of::GetTableDescriptors => &DESCRIPTORS,
        Of::CreateNamespace | Of::ModifyNamespace => &NAMESPACE_CALL,
        Of::ExecProcedure | Of::ExecProcedureWithRet | Of::IsProcedureDone => &PROCEDURE_CALL,
        Of::MergeTableRegions => &REGIONS,
        Of::GetClusterStatus
        | Of::SetSplitOrMergeEnabled
        | Of::Normalize
        | Of::AddReplicationPeer
        | Of::UpdateReplicationPeerConfig
        | Of::DecommissionRegionServers
        | Of::RecommissionRegionServer
        | Of::ClearDeadServers
        | Of::Grant
        | Of::Revoke
        | Of::HasUserPermissions
        | Of::Snapshot
        | Of::DeleteSnapshot
        | Of::IsSnapshotDone
        | Of::RestoreSnapshot => return None,
        _ => &LEAF,
    })
}

fn of_admin(method: AdminServiceMethod) -> Option<&'static Shape> {
    use AdminServiceMethod as Of;
    Some(match method {
        Of::ClearRegionBlockCache => &REGIONS,
        Of::GetStoreFile
        | Of::OpenRegion
        | Of::ReplicateWALEntry
        | Of::Replay
        | Of::ClearCompactionQueues
        | Of::ExecuteProcedures
        | Of::UpdateFavoredNodes => return None,
        _ => &LEAF,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const MESSAGES: &str = include_str!("../../../../idl/src/native/messages.rs");

    /// Fields of the messages of the generated file: whether each is repeated, and its type.
    fn messages() -> BTreeMap<&'static str, Vec<(bool, &'static str)>> {
        let mut found = BTreeMap::new();
        let mut rest = MESSAGES;
        while let Some((_, after)) = rest.split_once("pub struct ") {
            let (name, body) = after.split_once(" {").expect("a struct has a body");
            rest = body;
            if body.starts_with('}') {
                continue;
            }
            let lines = body.lines().take_while(|line| line.trim() != "}");
            let (mut fields, mut is_repeated) = (Vec::new(), false);
            for line in lines {
                if let Some((_, kind)) = line
                    .split_once("pub ")
                    .and_then(|(_, field)| field.split_once(": "))
                {
                    fields.push((is_repeated, kind));
                    is_repeated = false;
                }
                is_repeated |= line.contains("repeated");
            }
            found.insert(name, fields);
        }
        found
    }

    fn has_repeated(messages: &BTreeMap<&str, Vec<(bool, &str)>>, name: &str, depth: usize) -> bool {
        let fields = messages.get(name).into_iter().flatten();
        let inner = |kind: &str| {
            let name = kind.trim_end_matches([',', '>']);
            name.rsplit(['<', ':']).next().unwrap_or_default().to_owned()
        };
        fields.copied().any(|(is_repeated, kind)| {
            is_repeated || depth > 0 && has_repeated(messages, &inner(kind), depth - 1)
        })
    }

    /// The request of a method, as the generated file documents it.
    fn request(service: &str, method: &str) -> &'static str {
        let (_, methods) = MESSAGES
            .split_once(&format!("pub enum {service} {{"))
            .expect("the service");
        let (_, after) = methods
            .split_once(&format!("/// `{method}`: [`"))
            .expect("the method");
        after.split_once('`').expect("the end of the name").0
    }

    #[test]
    fn messages_with_repeated_fields_are_listed() {
        let messages = messages();
        let of_master = MasterServiceMethod::ALL.iter().copied();
        let of_admin = AdminServiceMethod::ALL.iter().copied();
        let methods = of_master
            .map(|method| ("MasterServiceMethod", method.name(), Method::Master(method)))
            .chain(of_admin.map(|method| ("AdminServiceMethod", method.name(), Method::Admin(method))));
        let (mut listed, mut flat) = (0, 0);
        for (service, name, method) in methods {
            let repeats = has_repeated(&messages, request(service, name), 5);
            let is_flat = shape(method).is_some_and(|shape| std::ptr::eq(shape, &raw const LEAF));
            assert_eq!(repeats, !is_flat, "{name}");
            *if repeats { &mut listed } else { &mut flat } += 1;
        }
        assert!(listed > 20 && flat > 50, "{listed} {flat}");
    }
}

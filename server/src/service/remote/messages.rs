//! Converts tables, families and namespaces from and to the messages of the native protocol: for its
//! adapter, and for calls to another cluster.

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState};
use basalt_idl::native::messages::{self, BytesBytesPair, NameStringPair, TableSchema, table_state};
use bytes::Bytes;

use crate::service::Failure;
use crate::service::schema as shared;

/// A table's name.
pub(crate) fn table_name(name: &messages::TableName) -> Result<TableName, Failure> {
    let text = |part: &Bytes| {
        std::str::from_utf8(part)
            .map(str::to_owned)
            .map_err(|_| Failure::do_not_retry("a table's name must be UTF-8"))
    };
    Ok(TableName::new(&text(&name.namespace)?, &text(&name.qualifier)?)?)
}

/// A table's name for a client. The namespace is always set, even if it is the default one.
pub(crate) fn to_table_name(name: &TableName) -> messages::TableName {
    messages::TableName {
        namespace: Bytes::copy_from_slice(name.namespace().as_bytes()),
        qualifier: Bytes::copy_from_slice(name.qualifier().as_bytes()),
    }
}

/// A table from its schema. Basalt keeps the configuration and the attributes of a table in one
/// map.
pub(crate) fn table(schema: &TableSchema) -> Result<TableDescriptor, Failure> {
    let name = schema
        .table_name
        .as_ref()
        .ok_or_else(|| Failure::do_not_retry("the table's schema has no name"))?;
    let families = schema
        .column_families
        .iter()
        .map(family)
        .collect::<Result<Vec<_>, _>>()?;
    let mut table = TableDescriptor::new(table_name(name)?, families);
    table.attributes = attributes(&schema.attributes);
    let configuration = schema.configuration.iter();
    table
        .attributes
        .extend(configuration.map(|pair| (pair.name.clone().into(), pair.value.clone().into())));
    Ok(table)
}

/// A family from its schema. HBase's clients send the encoding NONE if none was chosen, so NONE
/// stands for this server's default.
pub(crate) fn family(schema: &messages::ColumnFamilySchema) -> Result<FamilyDescriptor, Failure> {
    let mut attributes = attributes(&schema.attributes);
    let encoding: &[u8] = b"DATA_BLOCK_ENCODING";
    if attributes
        .get(encoding)
        .is_some_and(|encoding| encoding.eq_ignore_ascii_case(b"NONE"))
    {
        attributes.remove(encoding);
    }
    let mut family = FamilyDescriptor::from_attributes(&schema.name, attributes)?;
    family.configuration = schema
        .configuration
        .iter()
        .map(|pair| (pair.name.clone().into(), pair.value.clone().into()))
        .collect();
    Ok(family)
}

fn attributes(pairs: &[BytesBytesPair]) -> basalt_engine::schema::Attributes {
    pairs
        .iter()
        .map(|pair| (pair.first.to_vec(), pair.second.to_vec()))
        .collect()
}

/// A table for a client. Attributes that are not set have HBase's default values.
pub(crate) fn to_table(table: &TableDescriptor) -> TableSchema {
    TableSchema {
        table_name: Some(to_table_name(&table.name)),
        attributes: pairs(shared::table_attributes(table)),
        column_families: table.families.iter().map(to_family).collect(),
        configuration: Vec::new(),
    }
}

/// A family for a client, as [`to_table`] has it.
pub(crate) fn to_family(family: &FamilyDescriptor) -> messages::ColumnFamilySchema {
    messages::ColumnFamilySchema {
        name: family.name.clone().into(),
        attributes: pairs(shared::family_attributes(family)),
        configuration: string_pairs(shared::family_configuration(family)),
    }
}

fn pairs(attributes: std::collections::BTreeMap<Bytes, Bytes>) -> Vec<BytesBytesPair> {
    attributes
        .into_iter()
        .map(|(first, second)| BytesBytesPair { first, second })
        .collect()
}

fn string_pairs(pairs: std::collections::BTreeMap<String, String>) -> Vec<NameStringPair> {
    pairs
        .into_iter()
        .map(|(name, value)| NameStringPair { name, value })
        .collect()
}

/// A namespace from a client.
pub(crate) fn namespace(descriptor: &messages::NamespaceDescriptor) -> Result<NamespaceDescriptor, Failure> {
    Ok(NamespaceDescriptor {
        name: namespace_name(&descriptor.name)?,
        configuration: descriptor
            .configuration
            .iter()
            .map(|pair| (pair.name.clone(), pair.value.clone()))
            .collect(),
    })
}

/// A namespace's name.
pub(crate) fn namespace_name(name: &[u8]) -> Result<String, Failure> {
    String::from_utf8(name.to_vec()).map_err(|_| Failure::do_not_retry("a namespace's name must be UTF-8"))
}

/// A namespace for a client.
pub(crate) fn to_namespace(namespace: &NamespaceDescriptor) -> messages::NamespaceDescriptor {
    messages::NamespaceDescriptor {
        name: Bytes::from(namespace.name.clone()),
        configuration: string_pairs(namespace.configuration.clone()),
    }
}

/// A region for a client.
pub(crate) fn to_region(region: &RegionInfo) -> messages::RegionInfo {
    messages::RegionInfo {
        region_id: region.created_ms,
        table_name: to_table_name(&region.table),
        start_key: Some(Bytes::from(region.start.clone())),
        end_key: Some(Bytes::from(region.end.clone())),
        offline: Some(false),
        split: Some(false),
        replica_id: Some(0),
    }
}

/// A table's state for a client.
pub(crate) fn to_state(state: TableState) -> messages::TableState {
    let state = match state {
        TableState::Enabled => table_state::State::Enabled,
        TableState::Disabled => table_state::State::Disabled,
    };
    messages::TableState { state: state.into() }
}

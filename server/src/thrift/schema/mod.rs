//! Descriptors of tables, families and namespaces, both ways, and the operations of both services
//! on them.

use std::collections::BTreeMap;

use basalt_engine::schema::{Attributes, Escaped, NamespaceDescriptor, TableDescriptor, TableName};
use basalt_idl::thrift2;
use bytes::Bytes;

use crate::service::Failure;
use crate::service::schema::table_attributes;

mod family;

pub(super) use family::{family, family_key, family1, to_family, to_family1};

/// A table's name as Thrift 2 gives it.
pub(super) fn table_name(name: &thrift2::TTableName) -> Result<TableName, Failure> {
    let text = |part: &Bytes| {
        String::from_utf8(part.to_vec()).map_err(|_| {
            Failure::illegal_argument(format!("Illegal table name, not UTF-8: {}", Escaped(part)))
        })
    };
    let namespace = name.ns.as_ref().map(text).transpose()?.unwrap_or_default();
    Ok(TableName::new(&namespace, &text(&name.qualifier)?)?)
}

/// A table's name for Thrift 2: the namespace is always spelled out.
pub(super) fn to_table_name(name: &TableName) -> thrift2::TTableName {
    thrift2::TTableName {
        ns: Some(Bytes::copy_from_slice(name.namespace().as_bytes())),
        qualifier: Bytes::copy_from_slice(name.qualifier().as_bytes()),
    }
}

/// A table from its Thrift 2 descriptor.
pub(super) fn table(descriptor: &thrift2::TTableDescriptor) -> Result<TableDescriptor, Failure> {
    let families = descriptor
        .columns
        .iter()
        .flatten()
        .map(family)
        .collect::<Result<Vec<_>, _>>()?;
    let mut table = TableDescriptor::new(table_name(&descriptor.table_name)?, families);
    table.attributes = raw(descriptor.attributes.as_ref());
    if let Some(durability) = descriptor.durability {
        let durability = super::from_thrift::durability(Some(durability));
        table
            .attributes
            .insert(b"DURABILITY".to_vec(), durability.as_str().into());
    }
    Ok(table)
}

fn raw(attributes: Option<&BTreeMap<Bytes, Bytes>>) -> Attributes {
    attributes
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

/// A table for Thrift 2.
pub(super) fn to_table(table: &TableDescriptor) -> thrift2::TTableDescriptor {
    thrift2::TTableDescriptor {
        table_name: to_table_name(&table.name),
        columns: Some(table.families.iter().map(to_family).collect()),
        attributes: Some(table_attributes(table)),
        durability: thrift2::TDurability::from_name(table.durability().as_str()),
    }
}

/// A namespace from Thrift 2.
pub(super) fn namespace(descriptor: thrift2::TNamespaceDescriptor) -> NamespaceDescriptor {
    NamespaceDescriptor {
        name: descriptor.name,
        configuration: descriptor.configuration.unwrap_or_default(),
    }
}

/// A namespace for Thrift 2; the configuration only if there is any.
pub(super) fn to_namespace(namespace: &NamespaceDescriptor) -> thrift2::TNamespaceDescriptor {
    thrift2::TNamespaceDescriptor {
        name: namespace.name.clone(),
        configuration: (!namespace.configuration.is_empty()).then(|| namespace.configuration.clone()),
    }
}

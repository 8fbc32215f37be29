//! The descriptors of the system tables, as HBase 2.6 gives them to clients.

use super::SystemTable;
use crate::schema::{Attributes, FamilyDescriptor, SYSTEM_NAMESPACE, TableDescriptor, TableName};

/// Options that the families of all system tables have.
const COMMON: [(&str, &str); 3] = [
    ("INDEX_BLOCK_ENCODING", "NONE"),
    ("IN_MEMORY", "true"),
    ("REPLICATION_SCOPE", "0"),
];

/// Options of all families of `hbase:meta`.
const META: [(&str, &str); 2] = [("BLOOMFILTER", "ROWCOL"), ("DATA_BLOCK_ENCODING", "ROW_INDEX_V1")];

/// HBase's entry in every table's descriptor: where its files are tracked.
const FILE_TRACKER: (&str, &str) = ("hbase.store.file-tracker.impl", "DEFAULT");

/// The descriptor of a system table.
pub(super) fn of(table: SystemTable) -> TableDescriptor {
    let name = TableName::new(SYSTEM_NAMESPACE, table.qualifier())
        .expect("the names of the system tables follow the rules");
    let (families, attributes) = match table {
        SystemTable::Meta => {
            let small = [META, [("VERSIONS", "3"), ("BLOCKSIZE", "8192")]].concat();
            let all_versions = [&META[..], &[("VERSIONS", "2147483647")]].concat();
            let families = vec![
                family("info", &small),
                family("rep_barrier", &all_versions),
                family("table", &small),
            ];
            let endpoint = "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|";
            let attributes = options(&[("IS_META", "true"), ("coprocessor$1", endpoint), FILE_TRACKER]);
            (families, attributes)
        }
        SystemTable::Namespace => {
            let info = family("info", &[("VERSIONS", "10"), ("BLOCKSIZE", "8192")]);
            (vec![info], options(&[("IS_META", "false"), FILE_TRACKER]))
        }
        SystemTable::Acl => {
            let rights = [("BLOOMFILTER", "NONE"), ("VERSIONS", "1"), ("BLOCKSIZE", "8192")];
            (
                vec![family("l", &rights)],
                options(&[("IS_META", "false"), FILE_TRACKER]),
            )
        }
    };
    TableDescriptor {
        attributes,
        ..TableDescriptor::new(name, families)
    }
}

fn family(name: &str, own: &[(&str, &str)]) -> FamilyDescriptor {
    FamilyDescriptor::from_attributes(name.as_bytes(), options(&[&COMMON[..], own].concat()))
        .expect("the options of the system tables are readable")
}

fn options(pairs: &[(&str, &str)]) -> Attributes {
    pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

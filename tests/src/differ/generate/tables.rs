//! Tables, and the calls about them.

use crate::dynamic::{Api, Value};

use super::universe::{FAMILIES, TABLES};
use super::{Generator, record};

/// `namespace:qualifier` as Thrift 2 has it.
fn table_name(name: &str) -> Value {
    let (namespace, qualifier) = name.split_once(':').unwrap_or(("", name));
    let namespace = (!namespace.is_empty()).then(|| Value::bytes(namespace));
    record([("ns", namespace), ("qualifier", Some(qualifier.into()))])
}

impl Generator {
    /// A family with options that matter for what is read.
    fn family_descriptor(&mut self, name: &str) -> Value {
        let versions = self.int(1..=4);
        // Explicit timestamps are of 1970: with a TTL they are expired, and only MIN_VERSIONS keeps them.
        let ttl = self.maybe(0.15, |_| 100_000);
        let min_versions = ttl.and_then(|_| self.maybe(0.7, |this| this.int(1..=versions)));
        let keep_deleted = match ttl {
            Some(_) => self.maybe(0.4, |this| this.int(0..=2)),
            None => self.maybe(0.4, |this| this.int(0..=1)),
        };
        record([
            ("name", Some(name.into())),
            ("maxVersions", self.maybe(0.8, |_| versions.into())),
            ("minVersions", min_versions.map(Value::Int)),
            ("timeToLive", ttl.map(Value::Int)),
            ("keepDeletedCells", keep_deleted.map(Value::Int)),
            ("bloomnFilterType", self.maybe(0.5, |this| this.int(0..=2).into())),
            (
                "dataBlockEncoding",
                self.maybe(0.5, |this| this.one_of(&[0_i64, 2, 3, 4, 7]).into()),
            ),
            ("compressionType", self.maybe(0.2, |_| 1.into())),
            (
                "blockSize",
                self.maybe(0.5, |this| this.one_of(&[1024_i64, 65536]).into()),
            ),
            ("inMemory", self.maybe(0.2, |this| this.chance(0.5).into())),
            (
                "blockCacheEnabled",
                self.maybe(0.2, |this| this.chance(0.5).into()),
            ),
        ])
    }

    pub(super) fn create_tables(&mut self) {
        let namespace = Value::Struct(vec![("name", "nsp0".into())]);
        self.call(Api::Two, "createNamespace", [("namespaceDesc", namespace)]);
        for table in TABLES {
            let families: Vec<_> = FAMILIES.iter().map(|name| self.family_descriptor(name)).collect();
            let descriptor = record([
                ("tableName", Some(table_name(table))),
                ("columns", Some(families.into())),
            ]);
            let splits = self.maybe(0.5, |this| this.one_of(&[vec!["c"], vec!["b0", "e"]]));
            let splits = splits.map(|keys| Value::List(keys.into_iter().map(Value::from).collect()));
            let args = [("desc", descriptor)];
            let splits = splits.map(|keys| ("splitKeys", keys));
            self.call(Api::Two, "createTable", args.into_iter().chain(splits));
        }
    }

    /// A call about tables.
    pub(super) fn admin(&mut self) {
        let table = self.one_of(&[TABLES[0], TABLES[1], "tblx"]);
        let (one, two) = (Value::bytes(table), table_name(table));
        match self.int(0..=19) {
            0 => self.call(Api::Two, "getTableDescriptor", [("table", two)]),
            1 => self.call(Api::One, "getColumnDescriptors", [("tableName", one)]),
            2 => self.call(Api::One, "getTableRegions", [("tableName", one)]),
            3 => self.call(Api::Two, "getAllRegionLocations", [("table", one)]),
            4 => {
                let row = self.row();
                let args = [("table", one), ("row", row), ("reload", true.into())];
                self.call(Api::Two, "getRegionLocation", args);
            }
            5 => self.call(Api::Two, "tableExists", [("tableName", two)]),
            6 => self.call(Api::Two, "isTableEnabled", [("tableName", two)]),
            7 => self.call(Api::Two, "isTableDisabled", [("tableName", two)]),
            8 => self.call(Api::Two, "isTableAvailable", [("tableName", two)]),
            9 => self.call(Api::One, "isTableEnabled", [("tableName", one)]),
            10 => self.call(Api::One, "getTableNames", []),
            11 => self.call(Api::One, "getTableNamesWithIsTableEnabled", []),
            12 => {
                let args = [("regex", "tbl.*".into()), ("includeSysTables", false.into())];
                self.call(Api::Two, "getTableNamesByPattern", args);
            }
            13 => self.call(Api::Two, "getTableNamesByNamespace", [("name", "nsp0".into())]),
            14 => self.call(Api::Two, "getNamespaceDescriptor", [("name", "nsp0".into())]),
            15 => self.call(Api::Two, "listNamespaces", []),
            16 => self.call(
                Api::Two,
                "getTableDescriptorsByNamespace",
                [("name", "nsp0".into())],
            ),
            17 => self.change_family(table),
            18 => self.disabled_for_a_while(table),
            _ => self.truncate(table),
        }
    }

    fn change_family(&mut self, table: &str) {
        let name = self.one_of(&["f", "g", "h"]);
        let family = self.family_descriptor(name);
        match self.int(0..=3) {
            0 => {
                let args = [("tableName", table_name(table)), ("column", family)];
                self.call(Api::Two, "modifyColumnFamily", args);
            }
            1 => {
                let args = [("tableName", table_name(table)), ("column", family)];
                self.call(Api::Two, "addColumnFamily", args);
            }
            2 => {
                let args = [("tableName", table_name(table)), ("column", "h".into())];
                self.call(Api::Two, "deleteColumnFamily", args);
            }
            _ => {
                let families: Vec<_> = FAMILIES.iter().map(|name| self.family_descriptor(name)).collect();
                let descriptor = record([
                    ("tableName", Some(table_name(table))),
                    ("columns", Some(families.into())),
                ]);
                self.call(Api::Two, "modifyTable", [("desc", descriptor)]);
            }
        }
    }

    /// Disables a table, tries this and that, and enables it again.
    fn disabled_for_a_while(&mut self, table: &str) {
        let (one, two) = (Value::bytes(table), table_name(table));
        if self.chance(0.5) {
            self.call(Api::One, "disableTable", [("tableName", one.clone())]);
        } else {
            self.call(Api::Two, "disableTable", [("tableName", two.clone())]);
        }
        for _ in 0..self.int(0..=2) {
            match self.int(0..=4) {
                0 => self.call(Api::Two, "disableTable", [("tableName", two.clone())]),
                1 => self.call(Api::One, "isTableEnabled", [("tableName", one.clone())]),
                2 => self.call(Api::Two, "isTableAvailable", [("tableName", two.clone())]),
                3 => self.change_family(table),
                _ => self.call(Api::One, "getTableNamesWithIsTableEnabled", []),
            }
        }
        if self.chance(0.5) {
            self.call(Api::One, "enableTable", [("tableName", one)]);
        } else {
            self.call(Api::Two, "enableTable", [("tableName", two.clone())]);
        }
        if self.chance(0.3) {
            self.call(Api::Two, "enableTable", [("tableName", two)]);
        }
    }

    fn truncate(&mut self, table: &str) {
        let two = table_name(table);
        let splits = self.chance(0.5);
        let truncate = [("tableName", two.clone()), ("preserveSplits", splits.into())];
        if self.chance(0.3) {
            self.call(Api::Two, "truncateTable", truncate);
            return;
        }
        self.call(Api::Two, "disableTable", [("tableName", two)]);
        self.call(Api::Two, "truncateTable", truncate);
    }
}

//! Tables, and the calls about them.

use basalt_calls::{Api, Value};

use super::super::script::{Line, Step};
use super::universe::{FAMILIES, TABLES};
use super::{Generator, record};

/// `namespace:qualifier` as Thrift 2 has it.
pub(super) fn table_name(name: &str) -> Value {
    let (namespace, qualifier) = name.split_once(':').unwrap_or(("", name));
    let namespace = (!namespace.is_empty()).then(|| Value::bytes(namespace));
    record([("ns", namespace), ("qualifier", Some(qualifier.into()))])
}

impl Generator {
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
        match self.int(0..=9) {
            0..=2 => self.state_of_table(),
            3..=4 => self.list_tables(),
            5 => self.regions(),
            6 => {
                let table = self.some_table();
                self.change_family(table);
            }
            7 => {
                let table = self.some_table();
                self.disabled_for_a_while(table);
            }
            8 => {
                let table = self.some_table();
                self.truncate(table);
            }
            _ => self.come_and_go(),
        }
    }

    pub(super) fn some_table(&mut self) -> &'static str {
        self.one_of(&[TABLES[0], TABLES[1], "tblx"])
    }

    fn state_of_table(&mut self) {
        let table = self.some_table();
        let (one, two) = (Value::bytes(table), table_name(table));
        match self.int(0..=9) {
            0 => self.call(Api::Two, "getTableDescriptor", [("table", two)]),
            1 => self.call(Api::One, "getColumnDescriptors", [("tableName", one)]),
            2 => self.call(Api::Two, "tableExists", [("tableName", two)]),
            3 => self.call(Api::Two, "isTableEnabled", [("tableName", two)]),
            4 => self.call(Api::Two, "isTableDisabled", [("tableName", two)]),
            5 => self.call(Api::Two, "isTableAvailable", [("tableName", two)]),
            6 => self.call(Api::One, "isTableEnabled", [("tableName", one)]),
            7 => self.call(Api::One, "compact", [("tableNameOrRegionName", "tblx".into())]),
            8 => self.call(
                Api::One,
                "majorCompact",
                [("tableNameOrRegionName", "tblx".into())],
            ),
            _ => {
                let keys = Value::List(vec!["c".into()]);
                let args = [("tableName", two), ("splitKeys", keys)];
                self.call(Api::Two, "isTableAvailableWithSplit", args);
            }
        }
    }

    fn list_tables(&mut self) {
        let namespace = self.one_of(&["nsp0", "nsp0", "nsp1", "nspx"]);
        let by_namespace = [("name", Value::bytes(namespace))];
        // A name without namespace is also tried with `default:` before it.
        let regex = self.one_of(&[
            "tbl.*",
            "nsp0:.*",
            ".*tbl[01]",
            "default:tbl0",
            "tbl",
            "nsp.:tbl1|tbl0",
        ]);
        let regex = self.maybe(0.9, |_| Value::bytes(regex));
        let system = [("includeSysTables", Value::Bool(self.chance(0.3)))];
        let by_pattern = regex.map(|regex| ("regex", regex)).into_iter().chain(system);
        match self.int(0..=6) {
            0 => self.call(Api::One, "getTableNames", []),
            1 => self.call(Api::One, "getTableNamesWithIsTableEnabled", []),
            2 => self.call(Api::Two, "getTableNamesByPattern", by_pattern),
            3 => self.call(Api::Two, "getTableDescriptorsByPattern", by_pattern),
            4 => self.call(Api::Two, "getTableNamesByNamespace", by_namespace),
            5 => self.call(Api::Two, "getTableDescriptorsByNamespace", by_namespace),
            _ => {
                let tables = self.list(1..=3, |this| table_name(this.some_table()));
                self.call(Api::Two, "getTableDescriptors", [("tables", tables.into())]);
            }
        }
    }

    fn regions(&mut self) {
        let table = self.some_table();
        let one = Value::bytes(table);
        match self.int(0..=3) {
            0 => self.call(Api::One, "getTableRegions", [("tableName", one)]),
            1 => self.call(Api::Two, "getAllRegionLocations", [("table", one)]),
            2 => {
                let row = self.row();
                let args = [("table", one), ("row", row), ("reload", true.into())];
                self.call(Api::Two, "getRegionLocation", args);
            }
            _ => {
                // The row of hbase:meta at or before this one; no region is as new as the id says.
                let table = if self.splits > 0 { TABLES[1] } else { table };
                let row = [table.as_bytes(), b",", &self.row_bytes(), b",99999999999999"].concat();
                self.call(Api::One, "getRegionInfo", [("row", Value::Bytes(row))]);
            }
        }
    }

    /// Makes or deletes a table that only this is about, or one of those that stay.
    fn come_and_go(&mut self) {
        let table = self.one_of(&["tbl2", "tbl2", "tbl2", "nsp1:tbl3", "tbl0", "nspx:tbl4"]);
        let (one, two) = (Value::bytes(table), table_name(table));
        match self.int(0..=3) {
            0 => {
                let families = self.list(0..=2, |this| this.one_of(&["f", "g", "h:"]));
                let families: Vec<_> = families
                    .into_iter()
                    .map(|name| Value::Struct(vec![("name", name.into())]))
                    .collect();
                let args = [("tableName", one), ("columnFamilies", families.into())];
                self.call(Api::One, "createTable", args);
            }
            1 => {
                let families = self.list(0..=2, |this| {
                    let name = this.one_of(&["f", "g", "h"]);
                    this.family_descriptor(name)
                });
                let descriptor = record([
                    ("tableName", Some(two)),
                    ("columns", Some(families.into())),
                    ("attributes", self.maybe(0.3, Self::attributes)),
                    ("durability", self.maybe(0.3, |this| this.int(0..=4).into())),
                ]);
                self.call(Api::Two, "createTable", [("desc", descriptor)]);
            }
            _ => {
                // Tables that stay are deleted only while they are enabled, which is an error.
                if table == "tbl2" || table == "nsp1:tbl3" {
                    self.call(Api::Two, "disableTable", [("tableName", two.clone())]);
                }
                if self.chance(0.5) {
                    self.call(Api::One, "deleteTable", [("tableName", one)]);
                } else {
                    self.call(Api::Two, "deleteTable", [("tableName", two)]);
                }
            }
        }
    }

    /// A split on both servers at the same key. HBase compacts the daughters, which drops
    /// tombstones, and a file may have no cells of one of the daughters; so both servers compact
    /// before and after.
    pub(super) fn split(&mut self) {
        let table = TABLES[0].to_owned();
        let row = self.row_bytes();
        let steps = [
            Step::Flush(table.clone()),
            Step::MajorCompact(table.clone()),
            Step::Split(table.clone(), row),
            Step::MajorCompact(table),
        ];
        self.lines.extend(steps.map(Line::from));
        self.splits += 1;
        self.majors.insert(TABLES[0].to_owned());
    }

    /// HBase flushes a table when it opens its regions again with another descriptor, and cells
    /// that families do not keep are gone then; so the script flushes on both. Regions of a
    /// disabled table have nothing to flush.
    fn change_family(&mut self, table: &str) {
        if self.only_table.is_none() {
            self.lines.push(Step::Flush(table.to_owned()).into());
        }
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
    fn disabled_for_a_while(&mut self, table: &'static str) {
        let (one, two) = (Value::bytes(table), table_name(table));
        if self.chance(0.5) {
            self.call(Api::One, "disableTable", [("tableName", one.clone())]);
        } else {
            self.call(Api::Two, "disableTable", [("tableName", two.clone())]);
        }
        self.only_table = Some(table);
        for _ in 0..self.int(0..=4) {
            match self.int(0..=7) {
                0 => self.call(Api::Two, "disableTable", [("tableName", two.clone())]),
                1 => self.call(Api::One, "isTableEnabled", [("tableName", one.clone())]),
                2 => self.call(Api::Two, "isTableAvailable", [("tableName", two.clone())]),
                3 => self.change_family(table),
                4 => self.call(Api::One, "getTableNamesWithIsTableEnabled", []),
                5 if self.rest_next() => self.rest_write(),
                5 => self.write(),
                6 if self.rest_next() => self.rest_read(),
                6 => self.read(),
                _ => self.regions(),
            }
        }
        self.only_table = None;
        self.close_scanners();
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

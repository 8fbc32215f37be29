//! Reads of `hbase:meta` and `hbase:namespace`: states, names and numbers, not ids and addresses.

use basalt_calls::{Api, Value};

use super::universe::TABLES;
use super::{Generator, record};

/// A column as Thrift 2 has it.
fn column(family: &str, qualifier: &str) -> Value {
    Value::Struct(vec![("family", family.into()), ("qualifier", qualifier.into())])
}

impl Generator {
    /// A call about a system table.
    pub(super) fn system(&mut self) {
        let table = self.one_of(&[TABLES[0], TABLES[1], "tblx"]);
        let namespace = self.one_of(&["nsp0", "nsp1", "nspx"]);
        let split_never = if self.splits > 0 { TABLES[1] } else { table };
        match self.int(0..=6) {
            0 => self.get_system("hbase:meta", table, column("table", "state")),
            1 => self.get_system("hbase:namespace", namespace, column("info", "d")),
            2 => {
                let args = [
                    ("tableName", "hbase:meta".into()),
                    ("row", table.into()),
                    ("attributes", Value::Map(Vec::new())),
                ];
                self.call(Api::One, "getRow", args);
            }
            3 => self.scan_regions(
                split_never,
                vec![("columns", vec![column("info", "state")].into())],
            ),
            4 => self.scan_regions(
                split_never,
                vec![(
                    "filterString",
                    "FirstKeyOnlyFilter () AND KeyOnlyFilter ()".into(),
                )],
            ),
            5 => {
                let scan = Value::Struct(vec![("startRow", "nsp".into()), ("stopRow", "nsp~".into())]);
                let args = [
                    ("table", "hbase:namespace".into()),
                    ("tscan", scan),
                    ("numRows", 20.into()),
                ];
                self.call(Api::Two, "getScannerResults", args);
            }
            _ => {
                let table = self.one_of(&["meta", "namespace"]);
                let name = record([("ns", Some("hbase".into())), ("qualifier", Some(table.into()))]);
                let method = self.one_of(&["tableExists", "isTableEnabled", "isTableAvailable"]);
                self.call(Api::Two, method, [("tableName", name)]);
            }
        }
    }

    fn get_system(&mut self, table: &str, row: &str, column: Value) {
        let get = Value::Struct(vec![("row", row.into()), ("columns", vec![column].into())]);
        let method = self.one_of(&["get", "exists"]);
        self.call(Api::Two, method, [("table", table.into()), ("tget", get)]);
    }

    /// The rows of a table's regions.
    fn scan_regions(&mut self, table: &str, fields: Vec<(&'static str, Value)>) {
        let mut scan = vec![
            ("startRow", Value::bytes(format!("{table},"))),
            ("stopRow", Value::bytes(format!("{table}-"))),
        ];
        scan.extend(fields);
        let args = [
            ("table", "hbase:meta".into()),
            ("tscan", Value::Struct(scan)),
            ("numRows", 20.into()),
        ];
        self.call(Api::Two, "getScannerResults", args);
    }
}

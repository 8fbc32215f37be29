//! REST calls that write.

use basalt_calls::Value;

use super::super::universe::COUNTERS;
use super::super::{Generator, record};

fn cells_of(row: &Value) -> &[Value] {
    match row.field("cells") {
        Some(Value::List(cells)) => cells,
        _ => &[],
    }
}

impl Generator {
    /// A REST call that writes.
    pub(in super::super) fn rest_write(&mut self) {
        match self.int(0..=99) {
            0..=34 => self.rest_put(),
            35..=46 => self.rest_put_value(),
            47..=64 => self.rest_delete(),
            65..=73 => self.rest_check_put(),
            74..=81 => self.rest_check_delete(),
            82..=90 => self.rest_increment(),
            _ => self.rest_append(),
        }
    }

    /// A path of a write: a row, and the columns of cells that have none.
    fn rest_write_path(&mut self, encoded: bool, columns: Vec<Value>) -> Value {
        let columns = (!columns.is_empty()).then(|| columns.into());
        let row = self.rest_row(encoded);
        record([("row", Some(Value::Bytes(row))), ("columns", columns)])
    }

    /// Takes the column away from some cells; returns those columns, for the path.
    fn rest_to_path(&mut self, cells: &mut [Value], probability: f64) -> Vec<Value> {
        let mut columns = Vec::new();
        for cell in cells {
            let moves = self.chance(probability);
            if let (true, Value::Struct(fields)) = (moves, cell)
                && let Some(at) = fields.iter().position(|(name, _)| *name == "column")
            {
                columns.push(fields.remove(at).1);
            }
        }
        // Rarely one is missing.
        if self.chance(0.02) {
            columns.pop();
        }
        columns
    }

    fn rest_cell(&mut self) -> Value {
        let column = if self.chance(0.01) {
            self.family()
        } else {
            self.column()
        };
        record([
            ("column", Some(column)),
            ("timestamp", self.maybe(0.85, Self::timestamp)),
            ("value", Some(self.value())),
        ])
    }

    /// Writes rows: the key of the only one may be in the path. In protobuf a key or column that is not there
    /// is an empty one in HBase.
    fn rest_write_rows(
        &mut self,
        rows: Vec<Value>,
        path: Value,
        check: Option<&str>,
        encoding: Option<Value>,
    ) {
        let returns = check.is_some_and(|check| check == "increment" || check == "append");
        let returns = if returns {
            self.maybe(0.5, |this| this.chance(0.9))
        } else {
            None
        };
        let accept = (returns == Some(true)).then(|| self.rest_body());
        let is_whole = rows.iter().all(|row| row.field("key").is_some())
            && !rows
                .iter()
                .any(|row| cells_of(row).iter().any(|cell| cell.field("column").is_none()));
        let body = if is_whole {
            self.rest_body()
        } else {
            self.one_of(&["json", "xml"]).into()
        };
        let args = [
            ("table", Some(self.table())),
            ("path", Some(path)),
            ("rows", Some(rows.into())),
            ("check", check.map(Value::bytes)),
            ("returns", returns.map(Value::Bool)),
            ("post", self.maybe(0.3, |_| true.into())),
            ("encoding", encoding),
            ("body", Some(body)),
            ("accept", accept),
            ("gzip", self.rest_gzip()),
        ];
        self.rest_call("put", args);
    }

    /// One row: its key in the body, in the path, or another one in each.
    fn rest_one_row(&mut self, cells: Vec<Value>, columns: Vec<Value>, check: Option<&str>) {
        let encoding = self.rest_encoding();
        let path = self.rest_write_path(encoding.is_some(), columns);
        let key = self.maybe(0.6, Self::row);
        let row = record([("key", key), ("cells", Some(cells.into()))]);
        self.rest_write_rows(vec![row], path, check, encoding);
    }

    fn rest_put(&mut self) {
        if self.chance(0.6) {
            let mut cells = self.list(1..=3, Self::rest_cell);
            // The path's columns are sorted, so only one keeps its cell.
            let columns = if cells.len() == 1 {
                self.rest_to_path(&mut cells, 0.4)
            } else {
                Vec::new()
            };
            self.rest_one_row(cells, columns, None);
            return;
        }
        let rows = self.known(1..=4, |this| {
            let cells = this.list(1..=3, Self::rest_cell);
            record([("key", Some(this.row())), ("cells", Some(cells.into()))])
        });
        let path = Value::Struct(vec![("row", "$multiput".into())]);
        self.rest_write_rows(rows, path, None, None);
    }

    fn rest_put_value(&mut self) {
        let encoding = self.rest_encoding();
        let column = self.column();
        let path = self.rest_write_path(encoding.is_some(), vec![column]);
        let args = [
            ("table", Some(self.table())),
            ("path", Some(path)),
            ("value", Some(self.value())),
            ("xRow", self.maybe(0.1, |this| Value::Bytes(this.rest_row(false)))),
            ("xColumn", self.maybe(0.1, Self::column)),
            ("xTimestamp", self.maybe(0.7, Self::timestamp)),
            ("post", self.maybe(0.3, |_| true.into())),
            ("encoding", encoding),
        ];
        self.rest_call("putValue", args);
    }

    fn rest_delete(&mut self) {
        let encoding = self.rest_encoding();
        let columns = self.maybe(0.7, |this| this.rest_columns(1..=2));
        let row = self.rest_row(encoding.is_some());
        let path = record([
            ("row", Some(Value::Bytes(row))),
            ("columns", columns),
            ("to", self.maybe(0.8, Self::timestamp)),
        ]);
        let args = [
            ("table", Some(self.table())),
            ("path", Some(path)),
            ("encoding", encoding),
        ];
        self.rest_call("delete", args);
    }

    /// The last cell is the expected one; mostly its column is written.
    fn rest_check_put(&mut self) {
        let mut cells = self.list(1..=3, Self::rest_cell);
        let column = match cells.first().and_then(|cell| cell.field("column")) {
            Some(column) if self.chance(0.9) => column.clone(),
            _ => self.column(),
        };
        let expected = Value::Struct(vec![("column", column), ("value", self.value())]);
        cells.push(expected);
        self.rest_one_row(cells, Vec::new(), Some("put"));
    }

    fn rest_check_delete(&mut self) {
        let mut cells = self.list(0..=2, |this| {
            let column = this.read_column();
            record([
                ("column", Some(column)),
                ("timestamp", this.maybe(0.7, Self::timestamp)),
                ("value", Some("".into())),
            ])
        });
        let expected = Value::Struct(vec![("column", self.column()), ("value", self.value())]);
        cells.push(expected);
        let columns = if cells.len() == 1 {
            self.rest_to_path(&mut cells, 0.3)
        } else {
            Vec::new()
        };
        self.rest_one_row(cells, columns, Some("delete"));
    }

    fn rest_increment(&mut self) {
        let cell = |this: &mut Self| {
            let column = format!("{}:{}", this.family_name(), this.one_of(&COUNTERS));
            let amount = if this.chance(0.02) {
                "x".to_owned()
            } else {
                this.int(-5..=5).to_string()
            };
            record([
                ("column", Some(Value::bytes(column))),
                ("value", Some(Value::bytes(amount))),
            ])
        };
        let mut cells = self.distinct(1..=2, cell, |cell| cell.field("column").cloned());
        let columns = if cells.len() == 1 {
            self.rest_to_path(&mut cells, 0.3)
        } else {
            Vec::new()
        };
        self.rest_one_row(cells, columns, Some("increment"));
    }

    fn rest_append(&mut self) {
        let cell = |this: &mut Self| record([("column", Some(this.column())), ("value", Some(this.value()))]);
        let mut cells = self.distinct(1..=2, cell, |cell| cell.field("column").cloned());
        let columns = if cells.len() == 1 {
            self.rest_to_path(&mut cells, 0.3)
        } else {
            Vec::new()
        };
        self.rest_one_row(cells, columns, Some("append"));
    }
}

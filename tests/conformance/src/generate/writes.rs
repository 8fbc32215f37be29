//! Calls that write.

use basalt_calls::{Api, Value};

use super::universe::COUNTERS;
use super::{Generator, record};

/// Family and qualifier of a struct that has them.
fn column_of(value: &Value) -> (Option<Value>, Option<Value>) {
    (value.field("family").cloned(), value.field("qualifier").cloned())
}

impl Generator {
    /// A call that writes.
    pub(super) fn write(&mut self) {
        match self.int(0..=99) {
            0..=24 => self.put(),
            25..=39 => self.delete_two(),
            40..=46 => self.increment_two(),
            47..=52 => self.append_two(),
            53..=60 => self.check_two(),
            61..=66 => {
                let row = self.row();
                let mutations = self.row_mutations(row);
                let table = self.table();
                let args = [("table", table), ("trowMutations", mutations)];
                self.call(Api::Two, "mutateRow", args);
            }
            67..=79 => self.mutate_one(),
            80..=88 => self.delete_one(),
            89..=94 => self.increment_one(),
            95..=96 => self.append_one(),
            _ => self.check_one(),
        }
    }

    fn timestamp_mostly(&mut self) -> Option<Value> {
        self.maybe(0.9, Self::timestamp)
    }

    fn column_value(&mut self) -> Value {
        record([
            ("family", Some(self.family())),
            ("qualifier", Some(self.qualifier())),
            ("value", Some(self.value())),
            ("timestamp", self.maybe(0.5, Self::timestamp)),
        ])
    }

    fn durability(&mut self) -> Option<Value> {
        self.maybe(0.2, |this| this.int(0..=4).into())
    }

    fn tput(&mut self, row: Value) -> Value {
        record([
            ("row", Some(row)),
            ("columnValues", Some(self.list(1..=3, Self::column_value).into())),
            ("timestamp", self.timestamp_mostly()),
            ("attributes", self.maybe(0.1, Self::attributes)),
            ("durability", self.durability()),
        ])
    }

    fn put(&mut self) {
        let table = self.table();
        if self.chance(0.6) {
            let row = self.row();
            let tput = self.tput(row);
            self.call(Api::Two, "put", [("table", table), ("tput", tput)]);
        } else {
            let tputs = self.known(1..=4, |this| {
                let row = this.row();
                this.tput(row)
            });
            self.call(
                Api::Two,
                "putMultiple",
                [("table", table), ("tputs", tputs.into())],
            );
        }
    }

    fn tdelete(&mut self, row: Value) -> Value {
        let columns = self.maybe(0.7, |this| {
            this.list(1..=2, |this| {
                record([
                    ("family", Some(this.family())),
                    ("qualifier", this.maybe(0.8, Self::qualifier)),
                    ("timestamp", this.maybe(0.3, Self::timestamp)),
                ])
            })
        });
        record([
            ("row", Some(row)),
            ("columns", columns.map(Value::List)),
            ("timestamp", self.timestamp_mostly()),
            ("deleteType", self.maybe(0.7, |this| this.int(0..=3).into())),
            ("durability", self.durability()),
        ])
    }

    fn delete_two(&mut self) {
        let table = self.table();
        if self.chance(0.7) {
            let row = self.row();
            let tdelete = self.tdelete(row);
            self.call(Api::Two, "deleteSingle", [("table", table), ("tdelete", tdelete)]);
        } else {
            let tdeletes = self.known(1..=3, |this| {
                let row = this.row();
                this.tdelete(row)
            });
            let args = [("table", table), ("tdeletes", tdeletes.into())];
            self.call(Api::Two, "deleteMultiple", args);
        }
    }

    fn increment_two(&mut self) {
        let column = |this: &mut Self| {
            let qualifier = this.one_of(&COUNTERS);
            record([
                ("family", Some(this.family())),
                ("qualifier", Some(qualifier.into())),
                ("amount", this.maybe(0.7, |this| this.int(-5..=5).into())),
            ])
        };
        let columns = self.distinct(1..=2, column, column_of);
        let tincrement = record([
            ("row", Some(self.row())),
            ("columns", Some(columns.into())),
            ("durability", self.durability()),
            ("returnResults", self.maybe(0.2, |this| this.chance(0.8).into())),
        ]);
        let table = self.table();
        self.call(
            Api::Two,
            "increment",
            [("table", table), ("tincrement", tincrement)],
        );
    }

    fn append_two(&mut self) {
        // The effect of one append on a column that it names twice is undefined: HBase loses the
        // first value.
        let column = |this: &mut Self| {
            record([
                ("family", Some(this.family())),
                ("qualifier", Some(this.qualifier())),
                ("value", Some(this.value())),
            ])
        };
        let columns = self.distinct(1..=2, column, column_of);
        let tappend = record([
            ("row", Some(self.row())),
            ("columns", Some(columns.into())),
            ("durability", self.durability()),
            ("returnResults", self.maybe(0.2, |this| this.chance(0.8).into())),
        ]);
        let table = self.table();
        self.call(Api::Two, "append", [("table", table), ("tappend", tappend)]);
    }

    fn row_mutations(&mut self, row: Value) -> Value {
        let mutations = self.list(1..=3, |this| {
            if this.chance(0.6) {
                Value::Struct(vec![("put", this.tput(row.clone()))])
            } else {
                Value::Struct(vec![("deleteSingle", this.tdelete(row.clone()))])
            }
        });
        Value::Struct(vec![("row", row), ("mutations", mutations.into())])
    }

    fn check_two(&mut self) {
        let row = self.row();
        let mut args = vec![
            ("table", self.table()),
            ("row", row.clone()),
            ("family", self.family()),
            ("qualifier", self.qualifier()),
        ];
        match self.int(0..=3) {
            0 => {
                args.extend(self.maybe(0.6, |this| ("value", this.value())));
                args.push(("tput", self.tput(row)));
                self.call(Api::Two, "checkAndPut", args);
            }
            1 => {
                args.extend(self.maybe(0.6, |this| ("value", this.value())));
                args.push(("tdelete", self.tdelete(row)));
                self.call(Api::Two, "checkAndDelete", args);
            }
            _ => {
                args.push(("compareOperator", self.int(0..=5).into()));
                args.push(("value", self.value()));
                args.push(("rowMutations", self.row_mutations(row)));
                self.call(Api::Two, "checkAndMutate", args);
            }
        }
    }

    fn mutation(&mut self) -> Value {
        let delete = self.chance(0.3);
        let column = if delete { self.read_column() } else { self.column() };
        record([
            ("isDelete", Some(delete.into())),
            ("column", Some(column)),
            ("value", Some(self.value())),
            ("writeToWAL", Some(self.chance(0.9).into())),
        ])
    }

    fn mutate_one(&mut self) {
        let table = self.table();
        let attributes = self.attributes();
        let timestamp = self.timestamp();
        let timed = self.chance(0.9);
        let mut args = vec![("tableName", table)];
        if self.chance(0.6) {
            args.push(("row", self.row()));
            // Deletes and puts without a timestamp in one call would hide each other or not, by the clock.
            let mutations = if timed {
                self.list(1..=3, Self::mutation)
            } else {
                self.list(1..=1, Self::mutation)
            };
            args.push(("mutations", mutations.into()));
        } else {
            let batches = self.known(1..=3, |this| {
                let len = if timed { 1..=2 } else { 1..=1 };
                record([
                    ("row", Some(this.row())),
                    ("mutations", Some(this.list(len, Self::mutation).into())),
                ])
            });
            args.push(("rowBatches", batches.into()));
        }
        let method = match (args.len(), timed) {
            (3, true) => "mutateRowTs",
            (3, false) => "mutateRow",
            (_, true) => "mutateRowsTs",
            (_, false) => "mutateRows",
        };
        if timed {
            args.push(("timestamp", timestamp));
        }
        args.push(("attributes", attributes));
        self.call(Api::One, method, args);
    }

    fn delete_one(&mut self) {
        let mut args = vec![("tableName", self.table()), ("row", self.row())];
        let timed = self.chance(0.8);
        let column = self.maybe(0.6, Self::read_column);
        let method = match (&column, timed) {
            (Some(_), true) => "deleteAllTs",
            (Some(_), false) => "deleteAll",
            (None, true) => "deleteAllRowTs",
            (None, false) => "deleteAllRow",
        };
        args.extend(column.map(|column| ("column", column)));
        if timed {
            args.push(("timestamp", self.timestamp()));
        }
        args.push(("attributes", self.attributes()));
        self.call(Api::One, method, args);
    }

    fn counter_column(&mut self) -> Value {
        let family = self.family_name();
        let qualifier = self.one_of(&COUNTERS);
        Value::bytes(format!("{family}:{qualifier}"))
    }

    fn increment_one(&mut self) {
        if self.chance(0.6) {
            let args = [
                ("tableName", self.table()),
                ("row", self.row()),
                ("column", self.counter_column()),
                ("value", self.int(-5..=5).into()),
            ];
            self.call(Api::One, "atomicIncrement", args);
            return;
        }
        let increment = |this: &mut Self| {
            record([
                ("table", Some(this.table())),
                ("row", Some(this.row())),
                ("column", Some(this.counter_column())),
                ("ammount", Some(this.int(-5..=5).into())),
            ])
        };
        if self.chance(0.5) {
            let increment = increment(self);
            self.call(Api::One, "increment", [("increment", increment)]);
        } else {
            // One column twice: whether HBase keeps one version or two depends on its clock.
            self.only_known = true;
            let increments = self.distinct(1..=3, increment, |increment| {
                ["table", "row", "column"].map(|field| increment.field(field).cloned())
            });
            self.only_known = false;
            self.call(Api::One, "incrementRows", [("increments", increments.into())]);
        }
    }

    fn append_one(&mut self) {
        let columns = self.distinct(1..=2, Self::column, Value::clone);
        let values: Vec<_> = columns.iter().map(|_| self.value()).collect();
        let append = record([
            ("table", Some(self.table())),
            ("row", Some(self.row())),
            ("columns", Some(columns.into())),
            ("values", Some(values.into())),
        ]);
        self.call(Api::One, "append", [("append", append)]);
    }

    fn check_one(&mut self) {
        let args = [
            ("tableName", self.table()),
            ("row", self.row()),
            ("column", self.column()),
            ("value", self.value()),
            (
                "mput",
                record([
                    ("isDelete", Some(false.into())),
                    ("column", Some(self.column())),
                    ("value", Some(self.value())),
                    ("writeToWAL", Some(true.into())),
                ]),
            ),
            ("attributes", self.attributes()),
        ];
        self.call(Api::One, "checkAndPut", args);
    }
}

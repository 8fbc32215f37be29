//! Calls over native RPC: those that Thrift has, and those that it lacks (batches of every kind of action,
//! conditions with filters, scans that show each answer, nonces).
//!
//! Left out, because answers would depend on a clock or on chance:
//!
//! - In a batch or group all puts and deletes have timestamps, and there is at most one increment or append.
//! - A nonce is repeated at once or never: later writes would show, here and not in HBase.
//! - A scan has a batch or a filter or a limit of rows, not several of them, as over Thrift.
//! - A scan with a batch is read to its end, without probes: hidden cells make HBase answer once more
//!   at the end of a region (rule `may-have-more`).
//! - A raw scan has no FirstKeyValueMatchingQualifiersFilter: HBase may look for its next cell for ever, and
//!   gives no answer. A raw read has no named columns: HBase rejects it, and keeps its read point. Nor does
//!   it count cells, in a filter, for an offset or for a limit: HBase shows fewer tombstones (rule
//!   `kept-tombstones`).
//! - Only scans without batch, filter and time ranges have metrics, and a scan with a filter has no time
//!   ranges: each server looks at other rows, which metrics count and which may end a filter.
//!
//! Conditions compare with BinaryComparator: HBase takes any other comparator for one.

use basalt_calls::native::service::{ClientKind, Probe};
use basalt_calls::{Api, Value};
use basalt_types::filter::FilterSpec;

use super::super::script::Line;
use super::universe::{COUNTERS, TABLES};
use super::{Generator, record};

/// Codes of `MutationType`.
const APPEND: i64 = 0;
const INCREMENT: i64 = 1;
const PUT: i64 = 2;
const DELETE: i64 = 3;

/// Codes of `DeleteType` for families; smaller ones are for columns.
const DELETE_FAMILY: i64 = 2;

/// `_ttl` of puts: cells with explicit timestamps are expired with the first and not with the second.
const TIMES_TO_LIVE_MS: [i64; 2] = [100_000_000, 100_000_000_000_000];

/// Calls of a scan that is read to its end: more than a table has cells.
const CALLS_TO_THE_END: i64 = 1000;

/// Whether a mutation's cells may be of the server's time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Explicit,
    Any,
}

/// Takes `_raw_` away from a read that has no comparable answer when it is raw.
fn without_bad_raw(mut read: Value) -> Value {
    let names_columns = |columns: &Value| match columns {
        Value::List(columns) => columns.iter().any(|column| column.field("qualifiers").is_some()),
        _ => false,
    };
    let counts_cells = ["filter", "storeLimit", "storeOffset"]
        .iter()
        .any(|field| read.field(field).is_some());
    let is_bad = counts_cells || read.field("columns").is_some_and(names_columns);
    if let (true, Value::Struct(fields)) = (is_bad, &mut read) {
        fields.retain(|(name, _)| *name != "attributes");
    }
    read
}

fn column_of(cell: &Value) -> (Option<Value>, Option<Value>) {
    (cell.field("family").cloned(), cell.field("qualifier").cloned())
}

impl Generator {
    /// A native call that writes.
    pub(super) fn native_write(&mut self) {
        match self.int(0..=99) {
            0..=39 => self.mutate(),
            40..=54 => self.mutate_if(),
            55..=79 => self.batch(),
            _ => self.group(),
        }
    }

    /// A native call that reads.
    pub(super) fn native_read(&mut self) {
        match self.int(0..=99) {
            0..=29 => {
                let row = self.row();
                let args = [("table", Some(self.table())), ("get", Some(self.get(row)))];
                self.native("get", args);
            }
            30..=39 => self.gets(),
            _ => self.scan(),
        }
    }

    /// A native read of a system table.
    pub(super) fn native_system(&mut self) {
        let (table, row, family, qualifier) = if self.chance(0.6) {
            let table = self.one_of(&[TABLES[0], TABLES[1], "tblx"]);
            ("hbase:meta", table, "table", "state")
        } else {
            let namespace = self.one_of(&["nsp0", "nsp1", "nspx"]);
            ("hbase:namespace", namespace, "info", "d")
        };
        let column = Value::Struct(vec![
            ("family", family.into()),
            ("qualifiers", vec![qualifier.into()].into()),
        ]);
        let get = Value::Struct(vec![("row", row.into()), ("columns", vec![column].into())]);
        self.native("get", [("table", Some(table.into())), ("get", Some(get))]);
    }

    fn native<const N: usize>(&mut self, method: &str, args: [(&'static str, Option<Value>); N]) {
        let kind = match self.int(0..=9) {
            0..=6 => ClientKind::Java,
            7 => ClientKind::Versionless,
            _ => ClientKind::Bare,
        };
        let client = (kind != ClientKind::Java).then_some(Value::Int(kind as i64));
        let Value::Struct(args) = record(args.into_iter().chain([("client", client)])) else {
            unreachable!("a record is a struct")
        };
        self.call(Api::Native, method, args);
    }

    fn attribute(&mut self, probability: f64, name: &str, value: &[u8]) -> Option<Value> {
        let pair = (Value::bytes(name), Value::bytes(value));
        self.maybe(probability, |_| Value::Map(vec![pair]))
    }

    fn mutate(&mut self) {
        let kind = self.one_of(&[PUT, PUT, PUT, DELETE, DELETE, INCREMENT, APPEND]);
        let row = self.row();
        let mut mutation = self.native_mutation(kind, row, Time::Any);
        let repeated = kind < PUT && self.chance(0.2);
        if let (true, Value::Struct(fields)) = (repeated, &mut mutation) {
            self.nonces += 1;
            fields.push(("nonce", self.nonces.into()));
        }
        let table = self.table();
        self.native("mutate", [("table", Some(table)), ("mutation", Some(mutation))]);
        if repeated {
            let step = self.lines.last().map(|line| line.step.clone());
            self.lines.extend(step.map(Line::from));
        }
    }

    fn mutate_if(&mut self) {
        let row = self.row();
        let kind = self.one_of(&[PUT, PUT, DELETE, INCREMENT, APPEND]);
        let args = [
            ("table", Some(self.table())),
            (
                "mutation",
                Some(self.native_mutation(kind, row.clone(), Time::Any)),
            ),
            ("condition", Some(self.condition(row, Self::readable_filter))),
        ];
        self.native("mutate", args);
    }

    /// Actions that succeed or fail each by itself.
    fn batch(&mut self) {
        let mut updates = 1;
        let actions = self.list(1..=5, |this| {
            let row = this.row();
            match this.int(0..=9) {
                0..=1 => Value::Struct(vec![("get", this.get(row))]),
                2 if updates > 0 => {
                    updates -= 1;
                    let kind = this.one_of(&[INCREMENT, APPEND]);
                    Value::Struct(vec![("mutation", this.native_mutation(kind, row, Time::Any))])
                }
                choice => {
                    let kind = if choice < 5 { DELETE } else { PUT };
                    Value::Struct(vec![(
                        "mutation",
                        this.native_mutation(kind, row, Time::Explicit),
                    )])
                }
            }
        });
        let groups = vec![Value::Struct(vec![("actions", actions.into())])];
        let table = self.table();
        self.native("multi", [("table", Some(table)), ("groups", Some(groups.into()))]);
    }

    /// Groups of writes to one row or to two, all or nothing, some with conditions.
    fn group(&mut self) {
        let mut updates = 1;
        // A condition of the request is for one group in HBase.
        let old_condition = self.maybe(0.1, |_| true.into());
        let groups = self.list(1..=if old_condition.is_some() { 1 } else { 2 }, |this| {
            let rows = this.list(1..=2, Self::row);
            let condition = this.maybe(0.5, |this| this.condition(rows[0].clone(), Self::known_filter));
            // A condition is for one row in HBase.
            let rows = if condition.is_some() {
                &rows[..1]
            } else {
                &rows[..]
            };
            let actions = this.list(1..=3, |this| {
                let row = this.one_of(rows);
                let (kind, time) = match this.int(0..=9) {
                    0 if updates > 0 => {
                        updates -= 1;
                        (this.one_of(&[INCREMENT, APPEND]), Time::Any)
                    }
                    0..=4 => (DELETE, Time::Explicit),
                    _ => (PUT, Time::Explicit),
                };
                Value::Struct(vec![("mutation", this.native_mutation(kind, row, time))])
            });
            record([
                ("atomic", Some(true.into())),
                ("condition", condition),
                ("actions", Some(actions.into())),
            ])
        });
        let args = [
            ("table", Some(self.table())),
            ("groups", Some(groups.into())),
            ("oldCondition", old_condition),
        ];
        self.native("multi", args);
    }

    fn native_mutation(&mut self, kind: i64, row: Value, time: Time) -> Value {
        let (cells, attributes) = match kind {
            PUT => {
                let ttl = self.one_of(&TIMES_TO_LIVE_MS).to_be_bytes();
                (Some(self.put_cells()), self.attribute(0.03, "_ttl", &ttl))
            }
            DELETE => (self.delete_cells(time), self.attribute(0.03, "color", b"blue")),
            INCREMENT => (Some(self.increment_cells()), self.attribute(0.1, "_rr_", b"\0")),
            _ => (Some(self.append_cells()), self.attribute(0.1, "_rr_", b"\0")),
        };
        let timestamp = match (kind, time) {
            (PUT | DELETE, Time::Explicit) => Some(self.timestamp()),
            (PUT | DELETE, Time::Any) => self.maybe(0.9, Self::timestamp),
            _ => None,
        };
        let reads = kind < PUT;
        record([
            ("type", Some(kind.into())),
            ("row", Some(row)),
            ("cells", cells.map(Value::from)),
            ("timestamp", timestamp),
            ("attributes", attributes),
            ("durability", self.maybe(0.2, |this| this.int(0..=4).into())),
            (
                "timeRange",
                self.maybe(if reads { 0.1 } else { 0.0 }, Self::range),
            ),
            ("inline", self.maybe(0.5, |_| true.into())),
        ])
    }

    fn put_cells(&mut self) -> Vec<Value> {
        self.list(1..=3, |this| {
            record([
                ("family", Some(this.family())),
                ("qualifier", Some(this.qualifier())),
                ("value", Some(this.value())),
                ("timestamp", this.maybe(0.5, Self::timestamp)),
            ])
        })
    }

    /// `None` deletes the row.
    ///
    /// The timestamp of a mutation is not that of its cells inside the message.
    fn delete_cells(&mut self, time: Time) -> Option<Vec<Value>> {
        let has_time = if time == Time::Explicit { 1.0 } else { 0.3 };
        self.maybe(0.8, |this| {
            this.list(1..=2, |this| {
                let delete = this.int(0..=3);
                record([
                    ("family", Some(this.family())),
                    ("qualifier", (delete < DELETE_FAMILY).then(|| this.qualifier())),
                    ("timestamp", this.maybe(has_time, Self::timestamp)),
                    ("delete", Some(delete.into())),
                ])
            })
        })
    }

    fn increment_cells(&mut self) -> Vec<Value> {
        let cell = |this: &mut Self| {
            let (qualifier, amount) = (this.one_of(&COUNTERS), this.int(-5..=5));
            record([
                ("family", Some(this.family())),
                ("qualifier", Some(qualifier.into())),
                ("value", Some(Value::bytes(amount.to_be_bytes()))),
            ])
        };
        self.distinct(1..=2, cell, column_of)
    }

    fn append_cells(&mut self) -> Vec<Value> {
        let cell = |this: &mut Self| {
            record([
                ("family", Some(this.family())),
                ("qualifier", Some(this.qualifier())),
                ("value", Some(this.value())),
            ])
        };
        self.distinct(1..=2, cell, column_of)
    }

    fn condition(&mut self, row: Value, filter: fn(&mut Self) -> Vec<u8>) -> Value {
        let time_range = self.maybe(0.1, Self::range);
        if self.chance(0.3) {
            let filter = Value::Bytes(filter(self));
            return record([
                ("row", Some(row)),
                ("timeRange", time_range),
                ("filter", Some(filter)),
            ]);
        }
        record([
            ("row", Some(row)),
            ("family", Some(self.family())),
            ("qualifier", Some(self.qualifier())),
            ("compare", Some(self.int(0..=5).into())),
            ("value", Some(self.value())),
            ("timeRange", time_range),
        ])
    }

    /// A filter that a message can hold; not each of [`Self::filter_bytes`] is one.
    fn readable_filter(&mut self) -> Vec<u8> {
        loop {
            let filter = self.filter_bytes();
            let decoded: Result<basalt_idl::native::messages::Filter, _> =
                prost::Message::decode(&filter[..]);
            if decoded.is_ok() {
                return filter;
            }
        }
    }

    /// A filter that both servers know. HBase takes the cells of a group whose condition has another one
    /// for those of the next group.
    fn known_filter(&mut self) -> Vec<u8> {
        loop {
            let filter = self.readable_filter();
            if FilterSpec::decode(&filter, 0).is_ok() {
                return filter;
            }
        }
    }

    fn range(&mut self) -> Value {
        let from = self.int(0..=12);
        let to = from + self.int(0..=12);
        Value::Struct(vec![("from", from.into()), ("to", to.into())])
    }

    fn native_family_ranges(&mut self) -> Value {
        let (family, range) = (self.family(), self.range());
        vec![Value::Struct(vec![("family", family), ("range", range)])].into()
    }

    /// Families, each named once: with qualifiers or whole.
    fn native_columns(&mut self) -> Value {
        let column = |this: &mut Self| {
            record([
                ("family", Some(this.family())),
                (
                    "qualifiers",
                    this.maybe(0.7, |this| {
                        this.distinct(1..=3, Self::qualifier, Value::clone).into()
                    }),
                ),
            ])
        };
        self.distinct(1..=2, column, |column| column.field("family").cloned())
            .into()
    }

    fn get(&mut self, row: Value) -> Value {
        let filter = self.maybe(0.3, |this| Value::Bytes(this.readable_filter()));
        without_bad_raw(record([
            ("row", Some(row)),
            ("columns", self.maybe(0.5, Self::native_columns)),
            ("attributes", self.attribute(0.02, "_raw_", b"\xff")),
            ("filter", filter),
            ("timeRange", self.maybe(0.2, Self::range)),
            ("maxVersions", self.maybe(0.5, |this| this.int(1..=5).into())),
            ("cacheBlocks", self.maybe(0.1, |this| this.chance(0.5).into())),
            ("storeLimit", self.maybe(0.1, |this| this.int(1..=3).into())),
            ("storeOffset", self.maybe(0.1, |this| this.int(0..=2).into())),
            ("existenceOnly", self.maybe(0.1, |this| this.chance(0.8).into())),
            ("familyRanges", self.maybe(0.1, Self::native_family_ranges)),
        ]))
    }

    fn gets(&mut self) {
        let actions = self.list(1..=4, |this| {
            let row = this.row();
            Value::Struct(vec![("get", this.get(row))])
        });
        let groups = vec![Value::Struct(vec![("actions", actions.into())])];
        let table = self.table();
        self.native("multi", [("table", Some(table)), ("groups", Some(groups.into()))]);
    }

    fn scan(&mut self) {
        let reversed = self.maybe(0.25, |this| this.chance(0.8));
        let choice = self.int(0..=9);
        self.reversed = reversed == Some(true);
        let filter = (choice < 4).then(|| Value::Bytes(self.readable_filter()));
        self.reversed = false;
        let batch = (choice == 4 || choice == 5).then(|| self.int(1..=3).into());
        let is_in_pieces = batch.is_some();
        let limit = (choice == 6 || choice == 7).then(|| self.int(1..=6).into());
        let ranges = if filter.is_none() { 1.0 } else { 0.0 };
        let time_range = self.maybe(0.2 * ranges, Self::range);
        let family_ranges = self.maybe(0.1 * ranges, Self::native_family_ranges);
        let is_plain = filter.is_none() && time_range.is_none() && family_ranges.is_none() && !is_in_pieces;
        let scan = record([
            ("startRow", self.maybe(0.4, Self::row)),
            ("stopRow", self.maybe(0.3, Self::row)),
            ("includeStartRow", self.maybe(0.2, |this| this.chance(0.3).into())),
            ("includeStopRow", self.maybe(0.2, |this| this.chance(0.7).into())),
            ("columns", self.maybe(0.4, Self::native_columns)),
            ("attributes", self.attribute(0.02, "_raw_", b"\xff")),
            ("filter", filter),
            ("timeRange", time_range),
            ("maxVersions", self.maybe(0.5, |this| this.int(1..=5).into())),
            ("cacheBlocks", self.maybe(0.1, |this| this.chance(0.5).into())),
            ("batchSize", batch),
            ("storeLimit", self.maybe(0.05, |this| this.int(1..=3).into())),
            ("storeOffset", self.maybe(0.05, |this| this.int(0..=2).into())),
            ("reversed", reversed.map(Value::Bool)),
            ("familyRanges", family_ranges),
            ("readType", self.maybe(0.1, |this| this.int(0..=2).into())),
        ]);
        let scan = without_bad_raw(scan);
        let probe = self.maybe(0.1, |this| this.one_of(&Probe::ALL[1..]));
        let (calls, probe) = if is_in_pieces {
            (CALLS_TO_THE_END, None)
        } else {
            (self.one_of(&[1, 3, 50, 50, 50]), probe)
        };
        let args = [
            ("table", Some(self.table())),
            ("scan", Some(scan)),
            ("rows", Some(self.one_of(&[1, 2, 3, 5, 100]).into())),
            ("calls", Some(calls.into())),
            ("limit", limit),
            ("partials", self.maybe(0.7, |_| true.into())),
            (
                "metrics",
                self.maybe(if is_plain { 0.2 } else { 0.0 }, |_| true.into()),
            ),
            ("probe", probe.map(|probe| Value::Int(probe as i64))),
        ];
        self.native("scan", args);
    }
}

//! Scripts from seeds.
//!
//! Everything is chosen from small sets ([`universe`]): few rows, columns, values and timestamps, so that
//! calls meet each other's data. [`tables`], [`families`] and [`namespaces`] make the schema, [`writes`] and
//! [`reads`] the calls, [`filters`] filter strings and [`filter_bytes`] filters in protobuf, [`system`] reads
//! the system tables, [`native`] makes native calls, [`rest`] those of the REST interface.
//!
//! Every method of both services is called, but for those whose answers two servers cannot have in common:
//!
//! - `getClusterId` is another one for each server.
//! - `getSlowLogResponses` and `clearSlowLogResponses` are about times; they are called about no server.
//! - `compact` and `majorCompact` start work that HBase does some time later; they are called for a
//!   missing table, and the steps `compact` and `major_compact` of scripts compact.
//! - `getRowOrBefore` is not in HBase 2.
//!
//! A seed and a length determine the script, and a longer script begins with the shorter one.

mod families;
mod filter_bytes;
mod filters;
mod namespaces;
mod native;
mod protobuf;
mod reads;
mod rest;
mod system;
mod tables;
mod universe;
mod writes;

use std::collections::{BTreeMap, BTreeSet};

use basalt_calls::{Api, Value};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::script::{Call, Line, Script, Step};
use universe::TABLES;

/// A struct without the fields that are `None`.
fn record(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let fields = fields.into_iter();
    Value::Struct(fields.filter_map(|(name, value)| Some((name, value?))).collect())
}

/// APIs that a script's calls use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apis {
    /// Both Thrift services.
    Thrift,
    /// Both Thrift services, and native RPC for most calls about data, so that the three meet each
    /// other's data.
    Native,
    /// Both Thrift services, and REST for most calls.
    Rest,
}

/// A script of this many steps, tables included.
pub fn script(seed: u64, steps: usize, apis: Apis) -> Script {
    let mut generator = Generator {
        random: SmallRng::seed_from_u64(seed),
        lines: Vec::new(),
        scanners: Vec::new(),
        opened: 0,
        only_known: false,
        reversed: false,
        splits: 0,
        majors: BTreeSet::new(),
        only_table: None,
        kept: BTreeMap::new(),
        empty_qualifiers: seed.is_multiple_of(4),
        in_while: false,
        native: apis == Apis::Native,
        rest: apis == Apis::Rest,
        nonces: 0,
    };
    generator.create_tables();
    while generator.lines.len() < steps {
        generator.step();
    }
    generator.lines.truncate(steps);
    Script {
        comment: format!("Seed {seed}."),
        lines: generator.lines,
    }
}

/// Makes one script.
#[expect(
    clippy::struct_excessive_bools,
    reason = "what a script may have; each is independent of the others"
)]
struct Generator {
    random: SmallRng,
    lines: Vec<Line>,
    /// Open scanners and the services they are of.
    scanners: Vec<(u32, Api)>,
    opened: u32,
    /// Whether only families that exist are named: several rows in one call are all written or none, in HBase
    /// some of them.
    only_known: bool,
    /// Whether filters are for a reversed scan: HBase refuses some, and keeps tombstones because of the scan
    /// that never was.
    reversed: bool,
    /// Splits of the first table so far: HBase keeps regions that were split in `hbase:meta` for some time.
    splits: usize,
    /// Tables that have been compacted as a whole. They have no minor compactions any more: those go by the
    /// number of files, and HBase keeps a file without cells where a compaction has dropped everything.
    majors: BTreeSet<String>,
    /// The table that all calls are about, if it is one.
    only_table: Option<&'static str>,
    /// Options of families that decide which cells are kept, by name.
    kept: BTreeMap<String, families::Kept>,
    /// Whether columns with an empty qualifier are written. A filter or a column selection that
    /// seeks past such a column misses in HBase the tombstone of the family, which sorts behind it,
    /// and shows deleted cells. So such scripts have no filters that seek, and large blocks: a
    /// selection seeks so only where a next block begins behind the column that is wanted.
    empty_qualifiers: bool,
    /// Whether filters are for inside WHILE. HBase asks filters about the row that a scan of named columns
    /// begins at, be there such a row or not, and WHILE around a filter that does not like its key ends the
    /// scan there; so no such filter is inside WHILE.
    in_while: bool,
    /// Whether most calls about data are native.
    native: bool,
    /// Whether most calls are those of REST.
    rest: bool,
    /// Nonces used so far.
    nonces: i64,
}

/// The share of native calls among calls about data, in a script that has them.
const NATIVE_SHARE: f64 = 0.7;

/// The share of REST calls among all calls, in a script that has them.
const REST_SHARE: f64 = 0.85;

impl Generator {
    /// True with this probability.
    fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    /// A value with this probability.
    fn maybe<T>(&mut self, probability: f64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(probability) {
            Some(make(self))
        } else {
            None
        }
    }

    /// One of these.
    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices
            .choose(&mut self.random)
            .expect("there is something to choose from")
            .clone()
    }

    /// An integer of this range.
    fn int(&mut self, range: std::ops::RangeInclusive<i64>) -> i64 {
        self.random.random_range(range)
    }

    /// Several values.
    fn list<T>(
        &mut self,
        len: std::ops::RangeInclusive<i64>,
        mut make: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        (0..self.int(len)).map(|_| make(self)).collect()
    }

    /// Several values that differ in what `key` returns: of two the same the second is left out.
    fn distinct<T, K: Ord>(
        &mut self,
        len: std::ops::RangeInclusive<i64>,
        mut make: impl FnMut(&mut Self) -> T,
        key: impl Fn(&T) -> K,
    ) -> Vec<T> {
        let mut seen = std::collections::BTreeSet::new();
        let mut values = self.list(len, &mut make);
        values.retain(|value| seen.insert(key(value)));
        values
    }

    /// Several values that name only families that exist.
    fn known<T>(&mut self, len: std::ops::RangeInclusive<i64>, make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        self.only_known = *len.end() > 1;
        let values = self.list(len, make);
        self.only_known = false;
        values
    }

    /// Adds a call.
    fn call(&mut self, api: Api, method: &str, args: impl IntoIterator<Item = (&'static str, Value)>) {
        self.push(api, method, args, None);
    }

    /// Adds a call that opens a scanner.
    fn open(&mut self, api: Api, method: &str, args: impl IntoIterator<Item = (&'static str, Value)>) {
        self.opened += 1;
        self.scanners.push((self.opened, api));
        self.push(api, method, args, Some(self.opened));
    }

    fn push(
        &mut self,
        api: Api,
        method: &str,
        args: impl IntoIterator<Item = (&'static str, Value)>,
        opens: Option<u32>,
    ) {
        let method = api
            .method(method)
            .expect("the generator names methods of the interface");
        let args = args.into_iter().collect();
        let call = Call {
            api,
            method,
            args,
            opens,
        };
        self.lines.push(Step::Call(call).into());
    }

    /// Whether the next call about data is native.
    fn native_next(&mut self) -> bool {
        self.native && self.chance(NATIVE_SHARE)
    }

    /// Whether the next call is one of REST.
    fn rest_next(&mut self) -> bool {
        self.rest && self.chance(REST_SHARE)
    }

    /// Adds one step, or a few that belong together.
    fn step(&mut self) {
        let choice = self.int(0..=99);
        if !(40..=89).contains(&choice) {
            // Basalt's running scans see nothing of later writes, HBase's some by chance.
            self.close_scanners();
        }
        match choice {
            0..=39 if self.native_next() => self.native_write(),
            0..=39 if self.rest_next() => self.rest_write(),
            0..=39 => self.write(),
            40..=89 if self.native_next() => self.native_read(),
            40..=89 if self.rest_next() => self.rest_read(),
            40..=89 => self.read(),
            90..=93 => {
                let table = self.one_of(&[TABLES[0], TABLES[0], TABLES[1]]).to_owned();
                self.lines.push(Step::Flush(table).into());
            }
            94 if self.chance(0.3) => self.split(),
            94..=95 => {
                let table = self.one_of(&TABLES).to_owned();
                let step = if self.chance(0.5) && !self.majors.contains(&table) {
                    Step::Compact(table)
                } else {
                    self.majors.insert(table.clone());
                    Step::MajorCompact(table)
                };
                self.lines.push(step.into());
            }
            96 if self.native_next() => self.native_system(),
            96 if self.rest_next() => self.rest_other(),
            96 => self.system(),
            97 if self.rest_next() => self.rest_namespaces(),
            97 => self.namespaces(),
            98 if self.rest_next() => self.rest_tables(),
            _ => self.admin(),
        }
    }
}

//! The names and values of scripts.

use basalt_calls::Value;

use super::Generator;

/// Tables that exist. The first takes most of the calls.
pub(super) const TABLES: [&str; 2] = ["tbl0", "nsp0:tbl1"];

/// Families of every table.
pub(super) const FAMILIES: [&str; 2] = ["f", "g"];

const ROWS: [&str; 12] = [
    "a", "b", "b0", "b01", "c", "d", "da", "e", "f", "g\u{0}", "h", "i",
];

const QUALIFIERS: [&str; 8] = ["", "a", "b", "b1", "c", "n", "n2", "z"];

/// A qualifier that only counters use: all values are numbers of 8 bytes.
pub(super) const NUMBERS: &str = "n3";

/// Qualifiers that are incremented; some of their values are no numbers.
pub(super) const COUNTERS: [&str; 4] = ["n", "n2", NUMBERS, "a"];

const VALUES: [&str; 9] = ["", "v", "v1", "v2", "v3", "w", "10", "9", "abc abd"];

impl Generator {
    pub(super) fn table(&mut self) -> Value {
        if let Some(name) = self.only_table {
            return Value::bytes(name);
        }
        let name = match self.int(0..=99) {
            0..=79 => TABLES[0],
            80..=97 => TABLES[1],
            _ => "tblx",
        };
        Value::bytes(name)
    }

    pub(super) fn row_bytes(&mut self) -> Vec<u8> {
        match self.int(0..=199) {
            0 => b"\xff\xff".to_vec(),
            1 => b"0".to_vec(),
            _ => self.one_of(&ROWS).as_bytes().to_vec(),
        }
    }

    /// The beginning of rows. In a script with native calls no row is shorter: behind its prefix,
    /// PrefixFilter of HBase 2.6.1 passes over shorter rows instead of ending the scan, which the flags
    /// of native answers show.
    pub(super) fn row_prefix(&mut self) -> Vec<u8> {
        let mut prefix = self.row_bytes();
        if self.native {
            prefix.truncate(1);
        }
        prefix
    }

    pub(super) fn row(&mut self) -> Value {
        Value::Bytes(self.row_bytes())
    }

    pub(super) fn family_name(&mut self) -> &'static str {
        match self.int(0..=149) {
            0 if !self.only_known => "nofam",
            0..=90 => FAMILIES[0],
            _ => FAMILIES[1],
        }
    }

    pub(super) fn family(&mut self) -> Value {
        Value::bytes(self.family_name())
    }

    pub(super) fn qualifier_name(&mut self) -> &'static str {
        match self.one_of(&QUALIFIERS) {
            "" if !self.empty_qualifiers => "a",
            qualifier => qualifier,
        }
    }

    pub(super) fn qualifier(&mut self) -> Value {
        Value::bytes(self.qualifier_name())
    }

    /// `family:qualifier`, or rarely a family alone, as Thrift 1 has columns.
    pub(super) fn column(&mut self) -> Value {
        let family = self.family_name();
        let qualifier = self.qualifier_name();
        Value::bytes(format!("{family}:{qualifier}"))
    }

    /// A column to read: often a whole family, with and without colon.
    pub(super) fn read_column(&mut self) -> Value {
        match self.int(0..=9) {
            0 => self.family(),
            1 => Value::bytes(format!("{}:", self.family_name())),
            _ => self.column(),
        }
    }

    pub(super) fn value_bytes(&mut self) -> Vec<u8> {
        if self.chance(0.15) {
            return self.int(-3..=9).to_be_bytes().to_vec();
        }
        self.one_of(&VALUES).as_bytes().to_vec()
    }

    pub(super) fn value(&mut self) -> Value {
        Value::Bytes(self.value_bytes())
    }

    pub(super) fn timestamp(&mut self) -> Value {
        Value::Int(self.int(1..=12))
    }

    pub(super) fn time_range(&mut self) -> Value {
        let from = self.int(0..=12);
        let to = from + self.int(0..=12);
        Value::Struct(vec![("minStamp", from.into()), ("maxStamp", to.into())])
    }

    /// Attributes as clients send them: none that a server without further plugins acts on.
    pub(super) fn attributes(&mut self) -> Value {
        if self.chance(0.9) {
            return Value::Map(Vec::new());
        }
        Value::Map(vec![("color".into(), "blue".into())])
    }
}

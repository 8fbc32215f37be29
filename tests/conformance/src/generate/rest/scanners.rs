//! Scanners of REST: opened with a description, fetched from, closed.

use basalt_calls::{Api, Value};

use super::super::{Generator, record};
use super::CELLS;

impl Generator {
    pub(super) fn rest_open_scanner(&mut self) {
        let filter = self.maybe(0.4, |this| Value::bytes(this.rest_filter()));
        let batch = match filter {
            None => self.maybe(0.6, |this| this.int(1..=6).into()),
            Some(_) => self.maybe(0.3, |this| this.int(1..=6).into()),
        };
        let range = self.maybe(0.2, |this| {
            let from = this.int(0..=12);
            (from, from + this.int(1..=12))
        });
        let scanner = record([
            ("startRow", self.maybe(0.4, Self::row)),
            ("endRow", self.maybe(0.3, Self::row)),
            ("columns", self.maybe(0.4, |this| this.rest_columns(1..=3))),
            ("batch", batch),
            ("startTime", range.map(|(from, _)| from.into())),
            ("endTime", range.map(|(_, to)| to.into())),
            ("filter", filter),
            ("maxVersions", self.maybe(0.6, |this| this.int(1..=5).into())),
            ("caching", self.maybe(0.2, |this| this.int(1..=10).into())),
            ("cacheBlocks", self.maybe(0.1, |this| this.chance(0.5).into())),
        ]);
        let args = [
            ("table", Some(self.table())),
            ("scanner", Some(scanner)),
            ("post", self.maybe(0.3, |_| true.into())),
            ("body", Some(self.rest_body())),
        ];
        let Value::Struct(args) = record(args) else {
            unreachable!("a record is a struct")
        };
        self.open(Api::Rest, "openScanner", args);
        self.fetch_or_close();
    }

    /// A call on an open scanner.
    pub(in super::super) fn rest_fetch_or_close(&mut self, scanner: u32) {
        // HBase's REST server forgets the scanner of a table that was disabled meanwhile.
        if self.only_table.is_some() || self.chance(0.3) {
            self.rest_call("closeScanner", [("scanner", Some(Value::Scanner(scanner)))]);
            self.drop_closed_scanner();
            return;
        }
        let accept = match self.int(0..=19) {
            0 => "binary",
            _ => self.one_of(&CELLS),
        };
        let args = [
            ("scanner", Some(Value::Scanner(scanner))),
            ("rows", self.maybe(0.2, |this| this.int(1..=4).into())),
            ("cells", self.maybe(0.3, |this| this.int(1..=6).into())),
            ("accept", Some(accept.into())),
            ("gzip", self.rest_gzip()),
        ];
        self.rest_call("getScanner", args);
    }
}

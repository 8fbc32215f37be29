//! REST calls that read without state: rows of a path, multigets, stateless scans.

use basalt_calls::Value;

use super::super::{Generator, record};
use super::CELLS;

impl Generator {
    /// A REST call that reads, or a whole scan.
    pub(in super::super) fn rest_read(&mut self) {
        match self.int(0..=99) {
            0..=32 => self.rest_get(),
            33..=44 => self.rest_get_rows(),
            45..=64 => self.rest_scan(),
            65..=92 => self.rest_open_scanner(),
            _ => self.fetch_or_close(),
        }
    }

    /// Times of a path: `to`, or `from,to`.
    fn rest_times(&mut self) -> [Option<Value>; 2] {
        match self.int(0..=9) {
            0..=1 => [None, Some(self.timestamp())],
            2 => {
                let from = self.int(0..=11);
                // Rarely in the wrong order.
                let to = if self.chance(0.05) {
                    1
                } else {
                    from + self.int(1..=6)
                };
                [Some(from.into()), Some(to.into())]
            }
            _ => [None, None],
        }
    }

    fn rest_row_path(&mut self, encoded: bool, columns: Option<Value>) -> Value {
        let row = self.rest_row(encoded);
        let mut stop = None;
        let mut prefix = None;
        match self.int(0..=9) {
            0..=1 => stop = Some(Value::Bytes(self.rest_row(encoded))),
            // Without columns the path would be that of a stateless scan.
            2 if columns.is_some() && row.is_ascii() => prefix = Some(true.into()),
            _ => {}
        }
        let [from, to] = self.rest_times();
        record([
            ("row", Some(Value::Bytes(row))),
            ("stop", stop),
            ("prefix", prefix),
            ("columns", columns),
            ("from", from),
            ("to", to),
        ])
    }

    /// Versions; rarely a number that is none.
    fn rest_versions(&mut self) -> Option<Value> {
        self.maybe(0.5, |this| {
            let versions = if this.chance(0.02) {
                this.int(-1..=0)
            } else {
                this.int(1..=5)
            };
            versions.into()
        })
    }

    fn rest_get(&mut self) {
        let encoding = self.rest_encoding();
        let is_binary = self.chance(0.12);
        let columns = if is_binary && self.chance(0.9) {
            Some(vec![self.column()].into())
        } else {
            self.maybe(0.5, |this| this.rest_columns(1..=3))
        };
        let accept = if is_binary {
            Some("binary".into())
        } else {
            self.rest_accept()
        };
        let path = self.rest_row_path(encoding.is_some(), columns);
        let args = [
            ("table", Some(self.table())),
            ("path", Some(path)),
            ("versions", self.rest_versions()),
            ("nocache", self.maybe(0.1, |_| true.into())),
            ("head", self.maybe(0.03, |_| true.into())),
            (
                "encodingHeader",
                encoding.is_some().then(|| self.chance(0.3).into()),
            ),
            ("encoding", encoding),
            ("accept", accept),
            ("gzip", self.rest_gzip()),
        ];
        self.rest_call("get", args);
    }

    fn rest_get_rows(&mut self) {
        let encoding = self.rest_encoding();
        let encoded = encoding.is_some();
        let rows = self.list(1..=4, |this| {
            let row = Value::Bytes(this.rest_row(encoded));
            let columns = this.maybe(0.2, |this| this.rest_columns(1..=2));
            let [from, to] = this.rest_times();
            record([
                ("row", Some(row)),
                ("columns", columns),
                ("from", from),
                ("to", to),
            ])
        });
        let filter = self.maybe(0.2, |this| Value::bytes(this.filter()));
        let args = [
            ("table", Some(self.table())),
            ("columns", self.maybe(0.4, |this| this.rest_columns(1..=3))),
            ("rows", Some(rows.into())),
            ("versions", self.rest_versions()),
            ("filterEncoded", self.rest_filter_encoding(filter.as_ref())),
            ("filter", filter),
            ("encoding", encoding),
            ("accept", self.rest_accept()),
            ("gzip", self.rest_gzip()),
        ];
        self.rest_call("getRows", args);
    }

    /// Whether a filter is sent in base64. HBase makes other bytes of those that are not UTF-8 otherwise.
    fn rest_filter_encoding(&mut self, filter: Option<&Value>) -> Option<Value> {
        let is_text = match filter? {
            Value::Bytes(bytes) => std::str::from_utf8(bytes).is_ok(),
            _ => true,
        };
        Some((!is_text || self.chance(0.4)).into())
    }

    fn rest_scan(&mut self) {
        let reversed = self.maybe(0.2, |this| this.chance(0.8));
        self.reversed = reversed == Some(true);
        let filter = self.maybe(0.35, |this| Value::bytes(this.filter()));
        self.reversed = false;
        let prefix = if self.chance(0.6) {
            Vec::new()
        } else {
            self.rest_row(false)
        };
        let range = self.maybe(0.2, |this| {
            let from = this.int(0..=12);
            (from, from + this.int(0..=12))
        });
        let batch = match filter {
            None => self.maybe(0.2, |this| this.int(1..=3).into()),
            Some(_) => None,
        };
        let accept = self.one_of(&CELLS);
        // In protobuf, HBase's scanner stays open behind a limit (`super`).
        let limits = if accept.starts_with("protobuf") { 0.0 } else { 0.3 };
        let args = [
            ("table", Some(self.table())),
            ("prefix", Some(Value::Bytes(prefix))),
            (
                "startRow",
                self.maybe(0.3, |this| Value::Bytes(this.rest_row(false))),
            ),
            (
                "endRow",
                self.maybe(0.3, |this| Value::Bytes(this.rest_row(false))),
            ),
            ("columns", self.maybe(0.4, |this| this.rest_columns(1..=3))),
            ("limit", self.maybe(limits, |this| this.int(1..=6).into())),
            ("batchSize", batch),
            ("maxVersions", self.maybe(0.5, |this| this.int(1..=5).into())),
            ("startTime", range.map(|(from, _)| from.into())),
            ("endTime", range.map(|(_, to)| to.into())),
            ("cacheBlocks", self.maybe(0.1, |this| this.chance(0.5).into())),
            ("reversed", reversed.map(Value::Bool)),
            ("filterEncoded", self.rest_filter_encoding(filter.as_ref())),
            ("filter", filter),
            ("accept", Some(accept.into())),
            ("gzip", self.rest_gzip()),
        ];
        self.rest_call("scan", args);
    }
}

//! Calls that read.

use basalt_calls::{Api, Value};

use super::{Generator, record};

impl Generator {
    /// A call that reads, or a whole scan.
    pub(super) fn read(&mut self) {
        match self.int(0..=99) {
            0..=24 => self.get_two(),
            25..=34 => self.get_one(),
            35..=44 => self.rows_one(),
            45..=64 => self.results_two(),
            65..=79 => self.open_two(),
            80..=92 => self.open_one(),
            _ => self.fetch_or_close(),
        }
    }

    fn tcolumns(&mut self) -> Vec<Value> {
        self.list(1..=3, |this| {
            record([
                ("family", Some(this.family())),
                ("qualifier", this.maybe(0.7, Self::qualifier)),
                ("timestamp", this.maybe(0.05, Self::timestamp)),
            ])
        })
    }

    /// A string, bytes, or rarely both: bytes win then.
    fn filter_fields(&mut self, probability: f64) -> [Option<Value>; 2] {
        if !self.chance(probability) {
            return [None, None];
        }
        let choice = self.int(0..=99);
        let string = (choice < 58).then(|| Value::bytes(self.filter()));
        let bytes = (choice >= 55).then(|| Value::bytes(self.filter_bytes()));
        [string, bytes]
    }

    /// STRONG, or TIMELINE if nothing can be wrong with the read: HBase's client asks for 20 minutes then and
    /// does not tell why.
    fn consistency(&mut self, names_columns: bool) -> Option<Value> {
        self.maybe(0.1, |this| this.int(1..=if names_columns { 1 } else { 2 }).into())
    }

    fn tget(&mut self) -> Value {
        let [filter_string, filter_bytes] = self.filter_fields(0.3);
        let columns = self.maybe(0.5, |this| this.tcolumns().into());
        let consistency = self.consistency(columns.is_some());
        record([
            ("row", Some(self.row())),
            ("columns", columns),
            ("timestamp", self.maybe(0.1, Self::timestamp)),
            ("timeRange", self.maybe(0.2, Self::time_range)),
            ("maxVersions", self.maybe(0.5, |this| this.int(1..=5).into())),
            ("filterString", filter_string),
            ("attributes", self.maybe(0.1, Self::attributes)),
            ("consistency", consistency),
            ("cacheBlocks", self.maybe(0.1, |this| this.chance(0.5).into())),
            ("storeLimit", self.maybe(0.1, |this| this.int(1..=3).into())),
            ("storeOffset", self.maybe(0.1, |this| this.int(0..=2).into())),
            ("existence_only", self.maybe(0.03, |this| this.chance(0.5).into())),
            ("filterBytes", filter_bytes),
        ])
    }

    fn get_two(&mut self) {
        let table = self.table();
        let many = self.chance(0.3);
        let exists = self.chance(0.2);
        let method = match (many, exists) {
            (false, false) => "get",
            (false, true) => "exists",
            (true, false) => "getMultiple",
            (true, true) => "existsAll",
        };
        let gets = if many {
            ("tgets", self.list(1..=3, Self::tget).into())
        } else {
            ("tget", self.tget())
        };
        self.call(Api::Two, method, [("table", table), gets]);
    }

    fn get_one(&mut self) {
        let mut args = vec![
            ("tableName", self.table()),
            ("row", self.row()),
            ("column", self.read_column()),
        ];
        let versions = self.int(1..=4).into();
        let method = match self.int(0..=2) {
            0 => "get",
            1 => {
                args.push(("numVersions", versions));
                "getVer"
            }
            _ => {
                args.push(("timestamp", self.timestamp()));
                args.push(("numVersions", versions));
                "getVerTs"
            }
        };
        args.push(("attributes", self.attributes()));
        self.call(Api::One, method, args);
    }

    fn rows_one(&mut self) {
        let many = self.chance(0.4);
        let mut args = vec![("tableName", self.table())];
        args.push(if many {
            ("rows", self.list(1..=4, Self::row).into())
        } else {
            ("row", self.row())
        });
        let columns = self.maybe(0.5, |this| this.list(1..=3, Self::read_column));
        let timestamp = self.maybe(0.4, Self::timestamp);
        let mut method = if many { "getRows" } else { "getRow" }.to_owned();
        if let Some(columns) = columns {
            method.push_str("WithColumns");
            args.push(("columns", columns.into()));
        }
        if let Some(timestamp) = timestamp {
            method.push_str("Ts");
            args.push(("timestamp", timestamp));
        }
        args.push(("attributes", self.attributes()));
        self.call(Api::One, &method, args);
    }

    fn family_ranges(&mut self) -> Value {
        let (family, range) = (self.family_name(), self.time_range());
        Value::Map(vec![(family.into(), range)])
    }

    fn tscan_two(&mut self) -> Value {
        let reversed = self.maybe(0.25, |this| this.chance(0.8));
        self.reversed = reversed == Some(true);
        let [filter_string, filter_bytes] = self.filter_fields(0.4);
        self.reversed = false;
        let columns = self.maybe(0.4, |this| this.tcolumns().into());
        let consistency = self.consistency(columns.is_some());
        let filtered = filter_string.is_some() || filter_bytes.is_some();
        record([
            ("startRow", self.maybe(0.4, Self::row)),
            ("stopRow", self.maybe(0.3, Self::row)),
            ("columns", columns),
            ("caching", self.maybe(0.3, |this| this.int(1..=10).into())),
            ("maxVersions", self.maybe(0.5, |this| this.int(1..=5).into())),
            ("timeRange", self.maybe(0.2, Self::time_range)),
            ("filterString", filter_string),
            // With a filter that judges whole rows a batch is refused, at another moment than in HBase.
            (
                "batchSize",
                if filtered {
                    None
                } else {
                    self.maybe(0.2, |this| this.int(1..=3).into())
                },
            ),
            ("attributes", self.maybe(0.1, Self::attributes)),
            ("reversed", reversed.map(Value::Bool)),
            ("cacheBlocks", self.maybe(0.1, |this| this.chance(0.5).into())),
            ("colFamTimeRangeMap", self.maybe(0.1, Self::family_ranges)),
            ("readType", self.maybe(0.1, |this| this.int(1..=3).into())),
            ("limit", self.maybe(0.2, |this| this.int(1..=6).into())),
            ("consistency", consistency),
            ("filterBytes", filter_bytes),
        ])
    }

    fn results_two(&mut self) {
        let args = [
            ("table", self.table()),
            ("tscan", self.tscan_two()),
            ("numRows", self.int(1..=20).into()),
        ];
        self.call(Api::Two, "getScannerResults", args);
    }

    fn open_two(&mut self) {
        let mut scan = self.tscan_two();
        // With both, HBase's client counts rows wrongly; the call that fetches would not show why the scan
        // ends early.
        if let Value::Struct(fields) = &mut scan
            && fields.iter().any(|(field, _)| *field == "batchSize")
        {
            fields.retain(|(field, _)| *field != "limit");
        }
        let args = [("table", self.table()), ("tscan", scan)];
        self.open(Api::Two, "openScanner", args);
        self.fetch_or_close();
    }

    fn tscan_one(&mut self) -> Value {
        let reversed = self.maybe(0.25, |this| this.chance(0.8));
        self.reversed = reversed == Some(true);
        let filter = self.maybe(0.4, |this| Value::bytes(this.filter()));
        self.reversed = false;
        record([
            ("startRow", self.maybe(0.4, Self::row)),
            ("stopRow", self.maybe(0.3, Self::row)),
            ("timestamp", self.maybe(0.2, Self::timestamp)),
            (
                "columns",
                self.maybe(0.4, |this| this.list(1..=2, Self::read_column).into()),
            ),
            ("caching", self.maybe(0.3, |this| this.int(1..=10).into())),
            ("filterString", filter.clone()),
            (
                "batchSize",
                if filter.is_none() {
                    self.maybe(0.2, |this| this.int(1..=3).into())
                } else {
                    None
                },
            ),
            ("sortColumns", self.maybe(0.3, |this| this.chance(0.7).into())),
            ("reversed", reversed.map(Value::Bool)),
            ("cacheBlocks", self.maybe(0.1, |this| this.chance(0.5).into())),
        ])
    }

    fn open_one(&mut self) {
        let table = ("tableName", self.table());
        let attributes = ("attributes", self.attributes());
        let columns = ("columns", self.list(0..=2, Self::read_column).into());
        let timestamp = ("timestamp", self.timestamp());
        let start = ("startRow", self.row());
        let stop = ("stopRow", self.row());
        match self.int(0..=7) {
            0 => self.open(Api::One, "scannerOpen", [table, start, columns, attributes]),
            1 => {
                let args = [table, start, stop, columns, attributes];
                self.open(Api::One, "scannerOpenWithStop", args);
            }
            2 => {
                let prefix = ("startAndPrefix", start.1);
                let args = [table, prefix, columns, attributes];
                self.open(Api::One, "scannerOpenWithPrefix", args);
            }
            3 => {
                let args = [table, start, columns, timestamp, attributes];
                self.open(Api::One, "scannerOpenTs", args);
            }
            4 => {
                let args = [table, start, stop, columns, timestamp, attributes];
                self.open(Api::One, "scannerOpenWithStopTs", args);
            }
            _ => {
                let scan = ("scan", self.tscan_one());
                self.open(Api::One, "scannerOpenWithScan", [table, scan, attributes]);
            }
        }
        self.fetch_or_close();
    }

    /// A few calls on an open scanner.
    pub(super) fn fetch_or_close(&mut self) {
        for _ in 0..self.int(1..=3) {
            let Some(&(number, api)) = self.scanners.last() else {
                return;
            };
            let id = Value::Scanner(number);
            match (api, self.int(0..=9)) {
                (Api::Rest, _) => self.rest_fetch_or_close(number),
                (Api::One, 0..=4) => {
                    let args = [("id", id), ("nbRows", self.int(1..=8).into())];
                    self.call(Api::One, "scannerGetList", args);
                }
                (Api::One, 5..=6) => self.call(Api::One, "scannerGet", [("id", id)]),
                (Api::One, _) => {
                    self.call(Api::One, "scannerClose", [("id", id)]);
                    self.drop_closed_scanner();
                }
                (_, 0..=6) => {
                    let args = [("scannerId", id), ("numRows", self.int(1..=8).into())];
                    self.call(Api::Two, "getScannerRows", args);
                }
                _ => {
                    self.call(Api::Two, "closeScanner", [("scannerId", id)]);
                    self.drop_closed_scanner();
                }
            }
        }
    }

    /// Closes all scanners.
    pub(super) fn close_scanners(&mut self) {
        for (number, api) in std::mem::take(&mut self.scanners) {
            let id = Value::Scanner(number);
            match api {
                Api::One => self.call(api, "scannerClose", [("id", id)]),
                Api::Rest => self.call(api, "closeScanner", [("scanner", id)]),
                _ => self.call(api, "closeScanner", [("scannerId", id)]),
            }
        }
    }

    /// A closed scanner is mostly not used again; the error for one that is, is the same for all of them.
    pub(super) fn drop_closed_scanner(&mut self) {
        if self.chance(0.9) {
            self.scanners.pop();
        }
    }
}

//! REST calls about tables, namespaces and the server, and requests that no client should send.

use basalt_calls::Value;

use super::super::super::script::Step;
use super::super::universe::FAMILIES;
use super::super::{Generator, record};

/// Names of `TBloomFilterType`, `TDataBlockEncoding`, `TCompressionAlgorithm` and `TKeepDeletedCells`.
const BLOOM_FILTERS: [&str; 3] = ["NONE", "ROW", "ROWCOL"];
const ENCODINGS: [(i64, &str); 5] = [
    (0, "NONE"),
    (2, "PREFIX"),
    (3, "DIFF"),
    (4, "FAST_DIFF"),
    (7, "ROW_INDEX_V1"),
];
const KEEP_DELETED: [&str; 3] = ["FALSE", "TRUE", "TTL"];

/// Requests that are malformed, or go where no such method is: method, path, type and body.
const WRONG: [(&str, &str, &str, &str); 16] = [
    ("GET", "/tbl0", "", ""),
    ("GET", "/tbl0/a/f:a/x", "", ""),
    ("GET", "/tbl0/a/f:a?v=x", "", ""),
    ("GET", "/tbl0/multiget", "", ""),
    ("GET", "/tbl0/*?limit=x", "", ""),
    ("GET", "/version/nosuch", "", ""),
    ("POST", "/version", "json", "{}"),
    ("DELETE", "/", "", ""),
    ("PUT", "/tbl0/exists", "json", "{}"),
    ("PUT", "/tbl0/a/f:a", "text", "v"),
    ("PUT", "/tbl0/a/f:a", "json", "{"),
    (
        "PUT",
        "/tbl0/a/f:a",
        "json",
        r#"{"Row":[{"key":"YQ==","Cells":[]}]}"#,
    ),
    ("PUT", "/tbl0/a/f:a", "xml", "<CellSet><Row"),
    ("PUT", "/tbl0/scanner", "json", r#"{"columns":[]}"#),
    (
        "PUT",
        "/tbl0/a/f:a?check=nosuch",
        "json",
        r#"{"Row":[{"key":"YQ==","Cell":[]}]}"#,
    ),
    ("GET", "/tbl0/schema/x", "", ""),
];

/// Requests about the server, whose answers are of one server: method and path.
const OTHERS: [(&str, &str); 5] = [
    ("GET", "/version"),
    ("GET", "/version/rest"),
    ("GET", "/version/cluster"),
    ("GET", "/status/cluster"),
    ("HEAD", "/version"),
];

impl Generator {
    /// A REST call about tables.
    pub(in super::super) fn rest_tables(&mut self) {
        match self.int(0..=9) {
            0 => {
                let table = self.some_table();
                self.rest_named("exists", table);
            }
            1 => self.rest_regions(),
            2..=3 => {
                let table = self.one_of(&["tbl0", "nsp0:tbl1", "tbl2", "tblx"]);
                self.rest_named("getSchema", table);
            }
            4 => {
                let (accept, gzip) = (self.rest_accept_description(), self.rest_gzip());
                self.rest_call("listTables", [("accept", accept), ("gzip", gzip)]);
            }
            5..=6 => self.rest_change_schema(),
            _ => self.rest_come_and_go(),
        }
    }

    fn rest_named(&mut self, method: &str, name: &str) {
        let (accept, gzip) = (self.rest_accept_description(), self.rest_gzip());
        self.rest_call(
            method,
            [("name", Some(name.into())), ("accept", accept), ("gzip", gzip)],
        );
    }

    /// HBase has the regions of a split table for some time.
    fn rest_regions(&mut self) {
        let table = if self.splits > 0 {
            "nsp0:tbl1"
        } else {
            self.some_table()
        };
        self.rest_named("getRegions", table);
    }

    /// Options of a family, as schemas of REST have them: those of [`Generator::family_descriptor`] that are
    /// no lists.
    fn rest_family(&mut self, name: &str) -> Value {
        let descriptor = self.family_descriptor(name);
        let int = |field| match descriptor.field(field) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        };
        let flag = |field| match descriptor.field(field) {
            Some(Value::Bool(value)) => Some(value.to_string()),
            _ => None,
        };
        let name_of = |names: &[&str], field| {
            let code = int(field).and_then(|code| usize::try_from(code).ok());
            code.and_then(|code| names.get(code))
                .map(|name| (*name).to_owned())
        };
        let encoding =
            int("dataBlockEncoding").and_then(|code| ENCODINGS.iter().find(|(own, _)| *own == code));
        let number = |field| int(field).map(|value| value.to_string());
        let options = [
            ("VERSIONS", number("maxVersions")),
            ("MIN_VERSIONS", number("minVersions")),
            ("TTL", number("timeToLive")),
            ("KEEP_DELETED_CELLS", name_of(&KEEP_DELETED, "keepDeletedCells")),
            ("BLOOMFILTER", name_of(&BLOOM_FILTERS, "bloomnFilterType")),
            (
                "DATA_BLOCK_ENCODING",
                encoding.map(|(_, name)| (*name).to_owned()),
            ),
            ("COMPRESSION", int("compressionType").map(|_| "GZ".to_owned())),
            ("BLOCKSIZE", number("blockSize")),
            ("IN_MEMORY", flag("inMemory")),
            ("BLOCKCACHE", flag("blockCacheEnabled")),
        ];
        let set = options
            .into_iter()
            .filter_map(|(name, value)| Some((name.into(), Value::bytes(value?))));
        record([
            ("name", Some(name.into())),
            ("options", Some(Value::Map(set.collect()))),
        ])
    }

    fn rest_put_schema(&mut self, table: &str, options: Option<Value>, families: Vec<Value>, post: bool) {
        let schema = record([
            // The path's name wins over the body's.
            ("name", self.maybe(0.5, |_| table.into())),
            ("options", options),
            ("families", Some(families.into())),
        ]);
        let args = [
            ("name", Some(table.into())),
            ("schema", Some(schema)),
            ("post", Some(post.into())),
            ("body", Some(self.rest_body())),
        ];
        self.rest_call("putSchema", args);
    }

    /// Adds and changes families of a table that stays, or replaces them. HBase flushes a table that it opens
    /// again, so the script flushes on both servers.
    fn rest_change_schema(&mut self) {
        let table = self.one_of(&["tbl0", "nsp0:tbl1"]);
        self.close_scanners();
        self.lines.push(Step::Flush(table.to_owned()).into());
        if self.chance(0.5) {
            let name = self.one_of(&["f", "g", "h"]);
            let family = self.rest_family(name);
            self.rest_put_schema(table, None, vec![family], true);
        } else {
            let families: Vec<_> = FAMILIES.iter().map(|name| self.rest_family(name)).collect();
            self.rest_put_schema(table, None, families, false);
        }
    }

    /// Makes, changes, shows or deletes a table that only this is about.
    fn rest_come_and_go(&mut self) {
        let table = self.one_of(&["tbl2", "tbl2", "tbl2", "nsp1:tbl3", "nspx:tbl4"]);
        match self.int(0..=5) {
            0..=2 => {
                let names = self.list(0..=2, |this| this.one_of(&["f", "g", "h"]));
                let families = names.into_iter().map(|name| self.rest_family(name)).collect();
                let options = self.maybe(0.3, |this| {
                    let option = this.one_of(&[
                        ("READONLY", "true"),
                        ("DURABILITY", "ASYNC_WAL"),
                        ("color", "blue"),
                    ]);
                    Value::Map(vec![(option.0.into(), option.1.into())])
                });
                let post = self.chance(0.5);
                self.rest_put_schema(table, options, families, post);
            }
            3 => self.rest_named("getSchema", table),
            4 => self.rest_named("getRegions", table),
            _ => self.rest_named("deleteTable", table),
        }
    }

    /// A REST call about namespaces.
    pub(in super::super) fn rest_namespaces(&mut self) {
        let name = self.one_of(&["nsp0", "nsp1", "nsp1", "nspx", "default", "hbase"]);
        match self.int(0..=9) {
            0..=3 => {
                let method = self.one_of(&["createNamespace", "modifyNamespace"]);
                let name = self.one_of(&["nsp0", "nsp1", "nsp1", "nspx"]);
                let color = self.one_of(&["red", "blue"]);
                let properties = self.maybe(0.5, |_| Value::Map(vec![("color".into(), color.into())]));
                let body = if properties.is_some() || self.chance(0.5) {
                    Some(self.rest_body())
                } else {
                    None
                };
                self.rest_call(
                    method,
                    [
                        ("name", Some(name.into())),
                        ("properties", properties),
                        ("body", body),
                    ],
                );
            }
            4..=5 => self.rest_named("deleteNamespace", name),
            6 => self.rest_named("getNamespace", name),
            7 => self.rest_named("listNamespaceTables", name),
            _ => {
                let (accept, gzip) = (self.rest_accept_description(), self.rest_gzip());
                self.rest_call("listNamespaces", [("accept", accept), ("gzip", gzip)]);
            }
        }
    }

    /// A request about the server, or one that is wrong.
    pub(in super::super) fn rest_other(&mut self) {
        if self.chance(0.4) {
            let (method, path) = self.one_of(&OTHERS);
            let args = [
                ("method", Some(method.into())),
                ("path", Some(path.into())),
                ("accept", self.rest_accept_description()),
            ];
            self.rest_call("send", args);
            return;
        }
        let (method, path, kind, body) = self.one_of(&WRONG);
        let has_body = !kind.is_empty();
        let args = [
            ("method", Some(method.into())),
            ("path", Some(path.into())),
            ("accept", Some("json".into())),
            ("type", has_body.then(|| kind.into())),
            ("body", has_body.then(|| body.into())),
        ];
        self.rest_call("send", args);
    }
}

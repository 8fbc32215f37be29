//! Servers that scripts are played to.

use std::net::SocketAddr;

use basalt_calls::connection::NoAnswer;
use basalt_calls::{Answer, Api, Connection, Value, native, rest};
use basalt_idl::call::MethodDescriptor;
use basalt_test_support::Oracle;

/// A server.
pub trait Target {
    /// Sends a call.
    fn call(
        &mut self,
        api: Api,
        method: &'static MethodDescriptor,
        args: &[(&'static str, Value)],
    ) -> Result<Answer, NoAnswer>;
    /// Memstores of a table to store files.
    fn flush(&mut self, table: &str) -> Result<(), String>;
    /// A minor compaction of a table; returns when it is done.
    fn compact(&mut self, table: &str) -> Result<(), String>;
    /// A major compaction of a table; returns when it is done.
    fn major_compact(&mut self, table: &str) -> Result<(), String>;
    /// Splits the region that has the row, at the row; returns when the daughters have store files
    /// of their own. The compaction that gives them these decides on the input of the next one, so
    /// it is part of the step on both sides.
    fn split(&mut self, table: &str, row: &[u8]) -> Result<(), String>;
}

/// A running Basalt.
#[derive(Debug)]
pub struct Basalt {
    one: Connection,
    two: Connection,
    native: native::Client,
    rest: rest::Client,
}

impl Basalt {
    /// Connects.
    pub fn connect(server: SocketAddr) -> std::io::Result<Self> {
        Ok(Basalt {
            one: Connection::open(server)?,
            two: Connection::open(server)?,
            native: native::Client::new(server),
            rest: rest::Client::new(server),
        })
    }

    fn admin(&mut self, method: &str, args: &[(&'static str, Value)]) -> Result<Value, String> {
        let method = Api::Admin
            .method(method)
            .ok_or_else(|| format!("no method {method}"))?;
        match self.call(Api::Admin, method, args) {
            Ok(Answer::Success(value)) => Ok(value),
            Ok(other) => Err(other.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Compacts a table, or a region by its name.
    fn compaction(&mut self, table_or_region: &[u8], major: bool) -> Result<(), String> {
        let args = [
            ("table", Value::bytes(table_or_region)),
            ("major", Value::Bool(major)),
            ("wait", Value::Bool(true)),
        ];
        self.admin("basaltCompact", &args).map(drop)
    }

    /// The names of the regions that begin or end at a row.
    fn regions_at(&mut self, table: &str, row: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let row = Value::bytes(row);
        let regions = self.admin("basaltRegionMetrics", &[("table", Value::bytes(table))])?;
        let Value::List(regions) = regions else {
            return Err(format!("regions of {table}: {regions:?}"));
        };
        let touching = regions
            .iter()
            .filter(|region| region.field("startKey") == Some(&row) || region.field("endKey") == Some(&row));
        let names = touching.map(|region| match region.field("regionName") {
            Some(Value::Bytes(name)) => Ok(name.clone()),
            other => Err(format!("a region's name is {other:?}")),
        });
        names.collect()
    }
}

impl Target for Basalt {
    fn call(
        &mut self,
        api: Api,
        method: &'static MethodDescriptor,
        args: &[(&'static str, Value)],
    ) -> Result<Answer, NoAnswer> {
        match api {
            Api::One => self.one.call(method, args),
            Api::Two | Api::Admin => self.two.call(method, args),
            Api::Native => self.native.call(method, args),
            Api::Rest => self.rest.call(method, args),
        }
    }

    fn flush(&mut self, table: &str) -> Result<(), String> {
        self.admin("basaltFlush", &[("table", Value::bytes(table))])
            .map(drop)
    }

    fn compact(&mut self, table: &str) -> Result<(), String> {
        self.compaction(table.as_bytes(), false)
    }

    fn major_compact(&mut self, table: &str) -> Result<(), String> {
        self.compaction(table.as_bytes(), true)
    }

    fn split(&mut self, table: &str, row: &[u8]) -> Result<(), String> {
        let args = [
            ("tableOrRegion", Value::bytes(table)),
            ("splitKey", Value::bytes(row)),
        ];
        self.admin("basaltSplit", &args)?;
        for daughter in self.regions_at(table, row)? {
            self.compaction(&daughter, false)?;
        }
        Ok(())
    }
}

/// Compactions come when a script says so and at no other moment: they change what tombstones hide.
///
/// A scan that has read more than the second value from one family (by default four blocks, and scripts
/// have small ones) answers at once, with a heartbeat and even in the middle of a row, to go on with another
/// way of reading. The client asks again and sees the same rows, in answers that end elsewhere.
pub const HBASE_SETTINGS: &[&str] = &[
    "hbase.regionserver.compaction.enabled=false",
    "hbase.storescanner.pread.max.bytes=1073741824",
];

/// Settings of Basalt with the same effect.
pub const BASALT_SETTINGS: &[&str] = &["compaction.enabled=false"];

/// A running HBase.
#[derive(Debug)]
pub struct HBase {
    one: Connection,
    two: Connection,
    native: native::Client,
    /// Its REST server starts at the first call: most scripts have none.
    rest: Option<rest::Client>,
    /// Control channel of HBase.
    pub oracle: Oracle,
}

impl HBase {
    /// Connects.
    pub fn connect(mut oracle: Oracle) -> std::io::Result<Self> {
        let region_server = oracle.region_server().map_err(std::io::Error::other)?;
        Ok(HBase {
            one: Connection::open(oracle.thrift1)?,
            two: Connection::open(oracle.thrift2)?,
            native: native::Client::new(region_server),
            rest: None,
            oracle,
        })
    }

    fn rest(&mut self) -> Result<&mut rest::Client, NoAnswer> {
        if self.rest.is_none() {
            let server = self.oracle.rest().map_err(std::io::Error::other)?;
            self.rest = Some(rest::Client::new(server));
        }
        Ok(self.rest.as_mut().expect("started above"))
    }
}

impl Target for HBase {
    fn call(
        &mut self,
        api: Api,
        method: &'static MethodDescriptor,
        args: &[(&'static str, Value)],
    ) -> Result<Answer, NoAnswer> {
        match api {
            Api::One | Api::Admin => self.one.call(method, args),
            Api::Two => self.two.call(method, args),
            Api::Native => self.native.call(method, args),
            Api::Rest => self.rest()?.call(method, args),
        }
    }

    fn flush(&mut self, table: &str) -> Result<(), String> {
        self.oracle.flush(table)
    }

    fn compact(&mut self, table: &str) -> Result<(), String> {
        self.oracle.compact(table)
    }

    fn major_compact(&mut self, table: &str) -> Result<(), String> {
        self.oracle.major_compact(table)
    }

    fn split(&mut self, table: &str, row: &[u8]) -> Result<(), String> {
        self.oracle.split(table, row)
    }
}

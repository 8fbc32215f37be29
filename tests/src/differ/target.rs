//! Servers that scripts are played to.

use std::net::SocketAddr;

use basalt_idl::call::MethodDescriptor;

use crate::dynamic::connection::NoAnswer;
use crate::dynamic::{Answer, Api, Connection, Value};
use crate::oracle::Oracle;

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
    /// Splits the region that has the row, at the row; returns when it is done.
    fn split(&mut self, table: &str, row: &[u8]) -> Result<(), String>;
}

/// A running Basalt.
#[derive(Debug)]
pub struct Basalt {
    one: Connection,
    two: Connection,
}

impl Basalt {
    /// Connects.
    pub fn connect(server: SocketAddr) -> std::io::Result<Self> {
        Ok(Basalt {
            one: Connection::open(server)?,
            two: Connection::open(server)?,
        })
    }

    fn admin(&mut self, method: &str, args: &[(&'static str, Value)]) -> Result<(), String> {
        let method = Api::Admin
            .method(method)
            .ok_or_else(|| format!("no method {method}"))?;
        match self.call(Api::Admin, method, args) {
            Ok(Answer::Success(_)) => Ok(()),
            Ok(other) => Err(other.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn compaction(&mut self, table: &str, major: bool) -> Result<(), String> {
        let args = [
            ("table", Value::bytes(table)),
            ("major", Value::Bool(major)),
            ("wait", Value::Bool(true)),
        ];
        self.admin("basaltCompact", &args)
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
        }
    }

    fn flush(&mut self, table: &str) -> Result<(), String> {
        self.admin("basaltFlush", &[("table", Value::bytes(table))])
    }

    fn compact(&mut self, table: &str) -> Result<(), String> {
        self.compaction(table, false)
    }

    fn major_compact(&mut self, table: &str) -> Result<(), String> {
        self.compaction(table, true)
    }

    fn split(&mut self, table: &str, row: &[u8]) -> Result<(), String> {
        let args = [
            ("tableOrRegion", Value::bytes(table)),
            ("splitKey", Value::bytes(row)),
        ];
        self.admin("basaltSplit", &args)
    }
}

/// Compactions come when a script says so and at no other moment: they change what tombstones hide.
pub const HBASE_SETTINGS: &[&str] = &["hbase.regionserver.compaction.enabled=false"];

/// The same for Basalt.
pub const BASALT_SETTINGS: &[&str] = &["compaction.enabled=false"];

/// A running HBase.
#[derive(Debug)]
pub struct HBase {
    one: Connection,
    two: Connection,
    /// Its control channel.
    pub oracle: Oracle,
}

impl HBase {
    /// Connects.
    pub fn connect(oracle: Oracle) -> std::io::Result<Self> {
        Ok(HBase {
            one: Connection::open(oracle.thrift1)?,
            two: Connection::open(oracle.thrift2)?,
            oracle,
        })
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

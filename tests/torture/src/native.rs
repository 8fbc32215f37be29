//! Native calls of the workloads `nonces` and `loads`: one connection with one call at a time, to
//! regions that are looked up again after a refusal.
//!
//! Both have the same table, so that bulk loads meet other writes to their region.

use std::net::SocketAddr;
use std::sync::Arc;

use basalt_calls::Value;
use basalt_calls::connection::NoAnswer;
use basalt_calls::native::connection::{Connection, Reply};
use basalt_calls::native::regions::Regions;
use basalt_calls::native::service::ClientKind;
use basalt_client::{Client, Error};
use basalt_idl::native::messages::RegionSpecifier;
use bytes::Bytes;
use prost::Message;
use rand::rngs::SmallRng;

use super::Problem;
use super::calls::{Ended, Findings};
use super::life::small_table;

/// The table of both workloads.
pub(super) const TABLE: &str = "native";
/// Families of bulk loads, and the family of increments and appends.
pub(super) const LOADED: [&str; 2] = ["a", "b"];
pub(super) const CHANGED: &str = "f";

/// Creates the table.
pub(super) async fn prepare(client: &Client, random: &mut SmallRng) -> Result<(), Error> {
    let families = [LOADED[0], LOADED[1], CHANGED];
    client.create_table(small_table(TABLE, &families, random)).await
}

/// A client of the table.
#[derive(Debug)]
pub(super) struct Native {
    connection: Connection,
    workload: &'static str,
    regions: Option<Regions>,
    findings: Arc<Findings>,
}

impl Native {
    /// Connects; `None` if the server is gone.
    pub(super) fn connect(
        address: SocketAddr,
        workload: &'static str,
        findings: &Arc<Findings>,
    ) -> Option<Self> {
        Some(Self {
            connection: Connection::open(address, ClientKind::Java).ok()?,
            workload,
            regions: None,
            findings: Arc::clone(findings),
        })
    }

    /// The region of a row, and those of `others` that are in it.
    pub(super) fn region(&mut self, row: &Bytes, others: &[Bytes]) -> Ended<(RegionSpecifier, Vec<Bytes>)> {
        if self.regions.is_none() {
            match Regions::of(&mut self.connection, TABLE.as_bytes()) {
                Ok(regions) => self.regions = Some(regions),
                Err(error) => return self.no_answer(&error),
            }
        }
        let regions = self.regions.as_ref().expect("they were just read");
        let region = regions.serving(row);
        let inside = others
            .iter()
            .filter(|row| region.contains(row))
            .cloned()
            .collect();
        Ended::Done((region.specifier(), inside))
    }

    /// Makes a call to a region and returns its message.
    pub(super) fn call<M: Message + Default>(
        &mut self,
        method: &'static str,
        request: &impl Message,
    ) -> Ended<M> {
        match self.connection.call(method, request, b"") {
            Ok(Reply::Success(answer, _)) => Ended::Done(answer),
            Ok(Reply::Exception(exception)) => self.refused(&exception),
            Err(error) => self.no_answer(&error),
        }
    }

    /// After a refusal: the regions are looked up again.
    fn refused<T>(&mut self, exception: &Value) -> Ended<T> {
        self.evict_regions();
        if exception.field("doNotRetry") == Some(&Value::Bool(true)) {
            return self.found(format!("the server answered: {exception}"));
        }
        Ended::Refused
    }

    /// The regions are looked up again before the next call.
    pub(super) fn evict_regions(&mut self) {
        self.regions = None;
    }

    fn no_answer<T>(&self, error: &NoAnswer) -> Ended<T> {
        match error {
            NoAnswer::Io(_) => Ended::Gone,
            other => self.found(other.to_string()),
        }
    }

    /// Reports an answer that no right server gives.
    pub(super) fn found<T>(&self, what: String) -> Ended<T> {
        self.findings.add(Problem::new(self.workload, what));
        Ended::Gone
    }
}

//! Look-ups in `hbase:meta`.
//!
//! A region's row in meta is its name, `table,start key,id.encoded.`, and rows stand in the order of those
//! three parts. The region that has a row is therefore the last one at or before `table,row,99999999999999`:
//! a reversed scan limited to one row finds it, as with HBase's client. The daughters of a split have higher
//! ids than their parent, so they are found first.
//!
//! `hbase:meta` itself is one region, whose server `directory` finds.

use std::sync::Arc;

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::messages::{
    self, Column, GetRequest, RegionInfo, ScanRequest, TableState, table_state::State,
};
use basalt_idl::native::znode;
use bytes::Bytes;
use prost::Message;
use tokio::time::Instant;

use super::cluster::Inner;
use super::decode::Block;
use super::look_ups::{is_away, is_unreachable};
use super::meta::{is_meta, meta_table};
use super::regions::Region;
use crate::error::{Error, Result};
use crate::name::TableName;
use crate::remote::{Origin, RemoteException};
use crate::request::Scan;
use crate::row::Row;
use crate::server_name::ServerName;

/// The name of meta's only region.
const META_REGION: &[u8] = b"hbase:meta,,1";

/// An id above those of all regions.
const MAX_ID: &[u8] = b"99999999999999";

const INFO: &[u8] = b"info";
const NO_SERVER: &str = "org.apache.hadoop.hbase.client.NoServerForRegionException";
const OFFLINE: &str = "org.apache.hadoop.hbase.client.RegionOfflineException";

/// The region that is wanted.
#[derive(Clone, Copy, Debug)]
enum Wanted<'a> {
    /// The region that has this row.
    Of(&'a [u8]),
    /// The region that has the rows just below this one; empty: the end of the table.
    Before(&'a [u8]),
}

impl Inner {
    /// The region that has a row, from the cache or from meta.
    pub(super) async fn region_of(
        &self,
        table: &TableName,
        row: &[u8],
        deadline: Instant,
    ) -> Result<Arc<Region>> {
        match self.regions.find(table, row) {
            Some(region) => Ok(region),
            None => self.look_up(table, Wanted::Of(row), deadline).await,
        }
    }

    /// The region that has the rows just below `row`; an empty `row` is the end of the table.
    pub(super) async fn region_before(
        &self,
        table: &TableName,
        row: &[u8],
        deadline: Instant,
    ) -> Result<Arc<Region>> {
        match self.regions.find_before(table, row) {
            Some(region) => Ok(region),
            None => self.look_up(table, Wanted::Before(row), deadline).await,
        }
    }

    async fn look_up(&self, table: &TableName, wanted: Wanted<'_>, deadline: Instant) -> Result<Arc<Region>> {
        if is_meta(table) {
            return self.meta_region(deadline).await.map_err(|error| self.away(error));
        }
        let turn = self.look_ups.of_table(table).await;
        let cached = match wanted {
            Wanted::Of(row) => self.regions.find(table, row),
            Wanted::Before(row) => self.regions.find_before(table, row),
        };
        if let Some(region) = cached {
            return Ok(region);
        }
        turn.check()?;
        let found = self.look_up_now(table, wanted, deadline).await;
        let found = found.map_err(|error| self.away(error));
        turn.end(&found);
        found
    }

    /// Asks meta. If it is not where it was, the registry says where it is now.
    async fn look_up_now(
        &self,
        table: &TableName,
        wanted: Wanted<'_>,
        deadline: Instant,
    ) -> Result<Arc<Region>> {
        let mut may_have_moved = self.regions.find(&meta_table(), b"").is_some();
        loop {
            let meta = self.meta_region(deadline).await?;
            match self.look_up_in(&meta, table, wanted, deadline).await {
                Ok(region) => {
                    self.regions.insert(Arc::clone(&region));
                    return Ok(region);
                }
                Err(error) => {
                    self.note_failure(&meta, &error);
                    if !(may_have_moved && is_unreachable(&error)) {
                        return Err(error);
                    }
                    may_have_moved = false;
                }
            }
        }
    }

    /// The error of a look-up as the caller gets it.
    pub(super) fn away(&self, error: Error) -> Error {
        if self.options.fails_when_away && is_away(&error) && !matches!(error, Error::Away { .. }) {
            return Error::Away {
                last: Box::new(error),
            };
        }
        error
    }

    async fn look_up_in(
        &self,
        meta: &Region,
        table: &TableName,
        wanted: Wanted<'_>,
        deadline: Instant,
    ) -> Result<Arc<Region>> {
        self.note(|observer| observer.looked_up());
        let mut request = request(table, wanted);
        let reply = self.send(meta, &mut request, deadline).await?;
        let mut block = Block::new(&reply.cells);
        let row = match (
            reply.message.cells_per_result.first(),
            reply.message.results.first(),
        ) {
            (Some(count), _) => block.take(*count as usize),
            (None, Some(result)) => block.row(result.clone()),
            (None, None) => Ok(None),
        };
        let row = row.map_err(|what| reply.malformed("Scan", what))?;
        let Some(row) = row else {
            return Err(failure(
                meta,
                ExceptionClass::TableNotFound.name(),
                &format!("table {table} does not exist"),
            ));
        };
        self.checked(meta, table, wanted, &row, deadline).await
    }

    /// The region of a row of meta, if it can serve the wanted rows.
    async fn checked(
        &self,
        meta: &Region,
        table: &TableName,
        wanted: Wanted<'_>,
        row: &Row,
        deadline: Instant,
    ) -> Result<Arc<Region>> {
        let name = row.key.escape_ascii();
        let Some(info) = info_of(row) else {
            return Err(failure(
                meta,
                NO_SERVER,
                &format!("{name} has no info:regioninfo"),
            ));
        };
        if info.offline == Some(true) || info.split == Some(true) {
            return Err(failure(
                meta,
                OFFLINE,
                &format!("{name} was split and its daughters are not there yet"),
            ));
        }
        let Some(server) = server_of(row) else {
            self.fail_if_disabled(meta, table, deadline).await?;
            return Err(failure(meta, NO_SERVER, &format!("{name} is on no server")));
        };
        let region = Region::new(row.key.clone(), &info, server);
        let fits = match wanted {
            Wanted::Of(row) => region.contains(row),
            Wanted::Before(row) => region.contains_before(row),
        };
        if !fits || region.table != *table {
            return Err(failure(
                meta,
                NO_SERVER,
                &format!("no region of {table} has the row, nearest is {name}"),
            ));
        }
        Ok(Arc::new(region))
    }

    pub(super) async fn meta_region(&self, deadline: Instant) -> Result<Arc<Region>> {
        let table = meta_table();
        if let Some(region) = self.regions.find(&table, b"") {
            return Ok(region);
        }
        let turn = self.look_ups.of_meta().await;
        if let Some(region) = self.regions.find(&table, b"") {
            return Ok(region);
        }
        turn.check()?;
        self.note(|observer| observer.looked_up());
        let found = self.directory.meta_server(deadline).await;
        turn.end(&found);
        let server = found?;
        let info = RegionInfo {
            region_id: 1,
            table_name: super::schema::name_to(&table),
            ..RegionInfo::default()
        };
        let region = Arc::new(Region::new(Bytes::from_static(META_REGION), &info, server));
        self.regions.insert(Arc::clone(&region));
        Ok(region)
    }

    /// Fails if the table is disabled. A state that cannot be read counts as enabled.
    async fn fail_if_disabled(&self, at: &Region, table: &TableName, deadline: Instant) -> Result<()> {
        match self.table_state(table, deadline).await {
            Ok(Some(State::Disabled | State::Disabling)) => Err(failure(
                at,
                ExceptionClass::TableNotEnabled.name(),
                &format!("table {table} is disabled"),
            )),
            _ => Ok(()),
        }
    }

    /// A table's state in meta; `None` if there is no such table.
    pub(super) async fn table_state(&self, table: &TableName, deadline: Instant) -> Result<Option<State>> {
        if is_meta(table) {
            return Ok(Some(State::Enabled));
        }
        let meta = self.meta_region(deadline).await?;
        let mut request = GetRequest {
            get: messages::Get {
                row: table.to_bytes(),
                column: vec![Column {
                    family: Bytes::from_static(b"table"),
                    qualifier: vec![Bytes::from_static(b"state")],
                }],
                max_versions: Some(1),
                ..messages::Get::default()
            },
            ..GetRequest::default()
        };
        let reply = self.send(&meta, &mut request, deadline).await;
        let reply = reply.inspect_err(|error| self.note_failure(&meta, error))?;
        let row = Block::new(&reply.cells).row(reply.message.result.clone().unwrap_or_default());
        let row = row.map_err(|what| reply.malformed("Get", what))?;
        let Some(cell) = row.and_then(|row| row.cells.into_iter().next()) else {
            return Ok(None);
        };
        let state = TableState::decode(cell.value).ok();
        let state = state.and_then(|state| State::try_from(state.state).ok());
        let state = state.ok_or_else(|| reply.malformed("Get", "table:state is no state".to_owned()))?;
        Ok(Some(state))
    }

    /// Updates the cached location of a region after a failed call. Fails with a better error if its table is
    /// disabled.
    pub(super) async fn after_failure(
        &self,
        region: &Region,
        error: &Error,
        deadline: Instant,
    ) -> Result<()> {
        self.note_failure(region, error);
        let class = error.remote();
        if class.is_some_and(|exception| exception.is(ExceptionClass::NotServingRegion)) {
            self.fail_if_disabled(region, &region.table, deadline).await?;
        }
        Ok(())
    }

    /// All regions of a table, in the order of keys.
    pub(super) async fn all_regions(self: &Arc<Self>, table: &TableName) -> Result<Vec<Arc<Region>>> {
        if is_meta(table) {
            let deadline = Instant::now() + self.options.call_timeout;
            return Ok(vec![self.meta_region(deadline).await?]);
        }
        let scan = Scan::new()
            .start_row(format!("{table},,"))
            .stop_row(format!("{table} ,,"))
            .family(INFO);
        let mut scanner = super::scanner::Scanner::start(self, meta_table(), scan)?;
        let mut regions = Vec::new();
        while let Some(rows) = scanner.next_batch().await? {
            regions.extend(rows.iter().filter_map(serving_region));
        }
        if regions.is_empty() {
            let deadline = Instant::now() + self.options.call_timeout;
            let meta = self.meta_region(deadline).await?;
            let text = format!("table {table} does not exist");
            return Err(failure(&meta, ExceptionClass::TableNotFound.name(), &text));
        }
        for region in &regions {
            self.regions.insert(Arc::clone(region));
        }
        Ok(regions)
    }
}

/// The region of a row of meta, unless it is a split parent or on no server.
fn serving_region(row: &Row) -> Option<Arc<Region>> {
    let info = info_of(row)?;
    if info.offline == Some(true) || info.split == Some(true) {
        return None;
    }
    Some(Arc::new(Region::new(row.key.clone(), &info, server_of(row)?)))
}

fn info_of(row: &Row) -> Option<RegionInfo> {
    znode::decode_protobuf(row.value(INFO, "regioninfo")?)
}

fn server_of(row: &Row) -> Option<ServerName> {
    let start_code = row.value(INFO, "serverstartcode").map(|code| &code[..]);
    ServerName::of_meta(row.value(INFO, "server")?, start_code)
}

/// The scan of meta for a region, which closes its scanner itself.
fn request(table: &TableName, wanted: Wanted<'_>) -> ScanRequest {
    let table = table.to_string();
    let start = match wanted {
        Wanted::Of(row) => [table.as_bytes(), b",", row, b",", MAX_ID].concat(),
        // Regions that start at the row itself come after this key, which has no id.
        Wanted::Before(row) if !row.is_empty() => [table.as_bytes(), b",", row, b","].concat(),
        Wanted::Before(_) => [table.as_bytes(), b" ,,"].concat(),
    };
    ScanRequest {
        scan: Some(messages::Scan {
            column: vec![Column {
                family: Bytes::from_static(INFO),
                qualifier: Vec::new(),
            }],
            start_row: Some(start.into()),
            stop_row: Some(format!("{table},,").into()),
            include_stop_row: Some(true),
            max_versions: Some(1),
            caching: Some(1),
            reversed: Some(true),
            ..messages::Scan::default()
        }),
        number_of_rows: Some(1),
        close_scanner: Some(true),
        ..ScanRequest::default()
    }
}

/// An error of HBase's class that the client itself raises.
fn failure(at: &Region, class: &str, message: &str) -> Error {
    let origin = Origin {
        method: "look-up",
        server: at.address.to_string(),
        region: Some(at.name.escape_ascii().to_string()),
    };
    Error::Remote(Box::new(RemoteException::of_text(
        origin,
        class.to_owned(),
        message,
    )))
}

//! Quotas in the table `hbase:quota`, as HBase keeps them (`QuotaTableUtil`):
//!
//! ```text
//! row                column         value
//! n.<namespace>      q:s            the namespace's quotas
//! t.<table>          q:s            the table's
//! u.<user>           q:s            the user's
//!                    q:s.<table>    the user's in a table
//!                    q:s.<ns>:      the user's in a namespace
//! ```
//!
//! Family `u` is for space quotas, which are not implemented. The table is made with the first
//! quota. It is an ordinary table, so that every client of the server can read and copy it; writes
//! of clients to it count from the next start on.

use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::Fetched;
use basalt_engine::op::{Columns, FamilySelection, FetchLimits, ReadSpec, RowMutation, Scan, Write};
use basalt_engine::schema::limits::{Brief, QUOTAS};
use basalt_engine::schema::{
    Durability, FamilyDescriptor, SYSTEM_NAMESPACE, TableDescriptor, TableName, TableState,
};
use basalt_engine::{Engine, Error, Kind};

use super::{Owner, Settings, UserScope, messages};

const QUALIFIER: &str = "quota";
const SETTINGS: &[u8] = b"q";
const USAGE: &[u8] = b"u";

fn table_name() -> Result<TableName, Error> {
    TableName::new(SYSTEM_NAMESPACE, QUALIFIER)
}

/// Most invalid cells that are logged one by one.
const ODD_CELLS_TOLD: usize = 10;

/// All quotas, at most as many as can be set. Unreadable quotas are logged and skipped: any client
/// can write to the table and alter it, and nothing there must keep the server from starting.
pub(super) fn load(engine: &Engine) -> Result<Vec<(Owner, Settings)>, Error> {
    let table = table_name()?;
    match engine.describe_table(&table) {
        Err(Error::NoSuchTable(_)) => return Ok(Vec::new()),
        Ok((_, TableState::Disabled)) => {
            tracing::warn!("{table} is disabled: no quota counts");
            return Ok(Vec::new());
        }
        described => drop(described?),
    }
    let mut found = Vec::new();
    match read(engine, &table, &mut found) {
        Ok(()) => {}
        Err(error) if error.kind() == Kind::Fatal => return Err(error),
        Err(error) => tracing::error!(
            "{table} cannot be read to its end, so that {} quotas count and others do not: {error}",
            found.len()
        ),
    }
    Ok(found)
}

/// Reads the table cell by cell, so that a large row needs no more memory than a small one.
fn read(engine: &Engine, table: &TableName, found: &mut Vec<(Owner, Settings)>) -> Result<(), Error> {
    let scan = Scan {
        batch: Some(1),
        spec: ReadSpec {
            families: vec![FamilySelection {
                family: SETTINGS.to_vec(),
                columns: Columns::All,
            }],
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    let limits = FetchLimits {
        results: 1000,
        bytes: 16 << 20,
        time: Duration::MAX,
    };
    let mut scanner = engine.scan(table, scan)?;
    let mut odd = 0;
    loop {
        let mut batch = CellBatch::new();
        let fetched = scanner.fetch(&limits, &mut batch)?;
        for cell in batch.rows().flat_map(|row| row.cells().collect::<Vec<_>>()) {
            let (row, qualifier) = (cell.key.row(), cell.key.qualifier());
            match owner(row, qualifier).and_then(|owner| Ok((owner, messages::decode(cell.value)?))) {
                Ok((_, settings)) if settings.is_empty() => {}
                Ok(quota) => found.push(quota),
                Err(why) => {
                    odd += 1;
                    if odd <= ODD_CELLS_TOLD {
                        tracing::error!(
                            "{table}, row {}, column q:{} holds no quota that is understood: {why}",
                            Brief(row),
                            Brief(qualifier)
                        );
                    }
                }
            }
        }
        if found.len() > QUOTAS.max || odd > QUOTAS.max {
            found.truncate(QUOTAS.max);
            tracing::error!(
                "{table} has more than {} cells: the rest of the table is not read, and quotas there do not count",
                QUOTAS.max
            );
            return Ok(());
        }
        if fetched == Fetched::End {
            return Ok(());
        }
    }
}

/// Makes an owner's settings durable; none: takes them away.
pub(super) fn store(engine: &Engine, owner: &Owner, settings: &Settings) -> Result<(), Error> {
    let table = table_name()?;
    match engine.describe_table(&table) {
        Err(Error::NoSuchTable(_)) => engine.create_table(descriptor(table.clone())?, Vec::new())?,
        described => drop(described?),
    }
    let (row, qualifier) = key(owner);
    let value = messages::encode(settings);
    let write = if settings.is_empty() {
        Write::DeleteColumn {
            family: SETTINGS,
            qualifier: &qualifier,
            timestamp: None,
        }
    } else {
        Write::Put {
            family: SETTINGS,
            qualifier: &qualifier,
            timestamp: None,
            value: &value,
            ttl_ms: None,
        }
    };
    let mutation = RowMutation {
        row: &row,
        writes: [write].into(),
        durability: Durability::UseDefault,
    };
    engine.mutate(&table, &[mutation])?.wait()
}

/// The table as HBase makes it (`MasterQuotaManager.createQuotaTable`).
fn descriptor(name: TableName) -> Result<TableDescriptor, Error> {
    let families = [SETTINGS, USAGE].map(|family| FamilyDescriptor::new(family).with("VERSIONS", 1));
    Ok(TableDescriptor::new(
        name,
        families.into_iter().collect::<Result<_, _>>()?,
    ))
}

/// Row and qualifier of an owner's settings.
fn key(owner: &Owner) -> (Vec<u8>, Vec<u8>) {
    let (row, qualifier) = match owner {
        Owner::Namespace(namespace) => (format!("n.{namespace}"), "s".to_owned()),
        Owner::Table(table) => (format!("t.{table}"), "s".to_owned()),
        Owner::User { name, scope } => {
            let qualifier = match scope {
                UserScope::All => "s".to_owned(),
                UserScope::Table(table) => format!("s.{table}"),
                UserScope::Namespace(namespace) => format!("s.{namespace}:"),
            };
            (format!("u.{name}"), qualifier)
        }
    };
    (row.into_bytes(), qualifier.into_bytes())
}

/// Decodes an owner; the error describes a malformed one.
fn owner(row: &[u8], qualifier: &[u8]) -> Result<Owner, String> {
    let text = |bytes| std::str::from_utf8(bytes).map_err(|error| error.to_string());
    let table = |name: &str| TableName::parse(name.as_bytes()).map_err(|error| error.to_string());
    let (row, qualifier) = (text(row)?, text(qualifier)?);
    match (row.split_at_checked(2), qualifier) {
        (Some(("n.", namespace)), "s") => Ok(Owner::Namespace(namespace.to_owned())),
        (Some(("t.", name)), "s") => Ok(Owner::Table(table(name)?)),
        (Some(("u.", name)), _) => {
            let scope = match (qualifier, qualifier.strip_prefix("s.")) {
                ("s", _) => UserScope::All,
                (_, Some(scope)) => match scope.strip_suffix(':') {
                    Some(namespace) => UserScope::Namespace(namespace.to_owned()),
                    None => UserScope::Table(table(scope)?),
                },
                (_, None) => return Err("the column is none of a user's quotas".to_owned()),
            };
            let name = name.to_owned();
            Ok(Owner::User { name, scope })
        }
        _ => Err("the row is none of a namespace, table or user".to_owned()),
    }
}

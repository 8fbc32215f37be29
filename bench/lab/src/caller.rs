//! Calls on several tables, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use basalt_client::Row;
use basalt_load::error::Result;
use basalt_load::session::{Answer, Column, RowCells, RowScan, Session, row_bytes};
use basalt_load::target::TargetOptions;
use bytes::Bytes;

/// A session for each table of a part, and its traffic.
#[derive(Debug)]
pub(crate) struct Caller {
    sessions: Vec<Session>,
    calls: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Caller {
    /// Tables are named by their place in this list afterwards.
    pub(super) fn new(target: &TargetOptions, tables: &[String]) -> Result<Caller> {
        let sessions = tables.iter().map(|table| Session::new(target, table, false));
        Ok(Caller {
            sessions: sessions.collect::<Result<_>>()?,
            calls: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Reads rows. Those that are missing are left out.
    pub(crate) async fn get(&self, table: usize, keys: &[Bytes], columns: &[Column]) -> Answer<Vec<Row>> {
        let rows = self.sessions[table].get(keys, columns).await?;
        self.count(&rows);
        Ok(rows)
    }

    /// Reads a scan to its end: one call in the figures, however many fetches it takes.
    pub(crate) async fn scan(&self, table: usize, scan: &RowScan) -> Answer<Vec<Row>> {
        let mut scanner = self.sessions[table].scan(scan)?;
        let mut rows = Vec::new();
        while let Some(row) = scanner.next().await? {
            rows.push(row);
        }
        self.count(&rows);
        Ok(rows)
    }

    /// Writes rows.
    pub(crate) async fn put(&self, table: usize, rows: &[RowCells]) -> Answer<()> {
        self.sessions[table].put(rows).await?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        let bytes = rows.iter().map(RowCells::bytes).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn count(&self, rows: &[Row]) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        let bytes = rows.iter().map(row_bytes).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Calls, rows and bytes so far.
    pub(super) fn totals(&self) -> [u64; 3] {
        [&self.calls, &self.rows, &self.bytes].map(|count| count.load(Ordering::Relaxed))
    }
}

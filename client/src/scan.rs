//! The rows of a scan as a stream.
//!
//! A task of its own opens the scanner, fetches batch after batch into a channel of one, and closes
//! the scanner, whatever happens: at the end, after an error, and when the stream is dropped, which
//! it detects at the next hand-over. So
//!
//! - no scanner is left behind by a consumer that stops early or is cancelled, even in the middle of a call;
//!   only a runtime that shuts down leaves one to its lease;
//! - a connection is held for one call at a time, and never by a stream that is not polled;
//! - while the consumer works on one batch the next is being fetched. At most three batches are in
//!   memory: one being consumed, one in the channel, one fetched.
//!
//! The end is an empty batch. A short one does not mean the end: servers cut fetches by bytes and
//! time.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use basalt_idl::thrift2::args;
use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::error::Result;
use crate::request::{Scan, ScanPlan};
use crate::row::Row;

/// The rows of a scan, in scan order. Ends after the first error.
#[derive(Debug)]
pub struct RowStream {
    batches: mpsc::Receiver<Result<Vec<Row>>>,
    /// The rest of the batch being consumed.
    rows: VecDeque<Row>,
}

impl RowStream {
    /// The rows that another task sends.
    pub(crate) fn of_batches(batches: mpsc::Receiver<Result<Vec<Row>>>) -> RowStream {
        RowStream {
            batches,
            rows: VecDeque::new(),
        }
    }

    /// Starts a scan. Must be called within a tokio runtime.
    pub(crate) fn start(client: Client, table: Bytes, scan: Scan) -> Result<RowStream> {
        let plan = scan.into_plan()?;
        let (sender, batches) = mpsc::channel(1);
        tokio::spawn(run(client, table, plan, sender));
        Ok(RowStream::of_batches(batches))
    }

    /// The next row, `None` at the end. Cancel safe: a call that is dropped loses no row.
    pub async fn next(&mut self) -> Result<Option<Row>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context))
            .await
            .transpose()
    }

    /// All rows that are left. Memory grows with them: for scans that are known to be small.
    pub async fn collect(mut self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        while let Some(row) = self.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }
}

impl Stream for RowStream {
    type Item = Result<Row>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Row>>> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Poll::Ready(Some(Ok(row)));
            }
            match ready!(self.batches.poll_recv(context)) {
                Some(Ok(batch)) => self.rows = batch.into(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Opens the scanner, fetches until the end or until the receiver is gone, and closes it.
async fn run(client: Client, table: Bytes, plan: ScanPlan, sender: mpsc::Sender<Result<Vec<Row>>>) {
    let open = args::OpenScanner {
        table,
        tscan: plan.scan.clone(),
    };
    let opened = async {
        let mut connection = client.pool().acquire_for_scan().await?;
        match connection.call(&open).await {
            Ok(scanner_id) => Ok((connection, scanner_id)),
            // An idle connection that the server has closed meanwhile says nothing of a new one; the others
            // are as old.
            Err(lost) if lost.is_connection_lost() => {
                drop(connection);
                let mut connection = client.pool().acquire_new_for_scan().await?;
                let scanner_id = connection.call(&open).await?;
                Ok((connection, scanner_id))
            }
            Err(error) => Err(error),
        }
    };
    let (mut connection, scanner_id) = match opened.await {
        Ok(opened) => opened,
        Err(error) => {
            // A consumer that is gone does not want the error either.
            drop(sender.send(Err(error)).await);
            return;
        }
    };
    let mut sifter = Sifter::new(plan.keep, plan.rows_left);
    let fetch = args::GetScannerRows {
        scanner_id,
        num_rows: plan.rows_per_fetch,
    };
    while !sifter.ended {
        let batch = connection.call(&fetch).await.map(|results| {
            sifter.ended = results.is_empty();
            sifter.sift(results.into_iter().filter_map(Row::from_thrift))
        });
        let failed = batch.is_err();
        if sender.send(batch).await.is_err() || failed {
            break;
        }
    }
    // No receiver is left for an error of the close, and the lease ends such a scanner anyway.
    drop(connection.call(&args::CloseScanner { scanner_id }).await);
}

/// Does the client's part of a reversed prefix scan.
#[derive(Debug)]
struct Sifter {
    /// Rows must start with it; the first below it is the end.
    keep: Option<Bytes>,
    /// Rows still wanted, not counting pieces of the last one.
    rows_left: Option<i32>,
    /// Key of the last row let through, to count a row in pieces once.
    last: Option<Bytes>,
    ended: bool,
}

impl Sifter {
    fn new(keep: Option<Bytes>, rows_left: Option<i32>) -> Sifter {
        Sifter {
            keep,
            rows_left,
            last: None,
            ended: false,
        }
    }

    fn sift(&mut self, rows: impl Iterator<Item = Row>) -> Vec<Row> {
        let mut kept = Vec::new();
        for row in rows {
            if let Some(prefix) = &self.keep
                && !row.key.starts_with(prefix)
            {
                if row.key < *prefix {
                    self.ended = true;
                    break;
                }
                continue;
            }
            if self.last.as_ref() != Some(&row.key) {
                match &mut self.rows_left {
                    Some(0) => {
                        self.ended = true;
                        break;
                    }
                    Some(left) => *left -= 1,
                    None => {}
                }
                self.last = Some(row.key.clone());
            }
            kept.push(row);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Sifter};
    use bytes::Bytes;

    fn sift(sifter: &mut Sifter, keys: &[&'static str]) -> Vec<Bytes> {
        let rows = keys.iter().map(|key| Row {
            key: Bytes::from(*key),
            cells: Vec::new(),
            partial: false,
        });
        sifter.sift(rows).into_iter().map(|row| row.key).collect()
    }

    #[test]
    fn a_reversed_prefix_drops_what_is_above_and_ends_below() {
        let mut sifter = Sifter::new(Some(Bytes::from("ab")), None);
        assert_eq!(sift(&mut sifter, &["ac", "abz", "ab"]), ["abz", "ab"]);
        assert!(!sifter.ended);
        assert!(sift(&mut sifter, &["aa", "a"]).is_empty());
        assert!(sifter.ended);
    }

    #[test]
    fn a_limit_counts_rows_and_not_pieces() {
        let mut sifter = Sifter::new(Some(Bytes::from("a")), Some(2));
        assert_eq!(sift(&mut sifter, &["a3", "a3", "a2"]), ["a3", "a3", "a2"]);
        assert_eq!(sift(&mut sifter, &["a2", "a1"]), ["a2"]);
        assert!(sifter.ended);
    }
}

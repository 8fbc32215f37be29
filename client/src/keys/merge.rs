//! Merges the scans of one query into the order of its keys.
//!
//! Every source is in order, and the merge holds the next item of each: it hands out the smallest
//! and asks that source for another. Memory is one item a source, besides the source's own
//! read-ahead.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::RangeBounds;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::{KeyDesign, KeyError};
use crate::error::{Error, Result};
use crate::request::Scan;
use crate::row::Row;
use crate::scan::RowStream;
use crate::table::Table;

/// The next item of a source. Ordered by key, then by source, so that equal keys keep the order of the
/// sources.
#[derive(Debug)]
struct Head<K, T> {
    key: K,
    source: usize,
    item: T,
}

impl<K: Ord, T> Ord for Head<K, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(self.source.cmp(&other.source))
    }
}

impl<K: Ord, T> PartialOrd for Head<K, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, T> PartialEq for Head<K, T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: Ord, T> Eq for Head<K, T> {}

/// Merges iterators that are each in the order of `key`.
pub fn merge_iterators<I, K, F>(sources: impl IntoIterator<Item = I>, key: F) -> MergedIterator<I, K, F>
where
    I: Iterator,
    K: Ord,
    F: Fn(&I::Item) -> K,
{
    let mut merged = MergedIterator {
        sources: sources.into_iter().collect(),
        heads: BinaryHeap::new(),
        key,
    };
    for source in 0..merged.sources.len() {
        merged.refill(source);
    }
    merged
}

/// Made by [`merge_iterators`].
#[derive(Debug)]
pub struct MergedIterator<I: Iterator, K: Ord, F> {
    sources: Vec<I>,
    heads: BinaryHeap<Reverse<Head<K, I::Item>>>,
    key: F,
}

impl<I: Iterator, K: Ord, F: Fn(&I::Item) -> K> MergedIterator<I, K, F> {
    fn refill(&mut self, source: usize) {
        if let Some(item) = self.sources.get_mut(source).and_then(Iterator::next) {
            let key = (self.key)(&item);
            self.heads.push(Reverse(Head { key, source, item }));
        }
    }
}

impl<I: Iterator, K: Ord, F: Fn(&I::Item) -> K> Iterator for MergedIterator<I, K, F> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let Reverse(Head { source, item, .. }) = self.heads.pop()?;
        self.refill(source);
        Some(item)
    }
}

/// Merges streams that are each in the order of `key`. Ends after the first error, of a stream or of `key`.
pub fn merge_streams<S, T, K, E, F>(sources: impl IntoIterator<Item = S>, key: F) -> MergedStream<S, T, K, F>
where
    S: Stream<Item = std::result::Result<T, E>> + Unpin,
    K: Ord,
    F: Fn(&T) -> std::result::Result<K, E>,
{
    let sources: Vec<S> = sources.into_iter().collect();
    MergedStream {
        waiting: (0..sources.len()).collect(),
        sources: sources.into_iter().map(Some).collect(),
        heads: BinaryHeap::new(),
        key,
    }
}

/// Made by [`merge_streams`].
#[derive(Debug)]
pub struct MergedStream<S, T, K: Ord, F> {
    /// `None` once it has ended, so that its memory is freed early.
    sources: Vec<Option<S>>,
    heads: BinaryHeap<Reverse<Head<K, T>>>,
    /// Sources without a head that have not ended.
    waiting: Vec<usize>,
    key: F,
}

// Nothing is pinned in here: the sources are `Unpin` wherever they are polled.
impl<S, T, K: Ord, F> Unpin for MergedStream<S, T, K, F> {}

impl<S, T, K: Ord, F> MergedStream<S, T, K, F> {
    fn end(&mut self) {
        self.sources.clear();
        self.heads.clear();
        self.waiting.clear();
    }
}

impl<S, T, K, E, F> Stream for MergedStream<S, T, K, F>
where
    S: Stream<Item = std::result::Result<T, E>> + Unpin,
    K: Ord,
    F: Fn(&T) -> std::result::Result<K, E>,
{
    type Item = std::result::Result<(K, T), E>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut still_waiting = Vec::new();
        for source in std::mem::take(&mut this.waiting) {
            let Some(place) = this.sources.get_mut(source) else {
                continue;
            };
            let Some(stream) = place else { continue };
            let item = match Pin::new(stream).poll_next(context) {
                Poll::Pending => {
                    still_waiting.push(source);
                    continue;
                }
                Poll::Ready(None) => {
                    *place = None;
                    continue;
                }
                Poll::Ready(Some(item)) => item,
            };
            match item.and_then(|item| Ok(((this.key)(&item)?, item))) {
                Ok((key, item)) => this.heads.push(Reverse(Head { key, source, item })),
                Err(error) => {
                    this.end();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        this.waiting = still_waiting;
        if !this.waiting.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(this.heads.pop().map(|Reverse(head)| {
            this.waiting.push(head.source);
            Ok((head.key, head.item))
        }))
    }
}

impl<S, T, K, F> MergedStream<S, T, K, F>
where
    S: Stream<Item = Result<T>> + Unpin,
    K: Ord,
    F: Fn(&T) -> Result<K>,
{
    /// The next item with its key, `None` at the end.
    pub async fn next(&mut self) -> Result<Option<(K, T)>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context))
            .await
            .transpose()
    }
}

/// Reads a row's key.
pub type KeyOfRow<K> = Box<dyn Fn(&Row) -> Result<K> + Send>;

/// Rows of a table in the order of a design's keys.
pub type DesignedRows<K> = MergedStream<RowStream, Row, K, KeyOfRow<K>>;

/// Scans a range of keys of a design, in the order of the keys. `scan` selects the cells of each
/// row; its start, stop and direction are replaced, and its limit holds for each of the design's
/// ranges.
///
/// All ranges have an open scanner at once, each with a batch or two in memory: consider a smaller
/// [`Scan::rows_per_fetch`] for designs with many ranges.
pub fn scan_keys<D>(
    table: &Table,
    design: D,
    keys: impl RangeBounds<D::Key>,
    scan: &Scan,
) -> Result<DesignedRows<D::Key>>
where
    D: KeyDesign + Send + 'static,
{
    let ranges = design.scan_ranges(keys)?;
    let streams = ranges
        .iter()
        .map(|range| {
            let within = scan
                .clone()
                .reversed(false)
                .start_row(&range.start)
                .stop_row(&range.stop);
            table.scan(within.without_prefix())
        })
        .collect::<Result<Vec<_>>>()?;
    let key: KeyOfRow<D::Key> = Box::new(move |row| Ok(design.decode(&row.key)?));
    Ok(merge_streams(streams, key))
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Error::InvalidRequest(error.to_string())
    }
}

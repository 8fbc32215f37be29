//! Samples that wait for the end of their column.
//!
//! A shard has room for a fixed number of bytes: samples, long keys, names of tables. When that is
//! used up, each sample is dropped or counted double, at random. [`Shard::push`] returns how often
//! that has happened, so that samplers take fewer from then on.

use std::collections::HashMap;

use basalt_engine::schema::TableName;

use super::slice::{Point, SampledKey};
use super::{KEY_BYTES_MAX, Random, Request};

/// Approximate memory of a table's name and its entry, besides the text.
const TABLE_BYTES: usize = 128;

/// One row of many.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    key: SampledKey,
    /// Bytes of this row.
    bytes: u32,
    /// Number of rows that it stands for.
    weight: u32,
    /// Number of the table in the shard.
    table: u32,
    request: Request,
}

impl Sample {
    pub(super) fn new(key: &[u8], bytes: usize, request: Request, weight: u32) -> Self {
        Self {
            key: SampledKey::from_slice(key.get(..KEY_BYTES_MAX).unwrap_or(key)),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            weight,
            table: 0,
            request,
        }
    }

    /// Bytes on the heap.
    fn heap_bytes(&self) -> usize {
        if self.key.spilled() {
            self.key.capacity()
        } else {
            0
        }
    }

    fn point(self) -> Point {
        let weight = self.weight as f32;
        let bytes = weight * self.bytes as f32;
        Point {
            key: self.key,
            amounts: match self.request {
                Request::Read => [weight, 0.0, bytes],
                Request::Write => [0.0, weight, bytes],
            },
        }
    }
}

/// The samples of a few threads.
#[derive(Debug)]
pub(super) struct Shard {
    samples: Vec<Sample>,
    /// Bytes of keys on the heap.
    heap_bytes: usize,
    tables: HashMap<TableName, u32>,
    table_bytes: usize,
    /// Most bytes of all.
    bytes_max: usize,
    /// Rows that a sample stands for, as a multiple of the setting.
    scale: u32,
    random: Random,
}

impl Shard {
    /// A shard of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize, number: u64) -> Self {
        Self {
            samples: Vec::new(),
            heap_bytes: 0,
            tables: HashMap::new(),
            table_bytes: 0,
            bytes_max,
            scale: 1,
            random: Random(0xd1b5_4a32_d192_ed03 ^ (number + 1)),
        }
    }

    /// Takes a sample; returns the scale from now on. Without room for more tables, samples of
    /// further ones are dropped.
    pub(super) fn push(&mut self, table: &TableName, mut sample: Sample) -> u32 {
        let Some(number) = self.number_of(table) else {
            return self.scale;
        };
        sample.table = number;
        while !self.make_room(sample.heap_bytes()) {
            if !self.samples.is_empty() {
                self.thin();
            } else if self.samples.capacity() > 0 {
                self.samples = Vec::new();
            } else {
                return self.scale;
            }
        }
        self.heap_bytes += sample.heap_bytes();
        self.samples.push(sample);
        self.scale
    }

    /// Makes room for one more sample with `heap_bytes` bytes on the heap, if there is some.
    fn make_room(&mut self, heap_bytes: usize) -> bool {
        let Some(left) = self.bytes_max.checked_sub(self.used_bytes() + heap_bytes) else {
            return false;
        };
        let (len, capacity) = (self.samples.len(), self.samples.capacity());
        if len == capacity {
            let more = (capacity / 2 + 64).min(left / size_of::<Sample>());
            self.samples.reserve_exact(more);
        }
        self.samples.capacity() > len
    }

    fn number_of(&mut self, table: &TableName) -> Option<u32> {
        if let Some(number) = self.tables.get(table) {
            return Some(*number);
        }
        let bytes = TABLE_BYTES + table.namespace().len() + table.qualifier().len();
        if self.table_bytes + bytes > self.bytes_max / 4 {
            return None;
        }
        let number = u32::try_from(self.tables.len()).ok()?;
        self.table_bytes += bytes;
        self.tables.insert(table.clone(), number);
        Some(number)
    }

    fn thin(&mut self) {
        let random = &mut self.random;
        self.samples.retain_mut(|sample| {
            sample.weight = sample.weight.saturating_mul(2);
            random.next() >> 63 == 0
        });
        self.samples.shrink_to_fit();
        self.heap_bytes = self.samples.iter().map(Sample::heap_bytes).sum();
        self.scale = self.scale.saturating_mul(2);
    }

    /// Takes everything out. The memory is kept, and the sampling rate returns to the setting.
    pub(super) fn drain(&mut self) -> Vec<(TableName, Vec<Point>)> {
        let by_table = by_table(self.tables.drain(), self.samples.drain(..));
        (self.heap_bytes, self.table_bytes, self.scale) = (0, 0, 1);
        by_table
    }

    /// Removes a table's samples.
    pub(super) fn remove(&mut self, table: &TableName) {
        let Some(number) = self.tables.get(table).copied() else {
            return;
        };
        self.samples.retain(|sample| sample.table != number);
        self.heap_bytes = self.samples.iter().map(Sample::heap_bytes).sum();
    }

    /// A copy of everything.
    pub(super) fn peek_all(&self) -> Vec<(TableName, Vec<Point>)> {
        let tables = self.tables.iter();
        by_table(
            tables.map(|(table, number)| (table.clone(), *number)),
            self.samples.iter().cloned(),
        )
    }

    /// A copy of a table's samples.
    pub(super) fn peek(&self, table: &TableName) -> Vec<Point> {
        let number = self.tables.get(table).copied();
        let own = self.samples.iter().filter(|sample| Some(sample.table) == number);
        own.cloned().map(Sample::point).collect()
    }

    /// Whether there are samples of a table.
    pub(super) fn has(&self, table: &TableName) -> bool {
        let number = self.tables.get(table).copied();
        self.samples.iter().any(|sample| Some(sample.table) == number)
    }

    /// Requests that the samples of each table stand for.
    pub(super) fn requests(&self) -> Vec<(TableName, f64)> {
        let mut sums = vec![0.0; self.tables.len()];
        for sample in &self.samples {
            if let Some(sum) = sums.get_mut(sample.table as usize) {
                *sum += f64::from(sample.weight);
            }
        }
        let of = |(table, number): (&TableName, &u32)| (table.clone(), sums[*number as usize]);
        self.tables.iter().map(of).collect()
    }

    /// Bytes in use.
    pub(super) fn used_bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>() + self.heap_bytes + self.table_bytes
    }
}

/// Samples by their tables, which have the numbers from 0 on.
fn by_table(
    tables: impl Iterator<Item = (TableName, u32)>,
    samples: impl Iterator<Item = Sample>,
) -> Vec<(TableName, Vec<Point>)> {
    let mut names: Vec<_> = tables.collect();
    names.sort_by_key(|(_, number)| *number);
    let mut by_table: Vec<_> = names.into_iter().map(|(name, _)| (name, Vec::new())).collect();
    for sample in samples {
        if let Some((_, points)) = by_table.get_mut(sample.table as usize) {
            points.push(sample.point());
        }
    }
    by_table
}

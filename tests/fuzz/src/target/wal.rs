//! The log: reading it, recovering it, printing it.
//!
//! ```text
//! input  = how u8 | frames         how 1: the rest of the input is the whole segment
//!                                  how 2: a seal at the end; 4: a second segment; 8: unwritten space at the end; 16: it is printed too
//! frame  = length u16 LE | how u8 | payload
//!                                  how: low four bits are left out of the sequence ids; 16: the payload is damaged;
//!                                  32: the header is damaged; 64: states that all before it is durable
//! ```
//!
//! A log reads the same twice. A readable log can be recovered: with the same edits, and sealed, so
//! that it reads the same afterwards. An unreadable one is not recovered either.

use std::cell::Cell;
use std::path::Path;

use basalt_engine::fs::sim::SimFs;
use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::internals::record::{Entries, fill_header, reserve_header};
use basalt_engine::internals::wal::{LogSummary, LoggedEdit, dump, read_segments, recover};
use basalt_engine::internals::{crc32c, crc32c_append};
use basalt_engine::metrics::NoListener;

use super::hash_of;
use crate::{disk, memory};

const DIR: &str = "/db/wal";
const PATHS: [&str; 2] = ["/db/wal/0000000000000001.wal", "/db/wal/0000000000000002.wal"];
const HEADER_BYTES: usize = 4096;
const KIND_OLD_EDITS: u8 = 1;
const KIND_EDITS: u8 = 4;
/// Bytes of the time at which a frame of edits was written.
const TIME_BYTES: usize = 8;
const KIND_SEAL: u8 = 3;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((&how, rest)) = input.split_first() else {
        return;
    };
    let mut segments = Vec::new();
    if how & 1 != 0 {
        segments.push(rest.to_vec());
    } else {
        let first = Segment::of(rest, 1, 1, &[0; 28], how & 6 != 0);
        if how & 4 != 0 {
            let second = Segment::of(rest, 2, first.next_seq, &first.link(), how & 2 != 0);
            segments.push(second.bytes);
        }
        segments.insert(0, first.bytes);
        if how & 8 != 0 {
            let last = segments.last_mut().expect("there is one at least");
            last.resize(last.len() + 100, 0);
        }
    }
    let files: Vec<_> = PATHS
        .iter()
        .map(Path::new)
        .zip(segments.iter().map(Vec::as_slice))
        .collect();
    let disk = disk::with_files(&files);
    let received = segments.iter().map(Vec::len).sum();
    let first =
        memory::bounded(received, 0, || contents(&disk, read_segments)).map_err(|error| error.to_string());
    let again = contents(&disk, read_segments).map_err(|error| error.to_string());
    assert_eq!(first, again, "another log the second time");
    for path in PATHS.iter().take(if how & 16 != 0 { segments.len() } else { 0 }) {
        let _ = dump(&disk, Path::new(path), true, &mut std::io::sink());
    }
    recovered(&disk, first.ok());
}

/// Recovers the log. `read` is the result of reading it before.
fn recovered(disk: &SimFs, read: Option<(LogSummary, u64)>) {
    let Some((summary, hash)) = read else {
        assert!(
            contents(disk, recover).is_err(),
            "recovered a log that cannot be read"
        );
        return;
    };
    let same = |what: &str, (after, again): (LogSummary, u64)| {
        assert_eq!(
            (after.edits, after.cells, again),
            (summary.edits, summary.cells, hash),
            "other edits {what}"
        );
        assert!(after.sealed || after.segments == 0, "not sealed {what}");
    };
    same(
        "when it is recovered",
        contents(disk, recover).expect("what can be read can be recovered"),
    );
    same(
        "when it is read then",
        contents(disk, read_segments).expect("what was recovered can be read"),
    );
}

type Read = fn(
    &dyn basalt_engine::fs::Vfs,
    &Path,
    SeqId,
    &dyn basalt_engine::metrics::EventListener,
    &mut dyn FnMut(LoggedEdit<'_>) -> basalt_engine::Result<()>,
) -> basalt_engine::Result<LogSummary>;

/// Content of the log, and a hash of every edit.
fn contents(disk: &SimFs, read: Read) -> basalt_engine::Result<(LogSummary, u64)> {
    let hash = Cell::new(0);
    let summary = read(disk, Path::new(DIR), SeqId::ZERO, &NoListener, &mut |edit| {
        hash.set(hash_of(&(
            hash.get(),
            edit.region().0,
            edit.rows(),
            edit.first_seq().0,
        )));
        for (row, cell) in edit.cells() {
            hash.set(hash_of(&(
                hash.get(),
                row,
                cell.key.bytes(),
                cell.value,
                cell.tags,
                cell.seq.0,
            )));
        }
        Ok(())
    })?;
    Ok((summary, hash.get()))
}

/// A segment that is being made.
struct Segment {
    bytes: Vec<u8>,
    uuid: Uuid,
    chain: u32,
    next_seq: u64,
}

impl Segment {
    /// A segment with the frames of a compact log, behind the segment that `link` tells of.
    fn of(frames: &[u8], number: u64, first_seq: u64, link: &[u8; 28], sealed: bool) -> Self {
        let uuid = Uuid([number as u8; 16]);
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(b"basaltwl");
        bytes[8..12].copy_from_slice(&3_u32.to_le_bytes());
        bytes[12..20].copy_from_slice(&number.to_le_bytes());
        bytes[20..36].copy_from_slice(&uuid.0);
        bytes[36..44].copy_from_slice(&first_seq.to_le_bytes());
        bytes[44..72].copy_from_slice(link);
        let sum = crc32c(&bytes[..HEADER_BYTES - 4]).to_le_bytes();
        bytes[HEADER_BYTES - 4..].copy_from_slice(&sum);
        let mut segment = Self {
            bytes,
            uuid,
            chain: crc32c(&sum),
            next_seq: first_seq,
        };
        for frame in disk::frames(frames) {
            segment.put(frame.how, frame.payload);
        }
        if sealed {
            let payload = [&[KIND_SEAL], segment.chain.to_le_bytes().as_slice()].concat();
            segment.put(0, &payload);
        }
        segment
    }

    fn put(&mut self, how: u8, payload: &[u8]) {
        let at = self.bytes.len();
        self.next_seq = self.next_seq.saturating_add(u64::from(how & 0x0f));
        reserve_header(&mut self.bytes);
        self.bytes.extend_from_slice(payload);
        let durable = if how & 64 != 0 {
            at as u64
        } else {
            HEADER_BYTES as u64
        };
        let sum = fill_header(
            &mut self.bytes[at..],
            &self.uuid,
            at as u64,
            self.next_seq,
            durable,
        );
        self.chain = crc32c_append(self.chain, &sum.to_le_bytes());
        let entries = match payload.split_first() {
            Some((&KIND_OLD_EDITS, entries)) => Some((entries, false)),
            Some((&KIND_EDITS, rest)) => rest.get(TIME_BYTES..).map(|entries| (entries, true)),
            _ => None,
        };
        if let Some((entries, has_origins)) = entries {
            let mut entries = Entries::new(entries, SeqId(self.next_seq), has_origins);
            // Up to a broken one: that refuses the segment anyway.
            let _ = entries.by_ref().take_while(Result::is_ok).count();
            self.next_seq = entries.next_seq().0;
        }
        if how & 16 != 0
            && let Some(last) = self.bytes.last_mut()
        {
            *last ^= 1;
        }
        if how & 32 != 0 {
            self.bytes[at + 5] ^= 1;
        }
    }

    /// The part of the next segment's header about this one: uuid, bytes, chain.
    fn link(&self) -> [u8; 28] {
        let mut link = [0; 28];
        link[..16].copy_from_slice(&self.uuid.0);
        link[16..24].copy_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        link[24..].copy_from_slice(&self.chain.to_le_bytes());
        link
    }
}

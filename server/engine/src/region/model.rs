//! Regions under loom: writers, readers, freezes and other publications at once, over a real log on the
//! simulated disk.

use std::path::Path;
use std::sync::Arc;

use loom::thread;

use super::*;
use crate::cell::{Cell, CellCursor, CellType, KeyBuf};
use crate::fs::Vfs;
use crate::fs::sim::{SimFs, SimOptions};
use crate::memstore::ChunkPool;
use crate::metrics::{Counters, NoListener};
use crate::options::WalSync;
use crate::record::{EditBuilder, EditReader};
use crate::store::ReadView;
use crate::sync::check;
use crate::wal::{Logging, WalOptions};

/// A region with a log. The cell that its memstore has has sequence id 1.
struct Server {
    region: Arc<Region>,
    wal: Arc<Wal>,
    chunks: Arc<ChunkPool>,
}

impl Server {
    fn new() -> Arc<Self> {
        let disk = SimFs::new(1, SimOptions::default());
        disk.create_dir_all(Path::new("/wal")).unwrap();
        let options = WalOptions {
            dir: "/wal".into(),
            segment_bytes: 6_000,
            sync: WalSync::Os,
            clock: std::sync::Arc::new(crate::clock::ManualClock::at(1_000)),
            commit_thread: false,
        };
        let (counters, listener) = (Arc::new(Counters::default()), Arc::new(NoListener));
        let wal = Wal::create(Arc::new(disk), options, 0, SeqId(1), counters, listener).unwrap();
        let chunks = Arc::default();
        Arc::new(Self {
            region: tests::region(&chunks),
            wal,
            chunks,
        })
    }

    /// Writes a row as `write_rows` does, and returns its sequence id.
    fn put(&self, row: u8) -> SeqId {
        let mut edit = EditBuilder::new();
        edit.begin(self.region.id());
        edit.begin_row();
        edit.cell_of(&[row], b"f", b"q", 1, CellType::Put, b"v", b"");
        let payload = edit.finish();
        let mut reserved = self.wal.reserve(1, payload.len() as u64).unwrap();
        let updates = self.region.updates.read();
        let appended = self
            .wal
            .append(&mut reserved, payload, 1, Logging::Async)
            .unwrap();
        let cells = EditReader::new(payload, appended.first_seq()).unwrap();
        insert_cells(&self.region.version(), cells.map(|cell| cell.unwrap().1));
        let commit = appended.applied();
        drop(updates);
        let seq = commit.seq();
        commit.wait().unwrap();
        seq
    }

    fn freeze(&self) -> SeqId {
        let blocked = self.region.updates.write();
        self.region.freeze(&self.wal, &blocked)
    }

    /// Takes the frozen memstores out, as a flush does whose files have no cells.
    fn install(&self, frozen: &[Arc<Memstore>]) {
        self.region.publish(|current| {
            let mut next = current.clone();
            next.stores[0] = Arc::new(next.stores[0].with_flushed(frozen, &[]));
            next
        });
        frozen.iter().for_each(|memstore| memstore.pin());
    }

    /// Inserts a cell that takes a chunk of its own.
    fn insert_large(&self) {
        self.region.version().stores[0].active.insert(Cell {
            key: KeyBuf::new(b"s", b"f", b"q", 1, CellType::Put).as_key(),
            value: &[0; 10_000],
            tags: b"",
            seq: SeqId(2),
        });
    }

    /// Bytes in use and pinned bytes.
    fn sums(&self) -> (u64, u64) {
        (self.chunks.used_bytes(), self.chunks.pinned_bytes())
    }
}

fn spawn<T: 'static>(
    server: &Arc<Server>,
    run: impl FnOnce(&Server) -> T + 'static,
) -> thread::JoinHandle<T> {
    let server = Arc::clone(server);
    thread::spawn(move || run(&server))
}

/// Sequence ids of the cells.
fn seqs<'a>(memstores: impl IntoIterator<Item = &'a Arc<Memstore>>) -> Vec<u64> {
    let mut seqs = Vec::new();
    for memstore in memstores {
        let mut cursor = memstore.cursor();
        let first = KeyBuf::new(b"", b"f", b"", i64::MAX, CellType::Put);
        cursor.seek(first.as_key()).unwrap();
        while let Some(cell) = cursor.cell() {
            seqs.push(cell.seq.0);
            cursor.advance().unwrap();
        }
    }
    seqs.sort_unstable();
    seqs
}

/// Captures until nothing changes meanwhile, as a scan or a get does: the sequence ids in memory,
/// and the read point.
fn see(server: &Server, as_scan: bool) -> (Vec<u64>, SeqId) {
    loop {
        if as_scan {
            if let Some(captured) = capture(std::slice::from_ref(&server.region), &server.wal) {
                return (seqs(captured.versions[0].memstores()), captured.read_point);
            }
        } else if let Some((version, read_point)) = capture_one(&server.region, &server.wal) {
            return (seqs(version.memstores()), read_point);
        }
    }
}

/// A writer, a freeze and a reader: the versions that were captured have every edit up to the read point,
/// whenever that was.
#[test]
fn loom_a_reader_has_every_edit_up_to_its_read_point() {
    for as_scan in [true, false] {
        check(2, move || {
            let server = Server::new();
            let freezer = spawn(&server, |server| server.freeze());
            let reader = spawn(&server, move |server| {
                let (seen, read_point) = see(server, as_scan);
                let mut expected = 1..=read_point.0;
                assert!(
                    expected.all(|seq| seen.contains(&seq)),
                    "{seen:?} up to {read_point}"
                );
            });
            server.put(2);
            freezer.join().unwrap();
            reader.join().unwrap();
            assert_eq!(see(&server, as_scan).0, [1, 2]);
        });
    }
}

/// A writer and a freeze: the frozen memstore holds every edit up to the flush's sequence id and
/// nothing later, also when that is published.
#[test]
fn loom_a_freeze_takes_what_it_claims() {
    check(2, || {
        let server = Server::new();
        let freezer = spawn(&server, |server| {
            let claimed = server.freeze();
            let frozen = server.region.load_version().stores[0].frozen.clone();
            server.wal.wait_published(claimed).unwrap();
            assert_eq!(seqs(&frozen), (1..=claimed.0).collect::<Vec<_>>());
            (claimed, frozen)
        });
        server.put(2);
        let (claimed, frozen) = freezer.join().unwrap();
        assert_eq!(seqs(&frozen), (1..=claimed.0).collect::<Vec<_>>());
        assert_eq!(seqs(server.region.version().memstores()), [1, 2]);
    });
}

/// A flush that installs its result, a freeze for the next one, and a change of the descriptor: none of the
/// three undoes another.
#[test]
fn loom_no_publication_is_lost() {
    check(3, || {
        let server = Server::new();
        server.freeze();
        let frozen = server.region.load_version().stores[0].frozen.clone();
        server.put(2);
        let installs = spawn(&server, move |server| server.install(&frozen));
        let freezes = spawn(&server, |server| server.freeze());
        let table = Arc::new(TableDescriptor::clone(&server.region.version().table));
        server.region.publish(|current| RegionVersion {
            table: Arc::clone(&table),
            ..current.clone()
        });
        installs.join().unwrap();
        freezes.join().unwrap();
        let version = server.region.load_version();
        assert!(Arc::ptr_eq(&version.table, &table));
        assert_eq!(seqs(&version.stores[0].frozen), [2]);
        assert_eq!(version.stores[0].active.cell_count(), 0);
    });
}

/// A writer takes memory while a flush gives other memory back: in the end the sum equals the bytes of
/// the region's memstores. The flushed one is pinned as long as a version that was replaced has it.
#[test]
fn loom_the_sum_of_bytes_does_not_drift() {
    check(3, || {
        let server = Server::new();
        server.freeze();
        let frozen = server.region.load_version().stores[0].frozen.clone();
        let flushed: u64 = frozen.iter().map(|memstore| memstore.bytes()).sum();
        let writer = spawn(&server, |server| server.insert_large());
        let flush = spawn(&server, move |server| server.install(&frozen));
        writer.join().unwrap();
        flush.join().unwrap();
        let (used, pinned) = server.sums();
        assert_eq!(used, server.region.memstore_bytes());
        assert!(pinned == 0 || pinned == flushed, "{pinned} of {flushed}");
    });
}

/// A writer takes memory while its region is retired: nothing of it stays in the sum.
#[test]
fn loom_a_retired_region_leaves_nothing_in_the_sum() {
    check(3, || {
        let server = Server::new();
        let writer = spawn(&server, |server| server.insert_large());
        server.region.retire();
        server.region.pin_memstores();
        writer.join().unwrap();
        assert_eq!(server.sums(), (0, server.region.memstore_bytes()));
    });
}

/// A scan is entered while the read point moves on and a flush asks for the horizon, which is never
/// later than the scan.
#[test]
fn loom_no_flush_looks_past_an_open_scan() {
    check(2, || {
        let server = Server::new();
        let points = Arc::new(ReadPoints::default());
        let now = |server: &Server| ReadView {
            read_point: server.wal.read_point(),
            now_ms: 0,
            ahead: crate::clock::Ahead::NONE,
        };
        let flush = {
            let points = Arc::clone(&points);
            spawn(&server, move |server| {
                points
                    .horizon(&server.region.info().table, || now(server))
                    .read_point
            })
        };
        let scan = {
            let points = Arc::clone(&points);
            spawn(&server, move |server| {
                points.enter(&server.region.info().table, || now(server))
            })
        };
        server.put(2);
        let horizon = flush.join().unwrap();
        let mut scan = scan.join().unwrap();
        assert!(
            horizon <= scan.read_view().read_point,
            "the flush has looked past the scan"
        );
        let ask = || {
            points
                .horizon(&server.region.info().table, || now(&server))
                .read_point
        };
        assert_eq!(ask(), scan.read_view().read_point);
        scan.advance(server.wal.read_point());
        assert_eq!(ask(), SeqId(2));
    });
}

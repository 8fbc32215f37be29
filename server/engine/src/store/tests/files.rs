//! The life of store files: flushed, compacted, shared after a split, obsolete, gone; and the
//! remains of failures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::TextCell;
use super::harness::{TestStore, read_all, show};
use crate::cache::Priority;
use crate::cell::{CellCursor as _, KeyBuf};
use crate::error::Error;
use crate::fs::Open;
use crate::fs::sim::{OpKind, Times};
use crate::hfile::{Access, ReadOptions};
use crate::id::{FileId, SeqId, Uuid};
use crate::op::ReadSpec;
use crate::store::removals::remove_all;
use crate::store::{Clip, ReadRows, StoreFile};

fn clip(start: &str, end: &str) -> Clip {
    Clip {
        start: start.as_bytes().to_vec(),
        end: end.as_bytes().to_vec(),
    }
}

fn two_files() -> TestStore {
    let mut store = TestStore::new("VERSIONS=9");
    store.write_all("a/p/1/P b/p/1/P c/p/1/P");
    store.flush();
    store.write_all("b/p/2/P d/p/1/P");
    store.flush();
    store
}

#[test]
fn a_flush_of_nothing_leaves_nothing() {
    let mut store = TestStore::new("TTL=5");
    store.flush();
    store.write_all("a/p/1/P b/p/2/DC");
    store.flush();
    assert!(store.version.files.is_empty() && store.version.frozen.is_empty());
    assert!(store.names_on_disk().is_empty());
}

#[test]
fn a_flushed_file_survives_a_power_cut() {
    let store = two_files();
    let after = store.disk.crash(7);
    for file in &store.version.files {
        assert_eq!(
            after.contents(&file.path()).unwrap(),
            store.disk.contents(&file.path()).unwrap()
        );
    }
    assert!(store.version.files.is_sorted_by_key(|file| file.meta().max_seq));
    assert_eq!(store.version.files_max_seq(), SeqId(5));
}

/// Inputs stay as long as they are being read, and are removed with the last reader.
#[test]
fn obsolete_files_go_with_their_last_reader() {
    let mut store = two_files();
    let inputs: Vec<String> = store.names_on_disk();
    let mut scanner = store.open(None, &ReadSpec::default(), SeqId::MAX, ReadRows::One(b"b"));
    let old = store.version.clone();
    store.compact(0..2);
    assert_eq!(store.names_on_disk().len(), 3);
    assert_eq!(show(&read_all(&mut scanner, None, 9)), "b/p/2/P");
    drop(old);
    let left = store.names_on_disk();
    assert_eq!(left.len(), 1);
    assert!(!inputs.contains(&left[0]));
    assert_eq!(store.get("b", 9), "b/p/2/P b/p/1/P");
    assert!(store.errors.0.lock().is_empty());
}

/// With a thread for removals, the last reader of a file does not remove it: here the thread comes
/// afterwards. The thread ends when it has removed all, and then readers remove files themselves
/// again.
#[test]
fn obsolete_files_are_left_to_the_thread_that_removes_them() {
    let mut store = two_files();
    let removals = Arc::clone(&store.context.removals);
    removals.expect_thread();
    store.compact(0..2);
    assert_eq!(store.names_on_disk().len(), 3);
    removals.stop();
    removals.serve(&store.context);
    assert_eq!(store.names_on_disk().len(), 1);
    store.write_all("e/p/9/P");
    store.flush();
    store.compact(0..2);
    assert_eq!(store.names_on_disk().len(), 1);
}

/// A file that a cursor still reads keeps its name, so that it can be opened again; the thread for
/// removals closes it.
#[test]
fn files_that_are_read_keep_their_names() {
    let store = two_files();
    let file = Arc::clone(store.version.files[0].reader());
    let alive = Arc::downgrade(&file);
    let context = store.context.clone();
    let name = file.id().to_string();
    let mut cursor = file.cursor(ReadOptions {
        cache_blocks: true,
        priority: Priority::Single,
        memory_only: false,
        charge: None,
        access: Access::Random,
    });
    drop(store);
    let mut held = Vec::new();
    remove_all(&context, vec![file], &mut held);
    let path = Path::new("db/tables/default/t/f").join(name);
    assert!(context.vfs.exists(&path).unwrap());
    assert_eq!((held.len(), alive.strong_count()), (1, 2));
    // Other files take the handles, so that the cursor must open its file again.
    let handles = &context.reader.handles;
    let _others = ["x", "y", "z"].map(|name| {
        drop(handles.create(Path::new(name)).unwrap());
        handles.open(Path::new(name), Open::Read).unwrap()
    });
    let opens = handles.usage().opens;
    cursor.seek(KeyBuf::first_on_row(b"b", b"f").as_key()).unwrap();
    assert_eq!(cursor.cell().unwrap().key.row(), b"b");
    assert_eq!(handles.usage().opens, opens + 1);
    drop(cursor);
    assert_eq!(alive.strong_count(), 1);
    remove_all(&context, Vec::new(), &mut held);
    assert_eq!((held.len(), alive.strong_count()), (0, 0));
    assert!(!context.vfs.exists(&path).unwrap());
}

#[test]
fn a_file_that_cannot_be_removed_is_reported() {
    let mut store = two_files();
    store.disk.fail(OpKind::RemoveFile, "", Errno::IO, Times::Once);
    store.compact(0..2);
    let errors = store.errors.0.lock();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("removing an obsolete store file: removing obsolete db/tables/default/t/f/"),
        "{errors:?}"
    );
}

/// A process that ends leaves its files alone.
#[test]
fn files_that_are_not_obsolete_stay() {
    let store = two_files();
    let disk = store.disk.clone();
    let before = disk.files();
    drop(store);
    assert_eq!(disk.files(), before);
}

/// After a split both halves hold a share in each file, see only their own rows, and the file goes with the
/// second of them.
#[test]
fn a_shared_file_is_clipped_and_goes_when_both_halves_have_compacted() {
    let parent = two_files();
    let mut halves = [parent.half(&clip("", "c"), 1), parent.half(&clip("c", ""), 2)];
    for file in &parent.version.files {
        file.mark_obsolete();
    }
    let disk = parent.disk.clone();
    drop(parent);
    assert_eq!(disk.files().len(), 2, "the halves still need them");
    let spec = ReadSpec {
        max_versions: 9,
        ..ReadSpec::default()
    };
    let expected = ["a/p/1/P b/p/2/P b/p/1/P", "c/p/1/P d/p/1/P"];
    let backwards = ["b/p/2/P b/p/1/P a/p/1/P", "d/p/1/P c/p/1/P"];
    for (number, half) in halves.iter_mut().enumerate() {
        assert_eq!(half.scan(&spec), expected[number]);
        let rows = ReadRows::Range {
            low: b"",
            high: b"",
            reversed: true,
        };
        let mut scanner = half.open(None, &spec, SeqId::MAX, rows);
        assert_eq!(show(&read_all(&mut scanner, None, 9)), backwards[number]);
        assert_eq!(half.get(["c", "a"][number], 9), "", "a row of the other half");
        let clipped: Vec<bool> = half.version.files.iter().map(|file| file.is_clipped()).collect();
        assert_eq!(clipped, [true, true]);
        drop(scanner);
        half.compact(0..2);
        assert_eq!(half.scan(&spec), expected[number]);
        assert!(!half.version.files[0].is_clipped());
        assert_eq!(disk.files().len(), [3, 2][number]);
    }
    let cells: Vec<u64> = halves
        .iter()
        .map(|half| half.version.files[0].meta().cells)
        .collect();
    assert_eq!(cells, [3, 2]);
}

#[test]
fn a_file_inside_the_clip_is_not_clipped() {
    let store = two_files();
    let file = &store.version.files[0];
    assert!(!file.reclip(clip("a", "d")).is_clipped());
    assert!(!file.reclip(clip("", "")).is_clipped());
    assert!(file.reclip(clip("aa", "")).is_clipped());
    assert!(file.reclip(clip("", "c")).is_clipped());
}

/// The manifest says which file it means; another one under the same name is refused.
#[test]
fn a_swapped_file_is_found_out() {
    let store = two_files();
    let file = &store.version.files[0];
    let open = |change: &dyn Fn(&mut crate::manifest::FileMeta)| {
        let mut meta = file.meta().clone();
        change(&mut meta);
        StoreFile::open(&store.context, &store.dir, meta, Clip::default())
    };
    assert_eq!(open(&|_| {}).unwrap().meta(), file.meta());
    let error = open(&|meta| meta.uuid = Uuid([7; 16])).unwrap_err().to_string();
    assert!(error.contains("another file lies under this name"), "{error}");
    let error = open(&|meta| meta.cells += 1).unwrap_err().to_string();
    assert!(error.contains("the manifest says"), "{error}");
    assert!(matches!(
        open(&|meta| meta.id = FileId(99)),
        Err(Error::Io { .. })
    ));
}

/// Whatever call fails, a flush or compaction leaves no file, and the next attempt succeeds.
#[test]
fn failures_leave_nothing_and_can_be_repeated() {
    let kinds = [
        OpKind::Create,
        OpKind::Write,
        OpKind::Sync,
        OpKind::SyncDir,
        OpKind::Open,
        OpKind::Read,
        OpKind::DrawUuid,
    ];
    for kind in kinds {
        let mut store = two_files();
        store.write_all("e/p/1/P");
        let before = store.names_on_disk();
        let fault = store.disk.fail(kind, "", Errno::NOSPC, Times::Once);
        let failed = store.try_flush().unwrap_err();
        assert!(matches!(failed, Error::Io { .. }), "{kind:?}: {failed}");
        store.disk.heal(fault);
        assert_eq!(store.names_on_disk(), before, "{kind:?}");
        assert_eq!(store.get("e", 1), "e/p/1/P", "still in memory");
        store.flush();
        assert_eq!(store.get("e", 1), "e/p/1/P");

        let before = store.names_on_disk();
        let fault = store.disk.fail(kind, "", Errno::IO, Times::Once);
        let cancel = AtomicBool::new(false);
        let failed = store.try_compact(0..3, &cancel).unwrap_err();
        assert!(matches!(failed, Error::Io { .. }), "{kind:?}: {failed}");
        store.disk.heal(fault);
        assert_eq!(store.names_on_disk(), before, "{kind:?}");
        store.compact(0..3);
        assert_eq!(
            store.scan(&ReadSpec::default()),
            "a/p/1/P b/p/2/P c/p/1/P d/p/1/P e/p/1/P"
        );
        assert!(store.errors.0.lock().is_empty());
    }
}

#[test]
fn a_cancelled_compaction_leaves_nothing() {
    let mut store = TestStore::new("");
    for _ in 0..2 {
        let value = "v".repeat(1000);
        for row in 0..500 {
            store.write_all(&format!("row{row}/p/1/P={value}"));
        }
        store.flush();
    }
    let before = store.names_on_disk();
    let cancel = AtomicBool::new(true);
    assert!(!store.try_compact(0..2, &cancel).unwrap());
    assert_eq!((store.names_on_disk(), store.version.files.len()), (before, 2));
    cancel.store(false, Ordering::SeqCst);
    assert!(store.try_compact(0..2, &cancel).unwrap());
    assert_eq!(store.version.files[0].meta().cells, 500);
}

/// A compaction that writes little, because it drops most of what it reads, ends as soon.
#[test]
fn a_cancelled_compaction_that_drops_much_ends() {
    let mut store = TestStore::new("");
    for _ in 0..3 {
        for row in 0..1400 {
            store.write_all(&format!("row{row}/p/1/P"));
        }
        store.flush();
    }
    assert!(!store.try_compact(0..3, &AtomicBool::new(true)).unwrap());
    assert!(store.try_compact(0..3, &AtomicBool::new(false)).unwrap());
    let merged = store.version.files[0].meta();
    assert_eq!(merged.cells, 1400);
    assert!(
        merged.bytes < 64 << 10,
        "{}: fewer bytes than between two looks at the limiter",
        merged.bytes
    );
}

/// A damaged input is never copied into a clean-looking output.
#[test]
fn a_compaction_of_a_damaged_file_fails() {
    let mut store = two_files();
    let path = store.version.files[0].path();
    store.disk.flip_bit(&path, 8 * 60).unwrap();
    let before = store.names_on_disk();
    let error = store.try_compact(0..2, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(store.names_on_disk(), before);
}

#[test]
fn only_a_compaction_of_all_files_drops_tombstones() {
    let mut store = TestStore::new("VERSIONS=9");
    for cells in ["a/p/1/P b/p/1/P", "a/p/2/DC a/p/3/P", "b//5/DF"] {
        store.write_all(cells);
        store.flush();
    }
    let cells = |store: &TestStore| -> Vec<(u64, bool)> {
        let metas = store.version.files.iter().map(|file| file.meta());
        metas.map(|meta| (meta.cells, meta.major)).collect()
    };
    store.compact(1..3);
    assert_eq!(cells(&store), [(2, false), (3, false)]);
    assert_eq!(store.get("a", 9), "a/p/3/P");
    store.compact(0..2);
    assert_eq!(cells(&store), [(1, true)]);
    assert_eq!(store.get("a", 9), "a/p/3/P");
    assert_eq!(store.get("b", 9), "");
    // With the tombstone gone, an old timestamp is writable again: HBase's behaviour.
    store.write_all("b/p/1/P");
    assert_eq!(store.get("b", 9), "b/p/1/P");
}

/// Sequence ids above the earliest read point stay, and so do all ids if older files do not take
/// part: a write of the same version in one of those could be older or newer than them.
#[test]
fn only_a_compaction_of_all_files_drops_sequence_ids() {
    let mut store = TestStore::new("VERSIONS=9");
    for cells in ["a/p/1/P=old", "a/p/1/P=new b/p/1/P", "c/p/1/P"] {
        store.write_all(cells);
        store.flush();
    }
    let seqs = |store: &TestStore| -> Vec<u64> {
        let rows = ReadRows::Range {
            low: b"",
            high: b"",
            reversed: false,
        };
        let mut scanner = store.open(None, &ReadSpec::default(), SeqId::MAX, rows);
        let cells = read_all(&mut scanner, None, usize::MAX);
        cells.iter().map(|cell| cell.seq.0).collect()
    };
    store.compact(1..3);
    assert_eq!(seqs(&store), [2, 3, 4]);
    assert_eq!(store.get("a", 9), "a/p/1/P=new");
    store.horizon.read_point = SeqId(3);
    store.compact(0..2);
    assert_eq!(seqs(&store), [0, 0, 4]);
    assert_eq!(store.get("a", 9), "a/p/1/P=new");
    // A later write has a greater one: it is the newest write of the version, from memory and from
    // a file.
    store.write_all("a/p/1/P=newest");
    assert_eq!(store.get("a", 9), "a/p/1/P=newest");
    store.flush();
    store.compact(0..2);
    assert_eq!(store.get("a", 9), "a/p/1/P=newest");
    assert_eq!(seqs(&store), [5, 0, 4]);
}

/// As HBase: a file whose inputs had no tags has no room for them either.
#[test]
fn a_compaction_keeps_room_for_tags_where_there_are_some() {
    let tag = [0, 2, 8, 1];
    let mut store = two_files();
    store.compact(0..2);
    let file_info = |store: &TestStore| {
        let properties = store.version.files[0].properties();
        let key = b"hfile.MAX_TAGS_LEN".as_slice();
        (properties.tags, properties.file_info.get(key).cloned())
    };
    assert_eq!(file_info(&store), (false, None));
    let mut tagged = TextCell::parse("e/p/1/P");
    tagged.tags = tag.to_vec();
    store.write(tagged);
    store.flush();
    store.compact(0..2);
    assert_eq!(file_info(&store), (true, Some(vec![0, 0, 0, 4])));
    let mut scanner = store.open(None, &ReadSpec::default(), SeqId::MAX, ReadRows::One(b"e"));
    assert_eq!(read_all(&mut scanner, None, usize::MAX)[0].tags, tag);
    assert_eq!(store.get("d", 1), "d/p/1/P");
}

/// Files from elsewhere may have no sequence ids; then the newer file wins.
#[test]
fn without_sequence_ids_the_newer_file_wins() {
    let mut store = TestStore::new("");
    for value in ["old", "new"] {
        let cell = TextCell::parse(&format!("a/p/1/P={value}"));
        assert_eq!(cell.seq, SeqId::ZERO);
        store.version.active.insert(cell.as_cell());
        store.flush();
    }
    assert_eq!(store.get("a", 1), "a/p/1/P=new");
    store.compact(0..2);
    assert_eq!(store.get("a", 1), "a/p/1/P=new");
}

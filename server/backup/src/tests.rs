//! Backups of files that stand for a database: what comes back, what is copied, what is refused, and what
//! faults and kills leave.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::ObjectStoreExt as _;
use object_store::path::Path as ObjectPath;

use crate::testing::{Failing, Files, key, noise};
use crate::vault::Vault;
use crate::{CHUNK_BYTES, Class, CopyOptions, Error, Key, Made, Progress, Store};

const CHUNK: usize = CHUNK_BYTES as usize;
const DAY_MS: u64 = 86_400_000;
const NOW_MS: u64 = 1_700_000_000_000;

fn files() -> Files {
    let mut files = Files::new("cluster-a");
    files.put("tables/default/t/f/1", Class::Store, &noise(1, 2 * CHUNK + 77));
    files.put("tables/default/t/f\u{1}%/2", Class::Store, &noise(2, 1000));
    files.put("tables/default/t/f/3", Class::Store, b"");
    files.put("wal/1.wal", Class::Log, &noise(3, 5000));
    files.put("security/users.json", Class::Server, b"secret");
    files
}

async fn vault(store: Store, key: Option<Key>) -> Vault {
    Vault::open_or_begin(store, key, "cluster-a").await.unwrap()
}

async fn back_up(vault: &Vault, files: &Files, time_ms: u64, position: u64) -> Made {
    let point = files.point(time_ms, position);
    let made = vault
        .back_up(&point, CopyOptions::default(), &Progress::default())
        .await;
    made.unwrap()
}

/// Servers make backups in tasks, which may move between threads.
#[test]
fn a_backup_can_be_made_in_a_task() {
    fn is_send<T: Send>(_: &T) {}
    async fn make(vault: Arc<Vault>, point: Arc<crate::Point>, progress: Arc<Progress>) {
        let made = vault.back_up(&point, CopyOptions::default(), &progress).await;
        drop(made);
    }
    let dir = tempfile::tempdir().unwrap();
    let point = Arc::new(files().point(1, 1));
    let url = format!("file:{}", dir.path().display());
    let task = async move {
        let vault = vault(Store::open(&url, true).unwrap(), None).await;
        make(Arc::new(vault), point, Arc::default()).await;
    };
    is_send(&task);
}

/// Brings a backup back and compares it with the files.
async fn restore_and_compare(vault: &Vault, id: Option<&str>, files: &Files) {
    let dir = tempfile::tempdir().unwrap();
    let plan = vault.plan(id).await.unwrap();
    assert_eq!(plan.manifest, b"what the manifest says");
    let lost = plan
        .fetch(vault, dir.path(), "it", 3, 0, &Progress::default())
        .await
        .unwrap();
    assert!(lost.is_empty(), "{lost:?}");
    files.compare(dir.path(), vault.is_encrypted());
}

/// Goal: files come back as they were, in clear and encrypted, from a directory and from memory. Secrets are
/// there only where objects are encrypted.
#[tokio::test]
async fn a_backup_comes_back() {
    let files = files();
    for encrypted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file:{}/new/ö", dir.path().display());
        Store::open(&url, false).unwrap_err();
        let store = Store::open(&url, true).unwrap();
        for store in [store, Failing::new().store()] {
            let vault = vault(store, encrypted.then(|| key(1))).await;
            let made = back_up(&vault, &files, NOW_MS, 42).await;
            assert_eq!(made.left_out.len(), usize::from(!encrypted));
            assert_eq!(vault.ids().await.unwrap(), std::slice::from_ref(&made.id));
            restore_and_compare(&vault, None, &files).await;
            restore_and_compare(&vault, Some(&made.id), &files).await;
            let verified = vault.verify(&[], 4, 0, &Progress::default()).await.unwrap();
            assert!(verified.problems.is_empty(), "{:?}", verified.problems);
            assert!(verified.bytes > 2 * CHUNK_BYTES);
        }
    }
}

/// Goal: a second backup copies only what is new; one of the same content writes no chunk at all.
#[tokio::test]
async fn content_is_copied_once() {
    let mut files = files();
    let vault = vault(Failing::new().store(), Some(key(1))).await;
    let first = back_up(&vault, &files, NOW_MS, 1).await;
    assert!(first.written > 2 * CHUNK_BYTES);
    assert_eq!(back_up(&vault, &files, NOW_MS + 1, 2).await.written, 0);
    files.put("tables/default/t/f/4", Class::Store, &noise(4, 3000));
    let third = back_up(&vault, &files, NOW_MS + 2, 3).await;
    assert!((3000..3200).contains(&third.written), "{}", third.written);
    // The known files were not even read: these bytes are other ones now.
    std::fs::write(files.dir.path().join("tables/default/t/f/1"), b"").unwrap();
    back_up(&vault, &files, NOW_MS + 3, 4).await;
}

/// Goal: a backup that is cut short at any write is not listed, and the next one takes its chunks over.
#[tokio::test]
async fn a_backup_that_is_cut_short_is_none() {
    let files = files();
    // In one order, so that a later cut has written no less.
    let one_at_a_time = CopyOptions {
        parallel: 1,
        ..CopyOptions::default()
    };
    let failing = Failing::new();
    let mut whole = u64::MAX;
    for writes in 0.. {
        let failing = if writes == 0 {
            Arc::clone(&failing)
        } else {
            Failing::new()
        };
        let vault = vault(failing.store(), None).await;
        failing.writes_left.store(writes, Ordering::Relaxed);
        let point = files.point(NOW_MS, 1);
        let made = vault.back_up(&point, one_at_a_time, &Progress::default()).await;
        failing.writes_left.store(u64::MAX, Ordering::Relaxed);
        if made.is_ok() {
            assert!(writes > 5, "{writes}");
            break;
        }
        assert_eq!(
            vault.ids().await.unwrap(),
            Vec::<String>::new(),
            "{writes} writes"
        );
        let next = back_up(&vault, &files, NOW_MS + 1, 2).await;
        assert!(next.written <= whole);
        whole = next.written;
        restore_and_compare(&vault, None, &files).await;
    }
    assert!(
        whole < 100,
        "the last attempt lacked only its catalogue, not {whole} bytes"
    );
}

/// Goal: a prune removes old backups and what only they need, never what others need.
#[tokio::test]
async fn a_pruning_keeps_what_backups_need() {
    let mut files = files();
    let vault = vault(Failing::new().store(), None).await;
    let mut ids = Vec::new();
    for day in 0..5 {
        files.put(
            "tables/default/t/f/9",
            Class::Store,
            &noise(100 + day, 9000 + day as usize),
        );
        files.put("wal/1.wal", Class::Log, &noise(200 + day, 500));
        ids.push(back_up(&vault, &files, NOW_MS + day * DAY_MS, day).await.id);
    }
    let pruned = vault.prune(NOW_MS + 3 * DAY_MS).await.unwrap();
    assert_eq!((pruned.backups.as_slice(), pruned.kept), (&ids[..3], 2));
    assert_eq!(pruned.objects, 6);
    assert_eq!(vault.ids().await.unwrap(), ids[3..]);
    let verified = vault.verify(&[], 4, 0, &Progress::default()).await.unwrap();
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    restore_and_compare(&vault, None, &files).await;
    // The newest stays, however old.
    let pruned = vault.prune(u64::MAX).await.unwrap();
    assert_eq!((pruned.backups.as_slice(), pruned.kept), (&ids[3..4], 1));
    restore_and_compare(&vault, None, &files).await;
    assert_eq!(vault.prune(u64::MAX).await.unwrap().objects, 0);
}

/// Goal: damaged and missing objects are named with the files that need them; everything else comes back.
/// A damaged catalogue does not hide the other backups, and nothing is pruned beside it.
#[tokio::test]
async fn damage_is_named() {
    let mut files = files();
    let failing = Failing::new();
    let vault = vault(failing.store(), None).await;
    let first = back_up(&vault, &files, NOW_MS, 1).await;
    let before = vault.chunks().await.unwrap();
    files.put("tables/default/t/f/5", Class::Store, &noise(5, 4000));
    let second = back_up(&vault, &files, NOW_MS + DAY_MS, 2).await;
    let new = vault.chunks().await.unwrap();
    let chunk = *new.difference(&before).next().unwrap();
    let name = Vault::chunk_name(&chunk);
    let at = ObjectPath::from(name.as_str());

    let whole = failing.inner.get(&at).await.unwrap().bytes().await.unwrap();
    let mut flipped = whole.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    failing.inner.put(&at, flipped.into()).await.unwrap();
    let verified = vault.verify(&[], 4, 0, &Progress::default()).await.unwrap();
    assert_eq!(verified.problems.len(), 1);
    for part in [&name, "tables/default/t/f/5", &second.id] {
        assert!(verified.problems[0].contains(part), "{}", verified.problems[0]);
    }
    for gone in [false, true] {
        if gone {
            failing.inner.delete(&at).await.unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let plan = vault.plan(None).await.unwrap();
        let lost = plan
            .fetch(&vault, dir.path(), "it", 3, 0, &Progress::default())
            .await
            .unwrap();
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert_eq!(lost[0].path, Path::new("tables/default/t/f/5"));
        assert!(lost[0].error.to_string().contains(&name), "{}", lost[0].error);
        assert!(dir.path().join("tables/default/t/f/1").exists());
        assert!(!dir.path().join("tables/default/t/f/5").exists());
    }
    // The next backup does not count on a chunk that is gone.
    let third = back_up(&vault, &files, NOW_MS + 2 * DAY_MS, 3).await;
    assert!(third.written >= 4000);
    restore_and_compare(&vault, Some(&third.id), &files).await;

    let catalogue = ObjectPath::from(format!("catalogues/{}", first.id));
    failing
        .inner
        .put(&catalogue, b"nonsense".as_slice().into())
        .await
        .unwrap();
    let listed = vault.list().await.unwrap();
    assert_eq!(listed.iter().filter(|backup| backup.is_ok()).count(), 2);
    let refused = vault.prune(u64::MAX).await.unwrap_err().to_string();
    assert!(
        refused.contains("nothing was removed") && refused.contains(&first.id),
        "{refused}"
    );
    assert_eq!(vault.ids().await.unwrap().len(), 3);
    vault.plan(Some(&first.id)).await.unwrap_err();
}

/// Goal: another server, another key, no key and a key too many are refused, before anything is written.
#[tokio::test]
async fn others_are_refused() {
    let failing = Failing::new();
    let missing = Vault::open(failing.store(), None).await.unwrap_err().to_string();
    assert!(missing.contains("has no backups"), "{missing}");
    vault(failing.store(), Some(key(1))).await;
    let refused = async |key, cluster_id| {
        Vault::open_or_begin(failing.store(), key, cluster_id)
            .await
            .unwrap_err()
            .to_string()
    };
    assert!(
        refused(Some(key(1)), "cluster-b")
            .await
            .contains("another server")
    );
    assert!(refused(Some(key(2)), "cluster-a").await.contains("another key"));
    assert!(refused(None, "cluster-a").await.contains("--key-file"));
    let clear = Failing::new();
    vault(clear.store(), None).await;
    let extra = Vault::open(clear.store(), Some(key(1)))
        .await
        .unwrap_err()
        .to_string();
    assert!(extra.contains("are not encrypted"), "{extra}");
    for url in ["/path", "ftp://host/x", "s3://", "file:relative"] {
        assert!(matches!(Store::open(url, true), Err(Error::Refused(_))), "{url}");
    }
}

/// Goal: backup and pruning exclude each other; a mark that was left by a kill does so for a while only.
#[tokio::test]
async fn a_pruning_waits_for_backups() {
    use crate::marks::{Mark, Work};
    let vault = vault(Failing::new().store(), None).await;
    back_up(&vault, &files(), NOW_MS, 1).await;
    let mark = Mark::set(&vault.store, Work::Backup).await.unwrap();
    let refused = vault.prune(0).await.unwrap_err().to_string();
    assert!(refused.contains("a backup goes on"), "{refused}");
    // Two backups do not disturb each other.
    back_up(&vault, &files(), NOW_MS + 1, 2).await;
    mark.remove().await.unwrap();
    let mark = Mark::set(&vault.store, Work::Prune).await.unwrap();
    vault.prune(0).await.unwrap_err();
    let point = files().point(NOW_MS + 2, 3);
    let refused = vault
        .back_up(&point, CopyOptions::default(), &Progress::default())
        .await;
    assert!(refused.unwrap_err().to_string().contains("a pruning goes on"));
    mark.remove().await.unwrap();
    drop(Mark::set(&vault.store, Work::Backup).await.unwrap());
    tokio::task::yield_now().await;
    assert_eq!(vault.store.names("marks").await.unwrap(), Vec::<String>::new());
    vault.prune(0).await.unwrap();
}

/// Goal: a fetch that was cut short goes on where it ended, and one of another backup is refused.
#[tokio::test]
async fn a_fetch_is_taken_up() {
    let mut files = files();
    let failing = Failing::new();
    let vault = vault(failing.store(), None).await;
    back_up(&vault, &files, NOW_MS, 1).await;
    let dir = tempfile::tempdir().unwrap();
    let mut part = vault.plan(None).await.unwrap();
    part.keep(|_, path| path.ends_with("1"));
    part.fetch(&vault, dir.path(), "it", 1, 0, &Progress::default())
        .await
        .unwrap();

    let plan = vault.plan(None).await.unwrap();
    failing.reads.store(0, Ordering::Relaxed);
    let progress = Progress::default();
    plan.fetch(&vault, dir.path(), "it", 1, 0, &progress)
        .await
        .unwrap();
    assert_eq!(
        failing.reads.load(Ordering::Relaxed),
        2,
        "the large file was there"
    );
    assert_eq!(progress.figures().bytes_done, progress.figures().bytes_total);
    files.compare(dir.path(), false);

    files.put("wal/1.wal", Class::Log, &noise(6, 600));
    back_up(&vault, &files, NOW_MS + 1, 2).await;
    let other = vault.plan(None).await.unwrap();
    let refused = other
        .fetch(&vault, dir.path(), "another", 1, 0, &Progress::default())
        .await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("of it, not of another"), "{refused}");
    let stray = tempfile::tempdir().unwrap();
    std::fs::write(stray.path().join("file"), b"").unwrap();
    let refused = other
        .fetch(&vault, stray.path(), "it", 1, 0, &Progress::default())
        .await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("none of an unfinished restore")
    );
}

/// Goal: a store file with other bytes than the manifest says is refused by name.
#[tokio::test]
async fn damaged_files_are_not_backed_up() {
    let files = files();
    let vault = vault(Failing::new().store(), None).await;
    let path = files.dir.path().join("tables/default/t/f/1");
    let mut content = std::fs::read(&path).unwrap();
    content[CHUNK + 1] ^= 1;
    std::fs::write(&path, content).unwrap();
    let point = files.point(NOW_MS, 1);
    let made = vault
        .back_up(&point, CopyOptions::default(), &Progress::default())
        .await;
    let refused = made.unwrap_err().to_string();
    assert!(
        refused.contains("tables/default/t/f/1: the file is damaged"),
        "{refused}"
    );
    assert!(vault.ids().await.unwrap().is_empty());
}

/// A log that is shipped in pieces: bytes of segments.
struct Shipped<'a> {
    vault: &'a Vault,
    segments: Vec<Vec<u8>>,
}

impl Shipped<'_> {
    fn piece(segment: u64, from: u64, to: u64, turns: u64, position: u64) -> crate::Piece {
        crate::Piece {
            run: "17".into(),
            segment,
            from,
            to,
            turns,
            time_ms: NOW_MS + position * 1000,
            position,
        }
    }

    async fn ship(&self, segment: u64, from: u64, to: u64, turns: u64, position: u64) {
        let piece = Self::piece(segment, from, to, turns, position);
        let content = &self.segments[segment as usize - 1];
        let bytes = &content[from as usize..to as usize];
        let path = format!("wal/{segment}.wal");
        // A segment that is sealed has its content's length.
        let length = if to == content.len() as u64 { to } else { 6000 };
        let put = self.vault.put_piece(&piece, Path::new(&path), length, bytes);
        put.await.unwrap();
    }

    /// Restores to a target and compares the log; the position.
    async fn restore(&self, target: crate::Target) -> Option<u64> {
        let (plan, tail) = match self.vault.plan_at(target).await {
            Ok(planned) => planned,
            Err(Error::Refused(_)) => return None,
            Err(error) => panic!("{error}"),
        };
        let dir = tempfile::tempdir().unwrap();
        plan.fetch(self.vault, dir.path(), "it", 2, 0, &Progress::default())
            .await
            .unwrap();
        tail.fetch(self.vault, dir.path()).await.unwrap();
        for (number, content) in (1..).zip(&self.segments) {
            let Ok(found) = std::fs::read(dir.path().join(format!("wal/{number}.wal"))) else {
                continue;
            };
            // A piece says how long the file must be.
            assert!([1100, 2600, 5000, 6000].contains(&found.len()), "{}", found.len());
            // Bytes that were shipped, then zeros.
            let end = found
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |last| last + 1);
            assert_eq!(found[..end], content[..end]);
        }
        Some(match tail.until {
            crate::Until::Position(position) => position,
            // The engine cuts the log at the time.
            crate::Until::Time(_) => tail.pieces.last().map_or(0, |piece| piece.position),
        })
    }
}

/// Goal: positions and times between backups can be restored as far as pieces follow without a gap, with all
/// turns between; a listing says how far that is; a pruning keeps the pieces that kept backups need.
#[tokio::test]
async fn the_log_between_backups_can_be_restored() {
    use crate::Target::{Latest, Position, Time};
    let mut files = Files::new("cluster-a");
    let vault = vault(Failing::new().store(), Some(key(1))).await;
    let segments = vec![noise(31, 5000), noise(32, 6000), noise(33, 6000)];
    let shipped = Shipped {
        vault: &vault,
        segments,
    };
    let mut point = |position: u64, segment: u64, bytes: u64, turns: u64| {
        let content = &shipped.segments[segment as usize - 1][..bytes as usize];
        files.put(&format!("wal/{segment}.wal"), Class::Log, content);
        let mut point = files.point(NOW_MS + position * 1000, position);
        point.log = crate::LogPlace {
            run: "17".into(),
            turns,
            segment,
            bytes,
        };
        point
    };
    let copy = async |point: &crate::Point| {
        let made = vault
            .back_up(point, CopyOptions::default(), &Progress::default())
            .await;
        made.unwrap().id
    };
    let first = copy(&point(10, 1, 1000, 0)).await;
    shipped.ship(1, 500, 2000, 0, 20).await;
    shipped.ship(1, 2000, 5000, 0, 30).await;
    shipped.ship(2, 0, 1000, 0, 40).await;
    // A table is created in this piece.
    shipped.ship(2, 1000, 2000, 1, 50).await;
    let second = copy(&point(55, 2, 2500, 1)).await;
    shipped.ship(2, 2000, 3000, 1, 60).await;
    // A piece is missing.
    shipped.ship(2, 3500, 4000, 1, 70).await;

    let spans = vault.spans().await.unwrap();
    let shown: Vec<_> = spans
        .iter()
        .map(|span| (span.id.as_str(), span.from.position, span.to.position))
        .collect();
    assert_eq!(shown, [(first.as_str(), 10, 40), (second.as_str(), 55, 60)]);
    for (target, expected) in [
        (Position(9), None),
        (Position(10), Some(10)),
        (Position(11), Some(11)),
        (Position(25), Some(25)),
        (Position(40), Some(40)),
        (Position(41), None),
        (Position(54), None),
        (Position(55), Some(55)),
        (Position(60), Some(60)),
        (Position(61), None),
        (Latest, Some(60)),
        (Time(NOW_MS), None),
        (Time(NOW_MS + 10_000), Some(20)),
        (Time(NOW_MS + 19_999), Some(20)),
        // The second piece ends its segment.
        (Time(NOW_MS + 20_000), Some(40)),
        (Time(NOW_MS + 39_999), Some(40)),
        (Time(NOW_MS + 45_000), None),
        (Time(NOW_MS + 61_000), None),
    ] {
        assert_eq!(shipped.restore(target).await, expected, "{target:?}");
    }
    // A standby that is in the third piece: the turn is not known, so the log ends before the next one for
    // it.
    let from = |bytes, turns| crate::LogPlace {
        run: "17".into(),
        turns,
        segment: 2,
        bytes,
    };
    let ahead = vault.log_after(&from(500, 0)).await.unwrap();
    let positions = |ahead: &crate::LogAhead| {
        ahead
            .pieces
            .iter()
            .map(|piece| piece.position)
            .collect::<Vec<_>>()
    };
    assert_eq!((positions(&ahead), ahead.is_cut), (vec![40], true));
    assert_eq!(ahead.reach, from(1000, 0));
    let ahead = vault.log_after(&from(2000, 1)).await.unwrap();
    assert_eq!(
        (positions(&ahead), ahead.is_cut, ahead.known_turn),
        (vec![60], true, 0)
    );
    assert_eq!(ahead.covered_ms, NOW_MS + 60_000);
    let base = async |position, turns| {
        let base = vault.base("17", position, turns).await.unwrap();
        base.map(|plan| plan.id())
    };
    assert_eq!(base(9, 0).await, None);
    assert_eq!(base(54, 1).await.as_ref(), Some(&first));
    assert_eq!(base(99, 0).await.as_ref(), Some(&first));
    assert_eq!(base(55, 1).await.as_ref(), Some(&second));
    assert!(vault.base("18", 99, 9).await.unwrap().is_none());

    // The log was looked at later, and had not grown.
    let mut place = Shipped::piece(2, 2000, 3000, 1, 60);
    place.time_ms = NOW_MS + 99_000;
    vault.put_seen(&place).await.unwrap();
    assert_eq!(shipped.restore(Time(NOW_MS + 90_000)).await, Some(60));
    assert_eq!(vault.spans().await.unwrap()[1].to.time_ms, NOW_MS + 99_000);
    let ahead = vault.log_after(&from(3000, 1)).await.unwrap();
    assert_eq!(
        (positions(&ahead), ahead.covered_ms, ahead.known_turn),
        (vec![], NOW_MS + 99_000, 1)
    );

    // The turn is known: the log behind it goes with the first backup, too.
    let turn = crate::Turn {
        number: 1,
        position: 45,
        time_ms: NOW_MS + 46_000,
        edit: b"an edit".to_vec(),
    };
    vault.put_turns("17", std::slice::from_ref(&turn)).await.unwrap();
    let turns_at = async |target| vault.plan_at(target).await.unwrap().1.turns;
    assert_eq!(turns_at(Position(45)).await, []);
    assert_eq!(turns_at(Position(46)).await, std::slice::from_ref(&turn));
    assert_eq!(turns_at(Time(NOW_MS + 45_999)).await, []);
    assert_eq!(turns_at(Time(NOW_MS + 46_000)).await, [turn]);
    assert_eq!(shipped.restore(Position(54)).await, Some(54));
    assert_eq!(shipped.restore(Time(NOW_MS + 45_000)).await, Some(50));
    assert_eq!(vault.spans().await.unwrap()[0].to.position, 60);

    // Two pieces as one.
    shipped.ship(1, 500, 5000, 0, 30).await;
    vault
        .delete_piece(&Shipped::piece(1, 500, 2000, 0, 20))
        .await
        .unwrap();
    assert_eq!(shipped.restore(Position(35)).await, Some(35));
    let verified = vault.verify(&[], 2, 0, &Progress::default()).await.unwrap();
    assert!(
        verified.problems.is_empty() && verified.pieces == 4,
        "{verified:?}"
    );

    let pruned = vault.prune(NOW_MS + 55_000).await.unwrap();
    assert_eq!((pruned.backups.len(), pruned.pieces), (1, 4));
    assert_eq!(shipped.restore(Position(60)).await, Some(60));
    assert_eq!(shipped.restore(Position(25)).await, None);
}

//! Each engine does what a `Store` is to do, and its version is the one of Cargo.lock.

use basalt_load::engine::{From, KEY_BYTES, Key, Rows, Session, Store};

use super::*;

fn line(db: &Path, more: &[&str]) -> CommandLine {
    let db = db.to_str().unwrap();
    let words = ["basalt-rivals", "--engine=fjall", "--db", db, "--bloom-bits=10"];
    CommandLine::parse_from(words.iter().chain(more))
}

fn key(number: u64) -> Key {
    let mut key = [b'0'; KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// Rows of a scan, and whether it began at its key.
fn scanned(session: &mut impl Session, from: From<'_>, rows: u64) -> (Rows, bool) {
    let mut all = Rows::default();
    let at_key = session
        .scan(from, rows, |read| {
            assert!(read.rows > 0, "a call without rows");
            all.rows += read.rows;
            all.bytes += read.bytes;
        })
        .unwrap();
    (all, at_key)
}

/// Even numbers from 0 to 998 have a key, with 30 bytes each.
fn check_reads(store: &impl Store) {
    let mut session = store.session();
    assert_eq!(session.get(&key(10)).unwrap(), Some(30));
    assert_eq!(session.get(&key(11)).unwrap(), None);
    assert_eq!(session.get(&[&key(10)[..], b"0"].concat()).unwrap(), None);
    let (rows, bytes) = (2, 2 * 46);
    assert_eq!(
        session.get_all(&[key(998), key(3), key(0)]).unwrap(),
        Rows { rows, bytes }
    );
    for from in [From::First, From::Last] {
        let all = Rows {
            rows: 500,
            bytes: 500 * 46,
        };
        assert_eq!(scanned(&mut session, from, 1_000), (all, false));
        assert_eq!(scanned(&mut session, from, 250).0.rows, 250);
    }
    assert_eq!(scanned(&mut session, From::Key(&key(996)), 10).0.rows, 2);
    assert!(scanned(&mut session, From::Key(&key(996)), 10).1);
    assert!(!scanned(&mut session, From::Key(&key(995)), 10).1);
}

fn check<S: Store>(open: impl Fn() -> Result<S>) {
    let store = open().unwrap();
    let mut session = store.session();
    for number in (0..1_000).step_by(2) {
        assert_eq!(session.put(&[(key(number), &[7; 10])], false).unwrap(), 0);
        session.put(&[(key(number), &[7; 30])], number == 500).unwrap();
    }
    // Together, of which the last one of a key counts.
    let gone: [(Key, &[u8]); 3] = [(key(1_001), b"gone"), (key(998), b"old"), (key(998), &[7; 30])];
    session.put(&gone, false).unwrap();
    session.delete(&key(1_001), true).unwrap();
    drop(session);
    assert!(store.standing().unwrap().memstore_bytes > 500 * 46);
    check_reads(&store);
    store.compact().unwrap();
    let standing = store.standing().unwrap();
    assert_eq!(standing.store_files, 1);
    assert!(standing.store_bytes > 500 * 46);
    check_reads(&store);
    store.close().unwrap();
    let store = open().unwrap();
    check_reads(&store);
    store.close().unwrap();
}

#[test]
fn fjall_is_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let line = line(dir.path(), &[]);
    check(|| Fjall::open(&dir.path().join("data"), &line.arguments));
}

#[test]
fn fjall_refuses_what_it_cannot_do() {
    let dir = tempfile::tempdir().unwrap();
    for option in [
        "--use-direct-reads",
        "--disable-auto-compactions",
        "--compression=zstd",
    ] {
        let line = line(dir.path(), &[option]);
        let opened = Fjall::open(&dir.path().join("data"), &line.arguments);
        assert!(matches!(opened, Err(Error::Usage(_))), "{option}");
    }
}

#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_is_a_store() {
    for more in [&[][..], &["--compression=lz4", "--block-size=16384"]] {
        let dir = tempfile::tempdir().unwrap();
        let line = line(dir.path(), more);
        check(|| RocksDb::open(&dir.path().join("data"), &line.arguments, more.is_empty()));
    }
}

/// Counters are part of the report.
#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_counts_what_it_writes_for_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap().to_owned();
    for (more, counts) in [(&[][..], false), (&["--out", &out][..], true)] {
        let line = line(dir.path(), more);
        let store = RocksDb::open(&dir.path().join(format!("{counts}")), &line.arguments, false).unwrap();
        store.session().put(&[(key(1), &[7; 30])], false).unwrap();
        store.compact().unwrap();
        let standing = store.standing().unwrap();
        assert_eq!(standing.wal_bytes.is_some_and(|bytes| bytes > 46), counts);
        assert_eq!(standing.flush_bytes.is_some_and(|bytes| bytes > 46), counts);
        store.close().unwrap();
    }
}

#[test]
fn versions_are_those_of_the_lock_file() {
    let lock = include_str!("../Cargo.lock");
    let version = |package: &str| {
        let (_, rest) = lock
            .split_once(&format!("name = \"{package}\"\nversion = \""))
            .unwrap();
        rest.split_once('"').unwrap().0
    };
    assert_eq!(version("fjall"), fjall_store::VERSION);
    #[cfg(feature = "rocksdb")]
    assert_eq!(
        version("librocksdb-sys").split_once('+').unwrap().1,
        rocksdb_store::VERSION
    );
}

//! Each option of a family changes the engine's behaviour, seen from outside.

use std::sync::Arc;

use super::harness::{NOBODY, TestStore, family};
use crate::error::Error;
use crate::id::SeqId;
use crate::op::{Columns, FamilySelection, ReadSpec, TimeRange};
use crate::schema::{BloomType, Compression, DataBlockEncoding};
use crate::store::{Reach, ReadRows, StoreScanner};

/// Writes, flushes, and returns the cells that are in the file.
fn cells_after_flush(options: &str, cells: &str) -> u64 {
    let mut store = TestStore::new(options);
    store.write_all(cells);
    store.flush();
    store.version.files.iter().map(|file| file.meta().cells).sum()
}

#[test]
fn versions_bound_reads_and_what_is_kept() {
    let cells = "a/p/1/P a/p/2/P a/p/3/P a/p/4/P";
    let mut store = TestStore::new("VERSIONS=3");
    store.write_all(cells);
    assert_eq!(store.get("a", 9), "a/p/4/P a/p/3/P a/p/2/P");
    assert_eq!(store.get("a", 1), "a/p/4/P");
    assert_eq!(cells_after_flush("VERSIONS=3", cells), 3);
    assert_eq!(cells_after_flush("VERSIONS=1", cells), 1);
}

#[test]
fn ttl_and_min_versions_decide_what_age_takes() {
    let cells = "a/p/1000/P a/p/2000/P a/p/8000/P b/p/1000/P";
    assert_eq!(cells_after_flush("VERSIONS=9", cells), 4);
    assert_eq!(cells_after_flush("VERSIONS=9 TTL=5", cells), 1);
    assert_eq!(cells_after_flush("VERSIONS=9 TTL=5 MIN_VERSIONS=2", cells), 3);
    let mut store = TestStore::new("VERSIONS=9 TTL=5 MIN_VERSIONS=2");
    store.write_all(cells);
    assert_eq!(store.get("a", 9), "a/p/8000/P a/p/2000/P");
    assert_eq!(store.get("b", 9), "b/p/1000/P");
}

#[test]
fn keep_deleted_cells_keeps_the_past_readable() {
    let past = ReadSpec {
        time_range: TimeRange { min: 0, max: 20 },
        ..ReadSpec::default()
    };
    for (keep, kept, visible) in [("FALSE", 1, ""), ("TRUE", 2, "a/p/10/P"), ("TTL", 2, "a/p/10/P")] {
        let mut store = TestStore::new(&format!("KEEP_DELETED_CELLS={keep}"));
        store.write_all("a/p/10/P a/p/20/DC");
        assert_eq!(store.scan(&past), visible, "{keep} in memory");
        store.flush();
        assert_eq!(store.version.files[0].meta().cells, kept, "{keep}");
        assert_eq!(store.scan(&past), visible, "{keep} on disk");
        assert_eq!(store.scan(&ReadSpec::default()), "", "{keep} now");
    }
}

/// Two rows with a gap, so that the key range of the file cannot exclude a row between them.
fn with_bloom(bloom: &str) -> TestStore {
    let mut store = TestStore::new(&format!("BLOOMFILTER={bloom}"));
    store.write_all("a/p/1/P c/p/1/P");
    store.flush();
    assert_eq!(store.version.files[0].properties().bloom.as_str(), bloom);
    store
}

fn bloom_counts(store: &TestStore) -> (u64, u64) {
    let counters = &store.context.reader.counters;
    (counters.bloom_checks.get(), counters.bloom_skips.get())
}

fn get_column(store: &TestStore, row: &str, column: &str) -> StoreScanner {
    let selection = FamilySelection {
        family: b"f".to_vec(),
        columns: Columns::Only(vec![column.as_bytes().to_vec()]),
    };
    let rows = ReadRows::One(row.as_bytes());
    store.open(Some(&selection), &ReadSpec::default(), SeqId::MAX, rows)
}

#[test]
fn bloom_filters_leave_files_out() {
    let store = with_bloom("NONE");
    assert_eq!(store.get("b", 1), "");
    assert_eq!(bloom_counts(&store), (0, 0));

    let store = with_bloom("ROW");
    assert_eq!(store.get("b", 1), "");
    assert_eq!(bloom_counts(&store), (1, 1));
    assert_eq!(store.get("a", 1), "a/p/1/P");
    assert_eq!(bloom_counts(&store), (2, 1));
    assert!(get_column(&store, "a", "q").row().is_some() || bloom_counts(&store) == (3, 1));

    let store = with_bloom("ROWCOL");
    assert_eq!(get_column(&store, "a", "q").row(), None);
    assert_eq!(bloom_counts(&store), (1, 1));
    assert_eq!(get_column(&store, "a", "p").row(), Some(b"a".as_slice()));
    assert_eq!(bloom_counts(&store), (2, 1));
    assert_eq!(store.context.reader.counters.bloom_false_positives.get(), 0);
}

/// A filter of prefixes answers for rows, and for ranges of rows that all begin alike.
#[test]
fn bloom_filters_of_prefixes_leave_files_out() {
    let mut store = TestStore::new("BLOOMFILTER=ROWPREFIX_FIXED_LENGTH");
    let mut family = (*store.version.family).clone();
    family
        .configuration
        .insert(b"RowPrefixBloomFilter.prefix_length".to_vec(), b"3".to_vec());
    family.check().unwrap();
    store.version.family = Arc::new(family);
    store.write_all("a/p/1/P aaa1/p/1/P aaa2/p/1/P ccc1/p/1/P");
    store.flush();
    let properties = store.version.files[0].properties();
    assert_eq!(
        (properties.bloom, properties.bloom_prefix_bytes),
        (BloomType::RowPrefix, 3)
    );
    for (row, shown) in [
        ("a", "a/p/1/P"),
        ("aaa2", "aaa2/p/1/P"),
        ("aaa3", ""),
        ("bbb1", ""),
        ("b", ""),
    ] {
        assert_eq!(store.get(row, 1), shown, "{row}");
    }
    // The filter lets aaa3 through.
    assert_eq!(bloom_counts(&store), (5, 2));
    let sources = |low: &str, high: &str| {
        let rows = ReadRows::Range {
            low: low.as_bytes(),
            high: high.as_bytes(),
            reversed: false,
        };
        let mut scanner = store.open(None, &ReadSpec::default(), SeqId::MAX, rows);
        scanner.seek_row(low.as_bytes()).unwrap();
        scanner.row().map(<[u8]>::to_vec)
    };
    assert_eq!(sources("bbb1", "bbb9"), None);
    assert_eq!(bloom_counts(&store), (6, 3));
    assert_eq!(sources("aaa15", "aaa9"), Some(b"aaa2".to_vec()));
    assert_eq!(bloom_counts(&store), (7, 3));
    // Rows that begin alike for less than a prefix.
    assert_eq!(sources("bb1", "bb9"), Some(b"ccc1".to_vec()));
    assert_eq!(sources("bb", "bbb9"), Some(b"ccc1".to_vec()));
    assert_eq!(sources("bbb", "bbb"), None);
    assert_eq!(sources("b", ""), Some(b"ccc1".to_vec()));
    assert_eq!(bloom_counts(&store), (8, 4));
}

/// A family tombstone masks every column, so no column filter may hide its file.
#[test]
fn a_column_filter_does_not_hide_family_tombstones() {
    for tombstone in ["a//5/DF", "a//1/DFV"] {
        let mut store = TestStore::new("BLOOMFILTER=ROWCOL");
        store.write_all("a/p/1/P");
        store.flush();
        store.write_all(&format!("{tombstone} b/p/1/P"));
        store.flush();
        let mut scanner = get_column(&store, "a", "p");
        assert!(
            super::harness::read_all(&mut scanner, None, 9).is_empty(),
            "{tombstone}"
        );
    }
}

/// 200 rows of 100 compressible bytes, flushed and scanned.
fn scanned(options: &str, spec: &ReadSpec) -> TestStore {
    let mut store = TestStore::new(options);
    let value = "v".repeat(100);
    for row in 0..200 {
        store.write_all(&format!("row{row:03}/p/1/P={value}"));
    }
    store.flush();
    assert_eq!(store.scan(spec).split(' ').count(), 200, "{options}");
    store
}

fn cached_blocks(store: &TestStore) -> [u64; 3] {
    store.context.reader.cache.usage().blocks
}

#[test]
fn block_size_block_cache_and_in_memory_shape_the_cache() {
    let spec = ReadSpec::default();
    let blocks = |options: &str| cached_blocks(&scanned(options, &spec));
    let [small, ..] = blocks("BLOCKSIZE=1024");
    let [large, ..] = blocks("BLOCKSIZE=65536");
    assert!((20..=40).contains(&small), "{small} blocks of 1 KiB for 28 kB");
    assert_eq!(large, 1);
    assert_eq!(blocks("BLOCKCACHE=false BLOCKSIZE=1024"), [0, 0, 0]);
    let [single, multi, in_memory] = blocks("IN_MEMORY=true BLOCKSIZE=1024");
    assert_eq!((single, multi, in_memory), (0, 0, small));
    let uncached = ReadSpec {
        cache_blocks: false,
        ..ReadSpec::default()
    };
    assert_eq!(cached_blocks(&scanned("BLOCKSIZE=1024", &uncached)), [0, 0, 0]);
}

/// Compactions read and write around the cache. (Blocks of index and bloom filter may enter it, hence no
/// filter.)
#[test]
fn a_compaction_does_not_fill_the_cache() {
    let mut store = scanned(
        "BLOCKSIZE=1024 BLOCKCACHE=false BLOOMFILTER=NONE",
        &ReadSpec::default(),
    );
    store.compact(0..1);
    assert_eq!(cached_blocks(&store), [0, 0, 0]);
}

#[test]
fn a_read_from_memory_only_does_not_touch_the_disk() {
    let mut store = TestStore::new("");
    store.write_all("a/p/1/P");
    store.flush();
    let spec = ReadSpec::default();
    let open = |reach| store.try_open_at(None, &spec, (reach, NOBODY), ReadRows::One(b"a"));
    assert!(matches!(open(Reach::Memory), Err(Error::NotInMemory)));
    assert!(open(Reach::Disk).is_ok());
    let calls = store.disk.op_count();
    let scanner = open(Reach::Memory).unwrap();
    assert_eq!(
        (scanner.row(), store.disk.op_count()),
        (Some(b"a".as_slice()), calls)
    );
}

#[test]
fn compression_and_encoding_shape_the_file() {
    let bytes = |options: &str| {
        let store = scanned(options, &ReadSpec::default());
        let file = &store.version.files[0];
        let wanted = family(options);
        assert_eq!(file.properties().compression, wanted.compression);
        assert_eq!(file.properties().encoding, wanted.encoding);
        file.meta().bytes
    };
    let plain = bytes("DATA_BLOCK_ENCODING=NONE");
    for compression in Compression::ALL
        .iter()
        .filter(|compression| **compression != Compression::None)
    {
        let packed = bytes(&format!("DATA_BLOCK_ENCODING=NONE COMPRESSION={compression}"));
        assert!(packed < plain / 2, "{compression}: {packed} of {plain}");
    }
    for encoding in [
        DataBlockEncoding::Prefix,
        DataBlockEncoding::Diff,
        DataBlockEncoding::FastDiff,
    ] {
        let encoded = bytes(&format!("DATA_BLOCK_ENCODING={encoding}"));
        assert!(encoded < plain, "{encoding}: {encoded} of {plain}");
    }
    assert!(bytes("DATA_BLOCK_ENCODING=ROW_INDEX_V1") > plain);
}

/// Options apply to files written from then on; existing files stay readable.
#[test]
fn altered_options_apply_to_new_files() {
    let mut store = TestStore::new("VERSIONS=1 BLOOMFILTER=ROW");
    store.write_all("a/p/1/P");
    store.flush();
    store.version = store
        .version
        .with_family(family("VERSIONS=3 COMPRESSION=ZSTD BLOOMFILTER=ROWCOL").into());
    store.write_all("a/p/2/P");
    store.flush();
    assert_eq!(store.get("a", 9), "a/p/2/P a/p/1/P");
    let blooms: Vec<BloomType> = store
        .version
        .files
        .iter()
        .map(|file| file.properties().bloom)
        .collect();
    assert_eq!(blooms, [BloomType::Row, BloomType::RowCol]);
    store.compact(0..2);
    assert_eq!(store.version.files[0].properties().compression, Compression::Zstd);
    assert_eq!(store.get("a", 9), "a/p/2/P a/p/1/P");
}

/// A block counts with its full size while it is buffered and with less once it is compressed: the
/// rate limit must not charge the difference.
#[test]
fn a_compaction_counts_blocks_that_become_smaller() {
    let mut store = TestStore::new("COMPRESSION=ZSTD BLOCKSIZE=262144");
    let rows: Vec<String> = (0..20_000).map(|row| format!("row{row:06}/p/1/P")).collect();
    store.write_all(&rows.join(" "));
    store.flush();
    store.compact(0..1);
    assert_eq!(store.version.files[0].meta().cells, 20_000);
    assert!(store.version.files[0].meta().bytes < 262_144, "it was compressed");
}

/// Blocks that a read fetched: everything goes into the cache, and nothing was there before.
fn blocks_read(store: &TestStore, read: impl FnOnce()) -> u64 {
    let before = store.context.reader.cache.usage().insertions;
    read();
    store.context.reader.cache.usage().insertions - before
}

/// One column of a wide row costs one block; with a family tombstone in the file the start of the row must be
/// seen too.
#[test]
fn a_get_of_a_column_goes_straight_to_it() {
    let wide = |first: &str| {
        let mut store = TestStore::new("BLOCKSIZE=1024 BLOOMFILTER=NONE");
        store.write_all(first);
        for column in 0..500 {
            store.write_all(&format!("a/c{column:03}/9/P"));
        }
        store.flush();
        store
    };
    let read = |store: &TestStore| {
        let mut scanner = get_column(store, "a", "c400");
        assert_eq!(
            super::harness::show(&super::harness::read_all(&mut scanner, None, 9)),
            "a/c400/9/P"
        );
    };
    let store = wide("a//1/P");
    assert_eq!(blocks_read(&store, || read(&store)), 1);
    let store = wide("a//1/DF");
    assert_eq!(blocks_read(&store, || read(&store)), 2);
}

#[test]
fn files_outside_of_rows_and_times_are_not_read() {
    let blocks = |options: &str, spec: &ReadSpec, rows: ReadRows<'_>| {
        let mut store = TestStore::new(&format!("BLOOMFILTER=NONE VERSIONS=9 {options}"));
        store.write_all("m/p/5000/P n/p/6000/P n/p/6000/DC");
        store.flush();
        blocks_read(&store, || {
            store.open(None, spec, SeqId::MAX, rows);
        })
    };
    let range = |low: &'static str, high: &'static str| ReadRows::Range {
        low: low.as_bytes(),
        high: high.as_bytes(),
        reversed: false,
    };
    let times = |min, max| ReadSpec {
        time_range: TimeRange { min, max },
        ..ReadSpec::default()
    };
    let all = ReadSpec::default();
    assert_eq!(blocks("", &all, range("a", "l")), 0);
    assert_eq!(blocks("", &all, range("o", "")), 0);
    assert_eq!(blocks("", &all, range("", "m")), 1);
    assert_eq!(blocks("", &all, ReadRows::One(b"l")), 0);
    assert_eq!(blocks("", &times(6001, 9000), range("", "")), 0);
    assert_eq!(
        blocks("", &times(0, 4000), range("", "")),
        1,
        "a tombstone in it may mask"
    );
    assert_eq!(
        blocks("KEEP_DELETED_CELLS=TRUE", &times(0, 4000), range("", "")),
        0
    );
    let raw = ReadSpec {
        raw: true,
        ..times(0, 4000)
    };
    assert_eq!(blocks("", &raw, range("", "")), 0);
}

/// A file all of whose cells have expired since it was written is not even opened for reading, unless
/// versions are kept.
#[test]
fn expired_files_are_not_read() {
    for (options, expected) in [("", 1), ("TTL=5", 0), ("TTL=5 MIN_VERSIONS=1", 1)] {
        let mut store = TestStore::new("BLOOMFILTER=NONE");
        store.write_all("a/p/1000/P b/p/4000/P");
        store.flush();
        store.version = store.version.with_family(family(options).into());
        let read = || {
            store.get("a", 1);
        };
        assert_eq!(blocks_read(&store, read), expected, "{options}");
    }
}

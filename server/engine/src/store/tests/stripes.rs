//! A store that is cut into stripes: where flushes and merges cut, and which tombstones go.

use super::Random;
use super::harness::{TestStore, read_all};
use crate::id::SeqId;
use crate::op::ReadSpec;
use crate::store::stripes::StripeLimits;
use crate::store::{Clip, ReadRows};

const ALL: ReadRows<'static> = ReadRows::Range {
    low: b"",
    high: b"",
    reversed: false,
};

/// A store whose stripes have about 20 KB.
fn store() -> TestStore {
    let mut store = TestStore::new("VERSIONS=1 BLOCKSIZE=1024");
    store.limits = StripeLimits {
        bytes_min: 20_000,
        count_max: 8,
    };
    store
}

fn put(store: &mut TestStore, row: usize, value: &str) {
    store.write_all(&format!("row{row:03}/q/1/P={value}"));
}

/// Puts into every row, so that the store has about 110 KB of cells.
fn put_all(store: &mut TestStore) {
    for row in 0..100 {
        put(store, row, &"v".repeat(1_000));
    }
}

/// The rows of each file, oldest first.
fn files(store: &TestStore) -> Vec<String> {
    let text = |row: &[u8]| row.escape_ascii().to_string();
    let of = |file: &crate::store::StoreFile| {
        let (first, last) = (&file.properties().first_key, &file.properties().last_key);
        let row = |key: &Option<crate::cell::KeyBuf>| text(key.as_ref().unwrap().as_key().row());
        format!("{}-{}", row(first), row(last))
    };
    store.version.files.iter().map(|file| of(file)).collect()
}

fn rows(store: &TestStore) -> Vec<String> {
    let mut scanner = store.open(None, &ReadSpec::default(), SeqId::MAX, ALL);
    let cells = read_all(&mut scanner, None, usize::MAX);
    cells
        .iter()
        .map(|cell| cell.key.as_key().row().escape_ascii().to_string())
        .collect()
}

/// A merge of all files of a store that is large enough cuts it at rows, and flushes cut theirs there.
#[test]
fn merges_and_flushes_cut_at_rows() {
    let mut store = store();
    put_all(&mut store);
    store.flush();
    assert_eq!(files(&store), ["row000-row099"]);
    store.compact_stripe(0);
    let cut = files(&store);
    assert!((3..=5).contains(&cut.len()), "{cut:?}");
    assert!(store.version.files.iter().all(|file| file.meta().major));
    for pair in cut.windows(2) {
        let (end, begin) = (&pair[0][7..], &pair[1][..6]);
        assert!(end < begin, "{cut:?}");
    }
    // One file for each stripe, even for one cell; and rows before the first and behind the last stripe.
    let second = cut[1][3..6].parse::<usize>().unwrap();
    for row in ["qqq", "sss"] {
        store.write_all(&format!("{row}/q/1/P"));
    }
    put(&mut store, second - 1, "new");
    put(&mut store, second, "new");
    store.flush();
    let expected = [
        format!("qqq-row{:03}", second - 1),
        format!("row{second:03}-row{second:03}"),
        "sss-sss".to_owned(),
    ];
    assert_eq!(files(&store)[cut.len()..], expected);
    assert_eq!(store.stripes().stripes.len(), cut.len());
    assert_eq!(rows(&store).len(), 102);
}

/// No row is cut in two, although the bytes of a file become fewer when a block is compressed.
#[test]
fn merges_of_compressed_files_cut_at_rows() {
    let mut store = TestStore::new("VERSIONS=1 BLOCKSIZE=4096 COMPRESSION=ZSTD");
    store.limits = StripeLimits {
        bytes_min: 20_000,
        count_max: 8,
    };
    let mut random = Random::new(7);
    for row in 0..60 {
        for column in 0..10 {
            let value: String = (0..300)
                .map(|_| char::from(b'a' + random.below(4) as u8))
                .collect();
            store.write_all(&format!("row{row:03}/q{column}/1/P={value}"));
        }
    }
    store.flush();
    store.compact_stripe(0);
    let cut = files(&store);
    assert!(cut.len() > 1, "{cut:?}");
    for pair in cut.windows(2) {
        let (end, begin) = (&pair[0][7..], &pair[1][..6]);
        assert!(end < begin, "{cut:?}");
    }
}

/// Files of other stripes stay where they are when the files of one are merged, and tombstones go with
/// what they mask.
#[test]
fn a_stripe_is_merged_by_itself() {
    let mut store = store();
    put_all(&mut store);
    store.flush();
    store.compact_stripe(0);
    let cut = files(&store);
    for row in [1, 2, 98] {
        store.write_all(&format!("row{row:03}/q/1/DC"));
        store.flush();
    }
    assert_eq!(
        files(&store)[cut.len()..],
        ["row001-row001", "row002-row002", "row098-row098"]
    );
    store.compact_stripe(0);
    let after = files(&store);
    assert_eq!(after.len(), cut.len() + 1, "{after:?}");
    let merged = &store.version.files[cut.len() - 1];
    assert_eq!(after[cut.len() - 1], cut[0], "at the place of the newest input");
    let expected = cut[1][3..6].parse::<u64>().unwrap() - 2;
    assert_eq!(
        merged.meta().cells,
        expected,
        "neither tombstones nor what they mask"
    );
    assert_eq!(rows(&store).len(), 97);
    let last = store.stripes().stripes.len() - 1;
    store.compact_stripe(last);
    assert_eq!(files(&store).last().map(|file| &file[7..]), Some("row099"));
    assert_eq!(rows(&store).len(), 97);
}

/// A file over all rows makes one stripe of all, whose merge cuts it again; without the rest of
/// the stripe, tombstones stay.
#[test]
fn a_wide_file_joins_stripes_until_they_are_merged() {
    let mut store = store();
    put_all(&mut store);
    store.flush();
    store.compact_stripe(0);
    let cut = files(&store).len();
    // As a bulk load does, or a flush that began before the cut.
    store.limits.bytes_min = 0;
    store.write_all("row000/q/1/DC row099/q/1/DC");
    store.flush();
    store.limits.bytes_min = 20_000;
    assert_eq!(files(&store)[cut..], ["row000-row099"]);
    let stripes = store.stripes();
    assert_eq!((stripes.stripes.len(), stripes.depth()), (1, 2));
    store.compact_stripe(0);
    assert!(files(&store).len() >= 3);
    assert_eq!(store.stripes().stripes.len(), files(&store).len());
    assert_eq!(rows(&store).len(), 98);
}

/// The rest that deletes leave of a stripe is compacted with its neighbour.
#[test]
fn dust_joins_its_neighbour() {
    let mut store = store();
    put_all(&mut store);
    store.flush();
    store.compact_stripe(0);
    let count = store.stripes().stripes.len();
    let end: usize = files(&store)[0][10..].parse().unwrap();
    for row in 1..=end {
        store.write_all(&format!("row{row:03}/q/1/DC"));
    }
    store.flush();
    store.compact_stripe(0);
    assert_eq!(files(&store)[count - 1], "row000-row000", "one row is left");
    assert_eq!(store.stripes().stripes.len(), count - 1);
    assert_eq!(store.stripes().stripes[0].files.len(), 2);
}

/// After a split each half has stripes of its own rows, and files without such rows go together.
#[test]
fn halves_have_stripes_of_their_rows() {
    let mut store = store();
    put_all(&mut store);
    store.flush();
    store.compact_stripe(0);
    put_all(&mut store);
    store.flush();
    let clip = |start: &[u8], end: &[u8]| Clip {
        start: start.to_vec(),
        end: end.to_vec(),
    };
    for (number, clip) in [clip(b"", b"row050"), clip(b"row050", b"")]
        .into_iter()
        .enumerate()
    {
        let mut half = store.half(&clip, number as u64 + 1);
        let before = rows(&half);
        assert_eq!(before.len(), 50);
        for stripe in (0..half.stripes().stripes.len()).rev() {
            half.compact_stripe(stripe);
        }
        assert_eq!(rows(&half), before);
        assert!(half.version.files.iter().all(|file| !file.is_clipped()));
    }
}

/// Random writes, deletes, flushes and merges of stripes against a store without stripes.
#[test]
fn a_striped_store_reads_as_another() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (mut striped, mut plain) = (store(), store());
        striped.limits = StripeLimits {
            bytes_min: 512,
            count_max: 64,
        };
        plain.limits.bytes_min = 0;
        // Later writes have later timestamps: a tombstone that is gone no longer masks them.
        for timestamp in 1..=30 {
            for _ in 0..random.below(60) {
                let row = random.below(200);
                let cell = match random.below(4) {
                    0 => format!("row{row:03}/q/{timestamp}/DC"),
                    1 => format!("row{row:03}//{timestamp}/DF"),
                    _ => format!("row{row:03}/q/{timestamp}/P={}", "v".repeat(random.below(600))),
                };
                striped.write_all(&cell);
                plain.write_all(&cell);
            }
            striped.flush();
            plain.flush();
            if random.one_in(3) {
                let count = striped.stripes().stripes.len();
                if count > 0 {
                    striped.compact_stripe(random.below(count));
                }
            }
            assert_eq!(rows(&striped), rows(&plain), "seed {seed}");
        }
        assert!(striped.stripes().stripes.len() > 2, "seed {seed}");
    }
}

//! Clusters that an edit has passed, and the time at which a frame was written.

use super::*;
use crate::fs::Open;
use crate::id::{ORIGIN_CLUSTERS_MAX, Uuid};

/// Tag, clusters and time of an edit.
type Logged = (String, Vec<Uuid>, Option<u64>);

/// The edits of the log.
fn origins(fs: &SimFs) -> Result<Vec<Logged>> {
    let mut found = Vec::new();
    read_segments(fs, Path::new(DIR), SeqId::ZERO, &NoListener, &mut |edit| {
        let (.., tag, _) = read_back(&edit);
        found.push((tag, edit.origin().clusters().collect(), edit.write_time_ms()));
        Ok(())
    })
    .map(|_| found)
}

fn put_from(wal: &Arc<Wal>, tag: &str, origin: &[Uuid]) {
    let edit = edit(3, tag, 1);
    let bytes = edit.len() + origin_bytes(origin.len());
    let mut reserved = wal.reserve(1, bytes as u64).unwrap();
    let appended = wal
        .append(&mut reserved, &edit, 1, origin, Logging::Sync)
        .unwrap();
    appended.applied().wait().unwrap();
}

/// Edits with and without clusters, in one log, come back with them and with the time of their group,
/// over a restart that copies the last segment.
#[test]
fn clusters_and_times_come_back() {
    let fs = sim();
    let clock = Arc::new(ManualClock::at(5_000));
    let settings = || WalOptions {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..options(WalSync::Fsync)
    };
    let (wal, _) = open_with(&fs, settings(), Arc::new(NoListener)).unwrap();
    let most = vec![Uuid([7; 16]); ORIGIN_CLUSTERS_MAX];
    put_from(&wal, "here", &[]);
    clock.set_wall_ms(6_000);
    put_from(&wal, "one", &[Uuid([1; 16])]);
    put_from(&wal, "two", &[Uuid([1; 16]), Uuid([2; 16])]);
    // Skipped sequence ids make a gap before an edit with clusters.
    append(&wal, "skipped", 3, Logging::Skip).unwrap().wait().unwrap();
    put_from(&wal, "most", &most);
    let expected = vec![
        ("here".to_owned(), vec![], Some(5_000)),
        ("one".to_owned(), vec![Uuid([1; 16])], Some(6_000)),
        ("two".to_owned(), vec![Uuid([1; 16]), Uuid([2; 16])], Some(6_000)),
        ("most".to_owned(), most, Some(6_000)),
    ];
    assert_eq!(origins(&fs).unwrap(), expected);
    drop(wal);
    let (wal, edits) = open_with(&fs, settings(), Arc::new(NoListener)).unwrap();
    let seqs: Vec<u64> = edits.iter().map(|edit| edit.0).collect();
    assert_eq!(seqs, [1, 2, 3, 7], "gaps are as they were");
    assert_eq!(origins(&fs).unwrap(), expected);
    let mut printed = Vec::new();
    dump(&fs, &segments(&fs)[0], false, &mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    for part in [
        "written at 6000 ms",
        "has passed cluster 02020202-0202-0202-0202-020202020202",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    wal.close().unwrap();
}

/// Clusters without an edit's room for them would take space that was promised to others.
#[test]
fn clusters_are_part_of_the_reservation() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    let most = vec![Uuid([7; 16]); ORIGIN_CLUSTERS_MAX];
    for number in 0..20 {
        put_from(&wal, &format!("{number}"), &most);
    }
    wal.close().unwrap();
    assert_eq!(origins(&fs).unwrap().len(), 20);
    assert!(
        segments(&fs).len() > 5,
        "segments of 6000 bytes hold three of them"
    );
}

/// The kind of frame that has times and clusters is damage in a segment of an older version.
#[test]
fn an_older_segment_has_no_clusters() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put_from(&wal, "one", &[Uuid([1; 16])]);
    drop(wal);
    let path = segments(&fs).remove(0);
    let file = fs.open(&path, Open::Write).unwrap();
    let mut header = vec![0; 4096];
    file.read_exact_at(&mut header, 0).unwrap();
    header[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let checksum = crate::checksum::crc32c(&header[..4092]);
    header[4092..].copy_from_slice(&checksum.to_le_bytes());
    file.write_at(&header, 0).unwrap();
    let error = origins(&fs).unwrap_err().to_string();
    assert!(
        error.contains("a kind that this program does not know"),
        "{error}"
    );
}

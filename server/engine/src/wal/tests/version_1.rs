//! A log that was written by a program of version 1 of the format: three segments, of which the last has
//! no seal, and a spare that is not kept here.

use super::*;
use crate::fs::Open;

const SEGMENTS: [(&str, &[u8]); 3] = [
    (
        "0000000000000001.wal",
        include_bytes!("version_1/0000000000000001.wal"),
    ),
    (
        "0000000000000002.wal",
        include_bytes!("version_1/0000000000000002.wal"),
    ),
    (
        "0000000000000003.wal",
        include_bytes!("version_1/0000000000000003.wal"),
    ),
];

fn disk_of_version_1() -> SimFs {
    let fs = sim();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    for (name, bytes) in SEGMENTS {
        assert_eq!(bytes[8..12], 1_u32.to_le_bytes(), "the kept log is of version 1");
        let file = fs.open(&Path::new(DIR).join(name), Open::CreateNew).unwrap();
        file.write_at(bytes, 0).unwrap();
        file.sync_all().unwrap();
    }
    fs.sync_dir(Path::new(DIR)).unwrap();
    fs
}

#[test]
fn a_log_of_version_1_is_read_and_continued() {
    let fs = disk_of_version_1();
    let (wal, edits) = open(&fs, WalSync::Fsync).unwrap();
    let found = tags(&edits);
    assert_eq!(found[..3], ["one", "two", "three"]);
    assert_eq!((found[3].len(), found[4]), (2000, "last"));
    put(&wal, "of version 2").unwrap();
    wal.close().unwrap();
    let (edits, summary) = recover_from(&fs, 0).unwrap();
    assert_eq!(tags(&edits)[4..], ["last", "of version 2"]);
    assert!(summary.torn.is_none());
}

/// Makes the segment one of an older version: its header says so, and its only frame has these entries
/// as they were until version 2.
fn make_older(fs: &SimFs, path: &Path, version: u32, entries: &[u8]) {
    let file = fs.open(path, Open::Write).unwrap();
    let mut bytes = vec![0; 4096];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let checksum = crate::checksum::crc32c(&bytes[..4092]);
    bytes[4092..].copy_from_slice(&checksum.to_le_bytes());
    let uuid = crate::id::Uuid(*bytes[20..].first_chunk().unwrap());
    let payload = [&[1], entries].concat();
    crate::record::put_frame(&mut bytes, &uuid, 4096, 1, 4096, &payload);
    let len = usize::try_from(file.len().unwrap()).unwrap();
    bytes.resize(len, 0);
    file.write_at(&bytes, 0).unwrap();
}

/// In version 1 nothing may stand behind the rows: bytes there are damage, not nonces. Version 2 has
/// nonces, and neither clusters nor times.
#[test]
fn an_edit_of_version_1_has_no_nonces() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    let mut builder = EditBuilder::new();
    builder.begin(RegionId(3));
    builder.begin_row();
    let nonce = crate::id::Nonce { group: 1, number: 2 };
    builder.nonce(nonce, 1000);
    let edit = builder.finish().to_vec();
    join(&wal, &edit, 1, Logging::Sync)
        .unwrap()
        .applied()
        .wait()
        .unwrap();
    drop(wal);
    let path = segments(&fs).remove(0);
    let found = |fs: &SimFs, is_timed: bool| {
        let mut found = Vec::new();
        read_segments(fs, Path::new(DIR), SeqId::ZERO, &NoListener, &mut |edit| {
            assert!(edit.origin().is_empty());
            assert_eq!(edit.write_time_ms().is_some(), is_timed);
            found.extend(edit.nonces());
            Ok(())
        })
        .map(|_| found)
    };
    assert_eq!(found(&fs, true).unwrap(), [(nonce, 1000)]);

    // Without clusters, an entry whose gap is zero is as it was.
    let mut entries = Vec::new();
    crate::record::put_entry(&mut entries, 0, &[], &edit);
    make_older(&fs, &path, 2, &entries);
    assert_eq!(found(&fs, false).unwrap(), [(nonce, 1000)]);
    make_older(&fs, &path, 1, &entries);
    let error = found(&fs, false).unwrap_err().to_string();
    assert!(error.contains("bytes behind its last row"), "{error}");
}

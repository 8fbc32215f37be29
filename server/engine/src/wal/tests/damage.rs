//! Torn tails are cut, damage is refused.

use std::fmt::Write;

use super::*;
use crate::Kind;
use crate::fs::{Open, Vfs};

/// A disk that holds only this segment, as number 1.
fn disk_with(bytes: &[u8]) -> SimFs {
    let fs = sim();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.open(&segment_path(Path::new(DIR), 1), Open::CreateNew)
        .unwrap()
        .write_at(bytes, 0)
        .unwrap();
    fs
}

/// One segment with a group per tag, and where each group ends.
fn segment_of(groups: &[&str], finish: impl FnOnce(&Arc<Wal>)) -> (Vec<u8>, Vec<usize>) {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    let path = segment_path(Path::new(DIR), 1);
    let mut ends = Vec::new();
    for tag in groups {
        put(&wal, tag).unwrap();
        let bytes = fs.contents(&path).unwrap();
        ends.push(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    }
    finish(&wal);
    (fs.contents(&path).unwrap(), ends)
}

/// Groups whose last byte is not zero (the length of the tags, so they get one).
fn tagged_groups() -> (Vec<u8>, Vec<usize>) {
    let (bytes, mut ends) = segment_of(&["one", "two", "three", "four", "five"], |_| {});
    // A cell ends with its empty tags: one zero byte behind the last byte that is not zero.
    for end in &mut ends {
        *end += 1;
    }
    (bytes, ends)
}

/// Goal: whatever a crash leaves of the last three groups, everything before the first broken one
/// is there and the log opens. Method: overwrite the segment with zeros, and with noise, from every
/// byte of them on. (A crash does not make it shorter.)
#[test]
fn a_tail_torn_at_every_byte_is_cut() {
    let all = ["one", "two", "three", "four", "five"];
    let (clean, ends) = tagged_groups();
    for at in ends[1]..=ends[4] {
        let whole = ends.iter().filter(|end| **end <= at).count();
        let mut versions = [clean.clone(), clean.clone(), clean.clone()];
        versions[0][at..].fill(0);
        versions[1][at..ends[4]].fill(0xa5);
        // A sector that was lost: zeros, then the following bytes, as long as none of these states
        // that it was durable.
        versions[2][at..].fill(0);
        versions[2][ends[4]..ends[4] + 100].fill(0x77);
        for (version, bytes) in versions.iter().enumerate() {
            let (edits, summary) = recover_from(&disk_with(bytes), 0).unwrap();
            // The last byte of a group is a zero: zeroing it changes nothing.
            let kept = tags(&edits);
            let same = usize::from(version != 1 && ends.contains(&(at + 1)));
            assert_eq!(kept, all[..whole + same], "at {at} version {version}");
            assert_eq!(
                summary.last_seq,
                SeqId(kept.len() as u64),
                "at {at} version {version}"
            );
        }
    }
}

/// Goal: the cut is reported to the operator, and the log goes on behind it.
#[test]
fn a_torn_tail_is_reported_and_the_log_goes_on() {
    let (mut bytes, ends) = tagged_groups();
    bytes[ends[4] - 3] ^= 1;
    let fs = disk_with(&bytes);
    let told = Arc::new(Told::default());
    let summary = recover(&fs, Path::new(DIR), SeqId(4), &*told, &mut |_| Ok(())).unwrap();
    let cut = summary.torn.unwrap();
    assert_eq!(cut.offset, ends[3] as u64);
    let notices = told.notices.lock().clone();
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].contains("0000000000000001.wal cut at byte"),
        "{notices:?}"
    );
    let (wal, edits) = open(&fs, WalSync::Fsync).unwrap();
    assert_eq!(tags(&edits), ["one", "two", "three", "four"]);
    put(&wal, "new five").unwrap();
    drop(wal);
    let (edits, _) = recover_from(&fs.crash(1), 5).unwrap();
    assert_eq!(tags(&edits), ["one", "two", "three", "four", "new five"]);
}

/// Goal: every flipped bit in bytes that a marker states durable is detected, with file and a
/// fitting offset; a flip of the marker or of unwritten space is harmless.
#[test]
fn every_flip_of_a_stated_log_is_detected() {
    let (clean, ends) = segment_of(&["one", "two", "three"], |wal| {
        wal.tick().unwrap();
        wal.tick().unwrap();
    });
    let stated = ends[2] + 1;
    let marker_end = stated + layout::MARKER_BYTES;
    assert!(clean[stated..marker_end].iter().any(|byte| *byte != 0));
    let mut detected = 0;
    for bit in 0..(marker_end + 40) * 8 {
        let mut bytes = clean.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match recover_from(&disk_with(&bytes), 0) {
            Ok((edits, _)) => {
                assert!(bit / 8 >= stated, "bit {bit} was not detected");
                assert_eq!(tags(&edits), ["one", "two", "three"], "bit {bit}");
            }
            Err(Error::Corrupt { file, offset, .. }) => {
                assert!(bit / 8 < stated, "bit {bit} harms nothing");
                assert!(offset <= (bit / 8) as u64);
                assert_eq!(file, segment_path(Path::new(DIR), 1));
                detected += 1;
            }
            Err(other) => panic!("bit {bit}: {other}"),
        }
    }
    assert_eq!(detected, stated * 8);
}

/// Goal: a flip in a segment that was sealed is detected wherever it is, also in its seal once it has a
/// successor.
#[test]
fn every_flip_of_a_sealed_segment_is_detected() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put(&wal, "one").unwrap();
    wal.close().unwrap();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put(&wal, "two").unwrap();
    drop(wal);
    let first = segment_path(Path::new(DIR), 1);
    for bit in 0..fs.contents(&first).unwrap().len() as u64 * 8 {
        fs.flip_bit(&first, bit).unwrap();
        let error = recover_from(&fs, 0).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "bit {bit}: {error}");
        fs.flip_bit(&first, bit).unwrap();
    }
    assert_eq!(tags(&recover_from(&fs, 0).unwrap().0), ["one", "two"]);
}

/// Goal: a sector that went missing in the middle of durable groups is damage, not a tail.
#[test]
fn zeros_or_garbage_before_durable_frames_are_damage() {
    let (clean, ends) = tagged_groups();
    for (index, fill) in [(0, 0), (1, 0), (2, 0xff), (3, 0)] {
        let start = if index == 0 {
            layout::HEADER_BLOCK_BYTES
        } else {
            ends[index - 1]
        };
        let mut bytes = clean.clone();
        bytes[start..ends[index]].fill(fill);
        let found = recover_from(&disk_with(&bytes), 0);
        // The frame after the next states it durable; the last but one is stated by the last.
        assert!(
            matches!(found, Err(Error::Corrupt { offset, .. }) if offset == start as u64),
            "{index}"
        );
    }
}

#[test]
fn bytes_known_to_be_durable_must_be_there() {
    let (clean, ends) = tagged_groups();
    let mut torn = clean.clone();
    torn[ends[4] - 2] ^= 1;
    let mut shorter = clean.clone();
    shorter[ends[3]..].fill(0);
    for bytes in [&torn, &shorter] {
        assert_eq!(recover_from(&disk_with(bytes), 4).unwrap().0.len(), 4);
        let error = recover_from(&disk_with(bytes), 5).unwrap_err();
        assert!(
            error.to_string().contains("known to have been durable"),
            "{error}"
        );
    }
    assert_eq!(recover_from(&disk_with(&clean), 5).unwrap().0.len(), 5);
}

/// A log of at least four segments, not closed.
fn long_log() -> SimFs {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    for number in 0..60 {
        put(&wal, &format!("{number:090}")).unwrap();
    }
    assert!(segments(&fs).len() >= 4);
    fs
}

/// Goal: a chain with a missing, renamed, swapped, cut or foreign segment is refused, by name.
#[test]
fn a_broken_chain_is_refused() {
    let path = |number| segment_path(Path::new(DIR), number);
    let refused = |change: &dyn Fn(&SimFs), text: &str| {
        let fs = long_log();
        change(&fs);
        let error = recover_from(&fs, 0).unwrap_err();
        assert_eq!(error.kind(), Kind::Data);
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(
        &|fs| fs.remove_file(&path(2)).unwrap(),
        "missing WAL segments: 0000000000000002.wal",
    );
    refused(
        &|fs| {
            fs.remove_file(&path(2)).unwrap();
            fs.remove_file(&path(3)).unwrap();
        },
        "0000000000000002.wal, 0000000000000003.wal",
    );
    refused(
        &|fs| fs.rename(&path(2), &path(1)).unwrap(),
        "missing WAL segments",
    );
    refused(
        &|fs| {
            fs.rename(&path(2), Path::new("/db/wal/x")).unwrap();
            fs.rename(&path(3), &path(2)).unwrap();
            fs.rename(Path::new("/db/wal/x"), &path(3)).unwrap();
        },
        "this is segment 3 under another's name",
    );
    refused(
        &|fs| {
            let len = fs.contents(&path(2)).unwrap().len() as u64;
            fs.open(&path(2), Open::Write).unwrap().set_len(len - 1).unwrap();
        },
        "it has a successor",
    );
    refused(
        &|fs| fs.open(&path(2), Open::Write).unwrap().set_len(0).unwrap(),
        "the file ends inside the segment header",
    );
    refused(
        &|fs| {
            let other = disk(9, SimOptions::default());
            let (wal, _) = open(&other, WalSync::Fsync).unwrap();
            for number in 0..60 {
                put(&wal, &format!("{number:090}")).unwrap();
            }
            let bytes = other.contents(&path(2)).unwrap();
            let file = fs.open(&path(2), Open::Write).unwrap();
            file.set_len(0).unwrap();
            file.write_at(&bytes, 0).unwrap();
        },
        "its predecessor was",
    );
}

/// Goal: a segment that is sound by itself but differs from its successor's record is refused.
/// Method: drop the last edit of a sealed segment and seal it again as its writer would have.
#[test]
fn a_segment_resealed_with_less_is_refused() {
    let fs = long_log();
    let path = segment_path(Path::new(DIR), 2);
    let bytes = fs.contents(&path).unwrap();
    let header = segment::SegmentHeader::decode(&bytes).unwrap();
    let mut frames = Vec::new();
    reader::walk(&bytes, header, &path, &mut |at, frame, payload| {
        if let reader::Payload::Edits(_) = payload {
            frames.push((at, frame.first_seq));
        }
        Ok(())
    })
    .unwrap();
    let (end, next_seq) = frames.pop().unwrap();
    let mut shorter = bytes[..end].to_vec();
    let chain = reader::walk(&shorter, header, &path, &mut |_, _, _| Ok(()))
        .unwrap()
        .chain;
    let mut payload = vec![segment::KIND_SEAL];
    payload.extend_from_slice(&chain.to_le_bytes());
    crate::record::put_frame(
        &mut shorter,
        &header.uuid,
        end as u64,
        next_seq,
        end as u64,
        &payload,
    );
    let walked = reader::walk(&shorter, header, &path, &mut |_, _, _| Ok(())).unwrap();
    assert!(walked.sealed);
    let file = fs.open(&path, Open::Write).unwrap();
    file.set_len(0).unwrap();
    file.write_at(&shorter, 0).unwrap();
    let error = recover_from(&fs, 0).unwrap_err();
    assert!(error.to_string().contains("its predecessor was"), "{error}");
}

/// Goal: a segment is named only once its header and its size are durable, so one with a broken
/// header, and one without a seal that is shorter than it was preallocated, is damage, also the
/// last one.
#[test]
fn a_segment_that_was_cut_is_refused() {
    let fs = long_log();
    let last = segment_path(Path::new(DIR), segments(&fs).len() as u64);
    let bytes = fs.contents(&last).unwrap().len();
    for left in [
        0,
        1,
        layout::HEADER_BLOCK_BYTES - 1,
        layout::HEADER_BLOCK_BYTES,
        bytes - 1,
    ] {
        let fs = long_log();
        fs.open(&last, Open::Write).unwrap().set_len(left as u64).unwrap();
        let error = recover_from(&fs, 0).unwrap_err();
        let expected = if left < layout::HEADER_BLOCK_BYTES {
            "the file ends inside the segment header".to_owned()
        } else {
            format!("offset {left}: the file ends here, and {bytes} bytes were preallocated for it")
        };
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(error.to_string().contains(&*last.to_string_lossy()), "{error}");
    }
    fs.flip_bit(&last, 100).unwrap();
    let error = recover_from(&fs, 0).unwrap_err();
    assert!(
        error.to_string().contains("segment header checksum mismatch"),
        "{error}"
    );
}

#[test]
fn a_newer_format_is_refused_as_such() {
    let (mut bytes, _) = tagged_groups();
    bytes[8] = 4;
    let crc = crate::checksum::crc32c(&bytes[..layout::HEADER_BLOCK_BYTES - 4]);
    bytes[layout::HEADER_BLOCK_BYTES - 4..layout::HEADER_BLOCK_BYTES].copy_from_slice(&crc.to_le_bytes());
    let error = recover_from(&disk_with(&bytes), 0).unwrap_err();
    assert!(
        error.to_string().contains(
            "WAL format version 4, this release reads versions 1 to 3; it was written by a newer release"
        ),
        "{error}"
    );
}

/// Goal: a log is continued only behind a sealed segment, and not below its sequence ids.
#[test]
fn create_refuses_an_unsealed_predecessor() {
    let fs = long_log();
    let last = segments(&fs).len() as u64;
    let create = |seq| {
        let counters = Arc::new(Counters::default());
        Wal::create(
            Arc::new(fs.clone()),
            options(WalSync::Fsync),
            last,
            SeqId(seq),
            counters,
            Arc::new(NoListener),
        )
    };
    let error = create(60).unwrap_err();
    assert!(error.to_string().contains("not sealed"), "{error}");
    recover_from(&fs, 0).unwrap();
    assert!(matches!(create(59), Err(Error::InvalidArgument(_))));
    create(60).unwrap();
}

/// Goal: people can read a segment; damage shows.
#[test]
fn dump_prints_a_segment() {
    let (mut bytes, ends) = segment_of(&["one", "two"], |wal| wal.close().unwrap());
    let print = |bytes: &[u8]| {
        let mut out = Vec::new();
        dump(
            &disk_with(bytes),
            &segment_path(Path::new(DIR), 1),
            true,
            &mut out,
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = print(&bytes);
    let mut frames = String::new();
    for (start, end, seq, durable) in [
        (4096, ends[0] + 1, 1, 4096),
        (ends[0] + 1, ends[1] + 1, 2, ends[0] + 1),
    ] {
        let len = end - start;
        writeln!(
            frames,
            "{start}: edits bytes {len} first sequence id {seq} durable up to {durable} written at 1000 ms"
        )
        .unwrap();
        writeln!(frames, "  region 3 sequence id {seq} rows 1").unwrap();
        writeln!(
            frames,
            "    {seq} \\x00\\x00\\x00\\x00/f:q/7/Put value 3 bytes, tags 0 bytes"
        )
        .unwrap();
    }
    assert!(text.starts_with("WAL segment 1 uuid "), "{text}");
    assert!(text.contains(&frames), "{text}");
    assert!(text.contains(": seal bytes 33 first sequence id 3"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("sealed at "), "{text}");
    bytes[ends[0] + 5] ^= 1;
    let last = print(&bytes).lines().last().unwrap().to_string();
    assert_eq!(
        last,
        format!("broken at {}: frame header checksum mismatch", ends[0] + 1)
    );
    let read = read_segments(
        &disk_with(&bytes),
        Path::new(DIR),
        SeqId::ZERO,
        &NoListener,
        &mut |_| Ok(()),
    );
    assert!(read.is_err());
}

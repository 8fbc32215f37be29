//! Damaged files: refused, repaired from provably complete data, or harmless; never a wrong state.

use super::super::encode::encode_snapshot;
use super::super::file::{
    CURRENT, FORMAT_VERSION, FRAME_ALIGN_BYTES, HEADER_BYTES, Header, RESERVE_BYTES, decode_current,
    encode_current, file_name, find_live, load,
};
use super::*;
use crate::checksum::crc32c;
use crate::error::Error;
use crate::fs::{File, Open};
use crate::record::put_frame;

/// A disk with a closed manifest of a few edits, the live file's path and its state after every edit.
fn small() -> (SimFs, std::path::PathBuf, Vec<ManifestState>) {
    let fs = disk(SimOptions::default());
    let (mut manifest, first) = open(&fs).unwrap();
    let mut states = vec![first];
    for edit in history().into_iter().take(6) {
        manifest.append(&edit).unwrap();
        states.push(manifest.state().clone());
    }
    (fs, manifest.path().to_owned(), states)
}

/// Goal: every single flipped bit is found, or changes nothing.
#[test]
fn no_flipped_bit_gives_a_wrong_state() {
    let (fs, path, states) = small();
    let whole = fs.contents(&path).unwrap();
    let loaded = load(&path, &whole).unwrap();
    assert_eq!(Some(&loaded.state), states.last());
    let (mut found, mut harmless) = (0, 0);
    let used = loaded.tail.end * 8 + 512;
    for bit in (0..used).chain((used..whole.len() * 8).step_by(97)) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match load(&path, &bytes) {
            Err(Error::Corrupt { .. }) => found += 1,
            Err(other) => panic!("bit {bit}: {other}"),
            Ok(read) => {
                assert_eq!(read.state, loaded.state, "bit {bit}");
                harmless += 1;
            }
        }
    }
    assert!(
        found > 5_000 && harmless > 5_000,
        "{found} found, {harmless} harmless"
    );
}

/// Goal: a lost sector (zeros or noise) is found, or changes nothing.
#[test]
fn no_lost_sector_gives_a_wrong_state() {
    let (fs, path, states) = small();
    let whole = fs.contents(&path).unwrap();
    let (mut found, mut harmless) = (0, 0);
    for start in (0..whole.len()).step_by(512) {
        for noise in [0, 0xa7] {
            let mut bytes = whole.clone();
            bytes[start..start + 512].fill(noise);
            match load(&path, &bytes) {
                Err(Error::Corrupt { .. }) => found += 1,
                Err(other) => panic!("sector at {start}: {other}"),
                Ok(read) => {
                    assert_eq!(Some(&read.state), states.last(), "sector at {start}");
                    harmless += 1;
                }
            }
        }
    }
    assert!(
        found >= 2 * 8 && harmless > 2,
        "{found} found, {harmless} harmless"
    );
}

/// Goal: an edit in flight, cut at every byte (zeros behind the cut), leaves the state before it;
/// no byte that was acknowledged before is taken for a torn tail. A file that ends there was not
/// cut by a crash.
#[test]
fn a_torn_tail_is_cut_at_every_byte() {
    let (fs, path, states) = small();
    let mut whole = fs.contents(&path).unwrap();
    let end = load(&path, &whole).unwrap().tail.end;
    // Without its marker the last edit is one in flight.
    whole[end - FRAME_ALIGN_BYTES..].fill(0);
    let frame = end - 2 * FRAME_ALIGN_BYTES;
    let last_byte = frame + whole[frame..].iter().rposition(|byte| *byte != 0).unwrap();
    for cut in frame..=last_byte {
        let mut zeros = whole.clone();
        zeros[cut..].fill(0);
        let read = load(&path, &zeros).unwrap();
        assert_eq!(read.state, states[states.len() - 2], "cut at {cut}");
        assert_eq!(read.tail.end, frame);
        assert_eq!(read.tail.torn.is_some(), cut > frame, "cut at {cut}");
        let error = load(&path, &whole[..cut]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("offset {cut}: the file ends here")),
            "{error}"
        );
    }
    assert_eq!(Some(&load(&path, &whole).unwrap().state), states.last());
}

/// Goal: the offset of damaged acknowledged bytes is in the error.
#[test]
fn damage_names_file_and_offset() {
    let (fs, path, _) = small();
    let first_edit = 2 * FRAME_ALIGN_BYTES as u64;
    fs.flip_bit(&path, (first_edit + 40) * 8).unwrap();
    let Err(Error::Corrupt { file, offset, what }) = open(&fs) else {
        panic!("opened a damaged manifest");
    };
    assert_eq!((file, offset), (path, first_edit));
    assert!(what.contains("says that it was durable"), "{what}");
}

/// Goal: whatever bit of CURRENT flips, the database opens with its state: CURRENT is rejected, and
/// the newest manifest is provably complete. The second open has two manifests to choose from.
#[test]
fn a_damaged_current_is_set_right() {
    let (fs, _, states) = small();
    open(&fs).unwrap();
    let path = dir().join(CURRENT);
    for bit in 0..fs.contents(&path).unwrap().len() as u64 * 8 {
        let damaged = fs.crash_keep_all();
        damaged.flip_bit(&path, bit).unwrap();
        assert_eq!(verify(&damaged, dir()).unwrap().warnings.len(), 1);
        assert_eq!(Some(&open(&damaged).unwrap().1), states.last(), "bit {bit}");
        assert!(verify(&damaged, dir()).unwrap().warnings.is_empty());
    }
    fs.remove_file(&path).unwrap();
    assert_eq!(Some(&open(&fs).unwrap().1), states.last());
}

/// Goal: with CURRENT gone, a manifest that is not provably the newest is not opened.
#[test]
fn without_current_every_manifest_must_be_intact() {
    let (fs, first, _) = small();
    let (second, _) = open(&fs).unwrap();
    let second = second.path().to_owned();
    fs.zero_sector(&dir().join(CURRENT), 0).unwrap();
    for path in [&first, &second] {
        let damaged = fs.crash_keep_all();
        damaged.zero_sector(path, 0).unwrap();
        assert!(matches!(open(&damaged), Err(Error::Corrupt { .. })), "{path:?}");
    }
    for path in [&first, &second] {
        fs.remove_file(path).unwrap();
    }
    assert!(matches!(open(&fs), Err(Error::Corrupt { .. })));
}

/// Goal: a data directory that lost its manifest is refused and not taken for a new one.
#[test]
fn data_without_a_manifest_is_refused() {
    for name in ["tables", "wal"] {
        let fs = disk(SimOptions::default());
        fs.create_dir_all(&dir().join(name)).unwrap();
        assert!(
            find_live(&fs, dir()).unwrap().is_none(),
            "an empty directory is no data"
        );
        fs.open(&dir().join(name).join("x"), Open::CreateNew).unwrap();
        assert!(matches!(open(&fs), Err(Error::Corrupt { .. })), "{name}");
    }
}

/// Goal: missing and swapped files are found by name and uuid.
#[test]
fn a_missing_or_foreign_manifest_is_refused() {
    let (fs, path, _) = small();
    let missing = fs.crash_keep_all();
    missing.remove_file(&path).unwrap();
    let text = open(&missing).unwrap_err().to_string();
    assert!(text.contains("named by CURRENT, is missing"), "{text}");
    // A manifest of the same number from another database.
    let other = SimFs::new(2, SimOptions::default());
    other.create_dir_all(dir()).unwrap();
    open(&other).unwrap();
    fs.overwrite(&path, 0, &other.contents(&path).unwrap()).unwrap();
    assert!(matches!(open(&fs), Err(Error::Corrupt { .. })));
    assert!(open(&other).is_ok());
}

/// Goal: another format version is refused with a remedy, by the file and by CURRENT, and nothing
/// is changed.
#[test]
fn other_format_versions_are_refused() {
    for (version, words) in [(FORMAT_VERSION + 1, "newer release"), (0, "older than anything")] {
        let (fs, path, _) = small();
        let mut header = fs.contents(&path).unwrap()[..64].to_vec();
        header[8..12].copy_from_slice(&version.to_le_bytes());
        let checksum = crc32c(&header[..60]);
        header[60..].copy_from_slice(&checksum.to_le_bytes());
        fs.overwrite(&path, 0, &header).unwrap();
        let files = fs.files();
        let text = open(&fs).unwrap_err().to_string();
        assert!(text.contains(words) && text.contains("MANIFEST-"), "{text}");
        assert_eq!(fs.files(), files);
        let current = encode_current(1, &Uuid::default()).replace(" 1 ", &format!(" {version} "));
        let (text, _) = current.trim_end().rsplit_once(' ').unwrap();
        let current = format!("{text} {:08x}\n", crc32c(text.as_bytes()));
        let error = decode_current(&dir().join(CURRENT), current.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Goal: files of the first version, which had any size, are read; later ones of such a size were
/// truncated.
#[test]
fn the_first_version_had_any_size() {
    let (fs, path, states) = small();
    let whole = fs.contents(&path).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let cut = &whole[..used.next_multiple_of(FRAME_ALIGN_BYTES)];
    assert!(load(&path, cut).is_err());
    let header = Header {
        version: 1,
        ..Header::decode(&path, &whole).unwrap()
    };
    let first = [&header.encode(), &cut[HEADER_BYTES..]].concat();
    let loaded = load(&path, &first).unwrap();
    assert_eq!(Some(&loaded.state), states.last());
    assert_eq!((loaded.header.version, loaded.tail.torn), (1, None));
}

/// Goal: files of the second version, whose snapshots of the state end before those of tables, are read, and
/// the next file is of the present version.
#[test]
fn the_second_version_had_no_snapshots() {
    let (fs, path, states) = small();
    let state = states.last().unwrap();
    assert!(state.snapshots.is_empty());
    let payload = encode_snapshot(state);
    let mut header = Header {
        version: 2,
        ..Header::decode(&path, &fs.contents(&path).unwrap()).unwrap()
    };
    header.uuid = Uuid([7; 16]);
    let mut bytes = header.encode().to_vec();
    bytes.resize(FRAME_ALIGN_BYTES, 0);
    // Behind it stand the numbers of snapshots, one byte, and of turns.
    put_frame(
        &mut bytes,
        &header.uuid,
        FRAME_ALIGN_BYTES as u64,
        9,
        0,
        &payload[..payload.len() - 9],
    );
    bytes.resize(bytes.len().next_multiple_of(RESERVE_BYTES as usize), 0);
    fs.remove_file(&path).unwrap();
    let file = fs.open(&path, Open::CreateNew).unwrap();
    file.write_at(&bytes, 0).unwrap();
    let current = fs.open(&dir().join(CURRENT), Open::Write).unwrap();
    let text = encode_current(header.number, &header.uuid);
    current.write_at(text.as_bytes(), 0).unwrap();
    let (manifest, read) = open(&fs).unwrap();
    let expected = ManifestState {
        turns: 0,
        ..state.clone()
    };
    assert_eq!(read, expected);
    let written = fs.contents(manifest.path()).unwrap();
    assert_eq!(
        Header::decode(manifest.path(), &written).unwrap().version,
        FORMAT_VERSION
    );
}

/// Goal: whatever bytes a manifest or CURRENT holds, reading ends with an answer.
#[test]
fn noise_is_refused() {
    let mut dice = crate::fs::sim::SplitMix64::new(5);
    let header = Header {
        version: FORMAT_VERSION,
        uuid: Uuid([1; 16]),
        cluster_id: Uuid([2; 16]),
        number: 1,
    };
    for len in [0, 1, 63, 64, 65, 511, 512, 513, 5_000] {
        let mut bytes = vec![0; len];
        dice.fill(&mut bytes);
        assert!(load(Path::new("m"), &bytes).is_err());
        bytes.splice(..64.min(len), header.encode());
        assert!(load(Path::new("m"), &bytes).is_err(), "{len}");
    }
}

/// Goal: on a full disk edits are taken as long as there is space that was reserved ahead; then one is
/// refused without effect, and accepted once there is space.
#[test]
fn a_full_disk_refuses_without_effect() {
    let fs = disk(SimOptions::default());
    let (mut manifest, _) = open(&fs).unwrap();
    let high_water = |timestamp_ms| ManifestEdit::HighWater {
        timestamp_ms,
        seq: crate::id::SeqId(1),
    };
    manifest.append(&high_water(1)).unwrap();
    fs.set_capacity(Some(fs.used_bytes()));
    let taken = (2..100).take_while(|time| manifest.append(&high_water(*time)).is_ok());
    let taken = taken.count();
    assert!(
        (16..40).contains(&taken),
        "{taken} edits of 1 KiB in 16 to 32 KiB"
    );
    assert!(!manifest.is_poisoned());
    let before = manifest.state().clone();
    let edit = &history()[0];
    assert!(matches!(manifest.append(edit), Err(Error::Io { .. })));
    assert_eq!(*manifest.state(), before);
    fs.set_capacity(None);
    manifest.append(edit).unwrap();
    assert_ne!(*manifest.state(), before);
    let state = manifest.state().clone();
    assert_eq!(verify(&fs, dir()).unwrap().state, state);
    // A second handle writes nothing that the first could miss: the file is read from the disk.
    let file: Arc<dyn File> = fs.open(&dir().join(file_name(1)), Open::Read).unwrap();
    assert!(file.len().unwrap() > 0);
}

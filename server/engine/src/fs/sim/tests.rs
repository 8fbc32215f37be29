//! Each guarantee of the simulator, and a comparison with the real file system.

use std::collections::BTreeSet;

use super::*;
use crate::fs::RealFs;

const SEEDS: u64 = 200;

fn path(text: &str) -> &Path {
    Path::new(text)
}

fn strict() -> SimFs {
    SimFs::new(1, SimOptions::default())
}

/// A disk with an empty durable file `/f`, and a handle of it.
fn with_file(options: SimOptions) -> (SimFs, Arc<dyn File>) {
    let fs = SimFs::new(1, options);
    let file = fs.open(path("/f"), Open::CreateNew).unwrap();
    file.sync_all().unwrap();
    fs.sync_dir(path("/")).unwrap();
    (fs, file)
}

/// The possible contents of a file after a power cut now, over many seeds.
fn outcomes(fs: &SimFs, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS)
        .map(|seed| fs.crash(seed).contents(path(name)).ok())
        .collect()
}

/// Goal: synced bytes of a file with a synced name survive every power cut; the rest may or may
/// not.
#[test]
fn synced_bytes_survive_and_unsynced_ones_may_not() {
    let (fs, file) = with_file(SimOptions::default());
    file.write_at(b"durable", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&fs, "/f"), BTreeSet::from([Some(b"durable".to_vec())]));
    file.write_at(b"+tail", 7).unwrap();
    let found = outcomes(&fs, "/f");
    assert!(found.contains(&Some(b"durable".to_vec())));
    assert!(found.contains(&Some(b"durable+tail".to_vec())));
    for bytes in found {
        assert!(bytes.unwrap().starts_with(b"durable"));
    }
}

/// Goal: in strict mode a name needs its directory's sync, on ext4 the file's sync is enough.
#[test]
fn a_name_is_durable_after_the_sync_of_its_directory() {
    for (options, survives) in [(SimOptions::default(), false), (SimOptions::ext4(), true)] {
        let fs = SimFs::new(1, options);
        let file = fs.open(path("/f"), Open::CreateNew).unwrap();
        file.write_at(b"x", 0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(!outcomes(&fs, "/f").contains(&None), survives, "{options:?}");
        fs.sync_dir(path("/")).unwrap();
        assert!(!outcomes(&fs, "/f").contains(&None));
    }
}

/// Goal: a rename happens as a whole or not at all, and has no order against the bytes of the file
/// it moves.
#[test]
fn a_rename_is_atomic_but_has_no_order_against_bytes() {
    let (fs, file) = with_file(SimOptions::default());
    file.write_at(b"old", 0).unwrap();
    file.sync_data().unwrap();
    let fresh = fs.open(path("/new"), Open::CreateNew).unwrap();
    fs.sync_dir(path("/")).unwrap();
    fresh.write_at(b"new", 0).unwrap();
    fs.rename(path("/new"), path("/f")).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let after = fs.crash(seed);
        seen.insert((
            after.contents(path("/f")).unwrap(),
            after.exists(path("/new")).unwrap(),
        ));
    }
    assert!(seen.contains(&(b"old".to_vec(), true)));
    assert!(seen.contains(&(b"new".to_vec(), false)));
    assert!(seen.contains(&(Vec::new(), false)), "renamed, and the bytes lost");
    assert!(!seen.iter().any(|(bytes, pending)| bytes == b"old" && !pending));
    assert!(!seen.iter().any(|(bytes, pending)| bytes != b"old" && *pending));
}

/// Goal: on ext4 the journal keeps the order of names; strictly they have none.
#[test]
fn the_order_of_names_is_ext4s_alone() {
    for (options, ordered) in [(SimOptions::default(), false), (SimOptions::ext4(), true)] {
        let fs = SimFs::new(1, options);
        for name in ["/a", "/b"] {
            fs.open(path(name), Open::CreateNew).unwrap();
        }
        let second_alone = (0..SEEDS).any(|seed| fs.crash(seed).files() == [PathBuf::from("/b")]);
        assert_eq!(second_alone, !ordered, "{options:?}");
    }
}

/// Goal: a directory that was never synced into the one above it is lost with its content.
#[test]
fn a_directory_needs_its_own_name() {
    let fs = strict();
    fs.create_dir_all(path("/a/b")).unwrap();
    let file = fs.open(path("/a/b/f"), Open::CreateNew).unwrap();
    file.sync_all().unwrap();
    fs.sync_dir(path("/a/b")).unwrap();
    assert!(outcomes(&fs, "/a/b/f").contains(&None));
    fs.sync_dir(path("/a")).unwrap();
    assert!(outcomes(&fs, "/a/b/f").contains(&None));
    fs.sync_dir(path("/")).unwrap();
    assert!(!outcomes(&fs, "/a/b/f").contains(&None));
}

/// Goal: torn writes are among the damage: old, new, zero and (strict mode) noisy sectors in one
/// file, and any size in between.
#[test]
fn sectors_tear_independently() {
    for (options, noise_expected) in [(SimOptions::default(), true), (SimOptions::ext4(), false)] {
        let (fs, file) = with_file(options);
        file.write_at(&[1; 2048], 0).unwrap();
        file.sync_data().unwrap();
        file.write_at(&[2; 2048], 1024).unwrap();
        let (mut mixed, mut zeros, mut noise, mut cut, mut grown_without_bytes) =
            (false, false, false, false, false);
        for seed in 0..SEEDS {
            let bytes = fs.crash(seed).contents(path("/f")).unwrap();
            assert_eq!(bytes[..1024], [1; 1024], "this range was never written");
            assert!(bytes.len() == 2048 || bytes.len() == 3072 || bytes.len() == 2560);
            let sectors: Vec<&[u8]> = bytes[1024..].chunks(512).collect();
            let is = |value: u8| move |sector: &&&[u8]| sector.iter().all(|byte| *byte == value);
            let of = |value: u8| sectors.iter().filter(is(value)).count();
            mixed |= of(1) > 0 && of(2) > 0;
            zeros |= of(0) > 0;
            noise |= of(0) + of(1) + of(2) < sectors.len();
            cut |= bytes.len() == 2048 && of(2) > 0;
            grown_without_bytes |= bytes.len() == 3072 && !sectors[2..].iter().any(|sector| is(2)(&sector));
        }
        assert!(mixed && zeros && cut && grown_without_bytes, "{options:?}");
        assert_eq!(noise, noise_expected);
    }
}

/// Goal: all four kinds of damage happen to writes of one file, and those that apply to names
/// happen to names; and they are reported correctly.
#[test]
fn every_kind_of_damage_happens_and_is_told() {
    // Without noise, which could look like written bytes.
    let (fs, file) = with_file(SimOptions::ext4());
    for at in 0..4 {
        file.write_at(&[at as u8 + 1; 1024], at * 1024).unwrap();
    }
    let (mut all, mut sound) = (Harm::default(), 0);
    for seed in 0..SEEDS {
        let (after, harm) = fs.crash_with_harm(seed);
        let bytes = after.contents(path("/f")).unwrap();
        assert_eq!(harm == Harm::default(), bytes == fs.contents(path("/f")).unwrap());
        assert_eq!(harm.lost == 4, !bytes.iter().any(|byte| (1..=4).contains(byte)));
        sound += usize::from(harm == Harm::default());
        all.lost += harm.lost;
        all.torn += harm.torn;
        all.reordered += harm.reordered;
        all.extended += harm.extended;
    }
    assert!(sound > 10 && all.lost > 10 && all.torn > 10, "{sound} {all:?}");
    assert!(all.reordered > 10 && all.extended > 10, "{all:?}");
    let fs = strict();
    for name in ["/a", "/b", "/c"] {
        fs.open(path(name), Open::CreateNew).unwrap();
    }
    let reordered = (0..SEEDS)
        .filter(|seed| fs.crash_with_harm(*seed).1.reordered > 0)
        .count();
    assert!(reordered > 10, "{reordered}");
}

/// Goal: two unsynced writes of one sector reach the disk in their order or not at all, since they share a
/// page.
#[test]
fn a_sector_holds_a_prefix_of_its_writes() {
    let (fs, file) = with_file(SimOptions::ext4());
    file.allocate(512).unwrap();
    file.sync_data().unwrap();
    file.write_at(b"a", 0).unwrap();
    file.write_at(b"b", 1).unwrap();
    for bytes in outcomes(&fs, "/f") {
        assert!([&b"\0\0"[..], b"a\0", b"ab"].contains(&&bytes.unwrap()[..2]));
    }
}

/// Goal: kill -9 loses nothing, and bytes that are only in the page cache can still be lost to a
/// power cut after it.
#[test]
fn a_kill_keeps_the_page_cache() {
    let (fs, file) = with_file(SimOptions::default());
    file.write_at(b"cached", 0).unwrap();
    let lock = fs.lock(path("/LOCK")).unwrap();
    let after = fs.crash_keep_all();
    assert_eq!(after.contents(path("/f")).unwrap(), b"cached");
    assert!(lock.is_some() && after.lock(path("/LOCK")).unwrap().is_some());
    assert!(outcomes(&after, "/f").contains(&Some(Vec::new())));
}

/// Goal: the bytes of a failed sync never become durable: the next succeeds, reads see the bytes,
/// the power cut loses them.
#[test]
fn a_failed_sync_loses_bytes_for_ever() {
    let (fs, file) = with_file(SimOptions::default());
    fs.fail(OpKind::Sync, "/f", Errno::IO, Times::Once);
    file.write_at(b"lost", 0).unwrap();
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
    file.sync_data().unwrap();
    assert_eq!(fs.contents(path("/f")).unwrap(), b"lost");
    assert_eq!(outcomes(&fs, "/f"), BTreeSet::from([Some(Vec::new())]));
    file.write_at(b"kept", 4).unwrap();
    file.sync_data().unwrap();
    assert_eq!(
        outcomes(&fs, "/f"),
        BTreeSet::from([Some(b"\0\0\0\0kept".to_vec())])
    );
}

/// Goal: faults strike the calls they name, as often as they say, and end when healed.
#[test]
fn faults_strike_what_they_name() {
    let (fs, file) = with_file(SimOptions::default());
    let errno = |result: io::Result<()>| result.map_err(|error| error.raw_os_error().unwrap_or(-1));
    for (failure, code) in [
        (Errno::IO, 5),
        (Errno::NOSPC, 28),
        (Errno::DQUOT, 122),
        (Errno::ROFS, 30),
        (Errno::MFILE, 24),
    ] {
        fs.fail(OpKind::Write, "f", failure, Times::Once);
        assert_eq!(errno(file.write_at(b"x", 0)), Err(code));
        assert_eq!(errno(file.write_at(b"x", 0)), Ok(()));
    }
    fs.fail(OpKind::Write, "f", Errno::IO, Times::Nth(1));
    let results: Vec<bool> = (0..3).map(|_| file.write_at(b"x", 0).is_ok()).collect();
    assert_eq!(results, [true, false, true]);
    let always = fs.fail(Ops::All, "/f", Errno::IO, Times::Always);
    assert!(file.len().is_err() && file.sync_all().is_err() && fs.open(path("/f"), Open::Read).is_err());
    assert!(fs.exists(path("/g")).is_ok(), "another path");
    fs.heal(always);
    assert!(file.len().is_ok());
    fs.fail(OpKind::Len, "", Errno::IO, Times::Chance(500));
    let failed = (0..1_000).filter(|_| file.len().is_err()).count();
    assert!((400..600).contains(&failed), "{failed}");
    fs.heal_all();
    assert!((0..100).all(|_| file.len().is_ok()));
}

/// Goal: a failed write may have written a first part, and nothing else.
#[test]
fn a_failed_write_leaves_a_first_part() {
    let (fs, file) = with_file(SimOptions::default());
    fs.fail(OpKind::Write, "", Errno::IO, Times::Always);
    let mut lengths = BTreeSet::new();
    for _ in 0..100 {
        assert!(file.write_at(b"abcd", 0).is_err());
        let bytes = fs.contents(path("/f")).unwrap();
        assert!(b"abcd".starts_with(&bytes));
        lengths.insert(bytes.len());
        file.set_len(0).unwrap();
    }
    assert_eq!(lengths, BTreeSet::from([0, 1, 2, 3, 4]));
}

#[test]
fn a_short_read_returns_half() {
    let (fs, file) = with_file(SimOptions::default());
    file.write_at(b"abcd", 0).unwrap();
    fs.fail(OpKind::Read, "", Failure::ShortRead, Times::Once);
    let mut buffer = [0; 4];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 2);
    file.read_exact_at(&mut buffer, 0).unwrap();
    fs.fail(OpKind::Read, "", Failure::ShortRead, Times::Always);
    assert_eq!(
        file.read_exact_at(&mut buffer, 0).unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
}

/// Goal: a full disk takes the part that fits, refuses the rest, lets reserved space be written,
/// and has room again after a removal.
#[test]
fn a_disk_fills_up_and_empties() {
    let fs = SimFs::new(
        1,
        SimOptions {
            capacity_bytes: Some(100),
            ..SimOptions::default()
        },
    );
    let reserved = fs.open(path("/reserved"), Open::CreateNew).unwrap();
    reserved.allocate(60).unwrap();
    let file = fs.open(path("/f"), Open::CreateNew).unwrap();
    assert_eq!(
        file.write_at(&[1; 50], 0).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    assert_eq!(file.len().unwrap(), 40);
    assert_eq!(fs.space(path("/")).unwrap().available_bytes, 0);
    reserved.write_at(&[2; 60], 0).unwrap();
    assert!(reserved.allocate(61).is_err() && file.set_len(41).is_err());
    fs.remove_file(path("/reserved")).unwrap();
    assert!(
        file.write_at(&[1; 50], 0).is_err(),
        "an open file keeps its space"
    );
    drop(reserved);
    file.write_at(&[1; 50], 0).unwrap();
    fs.set_capacity(None);
    file.write_at(&[1; 500], 0).unwrap();
}

/// Goal: a chosen call is the process's last, done or not, and every call after it fails.
#[test]
fn a_process_dies_at_the_chosen_call() {
    for (when, len) in [(CrashWhen::Before, 0), (CrashWhen::After, 1)] {
        let (fs, file) = with_file(SimOptions::default());
        fs.crash_at_op(fs.op_count() + 1, when);
        file.len().unwrap();
        assert!(!fs.is_dead());
        assert!(is_crash(&file.write_at(b"x", 0).unwrap_err()));
        assert!(fs.is_dead());
        assert!(is_crash(&fs.list(path("/")).unwrap_err()));
        assert!(is_crash(&file.sync_all().unwrap_err()));
        assert_eq!(fs.contents(path("/f")).unwrap().len(), len);
        assert!(
            fs.crash_keep_all().list(path("/")).is_ok(),
            "the next process lives"
        );
    }
    assert!(!is_crash(&io::Error::other("crash")));
}

/// Goal: media damage is on the disk and seen by reads.
#[test]
fn media_faults_stay() {
    let (fs, file) = with_file(SimOptions::default());
    file.write_at(&[0xff; 1_100], 0).unwrap();
    file.sync_data().unwrap();
    fs.flip_bit(path("/f"), 11).unwrap();
    fs.zero_sector(path("/f"), 2).unwrap();
    fs.overwrite(path("/f"), 600, b"stale").unwrap();
    let after = fs.crash(0).contents(path("/f")).unwrap();
    assert_eq!(after, fs.contents(path("/f")).unwrap());
    assert_eq!((after[1], &after[600..605]), (0b1111_0111, &b"stale"[..]));
    assert_eq!(after[1_024..], [0; 76]);
    fs.make_unreadable(path("/f"), 10..20).unwrap();
    let mut buffer = [0; 10];
    assert!(file.read_at(&mut buffer, 0).is_ok());
    assert_eq!(file.read_at(&mut buffer, 1).unwrap_err().raw_os_error(), Some(5));
    assert!(file.read_at(&mut buffer, 20).is_ok());
}

#[test]
fn locks_have_one_holder() {
    let fs = strict();
    let held = fs.lock(path("/LOCK")).unwrap();
    assert!(held.is_some() && fs.clone().lock(path("/LOCK")).unwrap().is_none());
    drop(held);
    assert!(fs.lock(path("/LOCK")).unwrap().is_some());
}

/// Goal: one seed and sequence of calls gives one disk; uuids are never repeated, not even after a
/// crash.
#[test]
fn everything_follows_from_the_seed() {
    let run = |seed: u64| {
        let fs = SimFs::new(seed, SimOptions::default());
        let uuid = fs.draw_uuid().unwrap();
        let file = fs.open(path("/f"), Open::CreateNew).unwrap();
        fs.sync_dir(path("/")).unwrap();
        file.write_at(&uuid.repeat(100), 0).unwrap();
        let after = fs.crash(7);
        (
            uuid,
            after.contents(path("/f")).unwrap(),
            after.draw_uuid().unwrap(),
        )
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
    let (first, _, second) = run(3);
    assert_ne!(first, second);
}

/// Makes one random call and describes its outcome, in words that do not depend on the file system.
fn step(fs: &dyn Vfs, root: &Path, files: &mut Vec<Arc<dyn File>>, dice: &mut SplitMix64) -> String {
    const NAMES: [&str; 6] = ["a", "b", "d", "d/a", "d/e", "d/e/a"];
    let mut name = || root.join(NAMES[dice.below(6) as usize]);
    let (one, two) = (name(), name());
    let offset = dice.below(40);
    let bytes = vec![dice.below(256) as u8; dice.below(20) as usize + 1];
    let index = dice.below(files.len().max(1) as u64) as usize;
    let said = |result: io::Result<()>| format!("{:?}", result.map_err(|error| error.kind()));
    let mut opened = |how: Open| {
        // The system allows opening a directory, but no caller does it.
        if fs.list(&one).is_ok() {
            return String::new();
        }
        said(fs.open(&one, how).map(|file| files.push(file)))
    };
    let call = dice.below(16);
    let outcome = match call {
        0 => opened(Open::Read),
        1 => opened(Open::Write),
        2 | 3 => opened(Open::CreateNew),
        4 => said(fs.create_dir_all(&one)),
        5 => format!("{:?}", fs.list(&one).map_err(|error| error.kind())),
        6 => format!("{:?}", fs.exists(&one).map_err(|error| error.kind())),
        7 => said(fs.rename(&one, &two)),
        8 => said(fs.link(&one, &two)),
        9 => said(fs.remove_file(&one)),
        10 => said(fs.remove_dir(&one)),
        11 => said(fs.sync_dir(&one)),
        _ if files.is_empty() => String::new(),
        12 => said(files[index].write_at(&bytes, offset)),
        13 => said(files[index].set_len(offset)),
        14 => {
            let mut buffer = [0; 30];
            let read = files[index]
                .read_at(&mut buffer, offset)
                .map(|count| buffer[..count].to_vec());
            format!("{:?}", read.map_err(|error| error.kind()))
        }
        _ => format!(
            "{:?} {:?}",
            said(files[index].sync_all()),
            files[index].len().ok()
        ),
    };
    let name = |path: &Path| path.strip_prefix(root).map(Path::to_owned);
    format!("call {call} {:?} {:?}: {outcome}", name(&one), name(&two))
}

/// Goal: without faults the simulation equals the real file system. Method: the same random calls
/// on both, every answer compared.
#[test]
fn it_behaves_like_the_real_file_system() {
    for seed in 0..60 {
        let real_root = tempfile::tempdir().unwrap();
        let sim = SimFs::new(seed, SimOptions::default());
        let (mut real_files, mut sim_files) = (Vec::new(), Vec::new());
        let (mut real_dice, mut sim_dice) = (SplitMix64::new(seed), SplitMix64::new(seed));
        for number in 0..300 {
            let real = step(&RealFs, real_root.path(), &mut real_files, &mut real_dice);
            let simulated = step(&sim, path("/"), &mut sim_files, &mut sim_dice);
            assert_eq!(real, simulated, "seed {seed}, call {number}");
        }
    }
}

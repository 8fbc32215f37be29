//! Copies of a pin that follow the log over turns: splits, merges, and changes of the schema.

use std::path::Path;
use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::clock::{Clock, ManualClock};
use basalt_engine::engine::{LogHold, Pin, Restore, Turn};
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::id::SeqId;
use basalt_engine::schema::TableName;

use crate::rig::{Rig, create, descriptor, name, put, row, rows};

/// The tables at a position.
struct Moment {
    /// The last row of before.
    position: SeqId,
    wall_ms: u64,
    tables: Vec<(TableName, Vec<(String, String)>)>,
}

/// The rows of all tables of users.
fn all_rows(engine: &Engine) -> Vec<(TableName, Vec<(String, String)>)> {
    let tables = engine
        .tables()
        .into_iter()
        .filter(|(table, _)| !table.name.is_system());
    let named = tables.map(|(table, _)| (table.name.clone(), rows(engine, &table.name)));
    named.collect()
}

/// A pin, the turns and the log since, and moments to compare with.
struct History {
    rig: Rig,
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    hold: LogHold,
    pin: Pin,
    turns: Vec<Turn>,
    moments: Vec<Moment>,
}

impl History {
    /// A database with tables `t` and `gone`, pinned with rows in files and in memory.
    fn begin() -> Self {
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let mut rig = Rig::in_memory();
        rig.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let engine = rig.open();
        let table = create(&engine);
        engine
            .create_table(descriptor("gone", &["f"]), Vec::new())
            .unwrap();
        let hold = engine.hold_log().unwrap();
        for number in 0..20 {
            put(&engine, &table, &row(number), b"in a file");
            put(&engine, &name("gone"), &row(number), b"in a file");
        }
        engine.flush(&table).unwrap();
        for number in 10..30 {
            put(&engine, &table, &row(number), b"in memory");
        }
        let pin = engine.pin().unwrap();
        Self {
            rig,
            clock,
            engine,
            hold,
            pin,
            turns: Vec::new(),
            moments: Vec::new(),
        }
    }

    /// Writes to a table, and remembers the moment.
    fn write(&mut self, table: &str, numbers: std::ops::Range<usize>, value: &str) {
        for number in numbers {
            put(&self.engine, &name(table), &row(number), value.as_bytes());
        }
        let point = self.engine.log_point().unwrap();
        let taken = self.turns.last().map_or(self.pin.turns(), |turn| turn.number);
        let turns = self.engine.turns_after(taken).unwrap();
        self.turns.extend(turns.expect("they are kept"));
        self.moments.push(Moment {
            position: point.end.last_seq,
            wall_ms: point.wall_ms,
            tables: all_rows(&self.engine),
        });
    }

    /// The database of a position, made of the pin and all of the log.
    fn restored(&self, position: SeqId) -> Rig {
        let disk = SimFs::new(3, SimOptions::default());
        disk.create_dir_all(Path::new("/data")).unwrap();
        let to = Rig::simulated(&disk);
        let mut restore = Restore::decode(&self.pin.manifest(), Path::new("a backup")).unwrap();
        for turn in self.turns.iter().filter(|turn| turn.position < position) {
            restore.follow(turn.edit.as_ref().unwrap()).unwrap();
        }
        for file in restore.files() {
            self.copy(&to, &file.path, file.bytes, file.bytes);
        }
        let end = self.engine.log_point().unwrap().end;
        for number in self.hold.segment()..=end.segment {
            let (path, allocated, present) = self.engine.segment_file(number).unwrap();
            if number == end.segment {
                self.copy(&to, &path, end.bytes, allocated.max(end.bytes));
            } else {
                self.copy(&to, &path, present, present);
            }
        }
        restore.cut_log(&*to.vfs, &to.dir, position).unwrap();
        restore.install(&*to.vfs, &to.dir).unwrap();
        Engine::builder()
            .options(to.options.clone())
            .file_system(Arc::clone(&to.vfs))
            .clock(Arc::clone(&to.clock))
            .settle(&restore, &to.dir)
            .unwrap();
        assert_eq!(to.problems(), Vec::<String>::new());
        to
    }

    fn copy(&self, to: &Rig, path: &Path, bytes: u64, length: u64) {
        let file = self.rig.vfs.open(&self.rig.dir.join(path), Open::Read).unwrap();
        let mut content = vec![0; usize::try_from(bytes).unwrap()];
        file.read_exact_at(&mut content, 0).unwrap();
        let path = to.dir.join(path);
        to.vfs.create_dir_all(path.parent().unwrap()).unwrap();
        let file = to.vfs.open(&path, Open::CreateNew).unwrap();
        file.write_at(&content, 0).unwrap();
        file.set_len(length).unwrap();
        file.sync_all().unwrap();
    }

    /// Restores each moment and compares all tables, again after another start.
    fn check(&self) {
        assert!(
            self.turns
                .iter()
                .all(|turn| turn.files_follow && turn.edit.is_some()),
            "{:?}",
            self.turns
        );
        for moment in &self.moments {
            let copy = self.restored(moment.position);
            for _ in 0..2 {
                let engine = copy.open();
                assert_eq!(all_rows(&engine), moment.tables, "at {}", moment.position);
            }
        }
    }
}

/// Goal: a copy of a pin with the log and the turns since is the database of any later row: rows of regions
/// that were split or merged go to those that took over, and nothing of dropped or truncated tables comes
/// back.
#[test]
fn a_copy_follows_splits_merges_and_the_schema() {
    let mut history = History::begin();
    history.write("t", 30..33, "before");
    let engine = Arc::clone(&history.engine);
    let table = name("t");
    let whole = engine.regions(&table).unwrap()[0].id;
    let (left, right) = engine.split_region(whole, Some(&row(15))).unwrap();
    history.write("t", 12..18, "after a split");
    let (middle, _) = engine.split_region(right.id, Some(&row(25))).unwrap();
    history.write("t", 20..28, "after two splits");
    engine.flush(&table).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    history.write("t", 0..3, "after a compaction");
    engine.merge_regions(&[left.id, middle.id]).unwrap();
    history.write("t", 10..30, "after a merge");
    engine
        .create_table(descriptor("new", &["f", "g"]), vec![row(5)])
        .unwrap();
    history.write("new", 0..10, "of a new table");
    let regions = engine.regions(&name("new")).unwrap();
    engine.merge_regions(&[regions[0].id, regions[1].id]).unwrap();
    history.write("new", 3..8, "of a new region");
    engine.disable_table(&name("gone")).unwrap();
    engine.drop_table(&name("gone")).unwrap();
    history.write("t", 30..32, "after a drop");
    engine
        .create_table(descriptor("gone", &["f"]), Vec::new())
        .unwrap();
    history.write("gone", 100..102, "another table of that name");
    engine.disable_table(&table).unwrap();
    engine.truncate_table(&table, false).unwrap();
    history.write("t", 7..9, "after a truncation");
    engine.alter_table(descriptor("new", &["f", "g", "h"])).unwrap();
    engine.snapshot(&table, "s", true, 0).unwrap();
    history.write("new", 9..11, "after a change of the families");
    assert!(history.turns.len() >= 11, "{}", history.turns.len());
    history.check();
}

/// Goal: changes that bring files of their own, or after which old rows of the log must not come back, say
/// so.
#[test]
fn some_turns_cannot_be_followed() {
    let (_, _, engine) = Rig::open_simulated();
    let table = create(&engine);
    engine
        .create_table(descriptor("u", &["f", "g"]), vec![row(5)])
        .unwrap();
    put(&engine, &table, &row(1), b"v");
    assert_eq!(engine.turns_after(0).unwrap(), None, "turns are not kept yet");
    let _hold = engine.hold_log().unwrap();
    let follows = |what: &dyn Fn()| {
        let before = engine.turns().unwrap();
        what();
        let turns = engine.turns_after(before).unwrap().expect("they are kept");
        assert!(!turns.is_empty());
        turns.iter().all(|turn| turn.files_follow)
    };
    assert!(follows(&|| engine.snapshot(&table, "s", true, 0).unwrap()));
    assert!(!follows(&|| engine.clone_snapshot("s", &name("c")).unwrap()));
    assert!(!follows(&|| engine.alter_table(descriptor("u", &["f"])).unwrap()));
    assert!(follows(&|| engine
        .alter_table(descriptor("u", &["f", "g"]))
        .unwrap()));
    assert!(follows(&|| engine.disable_table(&table).unwrap()));
    assert!(!follows(&|| engine.restore_snapshot("s").unwrap()));
    let region = engine.regions(&name("u")).unwrap()[0].id;
    assert!(!follows(&|| drop(engine.truncate_region(region).unwrap())));
}

/// Goal: a log can be cut at a time of the wall clock: rows written up to then stay.
#[test]
fn a_log_is_cut_at_a_time() {
    let mut history = History::begin();
    for round in 0..4 {
        history.write("t", 40..43, &format!("round {round}"));
        history.clock.advance_ms(10);
    }
    let to = history.restored(history.moments[3].position);
    let restore = Restore::decode(&history.pin.manifest(), Path::new("a backup")).unwrap();
    let at = |wall_ms| {
        restore
            .position_at(&*to.vfs, &to.dir, history.pin.position(), wall_ms)
            .unwrap()
    };
    for moment in &history.moments {
        assert_eq!(at(moment.wall_ms), moment.position);
        assert_eq!(at(moment.wall_ms + 9), moment.position);
    }
    assert_eq!(at(history.moments[0].wall_ms - 1), history.pin.position());
}

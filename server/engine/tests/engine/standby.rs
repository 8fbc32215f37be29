//! Databases that follow another one: after every kind of change, over kills of the follower, in pieces of
//! any size, the follower has the leader's cells.

use std::path::Path;
use std::sync::Arc;

use basalt_engine::engine::{Applied, Fed, Feed, Place};
use basalt_engine::fs::Vfs;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::internals::crc32c;
use basalt_engine::op::{ReadSpec, Scan};
use basalt_engine::schema::{NamespaceDescriptor, TableName, TableState};
use basalt_engine::{Engine, Error};

use crate::groups::add_once;
use crate::pins::copied;
use crate::rig::{Rig, Shown, create, descriptor, name, put, put_at, row, scan};

/// A leader and its follower.
struct Pair {
    leader: Arc<Engine>,
    rig: Rig,
    follower: Arc<Engine>,
    /// Place of the follower, and the one that it has stored.
    place: Place,
    stored: Place,
    feed: Feed,
}

impl Pair {
    /// A follower made of a copy of the leader.
    fn of(leader_rig: &Rig, leader: &Arc<Engine>) -> Self {
        leader.add_log_reader("standby", b"").unwrap();
        leader.keep_turns().unwrap();
        let pin = leader.pin().unwrap();
        let rig = copied(leader_rig, &pin, |_| {}, None);
        let follower = rig.open();
        let place = Place {
            position: pin.position().next(),
            turn: pin.turns(),
        };
        follower.begin_copy(1, place.position).unwrap();
        assert_eq!(follower.set_follows(Some(1)).unwrap(), place.position);
        Self {
            leader: Arc::clone(leader),
            rig,
            follower,
            place,
            stored: place,
            feed: leader.feed(place).unwrap(),
        }
    }

    /// Follows up to the end. Returns the sum of the outcomes.
    fn follow(&mut self, bytes: u64) -> Applied {
        let mut all = Applied::default();
        loop {
            let mut piece = Vec::new();
            let fed = self.leader.read_feed(&mut self.feed, bytes, &mut piece).unwrap();
            let Fed::Piece(_, is_end) = fed else {
                panic!("the turns are gone");
            };
            let stored = &mut self.stored;
            let mut store = |place| {
                *stored = place;
                Ok(())
            };
            let applied = self
                .follower
                .apply_piece(&piece, &mut self.place, &mut store)
                .unwrap();
            all.rows += applied.rows;
            all.gone += applied.gone;
            all.turns += applied.turns;
            if applied.unfollowed.is_some() {
                all.unfollowed = applied.unfollowed;
                return all;
            }
            if is_end {
                return all;
            }
        }
    }

    /// Kills the leader, and starts it again. The follower gets a new copy if it lacks a turn.
    fn kill_leader(&mut self, rig: &Rig) {
        let turns = self.leader.turns().unwrap();
        let (_, _, other) = Rig::open_simulated();
        // The feed keeps the database, too.
        self.feed = other.feed(Place::default()).unwrap();
        self.leader = other;
        self.leader = rig.open();
        assert_eq!(self.leader.turns().unwrap(), turns, "their number is durable");
        self.leader.keep_turns().unwrap();
        if self.place.turn < turns {
            self.leader.remove_log_reader("standby").unwrap();
            *self = Self::of(rig, &Arc::clone(&self.leader));
        }
        self.feed = self.leader.feed(self.place).unwrap();
    }

    /// Kills the follower, and starts it again where it has stored that it was.
    fn kill(&mut self) {
        self.follower = self.rig.open_after_kill(&mut self.follower);
        let reached = self.follower.set_follows(Some(1)).unwrap();
        self.place = self.stored;
        self.place.position = self.place.position.max(reached);
        self.feed = self.leader.feed(self.place).unwrap();
    }

    #[track_caller]
    fn check(&mut self) {
        self.follow(1 << 20);
        assert_eq!(content(&self.follower), content(&self.leader));
    }
}

trait Killed {
    fn open_after_kill(&self, engine: &mut Arc<Engine>) -> Arc<Engine>;
}

impl Killed for Rig {
    fn open_after_kill(&self, engine: &mut Arc<Engine>) -> Arc<Engine> {
        // The last owner of the engine releases the directory.
        let (_, _, other) = Rig::open_simulated();
        drop(std::mem::replace(engine, other));
        self.open()
    }
}

/// Everything that users see: namespaces, tables with states and all cells, names of snapshots.
type Content = (
    Vec<NamespaceDescriptor>,
    Vec<(String, TableState, Vec<Shown>)>,
    Vec<String>,
);

fn content(engine: &Engine) -> Content {
    let all = || Scan {
        spec: ReadSpec {
            max_versions: i32::MAX,
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    let tables = engine
        .tables()
        .into_iter()
        .filter(|(table, _)| !table.name.is_system())
        .map(|(table, state)| {
            let cells = match state {
                TableState::Enabled => scan(engine, &table.name, all()),
                TableState::Disabled => Vec::new(),
            };
            (format!("{table:?}"), state, cells)
        });
    let snapshots = engine.snapshots();
    (
        engine.namespaces(),
        tables.collect(),
        snapshots.iter().map(|snapshot| snapshot.name.clone()).collect(),
    )
}

fn bounds(engine: &Engine, table: &TableName) -> Vec<Vec<u8>> {
    let regions = engine.regions(table).unwrap();
    regions.into_iter().map(|region| region.start).collect()
}

/// Goal: every change of the leader is the follower's, in its place among the rows; regions are split alike.
#[test]
fn a_follower_makes_every_change() {
    let (_, rig, leader) = Rig::open_simulated();
    let table = create(&leader);
    for number in 0..20 {
        put(&leader, &table, &row(number), b"of before");
    }
    leader.flush(&table).unwrap();
    put(&leader, &table, &row(3), b"in memory");
    let mut pair = Pair::of(&rig, &leader);
    assert_eq!(content(&pair.follower), content(&leader));

    for number in 10..30 {
        put_at(&leader, &table, &row(number), Some(5), b"old");
        put(&leader, &table, &row(number), b"new");
    }
    assert!(add_once(&leader, &table, b"counter", 7).0);
    pair.check();
    // The nonce came along: a repeated operation is known.
    assert!(!add_once(&pair.follower, &table, b"counter", 7).0);

    let whole = leader.regions(&table).unwrap()[0].id;
    let (left, right) = leader.split_region(whole, Some(&row(15))).unwrap();
    put(&leader, &table, &row(16), b"behind a split");
    pair.check();
    assert_eq!(bounds(&pair.follower, &table), [Vec::new(), row(15)]);
    leader.compact(&table, None, true, true).unwrap();
    pair.follower.compact(&table, None, true, true).unwrap();
    leader.merge_regions(&[left.id, right.id]).unwrap();
    pair.check();
    assert_eq!(bounds(&pair.follower, &table), [Vec::<u8>::new()]);

    leader
        .create_namespace(NamespaceDescriptor {
            name: "n".into(),
            ..NamespaceDescriptor::default()
        })
        .unwrap();
    leader
        .create_table(descriptor("n:u", &["f", "g"]), vec![row(5)])
        .unwrap();
    let other = name("n:u");
    for number in 0..10 {
        put(&leader, &other, &row(number), b"v");
    }
    leader.alter_table(descriptor("n:u", &["f"])).unwrap();
    put(&leader, &other, &row(3), b"after a family was dropped");
    leader.snapshot(&other, "s", true, 0).unwrap();
    leader.snapshot(&other, "gone", true, 0).unwrap();
    leader.delete_snapshot("gone").unwrap();
    leader.disable_table(&other).unwrap();
    pair.check();
    leader.truncate_table(&other, true).unwrap();
    put(&leader, &other, &row(1), b"after a truncation");
    pair.check();
    let region = leader.regions(&other).unwrap()[0].id;
    leader.truncate_region(region).unwrap();
    put(&leader, &other, &row(7), b"after a truncated region");
    pair.check();
    leader.disable_table(&other).unwrap();
    leader.drop_table(&other).unwrap();
    leader
        .create_table(descriptor("n:u", &["f"]), Vec::new())
        .unwrap();
    put(&leader, &other, &row(2), b"of another table of that name");
    pair.check();
    leader.disable_table(&other).unwrap();
    leader.drop_table(&other).unwrap();
    leader.drop_namespace("n").unwrap();
    pair.check();
}

/// Goal: a change that the follower cannot make is reported, and nothing after it is applied.
#[test]
fn some_changes_need_a_new_copy() {
    let (_, rig, leader) = Rig::open_simulated();
    let table = create(&leader);
    put(&leader, &table, &row(1), b"v");
    let mut pair = Pair::of(&rig, &leader);
    leader.snapshot(&table, "s", true, 0).unwrap();
    pair.check();
    leader.clone_snapshot("s", &name("c")).unwrap();
    put(&leader, &table, &row(2), b"behind it");
    let applied = pair.follow(1 << 20);
    let why = applied.unfollowed.expect("a clone has files of its own").0;
    assert!(why.contains("c was made of a snapshot"), "{why}");
    assert_eq!(scan(&pair.follower, &table, Scan::default()).len(), 1);

    // A new copy goes on from there.
    leader.remove_log_reader("standby").unwrap();
    let mut pair = Pair::of(&rig, &leader);
    put(&leader, &name("c"), &row(9), b"in the clone");
    pair.check();
}

/// Goal: missing turns are reported, and damaged pieces are refused.
#[test]
fn pieces_are_checked() {
    let (_, rig, leader) = Rig::open_simulated();
    let table = create(&leader);
    let mut pair = Pair::of(&rig, &leader);
    put(&leader, &table, &row(1), b"v");
    let mut piece = Vec::new();
    leader.read_feed(&mut pair.feed, 1, &mut piece).unwrap();
    let mut store = |_| Ok(());
    for place in [0, piece.len() / 2, piece.len() - 1] {
        let mut damaged = piece.clone();
        damaged[place] ^= 1;
        let error = pair
            .follower
            .apply_piece(&damaged, &mut pair.place, &mut store)
            .unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
    let error = pair.follower.apply_piece(b"ab", &mut pair.place, &mut store);
    assert!(matches!(error, Err(Error::Corrupt { .. })));
    drop(pair);

    // After a start the turns of before are not kept, but their number is known.
    let turns = leader.turns().unwrap();
    drop(leader);
    let leader = rig.open();
    assert_eq!(leader.turns().unwrap(), turns);
    let mut place = Place {
        position: leader.log_position(),
        turn: turns,
    };
    let mut fed = |turn| {
        place.turn = turn;
        let mut feed = leader.feed(place).unwrap();
        leader.read_feed(&mut feed, 1, &mut Vec::new()).unwrap()
    };
    assert!(matches!(fed(turns), Fed::Piece(..)));
    assert_eq!(fed(turns - 1), Fed::TurnsGone);
    assert_eq!(fed(turns + 1), Fed::TurnsGone);
}

/// Goal: whatever a peer sends with a right checksum is applied or refused, and nothing panics.
#[test]
fn malformed_pieces_are_refused() {
    let (_, rig, leader) = Rig::open_simulated();
    let table = create(&leader);
    let mut pair = Pair::of(&rig, &leader);
    for number in 0..5 {
        put(&leader, &table, &row(number), b"v");
    }
    leader
        .create_table(descriptor("u", &["f"]), vec![row(5)])
        .unwrap();
    assert!(add_once(&leader, &table, b"counter", 7).0);
    let mut piece = Vec::new();
    leader.read_feed(&mut pair.feed, 1 << 20, &mut piece).unwrap();
    piece.truncate(piece.len() - 4);
    let apply = |content: &[u8]| {
        let mut piece = content.to_vec();
        piece.extend_from_slice(&crc32c(content).to_le_bytes());
        let mut place = pair.place;
        pair.follower.apply_piece(&piece, &mut place, &mut |_| Ok(()))
    };
    for length in 0..piece.len() {
        assert!(apply(&piece[..length]).is_err(), "{length} bytes");
    }
    let mut random = Random(5);
    for _ in 0..3_000 {
        let mut changed = piece.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(changed.len());
            changed[at] = random.next().to_le_bytes()[0];
        }
        // Some changes make another valid piece.
        let _ = apply(&changed);
    }
    assert!(apply(&piece).is_ok());
}

/// Numbers that look random (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next()).unwrap() % end
    }
}

/// Goal: whatever the sizes of pieces, and wherever the follower is killed, it ends with the leader's cells.
/// The leader is killed, too.
#[test]
fn random_histories_are_followed_over_kills() {
    for seed in 0..12 {
        let mut random = Random(seed + 1);
        let disk = SimFs::new(seed, SimOptions::default());
        disk.create_dir_all(Path::new("/data")).unwrap();
        let mut rig = Rig::simulated(&disk);
        rig.options.wal_segment_bytes = 16 << 10;
        let leader = rig.open();
        create(&leader);
        let mut pair = Pair::of(&rig, &leader);
        drop(leader);
        for _ in 0..60 {
            change(&pair.leader, &mut random);
            match random.below(8) {
                0 => pair.kill(),
                2 => {
                    let place = pair.place;
                    pair.kill_leader(&rig);
                    if pair.place != place {
                        pair.stored = pair.place;
                    }
                }
                1 => {
                    let piece = 1 << random.below(16);
                    assert_eq!(pair.follow(piece).unfollowed, None);
                    pair.stored = pair.place;
                }
                _ => {}
            }
        }
        pair.check();
        let bytes = pair.leader.log_bytes_from(pair.place.position).unwrap();
        pair.leader
            .advance_log_reader("standby", pair.place.position)
            .unwrap();
        assert!(bytes < 64 << 10, "{bytes} bytes are kept");
    }
}

/// One random change.
fn change(engine: &Engine, random: &mut Random) {
    let tables: Vec<TableName> = engine
        .tables()
        .into_iter()
        .filter(|(table, state)| !table.name.is_system() && *state == TableState::Enabled)
        .map(|(table, _)| table.name.clone())
        .collect();
    let table = &tables[random.below(tables.len())];
    let number = random.below(40);
    match random.below(30) {
        0 => {
            let new = format!("t{}", random.below(4));
            // It may be there.
            let _ = engine.create_table(descriptor(&new, &["f"]), vec![row(number.max(1))]);
        }
        1 if tables.len() > 1 => {
            engine.disable_table(table).unwrap();
            engine.drop_table(table).unwrap();
        }
        2 => {
            engine.disable_table(table).unwrap();
            engine.truncate_table(table, random.below(2) == 0).unwrap();
        }
        3 => {
            let regions = engine.regions(table).unwrap();
            // It may have no room.
            let _ = engine.split_region(regions[0].id, Some(&row(number.max(1))));
        }
        4 => {
            let regions = engine.regions(table).unwrap();
            if let [left, right, ..] = &regions[..] {
                // It may lack a compaction.
                let _ = engine.merge_regions(&[left.id, right.id]);
            }
        }
        5 => engine.flush(table).unwrap(),
        6 => {
            add_once(engine, table, b"counter", random.next());
        }
        _ => {
            let value = vec![b'v'; 1 + random.below(600)];
            put_at(
                engine,
                table,
                &row(number),
                Some(1 + random.below(4) as i64),
                &value,
            );
        }
    }
}

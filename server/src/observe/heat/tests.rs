//! The recorded traffic matches the calls: hot keys, even loads, long times, many tables, little
//! memory.

#![expect(clippy::float_cmp, reason = "small whole numbers are exact")]

use basalt_engine::clock::ManualClock;

use super::*;

const NOW_MS: u64 = 1_700_000_000_000;

fn table(name: &str) -> TableName {
    TableName::parse(name.as_bytes()).unwrap()
}

/// A visualiser with a clock, and a thread of its own.
struct Rig {
    clock: Arc<ManualClock>,
    heat: Heat,
    sampler: RefCell<Sampler>,
    boundaries: Vec<Vec<u8>>,
}

impl Rig {
    /// With 16 regions that begin at `0`, `1` and so on to `f`.
    fn new(bytes: usize, sample_every: u32) -> Self {
        let clock = Arc::new(ManualClock::at(NOW_MS));
        let config = config::KeyVisualizer { bytes, sample_every };
        let digits = (1..16).map(|digit| format!("{digit:x}").into_bytes());
        Self {
            heat: Heat::new(&config, clock.clone()),
            clock,
            sampler: RefCell::new(Sampler::new(0)),
            boundaries: std::iter::once(Vec::new()).chain(digits).collect(),
        }
    }

    fn touch(&self, name: &str, request: Request, rows: &[&[u8]], bytes: usize) {
        let mut sampler = self.sampler.borrow_mut();
        let row = |index: usize| (rows[index], bytes);
        self.heat
            .sample(&mut sampler, &table(name), request, rows.len(), row);
    }

    fn write(&self, name: &str, key: &str) {
        self.touch(name, Request::Write, &[key.as_bytes()], 100);
    }

    /// Ten seconds later.
    fn next_column(&self) {
        self.later(COLUMN_MS);
    }

    fn later(&self, ms: u64) {
        self.clock.advance_ms(ms);
        self.heat.tick(|_| self.boundaries.clone());
    }

    fn picture(&self, query: &Query) -> Picture {
        self.heat.picture(query, &self.boundaries)
    }

    /// Everything of the last hour, by regions.
    fn query(&self, name: &str) -> Query {
        let now_ms = self.clock.wall_ms();
        Query {
            table: table(name),
            kind: Kind::Writes,
            axis: Axis::Regions,
            start: Vec::new(),
            end: Vec::new(),
            from_ms: now_ms - 3_600_000,
            to_ms: now_ms + 1,
            rows_max: 256,
            columns_max: 400,
        }
    }
}

/// The greatest of these over their mean: 1 is even.
fn peak_to_mean(totals: &[f64]) -> f64 {
    let sum: f64 = totals.iter().sum();
    totals.iter().copied().fold(0.0, f64::max) * totals.len() as f64 / sum
}

fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= expected * tolerance
}

#[test]
fn with_room_enough_every_row_is_counted() {
    let rig = Rig::new(16 << 20, 1);
    for _ in 0..3 {
        rig.touch("t", Request::Write, &[b"0a", b"0b", b"fa"], 7);
        rig.touch("t", Request::Read, &[b"5"], 1_000);
        rig.next_column();
    }
    let totals = |kind| {
        let query = Query {
            kind,
            ..rig.query("t")
        };
        rig.picture(&query).totals
    };
    let hot = |totals: Vec<f64>| -> Vec<(usize, f64)> {
        totals
            .into_iter()
            .enumerate()
            .filter(|(_, total)| *total > 0.0)
            .collect()
    };
    assert_eq!(hot(totals(Kind::Writes)), [(0, 6.0), (15, 3.0)]);
    assert_eq!(hot(totals(Kind::Reads)), [(5, 3.0)]);
    assert_eq!(hot(totals(Kind::Bytes)), [(0, 42.0), (5, 3_000.0), (15, 21.0)]);
    assert!(hot(rig.picture(&rig.query("u")).totals).is_empty());
}

/// The open column is in the picture too, as a rate over the time since it was opened.
#[test]
fn the_last_seconds_are_shown() {
    let rig = Rig::new(16 << 20, 1);
    rig.clock.advance_ms(COLUMN_MS - NOW_MS % COLUMN_MS);
    rig.heat.tick(|_| rig.boundaries.clone());
    for _ in 0..40 {
        rig.write("t", "3x");
    }
    rig.clock.advance_ms(4_000);
    let picture = rig.picture(&rig.query("t"));
    let last = &picture.rates[picture.rates.len() - 16..];
    assert_eq!(last[3], 10.0);
    assert_eq!(last.iter().filter(|rate| **rate > 0.0).count(), 1);
}

/// Sequential keys go to one region; salted ones to all of them alike.
#[test]
fn a_hot_region_is_a_bright_line_and_a_salted_load_an_even_field() {
    let rig = Rig::new(16 << 20, 1);
    for column in 0..30_u32 {
        for row in 0..1_600_u32 {
            rig.write("sequential", &format!("2026{column:04}{row:06}"));
            rig.write("salted", &format!("{:x}2026{column:04}{row:06}", row % 16));
        }
        rig.next_column();
    }
    let sequential = rig.picture(&rig.query("sequential"));
    assert!(
        near(peak_to_mean(&sequential.totals), 16.0, 0.001),
        "{:?}",
        sequential.totals
    );
    let salted = rig.picture(&rig.query("salted"));
    assert!(peak_to_mean(&salted.totals) < 1.05, "{:?}", salted.totals);
    for picture in [&sequential, &salted] {
        assert!(
            near(picture.totals.iter().sum(), 48_000.0, 0.02),
            "{:?}",
            picture.totals
        );
    }
    // In every single column, too.
    let columns: Vec<&[f32]> = salted
        .rates
        .chunks(16)
        .filter(|rates| rates.iter().any(|rate| *rate > 0.0))
        .collect();
    assert_eq!(columns.len(), 30);
    for rates in columns {
        let rates: Vec<f64> = rates.iter().map(|rate| f64::from(*rate)).collect();
        assert!(peak_to_mean(&rates) < 1.5, "{rates:?}");
    }
}

/// In the hot region, the axis of keys finds the hot key; zooming isolates it.
#[test]
fn a_hot_region_can_be_looked_into() {
    let rig = Rig::new(16 << 20, 1);
    for round in 0..20_000_u32 {
        rig.write("t", &format!("7user{:05}", round * 7_919 % 10_000));
        rig.write("t", "7user04711");
        if round % 1_000 == 999 {
            rig.next_column();
        }
    }
    let keys = Query {
        axis: Axis::Keys,
        rows_max: 64,
        start: b"7".to_vec(),
        end: b"8".to_vec(),
        ..rig.query("t")
    };
    let picture = rig.picture(&keys);
    assert!(
        (32..=64).contains(&picture.starts.len()),
        "{} rows",
        picture.starts.len()
    );
    let hottest = (0..picture.totals.len())
        .max_by(|left, right| picture.totals[*left].total_cmp(&picture.totals[*right]));
    let hottest = hottest.unwrap();
    let (start, end) = picture.range(hottest, &keys);
    assert!((start..end).contains(&b"7user04711".as_slice()));
    assert!(picture.totals[hottest] >= 20_000.0 * 0.98, "{:?}", picture.totals);
    assert!(near(picture.totals.iter().sum(), 40_000.0, 0.02));
    // Closer.
    let zoomed = Query {
        start: start.to_vec(),
        end: end.to_vec(),
        ..keys.clone()
    };
    let closer = rig.picture(&zoomed);
    assert_eq!(closer.starts[0], start);
    assert!(near(closer.totals.iter().sum(), picture.totals[hottest], 0.001));
    // And the time: only two columns of ten seconds.
    let short = Query {
        from_ms: rig.clock.wall_ms() - 2 * COLUMN_MS,
        ..keys
    };
    let short = rig.picture(&short);
    assert!(
        short.columns <= 3 && near(short.totals.iter().sum(), 4_000.0, 0.02),
        "{short:?}"
    );
}

/// Rows that alternate regularly are not all sampled at one position, and sums are right on
/// average.
#[test]
fn samples_stand_for_the_rows_between_them() {
    let rig = Rig::new(16 << 20, 16);
    let keys: Vec<String> = (0..16).map(|salt| format!("{salt:x}key")).collect();
    let rows: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    for _ in 0..20_000 {
        rig.touch("t", Request::Write, &rows, 100);
    }
    let picture = rig.picture(&rig.query("t"));
    assert!(
        near(picture.totals.iter().sum(), 320_000.0, 0.03),
        "{:?}",
        picture.totals
    );
    assert!(peak_to_mean(&picture.totals) < 1.4, "{:?}", picture.totals);
}

/// A full shard thins its samples out: sums stay right, and further rows are passed over.
#[test]
fn a_flood_is_thinned_out() {
    let rig = Rig::new(1 << 20, 1);
    let rows = 400_000_u32;
    let (table, mut sampler) = (table("t"), rig.sampler.borrow_mut());
    let began = std::time::Instant::now();
    for row in 0..rows {
        let key = [
            b"0123456789abcdef"[row as usize % 16],
            b'k',
            (row >> 8) as u8,
            row as u8,
        ];
        rig.heat
            .sample(&mut sampler, &table, Request::Write, 1, |_| (&key[..], 100));
    }
    println!("{:?} for each of {rows} rows", began.elapsed() / rows);
    drop(sampler);
    let shard = rig.heat.shards[0].0.lock();
    assert!(
        shard.used_bytes() <= (1 << 20) / PENDING_SHARE / SHARDS,
        "{}",
        shard.used_bytes()
    );
    drop(shard);
    let picture = rig.picture(&rig.query("t"));
    assert!(
        near(picture.totals.iter().sum(), f64::from(rows), 0.2),
        "{:?}",
        picture.totals
    );
    assert!(rig.sampler.borrow().weight > 1_000, "{:?}", rig.sampler.borrow());
    // The next column begins dense again.
    rig.next_column();
    rig.write("t", "0");
    assert_eq!(rig.sampler.borrow().weight, 1);
}

/// Many tables, long keys, two days: memory stays within its bound, and the hottest keys are still
/// there.
#[test]
fn memory_stays_within_its_bound() {
    let limit = 2 << 20;
    let rig = Rig::new(limit, 1);
    let mut most = 0;
    for column in 0..600_u32 {
        for row in 0..300_u32 {
            let name = if row % 2 == 0 {
                "hot".to_owned()
            } else {
                format!("table-{:04}", row * 7 % 1_500 + column % 9)
            };
            let key = format!("{:0300}", row * 31 + column);
            rig.write(&name, &format!("{:x}{}", row % 16, &key[key.len() - 8..]));
            rig.touch(&name, Request::Read, &[key.as_bytes()], 1 << 20);
        }
        // Longer and longer steps, so that all rings are filled.
        rig.later(COLUMN_MS * if column < 400 { 1 } else { 30 });
        most = most.max(rig.heat.used_bytes());
        assert!(most <= limit, "{most} bytes in column {column}");
    }
    assert!(most > limit / 8, "only {most} bytes were used");
    let total = rig.heat.history.lock().total(&table("hot"));
    assert!(
        near(f64::from(total[Kind::Writes as usize]), 600.0 * 150.0, 0.1),
        "{total:?}"
    );
    let query = Query {
        from_ms: rig.heat.oldest_ms(),
        ..rig.query("hot")
    };
    let picture = rig.picture(&query);
    assert!(
        picture.columns <= 400 && picture.step_ms >= 120_000,
        "{} of {} ms",
        picture.columns,
        picture.step_ms
    );
    assert!(
        near(picture.totals.iter().sum(), 600.0 * 150.0, 0.1),
        "{:?}",
        picture.totals
    );
}

/// Columns older than an hour are added up, and those older than a week are dropped.
#[test]
fn old_columns_become_coarser() {
    let rig = Rig::new(16 << 20, 1);
    rig.write("t", "1");
    rig.next_column();
    let total = || rig.heat.history.lock().total(&table("t"))[Kind::Writes as usize];
    for ms in [3_000_000, 4_000_000, 13 * 3_600_000, 6 * 24 * 3_600_000] {
        rig.later(ms);
        assert_eq!(total(), 1.0, "after {ms}");
    }
    let query = Query {
        from_ms: rig.clock.wall_ms() - 7 * 24 * 3_600_000,
        ..rig.query("t")
    };
    assert_eq!(rig.picture(&query).totals[1], 1.0);
    rig.later(24 * 3_600_000);
    assert_eq!(total(), 0.0);
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_it() {
    let rig = Rig::new(16 << 20, 1);
    for _ in 0..5 {
        rig.write("t", "1");
        rig.next_column();
    }
    rig.clock.set_wall_ms(NOW_MS - 50_000);
    rig.heat.tick(|_| rig.boundaries.clone());
    rig.write("t", "2");
    rig.next_column();
    let totals = rig.picture(&rig.query("t")).totals;
    assert_eq!((totals[1], totals[2]), (0.0, 1.0));
}

/// More regions than rows: runs of regions. Long keys: cut off, and still in their range.
#[test]
fn rows_are_bounded() {
    let mut rig = Rig::new(16 << 20, 1);
    rig.boundaries = std::iter::once(Vec::new())
        .chain((1..10_000_u32).map(|start| start.to_be_bytes().to_vec()))
        .collect();
    for region in (0..10_000_u32).step_by(10) {
        rig.touch(
            "t",
            Request::Write,
            &[&[&region.to_be_bytes()[..], &[7; 1_000]].concat()],
            1,
        );
    }
    rig.next_column();
    let regions = rig.picture(&rig.query("t"));
    assert_eq!(regions.starts.len(), 250);
    assert!(
        regions.totals.iter().all(|total| *total > 0.0) && peak_to_mean(&regions.totals) < 2.0,
        "{:?}",
        regions.totals
    );
    let keys = Query {
        axis: Axis::Keys,
        rows_max: 100,
        ..rig.query("t")
    };
    let picture = rig.picture(&keys);
    assert!(picture.starts.len() <= 100 && near(picture.totals.iter().sum(), 1_000.0, 0.001));
    assert!(picture.starts.is_sorted());
}

/// The busiest table comes first, over closed columns and the open one. A table without regions is
/// removed with the next column.
#[test]
fn tables_are_listed_by_load_and_end_with_their_regions() {
    let rig = Rig::new(16 << 20, 1);
    let names = || -> Vec<(String, f64)> {
        let listed = rig.heat.tables().into_iter();
        listed
            .map(|(table, requests)| (table.to_string(), requests))
            .collect()
    };
    rig.write("busy", "1");
    rig.write("dropped", "1");
    rig.next_column();
    rig.touch("busy", Request::Read, &[b"1", b"2"], 10);
    rig.write("another", "1");
    let of = |name: &str, requests| (name.to_owned(), requests);
    assert_eq!(names(), [of("busy", 3.0), of("another", 1.0), of("dropped", 1.0)]);
    rig.clock.advance_ms(COLUMN_MS);
    rig.heat.tick(|table| match table.to_string().as_str() {
        "dropped" => Vec::new(),
        _ => rig.boundaries.clone(),
    });
    assert_eq!(names(), [of("busy", 3.0), of("another", 1.0)]);
    assert_eq!(rig.picture(&rig.query("dropped")).totals, [0.0; 16]);
}

/// A picture can begin with the table's first load, and has the number of seconds with load.
#[test]
fn the_time_of_load_is_known() {
    let rig = Rig::new(16 << 20, 1);
    rig.clock.advance_ms(COLUMN_MS - NOW_MS % COLUMN_MS);
    rig.heat.tick(|_| rig.boundaries.clone());
    let began_ms = rig.clock.wall_ms();
    rig.write("other", "1");
    rig.later(60 * COLUMN_MS);
    assert_eq!(rig.heat.first_ms(&table("t")), began_ms, "of any table");
    let first_ms = rig.clock.wall_ms();
    for _ in 0..3 {
        rig.write("t", "1");
        assert_eq!(rig.heat.first_ms(&table("t")), first_ms);
        rig.later(COLUMN_MS);
        // Every second column has no load.
        rig.later(COLUMN_MS);
    }
    assert_eq!(rig.heat.first_ms(&table("t")), first_ms);
    let query = rig.query("t");
    assert_eq!(rig.picture(&query).load_seconds, 30.0);
    let reads = Query {
        kind: Kind::Reads,
        ..query.clone()
    };
    assert_eq!(rig.picture(&reads).load_seconds, 0.0);
    let quiet_keys = Query {
        start: b"2".to_vec(),
        ..query
    };
    assert_eq!(rig.picture(&quiet_keys).load_seconds, 0.0);
    // The open column counts up to the present time.
    rig.write("t", "1");
    rig.clock.advance_ms(4_000);
    assert_eq!(rig.picture(&rig.query("t")).load_seconds, 34.0);
}

#[test]
fn without_memory_it_is_off() {
    let rig = Rig::new(0, 1);
    assert!(!rig.heat.is_on());
    rig.heat.record(&table("t"), Request::Write, 1, |_| {
        unreachable!("no row is asked for")
    });
    rig.next_column();
    assert_eq!((rig.heat.used_bytes(), rig.heat.tables().len()), (0, 0));
    assert_eq!(rig.picture(&rig.query("t")).totals, [0.0; 16]);
}

/// Goal: a hot row is named from the first request on and after its column is closed; a table that is
/// forgotten leaves nothing, neither in the open column.
#[test]
fn hot_rows_are_named_until_their_table_is_forgotten() {
    let rig = Rig::new(16 << 20, 1);
    for row in 0..10 {
        rig.write("t", "hot");
        rig.write("t", &format!("row-{row}"));
        rig.write("u", "other");
    }
    let hottest = |rig: &Rig| {
        let hot = rig.heat.hot_rows(&table("t"));
        let writes = hot.of_kind(Kind::Writes).unwrap();
        let first = writes.rows.first().map(|row| (row.key.clone(), row.count));
        (first, writes.total)
    };
    let hot = Some((b"hot".to_vec(), 10.0));
    assert_eq!(hottest(&rig), (hot.clone(), 20.0));
    rig.next_column();
    assert_eq!(hottest(&rig), (hot, 20.0));
    rig.write("t", "again");
    let shares = |rig: &Rig| {
        let hottest = rig.heat.hottest().into_iter();
        hottest
            .map(|(table, kinds)| (table.to_string(), kinds[1].map(|row| row.share)))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shares(&rig),
        [("t".to_owned(), Some(10.0 / 21.0)), ("u".to_owned(), Some(1.0))]
    );
    rig.heat.forget(&table("t"));
    assert_eq!(hottest(&rig), (None, 0.0));
    assert_eq!(rig.heat.first_ms(&table("t")), rig.heat.oldest_ms());
    assert_eq!(rig.heat.tables(), [(table("u"), 10.0)]);
    // A table without regions is gone, too.
    rig.clock.advance_ms(COLUMN_MS);
    rig.heat.tick(|_| Vec::new());
    assert_eq!(rig.heat.hottest(), []);
}

/// Goal: the map has its past after a restart, without what was dropped, and a damaged file is not taken.
#[test]
fn the_history_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key-visualizer");
    let rig = Rig::new(16 << 20, 1);
    rig.heat.keep_in(path.clone(), |_| true);
    for column in 0..200 {
        for row in 0..20 {
            rig.write("t", &format!("{}-{column}-{row}", row % 4));
            rig.write("gone", "x");
        }
        rig.next_column();
    }
    rig.heat.save();
    let query = rig.query("t");
    let before = rig.picture(&query);
    assert!(before.totals.iter().sum::<f64>() > 3_999.0);

    let again = Rig::new(16 << 20, 1);
    again.clock.advance_ms(200 * COLUMN_MS);
    again.heat.keep_in(path.clone(), |name| *name != table("gone"));
    assert_eq!(again.picture(&query), before);
    let tables = again.heat.tables();
    assert_eq!(
        tables
            .iter()
            .map(|(name, _)| name.to_string())
            .collect::<Vec<_>>(),
        ["t"]
    );
    // A table that is dropped is gone from the file, too.
    again.heat.forget(&table("t"));
    let third = Rig::new(16 << 20, 1);
    third.clock.advance_ms(200 * COLUMN_MS);
    third.heat.keep_in(path.clone(), |_| true);
    assert_eq!(third.heat.tables(), []);

    // Less memory: the newest columns are kept, within the budget.
    rig.heat.save();
    let small = Rig::new(1 << 16, 1);
    small.clock.advance_ms(200 * COLUMN_MS);
    small.heat.keep_in(path.clone(), |_| true);
    assert!(small.heat.used_bytes() <= 1 << 16, "{}", small.heat.used_bytes());
    assert!(!small.heat.tables().is_empty());

    let good = std::fs::read(&path).unwrap();
    for wrong in [
        &good[..good.len() - 1],
        &good[..10],
        b"",
        &[&good[..50], b"x", &good[51..]].concat(),
    ] {
        std::fs::write(&path, wrong).unwrap();
        let empty = Rig::new(16 << 20, 1);
        empty.clock.advance_ms(200 * COLUMN_MS);
        empty.heat.keep_in(path.clone(), |_| true);
        assert_eq!(empty.heat.tables(), []);
    }
}

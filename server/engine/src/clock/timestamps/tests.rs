use super::*;
use crate::clock::{ManualClock, WALL_MAX_MS};
use crate::fs::sim::SplitMix64;

const BEGIN_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;

#[test]
fn assigned_time_follows_the_wall_clock() {
    let (clock, times) = (ManualClock::at(1_000), Timestamps::default());
    assert_eq!(times.issue(&clock), 1_000);
    assert_eq!(times.issue(&clock), 1_000, "within a millisecond it stands");
    clock.advance_ms(7);
    assert_eq!(times.issue(&clock), 1_007);
    assert_eq!(times.ahead(), Ahead::NONE);
    assert_eq!(times.look(&clock), Duration::ZERO);
}

/// After a step back of the clock, time advances more slowly and meets the clock four times the
/// step later.
#[test]
fn a_clock_that_stepped_back_is_waited_for_without_standing_still() {
    for step_ms in [1, 5_000, HOUR_MS, 365 * 24 * HOUR_MS] {
        let (clock, times) = (ManualClock::at(BEGIN_MS), Timestamps::default());
        let before = times.issue(&clock);
        clock.set_wall_ms(BEGIN_MS - step_ms);
        let first = times.issue(&clock);
        assert_eq!(first, before + 1, "another time than before the step");
        assert_eq!(times.ahead_of_clock(&clock), Duration::from_millis(step_ms + 1));
        clock.advance_ms(50);
        if step_ms > 50 {
            assert_eq!(times.issue(&clock), first + 37);
            assert_eq!(times.ahead().from_ms, before);
        }
        clock.advance_ms(4 * step_ms);
        assert_eq!(times.issue(&clock), clock.wall_ms() as i64, "step {step_ms}");
        assert_eq!(times.look(&clock), Duration::ZERO);
        assert_eq!(times.ahead(), Ahead::NONE);
    }
}

/// The wall clock shows the last assigned time again, milliseconds after that was assigned.
#[test]
fn time_does_not_stand_still_where_the_clock_meets_it() {
    let (clock, times) = (ManualClock::at(BEGIN_MS), Timestamps::default());
    times.issue(&clock);
    clock.set_wall_ms(BEGIN_MS - 3);
    let first = times.issue(&clock);
    clock.advance_ms(4);
    assert_eq!(clock.wall_ms() as i64, first);
    assert_eq!(times.issue(&clock), first + 3);
}

/// Each further step starts from assigned time, even before the clock has caught up.
#[test]
fn steps_in_a_row_do_not_add_up() {
    let (clock, times) = (ManualClock::at(BEGIN_MS), Timestamps::default());
    times.issue(&clock);
    for _ in 0..100 {
        clock.set_wall_ms(BEGIN_MS - HOUR_MS);
        clock.advance_ms(10);
        times.issue(&clock);
    }
    let ahead = times.ahead_of_clock(&clock);
    assert!(ahead <= Duration::from_millis(HOUR_MS + 1_000), "{ahead:?}");
}

#[test]
fn a_clock_that_stands_still_does_not_stop_time() {
    let (clock, times) = (ManualClock::at(BEGIN_MS), Timestamps::default());
    let mut last = times.issue(&clock);
    for _ in 0..10 {
        times.look(&clock);
        clock.advance_mono_ms(100);
    }
    times.look(&clock);
    for _ in 0..10 {
        let time = times.issue(&clock);
        assert!(time > last, "{time} {last}");
        last = time;
        clock.advance_mono_ms(2);
    }
    clock.advance_ms(HOUR_MS);
    times.look(&clock);
    assert_eq!(times.issue(&clock), clock.wall_ms() as i64);
    assert_eq!(times.ahead(), Ahead::NONE);
}

#[test]
fn after_a_start_time_is_later_than_all_before() {
    let clock = ManualClock::at(BEGIN_MS);
    assert_eq!(Timestamps::after(0).issue(&clock), BEGIN_MS as i64);
    assert!(Timestamps::after(BEGIN_MS).issue(&clock) > BEGIN_MS as i64);
    let times = Timestamps::after(BEGIN_MS + HOUR_MS);
    assert!(times.issue(&clock) > (BEGIN_MS + HOUR_MS) as i64);
    assert!(times.look(&clock) >= Duration::from_hours(1));
}

#[test]
fn rows_that_went_ahead_are_passed_and_marked() {
    let (clock, times) = (ManualClock::at(BEGIN_MS), Timestamps::default());
    let now = times.issue(&clock);
    times.note_row(now + 40);
    assert_eq!(times.issue(&clock), now, "other rows do not follow");
    assert_eq!(times.greatest(), now as u64 + 40);
    times.pass_rows();
    assert!(times.issue(&clock) > now + 40);
}

#[test]
fn a_write_far_beyond_the_mark_is_told_from_one_that_is_not() {
    let (clock, times) = (ManualClock::at(BEGIN_MS), Timestamps::default());
    let now = times.issue(&clock);
    assert!(times.is_beyond_mark(now) && times.lags_mark());
    times.set_marked(times.greatest());
    assert!(!times.is_beyond_mark(now) && !times.lags_mark());
    clock.advance_ms(60_000);
    let now = times.issue(&clock);
    assert!(!times.is_beyond_mark(now) && times.lags_mark());
    clock.advance_ms(30_000);
    assert!(times.is_beyond_mark(times.issue(&clock)));
}

/// Whatever two clocks do, and whatever was assigned before: time does not go back, stays a valid
/// timestamp, advances with the monotonic clock, and is no further ahead of the clock than it was
/// or than the clock has stepped back.
#[test]
fn no_walk_of_the_clock_turns_time_back() {
    const TIMES: [u64; 8] = [
        0,
        1,
        BEGIN_MS,
        BEGIN_MS + HOUR_MS,
        WALL_MAX_MS - 1,
        WALL_MAX_MS,
        i64::MAX as u64,
        u64::MAX,
    ];
    for seed in 0..500 {
        let mut dice = SplitMix64::new(seed);
        let mut draw = |count: usize| dice.below(count as u64) as usize;
        let clock = ManualClock::at(TIMES[draw(TIMES.len())]);
        let times = match draw(3) {
            0 => Timestamps::after(TIMES[draw(TIMES.len())]),
            _ => Timestamps::default(),
        };
        let mut last = times.issue(&clock);
        let mut greatest_wall = clock.wall_ms().max(last as u64);
        for _ in 0..200 {
            let before = clock.mono();
            match draw(8) {
                0 => clock.set_wall_ms(TIMES[draw(TIMES.len())]),
                1 => clock.set_wall_ms(clock.wall_ms().saturating_sub(draw(10_000) as u64)),
                2 => clock.advance_mono_ms(draw(1_000) as u64),
                3 => {
                    times.look(&clock);
                }
                _ => clock.advance_ms(draw(50) as u64),
            }
            let time = times.issue(&clock);
            let passed = clock.mono().saturating_sub(before).as_millis() as i64;
            greatest_wall = greatest_wall.max(clock.wall_ms());
            assert!(
                time >= last && time < i64::MAX - 1_000,
                "seed {seed}: {time} after {last}"
            );
            if clock.wall_ms() < last as u64 {
                assert!(
                    time >= (last + passed / 4 * 3).min(LAST_MS as i64),
                    "seed {seed}: stands at {time}"
                );
            }
            last = time;
        }
        let walked = clock.mono().as_millis() as u64;
        assert!(
            last as u64 <= greatest_wall.saturating_add(walked + 400),
            "seed {seed}: {last} ran away"
        );
    }
}

/// Threads see time in one order: a call that ended before another began does not return a later
/// time.
#[test]
fn time_does_not_go_back_between_threads() {
    let (clock, times) = (ManualClock::at(BEGIN_MS), Timestamps::default());
    let greatest = std::sync::atomic::AtomicI64::new(0);
    let turns = 2_000;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..turns {
                    let before = greatest.load(Ordering::SeqCst);
                    let time = times.issue(&clock);
                    assert!(time >= before, "{time} {before}");
                    greatest.fetch_max(time, Ordering::SeqCst);
                }
            });
        }
        for turn in 0..turns {
            match turn % 50 {
                0 => clock.set_wall_ms(BEGIN_MS - turn),
                25 => clock.set_wall_ms(BEGIN_MS + turn),
                _ => clock.advance_ms(1),
            }
        }
    });
}

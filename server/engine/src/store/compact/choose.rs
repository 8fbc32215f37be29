//! Which files to compact: all of them when enough of their versions are overwritten, and until then those of
//! HBase's exploring policy (`ExploringCompactionPolicy` under `SortedCompactionPolicy`).
//!
//! 1. Candidates are the files newer than the newest one that a running compaction reads: inputs
//!    must be neighbours in the order of sequence ids, so that newer files still win over older
//!    ones.
//! 2. A user's request, a major compaction due by age (with fewer than `max_files` files), or files
//!    from before a split: all candidates, at most `max_files` of the oldest (except for a user's
//!    request, which gets all).
//! 3. All files, if there are `min_files` or more, none of them is being read by a compaction, and the share
//!    of overwritten versions is large enough.
//! 4. Otherwise every window of min to max neighbours whose files are of similar size competes:
//!    more files win, then fewer bytes. If flushes wait for the store's number of files, the window
//!    with most files per byte wins instead, and if no window has files of similar size, the
//!    smallest.
//!
//! Pure functions of plain values.

use std::cmp::Ordering;
use std::ops::Range;
use std::time::Duration;

use crate::id::{FileId, SeqId};
use crate::options::Options;

/// A stuck store prefers another window only if that has this much more files per byte; among equals the
/// older one stays.
const STUCK_BETTER_BY: f64 = 1.05;

/// The properties of a file that the pick depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileView {
    /// Id of the file.
    pub id: FileId,
    /// Bytes of the file.
    pub bytes: u64,
    /// Greatest sequence id, which orders the files.
    pub max_seq: SeqId,
    /// Whether a compaction of all files wrote it.
    pub major: bool,
    /// Wall-clock milliseconds of its making.
    pub created_ms: u64,
    /// Timestamp of the oldest cell; `None` when it has no cell.
    pub oldest_ms: Option<i64>,
    /// Whether it holds cells of other regions (after a split).
    pub clipped: bool,
    /// Whether a running compaction reads it.
    pub busy: bool,
}

/// The properties of the store, or of the stripe, that the pick depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CompactionState {
    /// A user asked for a major compaction.
    pub major_requested: bool,
    /// TTL of the family in milliseconds; `i64::MAX` for ever.
    pub ttl_ms: i64,
    /// The share of the files' cells that a merge of all of them would drop, as far as is known.
    pub overwritten: f64,
    /// How many stripes the store has. A flush is spread over all of them.
    pub stripes: usize,
}

impl Default for CompactionState {
    fn default() -> Self {
        Self {
            major_requested: false,
            ttl_ms: i64::MAX,
            overwritten: 0.0,
            stripes: 1,
        }
    }
}

/// The chosen compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Nothing.
    Nothing,
    /// Compact these neighbours (indexes into the files given): some of the files.
    Minor(Range<usize>),
    /// Compact all files, for whatever reason they were chosen: tombstones may go.
    Major,
}

/// Chooses from `files`, oldest first. A major compaction that a user asked for waits until no other
/// compaction of the store runs; until then the answer is `Nothing`.
pub(crate) fn choose(files: &[FileView], options: &Options, now_ms: u64, state: &CompactionState) -> Pick {
    let busy = files.iter().filter(|file| file.busy).count();
    let first = files
        .iter()
        .rposition(|file| file.busy)
        .map_or(0, |newest| newest + 1);
    let candidates = &files[first..];
    if state.major_requested {
        return match (candidates.len(), busy) {
            (0, _) | (_, 1..) => Pick::Nothing,
            _ => Pick::Major,
        };
    }
    let max_files = options.compaction_max_files.max(2);
    let by_age = busy == 0 && files.len() < max_files && is_major_due(files, options, now_ms, state);
    if busy == 0 && is_overwritten(files, options, state) {
        return Pick::Major;
    }
    let window = if by_age || candidates.iter().any(|file| file.clipped) {
        Some(0..candidates.len().min(max_files))
    } else {
        let waiting = files.len() - busy + usize::from(busy > 0);
        let stuck = waiting >= options.compaction_blocking_files;
        explore(candidates, options, state.stripes, stuck)
    };
    match window {
        None => Pick::Nothing,
        Some(window) if window.len() == files.len() => Pick::Major,
        Some(window) => Pick::Minor(first + window.start..first + window.end),
    }
}

/// The order in which stripes are asked for a compaction, of each its state and the number of its files:
/// first those with most overwritten versions, and of these those with most files.
pub(crate) fn precedence(
    options: &Options,
    (one, one_files): (&CompactionState, usize),
    (other, other_files): (&CompactionState, usize),
) -> Ordering {
    let by_share = merged_share(options, other).total_cmp(&merged_share(options, one));
    by_share.then(other_files.cmp(&one_files))
}

/// The share of overwritten versions, if it is large enough for a merge of all files; otherwise 0.
fn merged_share(options: &Options, state: &CompactionState) -> f64 {
    match options.compaction_overwritten {
        least if least > 0.0 && state.overwritten >= least => state.overwritten,
        _ => 0.0,
    }
}

/// Whether these files are to be merged because of their overwritten versions.
fn is_overwritten(files: &[FileView], options: &Options, state: &CompactionState) -> bool {
    files.len() >= min_files(options) && merged_share(options, state) > 0.0
}

/// Whether these files should be asked for a compaction: there are enough of them, or enough overwritten
/// versions, or files from before a split.
pub(crate) fn needs_compaction(files: &[FileView], options: &Options, state: &CompactionState) -> bool {
    let idle = files.iter().filter(|file| !file.busy);
    let count = idle.clone().count();
    idle.clone().any(|file| file.clipped)
        || count >= window_files(options, state.stripes)
        || (count == files.len() && is_overwritten(files, options, state))
}

/// The wall-clock time from which on the age of its oldest file makes a store due for a major
/// compaction; `None`: never. It is spread by half a period before and after, derived from the ids
/// of the files, so that the stores of a server do not all start at once, also after a restart.
fn major_due_ms(files: &[FileView], options: &Options) -> Option<u64> {
    if options.compaction_major_period == Duration::ZERO {
        return None;
    }
    let oldest = files.iter().map(|file| file.created_ms).min()?;
    let seed = files.iter().fold(0_u64, |seed, file| scramble(seed ^ file.id.0));
    let period_ms = options.compaction_major_period.as_millis() as f64;
    let fraction = (seed >> 11) as f64 / (1_u64 << 53) as f64;
    Some(oldest.saturating_add((period_ms * (0.5 + fraction)) as u64))
}

/// Spreads a number's bits over all 64 (the finalizer of splitmix64).
fn scramble(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Whether all files should be compacted because of their age: not when that was done already and nothing has
/// expired since.
pub(crate) fn is_major_due(
    files: &[FileView],
    options: &Options,
    now_ms: u64,
    state: &CompactionState,
) -> bool {
    if major_due_ms(files, options).is_none_or(|due_ms| now_ms < due_ms) {
        return false;
    }
    match files {
        // Compacted already: worth it only when something in it has expired since.
        [single] if single.major => {
            let age_ms = single
                .oldest_ms
                .map_or(0, |oldest| (now_ms as i64).saturating_sub(oldest));
            state.ttl_ms != i64::MAX && age_ms >= state.ttl_ms
        }
        _ => true,
    }
}

fn min_files(options: &Options) -> usize {
    options.compaction_min_files.max(2)
}

fn max_files(options: &Options) -> usize {
    options.compaction_max_files.max(min_files(options))
}

/// Fewest files of a window. In one of several stripes twice as many: its files are parts of flushes, and
/// what a merge of some of them saves is little until the stripe is merged as a whole.
fn window_files(options: &Options, stripes: usize) -> usize {
    let factor = if stripes > 1 { 2 } else { 1 };
    (min_files(options) * factor).min(max_files(options))
}

/// The best window of similar files.
fn explore(candidates: &[FileView], options: &Options, stripes: usize, stuck: bool) -> Option<Range<usize>> {
    let (min_files, max_files) = (window_files(options, stripes), max_files(options));
    let always_bytes = options.compaction_min_bytes / stripes.max(1) as u64;
    let mut best: Option<(Range<usize>, u64)> = None;
    let mut smallest: Option<(Range<usize>, u64)> = None;
    for start in 0..candidates.len() {
        for end in start + min_files..=candidates.len().min(start + max_files) {
            let window = &candidates[start..end];
            let bytes = window.iter().map(|file| file.bytes).sum();
            if smallest.as_ref().is_none_or(|(_, least)| bytes < *least) {
                smallest = Some((start..end, bytes));
            }
            if bytes >= always_bytes && !is_in_ratio(window, bytes, options.compaction_ratio) {
                continue;
            }
            let better = match &best {
                None => true,
                Some((other, other_bytes)) if stuck && *other_bytes > 0 && bytes > 0 => {
                    let quality = |count: usize, bytes: u64| count as f64 / bytes as f64;
                    quality(end - start, bytes) > quality(other.len(), *other_bytes) * STUCK_BETTER_BY
                }
                Some((other, other_bytes)) => {
                    end - start > other.len() || (end - start == other.len() && bytes < *other_bytes)
                }
            };
            if better {
                best = Some((start..end, bytes));
            }
        }
    }
    if best.is_none() && stuck {
        best = smallest;
    }
    best.map(|(window, _)| window)
}

/// Whether no file is much larger than all others together.
fn is_in_ratio(window: &[FileView], bytes: u64, ratio: f64) -> bool {
    window
        .iter()
        .all(|file| file.bytes as f64 <= (bytes - file.bytes) as f64 * ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options of the tests: 3 to 5 files, ratio 1.2, always eligible below 10 bytes, 8 files block, major
    /// every 1000 ms.
    fn options() -> Options {
        Options {
            compaction_min_files: 3,
            compaction_max_files: 5,
            compaction_ratio: 1.2,
            compaction_min_bytes: 10,
            compaction_blocking_files: 8,
            compaction_overwritten: 0.25,
            compaction_major_period: Duration::from_secs(1),
            ..Options::default()
        }
    }

    /// Sizes, oldest first, with marks: `*` busy, `/` clipped, `!` major.
    fn files(text: &str) -> Vec<FileView> {
        text.split_whitespace()
            .enumerate()
            .map(|(index, word)| FileView {
                id: FileId(index as u64),
                bytes: word.trim_end_matches(['*', '/', '!']).parse().unwrap(),
                max_seq: SeqId(index as u64 * 10),
                major: word.contains('!'),
                created_ms: 10_000,
                oldest_ms: Some(10_000),
                clipped: word.contains('/'),
                busy: word.contains('*'),
            })
            .collect()
    }

    const IDLE: CompactionState = CompactionState {
        major_requested: false,
        ttl_ms: i64::MAX,
        overwritten: 0.0,
        stripes: 1,
    };

    fn show(pick: &Pick, files: &[FileView]) -> String {
        match pick {
            Pick::Nothing => "nothing".to_owned(),
            Pick::Major => "major".to_owned(),
            Pick::Minor(range) => {
                let sizes: Vec<_> = files[range.clone()]
                    .iter()
                    .map(|file| file.bytes.to_string())
                    .collect();
                sizes.join(" ")
            }
        }
    }

    /// Each line: files => pick.
    fn check(options: &Options, now_ms: u64, state: &CompactionState, table: &str) {
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (given, expected) = line.split_once("=>").unwrap();
            let files = files(given);
            let pick = choose(&files, options, now_ms, state);
            assert_eq!(show(&pick, &files), expected.trim(), "files {given}");
        }
    }

    #[test]
    fn windows_of_similar_files_compete() {
        check(
            &options(),
            10_000,
            &IDLE,
            "
                                    => nothing
            50                      => nothing
            50 50                   => nothing
            50 50 50                => major
            500 50 50 50            => 50 50 50
            999 60 23 12 12         => 23 12 12
            100 40 20 10            => nothing
            100 3 3 3               => 3 3 3
            4 1 1 1                 => major
            90 90 90 80 80 80       => 90 90 80 80 80
            80 80 80 90 90 90       => 80 80 80 90 90
            7 8 9 1000 30 30 30     => 7 8 9
            500 30 30 30 7 8 9      => 30 30 7 8 9
            ",
        );
    }

    #[test]
    fn running_compactions_hide_their_files_and_older_ones() {
        check(
            &options(),
            10_000,
            &IDLE,
            "
            50 50 50* 50 50         => nothing
            50 50 50* 50 50 50      => 50 50 50
            50* 50* 50* 50*         => nothing
            ",
        );
    }

    /// From the blocking number of files on there is always a compaction, at the least cost per
    /// file.
    #[test]
    fn a_stuck_store_takes_the_cheapest_window() {
        check(
            &options(),
            10_000,
            &IDLE,
            "
            6561 2187 729 243 81 27 9           => nothing
            19683 6561 2187 729 243 81 27 9     => 81 27 9
            900 900 900 900 900 20 20 20        => 20 20 20
            64 64 64 64 64 64 64* 128 42 14     => 128 42 14
            ",
        );
        let mut patient = options();
        patient.compaction_blocking_files = 100;
        check(
            &patient,
            10_000,
            &IDLE,
            "
            19683 6561 2187 729 243 81 27 9     => nothing
            900 900 900 900 900 20 20 20        => 900 900 20 20 20
            ",
        );
    }

    #[test]
    fn a_user_gets_all_files_or_waits() {
        let asked = CompactionState {
            major_requested: true,
            ..IDLE
        };
        check(
            &options(),
            10_000,
            &asked,
            "
                                    => nothing
            50                      => major
            50!                     => major
            900 1                   => major
            1 1 1 1 1 1 1 1 1       => major
            50 50* 50 50 50         => nothing
            ",
        );
    }

    #[test]
    fn files_from_before_a_split_are_rewritten() {
        check(
            &options(),
            10_000,
            &IDLE,
            "
            50/                     => major
            900/ 1                  => major
            1 900/ 1                => major
            9/ 8/ 7/ 6/ 5/ 4 3      => 9 8 7 6 5
            9/ 8* 7                 => nothing
            ",
        );
    }

    #[test]
    fn age_makes_a_store_due() {
        let late = 10_000 + 1_501;
        check(
            &options(),
            late,
            &IDLE,
            "
            900 1                   => major
            50                      => major
            50!                     => nothing
            900 90 30 10            => major
            900 90 30 10 5          => nothing
            90 30 10 3 1 1          => 3 1 1
            900 1*                  => nothing
        ",
        );
        check(&options(), 10_000 + 499, &IDLE, "900 1 => nothing");
        let short = CompactionState {
            ttl_ms: 1_500,
            ..IDLE
        };
        check(&options(), late, &short, "50! => major");
        let mut never = options();
        never.compaction_major_period = Duration::ZERO;
        check(&never, u64::MAX, &IDLE, "900 1 => nothing");
    }

    #[test]
    fn the_jitter_is_stable_bounded_and_spread() {
        let due = |first: u64| {
            let mut views = files("50 50");
            views[0].id = FileId(first);
            major_due_ms(&views, &options()).unwrap()
        };
        let all: Vec<u64> = (0..200).map(due).collect();
        assert_eq!(all, (0..200).map(due).collect::<Vec<_>>());
        assert!(all.iter().all(|due| (10_500..=11_500).contains(due)));
        let early = all.iter().filter(|due| **due < 11_000).count();
        assert!((60..140).contains(&early), "{early} of 200 in the first half");
    }

    #[test]
    fn enough_idle_files_ask_for_compaction() {
        for (given, expected) in [
            ("1 1", false),
            ("1 1 1", true),
            ("1* 1 1", false),
            ("1/", true),
            ("1/*", false),
        ] {
            assert_eq!(
                needs_compaction(&files(given), &options(), &IDLE),
                expected,
                "{given}"
            );
        }
    }

    #[test]
    fn overwritten_versions_are_merged_with_what_overwrites_them() {
        let table = "
            900 1                   => nothing
            900 90 1                => major
            900 90 1 1 1 1 1        => major
            900* 90 1               => nothing
            900 90 1*               => nothing
            ";
        let state = |overwritten| CompactionState { overwritten, ..IDLE };
        check(&options(), 10_000, &state(0.25), table);
        check(&options(), 10_000, &state(0.24), "900 90 1 => nothing");
        let mut never = options();
        never.compaction_overwritten = 0.0;
        check(&never, 10_000, &state(0.9), "900 90 1 => nothing");
        let needs = |given, overwritten| needs_compaction(&files(given), &options(), &state(overwritten));
        assert!(needs("900 90 1", 0.25) && !needs("900* 90 1", 0.25) && !needs("900 1", 0.25));
    }

    #[test]
    fn stripes_with_most_overwritten_versions_come_first() {
        let state = |overwritten| CompactionState { overwritten, ..IDLE };
        let ordered = |least| {
            let mut options = options();
            options.compaction_overwritten = least;
            let mut stripes = [(0.1, 9), (0.3, 4), (0.5, 3), (0.3, 5), (0.2, 9)];
            stripes.sort_by(|(one, one_files), (other, other_files)| {
                precedence(
                    &options,
                    (&state(*one), *one_files),
                    (&state(*other), *other_files),
                )
            });
            stripes
        };
        assert_eq!(ordered(0.25), [(0.5, 3), (0.3, 5), (0.3, 4), (0.1, 9), (0.2, 9)]);
        assert_eq!(ordered(0.0), [(0.1, 9), (0.2, 9), (0.3, 5), (0.3, 4), (0.5, 3)]);
    }

    #[test]
    fn windows_in_stripes_are_wider_and_small_files_smaller() {
        let state = CompactionState { stripes: 4, ..IDLE };
        check(
            &options(),
            10_000,
            &state,
            "
            50 50 50 50             => nothing
            50 50 50 50 50          => major
            9 1 1 1 1               => nothing
            2 1 1 1 1               => major
            ",
        );
        assert!(!needs_compaction(&files("1 1 1 1"), &options(), &state));
        assert!(needs_compaction(&files("1 1 1 1 1"), &options(), &state));
    }
}

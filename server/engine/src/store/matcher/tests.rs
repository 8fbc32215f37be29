//! Decisions as text. A table has one line per cell, in store order, with the decision it must get; `-`
//! stands for a cell that the decisions before it jump over. Time is 10 000 ms in all of them.

use crate::Result;
use crate::cell::{Cell, CellType, Key, KeyBuf, compare_keys};
use crate::clock::Ahead;
use crate::filter::{Filter, FilterSpec, ReturnCode};
use crate::id::SeqId;
use crate::op::{Columns, FamilySelection, ReadSpec, TimeRange};
use crate::schema::FamilyDescriptor;
use crate::store::ReadView;
use crate::store::tests::{TextCell, parse_cells};

use super::{Decision, Purge, ReadMatcher, RetainMatcher};

const NOW_MS: i64 = 10_000;

fn now() -> ReadView {
    ReadView {
        read_point: SeqId::MAX,
        now_ms: NOW_MS,
        ahead: Ahead::NONE,
    }
}

/// Returns the scripted code for `qualifier/timestamp`, and `Include` for everything else.
#[derive(Debug)]
struct Script(Vec<(String, ReturnCode)>);

impl Filter for Script {
    fn set_reversed(&mut self, _reversed: bool) {}
    fn reset(&mut self) {}
    fn filter_all_remaining(&self) -> bool {
        self.0.iter().any(|(place, _)| place == "all-remaining")
    }
    fn filter_row_key(&mut self, _row: &[u8]) -> Result<bool> {
        Ok(false)
    }
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let place = format!("{}/{}", cell.key.qualifier().escape_ascii(), cell.key.timestamp());
        let answer = self.0.iter().find(|(at, _)| *at == place);
        Ok(answer.map_or(ReturnCode::Include, |(_, code)| *code))
    }
}

fn code(name: &str) -> ReturnCode {
    match name {
        "Include" => ReturnCode::Include,
        "IncludeAndNextCol" => ReturnCode::IncludeAndNextCol,
        "IncludeAndSeekNextRow" => ReturnCode::IncludeAndSeekNextRow,
        "Skip" => ReturnCode::Skip,
        "NextCol" => ReturnCode::NextCol,
        "NextRow" => ReturnCode::NextRow,
        "Hint" => ReturnCode::SeekNextUsingHint,
        _ => panic!("no such return code: {name}"),
    }
}

fn family(options: &str) -> FamilyDescriptor {
    options
        .split_whitespace()
        .map(|option| option.split_once('=').unwrap())
        .fold(FamilyDescriptor::new(b"f"), |family, (name, value)| {
            family.with(name, value).unwrap()
        })
}

/// Words: `versions=N`, `raw`, `range=MIN..MAX`, `columns=a,b`, `filter=QUALIFIER/TIMESTAMP:CODE,…` or
/// `filter=none`.
fn spec(words: &str) -> (ReadSpec, FamilySelection, Option<Script>) {
    let mut spec = ReadSpec::default();
    let mut selection = FamilySelection {
        family: b"f".to_vec(),
        columns: Columns::All,
    };
    let mut script = None;
    for word in words.split_whitespace() {
        match word.split_once('=') {
            None if word == "raw" => spec.raw = true,
            Some(("versions", count)) => spec.max_versions = count.parse().unwrap(),
            Some(("range", bounds)) => {
                let (min, max) = bounds.split_once("..").unwrap();
                spec.time_range = TimeRange {
                    min: min.parse().unwrap(),
                    max: max.parse().unwrap(),
                };
            }
            Some(("columns", names)) => {
                selection.columns =
                    Columns::Only(names.split(',').map(|name| name.as_bytes().to_vec()).collect());
            }
            Some(("filter", answers)) => {
                let answers = answers.split(',').filter(|answer| *answer != "none");
                let parsed = answers.map(|answer| {
                    let (place, name) = answer.split_once(':').unwrap();
                    (place.to_owned(), code(name))
                });
                script = Some(Script(parsed.collect()));
            }
            _ => panic!("no such word: {word}"),
        }
    }
    if script.is_some() {
        // The matcher only checks whether there is one: it counts versions differently then.
        spec.filter = Some(std::sync::Arc::new(FilterSpec::key_only(false)));
    }
    (spec, selection, script)
}

/// Reads one row and compares every decision.
fn check_read(family_options: &str, spec_words: &str, table: &str) {
    check_read_at(now(), family_options, spec_words, table);
}

fn check_read_at(read_view: ReadView, family_options: &str, spec_words: &str, table: &str) {
    let lines: Vec<(TextCell, &str)> = table
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(cell, decision)| (TextCell::parse(cell), decision.trim()))
        .collect();
    let mut sorted: Vec<TextCell> = lines.iter().map(|(cell, _)| cell.clone()).collect();
    crate::store::tests::sort(&mut sorted);
    assert!(
        sorted.iter().eq(lines.iter().map(|(cell, _)| cell)),
        "the table is not in store order"
    );

    let (spec, selection, mut script) = spec(spec_words);
    let mut matcher = ReadMatcher::new(&family(family_options), Some(&selection), &spec, read_view);
    matcher.begin_row();
    let mut target = Vec::new();
    let mut over = false;
    for (cell, expected) in &lines {
        let cell = cell.as_cell();
        let jumped = over || (!target.is_empty() && compare_keys(cell.key, Key::trusted(&target)).is_lt());
        let got = if jumped {
            "-".to_owned()
        } else {
            let filter = script.as_mut().map(|script| script as &mut dyn Filter);
            let decision = matcher.decide(cell, filter).unwrap();
            match decision {
                Decision::NextColumn | Decision::IncludeAndNextColumn => {
                    matcher.next_column(cell.key, &mut target);
                }
                Decision::NextRow | Decision::IncludeAndNextRow | Decision::ScanDone => over = true,
                _ => {}
            }
            format!("{decision:?}")
        };
        assert_eq!(
            got,
            *expected,
            "at {} of {family_options} {spec_words} {table}",
            TextCell::of(cell)
        );
    }
}

/// Runs cells through a flush or compaction; `kept` lists the cells that must remain.
fn check_retain(family_options: &str, purge: Purge, cells: &str, kept: &str) {
    check_retain_beyond(SeqId::MAX, family_options, purge, cells, kept);
}

/// Runs cells through a flush or compaction while the earliest read point in use is `horizon`.
fn check_retain_beyond(horizon: SeqId, family_options: &str, purge: Purge, cells: &str, kept: &str) {
    let horizon = ReadView {
        read_point: horizon,
        ..now()
    };
    let mut matcher = RetainMatcher::new(&family(family_options), purge, horizon);
    let got: Vec<String> = parse_cells(cells)
        .iter()
        .filter(|cell| matcher.keeps(cell.as_cell()))
        .map(ToString::to_string)
        .collect();
    assert_eq!(got.join(" "), kept, "{family_options} {purge:?} of {cells}");
}

const ALL_FILES: Purge = Purge::DropTombstones { earliest_put: 0 };

#[test]
fn tombstones_mask_by_timestamp_whoever_came_first() {
    check_read(
        "VERSIONS=9",
        "versions=9",
        "
        r//50/P#1    Include
        r//40/DF#1   Skip
        r//40/P#9    Skip
        r//30/P#9    Skip
        r/a/60/P     Include
        r/a/40/P#9   NextColumn
        r/a/30/P#9   -
    ",
    );
    check_read(
        "VERSIONS=9",
        "versions=9",
        "
        r/a/50/P     Include
        r/a/40/D     Skip
        r/a/40/P#7   Skip
        r/a/30/P     Include
        r/a/20/DC    Skip
        r/a/20/P#8   NextColumn
        r/a/10/P     -
        r/b/10/P     Include
    ",
    );
}

#[test]
fn a_family_version_tombstone_masks_one_time_in_every_column() {
    check_read(
        "VERSIONS=9",
        "versions=9",
        "
        r//40/DFV    Skip
        r//20/DFV    Skip
        r/a/40/P     Skip
        r/a/30/P     Include
        r/b/40/P     Skip
        r/b/20/P     Skip
        r/b/10/P     Include
    ",
    );
}

#[test]
fn a_version_tombstone_does_not_narrow_a_column_tombstone() {
    check_read(
        "VERSIONS=9",
        "versions=9",
        "
        r/a/50/DC    Skip
        r/a/40/D     Skip
        r/a/30/P     NextColumn
    ",
    );
}

#[test]
fn versions_are_counted_after_tombstones_and_without_duplicates() {
    check_read(
        "VERSIONS=2",
        "versions=9",
        "
        r/a/50/P#9   Include
        r/a/50/P#8   Skip
        r/a/40/D     Skip
        r/a/40/P     Skip
        r/a/30/P     Include
        r/a/20/P     NextColumn
        r/a/10/P     -
        r/b/50/P     Include
    ",
    );
    check_read(
        "VERSIONS=3",
        "versions=1",
        "
        r/a/50/P     Include
        r/a/40/P     NextColumn
        r/a/30/P     -
    ",
    );
}

/// The empty qualifier's column is not jumped over: family tombstones lie in it. A filter that is
/// done with it gets its next version all the same, as in HBase.
#[test]
fn the_empty_qualifier_is_stepped_through() {
    check_read(
        "VERSIONS=1",
        "versions=1",
        "
        r//50/P      Include
        r//40/P      Skip
        r//30/P      Skip
        r//20/DF     Skip
        r//10/P      Skip
        r/a/30/P     Include
        r/b/20/P     NextColumn
        r/b/10/P     -
    ",
    );
    check_read(
        "VERSIONS=9",
        "versions=9 columns=b",
        "
        r//50/P      Skip
        r//20/DF     Skip
        r/a/30/P     NextColumn
        r/a/20/P     -
        r/b/20/P     NextRow
    ",
    );
    check_read(
        "VERSIONS=9",
        "versions=9 filter=/50:IncludeAndNextCol",
        "
        r//50/P      Include
        r//40/P      Include
        r//20/DF     Skip
        r//10/P      Skip
        r/b/30/P     Include
    ",
    );
    check_read(
        "VERSIONS=9",
        "raw versions=1 filter=/50:IncludeAndNextCol,/40:IncludeAndNextCol,/20:NextCol",
        "
        r//50/DF     Include
        r//40/P      Skip
        r//20/DF     Skip
        r/b/30/P     Include
    ",
    );
}

#[test]
fn named_columns_end_the_row_early() {
    check_read(
        "VERSIONS=2",
        "versions=2 columns=b,d",
        "
        r/a/50/P     NextColumn
        r/a/40/P     -
        r/b/50/P     Include
        r/b/40/P     IncludeAndNextColumn
        r/b/30/P     -
        r/c/50/P     -
        r/d/50/P     Include
        r/d/40/P     IncludeAndNextRow
        r/e/50/P     -
    ",
    );
    check_read(
        "VERSIONS=1",
        "versions=1 columns=b",
        "
        r/c/50/P     NextRow
        r/d/50/P     -
    ",
    );
}

#[test]
fn the_family_ttl_hides_what_is_older() {
    check_read(
        "VERSIONS=9 TTL=5",
        "versions=9",
        "
        r/a/5001/P   Include
        r/a/5000/P   Include
        r/a/4999/P   NextColumn
        r/a/4998/P   -
        r/b/4999/DC  NextColumn
        r/c/9000/P   Include
    ",
    );
}

/// The clock stands at 10 s. Assigned time was at 20 s when the clock stepped back, and is at 30 s.
/// Puts assigned since then expire by assigned time, and hide older cells in their column;
/// tombstones and cells from before expire by the clock.
#[test]
fn a_clock_that_is_behind_does_not_lengthen_the_ttl() {
    let behind = ReadView {
        ahead: Ahead {
            from_ms: 20_000,
            now_ms: 30_000,
        },
        ..now()
    };
    let cells = "
        r//24999/P   Skip
        r//19000/P   Skip
        r/a/25000/P  Include
        r/a/24999/P  NextColumn
        r/a/19000/P  -
        r/b/24999/DC Skip
        r/b/19000/P  NextColumn
        r/c/20000/P  Include
        r/c/5000/P   Include
        r/c/4999/P   NextColumn
    ";
    check_read_at(behind, "VERSIONS=9 TTL=5", "versions=9", cells);
    let no_age = "
        r/a/24999/P  Include
    ";
    check_read_at(behind, "VERSIONS=9", "versions=9", no_age);
    check_read(
        "VERSIONS=9 TTL=5",
        "versions=9",
        "
        r/a/24999/P  Include
        r/a/19000/P  Include
    ",
    );
}

#[test]
fn min_versions_outlive_the_ttl() {
    check_read(
        "VERSIONS=9 MIN_VERSIONS=2 TTL=5",
        "versions=9",
        "
        r/a/6000/P   Include
        r/a/4000/P   Include
        r/a/3000/P   NextColumn
        r/b/4000/P   Include
        r/b/3000/P   Include
        r/b/2000/P   NextColumn
    ",
    );
    // HBase's tracker of named columns includes the expired version that ends the column.
    check_read(
        "VERSIONS=9 MIN_VERSIONS=1 TTL=5",
        "versions=9 columns=a,b",
        "
        r/a/4000/P   IncludeAndNextColumn
        r/a/3000/P   -
        r/b/6000/P   Include
        r/b/4000/P   IncludeAndNextRow
        r/b/3000/P   -
    ",
    );
}

#[test]
fn a_cells_own_ttl_hides_only_that_cell() {
    check_read(
        "VERSIONS=9",
        "versions=9",
        "
        r/a/9000/P=ttl1000  Include
        r/a/8000/P=ttl1999  Skip
        r/a/7000/P          Include
    ",
    );
    // An expired tombstone masks nothing any more.
    check_read(
        "VERSIONS=9",
        "versions=9",
        "
        r/a/8000/DC=ttl10   Skip
        r/a/7000/P          Include
    ",
    );
}

#[test]
fn the_time_range_comes_before_versions() {
    check_read(
        "VERSIONS=1",
        "versions=1 range=20..40",
        "
        r/a/50/P     Skip
        r/a/40/P     Skip
        r/a/30/P     Include
        r/a/20/P     NextColumn
        r/b/20/P     Include
        r/b/19/P     NextColumn
        r/b/18/P     -
    ",
    );
}

#[test]
fn tombstones_newer_than_the_range_mask_unless_deleted_cells_are_kept() {
    check_read(
        "VERSIONS=9",
        "versions=9 range=0..40",
        "
        r/a/50/DC    Skip
        r/a/30/P     NextColumn
        r/b/30/DC    Skip
        r/b/20/P     NextColumn
    ",
    );
    for keep in ["TRUE", "TTL"] {
        check_read(
            &format!("VERSIONS=9 KEEP_DELETED_CELLS={keep}"),
            "versions=9 range=0..40",
            "
            r/a/50/DC    Skip
            r/a/30/P     Include
            r/b/30/DC    Skip
            r/b/20/P     NextColumn
        ",
        );
    }
}

#[test]
fn raw_reads_show_tombstones_and_what_they_mask() {
    check_read(
        "VERSIONS=1",
        "raw versions=2",
        "
        r//50/DF     Include
        r//40/P      Include
        r/a/50/DC    Include
        r/a/40/P     Include
        r/a/30/D     Include
        r/a/30/P     Include
        r/a/20/D     Include
        r/a/20/P     NextColumn
        r/a/10/D     -
    ",
    );
    check_read(
        "VERSIONS=1 TTL=5",
        "raw versions=9 range=0..9000",
        "
        r/a/9000/P   Skip
        r/a/8000/P   Include
        r/a/4000/DC  Include
        r/a/3000/P   Include
    ",
    );
}

#[test]
fn the_filter_sees_all_versions_and_the_client_limit_counts_what_it_let_through() {
    check_read(
        "VERSIONS=3",
        "versions=1 filter=a/50:Skip",
        "
        r/a/50/P     Skip
        r/a/40/P     Include
        r/a/30/P     NextColumn
        r/a/20/P     -
        r/b/50/P     Include
        r/b/40/P     NextColumn
    ",
    );
    check_read(
        "VERSIONS=2",
        "versions=2 columns=a,b filter=a/50:Skip,a/40:Skip",
        "
        r/a/50/P     Skip
        r/a/40/P     NextColumn
        r/a/30/P     -
        r/b/50/P     Include
        r/b/40/P     IncludeAndNextRow
    ",
    );
    check_read(
        "VERSIONS=2",
        "versions=1 columns=a,b filter=none",
        "
        r/a/50/P     Include
        r/a/40/P     NextColumn
        r/b/50/P     Include
        r/b/40/P     NextRow
    ",
    );
}

#[test]
fn every_answer_of_the_filter_moves_as_far_as_it_says() {
    check_read(
        "VERSIONS=9",
        "versions=9 filter=a/50:IncludeAndNextCol,b/50:NextCol,c/50:Hint,d/50:NextRow",
        "
        r/a/50/P     IncludeAndNextColumn
        r/a/40/P     -
        r/b/50/P     NextColumn
        r/b/40/P     -
        r/c/50/P     Hint
        r/c/40/P     Include
        r/d/50/P     NextRow
        r/e/50/P     -
    ",
    );
    check_read(
        "VERSIONS=9",
        "versions=9 filter=a/50:IncludeAndSeekNextRow",
        "
        r/a/50/P     IncludeAndNextRow
        r/a/40/P     -
    ",
    );
    check_read(
        "VERSIONS=1",
        "versions=1 columns=a filter=a/50:Hint",
        "
        r/a/50/P     NextRow
    ",
    );
    check_read(
        "VERSIONS=9",
        "versions=9 columns=a,b filter=a/50:IncludeAndNextCol,b/50:IncludeAndNextCol",
        "
        r/a/50/P     IncludeAndNextColumn
        r/a/40/P     -
        r/b/50/P     IncludeAndNextRow
        r/b/40/P     -
    ",
    );
    check_read(
        "VERSIONS=9",
        "versions=9 filter=all-remaining:Skip",
        "
        r/a/50/P     ScanDone
    ",
    );
}

#[test]
fn the_filter_never_sees_what_is_not_visible() {
    // If it were asked about any of these, it would end the row.
    let never = "versions=9 range=20..60 filter=a/70:NextRow,a/50:NextRow,a/10:NextRow,b/50:NextRow";
    check_read(
        "VERSIONS=9",
        never,
        "
        r/a/70/P     Skip
        r/a/50/D     Skip
        r/a/50/P     Skip
        r/a/10/P     NextColumn
        r/b/50/DC    Skip
        r/b/50/P     NextColumn
        r/c/30/P     Include
    ",
    );
}

#[test]
fn the_next_column_is_the_next_wanted_one() {
    let (spec, selection, _) = spec("columns=b,d");
    let mut matcher = ReadMatcher::new(&family(""), Some(&selection), &spec, now());
    matcher.begin_row();
    let cell = TextCell::parse("r/a/50/P");
    assert_eq!(
        matcher.decide(cell.as_cell(), None).unwrap(),
        Decision::NextColumn
    );
    let mut target = Vec::new();
    matcher.next_column(cell.key.as_key(), &mut target);
    assert_eq!(target, KeyBuf::first_on_column(b"r", b"f", b"b").as_key().bytes());

    let matcher = ReadMatcher::new(&family(""), None, &spec, now());
    matcher.next_column(cell.key.as_key(), &mut target);
    let last = KeyBuf::new(b"r", b"f", b"a", i64::MIN, CellType::Minimum);
    assert_eq!(target, last.as_key().bytes());
}

#[test]
fn a_flush_keeps_tombstones_and_drops_what_they_mask() {
    check_retain(
        "VERSIONS=2",
        Purge::KeepTombstones,
        "r//40/DF r/a/50/P r/a/40/P r/a/30/D r/b/60/DC r/b/60/P r/b/50/P r/b/70/P s/a/40/P",
        "r//40/DF r/a/50/P r/a/30/D r/b/70/P r/b/60/DC s/a/40/P",
    );
    check_retain(
        "VERSIONS=2",
        Purge::KeepTombstones,
        "r/a/50/P#9 r/a/50/P#8 r/a/40/P r/a/30/P r/a/20/DC r/a/10/P r/b/10/P",
        "r/a/50/P#9 r/a/40/P r/a/20/DC r/b/10/P",
    );
}

#[test]
fn expiry_drops_everywhere() {
    for purge in [Purge::KeepTombstones, ALL_FILES] {
        check_retain(
            "VERSIONS=9 TTL=5",
            purge,
            "r/a/6000/P r/a/5000/P r/a/4999/P r/b/4000/DC r/c/9000/P=ttl999 r/d/9000/P=ttl1000",
            "r/a/6000/P r/a/5000/P r/d/9000/P=ttl1000",
        );
        check_retain(
            "VERSIONS=9 MIN_VERSIONS=2 TTL=5",
            purge,
            "r/a/6000/P r/a/4000/P r/a/3000/P r/b/4000/P r/b/3000/P r/b/2000/P",
            "r/a/6000/P r/a/4000/P r/b/4000/P r/b/3000/P",
        );
    }
}

#[test]
fn all_files_together_drop_tombstones() {
    check_retain(
        "VERSIONS=9",
        ALL_FILES,
        "r//40/DF r//20/DFV r/a/50/P r/a/40/P r/b/60/DC r/b/50/P r/b/70/P r/c/90/D r/c/90/P r/c/80/P",
        "r/a/50/P r/b/70/P r/c/80/P",
    );
}

/// Cells above the horizon stay, count for nothing and mask nothing: an open scan does not see them.
#[test]
fn cells_that_an_open_scan_sees_are_kept() {
    let flush = Purge::KeepTombstones;
    let cells = "r/a/50/P#9 r/a/40/P#7 r/a/30/P#5 r/a/20/P#3 r/a/10/P#1";
    for (horizon, kept) in [
        (9, "r/a/50/P#9"),
        (8, "r/a/50/P#9 r/a/40/P#7"),
        (5, "r/a/50/P#9 r/a/40/P#7 r/a/30/P#5"),
        (0, cells),
    ] {
        check_retain_beyond(SeqId(horizon), "VERSIONS=1", flush, cells, kept);
        check_retain_beyond(SeqId(horizon), "VERSIONS=1", ALL_FILES, cells, kept);
    }
    let deleted = "r/a/40/DC#4 r/a/30/P#3 r/a/20/P#2";
    check_retain_beyond(SeqId(4), "VERSIONS=2", flush, deleted, "r/a/40/DC#4");
    check_retain_beyond(SeqId(4), "VERSIONS=2", ALL_FILES, deleted, "");
    for purge in [flush, ALL_FILES] {
        check_retain_beyond(SeqId(3), "VERSIONS=2", purge, deleted, deleted);
    }
    // One version written twice: the scan sees the older write.
    let twice = "r/a/40/P#2 r/a/40/P#1";
    check_retain_beyond(SeqId(1), "VERSIONS=1", flush, twice, twice);
    check_retain_beyond(SeqId(2), "VERSIONS=1", flush, twice, "r/a/40/P#2");
    // A tombstone that is visible to all readers masks a put that is not: no reader ever sees that
    // put.
    check_retain_beyond(
        SeqId(1),
        "VERSIONS=1",
        flush,
        "r/a/40/DC#1 r/a/40/P#2",
        "r/a/40/DC#1",
    );
}

#[test]
fn kept_deleted_cells_go_by_version_and_age() {
    let keep = "VERSIONS=2 KEEP_DELETED_CELLS=TRUE";
    let cells = "r/a/50/DC r/a/40/P r/a/30/P r/a/25/D r/a/20/P r/a/10/DC";
    check_retain(
        keep,
        Purge::KeepTombstones,
        cells,
        "r/a/50/DC r/a/40/P r/a/30/P r/a/25/D r/a/10/DC",
    );
    // Tombstones take the version of the put before them; behind the last version they go.
    check_retain(keep, ALL_FILES, cells, "r/a/50/DC r/a/40/P r/a/30/P r/a/25/D");
    // A tombstone older than every put masks nothing.
    let late = Purge::DropTombstones { earliest_put: 30 };
    check_retain(keep, late, "r/a/40/P r/a/29/DC r/b/30/DC", "r/a/40/P r/b/30/DC");
}

#[test]
fn kept_until_ttl_then_dropped() {
    let keep = "VERSIONS=9 TTL=5 MIN_VERSIONS=1 KEEP_DELETED_CELLS=TTL";
    let cells = "r/a/7000/DC r/a/6000/P r/b/4500/DC r/b/4000/P";
    check_retain(
        keep,
        Purge::KeepTombstones,
        cells,
        "r/a/7000/DC r/a/6000/P r/b/4500/DC",
    );
    check_retain(keep, ALL_FILES, cells, "r/a/7000/DC r/a/6000/P");
}

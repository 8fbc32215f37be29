//! Models as text, the plans of patterns, and the answers that plans find.
//!
//! A plan is checked without a server: of all rows of a model, those that lie in its ranges and pass its
//! filter are exactly those that answer the question.

use std::path::Path;
use std::sync::Arc;

use basalt_load::load::Measured;

use super::check;
use super::code::{self, Layout, Made};
use super::data::Data;
use super::file::{Model, PatternKind};
use super::measure::Figures;
use super::plan::{Newest, Plan, start_and_stop};
use super::report::{Judged, ResultReport, Verdict};
use super::split;
use super::text::Source;
use crate::region_load::RegionMap;

const MODELS: [(&str, &str); 3] = [
    ("documents", include_str!("../../../models/documents.toml")),
    ("feed", include_str!("../../../models/feed.toml")),
    ("sensors", include_str!("../../../models/sensors.toml")),
];

fn parsed(text: &str) -> Model {
    let path = Path::new("own.toml");
    check::parse(Source { path, text }).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    let path = Path::new("own.toml");
    check::parse(Source { path, text }).unwrap_err().to_string()
}

/// The plan of a pattern in a layout, in words.
fn words(model: &Model, layout: &str, pattern: &str) -> String {
    let layout = model.layouts.iter().position(|name| name == layout).unwrap();
    let pattern = model.patterns.iter().find(|found| found.name == pattern).unwrap();
    let table = &model.tables[pattern.table];
    let data = Data::new(table, 1.0, 1);
    let span_ms = match pattern.kind {
        PatternKind::Read { span_ms, .. } => span_ms.unwrap_or(1),
        _ => 1,
    };
    let key = &table.keys[layout];
    Plan::of(key, pattern, data.ms_per_row()).words(key, span_ms)
}

#[test]
fn patterns_are_planned_from_the_left_of_the_key() {
    let documents = parsed(MODELS[0].1);
    let minute = "all documents of a minute";
    assert_eq!(words(&documents, "minutes", minute), "one scan by minute");
    assert_eq!(words(&documents, "salted", minute), "16 scans by salt, time");
    let latest = "the latest 20 documents";
    assert_eq!(
        words(&documents, "minutes", latest),
        "a scan of the whole table, read to the end for the newest 20"
    );
    assert_eq!(
        words(&documents, "salted", latest),
        "16 scans by salt, backwards, each ends after 20 rows"
    );
    let feed = parsed(MODELS[1].1);
    assert_eq!(
        words(&feed, "by_time", "latest 20 of a person"),
        "a scan of the whole table, read to the end for the newest 20; rows of another person are read and thrown away"
    );
    assert_eq!(
        words(&feed, "by_person", "latest 20 of a person"),
        "one scan by bucket, person, ends after 20 rows"
    );
    let sensors = parsed(MODELS[2].1);
    let hour = "an hour of a sensor";
    assert_eq!(
        words(&sensors, "by_sensor", hour),
        "one scan by sensor, reversed_time"
    );
    assert_eq!(
        words(&sensors, "by_hour", hour),
        "one scan by hour; rows of another sensor are read and thrown away"
    );
    assert_eq!(
        words(&sensors, "digits", hour),
        "one scan by time_text; rows of another sensor are read and thrown away"
    );
}

/// Goal: no plan misses a row, and none returns a foreign one, whatever the layout.
#[test]
fn plans_find_exactly_the_rows_that_answer() {
    const ROWS: u64 = 3_000;
    for (name, text) in MODELS {
        let model = parsed(text);
        for pattern in &model.patterns {
            let table = &model.tables[pattern.table];
            // Few rows a day, so that hours and minutes end within them.
            let data = Data::new(table, ROWS as f64 * 8.0 / table.rows_per_day, 7);
            for key in &table.keys {
                let plan = Plan::of(key, pattern, data.ms_per_row());
                for index in 0..5 {
                    let question = data.question(pattern, index, ROWS);
                    let ranges = plan.ranges(&data, key, &question);
                    for row in 0..ROWS {
                        let row_key = data.key(key, row);
                        let inside = ranges.iter().filter(|range| range.contains(&row_key)).count();
                        let found = inside == 1 && plan.keeps(&data, key, &question, &row_key);
                        let expected = data.answers(table, pattern, &question, row);
                        assert!(
                            inside <= 1,
                            "{name}, {}: row {row} is read {inside} times",
                            pattern.name
                        );
                        assert_eq!(
                            found, expected,
                            "{name}, {}, {}: row {row}",
                            pattern.name, key.text
                        );
                    }
                }
            }
        }
    }
}

/// Goal: a scan that ends after the newest rows meets these first.
#[test]
fn the_newest_rows_are_where_the_plan_says() {
    const ROWS: u64 = 2_000;
    let mut limited = 0;
    for (name, text) in MODELS {
        let model = parsed(text);
        for pattern in &model.patterns {
            let table = &model.tables[pattern.table];
            let data = Data::new(table, 1.0, 7);
            for key in &table.keys {
                let plan = Plan::of(key, pattern, data.ms_per_row());
                let (Some(newest), Some(latest)) = (plan.newest, plan.latest) else {
                    continue;
                };
                limited += 1;
                let question = data.question(pattern, 0, ROWS);
                let mut answer: Vec<u64> = Vec::new();
                for range in plan.ranges(&data, key, &question) {
                    let (start, stop) = start_and_stop(&range, plan.newest, key.layout.bytes());
                    let in_scan = |row_key: &[u8]| match newest {
                        Newest::First => range.contains(row_key),
                        Newest::Last => row_key <= &start[..] && row_key > &stop[..],
                    };
                    let mut rows: Vec<(Vec<u8>, u64)> =
                        (0..ROWS).map(|row| (data.key(key, row), row)).collect();
                    rows.retain(|(row_key, _)| in_scan(row_key));
                    rows.sort();
                    if newest == Newest::Last {
                        rows.reverse();
                    }
                    answer.extend(rows.iter().take(latest as usize).map(|(_, row)| row));
                }
                answer.sort_unstable_by(|a, b| b.cmp(a));
                answer.truncate(latest as usize);
                let expected = (0..ROWS)
                    .rev()
                    .filter(|row| data.answers(table, pattern, &question, *row));
                let expected: Vec<u64> = expected.take(latest as usize).collect();
                assert_eq!(answer, expected, "{name}, {}, {}", pattern.name, key.text);
            }
        }
    }
    assert!(limited >= 4, "only {limited} plans end early");
}

#[test]
fn minutes_in_front_look_even_and_are_not() {
    let model = parsed(MODELS[0].1);
    let table = &model.tables[0];
    let data = Data::new(table, 1.0, 1);
    let share = |layout: usize| {
        let key = &table.keys[layout];
        let mut starts = split::points(&data, key, table, 100_000);
        assert!(starts.len() > 20, "{} points", starts.len());
        starts.push(Vec::new());
        let regions = RegionMap::new(starts);
        let parts: Vec<usize> = (0..regions.starts().len()).collect();
        split::busiest(&data, key, 100_000, &regions, &parts).share
    };
    assert!(share(0) > 0.9, "{}", share(0));
    assert!(share(1) < 0.1, "{}", share(1));
}

#[test]
fn errors_name_file_line_field_and_allowed_values() {
    let good = MODELS[1].1;
    let line = |part: &str| good[..good.find(part).unwrap()].matches('\n').count() + 1;
    for (part, wrong, at, words) in [
        (
            "skew = \"zipfian\"",
            "skew = \"zipf\"",
            "zipfian",
            "allowed are uniform, zipfian, hotspot, sequential",
        ),
        (
            "kind = \"salt\"",
            "kind = \"pepper\"",
            "kind = \"salt\"",
            "allowed are time, id, sequence, salt",
        ),
        (
            "buckets = 8",
            "buckets = 300",
            "buckets = 8",
            "fields.bucket.buckets = 300: it may be from 1 to 256",
        ),
        (
            "rate = 24",
            "rate = 0",
            "rate = 24",
            "patterns.rate = 0: it must be above 0",
        ),
        (
            "rate = 24",
            "rats = 24",
            "rate = 24",
            "unknown field `rats`, expected one of `name`",
        ),
        ("time:8, post:8", "time:4, post:8", "keys = {", "time goes up to"),
        (
            "time:8, post:8",
            "tim:8, post:8",
            "keys = {",
            "[fields] has no tim; it has bucket, person, post, time",
        ),
        (
            "time:8, post:8",
            "time:8 post:8",
            "keys = {",
            "is not name:bytes, such as user:8",
        ),
        (
            "bucket:1, person:8",
            "bucket:1",
            "keys = {",
            "bucket is a salt of person, which this key must have",
        ),
        (
            "of = [\"person\"]\nlatest",
            "of = [\"time\"]\nlatest",
            "of = [\"person\"]\nlatest",
            "must be an id or a sequence",
        ),
        (
            "span = \"minute\"",
            "span = \"week\"",
            "span = \"minute\"",
            "allowed are millisecond, second, minute, hour, day",
        ),
        ("SNAPPY", "FAST", "SNAPPY", "allowed are"),
        (
            "kind = \"write\"",
            "kind = \"write\"\nlatest = 3",
            "kind = \"write\"",
            "patterns.latest: kind = \"write\" does not have it",
        ),
        (
            "layouts = [",
            "layouts = [\"x\", ",
            "keys = {",
            "tables.keys.x is missing",
        ),
        (
            "\"by_time\", ",
            "\"By time\", ",
            "layouts = [",
            "must begin with a small letter",
        ),
        (
            "regions = 16",
            "regions = 5_000",
            "regions = 16",
            "tables.regions = 5000: it may be from 1 to 1000",
        ),
    ] {
        assert!(good.contains(part), "{part}");
        let refusal = refused(&good.replacen(part, wrong, 1));
        assert!(refusal.contains(words), "{wrong}: {refusal}");
        let begin = format!("own.toml:{}: ", line(at));
        // A line that was added moves those behind it by one.
        let added = format!("own.toml:{}: ", line(at) + 1);
        assert!(
            refusal.starts_with(&begin) || refusal.starts_with(&added),
            "{wrong}: {refusal}, not {begin}"
        );
    }
    assert!(
        refused("title = ").starts_with("own.toml:1: "),
        "{}",
        refused("title = ")
    );
}

/// Goal: code is written for every model and layout, with the names of its patterns.
#[test]
fn code_has_every_pattern() {
    for (name, text) in MODELS {
        let model = parsed(text);
        for (index, layout_name) in model.layouts.iter().enumerate() {
            let made = model.tables.iter().map(|table| {
                let data = Arc::new(Data::new(table, 1.0, 1));
                Made {
                    full_name: format!("model_{}_{layout_name}", table.name),
                    splits: split::points(&data, &table.keys[index], table, 500),
                    data,
                    rows: 500,
                }
            });
            let made: Vec<Made> = made.collect();
            let layout = Layout {
                model: &model,
                name: layout_name,
                index,
                tables: &made,
            };
            let (shell, python) = (code::shell::script(layout), code::happybase::module(layout));
            let java = code::java::class(layout);
            assert_eq!(
                shell.matches("\ncreate '").count(),
                model.tables.len(),
                "{name}: {shell}"
            );
            for pattern in &model.patterns {
                let function = pattern.function();
                assert!(
                    python.contains(&format!("\ndef {function}(connection")),
                    "{name}: {python}"
                );
                assert!(
                    java.contains(&format!("{}:", pattern.name))
                        || java.contains(&format!("{}.", pattern.name)),
                    "{java}"
                );
                if !matches!(pattern.kind, PatternKind::Write { .. }) {
                    assert!(shell.contains(&format!("# {}", pattern.name)), "{name}: {shell}");
                }
            }
            assert_eq!(java.matches('{').count(), java.matches('}').count(), "{java}");
        }
    }
}

/// A result without a single operation; `not_begun` were due.
fn judged_without_operations(not_begun: u64, collisions: (u64, u64)) -> ResultReport {
    let model = parsed(MODELS[1].1);
    let mut measured = Measured::new(vec!["question".to_owned()]);
    measured.not_begun = not_begun;
    let figures = Figures {
        measured,
        scans: 0,
        rows_read: 0,
        rows_returned: 0,
        bytes_read: 0,
        difference: None,
        checked: 0,
    };
    let judged = Judged {
        pattern: &model.patterns[0],
        rate: Some(0.001),
        seconds: 2,
        layout: "by_time",
        plan: String::new(),
        busiest: None,
        is_cluster: false,
        collisions,
    };
    judged.judge(Some(&figures), 1)
}

/// Goal: a pattern without an operation is neither said to fit nor given a figure.
#[test]
fn a_pattern_without_operations_is_not_measured() {
    let result = judged_without_operations(0, (0, 10));
    assert_eq!(result.verdict, Verdict::NotMeasured);
    assert_eq!(
        result.reasons,
        ["no operation fell due in 2 s: raise --scale or --seconds"]
    );
    assert!(result.per_second.is_none() && result.measured.is_none());
    assert!(result.p50_ms().is_none() && result.p99_ms().is_none());
    let slow = judged_without_operations(3, (0, 10));
    assert_eq!(slow.verdict, Verdict::DoesNotFit, "operations were due");
    assert_eq!((slow.per_second, slow.p50_ms()), (Some(0.0), None));
    let colliding = judged_without_operations(0, (1, 10));
    assert_eq!(colliding.verdict, Verdict::DoesNotFit, "that is known");
}

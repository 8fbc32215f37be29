//! How a layout answers a pattern: the scans, and what is left to the client.
//!
//! The fields of the key are taken from the left, as long as the question says something about them:
//!
//! 1. A known value is appended to every prefix.
//! 2. A salt multiplies the prefixes by its buckets, unless all fields that it hashes are known: then its
//!    bucket is.
//! 3. A time that does not sort multiplies them by the values in the span asked for.
//! 4. A time that sorts ends the prefixes: one scan each, from the first to the last time asked for.
//! 5. At the first field that the question says nothing about they end, too. The conditions on the fields
//!    behind it become a filter: rows are read and thrown away.
//!
//! The newest rows come first if what follows the prefix is the time, forwards or backwards: then each scan
//! ends after as many rows as were asked for. Otherwise all rows are read.

#![expect(clippy::format_push_string, reason = "a few texts for people")]

use basalt_client::after_prefix;
use basalt_client::keys::RowRange;

use super::data::{Data, Question};
use super::file::{FieldKind, Key, Pattern, PatternKind, Segment, bucket};
use super::time::TimeForm;

/// A step from the left of the key; the number is the place of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The value that the question has.
    Known(usize),
    /// The bucket of known values.
    Bucket(usize),
    /// Every bucket.
    Buckets(usize),
    /// Every value of a time that does not sort.
    Each(usize),
    /// From the first to the last value of a time.
    Between(usize),
}

/// A condition on a field, on rows that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// It has the value that the question has.
    Is(usize),
    /// It is a time of the span.
    Within(usize),
}

/// Where the newest rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newest {
    /// First in a scan.
    First,
    /// Last: first in a reversed scan.
    Last,
}

/// The plan of a pattern in a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) filter: Vec<Condition>,
    /// Set if scans end after the newest rows.
    pub(super) newest: Option<Newest>,
    pub(super) latest: Option<u32>,
}

impl Plan {
    /// The plan of a read. `ms_per_row` is the time between rows.
    pub(super) fn of(key: &Key, pattern: &Pattern, ms_per_row: f64) -> Plan {
        match &pattern.kind {
            PatternKind::Read { of, span_ms, latest } => read(key, of, *span_ms, *latest, ms_per_row),
            PatternKind::Get | PatternKind::Write { .. } => Plan {
                steps: (0..key.segments.len())
                    .map(|place| step_of_get(key, place))
                    .collect(),
                filter: Vec::new(),
                newest: None,
                latest: None,
            },
        }
    }

    /// Number of scans for a span of this length.
    pub(super) fn scans(&self, key: &Key, span_ms: u64) -> u64 {
        let times = |step: &Step| match step {
            Step::Buckets(place) => match key.segments[*place].field.kind {
                FieldKind::Salt { buckets, .. } => u64::from(buckets),
                _ => 1,
            },
            Step::Each(place) => {
                let unit = key.segments[*place].time().map_or(1, TimeForm::span_ms);
                span_ms.div_ceil(unit)
            }
            _ => 1,
        };
        self.steps.iter().map(times).product()
    }

    /// The scans of a question.
    pub(super) fn ranges(&self, data: &Data, key: &Key, question: &Question) -> Vec<RowRange> {
        let known =
            |segment: &Segment| segment.encode(data.value(&segment.name, &segment.field.kind, question.row));
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        for step in &self.steps {
            let ends: Vec<Vec<u8>> = match *step {
                Step::Known(place) => vec![time_or(&key.segments[place], question, known)],
                Step::Bucket(place) => vec![bucket_of(key, place, known)],
                Step::Buckets(place) => match key.segments[place].field.kind {
                    FieldKind::Salt { buckets, .. } => (0..u64::from(buckets))
                        .map(|number| key.segments[place].encode(number))
                        .collect(),
                    _ => Vec::new(),
                },
                Step::Each(place) => each(&key.segments[place], question),
                Step::Between(place) => return between(&prefixes, &key.segments[place], question),
            };
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| ends.iter().map(move |end| [&prefix[..], end].concat()))
                .collect();
        }
        prefixes.into_iter().map(RowRange::prefix).collect()
    }

    /// Whether a row that was read is in the answer.
    pub(super) fn keeps(&self, data: &Data, key: &Key, question: &Question, row_key: &[u8]) -> bool {
        self.filter.iter().all(|condition| {
            let (Condition::Is(place) | Condition::Within(place)) = *condition;
            let segment = &key.segments[place];
            let end = segment
                .bytes()
                .map_or(row_key.len(), |bytes| segment.offset + bytes);
            let Some(bytes) = row_key.get(segment.offset..end) else {
                return false;
            };
            match condition {
                Condition::Is(_) => {
                    let value = data.value(&segment.name, &segment.field.kind, question.row);
                    bytes == segment.encode(value)
                }
                Condition::Within(_) if segment.time().is_some_and(TimeForm::is_sorted) => {
                    let (low, high) = ends(segment, question);
                    (&low[..]..=&high[..]).contains(&bytes)
                }
                Condition::Within(_) => each(segment, question).iter().any(|value| value == bytes),
            }
        })
    }

    /// The plan in words.
    pub(super) fn words(&self, key: &Key, span_ms: u64) -> String {
        let scans = self.scans(key, span_ms);
        let mut words = match (scans, self.steps.is_empty()) {
            (_, true) => "a scan of the whole table".to_owned(),
            (1, false) => "one scan".to_owned(),
            (scans, false) => format!("{scans} scans"),
        };
        let names = |places: Vec<usize>| -> String {
            let names: Vec<&str> = places
                .iter()
                .map(|place| key.segments[*place].in_key.name())
                .collect();
            names.join(", ")
        };
        let fixed: Vec<usize> = self
            .steps
            .iter()
            .map(|step| match step {
                Step::Known(place)
                | Step::Bucket(place)
                | Step::Buckets(place)
                | Step::Each(place)
                | Step::Between(place) => *place,
            })
            .collect();
        if !fixed.is_empty() {
            words += &format!(" by {}", names(fixed));
        }
        let each = if scans == 1 { "" } else { "each " };
        match (self.newest, self.latest) {
            (Some(Newest::First), Some(latest)) => words += &format!(", {each}ends after {latest} rows"),
            (Some(Newest::Last), Some(latest)) => {
                words += &format!(", backwards, {each}ends after {latest} rows");
            }
            (None, Some(latest)) => words += &format!(", read to the end for the newest {latest}"),
            _ => {}
        }
        if !self.filter.is_empty() {
            let places = self.filter.iter().map(|condition| match condition {
                Condition::Is(place) | Condition::Within(place) => *place,
            });
            words += &format!(
                "; rows of another {} are read and thrown away",
                names(places.collect())
            );
        }
        words
    }
}

fn step_of_get(key: &Key, place: usize) -> Step {
    match key.segments[place].field.kind {
        FieldKind::Salt { .. } => Step::Bucket(place),
        _ => Step::Known(place),
    }
}

fn read(key: &Key, of: &[String], span_ms: Option<u64>, latest: Option<u32>, ms_per_row: f64) -> Plan {
    let mut steps = Vec::new();
    let mut filter = Vec::new();
    let mut is_open = true;
    // Whether a time of the key has said exactly which rows are of the span.
    let mut is_told = span_ms.is_none();
    let mut after = key.segments.len();
    for (place, segment) in key.segments.iter().enumerate() {
        let step = match &segment.field.kind {
            FieldKind::Salt { of: hashed, .. } if hashed.iter().all(|name| of.contains(name)) => {
                Some(Step::Bucket(place))
            }
            FieldKind::Salt { .. } => Some(Step::Buckets(place)),
            FieldKind::Id { .. } | FieldKind::Sequence => {
                of.contains(&segment.name).then_some(Step::Known(place))
            }
            FieldKind::Time(form) => match span_ms {
                Some(span) if !is_told && form.span_ms() > span => Some(Step::Known(place)),
                Some(_) if !is_told && form.is_sorted() => Some(Step::Between(place)),
                Some(_) if !is_told => Some(Step::Each(place)),
                _ => None,
            },
        };
        if is_open {
            if let Some(step) = step {
                is_told |= matches!(step, Step::Between(_) | Step::Each(_));
                is_open = !matches!(step, Step::Between(_));
                steps.push(step);
                after = place + 1;
                continue;
            }
            is_open = false;
            after = place;
        }
        match step {
            Some(Step::Known(place)) => filter.push(Condition::Is(place)),
            Some(Step::Between(place) | Step::Each(place)) => {
                is_told = true;
                filter.push(Condition::Within(place));
            }
            _ => {}
        }
    }
    let is_ranged = matches!(steps.last(), Some(Step::Between(_)));
    let newest = match latest {
        Some(_) if filter.is_empty() => {
            let from = if is_ranged { after - 1 } else { after };
            newest(&key.segments[from..], key.layout.bytes().is_some(), ms_per_row)
        }
        _ => None,
    };
    Plan {
        steps,
        filter,
        newest,
        latest,
    }
}

/// Where the newest rows are, if the rest of the key sorts by time: a time as exact as rows are apart, or one
/// followed by the row's number in the same direction.
fn newest(rest: &[Segment], is_fixed: bool, ms_per_row: f64) -> Option<Newest> {
    let first = rest.first()?;
    let is_reversed = first.in_key.is_reversed();
    let is_exact = match &first.field.kind {
        FieldKind::Sequence => true,
        FieldKind::Time(form) if form.is_sorted() => {
            let next = rest.get(1);
            form.span_ms() as f64 <= ms_per_row
                || next.is_some_and(|next| {
                    next.field.kind == FieldKind::Sequence && next.in_key.is_reversed() == is_reversed
                })
        }
        _ => false,
    };
    match (is_exact, is_reversed) {
        (false, _) => None,
        (true, true) => Some(Newest::First),
        // A reversed scan begins at the greatest key, whose length must be known.
        (true, false) => is_fixed.then_some(Newest::Last),
    }
}

/// The time of the span for a time, the question's value for another field.
fn time_or(segment: &Segment, question: &Question, known: impl Fn(&Segment) -> Vec<u8>) -> Vec<u8> {
    match segment.time() {
        Some(_) => segment.encode(question.span.start),
        None => known(segment),
    }
}

fn bucket_of(key: &Key, place: usize, known: impl Fn(&Segment) -> Vec<u8>) -> Vec<u8> {
    let FieldKind::Salt { buckets, of } = &key.segments[place].field.kind else {
        return Vec::new();
    };
    let hashed: Vec<u8> = key
        .places(of)
        .flat_map(|place| known(&key.segments[place]))
        .collect();
    key.segments[place].encode(bucket(*buckets, &hashed))
}

/// Every value of a time within the span.
fn each(segment: &Segment, question: &Question) -> Vec<Vec<u8>> {
    let unit = segment.time().map_or(1, TimeForm::span_ms);
    let times = (question.span.start..question.span.end).step_by(usize::try_from(unit).unwrap_or(usize::MAX));
    times.map(|time| segment.encode(time)).collect()
}

/// The lowest and the highest bytes of the span.
fn ends(segment: &Segment, question: &Question) -> (Vec<u8>, Vec<u8>) {
    let (first, last) = (
        segment.encode(question.span.start),
        segment.encode(question.span.end - 1),
    );
    if segment.in_key.is_reversed() {
        (last, first)
    } else {
        (first, last)
    }
}

fn between(prefixes: &[Vec<u8>], segment: &Segment, question: &Question) -> Vec<RowRange> {
    let (low, high) = ends(segment, question);
    let range = |prefix: &Vec<u8>| RowRange {
        start: [&prefix[..], &low].concat(),
        stop: after_prefix(&[&prefix[..], &high].concat()),
    };
    prefixes.iter().map(range).collect()
}

/// Start and stop of a scan of a range: backwards, from the greatest key within it, if the newest rows are
/// last.
pub(super) fn start_and_stop(
    range: &RowRange,
    newest: Option<Newest>,
    key_bytes: Option<usize>,
) -> (Vec<u8>, Vec<u8>) {
    let (Some(Newest::Last), Some(bytes)) = (newest, key_bytes) else {
        return (range.start.clone(), range.stop.clone());
    };
    // `after_prefix` has cut bytes that were 0xff and added one to the last.
    let mut greatest = less_one(&range.stop);
    greatest.resize(bytes.max(greatest.len()), 0xff);
    // A reversed scan leaves its stop out. Keys that are longer than a prefix are above it anyway.
    let stop = if range.start.len() < bytes {
        range.start.clone()
    } else {
        less_one(&range.start)
    };
    (greatest, stop)
}

/// The bytes as a number, less one; empty bytes stay empty.
fn less_one(bytes: &[u8]) -> Vec<u8> {
    let mut less = bytes.to_vec();
    for byte in less.iter_mut().rev() {
        let (value, is_borrowed) = byte.overflowing_sub(1);
        *byte = value;
        if !is_borrowed {
            break;
        }
    }
    less
}

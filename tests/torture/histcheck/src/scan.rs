//! Scans of one moment.
//!
//! Every row that is scanned is a register: a write sets all of its columns, each time to other
//! values, or removes the row. The values that a scan shows of a row then identify the write, and
//! the write bounds the time at which the row can have had them: from its invocation until a write
//! that was invoked after its return has returned itself. A scan is right if
//!
//! 1. its rows are within its range, in order, and none comes twice;
//! 2. some moment between the beginning of its opening and the end of its first fetch is a possible one for
//!    every row, also for those that it does not show. (Later fetches show the same moment.)
//!
//! A scan that was interrupted is judged up to its last row.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use crate::Violation;
use crate::history::{Change, Columns, History, Op, Outcome, Rows, Time};
use crate::notation;

const NAME: &str = "scan";

/// Parameters and results of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// When opening it began.
    pub opened: Time,
    /// When its first fetch had returned.
    pub fetched: Time,
    /// First row of the range, inclusive; empty: from the first row.
    pub start: Bytes,
    /// End of the range, exclusive; empty: to the last row.
    pub stop: Bytes,
    /// Whether it goes from high to low. The range is the same.
    pub reversed: bool,
    /// Whether it came to its end.
    pub complete: bool,
    /// The rows in the order of their arrival; a row in several pieces is one.
    pub rows: Vec<(Bytes, Columns)>,
}

/// A write of a whole row.
struct Write {
    /// State of the row after the write, empty for a removal.
    image: Columns,
    invoked: Time,
    /// `None` for the initial values.
    returned: Option<Time>,
    done: bool,
}

/// One row's writes, for questions about moments.
struct Register {
    /// By image: its writes.
    images: HashMap<Columns, Vec<usize>>,
    writes: Vec<Write>,
    /// Acknowledged writes by invocation, each with the earliest return of it and of those after it.
    superseding: Vec<(Time, Time)>,
}

/// The times of each state of the rows of a history.
pub struct Moments {
    rows: BTreeMap<Bytes, Register>,
}

impl Moments {
    /// Takes the writes of a history that began with these rows. A row with a change that is no register's is
    /// an error in the use.
    pub fn new(history: &History, initial: &Rows) -> Result<Self, Violation> {
        let mut writes: BTreeMap<Bytes, Vec<Write>> = BTreeMap::new();
        let first = |image: Columns| Write {
            image,
            invoked: 0,
            returned: None,
            done: true,
        };
        for (row, columns) in initial {
            writes.insert(row.clone(), vec![first(columns.clone())]);
        }
        for call in &history.calls {
            let Op::Write(changes) = &call.op else { continue };
            if call.outcome == Outcome::Refused {
                continue;
            }
            let image = image(changes).ok_or_else(|| {
                Violation::new(NAME, &call.row, "a write of a part of the row: no register")
            })?;
            let row = writes
                .entry(call.row.clone())
                .or_insert_with(|| vec![first(Columns::new())]);
            row.push(Write {
                image,
                invoked: call.invoked,
                returned: Some(call.returned),
                done: call.is_done(),
            });
        }
        let rows = writes
            .into_iter()
            .map(|(row, writes)| (row, Register::new(writes)))
            .collect();
        Ok(Self { rows })
    }

    /// Judges a scan.
    pub fn check(&self, scan: &Scan) -> Result<(), Violation> {
        check_keys(scan)?;
        let shown: BTreeMap<&Bytes, &Columns> =
            scan.rows.iter().map(|(row, columns)| (row, columns)).collect();
        if let Some(row) = shown.keys().find(|row| !self.rows.contains_key(**row)) {
            return Err(Violation::new(NAME, row, "a row that no call wrote"));
        }
        let nothing = Columns::new();
        let mut moments = vec![(scan.opened, scan.fetched)];
        let mut last: Option<(&Bytes, Vec<(Time, Time)>)> = None;
        for (row, register) in self.rows.iter().filter(|(row, _)| scan.covers(row)) {
            let image = shown.get(row).copied().unwrap_or(&nothing);
            let Some(possible) = register.moments(image) else {
                let what = format!("shows [{}], which no call wrote", notation::print_columns(image));
                return Err(Violation::new(NAME, row, what));
            };
            let both = intersect(&moments, &possible);
            if both.is_empty() {
                let because = last.map_or(String::new(), |(row, possible)| {
                    format!(" (row {} is of {possible:?})", notation::token(row))
                });
                let what = format!(
                    "shows [{}], possible in {possible:?}, but the scan shows a moment in {moments:?}{because}",
                    notation::print_columns(image)
                );
                return Err(Violation::new(NAME, row, what));
            }
            if both != moments {
                last = Some((row, possible));
            }
            moments = both;
        }
        Ok(())
    }
}

impl Scan {
    /// Whether the row is in the range, and was come by.
    fn covers(&self, row: &Bytes) -> bool {
        let passed = self.complete
            || self
                .rows
                .last()
                .is_some_and(|(last, _)| if self.reversed { row >= last } else { row <= last });
        passed && self.has_in_range(row)
    }

    fn has_in_range(&self, row: &Bytes) -> bool {
        *row >= self.start && (self.stop.is_empty() || *row < self.stop)
    }
}

fn check_keys(scan: &Scan) -> Result<(), Violation> {
    for (row, columns) in &scan.rows {
        if !scan.has_in_range(row) {
            return Err(Violation::new(NAME, row, "is not in the range of the scan"));
        }
        if columns.is_empty() {
            return Err(Violation::new(NAME, row, "is shown without columns"));
        }
    }
    for pair in scan.rows.windows(2) {
        let (before, after) = if scan.reversed {
            (&pair[1].0, &pair[0].0)
        } else {
            (&pair[0].0, &pair[1].0)
        };
        if before >= after {
            let what = format!("comes after {}", notation::token(&pair[0].0));
            return Err(Violation::new(NAME, &pair[1].0, what));
        }
    }
    Ok(())
}

/// State of a row after the changes, if that does not depend on its earlier state.
fn image(changes: &[Change]) -> Option<Columns> {
    match changes {
        [Change::DeleteRow] => Some(Columns::new()),
        _ => changes
            .iter()
            .map(|change| match change {
                Change::Put(column, value) => Some((column.clone(), value.clone())),
                _ => None,
            })
            .collect(),
    }
}

impl Register {
    fn new(writes: Vec<Write>) -> Self {
        let mut images: HashMap<Columns, Vec<usize>> = HashMap::new();
        for (index, write) in writes.iter().enumerate() {
            images.entry(write.image.clone()).or_default().push(index);
        }
        let done = writes.iter().filter(|write| write.done);
        let times = done.filter_map(|write| Some((write.invoked, write.returned?)));
        let mut superseding: Vec<_> = times.collect();
        superseding.sort_unstable();
        let mut earliest = Time::MAX;
        for (_, returned) in superseding.iter_mut().rev() {
            earliest = earliest.min(*returned);
            *returned = earliest;
        }
        Self {
            images,
            writes,
            superseding,
        }
    }

    /// When the row can have looked so, both ends included; `None` if never.
    fn moments(&self, image: &Columns) -> Option<Vec<(Time, Time)>> {
        let writes = self.images.get(image)?.iter().map(|index| &self.writes[*index]);
        let mut moments: Vec<_> = writes
            .map(|write| {
                let next = self.superseding.partition_point(|(invoked, _)| {
                    write.returned.is_some_and(|returned| *invoked <= returned)
                });
                let end = self
                    .superseding
                    .get(next)
                    .map_or(Time::MAX, |(_, returned)| *returned);
                (write.invoked, end)
            })
            .collect();
        moments.sort_unstable();
        Some(moments)
    }
}

/// The times in both. The result is sorted and without overlaps if the first is.
fn intersect(one: &[(Time, Time)], other: &[(Time, Time)]) -> Vec<(Time, Time)> {
    let mut both: Vec<(Time, Time)> = Vec::new();
    for (begin, end) in one {
        for (other_begin, other_end) in other {
            let (begin, end) = (*begin.max(other_begin), *end.min(other_end));
            if begin > end {
                continue;
            }
            match both.last_mut() {
                Some(last) if last.1 >= begin => last.1 = last.1.max(end),
                _ => both.push((begin, end)),
            }
        }
    }
    both
}

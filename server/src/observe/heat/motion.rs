//! How the writes of a table move through its keys over time: ascending or descending keys, at one place or
//! behind each of several salts.
//!
//! A pure function of a picture whose rows are ranges of keys ([`super::Axis::Keys`]). In each column that
//! has load, the middle eight tenths of the load lie between two rows. Keys ascend if these lie behind those
//! of the column before, nearly always, and over at least half of the picture: the moving diagonal of the
//! map.

use super::Picture;

/// Least number of columns with load.
const COLUMNS_MIN: usize = 4;
/// Least number of rows of a range that is looked at.
const ROWS_MIN: usize = 4;
/// Part of the steps between columns that must go forward.
const STEPS_SHARE: f64 = 0.8;
/// Part of the rows that the load must cross.
const DISTANCE_SHARE: f64 = 0.5;
/// Part of the load that must be behind salts that move.
const SALTED_SHARE: f64 = 0.8;

/// Direction of the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// Each write goes behind those before it: counters, times.
    Ascending,
    /// Each write goes before those before it: reversed times.
    Descending,
    /// As many ranges with a first byte of their own, in each of which keys ascend or descend.
    Salted(usize),
}

/// The motion of a picture's load, and the part of the load that moves.
pub(crate) fn motion(picture: &Picture) -> Option<(Motion, f64)> {
    let rows = 0..picture.starts.len();
    if let Some(direction) = direction(picture, rows) {
        return Some((direction, 1.0));
    }
    let all: f64 = picture.totals.iter().sum();
    let salts = salts(picture);
    let moving: Vec<f64> = salts
        .iter()
        .filter(|rows| direction(picture, (*rows).clone()).is_some())
        .map(|rows| picture.totals[rows.clone()].iter().sum())
        .collect();
    let share = moving.iter().sum::<f64>() / all.max(f64::MIN_POSITIVE);
    let is_salted = moving.len() >= 2 && share >= SALTED_SHARE;
    is_salted.then_some((Motion::Salted(moving.len()), share))
}

/// Runs of rows whose keys begin with the same byte.
fn salts(picture: &Picture) -> Vec<std::ops::Range<usize>> {
    let first_byte = |row: usize| picture.starts[row].first();
    let mut salts: Vec<std::ops::Range<usize>> = Vec::new();
    for row in 0..picture.starts.len() {
        match salts.last_mut() {
            // The first row begins at the begin of the table, without a byte.
            Some(last) if first_byte(last.end - 1).is_none_or(|byte| Some(byte) == first_byte(row)) => {
                last.end = row + 1;
            }
            _ => salts.push(row..row + 1),
        }
    }
    salts
}

fn direction(picture: &Picture, rows: std::ops::Range<usize>) -> Option<Motion> {
    if rows.len() < ROWS_MIN {
        return None;
    }
    let bands = bands(picture, rows.clone());
    if bands.len() < COLUMNS_MIN {
        return None;
    }
    // Columns share the rows at their ends.
    let slack = 1 + rows.len() / 20;
    let part = |goes: &dyn Fn(&Band, &Band) -> bool| {
        let steps = bands.windows(2).filter(|pair| goes(&pair[0], &pair[1])).count();
        steps as f64 / (bands.len() - 1) as f64
    };
    let far = rows.len() as f64 * DISTANCE_SHARE;
    let (first, last) = (bands.first()?, bands.last()?);
    if part(&|before, after| after.low + slack > before.high && after.high >= before.high) >= STEPS_SHARE
        && last.low as f64 - first.low as f64 >= far
    {
        return Some(Motion::Ascending);
    }
    if part(&|before, after| after.high < before.low + slack && after.low <= before.low) >= STEPS_SHARE
        && first.high as f64 - last.high as f64 >= far
    {
        return Some(Motion::Descending);
    }
    None
}

/// The rows between which the middle eight tenths of a column's load lie.
#[derive(Debug)]
struct Band {
    low: usize,
    high: usize,
}

fn bands(picture: &Picture, rows: std::ops::Range<usize>) -> Vec<Band> {
    let height = picture.starts.len();
    let column = |number: usize| {
        let rates = &picture.rates[number * height..(number + 1) * height][rows.clone()];
        let all: f64 = rates.iter().map(|rate| f64::from(*rate)).sum();
        if all <= 0.0 {
            return None;
        }
        let row_at = |part: f64| {
            let mut before = 0.0;
            let at = rates.iter().position(|rate| {
                before += f64::from(*rate);
                before >= all * part
            });
            at.unwrap_or(rates.len() - 1)
        };
        Some(Band {
            low: row_at(0.1),
            high: row_at(0.9),
        })
    };
    (0..picture.columns).filter_map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of rows with these keys, in which cell (column, row) has the rate of `rate`.
    fn picture(starts: &[String], columns: usize, rate: impl Fn(usize, usize) -> f32) -> Picture {
        let rates: Vec<f32> = (0..columns)
            .flat_map(|column| (0..starts.len()).map(move |row| (column, row)))
            .map(|(column, row)| rate(column, row))
            .collect();
        let total = |row: usize| {
            let of_row = rates.iter().skip(row).step_by(starts.len());
            of_row.map(|rate| f64::from(*rate)).sum()
        };
        Picture {
            from_ms: 0,
            step_ms: 10_000,
            columns,
            starts: starts.iter().map(|start| start.as_bytes().to_vec()).collect(),
            totals: (0..starts.len()).map(total).collect(),
            rates,
            load_seconds: 1.0,
        }
    }

    fn keys(count: usize) -> Vec<String> {
        (0..count)
            .map(|row| {
                if row == 0 {
                    String::new()
                } else {
                    format!("k{row:03}")
                }
            })
            .collect()
    }

    /// Goal: the patterns that people call sequential and salted are told from even, fixed and random loads.
    #[test]
    fn patterns_are_told_apart() {
        let diagonal = |column: usize, row: usize| if row / 4 == column { 5.0 } else { 0.0 };
        let rows = keys(40);
        assert_eq!(
            motion(&picture(&rows, 10, diagonal)),
            Some((Motion::Ascending, 1.0))
        );
        let back = |column: usize, row: usize| diagonal(9 - column, row);
        assert_eq!(motion(&picture(&rows, 10, back)), Some((Motion::Descending, 1.0)));
        // With some other traffic, and pauses without any.
        let noisy = |column: usize, row: usize| match column {
            3 | 7 => 0.0,
            _ => diagonal(column, row) + 0.02,
        };
        assert_eq!(motion(&picture(&rows, 10, noisy)), Some((Motion::Ascending, 1.0)));
        assert_eq!(motion(&picture(&rows, 10, |_, _| 1.0)), None, "even");
        let fixed = |_: usize, row: usize| if row == 7 { 100.0 } else { 0.1 };
        assert_eq!(motion(&picture(&rows, 10, fixed)), None, "a hot row");
        let scattered = |column: usize, row: usize| ((column * 7919 + row * 104_729) % 13) as f32;
        assert_eq!(motion(&picture(&rows, 10, scattered)), None);
        assert_eq!(motion(&picture(&rows, 3, diagonal)), None, "too short a time");
        assert_eq!(motion(&picture(&[], 10, diagonal)), None);
        assert_eq!(motion(&picture(&keys(1), 10, |_, _| 1.0)), None);
    }

    #[test]
    fn salts_are_counted() {
        let salted: Vec<String> = (0..4_usize)
            .flat_map(|salt| (0..10).map(move |row| format!("{salt}-{row}")))
            .enumerate()
            .map(|(index, key)| if index == 0 { String::new() } else { key })
            .collect();
        let stripes = |column: usize, row: usize| if row % 10 == column { 3.0 } else { 0.0 };
        let (found, share) = motion(&picture(&salted, 10, stripes)).expect("a pattern");
        assert_eq!(found, Motion::Salted(4));
        assert!(share > 0.99);
        // One salt alone moves, with a fifth of the load: no pattern of the table.
        let one = |column: usize, row: usize| if row < 10 { stripes(column, row) } else { 0.5 };
        assert_eq!(motion(&picture(&salted, 10, one)), None);
    }
}

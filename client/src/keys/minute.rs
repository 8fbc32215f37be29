//! A design for events in time: the minute comes first, with its fastest digits in front.
//!
//! ```text
//! mm HH dd MM yyyy, 12 digits in UTC | sequence, 10 digits
//! ```
//!
//! A stream of events moves to another sixtieth of the table every minute and stays there for this minute, so
//! regions take turns and a scan of one minute is one run of rows. A query for a time needs one scan a
//! minute.

use std::ops::{Bound, RangeBounds};

use super::{KeyDesign, KeyError, RowRange, check_regions, check_scans, is_crossed, not_of_design};

/// An event. The order is by minute, then by sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinuteKey {
    /// Minutes since 1970, up to the end of the year 9999.
    pub minute: u32,
    /// Distinguishes events of the same minute.
    pub sequence: u32,
}

/// Minute, hour, day, month, year; then the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteFirst;

const MINUTES_PER_DAY: u32 = 24 * 60;
/// Days from 1970-01-01 to 9999-12-31.
const LAST_DAY: u32 = 2_932_896;
const LAST_MINUTE: u32 = LAST_DAY * MINUTES_PER_DAY + MINUTES_PER_DAY - 1;
const TIME_DIGITS: usize = 12;
const SEQUENCE_DIGITS: usize = 10;

impl KeyDesign for MinuteFirst {
    type Key = MinuteKey;

    fn encode(&self, key: &MinuteKey) -> Result<Vec<u8>, KeyError> {
        Ok(format!("{}{:010}", time_prefix(key.minute)?, key.sequence).into_bytes())
    }

    fn decode(&self, row: &[u8]) -> Result<MinuteKey, KeyError> {
        let wrong = || not_of_design(row, "it is not mmHHddMMyyyy and a sequence of 10 digits");
        if row.len() != TIME_DIGITS + SEQUENCE_DIGITS || !row.iter().all(u8::is_ascii_digit) {
            return Err(wrong());
        }
        let number = |from: usize, digits: usize| {
            let digits = row.iter().skip(from).take(digits);
            digits.fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'))
        };
        let [minute, hour, day, month, year] = [(0, 2), (2, 2), (4, 2), (6, 2), (8, 4)]
            .map(|(from, digits)| u32::try_from(number(from, digits)).expect("at most four digits"));
        let days = days_from_date(year, month, day).ok_or_else(wrong)?;
        let minute = days * MINUTES_PER_DAY + hour * 60 + minute;
        let sequence = u32::try_from(number(TIME_DIGITS, SEQUENCE_DIGITS)).map_err(|_| wrong())?;
        // A minute of 75 or a 30th of February would be another minute's key: only its own form is of the
        // design.
        if !row.starts_with(time_prefix(minute).map_err(|_| wrong())?.as_bytes()) {
            return Err(wrong());
        }
        Ok(MinuteKey { minute, sequence })
    }

    /// Borders of minutes of the hour: at most 60 regions.
    fn split_points(&self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
        check_regions(regions, 60)?;
        Ok((1..regions)
            .map(|index| format!("{:02}", index * 60 / regions).into_bytes())
            .collect())
    }

    fn scan_ranges(&self, keys: impl RangeBounds<MinuteKey>) -> Result<Vec<RowRange>, KeyError> {
        if is_crossed(&keys) {
            return Ok(Vec::new());
        }
        let first = match keys.start_bound() {
            Bound::Included(from) | Bound::Excluded(from) => from.minute,
            Bound::Unbounded => 0,
        };
        let last = match keys.end_bound() {
            Bound::Included(to) | Bound::Excluded(to) => to.minute,
            Bound::Unbounded => LAST_MINUTE,
        };
        check_scans(u128::from(last.saturating_sub(first)) + 1)?;
        let mut ranges = Vec::new();
        for minute in first..=last {
            let mut range = RowRange::prefix(time_prefix(minute)?.into_bytes());
            match keys.start_bound() {
                Bound::Included(from) if from.minute == minute => range.start = self.encode(from)?,
                Bound::Excluded(from) if from.minute == minute => {
                    range.start = super::after_row(self.encode(from)?);
                }
                _ => {}
            }
            match keys.end_bound() {
                Bound::Included(to) if to.minute == minute => range.stop = super::after_row(self.encode(to)?),
                Bound::Excluded(to) if to.minute == minute => range.stop = self.encode(to)?,
                _ => {}
            }
            if !range.is_empty() {
                ranges.push(range);
            }
        }
        Ok(ranges)
    }
}

fn time_prefix(minute: u32) -> Result<String, KeyError> {
    if minute > LAST_MINUTE {
        return Err(KeyError::OutOfRange {
            part: "minute",
            value: minute.into(),
            range: format!("0..={LAST_MINUTE}"),
        });
    }
    let (year, month, day) = date_from_days(minute / MINUTES_PER_DAY);
    let of_day = minute % MINUTES_PER_DAY;
    Ok(format!(
        "{:02}{:02}{day:02}{month:02}{year:04}",
        of_day % 60,
        of_day / 60
    ))
}

/// Days of the 400 years after which the calendar repeats.
const DAYS_PER_ERA: u32 = 146_097;
/// Days from 0000-03-01 to 1970-01-01. Years are counted from March here, so that the leap day is the last.
const DAYS_BEFORE_1970: u32 = 719_468;

/// Year, month and day of a day since 1970-01-01, in the Gregorian calendar.
fn date_from_days(days: u32) -> (u32, u32, u32) {
    let days = days + DAYS_BEFORE_1970;
    let (era, of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u32::from(month <= 2);
    (year, month, day)
}

/// Days from 1970-01-01 to a date; `None` before 1970 and for invalid months and days.
fn days_from_date(year: u32, month: u32, day: u32) -> Option<u32> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1970 {
        return None;
    }
    let year = year - u32::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * DAYS_PER_ERA + of_era).checked_sub(DAYS_BEFORE_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let known = [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (20_778, (2026, 11, 21)),
            (LAST_DAY, (9999, 12, 31)),
        ];
        for (days, date) in known {
            assert_eq!(date_from_days(days), date);
            assert_eq!(days_from_date(date.0, date.1, date.2), Some(days));
        }
    }

    #[test]
    fn the_minute_comes_first() {
        let key = MinuteKey {
            minute: 20_778 * MINUTES_PER_DAY + 10 * 60 + 26,
            sequence: 7,
        };
        assert_eq!(MinuteFirst.encode(&key).unwrap(), b"2610211120260000000007");
    }

    #[test]
    fn times_that_no_clock_shows_are_refused() {
        for row in [
            "7510211120260000000007",
            "2610300220260000000007",
            "2610211120269999999999",
        ] {
            assert!(MinuteFirst.decode(row.as_bytes()).is_err(), "{row}");
        }
    }
}

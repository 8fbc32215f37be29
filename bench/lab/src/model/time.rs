//! Times in row keys: numbers of a unit since 1970, or digits of a calendar such as `mmHHddMMyyyy`, in UTC.

/// Milliseconds of a day.
pub(super) const DAY_MS: u64 = 86_400_000;

/// Units of numbers, by their names in a model.
const UNITS: [(&str, u64); 5] = [
    ("millisecond", 1),
    ("second", 1_000),
    ("minute", 60_000),
    ("hour", 3_600_000),
    ("day", DAY_MS),
];

/// How a time stands in a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// The number of units since 1970.
    Number {
        /// Length of a unit.
        unit_ms: u64,
    },
    /// Digits of its parts.
    Digits(Vec<Part>),
}

/// A part of a time in digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// Parts by their letters, from the longest to the shortest time.
pub(super) const PARTS: [(&str, Part); 6] = [
    ("yyyy", Part::Year),
    ("MM", Part::Month),
    ("dd", Part::Day),
    ("HH", Part::Hour),
    ("mm", Part::Minute),
    ("ss", Part::Second),
];

/// The length of a unit by its name.
pub(super) fn unit_ms(name: &str) -> Result<u64, String> {
    let found = UNITS.iter().find(|(unit, _)| *unit == name);
    found.map(|(_, ms)| *ms).ok_or_else(|| {
        let names = UNITS.map(|(unit, _)| unit).join(", ");
        format!("{name:?} is no unit of time; allowed are {names}")
    })
}

impl TimeForm {
    /// Reads `mmHHddMMyyyy`.
    pub(super) fn digits(format: &str) -> Result<TimeForm, String> {
        let (mut rest, mut parts) = (format, Vec::new());
        while !rest.is_empty() {
            let found = PARTS.iter().find(|(letters, _)| rest.starts_with(letters));
            let Some((letters, part)) = found.filter(|(_, part)| !parts.contains(part)) else {
                let letters = PARTS.map(|(letters, _)| letters).join(", ");
                return Err(format!(
                    "{format:?} is no format of a time: it has each of {letters} once at most, in any order, and \
                     nothing else"
                ));
            };
            parts.push(*part);
            rest = &rest[letters.len()..];
        }
        let days = [Part::Year, Part::Month, Part::Day];
        if !days.iter().all(|part| parts.contains(part)) {
            return Err(format!("{format:?} names no day: it needs yyyy, MM and dd"));
        }
        Ok(TimeForm::Digits(parts))
    }

    /// Time that a value stands for.
    pub(super) fn span_ms(&self) -> u64 {
        match self {
            TimeForm::Number { unit_ms } => *unit_ms,
            TimeForm::Digits(parts) if parts.contains(&Part::Second) => 1_000,
            TimeForm::Digits(parts) if parts.contains(&Part::Minute) => 60_000,
            TimeForm::Digits(parts) if parts.contains(&Part::Hour) => 3_600_000,
            TimeForm::Digits(_) => DAY_MS,
        }
    }

    /// Whether values sort by time.
    pub(super) fn is_sorted(&self) -> bool {
        match self {
            TimeForm::Number { .. } => true,
            TimeForm::Digits(parts) => {
                let place = |part: &Part| PARTS.iter().position(|(_, known)| known == part);
                parts.is_sorted_by_key(place) && parts.first() == Some(&Part::Year)
            }
        }
    }

    /// The digits of a time; `None` for numbers.
    pub(super) fn text(&self, time_ms: u64) -> Option<String> {
        let TimeForm::Digits(parts) = self else {
            return None;
        };
        let (year, month, day) = date(time_ms / DAY_MS);
        let seconds = time_ms / 1_000;
        let texts = parts.iter().map(|part| match part {
            Part::Year => format!("{year:04}"),
            Part::Month => format!("{month:02}"),
            Part::Day => format!("{day:02}"),
            Part::Hour => format!("{:02}", seconds / 3_600 % 24),
            Part::Minute => format!("{:02}", seconds / 60 % 60),
            Part::Second => format!("{:02}", seconds % 60),
        });
        Some(texts.collect())
    }

    /// Number of bytes of the digits; `None` for numbers.
    pub(super) fn digits_len(&self) -> Option<usize> {
        let length = |part: &Part| if *part == Part::Year { 4 } else { 2 };
        match self {
            TimeForm::Number { .. } => None,
            TimeForm::Digits(parts) => Some(parts.iter().map(length).sum()),
        }
    }
}

/// Year, month and day of a day since 1970 (Howard Hinnant's `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_calendar() {
        let minute = TimeForm::digits("mmHHddMMyyyy").unwrap();
        // 2024-02-29T23:58:59.999Z and the second behind it.
        assert_eq!(minute.text(1_709_251_139_999).unwrap(), "582329022024");
        let all = TimeForm::digits("yyyyMMddHHmmss").unwrap();
        assert_eq!(all.text(1_709_251_140_000).unwrap(), "20240229235900");
        assert_eq!(all.text(0).unwrap(), "19700101000000");
        assert_eq!((minute.digits_len(), all.digits_len()), (Some(12), Some(14)));
        assert_eq!((minute.span_ms(), all.span_ms()), (60_000, 1_000));
        assert!(!minute.is_sorted() && all.is_sorted());
        assert!(!TimeForm::digits("MMddyyyy").unwrap().is_sorted());
    }

    #[test]
    fn wrong_formats_and_units_are_rejected_by_name() {
        for format in ["yyyyMMddHHmmx", "yyyyMMddMM", "yyyyMMdd-HH"] {
            let refused = TimeForm::digits(format).unwrap_err();
            assert!(
                refused.contains(format) && refused.contains("yyyy, MM, dd, HH, mm, ss"),
                "{refused}"
            );
        }
        assert!(TimeForm::digits("HHmm").unwrap_err().contains("names no day"));
        assert!(
            unit_ms("week")
                .unwrap_err()
                .contains("millisecond, second, minute, hour, day")
        );
    }
}

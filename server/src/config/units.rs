//! Sizes and durations as people write them: `128MiB`, `1.5 GB`, `5s`, `2h 30m`. A plain number
//! is in the setting's own unit.

use std::time::Duration;

/// The unit of a setting's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Things: threads, files, rows.
    Count,
    /// Bytes, also bytes per second.
    Bytes,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

/// Units of sizes, in lower case. One letter is a power of 1024, as in a JVM's `-Xmx4g`.
const SIZES: [(&str, u64); 14] = [
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("", 1),
];

/// Most digits behind the point of a size.
const DECIMALS_MAX: usize = 9;

impl Unit {
    /// The unit of a numeric setting, which its name ends with.
    pub(super) fn of(key: &str) -> Self {
        let is = |word: &str| key == word || key.ends_with(&format!("_{word}"));
        if is("bytes") || is("bytes_per_second") {
            Self::Bytes
        } else if is("ms") {
            Self::Milliseconds
        } else if is("seconds") {
            Self::Seconds
        } else {
            Self::Count
        }
    }

    /// The largest number that a setting of this unit can have, whatever its range: beyond it, sums of sizes
    /// and times overflow.
    pub(super) const fn largest(self) -> u64 {
        const DAY_SECONDS: u64 = 86_400;
        const YEARS_DAYS: u64 = 36_500;
        match self {
            Self::Count => 1_000_000_000_000,
            Self::Bytes => 1 << 60,
            Self::Milliseconds => YEARS_DAYS * DAY_SECONDS * 1_000,
            Self::Seconds => YEARS_DAYS * DAY_SECONDS,
        }
    }

    /// Reads a text as a number of this unit. The error names the mistake and the valid forms.
    pub(super) fn parse(self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        match self {
            Self::Count => text
                .parse()
                .map_err(|_| format!("{text:?} is no whole number that is 0 or more")),
            Self::Bytes => size(text).ok_or_else(|| {
                format!("{text:?} is no size: give a number of bytes, or one with a unit as in 64KiB, 128MiB, 2GiB or 500MB")
            }),
            Self::Milliseconds => duration(text, Duration::from_millis(1)),
            Self::Seconds => duration(text, Duration::from_secs(1)),
        }
    }

    /// Shows a number of this unit as [`Self::parse`] reads it, with the largest unit in which it
    /// is whole.
    pub(super) fn show(self, number: u64) -> String {
        let largest = |units: &[(u64, &str)]| {
            let fits = |(of, _): &&(u64, &str)| number > 0 && number.is_multiple_of(*of);
            units.iter().find(fits).map_or_else(
                || number.to_string(),
                |(of, unit)| format!("{}{unit}", number / of),
            )
        };
        match self {
            Self::Count => number.to_string(),
            Self::Bytes => largest(&[
                (1 << 40, "TiB"),
                (1 << 30, "GiB"),
                (1 << 20, "MiB"),
                (1 << 10, "KiB"),
            ]),
            Self::Milliseconds => largest(&[
                (86_400_000, "d"),
                (3_600_000, "h"),
                (60_000, "m"),
                (1_000, "s"),
                (1, "ms"),
            ]),
            Self::Seconds => largest(&[(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")]),
        }
    }

    /// The name of a value with this unit.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Count => "number",
            Self::Bytes => "size",
            Self::Milliseconds | Self::Seconds => "duration",
        }
    }
}

/// A number with a unit of [`SIZES`], rounded down to whole bytes.
fn size(text: &str) -> Option<u64> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = SIZES.iter().find(|(name, _)| *name == unit)?;
    let number = number.replace('_', "");
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || decimals.len() > DECIMALS_MAX || (number.contains('.') && decimals.is_empty()) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(*factor)?;
    let fraction = match decimals {
        "" => 0,
        digits => digits.parse::<u128>().ok()? * u128::from(*factor) / 10_u128.pow(digits.len() as u32),
    };
    whole.checked_add(u64::try_from(fraction).ok()?)
}

/// A plain number of `unit`s, or a text like `2h 30m`.
fn duration(text: &str, unit: Duration) -> Result<u64, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        if let Ok(number) = text.replace('_', "").parse() {
            return Ok(number);
        }
        return Err(format!("{text:?} is too long a time"));
    }
    let own = if unit.as_secs() == 0 {
        "milliseconds"
    } else {
        "seconds"
    };
    let found = humantime::parse_duration(text).map_err(|_| {
        format!("{text:?} is no duration: give a number of {own}, or one with a unit as in 500ms, 5s, 2h or 1h 30m")
    })?;
    let nanoseconds = unit.as_nanos();
    if !found.as_nanos().is_multiple_of(nanoseconds) {
        return Err(format!("{text:?} is not a whole number of {own}"));
    }
    u64::try_from(found.as_nanos() / nanoseconds).map_err(|_| format!("{text:?} is too long a time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("1_000", 1_000),
            ("17b", 17),
            ("64KiB", 64 << 10),
            ("128MiB", 128 << 20),
            ("128 mib", 128 << 20),
            ("128M", 128 << 20),
            ("2g", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("500MB", 500_000_000),
            ("0.1kB", 100),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(Unit::Bytes.parse(text), Ok(bytes), "{text}");
            assert_eq!(Unit::Bytes.parse(&Unit::Bytes.show(bytes)), Ok(bytes), "{text}");
        }
        for wrong in [
            "",
            "MiB",
            "-1",
            "1.MiB",
            "1..5MiB",
            "1 2MiB",
            "5s",
            "99999999999TiB",
            "1MiB/s",
        ] {
            let error = Unit::Bytes.parse(wrong).unwrap_err();
            assert!(
                error.contains(&format!("{wrong:?}")) && error.contains("128MiB"),
                "{error}"
            );
        }
        assert_eq!(Unit::Bytes.show((64 << 20) + 1), "67108865");
    }

    #[test]
    fn durations_are_read_and_shown() {
        for (text, ms) in [
            ("0", 0),
            ("250", 250),
            ("250ms", 250),
            ("5s", 5_000),
            ("2h", 7_200_000),
            ("1h 30m", 5_400_000),
        ] {
            assert_eq!(Unit::Milliseconds.parse(text), Ok(ms), "{text}");
            assert_eq!(
                Unit::Milliseconds.parse(&Unit::Milliseconds.show(ms)),
                Ok(ms),
                "{text}"
            );
        }
        assert_eq!(Unit::Seconds.parse("7d"), Ok(7 * 86_400));
        assert_eq!(Unit::Seconds.show(7 * 86_400), "7d");
        assert_eq!(Unit::Seconds.parse("90"), Ok(90));
        assert!(
            Unit::Seconds
                .parse("1500ms")
                .unwrap_err()
                .contains("whole number of seconds")
        );
        assert!(
            Unit::Milliseconds
                .parse("5us")
                .unwrap_err()
                .contains("whole number of milliseconds")
        );
        for wrong in ["", "5 parsecs", "s", "-5s", "128MiB"] {
            assert!(
                Unit::Milliseconds.parse(wrong).unwrap_err().contains("1h 30m"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_unit_is_in_the_name() {
        for (key, unit) in [
            ("bytes", Unit::Bytes),
            ("flush_bytes", Unit::Bytes),
            ("max_bytes_per_second", Unit::Bytes),
            ("lease_ms", Unit::Milliseconds),
            ("major_period_seconds", Unit::Seconds),
            ("requests_per_second", Unit::Count),
            ("max_waiting", Unit::Count),
        ] {
            assert_eq!(Unit::of(key), unit, "{key}");
        }
    }
}

//! Times and sizes in the words of HBase's shell: `'7 DAYS'`, `'604800 SECONDS (7 DAYS)'`,
//! `'65536 B (64KB)'`.
//!
//! A number without a unit counts seconds or bytes. Units may have any case; they are in descending
//! order, each at most once. `describe` prints the total and, in parentheses, the same amount in
//! larger units. Both are parsed and must be equal (`PrettyPrinter.valueOf` in HBase).

use super::{ShellError, ShellResult};

/// Units with their size in the smallest one, in descending order.
type Units = [(&'static str, i64)];

const SECONDS: [(&str, i64); 4] = [("DAY", 86_400), ("HOUR", 3_600), ("MINUTE", 60), ("SECOND", 1)];
const BYTES: [(&str, i64); 5] = [
    ("TB", 1 << 40),
    ("GB", 1 << 30),
    ("MB", 1 << 20),
    ("KB", 1 << 10),
    ("B", 1),
];

/// Parses a time in seconds.
pub(super) fn seconds(text: &str, key: &str) -> ShellResult<i64> {
    total(text, &SECONDS).map_err(|why| {
        wrong(
            key,
            text,
            why,
            "a number of seconds, or like '7 DAYS' or '1 HOUR 30 MINUTES'",
        )
    })
}

/// Parses a size in bytes.
pub(super) fn bytes(text: &str, key: &str) -> ShellResult<i64> {
    total(text, &BYTES)
        .map_err(|why| wrong(key, text, why, "a number of bytes, or like '64KB' or '1GB 512MB'"))
}

fn wrong(key: &str, text: &str, why: &str, form: &str) -> ShellError {
    ShellError::Arguments(format!("{key} is '{text}', {why}: it must be {form}"))
}

fn total(text: &str, units: &Units) -> Result<i64, &'static str> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let Some((total, parts)) = text.split_once('(') else {
        return sum(text, units);
    };
    let parts = parts.strip_suffix(')').ok_or("which lacks a ')'")?;
    let (total, parts) = (sum(total, units)?, sum(parts, units)?);
    if total == parts {
        Ok(total)
    } else {
        Err("whose two amounts differ")
    }
}

/// Adds up numbers with their units.
fn sum(text: &str, units: &Units) -> Result<i64, &'static str> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("which lacks an amount");
    }
    let (mut sum, mut units) = (0i64, units);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: i64 = rest[..digits].parse().map_err(|_| "which lacks a number")?;
        rest = rest[digits..].trim_start();
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let name = rest[..letters].to_ascii_uppercase();
        rest = rest[letters..].trim_start();
        let is_named = |unit: &str| name == unit || name.strip_suffix('S') == Some(unit);
        let at = units.iter().position(|(unit, _)| is_named(unit));
        let at = at.ok_or("which has an unknown, repeated or misplaced unit")?;
        let amount = number.checked_mul(units[at].1);
        sum = amount
            .and_then(|amount| sum.checked_add(amount))
            .ok_or("which 64 bits do not hold")?;
        units = &units[at + 1..];
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_hbases_words() {
        for (text, expected) in [
            ("604800", 604_800),
            ("7 DAYS", 604_800),
            ("7days", 604_800),
            ("30 days", 2_592_000),
            ("604800 SECONDS (7 DAYS)", 604_800),
            ("1 DAY 2 HOURS 3 MINUTES 4 SECONDS", 93_784),
            ("93784 SECONDS (1 DAY 2 HOURS 3 MINUTES 4 SECONDS)", 93_784),
            (" 1 hour 1 second ", 3_601),
        ] {
            assert_eq!(seconds(text, "TTL").unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_describe_prints_them() {
        for (text, expected) in [
            ("65536", 65_536),
            ("65536 B (64KB)", 65_536),
            ("64KB", 65_536),
            ("10737418240 B (10GB)", 10 << 30),
            ("1GB 512MB", (1 << 30) + (512 << 20)),
            ("1000 B", 1_000),
        ] {
            assert_eq!(bytes(text, "BLOCKSIZE").unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("", "lacks an amount"),
            ("7 WEEKS", "unknown, repeated or misplaced unit"),
            ("1 HOUR 1 DAY", "misplaced unit"),
            ("1 DAY 1 DAY", "repeated"),
            ("DAYS", "lacks a number"),
            ("604800 SECONDS (8 DAYS)", "two amounts differ"),
            ("604800 SECONDS (7 DAYS", "lacks a ')'"),
            ("99999999999999999 DAYS", "64 bits"),
            ("1.5 DAYS", "unit"),
        ] {
            let error = seconds(text, "TTL").unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("7 DAYS"), "{text}: {error}");
        }
    }
}

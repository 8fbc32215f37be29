//! Figures, times and keys as people read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use basalt_engine::clock::WALL_MAX_MS;
use basalt_engine::schema::Escaped;
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Refusal;

/// A size with the largest unit that leaves at least 1.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A number with commas between thousands.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun, in singular or plural.
pub(super) fn of(number: u64, one: &str) -> String {
    let several = if number == 1 { "" } else { "s" };
    format!("{} {one}{several}", count(number))
}

/// A rate per second.
pub(super) fn rate(per_second: f64) -> String {
    if per_second <= 0.0 {
        "0".to_owned()
    } else if per_second < 10.0 {
        format!("{per_second:.1}")
    } else {
        count(per_second.round() as u64)
    }
}

/// A part of a whole, in percent.
pub(super) fn percent(part: f64, whole: f64) -> String {
    if whole <= 0.0 {
        "-".to_owned()
    } else {
        format!("{:.1} %", part * 100.0 / whole)
    }
}

/// A time in milliseconds since 1970, in UTC. Times after the year 9999, which the formatter does
/// not support, are shown as milliseconds.
pub(super) fn time(ms: u64) -> String {
    if ms > WALL_MAX_MS {
        return format!("{ms} ms");
    }
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms))
        .to_string()
        .replace('T', " ")
        .replace('Z', " UTC")
}

/// A time in UTC. Times before 1970 are shown as the start of 1970.
pub(super) fn moment(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A length of time: whole seconds from ten seconds on, else milliseconds.
pub(super) fn duration(duration: Duration) -> String {
    let shown = if duration.as_secs() >= 10 {
        Duration::from_secs(duration.as_secs())
    } else {
        Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    };
    humantime::format_duration(shown).to_string()
}

/// A latency with two or three digits.
pub(super) fn latency(took: Duration) -> String {
    let micros = took.as_secs_f64() * 1e6;
    let (value, unit) = match micros {
        micros if micros < 1e3 => (micros, "µs"),
        micros if micros < 1e6 => (micros / 1e3, "ms"),
        micros => (micros / 1e6, "s"),
    };
    if value < 10.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// A key's bytes, as HBase's tools print them. `empty` stands for no key.
pub(super) fn key(key: &[u8], empty: &str) -> Markup {
    html! {
        @if key.is_empty() { span.quiet { (empty) } } @else { code { (Escaped(key).to_string()) } }
    }
}

/// A range of keys.
pub(super) fn range(start: &[u8], end: &[u8]) -> Markup {
    html! { (key(start, "first")) " to " (key(end, "last")) }
}

/// A part of a whole as a bar with its text.
pub(super) fn meter(part: f64, whole: f64, text: &str) -> Markup {
    let share = if whole > 0.0 {
        (part / whole).clamp(0.0, 1.0)
    } else {
        0.0
    };
    html! { span.bar { meter min="0" max="1" value=(format!("{share:.3}")) { (text) } " " (text) } }
}

/// The address with these parameters, empty ones left out.
pub(super) fn link(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    let mut before = '?';
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        address.push(before);
        address.push_str(name);
        address.push('=');
        address.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        before = '&';
    }
    address
}

/// A path of these parts, each encoded.
pub(super) fn path(parts: &[&str]) -> String {
    let mut path = String::new();
    for part in parts {
        path.push('/');
        path.extend(utf8_percent_encode(part, NON_ALPHANUMERIC));
    }
    path
}

/// The bytes of a printed text, as HBase's `Bytes.toBytesBinary` reads them: `\xNN` is a byte,
/// everything else is itself.
pub(super) fn parse_key(name: &str, text: &str) -> Result<Vec<u8>, Refusal> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' || after.first() != Some(&b'x') {
            key.push(*first);
            continue;
        }
        let digits = after
            .get(1..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte else {
            return Err(Refusal::BadRequest(format!(
                "{name} has \\x without two hexadecimal digits behind it: {text}"
            )));
        };
        key.push(byte);
        rest = &after[3..];
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(
            (bytes(0), bytes(1023), bytes(1536)),
            ("0 B".into(), "1023 B".into(), "1.5 KiB".into())
        );
        assert_eq!(
            (count(7), count(1_000), count(12_345_678)),
            ("7".into(), "1,000".into(), "12,345,678".into())
        );
        assert_eq!(
            (of(1, "table"), of(0, "table")),
            ("1 table".into(), "0 tables".into())
        );
        assert_eq!(
            (rate(0.0), rate(0.25), rate(1234.4)),
            ("0".into(), "0.2".into(), "1,234".into())
        );
        assert_eq!(
            (percent(1.0, 3.0), percent(0.0, 0.0)),
            ("33.3 %".into(), "-".into())
        );
        assert_eq!(time(1_700_000_000_999), "2023-11-14 22:13:20 UTC");
        assert_eq!(time(WALL_MAX_MS), "9999-12-31 23:59:59 UTC");
        assert_eq!(time(WALL_MAX_MS + 1), "253402300800000 ms");
        assert_eq!(time(u64::MAX), "18446744073709551615 ms");
        let before_1970 = UNIX_EPOCH.checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(moment(before_1970), "1970-01-01 00:00:00 UTC");
        let latencies =
            [5, 999, 1_500, 87_000, 2_500_000].map(|micros| latency(Duration::from_micros(micros)));
        assert_eq!(latencies, ["5.0 µs", "999 µs", "1.5 ms", "87 ms", "2.5 s"]);
        assert_eq!(duration(Duration::from_millis(90_061)), "1m 30s");
        assert_eq!(duration(Duration::from_micros(1_500_900)), "1s 500ms");
    }

    #[test]
    fn bytes_of_others_are_no_markup() {
        let hostile = b"<script>\"&'\x00\xff\\";
        assert_eq!(
            key(hostile, "").into_string(),
            "<code>&lt;script&gt;&quot;&amp;'\\x00\\xFF\\x5C</code>"
        );
        let address = link("/heat", &[("start", "a&b=\"<\\x00"), ("end", "")]);
        assert_eq!(address, "/heat?start=a%26b%3D%22%3C%5Cx00");
        assert_eq!(path(&["tables", "ns:t", "../x"]), "/tables/ns%3At/%2E%2E%2Fx");
    }

    /// A printed key can be read back, whatever the bytes.
    #[test]
    fn keys_are_read_as_they_are_printed() {
        let all: Vec<u8> = (0..=255).collect();
        for key in [&all[..], b"", b"a\\x41", b"\\", b"\\x", b"row \\\\x"] {
            assert_eq!(parse_key("start", &Escaped(key).to_string()).unwrap(), key);
        }
        assert_eq!(parse_key("start", "é\\y").unwrap(), "é\\y".as_bytes());
        for wrong in ["\\x", "\\x4", "\\x+1", "a\\xg0", "\\xé"] {
            let refusal = parse_key("start", wrong).unwrap_err();
            assert!(
                matches!(&refusal, Refusal::BadRequest(why) if why.contains(wrong)),
                "{refusal:?}"
            );
        }
    }
}

//! Bytes as text and back: Ruby's string escapes on input, HBase's `toStringBinary` on output.

pub(super) use basalt_idl::describe::printable;

/// The end of the year 9999, where the formatter ends. Later times, such as `i64::MAX`, are printed as
/// numbers.
const LAST_MS: u64 = 253_402_300_799_999;

/// A timestamp as HBase prints it: Java's `LocalDateTime`, which leaves out seconds and milliseconds that are
/// zero. Always UTC, unlike HBase, whose output depends on the machine it runs on.
pub(super) fn timestamp(timestamp_ms: i64) -> String {
    let Ok(since_epoch) = u64::try_from(timestamp_ms) else {
        return timestamp_ms.to_string();
    };
    if since_epoch > LAST_MS {
        return timestamp_ms.to_string();
    }
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(since_epoch);
    let text = humantime::format_rfc3339_millis(time).to_string();
    let text = text.trim_end_matches('Z');
    let text = text
        .strip_suffix(".000")
        .map_or(text, |whole| whole.strip_suffix(":00").unwrap_or(whole));
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{printable, timestamp};

    #[test]
    fn bytes_are_printed_as_hbase_does() {
        assert_eq!(printable(b"a b\\\x00\xff~"), "a b\\x5C\\x00\\xFF~");
    }

    #[test]
    fn times_are_printed_as_java_does() {
        assert_eq!(timestamp(1_665_457_980_120), "2022-10-11T03:13:00.120");
        assert_eq!(timestamp(1_000), "1970-01-01T00:00:01");
        assert_eq!(timestamp(0), "1970-01-01T00:00");
        assert_eq!(timestamp(-5), "-5");
        assert_eq!(timestamp(i64::MAX), i64::MAX.to_string());
    }
}

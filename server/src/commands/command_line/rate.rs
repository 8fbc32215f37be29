//! Numbers of bytes on the command line.

/// Reads a number of bytes: `50MB`, `64KiB`, `1000000`.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no number of bytes: write 50MB, 64MiB or 1000000");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let bytes = number
        .parse()
        .ok()
        .and_then(|number: u64| number.checked_mul(factor));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

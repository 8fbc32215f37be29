//! `'row%05d' % i`: Ruby's formats of numbers and texts, as they occur in row keys.

use super::super::ShellResult;
use super::super::syntax::Value;
use super::checks::{check_size, not_ruby, to_text, wrong};

/// Formats values. Knows `%d`, `%i`, `%u`, `%s`, `%x`, `%X` and `%%`, with a width and the flags
/// `0` and `-`.
pub(super) fn format(format: &[u8], values: &[Value]) -> ShellResult<Value> {
    let mut values = values.iter();
    let mut result = Vec::with_capacity(format.len());
    let mut rest = format;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            result.push(*first);
            continue;
        }
        let flags = rest.iter().take_while(|byte| b"0-".contains(byte)).count();
        let digits = rest[flags..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (flags, behind) = rest.split_at(flags);
        let (digits, behind) = behind.split_at(digits);
        let Some((kind, behind)) = behind.split_first() else {
            return wrong("a format ends in '%'; write %% for the character itself");
        };
        rest = behind;
        if *kind == b'%' {
            result.push(b'%');
            continue;
        }
        let Some(value) = values.next() else {
            return wrong("a format has fewer values than places");
        };
        let text = match (kind, value) {
            (b's', value) => to_text(value),
            (b'd' | b'i' | b'u', Value::Integer(number)) => number.to_string().into_bytes(),
            (b'x', Value::Integer(number @ 0..)) => format!("{number:x}").into_bytes(),
            (b'X', Value::Integer(number @ 0..)) => format!("{number:X}").into_bytes(),
            (b'd' | b'i' | b'u' | b'x' | b'X', value) => {
                return wrong(format!(
                    "%{} formats a whole number, not {value}",
                    char::from(*kind)
                ));
            }
            _ => return not_ruby(&format!("the format %{}", kind.escape_ascii())),
        };
        let width = std::str::from_utf8(digits)
            .unwrap_or_default()
            .parse()
            .unwrap_or(0);
        check_size(result.len().saturating_add(width.max(text.len())))?;
        pad(&mut result, text, flags, width);
    }
    Ok(Value::Bytes(result))
}

fn pad(result: &mut Vec<u8>, text: Vec<u8>, flags: &[u8], width: usize) {
    let missing = width.saturating_sub(text.len());
    if flags.contains(&b'-') {
        result.extend(text);
        result.extend(std::iter::repeat_n(b' ', missing));
    } else if flags.contains(&b'0') {
        // Zeros stand behind a sign.
        let (sign, digits) = text.split_at(usize::from(text.starts_with(b"-")));
        result.extend(sign);
        result.extend(std::iter::repeat_n(b'0', missing));
        result.extend(digits);
    } else {
        result.extend(std::iter::repeat_n(b' ', missing));
        result.extend(text);
    }
}

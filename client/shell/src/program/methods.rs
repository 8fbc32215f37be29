//! Methods of values, and of the Java classes whose use in HBase's shell is documented: `Bytes` and
//! filters.

use super::super::ShellResult;
use super::super::converters::Converter;
use super::super::syntax::{NOT_RUBY, Value};
use super::checks::{check_size, not_ruby, to_text, wrong};

/// First words of the names of Java packages.
const PACKAGES: [&str; 6] = ["com", "edu", "java", "javax", "net", "org"];

/// Filters whose constructors take what the filter language takes.
const FILTERS: [&str; 8] = [
    "ColumnCountGetFilter",
    "ColumnPaginationFilter",
    "ColumnPrefixFilter",
    "FirstKeyOnlyFilter",
    "InclusiveStopFilter",
    "KeyOnlyFilter",
    "PageFilter",
    "PrefixFilter",
];

/// The value of a constant: its name, or the number that `HConstants` has for it.
pub(super) fn constant(name: &str) -> Value {
    match name {
        "ALL_VERSIONS" => Value::Integer(i32::MAX.into()),
        _ => Value::Constant(name.to_owned()),
    }
}

/// Whether a Java class has methods here.
pub(crate) fn is_known_class(class: &str) -> bool {
    class == "Bytes" || FILTERS.contains(&class)
}

/// Calls a method of a value.
pub(super) fn call(value: Value, method: &str, arguments: &[Value]) -> ShellResult<Value> {
    Ok(match (method, value, arguments) {
        ("to_s", value, []) => Value::Bytes(to_text(&value)),
        ("to_i", Value::Bytes(text), []) => Value::Integer(leading_number(&text)),
        ("to_i", Value::Float(number), []) => Value::Integer(number as i64),
        ("to_i", value @ Value::Integer(_), [])
        | ("to_java_bytes" | "getBytes" | "to_sym" | "freeze", value @ Value::Bytes(_), [])
        | ("each" | "map" | "collect" | "to_a", value @ (Value::Range(..) | Value::Array(_)), []) => value,
        ("upcase", Value::Bytes(text), []) => Value::Bytes(text.to_ascii_uppercase()),
        ("downcase", Value::Bytes(text), []) => Value::Bytes(text.to_ascii_lowercase()),
        ("reverse", Value::Bytes(mut text), []) => {
            text.reverse();
            Value::Bytes(text)
        }
        ("rjust" | "ljust", Value::Bytes(text), [Value::Integer(width)]) => {
            justify(method, text, *width, b" ")?
        }
        ("rjust" | "ljust", Value::Bytes(text), [Value::Integer(width), Value::Bytes(pad)]) => {
            justify(method, text, *width, pad)?
        }
        ("length" | "size" | "count", Value::Bytes(text), []) => Value::Integer(text.len() as i64),
        ("length" | "size" | "count", Value::Array(values), []) => Value::Integer(values.len() as i64),
        ("chr", Value::Integer(byte), []) => match u8::try_from(byte) {
            Ok(byte) => Value::Bytes(vec![byte]),
            Err(_) => return wrong(format!("{byte} is no byte")),
        },
        ("succ" | "next", Value::Integer(number), []) => Value::Integer(number.saturating_add(1)),
        ("[]", Value::Array(values), [Value::Integer(at)]) => element(values, *at),
        ("first", Value::Array(values), []) => element(values, 0),
        ("last", Value::Array(values), []) => element(values, -1),
        ("[]", Value::Hash(pairs), [Value::Bytes(key)]) => {
            let mut found = pairs.into_iter().filter(|(known, _)| known == key);
            found.next().map_or(Value::Nil, |(_, value)| value)
        }
        ("each_with_index", value, []) => with_index(value)?,
        ("times", Value::Integer(count), []) => Value::Range(0, count.saturating_sub(1)),
        ("upto", Value::Integer(first), [Value::Integer(last)]) => Value::Range(first, *last),
        ("downto", Value::Integer(first), [Value::Integer(last)]) => steps(first, *last, -1)?,
        ("step", Value::Integer(first), [Value::Integer(last), Value::Integer(by)]) => {
            steps(first, *last, *by)?
        }
        ("step", Value::Range(first, last), [Value::Integer(by)]) => steps(first, last, *by)?,
        (_, value, _) => return not_ruby(&format!("the method '{method}' of {}", value.kind())),
    })
}

/// The number at the beginning of a text; 0 if there is none, as in Ruby.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii();
    let sign = usize::from(text.starts_with(b"-"));
    let digits = text[sign..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let number = std::str::from_utf8(&text[..sign + digits]).unwrap_or_default();
    number.parse().unwrap_or_default()
}

fn justify(method: &str, mut text: Vec<u8>, width: i64, pad: &[u8]) -> ShellResult<Value> {
    let missing = usize::try_from(width)
        .unwrap_or_default()
        .saturating_sub(text.len());
    check_size(missing)?;
    let padding = pad.iter().copied().cycle().take(missing);
    if method == "ljust" {
        text.extend(padding);
        return Ok(Value::Bytes(text));
    }
    Ok(Value::Bytes(padding.chain(text.iter().copied()).collect()))
}

/// The element at an index, which counts from the end if it is negative.
fn element(mut values: Vec<Value>, at: i64) -> Value {
    let count = values.len() as i64;
    let at = if at < 0 { at.saturating_add(count) } else { at };
    match usize::try_from(at) {
        Ok(at) if at < values.len() => values.swap_remove(at),
        _ => Value::Nil,
    }
}

fn with_index(value: Value) -> ShellResult<Value> {
    let pair = |(index, value): (usize, Value)| Value::Array(vec![value, Value::Integer(index as i64)]);
    match value {
        Value::Array(values) => Ok(Value::Array(values.into_iter().enumerate().map(pair).collect())),
        Value::Range(first, last) => with_index(steps(first, last, 1)?),
        other => not_ruby(&format!("the method 'each_with_index' of {}", other.kind())),
    }
}

/// The numbers from `first` to `last` in steps of `by`.
fn steps(first: i64, last: i64, by: i64) -> ShellResult<Value> {
    if by == 0 {
        return wrong("a step is not 0");
    }
    let is_inside = |number: &i64| if by > 0 { *number <= last } else { *number >= last };
    let numbers = std::iter::successors(Some(first), |number| number.checked_add(by));
    let numbers: Vec<Value> = numbers
        .take_while(is_inside)
        .take(super::ROUNDS_MAX + 1)
        .map(Value::Integer)
        .collect();
    if numbers.len() > super::ROUNDS_MAX {
        return Err(super::too_many_rounds());
    }
    Ok(Value::Array(numbers))
}

/// Whether a name begins the name of a Java package.
pub(super) fn is_package(name: &str) -> bool {
    PACKAGES.contains(&name)
}

/// Refuses a Java class that this shell does not have.
pub(super) fn check_class(class: &str, method: &str) -> ShellResult<()> {
    let is_filter = class.ends_with("Filter") || class.ends_with("Comparator");
    match (class, method) {
        ("Bytes", _) => Ok(()),
        (class, "new") if is_known_class(class) => Ok(()),
        (class, "new") if is_filter => wrong(format!(
            "{class}.new makes a Java object, and this shell is not Java; a filter is written as text: FILTER => \
             \"PrefixFilter('x')\", and show_filters lists all"
        )),
        ("Date" | "Time" | "SimpleDateFormat" | "DateTime", _) => wrong(format!(
            "{class} is a class of Java or Ruby, which this shell has not; a timestamp counts milliseconds since 1970: date \
             -u +%s000 prints the present one, and date -u -d @SECONDS a time"
        )),
        _ => not_java(class),
    }
}

/// The value of a method of a class that was checked.
pub(super) fn of_class(class: &str, method: &str, arguments: &[Value]) -> ShellResult<Value> {
    match (class, arguments) {
        ("Bytes", [value]) => of_bytes(method, value),
        ("Bytes", _) => wrong(format!("Bytes.{method} takes one value")),
        (filter, arguments) => filter_text(filter, arguments),
    }
}

pub(super) fn not_java<T>(class: &str) -> ShellResult<T> {
    wrong(format!(
        "{class} would be a Java class, which this shell has not; {NOT_RUBY}"
    ))
}

/// A method of the class Bytes: to bytes, or back.
fn of_bytes(method: &str, value: &Value) -> ShellResult<Value> {
    match (method, value) {
        ("toBytes", Value::Bytes(text)) => Ok(Value::Bytes(text.clone())),
        ("toBytes", Value::Integer(number)) => Ok(Value::Bytes(number.to_be_bytes().to_vec())),
        ("toBytes", Value::Float(number)) => Ok(Value::Bytes(number.to_be_bytes().to_vec())),
        ("toBytes", Value::Bool(value)) => Ok(Value::Bytes(vec![if *value { 0xff } else { 0 }])),
        ("toBytesBinary", Value::Bytes(text)) => Ok(Value::Bytes(unescape(text))),
        (method, Value::Bytes(bytes)) => {
            let converter = Converter::from_name(method)?;
            let Some(text) = converter.text(bytes) else {
                return wrong(format!(
                    "Bytes.{method} needs more bytes than the {} given",
                    bytes.len()
                ));
            };
            Ok(text
                .parse()
                .map_or_else(|_| Value::text(text.clone()), Value::Integer))
        }
        (method, value) => wrong(format!("Bytes.{method} does not convert {}", value.kind())),
    }
}

/// Bytes of a text with `\x00` in it.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let digits = behind
            .strip_prefix(b"x")
            .and_then(|behind| std::str::from_utf8(behind.get(..2)?).ok());
        match digits.map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) if *first == b'\\' => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            _ => bytes.push(*first),
        }
    }
    bytes
}

/// A filter that was written as a Java object, as text of the filter language.
fn filter_text(filter: &str, arguments: &[Value]) -> ShellResult<Value> {
    let mut text = format!("{filter}(").into_bytes();
    for (index, argument) in arguments.iter().enumerate() {
        if index > 0 {
            text.extend(b", ");
        }
        match argument {
            Value::Bytes(bytes) => {
                text.push(b'\'');
                // A quote inside is written twice.
                let doubled = bytes
                    .iter()
                    .flat_map(|byte| std::iter::repeat_n(*byte, 1 + usize::from(*byte == b'\'')));
                text.extend(doubled);
                text.push(b'\'');
            }
            number @ Value::Integer(_) => text.extend(number.to_string().into_bytes()),
            other => return wrong(format!("{filter}.new does not take {}", other.kind())),
        }
    }
    text.push(b')');
    Ok(Value::Bytes(text))
}

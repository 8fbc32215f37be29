//! Histories as text.
//!
//! Calls and crashes stand between semicolons or on lines of their own, in any order:
//!
//! ```text
//! 0-9 write x=1 y=2        sets two columns; invoked at 0, returned at 9
//! 0-9 write x=1 -y         sets one and removes another; -* removes all
//! 0-? write x=1            the outcome is unknown
//! 0-9! write x=1           refused
//! 1-2 get x=1              found x=1 and nothing else
//! 1-2 get                  found nothing
//! 0-9 inc x+5 =7           added 5 and returned 7
//! 0-9 app x+ab =1ab        appended
//! 0-9 if x=1 then x=2 yes  checked and changed; `if -x` checks for absence; `no` did not pass
//! crash 10
//! ```
//!
//! `@a` and `%r` before a call name its client and row; without them every call has a client of its own, and
//! the row is `r`. `#5` is the number 5 in eight bytes, and `\09` a byte. Amounts and sums of `inc` are
//! numbers.

use std::collections::HashMap;
use std::fmt::Write as _;

use bytes::Bytes;

use crate::history::{Call, Change, ClientId, Columns, History, Op, Outcome, Reply, Time};

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a call")]
pub struct NotationError(pub String);

/// Reads a history.
pub fn parse(text: &str) -> Result<History, NotationError> {
    let mut history = History::default();
    let mut clients = HashMap::new();
    for item in text.split([';', '\n']).map(str::trim) {
        if item.is_empty() {
            continue;
        }
        let wrong = || NotationError(item.to_owned());
        if let Some(time) = item.strip_prefix("crash ") {
            history.crashes.push(time.trim().parse().map_err(|_| wrong())?);
        } else {
            history
                .calls
                .push(parse_call(item, &mut clients).ok_or_else(wrong)?);
        }
    }
    history.calls.sort_by_key(|call| call.invoked);
    history.crashes.sort_unstable();
    history.close_unknown();
    Ok(history)
}

/// Reads columns, as in `x=1 y=2`.
pub fn parse_columns(text: &str) -> Result<Columns, NotationError> {
    columns(text.split_whitespace()).ok_or_else(|| NotationError(text.to_owned()))
}

fn parse_call(item: &str, clients: &mut HashMap<String, ClientId>) -> Option<Call> {
    let mut words = item.split_whitespace().peekable();
    let mut client = format!("call {}", clients.len());
    let mut row = Bytes::from_static(b"r");
    while let Some(word) = words.next_if(|word| word.starts_with(['@', '%'])) {
        let name = &word[1..];
        if word.starts_with('@') {
            name.clone_into(&mut client);
        } else {
            row = untoken(name)?;
        }
    }
    let known = ClientId::try_from(clients.len()).ok()?;
    let client = *clients.entry(client).or_insert(known);
    let (invoked, end) = words.next()?.split_once('-')?;
    let kind = words.next()?;
    let mut words: Vec<&str> = words.collect();
    let number = |word: &str| Some(counter(word.parse().ok()?));
    let mut reply = |done: bool| match kind {
        _ if !done => Some(Reply::Nothing),
        "get" => Some(Reply::Row(columns(words.drain(..))?)),
        "if" => Some(Reply::Passed(match words.pop()? {
            "yes" => true,
            "no" => false,
            _ => return None,
        })),
        "inc" => Some(Reply::Value(number(words.pop()?.strip_prefix('=')?)?)),
        "app" => Some(Reply::Value(untoken(words.pop()?.strip_prefix('=')?)?)),
        _ => Some(Reply::Nothing),
    };
    let (returned, outcome) = if end == "?" {
        (Time::MAX, Outcome::Unknown)
    } else if let Some(end) = end.strip_suffix('!') {
        (end.parse().ok()?, Outcome::Refused)
    } else {
        (end.parse().ok()?, Outcome::Done(reply(true)?))
    };
    let op = parse_op(kind, &words)?;
    Some(Call {
        client,
        row,
        op,
        invoked: invoked.parse().ok()?,
        returned,
        outcome,
    })
}

fn parse_op(kind: &str, words: &[&str]) -> Option<Op> {
    match (kind, words) {
        ("get", []) => Some(Op::Get),
        ("write", changes) => Some(Op::Write(parse_changes(changes)?)),
        ("if", [condition, "then", changes @ ..]) => {
            let (column, expected) = match parse_change(condition)? {
                Change::Put(column, value) => (column, Some(value)),
                Change::Delete(column) => (column, None),
                Change::DeleteRow => return None,
            };
            let changes = parse_changes(changes)?;
            Some(Op::Check {
                column,
                expected,
                changes,
            })
        }
        ("inc", [what]) => {
            let (column, amount) = what.split_once('+')?;
            Some(Op::Increment {
                column: untoken(column)?,
                amount: amount.parse().ok()?,
            })
        }
        ("app", [what]) => {
            let (column, suffix) = what.split_once('+')?;
            Some(Op::Append {
                column: untoken(column)?,
                suffix: untoken(suffix)?,
            })
        }
        _ => None,
    }
}

fn parse_changes(words: &[&str]) -> Option<Vec<Change>> {
    words.iter().map(|word| parse_change(word)).collect()
}

fn parse_change(word: &str) -> Option<Change> {
    if word == "-*" {
        return Some(Change::DeleteRow);
    }
    if let Some(column) = word.strip_prefix('-') {
        return Some(Change::Delete(untoken(column)?));
    }
    let (column, value) = word.split_once('=')?;
    Some(Change::Put(untoken(column)?, untoken(value)?))
}

fn columns<'a>(words: impl Iterator<Item = &'a str>) -> Option<Columns> {
    words
        .map(|word| {
            let (column, value) = word.split_once('=')?;
            Some((untoken(column)?, untoken(value)?))
        })
        .collect()
}

/// A number as a counter holds it.
pub fn counter(number: i64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

/// Bytes as one word: letters, digits and `_.:/-` as they are, a number in eight bytes as `#number`, other
/// bytes as `\` and two digits.
pub fn token(bytes: &[u8]) -> String {
    // A word that begins with a minus is a removal.
    let plain = |(at, byte): (usize, &u8)| {
        byte.is_ascii_alphanumeric() || b"_.:/".contains(byte) || (*byte == b'-' && at > 0)
    };
    if let Ok(number) = <[u8; 8]>::try_from(bytes)
        && !bytes.iter().enumerate().all(plain)
    {
        return format!("#{}", i64::from_be_bytes(number));
    }
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if plain((at, byte)) {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "\\{byte:02x}");
        }
    }
    text
}

fn untoken(word: &str) -> Option<Bytes> {
    if let Some(number) = word.strip_prefix('#') {
        return Some(counter(number.parse().ok()?));
    }
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes.into())
}

/// Writes columns, as in `x=1 y=2`.
pub fn print_columns(columns: &Columns) -> String {
    let words: Vec<_> = columns
        .iter()
        .map(|(column, value)| format!("{}={}", token(column), token(value)))
        .collect();
    words.join(" ")
}

/// Writes calls, one a line.
pub fn print<'a>(calls: impl IntoIterator<Item = &'a Call>) -> String {
    let mut text = String::new();
    for call in calls {
        text += &print_call(call);
        text.push('\n');
    }
    text
}

fn print_call(call: &Call) -> String {
    let end = match &call.outcome {
        Outcome::Unknown => "?".to_owned(),
        Outcome::Refused => format!("{}!", call.returned),
        Outcome::Done(_) => call.returned.to_string(),
    };
    let op = match &call.op {
        Op::Get => "get".to_owned(),
        Op::Write(changes) => format!("write {}", print_changes(changes)),
        Op::Check {
            column,
            expected,
            changes,
        } => {
            let condition = match expected {
                Some(value) => Change::Put(column.clone(), value.clone()),
                None => Change::Delete(column.clone()),
            };
            format!(
                "if {} then {}",
                print_changes(&[condition]),
                print_changes(changes)
            )
        }
        Op::Increment { column, amount } => format!("inc {}+{amount}", token(column)),
        Op::Append { column, suffix } => format!("app {}+{}", token(column), token(suffix)),
    };
    let reply = match (&call.outcome, &call.op) {
        (Outcome::Done(Reply::Row(columns)), _) => format!(" {}", print_columns(columns)),
        (Outcome::Done(Reply::Passed(passed)), _) => if *passed { " yes" } else { " no" }.to_owned(),
        (Outcome::Done(Reply::Value(value)), Op::Increment { .. }) => {
            format!(" ={}", token(value).trim_start_matches('#'))
        }
        (Outcome::Done(Reply::Value(value)), _) => format!(" ={}", token(value)),
        _ => String::new(),
    };
    format!(
        "@{} %{} {}-{end} {op}{reply}",
        call.client,
        token(&call.row),
        call.invoked
    )
}

fn print_changes(changes: &[Change]) -> String {
    let words = changes.iter().map(|change| match change {
        Change::Put(column, value) => format!("{}={}", token(column), token(value)),
        Change::Delete(column) => format!("-{}", token(column)),
        Change::DeleteRow => "-*".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_calls_can_be_read() {
        let text = "@0 %r 0-9 write f:x=1 -y\n@1 %r 1-? write -*\n@2 %a\\20b 2-3! app x+z\n@3 %r 4-5 get x=#7 y=\\ff\n\
                    @4 %r 5-6 if -x then x=2 no\n@5 %r 5-6 if x=1 then x=2 yes\n@6 %r 6-7 inc n+5 =-7\n@7 %r 7-8 app x+a =ba\n";
        let history = parse(text).expect("every line is a call");
        assert_eq!(print(&history.calls), text);
    }

    #[test]
    fn other_lines_are_named() {
        for text in [
            "0-9",
            "x-9 get",
            "0-9 got",
            "0-9 if x=1 y=2 yes",
            "0-9 inc x =1",
            "0-9 get x",
            "crash",
        ] {
            assert_eq!(parse(text), Err(NotationError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn unknown_calls_end_at_the_next_crash() {
        let history = parse("crash 9; crash 5; 3-? get; 6-? get; 9-? get; 10-? get").expect("calls");
        let ends: Vec<_> = history.calls.iter().map(|call| call.returned).collect();
        assert_eq!(ends, [5, 9, 9, Time::MAX]);
    }
}

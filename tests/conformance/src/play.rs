//! Plays scripts to a server.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use basalt_calls::{Answer, Value};

use super::script::{Call, Script, Step};
use super::target::Target;

/// Letters that names of tables and namespaces begin with in scripts.
const PREFIXES: [&str; 2] = ["tbl", "nsp"];

/// Plays one script to one server, under names of its own.
#[derive(Debug)]
pub struct Player<'a, T> {
    target: &'a mut T,
    /// The values of [`PREFIXES`] on this server.
    names: [String; 2],
    scanners: BTreeMap<u32, i64>,
}

impl<'a, T: Target> Player<'a, T> {
    /// A player whose names are not those of any other `run` on this server.
    pub fn new(target: &'a mut T, run: usize) -> Self {
        Player {
            target,
            // Always of one length: system tables have messages with the lengths of names in them.
            names: [format!("t{run:06}x"), format!("n{run:06}x")],
            scanners: BTreeMap::new(),
        }
    }

    /// Plays a step; returns the answer if it is a call.
    pub fn step(&mut self, step: &Step) -> Result<Option<Answer>, String> {
        match step {
            Step::Call(call) => return self.call(call).map(Some),
            Step::Flush(table) => self.target.flush(&self.named(table))?,
            Step::Compact(table) => self.target.compact(&self.named(table))?,
            Step::MajorCompact(table) => self.target.major_compact(&self.named(table))?,
            Step::Split(table, row) => self.target.split(&self.named(table), row)?,
        }
        Ok(None)
    }

    fn call(&mut self, call: &Call) -> Result<Answer, String> {
        let mut args = Value::Struct(call.args.clone());
        args.for_each_mut(&mut |value| match value {
            Value::Bytes(bytes) => *bytes = replaced(bytes, PREFIXES.iter().zip(&self.names)),
            // A scanner that was not opened is an unknown scanner.
            Value::Scanner(number) => {
                *value = Value::Int(self.scanners.get(number).copied().unwrap_or(i64::from(i32::MAX)));
            }
            _ => {}
        });
        let Value::Struct(args) = args else {
            unreachable!("a struct stays a struct")
        };
        let answer = self.target.call(call.api, call.method, &args);
        let mut answer = answer.map_err(|error| format!("{call}: {error}"))?;
        if let (Some(number), Answer::Success(value)) = (call.opens, &mut answer)
            && let Value::Int(id) = *value
        {
            self.scanners.insert(number, id);
            *value = Value::Scanner(number);
        }
        if let Answer::Success(value) | Answer::Thrown(_, value) = &mut answer {
            value.for_each_mut(&mut |value| {
                if let Value::Bytes(bytes) = value {
                    *bytes = replaced(bytes, self.names.iter().zip(&PREFIXES));
                }
            });
        }
        next_millisecond();
        Ok(answer)
    }

    fn named(&self, table: &str) -> String {
        String::from_utf8_lossy(&replaced(table.as_bytes(), PREFIXES.iter().zip(&self.names))).into_owned()
    }
}

/// Returns when the clock shows another millisecond, so that cells of two calls without a timestamp
/// get two timestamps on every server.
fn next_millisecond() {
    let now = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or(Duration::ZERO).as_millis()
    };
    let begun = now();
    while now() == begun {
        std::thread::yield_now();
    }
}

fn replaced<'n, A: AsRef<str> + 'n, B: AsRef<str> + 'n>(
    bytes: &[u8],
    names: impl Iterator<Item = (&'n A, &'n B)>,
) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (from, to) in names {
        let (from, to) = (from.as_ref().as_bytes(), to.as_ref().as_bytes());
        let mut at = 0;
        while let Some(found) = bytes[at..].windows(from.len()).position(|window| window == from) {
            bytes.splice(at + found..at + found + from.len(), to.iter().copied());
            at += found + to.len();
        }
    }
    bytes
}

/// Plays a whole script; the answers of its calls, `None` for other steps.
pub fn play<T: Target>(target: &mut T, script: &Script, run: usize) -> Result<Vec<Option<Answer>>, String> {
    let mut player = Player::new(target, run);
    script.lines.iter().map(|line| player.step(&line.step)).collect()
}

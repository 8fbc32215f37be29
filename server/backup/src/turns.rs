//! Turns: changes that the log does not show (schema, splits, merges), shipped beside it so that a restore
//! can follow them.
//!
//! Turns are numbered by the database. Those that follow each other are an object `log/RUN/turns-FROM-TO`,
//! with the numbers of the first and the last in hexadecimal digits of fixed length. Its payload is a line of
//! JSON ([`Head`]) and the edits of the engine's manifest, one behind the other. A turn that a restore cannot
//! follow is in no object: the numbers have a gap there.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::object::Kind;
use crate::vault::Vault;

/// Folder of the log.
pub(crate) const FOLDER: &str = "log";

/// Begins the names of the objects.
const PREFIX: &str = "turns-";

/// The format of the objects.
const FORMAT: u32 = 1;

/// A change that the log does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number in the database, from 1.
    pub number: u64,
    /// Sequence id of the last edit before it.
    pub position: u64,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// The edit of the engine's manifest.
    pub edit: Vec<u8>,
}

/// The numbers of the turns of an object, both ends included. They sort in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Numbers {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: u32,
    /// Name of the object.
    name: String,
    turns: Vec<Described>,
}

/// A turn without its edit.
#[derive(Debug, Serialize, Deserialize)]
struct Described {
    position: u64,
    time_ms: u64,
    /// Bytes of the edit.
    bytes: usize,
}

impl Numbers {
    fn name(self) -> String {
        format!("{PREFIX}{:016x}-{:016x}", self.from, self.to)
    }

    pub(crate) fn object(self, run: &str) -> String {
        format!("{FOLDER}/{run}/{}", self.name())
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (from, to) = name.strip_prefix(PREFIX)?.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let numbers = Self {
            from: number(from)?,
            to: number(to)?,
        };
        (numbers.name() == name && numbers.from <= numbers.to).then_some(numbers)
    }
}

/// The number of the last turn that follows `after` without a gap, in objects that are sorted.
pub(crate) fn reach(objects: &[Numbers], after: u64) -> u64 {
    objects.iter().fold(after, |reached, numbers| {
        if numbers.from <= reached + 1 {
            reached.max(numbers.to)
        } else {
            reached
        }
    })
}

impl Vault {
    /// Writes turns of a run, whose numbers follow each other. Returns the bytes written.
    pub async fn put_turns(&self, run: &str, turns: &[Turn]) -> Result<u64> {
        let ([first, ..], [.., last]) = (turns, turns) else {
            return Ok(0);
        };
        let numbers = Numbers {
            from: first.number,
            to: last.number,
        };
        let described = turns.iter().map(|turn| Described {
            position: turn.position,
            time_ms: turn.time_ms,
            bytes: turn.edit.len(),
        });
        let head = Head {
            format: FORMAT,
            name: numbers.name(),
            turns: described.collect(),
        };
        let edits: Vec<u8> = turns.iter().flat_map(|turn| turn.edit.iter().copied()).collect();
        self.put_headed(Kind::Log, &numbers.object(run), &head, &edits)
            .await
    }

    /// Reads the turns of an object.
    pub(crate) async fn turns(&self, run: &str, numbers: Numbers) -> Result<Vec<Turn>> {
        let name = numbers.object(run);
        let (head, edits): (Head, _) = self.open_headed(Kind::Log, &name).await?;
        let damaged = |what: &str| self.damaged(&name, what.to_owned());
        if head.format != FORMAT || head.name != numbers.name() {
            return Err(damaged("it has other turns, or is of another format"));
        }
        let mut rest = &edits[..];
        let mut turns = Vec::new();
        for (number, described) in (numbers.from..).zip(head.turns) {
            let Some((edit, behind)) = rest.split_at_checked(described.bytes) else {
                return Err(damaged("it is shorter than its head says"));
            };
            rest = behind;
            turns.push(Turn {
                number,
                position: described.position,
                time_ms: described.time_ms,
                edit: edit.to_vec(),
            });
        }
        if !rest.is_empty() || turns.last().map(|turn| turn.number) != Some(numbers.to) {
            return Err(damaged("it has another number of turns than its name says"));
        }
        Ok(turns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_reach_up_to_a_gap() {
        let objects: Vec<_> = [(1, 1), (2, 4), (6, 7)]
            .map(|(from, to)| Numbers { from, to })
            .to_vec();
        assert_eq!(
            [0, 1, 3, 4, 5, 9].map(|after| reach(&objects, after)),
            [4, 4, 4, 4, 7, 9]
        );
        assert!(
            objects
                .iter()
                .all(|numbers| Numbers::parse(&numbers.name()) == Some(*numbers))
        );
        assert_eq!(Numbers::parse("turns-0000000000000002-0000000000000001"), None);
        assert_eq!(Numbers::parse("turns-2-3"), None);
    }
}

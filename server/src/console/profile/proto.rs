//! A profile in the protocol buffers of Google's pprof (`profile.proto`), which `go tool pprof` and others
//! read. Field numbers are the format's: never change them.
//!
//! A name stands once, in the table of strings, whose first one is empty; other messages refer to
//! its position. A location is a function at a line: addresses would be meaningless on other
//! machines.

use std::collections::HashMap;

use prost::Message;

use super::{Function, Stack};

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<FunctionEntry>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct FunctionEntry {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The profile as it is being put together.
#[derive(Default)]
struct Tables<'s> {
    strings: HashMap<&'s str, i64>,
    functions: HashMap<&'s Function, u64>,
    locations: HashMap<(u64, u32), u64>,
    profile: Profile,
}

impl<'s> Tables<'s> {
    fn string(&mut self, text: &'s str) -> i64 {
        let table = &mut self.profile.string_table;
        *self.strings.entry(text).or_insert_with(|| {
            table.push(text.to_owned());
            table.len() as i64 - 1
        })
    }

    fn function(&mut self, function: &'s Function) -> u64 {
        if let Some(id) = self.functions.get(function) {
            return *id;
        }
        let (name, filename) = (self.string(&function.name), self.string(&function.file));
        let id = self.profile.function.len() as u64 + 1;
        self.profile.function.push(FunctionEntry {
            id,
            name,
            system_name: name,
            filename,
        });
        self.functions.insert(function, id);
        id
    }

    fn location(&mut self, function: &'s Function, line: u32) -> u64 {
        let function_id = self.function(function);
        let locations = &mut self.profile.location;
        *self.locations.entry((function_id, line)).or_insert_with(|| {
            let id = locations.len() as u64 + 1;
            let line = i64::from(line);
            locations.push(Location {
                id,
                line: vec![Line { function_id, line }],
            });
            id
        })
    }
}

/// The bytes. They are not compressed, which readers take as well.
pub(super) fn encode(stacks: &[Stack], seconds: u64, frequency: i32) -> Vec<u8> {
    let period = 1_000_000_000 / i64::from(frequency.max(1));
    let mut tables = Tables::default();
    tables.string("");
    let mut kind = |kind: &'static str, unit: &'static str| ValueType {
        kind: tables.string(kind),
        unit: tables.string(unit),
    };
    let (samples, time) = (kind("samples", "count"), kind("cpu", "nanoseconds"));
    tables.profile.sample_type = vec![samples, time.clone()];
    tables.profile.period_type = Some(time);
    tables.profile.period = period;
    tables.profile.duration_nanos = i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000_000);
    for stack in stacks {
        let calls = stack.calls.iter().rev();
        let location_id = calls
            .map(|(function, line)| tables.location(function, *line))
            .collect();
        let count = i64::try_from(stack.samples).unwrap_or(i64::MAX);
        let label = Label {
            key: tables.string("thread"),
            text: tables.string(&stack.thread),
        };
        tables.profile.sample.push(Sample {
            location_id,
            value: vec![count, count.saturating_mul(period)],
            label: vec![label],
        });
    }
    tables.profile.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An encoded profile can be decoded: names, lines, the innermost call first, and each name
    /// once.
    #[test]
    fn a_profile_reads_back() {
        let function = |name: &str| Function {
            name: name.to_owned(),
            file: "f.rs".to_owned(),
        };
        let stack = |calls: &[(&str, u32)], samples| Stack {
            thread: "basalt-net".to_owned(),
            calls: calls.iter().map(|(name, line)| (function(name), *line)).collect(),
            samples,
        };
        let stacks = [
            stack(&[("main", 1), ("get", 7)], 3),
            stack(&[("main", 1), ("get", 9)], 1),
        ];
        let profile = Profile::decode(&encode(&stacks, 2, 100)[..]).unwrap();
        let text = |position: i64| profile.string_table[position as usize].as_str();
        assert_eq!(text(0), "");
        let lines = |sample: &Sample| -> Vec<(String, i64)> {
            let of = |id: &u64| {
                let line = &profile.location[*id as usize - 1].line[0];
                let function = &profile.function[line.function_id as usize - 1];
                (text(function.name).to_owned(), line.line)
            };
            sample.location_id.iter().map(of).collect()
        };
        assert_eq!(
            lines(&profile.sample[0]),
            [("get".to_owned(), 7), ("main".to_owned(), 1)]
        );
        assert_eq!(lines(&profile.sample[1])[0], ("get".to_owned(), 9));
        assert_eq!(profile.sample[0].value, [3, 30_000_000]);
        assert_eq!((profile.function.len(), profile.location.len()), (2, 3));
        assert_eq!(text(profile.sample[0].label[0].text), "basalt-net");
        assert_eq!(
            (profile.period, profile.duration_nanos),
            (10_000_000, 2_000_000_000)
        );
    }
}

//! Code for HappyBase.

use std::fmt::Write as _;

use super::{Layout, arguments, letters, number_column, values, variable};
use crate::model::file::{FieldKind, Key, Pattern, PatternKind, Segment};
use crate::model::plan::{Condition, Newest, Step};
use crate::model::time::TimeForm;

/// Python's letters of the parts of a time.
const LETTERS: [&str; 6] = ["%Y", "%m", "%d", "%H", "%M", "%S"];

/// The beginning of every program: imports and helpers.
const HEAD: &str = r#"import hashlib
import json
import sys
from datetime import datetime, timezone

import happybase


def number(value, size, is_reversed=False):
    """A number as bytes, the highest first; reversed ones are subtracted from the greatest."""
    greatest = 2**63 - 1 if size == 8 else 2 ** (8 * size) - 1
    return (greatest - value if is_reversed else value).to_bytes(size, "big")


def digits(time_ms, format):
    """A time in UTC."""
    return datetime.fromtimestamp(time_ms // 1000, timezone.utc).strftime(format).encode()


def bucket(buckets, hashed):
    """The salt of some bytes: the first four bytes of their MD5, modulo the number of buckets."""
    return int.from_bytes(hashlib.md5(hashed).digest()[:4], "big") % buckets


def after(prefix):
    """The first key behind all that begin with the prefix; None: the end of the table."""
    prefix = prefix.rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def backwards(start, stop, size):
    """Start and stop of the same range for a reversed scan, of keys of this size."""

    def less_one(key):
        return (int.from_bytes(key, "big") - 1).to_bytes(len(key), "big")

    greatest = (less_one(stop) if stop else b"").ljust(size, b"\xff")
    return greatest, start if len(start) < size else less_one(start)

"#;

/// The module of a layout.
pub(in crate::model) fn module(layout: Layout<'_>) -> String {
    let mut out = format!(
        "\"\"\"{}: access patterns of the layout {}, for HappyBase.\n\nWritten by basalt-bench model. Tables are named as \
         they were measured.\n\"\"\"\n\n{HEAD}",
        layout.model.title.replace(['\\', '"'], "'"),
        layout.name
    );
    for (index, table) in layout.model.tables.iter().enumerate() {
        let key = layout.key(index);
        let parts: Vec<String> = key
            .segments
            .iter()
            .map(|segment| bytes_of(key, segment, "time_ms"))
            .collect();
        let _ = write!(
            out,
            "\ndef key_of_{}({}):\n    \"\"\"{}\"\"\"\n    return {}\n\n",
            table.name,
            values(key).join(", "),
            key.text,
            parts.join(" + ")
        );
    }
    for pattern in &layout.model.patterns {
        out += "\n";
        out += &match &pattern.kind {
            PatternKind::Write { batch } => write_rows(layout, pattern, *batch),
            PatternKind::Get => get(layout, pattern),
            PatternKind::Read { .. } => read(layout, pattern),
        };
        out += "\n";
    }
    out + &examples(layout)
}

/// The bytes of a segment of a key.
fn bytes_of(key: &Key, segment: &Segment, time: &str) -> String {
    let value = variable(segment, time);
    match &segment.field.kind {
        FieldKind::Salt { buckets, of } => {
            let hashed: Vec<String> = key
                .places(of)
                .map(|place| bytes_of(key, &key.segments[place], time))
                .collect();
            number_of(segment, &format!("bucket({buckets}, {})", hashed.join(" + ")))
        }
        FieldKind::Time(form) => match (letters(form, LETTERS), form) {
            (Some(letters), _) => format!("digits({value}, \"{letters}\")"),
            (None, TimeForm::Number { unit_ms: 1 }) => number_of(segment, value),
            (None, form) => number_of(segment, &format!("{value} // {}", form.span_ms())),
        },
        FieldKind::Id { .. } | FieldKind::Sequence => number_of(segment, value),
    }
}

fn number_of(segment: &Segment, value: &str) -> String {
    let size = segment.bytes().unwrap_or_default();
    match (segment.field.is_text, segment.bytes()) {
        (_, None) => format!("b\"%d\" % {value}"),
        (true, _) => format!("b\"%0{size}d\" % {value}"),
        (false, _) if segment.in_key.is_reversed() => format!("number({value}, {size}, True)"),
        (false, _) => format!("number({value}, {size})"),
    }
}

fn write_rows(layout: Layout<'_>, pattern: &Pattern, batch: u64) -> String {
    let key = layout.key(pattern.table);
    format!(
        "def {}(connection, rows):\n    \"\"\"{}: rows are ({}, cells).\"\"\"\n    \
         with connection.table(\"{}\").batch(batch_size={batch}) as batch:\n        \
         for *values, cells in rows:\n            batch.put(key_of_{}(*values), cells)\n",
        pattern.function(),
        pattern.name,
        values(key).join(", "),
        layout.tables[pattern.table].full_name,
        layout.table(pattern).name,
    )
}

fn get(layout: Layout<'_>, pattern: &Pattern) -> String {
    let key = layout.key(pattern.table);
    let values = values(key).join(", ");
    format!(
        "def {}(connection, {values}):\n    \"\"\"{}.\"\"\"\n    \
         return connection.table(\"{}\").row(key_of_{}({values}))\n",
        pattern.function(),
        pattern.name,
        layout.tables[pattern.table].full_name,
        layout.table(pattern).name,
    )
}

fn read(layout: Layout<'_>, pattern: &Pattern) -> String {
    let key = layout.key(pattern.table);
    let plan = layout.plan(pattern);
    let names: Vec<String> = arguments(layout, pattern)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let mut out = format!(
        "def {}({}):\n    \"\"\"{}: {}.\"\"\"\n    table = connection.table(\"{}\")\n    prefixes = [b\"\"]\n",
        pattern.function(),
        [&["connection".to_owned()], &names[..]].concat().join(", "),
        pattern.name,
        plan.words(key, Layout::span_ms(pattern)),
        layout.tables[pattern.table].full_name,
    );
    let mut has_ranges = false;
    for step in &plan.steps {
        has_ranges |= matches!(step, Step::Between(_));
        out += &step_text(key, *step);
    }
    if !has_ranges {
        out += "    ranges = [(prefix, after(prefix)) for prefix in prefixes]\n";
    }
    out += "    rows = []\n    for start, stop in ranges:\n";
    let limit = plan
        .newest
        .and(plan.latest)
        .map_or(String::new(), |latest| format!(", limit={latest}"));
    if plan.newest == Some(Newest::Last) {
        let size = key.layout.bytes().unwrap_or_default();
        let _ = writeln!(out, "        start, stop = backwards(start, stop, {size})");
        let _ = writeln!(
            out,
            "        rows += table.scan(row_start=start, row_stop=stop{limit}, reverse=True)"
        );
    } else {
        let _ = writeln!(
            out,
            "        rows += table.scan(row_start=start, row_stop=stop{limit})"
        );
    }
    for condition in &plan.filter {
        out += &condition_text(key, *condition);
    }
    let _ = writeln!(
        out,
        "    rows.sort(key=lambda row: row[1][b\"{}\"], reverse=True)",
        number_column(layout.table(pattern))
    );
    let newest = plan.latest.map_or(String::new(), |latest| format!("[:{latest}]"));
    out + &format!("    return rows{newest}\n")
}

fn step_text(key: &Key, step: Step) -> String {
    match step {
        Step::Known(place) | Step::Bucket(place) => {
            let bytes = bytes_of(key, &key.segments[place], "start_ms");
            format!("    prefixes = [prefix + {bytes} for prefix in prefixes]\n")
        }
        Step::Buckets(place) => {
            let segment = &key.segments[place];
            let FieldKind::Salt { buckets, .. } = segment.field.kind else {
                return String::new();
            };
            format!(
                "    prefixes = [prefix + {} for prefix in prefixes for bucket_number in range({buckets})]\n",
                number_of(segment, "bucket_number")
            )
        }
        Step::Each(place) => {
            let segment = &key.segments[place];
            let unit = segment.time().map_or(1, TimeForm::span_ms);
            format!(
                "    times = range(start_ms, end_ms, {unit})\n    \
                 prefixes = [prefix + {} for prefix in prefixes for time_ms in times]\n",
                bytes_of(key, segment, "time_ms")
            )
        }
        Step::Between(place) => {
            let (low, high) = ends(key, place);
            format!("    ranges = [(prefix + {low}, after(prefix + {high})) for prefix in prefixes]\n")
        }
    }
}

/// The lowest and the highest bytes of the span.
fn ends(key: &Key, place: usize) -> (String, String) {
    let segment = &key.segments[place];
    let first = bytes_of(key, segment, "start_ms");
    let last = bytes_of(key, segment, "(end_ms - 1)");
    if segment.in_key.is_reversed() {
        (last, first)
    } else {
        (first, last)
    }
}

fn condition_text(key: &Key, condition: Condition) -> String {
    let (Condition::Is(place) | Condition::Within(place)) = condition;
    let segment = &key.segments[place];
    let end = segment
        .bytes()
        .map_or(String::new(), |bytes| (segment.offset + bytes).to_string());
    let own = format!("row[0][{}:{end}]", segment.offset);
    let test = match condition {
        Condition::Is(_) => format!("{own} == {}", bytes_of(key, segment, "start_ms")),
        Condition::Within(_) if segment.time().is_some_and(TimeForm::is_sorted) => {
            let (low, high) = ends(key, place);
            format!("{low} <= {own} <= {high}")
        }
        Condition::Within(_) => {
            let unit = segment.time().map_or(1, TimeForm::span_ms);
            let bytes = bytes_of(key, segment, "time_ms");
            return format!(
                "    times = {{{bytes} for time_ms in range(start_ms, end_ms, {unit})}}\n    \
                 rows = [row for row in rows if {own} in times]\n"
            );
        }
    };
    format!("    rows = [row for row in rows if {test}]\n")
}

/// The program: it asks each question once, and prints the numbers of the rows.
fn examples(layout: Layout<'_>) -> String {
    let mut out = String::from(
        "\nif __name__ == \"__main__\":\n    host, port = sys.argv[1].rsplit(\":\", 1)\n    \
         connection = happybase.Connection(host, int(port))\n    answers = {}\n",
    );
    for pattern in &layout.model.patterns {
        let arguments = arguments(layout, pattern);
        let given: Vec<String> = arguments.iter().map(|(_, value)| value.to_string()).collect();
        let (name, column) = (pattern.function(), number_column(layout.table(pattern)));
        let label = pattern.name.replace('\\', "\\\\").replace('"', "\\\"");
        match pattern.kind {
            PatternKind::Write { .. } => {
                let made = &layout.tables[pattern.table];
                let row = made.data.question(pattern, 0, made.rows).row;
                let _ = writeln!(
                    out,
                    "    {name}(connection, [({}, {{b\"{column}\": number({row}, 8)}})])",
                    given.join(", ")
                );
            }
            PatternKind::Get => {
                let _ = writeln!(
                    out,
                    "    rows = [(None, {name}(connection, {}))]",
                    given.join(", ")
                );
            }
            PatternKind::Read { .. } => {
                let given = [&["connection".to_owned()], &given[..]].concat().join(", ");
                let _ = writeln!(out, "    rows = {name}({given})");
            }
        }
        if !matches!(pattern.kind, PatternKind::Write { .. }) {
            let _ = writeln!(
                out,
                "    answers[\"{label}\"] = [int.from_bytes(cells[b\"{column}\"], \"big\") for _, cells in rows]"
            );
        }
    }
    out + "    print(json.dumps(answers))\n"
}

//! Code for HBase's shell, which Basalt's has, too: tables, rows, and an example of each question.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Layout, number_column};
use crate::model::file::{Pattern, PatternKind};
use crate::model::plan::{Newest, start_and_stop};

/// Most scans of one example that are written out.
const SCANS_MAX: usize = 64;

/// Bytes in double quotes.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' | b'#' => {
                let _ = write!(out, "\\x{byte:02X}");
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02X}");
            }
        }
    }
    out.push('"');
    out
}

/// The script of a layout.
pub(in crate::model) fn script(layout: Layout<'_>) -> String {
    let mut out = format!(
        "# {}: tables and access patterns of the layout {}, for the shell.\n# Written by basalt-bench model.\n",
        layout.model.title, layout.name
    );
    for index in 0..layout.model.tables.len() {
        out += &create(layout, index);
        out += &rows(layout, index);
    }
    for pattern in &layout.model.patterns {
        out += &example(layout, pattern);
    }
    out
}

fn create(layout: Layout<'_>, index: usize) -> String {
    let (table, made) = (&layout.model.tables[index], &layout.tables[index]);
    let families = table.families.iter().map(|family| {
        let mut options = format!("NAME => '{}'", family.name);
        if let Some(compression) = family.compression.and_then(basalt_client::Compression::name) {
            let _ = write!(options, ", COMPRESSION => '{compression}'");
        }
        if let Some(versions) = family.versions {
            let _ = write!(options, ", VERSIONS => {versions}");
        }
        if let Some(seconds) = family.ttl_seconds {
            let _ = write!(options, ", TTL => {seconds}");
        }
        format!("{{{options}}}")
    });
    let families: Vec<String> = families.collect();
    let splits: Vec<String> = made.splits.iter().map(|split| quoted(split)).collect();
    let splits = if splits.is_empty() {
        String::new()
    } else {
        format!("SPLITS => [{}], ", splits.join(", "))
    };
    format!(
        "\ncreate '{}', {}, {{{splits}METADATA => {{'basalt.key_layout' => '{}'}}}}\n",
        made.full_name,
        families.join(", "),
        layout.key(index).text
    )
}

/// The rows that answer the examples.
fn rows(layout: Layout<'_>, index: usize) -> String {
    let made = &layout.tables[index];
    let of_table = layout
        .model
        .patterns
        .iter()
        .filter(|pattern| pattern.table == index);
    let rows: BTreeSet<u64> = of_table
        .map(|pattern| made.data.question(pattern, 0, made.rows).row)
        .collect();
    let put = |row: u64| {
        format!(
            "put '{}', {}, '{}', {}\n",
            made.full_name,
            quoted(&made.data.key(layout.key(index), row)),
            number_column(&layout.model.tables[index]),
            quoted(&row.to_be_bytes())
        )
    };
    rows.into_iter().map(put).collect()
}

fn example(layout: Layout<'_>, pattern: &Pattern) -> String {
    let (key, made) = (layout.key(pattern.table), &layout.tables[pattern.table]);
    let question = made.data.question(pattern, 0, made.rows);
    match pattern.kind {
        PatternKind::Write { .. } => String::new(),
        PatternKind::Get => format!(
            "\n# {}\nget '{}', {}\n",
            pattern.name,
            made.full_name,
            quoted(&made.data.key(key, question.row))
        ),
        PatternKind::Read { .. } => {
            let plan = layout.plan(pattern);
            let mut out = format!(
                "\n# {}: {}.\n",
                pattern.name,
                plan.words(key, Layout::span_ms(pattern))
            );
            let ranges = plan.ranges(&made.data, key, &question);
            for range in ranges.iter().take(SCANS_MAX) {
                let (start, stop) = start_and_stop(range, plan.newest, key.layout.bytes());
                let mut options = vec![format!("STARTROW => {}", quoted(&start))];
                if !stop.is_empty() {
                    options.push(format!("STOPROW => {}", quoted(&stop)));
                }
                if let Some(latest) = plan.newest.and(plan.latest) {
                    options.push(format!("LIMIT => {latest}"));
                }
                if plan.newest == Some(Newest::Last) {
                    options.push("REVERSED => true".to_owned());
                }
                let _ = writeln!(out, "scan '{}', {{{}}}", made.full_name, options.join(", "));
            }
            if ranges.len() > SCANS_MAX {
                let _ = writeln!(out, "# and {} more", ranges.len() - SCANS_MAX);
            }
            out
        }
    }
}

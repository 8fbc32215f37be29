//! Code for HBase's Java client.

use std::fmt::Write as _;

use super::{Layout, arguments, letters, number_column, values, variable};
use crate::model::file::{FieldKind, Key, Pattern, PatternKind, Segment};
use crate::model::plan::{Condition, Newest, Step};
use crate::model::time::TimeForm;

/// Java's letters of the parts of a time.
const LETTERS: [&str; 6] = ["yyyy", "MM", "dd", "HH", "mm", "ss"];

const HEAD: &str = r"import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

";

const HELPERS: &str = r#"
  /** A number as bytes, the highest first; reversed ones are subtracted from the greatest. */
  static byte[] number(long value, int size, boolean reversed) {
    long greatest = size == 8 ? Long.MAX_VALUE : (1L << (8 * size)) - 1;
    byte[] all = Bytes.toBytes(reversed ? greatest - value : value);
    return Arrays.copyOfRange(all, 8 - size, 8);
  }

  /** A number in decimal digits. */
  static byte[] text(long value, int size) {
    return String.format(size == 0 ? "%d" : "%0" + size + "d", value).getBytes(StandardCharsets.US_ASCII);
  }

  /** A time in UTC. */
  static byte[] digits(long timeMs, String format) {
    DateTimeFormatter formatter = DateTimeFormatter.ofPattern(format).withZone(ZoneOffset.UTC);
    return formatter.format(Instant.ofEpochMilli(timeMs)).getBytes(StandardCharsets.US_ASCII);
  }

  /** The salt of some bytes: the first four bytes of their MD5, modulo the number of buckets. */
  static long bucket(int buckets, byte[]... hashed) {
    try {
      byte[] digest = MessageDigest.getInstance("MD5").digest(Bytes.add(hashed));
      return Integer.toUnsignedLong(Bytes.toInt(digest)) % buckets;
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The first key behind all that begin with the prefix; empty: the end of the table. */
  static byte[] after(byte[] prefix) {
    int length = prefix.length;
    while (length > 0 && prefix[length - 1] == (byte) 0xff) {
      length--;
    }
    byte[] after = Arrays.copyOf(prefix, length);
    if (length > 0) {
      after[length - 1]++;
    }
    return after;
  }

  /** Reads a range, backwards if its newest rows are last; limit 0: all rows. */
  static void read(Table table, byte[] start, byte[] stop, int limit, boolean backwards, List<Result> rows)
      throws IOException {
    Scan scan = new Scan();
    if (backwards) {
      scan.setReversed(true).withStartRow(stop, false).withStopRow(start, true);
    } else {
      scan.withStartRow(start).withStopRow(stop);
    }
    if (limit > 0) {
      scan.setLimit(limit);
    }
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result row : scanner) {
        rows.add(row);
      }
    }
  }

  /** Appends each of the ends to each of the prefixes. */
  static List<byte[]> times(List<byte[]> prefixes, List<byte[]> ends) {
    List<byte[]> all = new ArrayList<>();
    for (byte[] prefix : prefixes) {
      for (byte[] end : ends) {
        all.add(Bytes.add(prefix, end));
      }
    }
    return all;
  }
"#;

/// `latest_20_of_a_user` as `latest20OfAUser`.
fn camel(name: &str) -> String {
    let words = name.split('_').enumerate().map(|(index, word)| {
        let mut letters = word.chars();
        match (index, letters.next()) {
            (0, _) | (_, None) => word.to_owned(),
            (_, Some(first)) => first.to_ascii_uppercase().to_string() + letters.as_str(),
        }
    });
    words.collect()
}

/// The name of a layout's class.
pub(in crate::model) fn class_name(layout: &str) -> String {
    camel(&format!("_{layout}_layout"))
}

/// The class of a layout.
pub(in crate::model) fn class(layout: Layout<'_>) -> String {
    let mut out = format!(
        "{HEAD}/**\n * {}: access patterns of the layout {}. Written by basalt-bench model; tables are named as they were\n \
         * measured.\n */\nfinal class {} {{\n  private {}() {{}}\n{HELPERS}",
        layout.model.title.replace("*/", "* /"),
        layout.name,
        class_name(layout.name),
        class_name(layout.name),
    );
    for (index, table) in layout.model.tables.iter().enumerate() {
        let key = layout.key(index);
        let parts: Vec<String> = key
            .segments
            .iter()
            .map(|segment| bytes_of(key, segment, "timeMs"))
            .collect();
        let _ = write!(
            out,
            "\n  /** {} */\n  static byte[] {}({}) {{\n    return {};\n  }}\n",
            key.text,
            key_function(&table.name),
            parameters(&values(key)),
            joined(&parts)
        );
    }
    for pattern in &layout.model.patterns {
        out += &match pattern.kind {
            PatternKind::Write { .. } => write_rows(layout, pattern),
            PatternKind::Get => get(layout, pattern),
            PatternKind::Read { .. } => read(layout, pattern),
        };
    }
    out + "}\n"
}

fn key_function(table: &str) -> String {
    camel(&format!("key_of_{table}"))
}

fn parameters(names: &[&str]) -> String {
    let names = names.iter().map(|name| format!("long {}", camel(name)));
    names.collect::<Vec<_>>().join(", ")
}

/// The sum of byte arrays.
fn joined(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        parts => format!("Bytes.add(new byte[][] {{{}}})", parts.join(", ")),
    }
}

fn bytes_of(key: &Key, segment: &Segment, time: &str) -> String {
    let value = camel(variable(segment, time));
    match &segment.field.kind {
        FieldKind::Salt { buckets, of } => {
            let hashed: Vec<String> = key
                .places(of)
                .map(|place| bytes_of(key, &key.segments[place], time))
                .collect();
            number_of(segment, &format!("bucket({buckets}, {})", hashed.join(", ")))
        }
        FieldKind::Time(form) => match (letters(form, LETTERS), form) {
            (Some(letters), _) => format!("digits({value}, \"{letters}\")"),
            (None, TimeForm::Number { unit_ms: 1 }) => number_of(segment, &value),
            (None, form) => number_of(segment, &format!("{value} / {}L", form.span_ms())),
        },
        FieldKind::Id { .. } | FieldKind::Sequence => number_of(segment, &value),
    }
}

fn number_of(segment: &Segment, value: &str) -> String {
    match (segment.field.is_text, segment.bytes()) {
        (_, None) => format!("text({value}, 0)"),
        (true, Some(size)) => format!("text({value}, {size})"),
        (false, Some(size)) => format!("number({value}, {size}, {})", segment.in_key.is_reversed()),
    }
}

fn write_rows(layout: Layout<'_>, pattern: &Pattern) -> String {
    format!(
        "\n  /** {}: gather puts of keys from {}, and send them together. */\n  \
         static void {}(Connection connection, List<Put> rows) throws IOException {{\n    \
         try (Table table = connection.getTable(TableName.valueOf(\"{}\"))) {{\n      table.put(rows);\n    }}\n  }}\n",
        pattern.name,
        key_function(&layout.table(pattern).name),
        camel(&pattern.function()),
        layout.tables[pattern.table].full_name
    )
}

fn get(layout: Layout<'_>, pattern: &Pattern) -> String {
    let names = values(layout.key(pattern.table));
    let given: Vec<String> = names.iter().map(|name| camel(name)).collect();
    format!(
        "\n  /** {}. */\n  static Result {}(Connection connection, {}) throws IOException {{\n    \
         try (Table table = connection.getTable(TableName.valueOf(\"{}\"))) {{\n      \
         return table.get(new Get({}({})));\n    }}\n  }}\n",
        pattern.name,
        camel(&pattern.function()),
        parameters(&names),
        layout.tables[pattern.table].full_name,
        key_function(&layout.table(pattern).name),
        given.join(", ")
    )
}

fn read(layout: Layout<'_>, pattern: &Pattern) -> String {
    let key = layout.key(pattern.table);
    let plan = layout.plan(pattern);
    let names: Vec<String> = arguments(layout, pattern)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let more = if names.is_empty() { "" } else { ", " };
    let mut out = format!(
        "\n  /** {}: {}. */\n  static List<Result> {}(Connection connection{more}{}) throws IOException {{\n    \
         List<byte[]> prefixes = List.of(new byte[0]);\n",
        pattern.name,
        plan.words(key, Layout::span_ms(pattern)),
        camel(&pattern.function()),
        parameters(&names)
    );
    let (mut low, mut high) = ("prefix".to_owned(), "prefix".to_owned());
    for (index, step) in plan.steps.iter().enumerate() {
        if let Step::Between(place) = *step {
            let (first, last) = ends(key, place);
            low = format!("Bytes.add(prefix, {first})");
            high = format!("Bytes.add(prefix, {last})");
        } else {
            out += &step_text(key, *step, index);
        }
    }
    let limit = plan.newest.and(plan.latest).unwrap_or(0);
    let _ = write!(
        out,
        "    List<Result> rows = new ArrayList<>();\n    \
         try (Table table = connection.getTable(TableName.valueOf(\"{}\"))) {{\n      \
         for (byte[] prefix : prefixes) {{\n        read(table, {low}, after({high}), {limit}, {}, rows);\n      }}\n    }}\n",
        layout.tables[pattern.table].full_name,
        plan.newest == Some(Newest::Last),
    );
    for condition in &plan.filter {
        out += &condition_text(key, *condition);
    }
    let column = number_column(layout.table(pattern));
    let (family, qualifier) = column.split_once(':').unwrap_or((&column, ""));
    let _ = write!(
        out,
        "    byte[] family = Bytes.toBytes(\"{family}\");\n    byte[] number = Bytes.toBytes(\"{qualifier}\");\n    \
         rows.sort((a, b) -> Bytes.compareTo(b.getValue(family, number), a.getValue(family, number)));\n"
    );
    match plan.latest {
        Some(latest) => {
            out + &format!("    return rows.subList(0, Math.min({latest}, rows.size()));\n  }}\n")
        }
        None => out + "    return rows;\n  }\n",
    }
}

fn step_text(key: &Key, step: Step, index: usize) -> String {
    match step {
        Step::Known(place) | Step::Bucket(place) => {
            let bytes = bytes_of(key, &key.segments[place], "startMs");
            format!("    prefixes = times(prefixes, List.of({bytes}));\n")
        }
        Step::Buckets(place) => {
            let segment = &key.segments[place];
            let FieldKind::Salt { buckets, .. } = segment.field.kind else {
                return String::new();
            };
            format!(
                "    List<byte[]> ends{index} = new ArrayList<>();\n    \
                 for (long salt{index} = 0; salt{index} < {buckets}; salt{index}++) {{\n      \
                 ends{index}.add({});\n    }}\n    prefixes = times(prefixes, ends{index});\n",
                number_of(segment, &format!("salt{index}"))
            )
        }
        Step::Each(place) => {
            let segment = &key.segments[place];
            let unit = segment.time().map_or(1, TimeForm::span_ms);
            format!(
                "    List<byte[]> ends{index} = new ArrayList<>();\n    \
                 for (long at{index} = startMs; at{index} < endMs; at{index} += {unit}L) {{\n      \
                 ends{index}.add({});\n    }}\n    prefixes = times(prefixes, ends{index});\n",
                bytes_of(key, segment, &format!("at{index}"))
            )
        }
        Step::Between(_) => String::new(),
    }
}

/// The lowest and the highest bytes of the span.
fn ends(key: &Key, place: usize) -> (String, String) {
    let segment = &key.segments[place];
    let first = bytes_of(key, segment, "startMs");
    let last = bytes_of(key, segment, "(endMs - 1)");
    if segment.in_key.is_reversed() {
        (last, first)
    } else {
        (first, last)
    }
}

fn condition_text(key: &Key, condition: Condition) -> String {
    let (Condition::Is(place) | Condition::Within(place)) = condition;
    let segment = &key.segments[place];
    let end = segment.bytes().map_or("row.getRow().length".to_owned(), |bytes| {
        (segment.offset + bytes).to_string()
    });
    let own = format!("Arrays.copyOfRange(row.getRow(), {}, {end})", segment.offset);
    match condition {
        Condition::Is(_) => {
            let bytes = bytes_of(key, segment, "startMs");
            format!("    rows.removeIf(row -> !Bytes.equals({own}, {bytes}));\n")
        }
        Condition::Within(_) if segment.time().is_some_and(TimeForm::is_sorted) => {
            let (low, high) = ends(key, place);
            format!(
                "    rows.removeIf(row -> Bytes.compareTo({own}, {low}) < 0 || Bytes.compareTo({own}, {high}) > 0);\n"
            )
        }
        Condition::Within(_) => {
            let unit = segment.time().map_or(1, TimeForm::span_ms);
            let bytes = bytes_of(key, segment, "at");
            format!(
                "    List<byte[]> times = new ArrayList<>();\n    \
                 for (long at = startMs; at < endMs; at += {unit}L) {{\n      times.add({bytes});\n    }}\n    \
                 rows.removeIf(row -> times.stream().noneMatch(time -> Bytes.equals({own}, time)));\n"
            )
        }
    }
}

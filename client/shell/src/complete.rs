//! Completion of a line by the tab key: commands, names of tables, options.
//!
//! A command's arguments are read from its help: one whose forms begin with `name 't'` takes a
//! table, and the words before `=>` are its options. So a new command is completed as soon as it
//! has help.

use super::read_options::{COUNT_OPTIONS, GET_OPTIONS, SCAN_OPTIONS};
use super::{commands, help};

/// Where a line is, up to the cursor.
struct Place<'l> {
    /// The command's name, as far as it is written.
    command: &'l str,
    /// The text behind the name; `None` while the name itself is being written.
    arguments: Option<&'l str>,
    /// Where the last string begins, behind its quote, if it is still open.
    open_string: Option<(usize, char)>,
    /// The first argument is not over yet.
    is_first: bool,
}

/// Takes a line apart. For a line that is no command the place is arbitrary, and completion offers
/// nothing.
fn place(line: &str) -> Place<'_> {
    let (mut begin, mut open_string, mut is_first, mut escaped) = (0, None, true, false);
    for (at, letter) in line.char_indices() {
        match (open_string, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some((_, quote)), _) if letter == quote => open_string = None,
            (None, '\'' | '"') => open_string = Some((at + 1, letter)),
            (None, ';') => (begin, is_first) = (at + 1, true),
            (None, ',' | '{' | '[') => is_first = false,
            _ => {}
        }
    }
    let text = line[begin..].trim_start();
    let name = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    Place {
        command: &text[..name.unwrap_or(text.len())],
        arguments: name.map(|end| &text[end..]),
        open_string,
        is_first,
    }
}

/// The start of the word at the end of `line`, the text up to the cursor, and its possible
/// completions. `tables` is called only to complete a table's name.
pub fn complete(line: &str, tables: impl FnOnce() -> Vec<String>) -> (usize, Vec<String>) {
    let place = place(line);
    let Some(arguments) = place.arguments else {
        return (
            line.len() - place.command.len(),
            beginning(place.command, help::names().map(|name| format!("{name} "))),
        );
    };
    if let Some((begin, quote)) = place.open_string {
        let written = &line[begin..];
        let closed = |name: String| format!("{name}{quote}");
        let words = if !place.is_first {
            Vec::new()
        } else if place.command == "help" {
            beginning(written, help::names().map(|name| closed(name.to_owned())))
        } else if commands::takes_table(place.command) {
            beginning(written, tables().into_iter().map(closed))
        } else {
            Vec::new()
        };
        return (begin, words);
    }
    if place.is_first && arguments.trim_matches([' ', '(']).is_empty() {
        let names = if commands::takes_table(place.command) {
            tables()
        } else {
            Vec::new()
        };
        return (
            line.len(),
            names.into_iter().map(|name| format!("'{name}'")).collect(),
        );
    }
    let end = arguments.trim_end_matches(|letter: char| letter.is_ascii_uppercase() || letter == '_');
    let written = &arguments[end.len()..];
    // A pair begins behind a comma or a brace; without braces also behind the command.
    let words = if end.trim_end().ends_with([',', '{']) || end.trim().is_empty() {
        let options = options(place.command);
        beginning(written, options.into_iter().map(|option| format!("{option} => ")))
    } else {
        Vec::new()
    };
    (line.len() - written.len(), words)
}

/// The options of a command, sorted.
fn options(command: &str) -> Vec<&'static str> {
    let mut options = match commands::canonical(command) {
        "scan" => SCAN_OPTIONS.to_vec(),
        "get" => GET_OPTIONS.to_vec(),
        "count" => [&COUNT_OPTIONS[..], &SCAN_OPTIONS].concat(),
        other => commands::options(other),
    };
    options.sort_unstable();
    options.dedup();
    options
}

/// The words that begin so.
fn beginning(written: &str, words: impl Iterator<Item = String>) -> Vec<String> {
    words.filter(|word| word.starts_with(written)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line completed with each word.
    fn lines(line: &str) -> Vec<String> {
        let tables = || vec!["t1".to_owned(), "t2".to_owned(), "ns:u".to_owned()];
        let (begin, words) = complete(line, tables);
        let line = &line[..begin];
        words.iter().map(|word| format!("{line}{word}")).collect()
    }

    #[test]
    fn commands_are_completed() {
        assert_eq!(lines("sca"), ["scan "]);
        assert_eq!(lines("  list; maj"), ["  list; major_compact "]);
        assert!(lines("").len() > 40 && lines("zz").is_empty());
        assert_eq!(lines("help 'compaction_st"), ["help 'compaction_state'"]);
    }

    #[test]
    fn tables_are_completed_where_a_command_takes_one() {
        assert_eq!(lines("scan 't"), ["scan 't1'", "scan 't2'"]);
        assert_eq!(lines("scan('n"), ["scan('ns:u'"]);
        assert_eq!(lines("put \"t1"), ["put \"t1\""]);
        assert_eq!(lines("snapshot 'n"), ["snapshot 'ns:u'"]);
        assert_eq!(lines("count "), ["count 't1'", "count 't2'", "count 'ns:u'"]);
        assert_eq!(lines("put ';', 'a'; scan 'n"), ["put ';', 'a'; scan 'ns:u'"]);
        assert!(lines("create 't").is_empty(), "the table is new");
        assert!(lines("put 't1', 't").is_empty(), "that is a row");
        assert!(lines("status 't").is_empty());
    }

    #[test]
    fn options_are_completed() {
        assert_eq!(lines("scan 't1', {LIM"), ["scan 't1', {LIMIT => "]);
        assert_eq!(lines("count 't1', INT"), ["count 't1', INTERVAL => "]);
        assert_eq!(
            lines("get 't1', 'r', {VERSIONS => 3, TIME"),
            [
                "get 't1', 'r', {VERSIONS => 3, TIMERANGE => ",
                "get 't1', 'r', {VERSIONS => 3, TIMESTAMP => "
            ]
        );
        assert_eq!(lines("set_quota THROTTLE_"), ["set_quota THROTTLE_TYPE => "]);
        assert!(lines("scan 't1', {STARTROW => 'x', FILTER => \"Pre").is_empty());
        assert!(lines("scan 't1', {LIMIT => T").is_empty(), "that is a value");
    }
}

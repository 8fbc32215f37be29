//! Help: all commands, a group, or one command.

use super::commands::{Entry, GROUPS, Group, absence, entries, find};
use super::syntax::NOT_RUBY;
use super::{ShellError, ShellResult};

/// The first sentence of a command's meaning.
fn first_sentence(entry: &Entry) -> &'static str {
    entry
        .meaning
        .find(". ")
        .map_or(entry.meaning, |end| &entry.meaning[..=end])
}

/// The names of all commands that this server has, for completion.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|entry| entry.name)
}

/// Ruby's methods that run a file, which people write in HBase's shell.
const SCRIPTS: [&str; 3] = ["load", "require_relative", "source"];

/// The answer to a name that is no command.
pub(super) fn unknown_command(name: &str) -> String {
    if SCRIPTS.contains(&name) {
        return format!(
            "{name} is Ruby: basalt-shell FILE, or basalt-shell < FILE, runs the commands of a file, with -n up to the first \
             error; {NOT_RUBY}"
        );
    }
    let near = names().map(|known| (distance(name, known), known)).min();
    match near {
        Some((distance, known)) if distance <= 2 && distance < name.len() => {
            format!("unknown command '{name}'; did you mean {known}?")
        }
        _ => format!(
            "unknown command '{name}'; help lists all, and {name} = get_table 'name' makes a variable"
        ),
    }
}

/// The answer to a command that HBase's shell has and this server has not.
pub(super) fn absent_command(name: &str, why: &str) -> String {
    format!("{name} is not available: {why}")
}

/// Help for a command or a group, or the list of all.
pub(super) fn text(topic: Option<&str>) -> ShellResult<String> {
    let Some(topic) = topic else {
        return Ok(overview());
    };
    if let Some(entry) = find(topic) {
        let forms = entry.usage.replace('\n', "\n  ");
        return Ok(format!("{}\n\n  {forms}", entry.meaning));
    }
    if let Some(why) = absence(topic) {
        return Ok(absent_command(topic, why));
    }
    match GROUPS.iter().find(|group| group.name == topic) {
        Some(group) => Ok(group_text(group)),
        None => Err(ShellError::Arguments(unknown_command(topic))),
    }
}

fn overview() -> String {
    let mut text = String::from(
        "Commands, by group. help 'command' shows how one is written, help 'ddl' a line for each of a group.\n",
    );
    for group in GROUPS.iter().filter(|group| !group.entries.is_empty()) {
        let names: Vec<&str> = group.entries.iter().map(|entry| entry.name).collect();
        text.extend(["\n  ", group.name, ": ", &names.join(", "), "\n"]);
    }
    let absent = GROUPS.iter().filter(|group| group.entries.is_empty());
    let absent: Vec<String> = absent.map(|group| format!("'{}'", group.name)).collect();
    text.extend([
        "\nHBase's groups without a command on one node; help says why: ",
        &absent.join(", "),
        "\n\nNames and values are strings: 'text' as it is, \"text\" with \\x00, \\n and so on.\n\
         Options are pairs: {VERSIONS => 3}. Several commands in a line are separated by ';'.\n\
         Variables and loops: t = get_table 't'; 10.times { |i| t.put \"row#{i}\", 'f:q', \"v#{i}\" }",
    ]);
    text
}

fn group_text(group: &Group) -> String {
    let width = group.entries.iter().map(|entry| entry.name.len()).max();
    let width = width.unwrap_or_default();
    let mut lines: Vec<String> = group
        .entries
        .iter()
        .map(|entry| format!("  {:width$}  {}", entry.name, first_sentence(entry)))
        .collect();
    for absent in group.absent {
        let names = absent.names.join(", ");
        lines.push(format!("  not available: {names}\n    {}", absent.why));
    }
    lines.join("\n")
}

/// Number of letters in which two words differ: Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        assert!(unknown_command("scna").ends_with("did you mean scan?"));
        assert!(unknown_command("rebalance_all").contains("help lists all"));
    }

    #[test]
    fn a_script_is_run_in_another_way() {
        let answer = unknown_command("load");
        assert!(
            answer.contains("basalt-shell FILE") && answer.contains(NOT_RUBY),
            "{answer}"
        );
    }

    /// The README's table of refused commands has refused commands only.
    #[test]
    fn the_readme_refuses_what_the_shell_refuses() {
        let (_, commands) = include_str!("../README.md").split_once("## Commands").unwrap();
        let lines = commands.lines().filter(|line| line.starts_with("| "));
        let mut found = 0;
        for line in lines.skip(1) {
            let first = line.split('|').nth(1).unwrap();
            for name in first.split('`').skip(1).step_by(2) {
                assert!(absence(name).is_some(), "{name} is not refused: {line}");
                found += 1;
            }
        }
        assert!(found > 10, "{found} names");
    }

    /// Every group and every command has help, and a group's help has a line for each command.
    #[test]
    fn everything_has_help() {
        for group in GROUPS {
            let of_group = text(Some(group.name)).unwrap();
            assert!(overview().contains(group.name), "{}", group.name);
            for entry in group.entries {
                let line = format!("  {} ", entry.name);
                assert!(
                    of_group.contains(&line) && overview().contains(entry.name),
                    "{of_group}"
                );
                assert!(text(Some(entry.name)).unwrap().starts_with(entry.meaning));
            }
            for absent in group.absent.iter().flat_map(|absent| absent.names) {
                assert!(of_group.contains(absent), "{of_group}");
                assert!(text(Some(absent)).unwrap().contains("is not available: "));
            }
        }
        assert!(text(Some("no such topic")).is_err());
    }
}

//! The shape of the crate: which modules may use which, and where the operating system is allowed
//! in.
//!
//! Both tests read the sources. Test code (files named `tests.rs`, folders named `tests`, and everything
//! below a `#[cfg(test)]`) may do as it likes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rows whose modules may use each other: words, not mechanisms.
const ROWS_OF_WORDS: usize = 2;

/// Names at the crate's root that are a module's.
const REEXPORTS: [(&str, &str); 4] = [
    ("Error", "error"),
    ("Kind", "error"),
    ("Result", "error"),
    ("Engine", "engine"),
];

/// A source file without its comments and its test code.
struct Source {
    /// Path below `src`.
    path: PathBuf,
    /// The first path component: `wal` for `wal/group.rs` and `wal.rs`.
    module: String,
    code: String,
}

fn source_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn sources() -> Vec<Source> {
    let root = source_dir();
    let mut found = Vec::new();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !is_test(path.strip_prefix(&root).unwrap())
            {
                let code = without_tests_and_comments(&std::fs::read_to_string(&path).unwrap());
                let path = path.strip_prefix(&root).unwrap().to_path_buf();
                let first = path.iter().next().unwrap().to_str().unwrap();
                let module = first.strip_suffix(".rs").unwrap_or(first).to_owned();
                found.push(Source { path, module, code });
            }
        }
    }
    assert!(
        found.len() > 20,
        "the sources were not found below {}",
        root.display()
    );
    found
}

/// Whether the file below `src` has only test code.
fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// Test modules stand last in a file, so everything from the first `#[cfg(test)]` on is test code, unless
/// that is one line.
fn without_tests_and_comments(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            if lines.peek().is_some_and(|next| next.trim_end().ends_with('{')) {
                break;
            }
            lines.next();
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// The row of every module, from the table in `lib.rs`.
fn rows() -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(source_dir().join("lib.rs")).unwrap();
    let mut rows = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("//! row ")) {
        let (number, rest) = line.split_once("  ").unwrap();
        let names = rest.split("   ").next().unwrap();
        for name in names.split_whitespace() {
            rows.insert(name.to_owned(), number.trim().parse().unwrap());
        }
    }
    rows
}

/// The first path components that follow `crate::` in `code`, those in braces too.
fn used_modules(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut used = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        // `$crate::` and names that end in `crate` are no paths of ours.
        if code[..at].ends_with(|c: char| is_word(c) || c == '$') {
            continue;
        }
        let rest = &code[at + found.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            used.push(rest.chars().take_while(|c| is_word(*c)).collect());
            continue;
        };
        let mut depth = 0;
        let mut name = String::new();
        let mut complete = false;
        for c in list.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    used.push(std::mem::take(&mut name));
                    complete = false;
                }
                c if depth == 0 && !complete && is_word(c) => name.push(c),
                c if depth == 0 && !name.is_empty() && !c.is_whitespace() => complete = true,
                _ => {}
            }
        }
        used.push(name);
    }
    used.retain(|name| !name.is_empty());
    used
}

#[test]
fn a_module_uses_only_rows_below_it() {
    let rows = rows();
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.module != "lib") {
        let own = *rows
            .get(&source.module)
            .unwrap_or_else(|| panic!("module {} has no row in lib.rs", source.module));
        for name in used_modules(&source.code) {
            let used = REEXPORTS
                .iter()
                .find(|(word, _)| *word == name)
                .map_or(name.as_str(), |(_, module)| module);
            if used == source.module {
                continue;
            }
            let Some(&row) = rows.get(used) else {
                panic!(
                    "{} uses crate::{used}, which has no row in lib.rs",
                    source.path.display()
                );
            };
            if row > own || (row == own && own >= ROWS_OF_WORDS) {
                wrong.push(format!(
                    "{} (row {own}) uses {used} (row {row})",
                    source.path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_operating_system_is_behind_the_seams() {
    let allowed = [Path::new("fs/real.rs"), Path::new("clock/mod.rs")];
    let mut wrong = Vec::new();
    for source in sources()
        .iter()
        .filter(|source| !allowed.contains(&source.path.as_path()))
    {
        for word in ["std::fs", "SystemTime"] {
            if source.code.contains(word) {
                wrong.push(format!("{} mentions {word}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reading of the sources itself: a parser that finds nothing would let everything pass.
#[test]
fn paths_are_found_in_every_form() {
    let code = without_tests_and_comments(
        "use crate::wal::Wal; // crate::gone\nuse crate::{Result, store::{A, B}, op::*};\nfn f() { crate::codec::x() }\n\
         #[cfg(test)]\nuse crate::dropped;\n$crate::macro_path\n#[cfg(test)]\nmod tests {\n crate::tests_only }",
    );
    assert_eq!(used_modules(&code), ["wal", "Result", "store", "op", "codec"]);
    let rows = rows();
    assert_eq!((rows["codec"], rows["engine"], rows["record"]), (0, 8, 1));
}

//! Imports between the modules of a crate, read from its sources.
//!
//! A module is known by its path below the crate's root: `["wal", "group"]`, empty for the root. An
//! import is a path in the code that begins with `crate`, `self` or `super`, in a `use` or anywhere
//! else. It leads to the module that defines the item: re-exports are followed. Test code is left out,
//! and so are comments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The path of a module or item below the crate's root.
pub(crate) type ModulePath = Vec<String>;

/// A module without its comments and its test code.
#[derive(Debug)]
pub(crate) struct Module {
    /// Path of the module.
    pub(crate) path: ModulePath,
    /// Code of the module.
    pub(crate) code: String,
}

/// The modules of a crate.
#[derive(Debug)]
pub(crate) struct Sources {
    modules: Vec<Module>,
    known: BTreeSet<ModulePath>,
    /// Names that a module re-exports, and where they lead.
    reexports: BTreeMap<ModulePath, ModulePath>,
}

/// An import: a module, the module that it imports from, and the path in the code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    /// The module that imports.
    pub(crate) from: ModulePath,
    /// The module that defines the item.
    pub(crate) to: ModulePath,
    /// The path as the code has it, from the crate's root.
    pub(crate) item: ModulePath,
}

impl Sources {
    /// The sources of the crate whose root file is `root`, in the folder of that file. Programs in
    /// `bin` are crates of their own.
    pub(crate) fn read(root: &Path) -> Self {
        let dir = root.parent().expect("a file is in a folder");
        let (mut modules, mut of_tests) = (Vec::new(), Vec::new());
        let mut dirs = vec![dir.to_path_buf()];
        while let Some(folder) = dirs.pop() {
            for entry in std::fs::read_dir(&folder).expect("the folder is readable") {
                let path = entry.expect("the folder is readable").path();
                if path.is_dir() {
                    if path != dir.join("bin") {
                        dirs.push(path);
                    }
                } else if let Some(module) = module_of(dir, root, &path) {
                    let text = std::fs::read_to_string(&path).expect("the file is text");
                    of_tests.extend(test_modules(&module, &text));
                    split(module, &without_tests_and_comments(&text), &mut modules);
                }
            }
        }
        modules.retain(|module| !of_tests.iter().any(|test| module.path.starts_with(test)));
        Self::of(modules)
    }

    fn of(modules: Vec<Module>) -> Self {
        let known = modules.iter().map(|module| module.path.clone()).collect();
        let mut sources = Self {
            modules,
            known,
            reexports: BTreeMap::new(),
        };
        let mut reexports = BTreeMap::new();
        for module in &sources.modules {
            for (name, path) in reexported(&module.code) {
                let name = [&module.path[..], &[name]].concat();
                let path = absolute(&path, &module.path, &sources.known);
                if path != name {
                    reexports.insert(name, path);
                }
            }
        }
        sources.reexports = reexports;
        sources
    }

    /// All modules.
    pub(crate) fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Imports from other modules. Those from a module that is inside the other one are left out: a
    /// folder is one unit with the files in it.
    pub(crate) fn imports(&self) -> BTreeSet<Import> {
        let mut imports = BTreeSet::new();
        for module in &self.modules {
            for path in paths(&module.code) {
                let Some(item) = from_root(&path, &module.path) else {
                    continue;
                };
                let to = self.module_of(&item);
                if !to.starts_with(&module.path) && !module.path.starts_with(&to) {
                    let from = module.path.clone();
                    imports.insert(Import { from, to, item });
                }
            }
        }
        imports
    }

    /// The module that defines an item. The number of steps is bounded: a re-export may lead to itself
    /// by way of a name that another kind of item has, too.
    fn module_of(&self, item: &[String]) -> ModulePath {
        let mut path = item.to_vec();
        for _ in 0..16 {
            let depth = (0..=path.len())
                .rev()
                .find(|depth| self.known.contains(&path[..*depth]));
            let depth = depth.unwrap_or_default();
            let Some(next) = path.get(..=depth).and_then(|name| self.reexports.get(name)) else {
                return path[..depth].to_vec();
            };
            path = [&next[..], &path[depth + 1..]].concat();
        }
        path
    }

    /// Circles between modules that are in the same folder, each as the imports that close it. An import
    /// counts for the folders on both sides too.
    pub(crate) fn circles(&self) -> Vec<Vec<Import>> {
        let mut folders: BTreeMap<ModulePath, BTreeMap<(String, String), Import>> = BTreeMap::new();
        for import in self.imports() {
            let common = (import.from.iter().zip(&import.to))
                .take_while(|(from, to)| from == to)
                .count();
            let pair = (import.from[common].clone(), import.to[common].clone());
            let folder = folders.entry(import.from[..common].to_vec()).or_default();
            folder.entry(pair).or_insert(import);
        }
        folders.values().flat_map(circles_in).collect()
    }
}

/// The shortest circle of each group of modules that reach each other.
fn circles_in(edges: &BTreeMap<(String, String), Import>) -> Vec<Vec<Import>> {
    let mut left: BTreeSet<&String> = edges.keys().map(|(from, _)| from).collect();
    let mut found = Vec::new();
    while let Some(start) = left.pop_first() {
        if let Some(circle) = way_back(start, edges) {
            for import in &circle {
                left.retain(|name| !import.from.contains(name));
            }
            found.push(circle);
        }
    }
    found
}

/// The shortest way from a module to itself.
fn way_back(start: &String, edges: &BTreeMap<(String, String), Import>) -> Option<Vec<Import>> {
    let mut ways: Vec<(&String, Vec<Import>)> = vec![(start, Vec::new())];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for (at, way) in ways {
            for ((_, to), import) in edges.iter().filter(|((from, _), _)| from == at) {
                let way = [&way[..], std::slice::from_ref(import)].concat();
                if to == start {
                    return Some(way);
                }
                if seen.insert(to) {
                    longer.push((to, way));
                }
            }
        }
        ways = longer;
    }
    None
}

/// The path of the module in a file; `None` if it is no source, or test code.
fn module_of(dir: &Path, root: &Path, file: &Path) -> Option<ModulePath> {
    let is_program = file == dir.join("main.rs") && file != root;
    if file.extension()? != "rs" || file.ends_with("tests.rs") || is_program {
        return None;
    }
    if file == root {
        return Some(Vec::new());
    }
    let path = file.strip_prefix(dir).ok()?.with_extension("");
    let mut path: ModulePath = path
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    path.pop_if(|last| last == "mod");
    Some(path)
}

/// Adds a module, and the modules that are written inside it. The code is formatted: the closing brace
/// stands under the first letter of the line that opens the module.
fn split(path: ModulePath, code: &str, modules: &mut Vec<Module>) {
    let mut own = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some(name) = opened_module(line) else {
            own.push_str(line);
            own.push('\n');
            continue;
        };
        let indentation = line.len() - line.trim_start().len();
        let end = format!("{}}}", &line[..indentation]);
        let inner: Vec<&str> = lines.by_ref().take_while(|line| **line != end).collect();
        split([&path[..], &[name]].concat(), &inner.join("\n"), modules);
    }
    modules.push(Module { path, code: own });
}

fn opened_module(line: &str) -> Option<String> {
    let (head, name) = line.trim_end().strip_suffix(" {")?.rsplit_once("mod ")?;
    let is_visibility = head.trim().is_empty() || head.trim_start().starts_with("pub");
    (is_visibility && name.chars().all(is_word)).then(|| name.to_owned())
}

/// The modules that a module declares for tests only.
fn test_modules(module: &[String], text: &str) -> Vec<ModulePath> {
    let lines: Vec<&str> = text.lines().collect();
    let names = lines.windows(2).filter_map(|pair| {
        let name = pair[1].strip_suffix(';')?.rsplit_once("mod ")?.1;
        (pair[0] == "#[cfg(test)]").then_some(name)
    });
    names.map(|name| [module, &[name.to_owned()]].concat()).collect()
}

/// Leaves out items under `#[cfg(test)]`, with all that follows a test module: those stand last.
pub(crate) fn without_tests_and_comments(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let is_module = |next: &&str| next.trim_end().ends_with('{');
            if line.starts_with('#') && lines.peek().is_some_and(is_module) {
                break;
            }
            // One line, or an item to its closing brace.
            let indentation = &line[..line.len() - line.trim_start().len()];
            let first = lines.next().unwrap_or_default();
            if first.trim_end().ends_with('{') {
                let end = format!("{indentation}}}");
                lines.by_ref().find(|line| *line == end);
            }
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Paths in `code` that begin with `crate`, `self` or `super`, those in braces one by one.
pub(crate) fn paths(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for root in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(root) {
            // `$crate::`, names that end in one of these words, and paths that begin further ahead.
            if !code[..at].ends_with(|c: char| is_word(c) || c == '$' || c == ':') {
                tree(&code[at..], &[], &mut found);
            }
        }
    }
    found
}

/// Adds the paths at the beginning of `code`, each after `prefix`; returns the code behind them.
fn tree<'c>(mut code: &'c str, prefix: &[&'c str], found: &mut Vec<Vec<&'c str>>) -> &'c str {
    let mut path = prefix.to_vec();
    loop {
        code = code.trim_start();
        if let Some(mut list) = code.strip_prefix('{') {
            loop {
                list = list.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
                if let Some(rest) = list.strip_prefix('}') {
                    return rest;
                }
                let rest = tree(list, &path, found);
                if rest.len() == list.len() {
                    return rest;
                }
                list = rest;
            }
        }
        let end = code.find(|c| !is_word(c)).unwrap_or(code.len());
        let (word, rest) = code.split_at(end);
        code = rest.strip_prefix('*').unwrap_or(rest);
        if !word.is_empty() && (word != "self" || path.is_empty()) {
            path.push(word);
        }
        let Some(rest) = code.strip_prefix("::") else {
            break;
        };
        // A generic argument is no part of the path.
        if rest.starts_with('<') {
            break;
        }
        code = rest;
    }
    found.push(path);
    let code = code.trim_start();
    let Some(alias) = code.strip_prefix("as ") else {
        return code;
    };
    alias.trim_start_matches(is_word)
}

/// A path from the crate's root; `None` if it leads out of the crate.
fn from_root(path: &[&str], module: &[String]) -> Option<ModulePath> {
    let mut base = match path.first()? {
        &"crate" => Vec::new(),
        _ => module.to_vec(),
    };
    for word in path {
        match *word {
            "crate" | "self" => {}
            "super" => {
                base.pop()?;
            }
            word => base.push(word.to_owned()),
        }
    }
    Some(base)
}

/// Names that `pub use` gives, and where they lead.
fn reexported(code: &str) -> Vec<(String, Vec<&str>)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        if !line.starts_with("pub") {
            continue;
        }
        let statement = code[at + 4..].split(';').next().unwrap_or_default();
        let mut leaves = Vec::new();
        tree(statement, &[], &mut leaves);
        let named = leaves.into_iter().filter_map(|path| {
            let name = path.last()?;
            Some(((*name).to_owned(), path))
        });
        found.extend(named);
    }
    found
}

/// The path of a re-export from the root: it begins with `crate`, `self` or `super`, or with a module
/// inside this one. A path into another crate leads nowhere, and stays with the module.
fn absolute(path: &[&str], module: &[String], known: &BTreeSet<ModulePath>) -> ModulePath {
    let first = path.first().copied().unwrap_or_default();
    let is_relative = ["crate", "self", "super"].contains(&first);
    let inside = [module, &[first.to_owned()]].concat();
    if is_relative || known.contains(&inside) {
        from_root(path, module).unwrap_or_default()
    } else {
        [module, &[path.last().copied().unwrap_or_default().to_owned()]].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Sources {
        let mut modules = Vec::new();
        for (path, text) in files {
            let path = path.split('/').filter(|part| !part.is_empty());
            let path = path.map(str::to_owned).collect();
            split(path, &without_tests_and_comments(text), &mut modules);
        }
        Sources::of(modules)
    }

    fn shown(sources: &Sources) -> Vec<String> {
        let imports = sources.imports();
        let text = |import: &Import| format!("{} > {}", import.from.join("/"), import.to.join("/"));
        imports.iter().map(text).collect()
    }

    /// Goal: an import is found in every form, and only there.
    #[test]
    fn paths_are_found_in_every_form() {
        let code = "use crate::wal::Wal; // crate::gone\nuse crate::{Result, store::{self, A as C, B}, op::*};\n\
                    fn f() { crate::codec::x(); super::y::<u8>(self::z) }\n#[cfg(test)]\nuse crate::dropped;\n\
                    $crate::macro_path\n#[cfg(test)]\nmod tests {\n crate::tests_only }";
        let code = without_tests_and_comments(code);
        let mut found: Vec<String> = paths(&code).iter().map(|path| path.join("::")).collect();
        found.sort();
        let expected = [
            "crate::Result",
            "crate::codec::x",
            "crate::op",
            "crate::store",
            "crate::store::A",
            "crate::store::B",
            "crate::wal::Wal",
            "self::z",
            "super::y",
        ];
        assert_eq!(found, expected);
    }

    /// Goal: an item leads to the module that defines it. Method: re-exports by a child, by a path from
    /// the root and under another module; a folder and its own file; a module inside a file.
    #[test]
    fn imports_lead_to_the_module_that_defines_the_item() {
        let sources = sources(&[
            (
                "",
                "pub use a::one::One;\npub(crate) use std::fmt::Debug;\nmod a;\nmod b;\nmod c;",
            ),
            ("a", "mod one;\nmod two;\npub use two::{Two, deep};\nstruct Here;"),
            ("a/one", "use super::Two;\nuse super::Here;"),
            (
                "a/two",
                "pub mod deep {\n    fn f() { super::super::one::g() }\n}",
            ),
            (
                "b",
                "use crate::One;\nuse crate::a::{Two, deep::f};\nuse crate::Debug;",
            ),
            (
                "c",
                "use crate::a::Here;\n#[cfg(test)]\nmod tests {\n    use crate::b::X;\n}",
            ),
        ]);
        let expected = [
            "a/one > a/two",
            "a/two/deep > a/one",
            "b > a/one",
            "b > a/two",
            "b > a/two/deep",
            "c > a",
        ];
        assert_eq!(shown(&sources), expected);
    }

    /// Goal: circles are found between files and between folders, and nowhere else.
    #[test]
    fn circles_are_found_between_files_and_between_folders() {
        let circle_of = |files: &[(&str, &str)]| {
            let circles = sources(files).circles();
            let names = |circle: &Vec<Import>| {
                circle
                    .iter()
                    .map(|import| import.from.join("/"))
                    .collect::<Vec<_>>()
            };
            circles
                .iter()
                .map(|circle| names(circle).join(" "))
                .collect::<Vec<_>>()
        };
        let files = circle_of(&[
            ("a", "use crate::b::B;"),
            ("b", "use crate::c::C;"),
            ("c", "use crate::a::A;"),
            ("d", "use crate::a::A;"),
        ]);
        assert_eq!(files, ["a b c"]);
        let folders = circle_of(&[
            ("a/one", "use crate::b::one::X;"),
            ("b/two", "use crate::a::two::X;"),
            ("a/two", ""),
            ("b/one", ""),
        ]);
        assert_eq!(folders, ["a/one b/two"]);
        let none = circle_of(&[
            ("a/one", "use super::Two;"),
            ("a", "pub use one::One;\nuse crate::b::B;"),
            ("b", ""),
        ]);
        assert!(none.is_empty(), "{none:?}");
    }
}

//! The layout of the sources: imports go down the rows of the server's modules, no crate has a circle
//! of imports, and folders have one style.
//!
//! `server/engine/tests/rows.rs` checks the rows of the engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use basalt_test_support::workspace;

mod imports;

use imports::{Import, Sources};

/// The root files of all crates with several modules.
const ROOTS: [&str; 19] = [
    "idl/src/lib.rs",
    "idl/types/src/lib.rs",
    "server/src/lib.rs",
    "server/backup/src/lib.rs",
    "server/engine/src/lib.rs",
    "server/host/src/lib.rs",
    "server/security/src/lib.rs",
    "server/rest/src/lib.rs",
    "client/src/lib.rs",
    "client/shell/src/lib.rs",
    "bench/load/src/lib.rs",
    "bench/lab/src/lib.rs",
    "tests/support/src/lib.rs",
    "tests/calls/src/lib.rs",
    "tests/conformance/src/lib.rs",
    "tests/sim/src/lib.rs",
    "tests/torture/src/lib.rs",
    "tests/torture/histcheck/src/lib.rs",
    "tests/fuzz/src/lib.rs",
];

/// The module of the program, which is no part of the library.
const OF_PROGRAM: &str = "allocator";

fn server() -> Sources {
    Sources::read(&workspace().join("server/src/lib.rs"))
}

fn shown(import: &Import) -> String {
    format!("{} imports {}", import.from.join("/"), import.item.join("::"))
}

/// The row of every module, from the table in `lib.rs`.
fn rows() -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(workspace().join("server/src/lib.rs")).unwrap();
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

/// Goal: a module of the server uses only its own row and those below it. Within a row,
/// [`no_crate_has_a_circle_of_imports`] keeps the order.
#[test]
fn imports_of_the_server_go_down() {
    let rows = rows();
    let row = |module: &String| {
        *rows
            .get(module)
            .unwrap_or_else(|| panic!("{module} has no row in server/src/lib.rs"))
    };
    let sources = server();
    let modules = sources.modules().iter().filter(|module| module.path.len() == 1);
    for module in modules.filter(|module| module.path[0] != OF_PROGRAM) {
        row(&module.path[0]);
    }
    let goes_up = |import: &&Import| row(&import.from[0]) < row(&import.to[0]);
    let imports = sources.imports();
    let wrong: Vec<_> = imports.iter().filter(goes_up).map(shown).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: the calls know no wire type, so that a protocol is a folder that can be deleted. `service/remote`
/// is an adapter itself, for calls to another cluster.
#[test]
fn code_below_the_protocols_knows_no_wire_type() {
    let below = [
        "service",
        "backup",
        "replication",
        "server",
        "ephemeral",
        "limits",
        "security",
        "cluster",
        "observe",
        "config",
    ];
    let sources = server();
    let modules = sources.modules().iter().filter(|module| {
        module
            .path
            .first()
            .is_some_and(|first| below.contains(&first.as_str()))
    });
    let wrong: Vec<_> = modules
        .filter(|module| module.code.contains("basalt_idl"))
        .map(|module| module.path.join("/"))
        .filter(|path| !path.starts_with("service/remote"))
        .collect();
    assert!(wrong.is_empty(), "basalt_idl is used in {wrong:?}");
}

/// Goal: every call of the engine passes the pipeline: a protocol's folder does not name it, nor do its
/// tests.
#[test]
fn protocols_do_not_name_the_engine() {
    let protocols = ["thrift", "native", "zookeeper", "http", "rest"];
    let sources = server();
    let names_engine = |code: &str| code.contains(".engine()") || code.contains("Engine");
    let wrong: Vec<_> = sources
        .modules()
        .iter()
        .filter(|module| {
            let first = module.path.first();
            first.is_some_and(|first| protocols.contains(&first.as_str())) && names_engine(&module.code)
        })
        .map(|module| module.path.join("/"))
        .collect();
    assert!(wrong.is_empty(), "the engine is named in {wrong:?}");
}

#[test]
fn no_crate_has_a_circle_of_imports() {
    let mut wrong = Vec::new();
    for root in ROOTS {
        let sources = Sources::read(&workspace().join(root));
        assert!(
            sources.modules().len() > 5,
            "the sources of {root} were not found"
        );
        for circle in sources.circles() {
            let imports: Vec<_> = circle.iter().map(shown).collect();
            wrong.push(format!("{root}:\n    {}", imports.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: the module of a folder is in its `mod.rs`, everywhere. Method: no file stands beside a folder of
/// its name that has sources.
#[test]
fn a_folder_has_its_module_inside() {
    let mut wrong = Vec::new();
    for root in ROOTS {
        beside_folders(workspace().join(root).parent().unwrap(), &mut wrong);
    }
    assert!(
        wrong.is_empty(),
        "move these into mod.rs of their folder: {wrong:#?}"
    );
}

fn beside_folders(folder: &Path, wrong: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            beside_folders(&path, wrong);
            let beside = path.with_extension("rs");
            let has_sources = std::fs::read_dir(&path).unwrap().any(|entry| {
                entry
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|extension| extension == "rs")
            });
            if beside.is_file() && has_sources {
                wrong.push(beside);
            }
        }
    }
}

/// Goal: comments are as wide as code. Method: `max_width` of rustfmt.toml, which rustfmt keeps for code alone.
/// Tables, pictures in fences and generated sources may be wider.
#[test]
fn comments_are_as_wide_as_code() {
    let format = std::fs::read_to_string(workspace().join("rustfmt.toml")).unwrap();
    let width = format.lines().find_map(|line| line.strip_prefix("max_width = "));
    let width: usize = width.expect("a width").parse().expect("a number");
    let mut wrong = Vec::new();
    for root in ROOTS {
        for file in sources(workspace().join(root).parent().unwrap()) {
            let text = std::fs::read_to_string(&file).unwrap();
            if !text.starts_with("// Generated") {
                let lines = wide_comments(&text, width).into_iter();
                wrong.extend(lines.map(|line| format!("{}:{line}", file.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "wider than {width}:\n{}", wrong.join("\n"));
    assert_eq!(
        wide_comments("/// a b\n// ```\n// long line\n// ```\n// | a | table |", 6),
        [1]
    );
}

/// Numbers of the lines with comments that are wider than that.
fn wide_comments(text: &str, width: usize) -> Vec<usize> {
    let mut in_fence = false;
    let mut wide = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        in_fence ^= comment.starts_with("```");
        if line.chars().count() > width && !in_fence && !comment.starts_with('|') {
            wide.push(index + 1);
        }
    }
    wide
}

/// All sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| {
        if path.is_dir() { sources(&path) } else { vec![path] }
    };
    let files = entries.flat_map(below);
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

//! The check of dependencies: licences, sources, and crates that must not come in. Works offline,
//! from `Cargo.lock` and cargo's local copies.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licences compatible with Apache-2.0.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
    "CDLA-Permissive-2.0",
];

/// Crates with known faults, by the first version without: RustSec and OSV entries that affect the
/// features in use.
const AT_LEAST: &[(&str, (u64, u64, u64), &str)] = &[
    ("bytes", (1, 11, 1), "RUSTSEC-2026-0007"),
    ("crossbeam-epoch", (0, 9, 20), "RUSTSEC-2026-0204"),
    ("lz4_flex", (0, 13, 0), "RUSTSEC-2026-0041"),
    ("thrift", (0, 24, 0), "CVE-2026-43868"),
];

/// Crates that must not end up in a binary: unmaintained, or duplicates of another chosen crate.
const BANNED: &[&str] = &[
    "bincode",
    "openssl",
    "openssl-sys",
    "native-tls",
    "rustls-pemfile",
    "lazy_static_include",
];

/// The platform of this machine: crates of other platforms were not fetched, and are not built.
fn host() -> String {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .arg("-vV")
        .output()
        .expect("rustc is beside cargo");
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc -vV names the host").to_owned()
}

fn metadata() -> Value {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(basalt_test_support::workspace())
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
        ])
        .arg(host())
        .output()
        .expect("cargo runs: it started this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// The edges of the graph that count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edges {
    /// All edges, those of tests and build scripts included.
    All,
    /// Only crates that end up in a binary.
    Shipped,
}

/// The ids of all packages that the members of the workspace depend on, directly or not.
fn reachable<'a>(
    nodes: &'a [Value],
    members: impl Iterator<Item = &'a str>,
    edges: Edges,
) -> BTreeSet<&'a str> {
    let id = |value: &'a Value| value.as_str().expect("an id is text");
    let by_id: BTreeMap<&str, &Value> = nodes.iter().map(|node| (id(&node["id"]), node)).collect();
    let counts = |dependency: &Value| {
        let kinds = dependency["dep_kinds"]
            .as_array()
            .expect("a dependency has kinds");
        edges == Edges::All || kinds.iter().any(|kind| kind["kind"].is_null())
    };
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = members.collect();
    while let Some(package) = open.pop() {
        if found.insert(package) {
            let dependencies = by_id[package]["deps"]
                .as_array()
                .expect("a node has dependencies");
            open.extend(
                dependencies
                    .iter()
                    .filter(|dependency| counts(dependency))
                    .map(|edge| id(&edge["pkg"])),
            );
        }
    }
    found
}

/// Whether a licence expression of SPDX allows us to use the crate.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let any = |sides: Vec<&str>| sides.into_iter().any(is_allowed);
    let all = |sides: Vec<&str>| sides.into_iter().all(is_allowed);
    let trimmed = expression.trim();
    match (split_outside(trimmed, " OR "), split_outside(trimmed, " AND ")) {
        (sides, _) if sides.len() > 1 => any(sides),
        (_, sides) if sides.len() > 1 => all(sides),
        _ => match trimmed
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(')'))
        {
            Some(inner) => is_allowed(inner),
            None => LICENCES.contains(&trimmed),
        },
    }
}

/// Splits at a word that stands outside parentheses.
fn split_outside<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let mut depth = 0_i32;
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= start && text[at..].starts_with(word) => {
                parts.push(&text[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn version(text: &str) -> (u64, u64, u64) {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let mut parts = core.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

#[test]
fn every_dependency_is_licensed_sourced_and_sound() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    // Cargo lists crates behind features that are off; only those in the resolved graph are ever built.
    let nodes = metadata["resolve"]["nodes"].as_array().expect("a resolved graph");
    let members = || {
        let members = metadata["workspace_members"]
            .as_array()
            .expect("a list of members");
        members
            .iter()
            .map(|member| member.as_str().expect("an id is text"))
    };
    let built = reachable(nodes, members(), Edges::All);
    let shipped = reachable(nodes, members(), Edges::Shipped);
    let mut findings = BTreeSet::new();
    let mut checked = 0;
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        let package_id = package["id"].as_str().expect("a package has an id");
        if !built.contains(package_id) {
            continue;
        }
        let id = format!("{name} {}", package["version"].as_str().unwrap_or_default());
        let Some(source) = package["source"].as_str() else {
            continue;
        };
        checked += 1;
        if source != "registry+https://github.com/rust-lang/crates.io-index" {
            findings.insert(format!(
                "{id} does not come from the crate registry but from {source}"
            ));
        }
        match package["license"].as_str() {
            Some(licence) if is_allowed(licence) => {}
            licence => {
                findings.insert(format!(
                    "{id} has the licence {licence:?}, which is not on the list"
                ));
            }
        }
        if shipped.contains(package_id) && BANNED.contains(&name) {
            findings.insert(format!("{id} is banned"));
        }
        let found = version(package["version"].as_str().unwrap_or_default());
        for (_, least, why) in AT_LEAST.iter().filter(|(crate_name, ..)| *crate_name == name) {
            if found < *least {
                findings.insert(format!("{id} is older than {least:?}: {why}"));
            }
        }
    }
    assert!(checked > 100, "only {checked} dependencies were seen");
    assert!(
        shipped.len() > 50 && shipped.len() < built.len(),
        "{} shipped, {} built",
        shipped.len(),
        built.len()
    );
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Crates that the server has in two versions, and why.
const TWICE: &[(&str, &str)] = &[
    ("base64", "object_store needs version 0.23, all else 0.22"),
    (
        "bitflags",
        "pprof needs version 1 for nix 0.26; all else has version 2",
    ),
    ("crypto-common", "crc-fast, of object_store, needs version 0.1"),
    ("digest", "crc-fast, of object_store, needs version 0.10"),
    ("getrandom", METRICS),
    ("hashbrown", METRICS),
    ("nix", "pprof needs version 0.26, object_store 0.31"),
    ("num-bigint", "x509-parser needs version 0.4"),
    ("quick-xml", "object_store needs version 0.41"),
    ("rand", METRICS),
    ("rand_core", METRICS),
];

const METRICS: &str = "metrics-exporter-prometheus needs the version before the latest";

/// Whether a package is a procedural macro: it runs in the compiler and is in no program.
fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().expect("a package has targets");
    let kinds = targets
        .iter()
        .flat_map(|target| target["kind"].as_array().expect("a target has kinds"));
    kinds.into_iter().any(|kind| kind == "proc-macro")
}

/// Goal: the server's program has no crate twice.
#[test]
fn the_server_has_each_crate_once() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let by_id: BTreeMap<&str, &Value> = packages
        .iter()
        .map(|package| (package["id"].as_str().expect("an id is text"), package))
        .collect();
    // Crates that only macros depend on are not in the program either.
    let mut nodes = metadata["resolve"]["nodes"]
        .as_array()
        .expect("a resolved graph")
        .clone();
    for node in &mut nodes {
        if is_macro(by_id[node["id"].as_str().expect("an id is text")]) {
            node["deps"] = Value::Array(Vec::new());
        }
    }
    let server = packages.iter().find(|package| package["name"] == "basalt");
    let server = server
        .and_then(|package| package["id"].as_str())
        .expect("the server's package");
    let linked = reachable(&nodes, std::iter::once(server), Edges::Shipped);
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for id in linked.iter().filter(|id| !is_macro(by_id[*id])) {
        let text = |key: &str| by_id[id][key].as_str().expect("text");
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    assert!(versions.len() > 50, "{versions:?}");
    let twice: Vec<&str> = versions
        .iter()
        .filter(|(_, found)| found.len() > 1)
        .map(|(name, _)| *name)
        .collect();
    let allowed: Vec<&str> = TWICE.iter().map(|(name, _)| *name).collect();
    assert_eq!(twice, allowed, "{versions:?}");
}

/// The dependencies of our own packages (those without a source) by package, as the `Cargo.lock` of a
/// workspace of its own has them.
fn locked_in(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let path = basalt_test_support::workspace().join(folder).join("Cargo.lock");
    let text = std::fs::read_to_string(&path).expect("the workspace has a lock file");
    let lock: toml::Table = text.parse().expect("cargo wrote the lock file");
    let packages = lock["package"].as_array().expect("a list of packages");
    let text = |value: &toml::Value| value.as_str().expect("a name is text").to_owned();
    let ours = packages.iter().filter(|package| package.get("source").is_none());
    ours.map(|package| {
        let dependencies = package.get("dependencies").and_then(toml::Value::as_array);
        // A name that stands for several versions has one of them behind.
        let name = |dependency| text(dependency).split(' ').next().unwrap_or_default().to_owned();
        (
            text(&package["name"]),
            dependencies.into_iter().flatten().map(name).collect(),
        )
    })
    .collect()
}

/// The fuzzers and the rival engines are built with `--locked` from lock files of their own, which cargo does
/// not bring up to date by itself.
#[test]
fn lock_files_of_other_workspaces_are_up_to_date() {
    check_lock_file("tests/fuzz/libfuzzer", "basalt-libfuzzer");
    check_lock_file("bench/rivals", "basalt-rivals");
}

fn check_lock_file(folder: &str, itself: &str) {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let mut locked = locked_in(folder);
    locked.remove(itself);
    assert!(locked.contains_key("basalt-engine"), "{locked:?}");
    for (name, locked) in locked {
        let package = packages.iter().find(|package| package["name"] == name.as_str());
        let dependencies = package.and_then(|package| package["dependencies"].as_array());
        let dependencies = dependencies.unwrap_or_else(|| panic!("{name} is no package of the workspace"));
        let stated: BTreeSet<String> = dependencies
            .iter()
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| (dependency["optional"] == true, dependency["name"].as_str()))
            .map(|(is_optional, name)| (is_optional, name.expect("a name is text").to_owned()))
            // The lock file has an optional one only if that workspace switches it on.
            .filter(|(is_optional, name)| !is_optional || locked.contains(name))
            .map(|(_, name)| name)
            .collect();
        assert_eq!(
            locked, stated,
            "{name}: run `cargo update --workspace` in {folder}"
        );
    }
}

#[test]
fn licence_expressions_are_understood() {
    for allowed in [
        "MIT",
        "MIT OR Apache-2.0",
        "MIT/Apache-2.0",
        "(MIT OR GPL-3.0) AND ISC",
        "GPL-2.0 OR BSD-3-Clause",
    ] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in [
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND GPL-3.0",
        "AGPL-3.0-only",
        "",
    ] {
        assert!(!is_allowed(refused), "{refused}");
    }
}

//! `basalt-bench model`: the models that ship with it, on a rehearsal; errors in a model; and the code that
//! it writes, which finds the rows that the model says.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use basalt_test_support::{Server, binary, happybase, workspace};
use serde_json::Value;

use super::{bench, report, text};

/// Few rows and short patterns: counts and answers do not depend on them.
const SMALL: [&str; 4] = ["--rows", "3000", "--seconds", "1"];

fn model(name: &str) -> String {
    let path = workspace().join("bench/models").join(name).with_extension("toml");
    path.to_str().expect("a plain path").to_owned()
}

fn measured(server: &Server, name: &str, more: &[&str], out: &Path) -> (Value, String) {
    let file = model(name);
    bench(server, &[&["model", &file][..], &SMALL, more].concat(), out);
    report(out)
}

/// A pattern's result in a layout.
fn result<'a>(json: &'a Value, pattern: &str, layout: &str) -> &'a Value {
    let found = |list: &'a Value, name: &str, value: &str| {
        let list = list.as_array().expect("a list");
        list.iter()
            .find(|entry| entry[name] == value)
            .unwrap_or_else(|| panic!("no {value} in {json}"))
    };
    found(
        &found(&json["patterns"], "name", pattern)["results"],
        "layout",
        layout,
    )
}

/// Goal: on a rehearsal, a model tells a layout with a hot server from one that spreads, and one that reads
/// much from one that reads what it returns.
#[test]
fn layouts_are_told_apart_on_a_rehearsal() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let settings = ["rehearsal.servers=4", "rehearsal.requests_per_second=20000"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let (json, html) = measured(&server, "feed", &["--scale", "5"], &dir.path().join("feed"));
    assert_eq!(json["rehearse"], "", "it is a rehearsal");
    let written = |layout: &str| {
        result(&json, "a post is written", layout)["busiest_share"]
            .as_f64()
            .expect("a share")
    };
    assert!(written("by_time") > 0.9, "{}", written("by_time"));
    assert!(written("by_person") < 0.6, "{}", written("by_person"));
    let read = |layout: &str| result(&json, "latest 20 of a person", layout).clone();
    let (by_time, by_person) = (read("by_time"), read("by_person"));
    assert_eq!(by_time["rows_read"], 3000.0, "the whole table");
    assert!(
        by_person["rows_read"] == by_person["rows_returned"],
        "{by_person}"
    );
    assert_eq!(by_person["scans"], 1.0);
    for result in [&by_time, &by_person] {
        assert!(result["checked"].as_u64() > Some(0), "{result}");
        assert_eq!(result["difference"], Value::Null, "{result}");
    }
    assert_eq!(by_time["verdict"], "does not fit", "{by_time}");
    let result = json["result"].as_str().expect("a text");
    assert!(result.contains("Patterns that fit: "), "{result}");
    assert!(html.contains("Patterns that fit: "), "the page has the result");
    server.stop();
}

/// Goal: the other models run, on one process too, which the report says; tables are gone afterwards.
#[test]
fn all_models_run() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for (name, layout, broken) in [
        ("documents", "salted", None),
        (
            "sensors",
            "digits",
            Some("the last field of its row keys has any length"),
        ),
    ] {
        let (json, _) = measured(
            &server,
            name,
            &["--important", pattern_of(name)],
            &dir.path().join(name),
        );
        let rehearse = json["rehearse"].as_str().expect("a text");
        assert!(rehearse.contains("no servers to spread over"), "{rehearse}");
        let patterns = json["patterns"].as_array().expect("a list");
        for result in patterns
            .iter()
            .flat_map(|pattern| pattern["results"].as_array().expect("a list"))
        {
            assert_eq!(result["difference"], Value::Null, "{name}: {result}");
            assert!(result["per_second"].as_f64() > Some(0.0), "{name}: {result}");
        }
        let advice = json["advice"].as_str().expect("a text");
        assert!(advice.contains(pattern_of(name)), "{advice}");
        let rules = json["tables"][0]["broken"].as_array().expect("a list");
        let of_layout: Vec<&str> = rules
            .iter()
            .filter(|rule| rule["layout"] == layout)
            .filter_map(|rule| rule["what"].as_str())
            .collect();
        assert_eq!(of_layout, broken.into_iter().collect::<Vec<_>>(), "{name}");
    }
    let output = Command::new(binary("basalt-shell"))
        .args(["--target", &server.thrift.to_string(), "-e", "list"])
        .output()
        .expect("the binary was built");
    assert!(text(&output.stdout).contains("0 row(s)"), "{output:?}");
    server.stop();
}

fn pattern_of(model: &str) -> &'static str {
    match model {
        "documents" => "all documents of a minute",
        _ => "newest value of a sensor",
    }
}

/// Goal: HappyBase code finds, in the tables that were measured, the rows that the model says; the shell's
/// code makes tables, writes and reads on an empty server.
#[test]
fn the_code_that_is_written_runs() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let other = Server::start(&dir.path().join("other"), &[]);
    for name in ["documents", "feed", "sensors"] {
        let out = dir.path().join(name);
        let (json, _) = measured(&server, name, &["--keep-tables"], &out);
        let patterns = json["patterns"].as_array().expect("a list");
        let reads = patterns.iter().filter(|pattern| pattern["kind"] != "write");
        let expected: BTreeMap<&str, &Value> = reads
            .map(|pattern| (pattern["name"].as_str().expect("a text"), &pattern["example"]))
            .collect();
        assert!(
            expected
                .values()
                .all(|rows| rows.as_array().is_some_and(|rows| !rows.is_empty()))
        );
        let numbers = expected.values().filter_map(|rows| rows.as_array()).flatten();
        let loaded = numbers.filter_map(Value::as_u64).max().unwrap_or(u64::MAX);
        for layout in json["layouts"].as_array().expect("a list") {
            let layout = layout["name"].as_str().expect("a text");
            let shell = std::fs::read_to_string(out.join(format!("{layout}.rb"))).expect("a script");
            run_in_shell(&other, &shell, &out.join(format!("{layout}.rb")), &expected);
            let Some(python) = happybase() else { continue };
            let module = std::fs::read_to_string(out.join(format!("{layout}_layout.py"))).expect("a module");
            let printed = python.run(&module, &[&server.thrift.to_string()]);
            let printed = printed.unwrap_or_else(|error| panic!("{name}, {layout}: {error}\n{module}"));
            let answers: BTreeMap<String, Value> = serde_json::from_str(&printed).expect("JSON");
            assert_eq!(answers.len(), expected.len(), "{name}, {layout}: {answers:?}");
            for (pattern, rows) in &answers {
                let rows = rows.as_array().expect("a list");
                assert!(!rows.is_empty(), "{name}, {layout}: {pattern}");
                // Rows that were written while it was measured come besides.
                let is_loaded = |row: &&Value| row.as_u64().is_none_or(|number| number <= loaded);
                let examples = expected[pattern.as_str()].as_array().expect("a list");
                for row in rows.iter().filter(is_loaded) {
                    assert!(examples.contains(row), "{name}, {layout}: {pattern} finds {row}");
                }
            }
        }
    }
    server.stop();
    other.stop();
}

/// Every scan and get of the script runs, and each example finds a row.
fn run_in_shell(server: &Server, script: &str, file: &Path, examples: &BTreeMap<&str, &Value>) {
    let output = Command::new(binary("basalt-shell"))
        .args(["--target", &server.thrift.to_string(), "-n"])
        .arg(file)
        .output()
        .expect("the binary was built");
    let printed = text(&output.stdout);
    assert!(
        output.status.success(),
        "{script}\n{printed}\n{}",
        text(&output.stderr)
    );
    let found = printed.matches("value=").count();
    assert!(found >= examples.len(), "{found} values\n{script}\n{printed}");
}

/// Goal: `--rehearse` measures a server of its own, which presents itself as the model's cluster.
#[test]
fn a_rehearsal_needs_no_server() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let output = Command::new(binary("basalt-bench"))
        .args([
            "model",
            &model("feed"),
            "--rehearse",
            "--layouts",
            "by_person",
            "--out",
        ])
        .arg(&out)
        .args(SMALL)
        .env("BASALT_PROGRAM", binary("basalt"))
        .env("TMPDIR", dir.path())
        .output()
        .expect("the binary was built");
    assert!(output.status.success(), "{output:?}");
    let (json, _) = report(&out);
    let server = json["server"].as_str().expect("a text");
    assert!(server.contains("a rehearsal of 8 servers"), "{server}");
    assert_eq!(json["layouts"].as_array().map(Vec::len), Some(1));
}

/// Goal: what is wrong in a model or an option is an error of the command line that names it.
#[test]
fn a_wrong_model_is_refused_by_line() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let feed = std::fs::read_to_string(model("feed")).expect("a model");
    let file = dir.path().join("own.toml");
    let refused = |text_of_model: &str, options: &[&str]| {
        std::fs::write(&file, text_of_model).expect("written");
        let output = Command::new(binary("basalt-bench"))
            .arg("model")
            .arg(&file)
            .args(options)
            .output()
            .expect("the binary was built");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr)
    };
    let wrong = refused(&feed.replace("kind = \"write\"", "kind = \"rite\""), &[]);
    assert!(
        wrong.contains("own.toml:") && wrong.contains("allowed are write, get, read"),
        "{wrong}"
    );
    let wrong = refused(&feed, &["--important", "reads"]);
    assert!(
        wrong.contains("--important \"reads\"") && wrong.contains("latest 20 of a person"),
        "{wrong}"
    );
    let wrong = refused(&feed, &["--layouts", "by_bytes"]);
    assert!(wrong.contains("by_time, by_person"), "{wrong}");
}

//! HBase's own answers, without HBase: the scripts in `cases/`, which `basalt-differ --keep` has written
//! HBase's answers into.
//!
//! Each is played to Basalt, and every answer has to be HBase's, or to differ by the rule that the
//! script names, or to be the one that the script has for Basalt. The scripts with names were
//! differences once, or are rules; those that begin with `known` show intended differences of
//! Basalt, which generated scripts avoid; `seed-*`, `native-*` and `rest-*` are generated ones, the latter
//! with native calls and those of REST.
//!
//! To record a script again: `cargo run -p basalt-conformance --bin basalt-differ -- --keep DIR
//! DIR/NAME.script`, where DIR is `tests/conformance/cases`.

use std::path::PathBuf;

use basalt_calls::Answer;
use basalt_conformance::generate::{self, Apis};
use basalt_conformance::play::Player;
use basalt_conformance::script::{Line, Script, Step};
use basalt_conformance::target::{BASALT_SETTINGS, Basalt};
use basalt_conformance::{compare, explained};
use basalt_test_support::{Server, workspace};

fn scripts() -> Vec<(String, Script)> {
    let dir = workspace().join("tests/conformance/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .expect("the folder of cases")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a text file");
        let script = Script::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, script)
    };
    files.into_iter().map(read).collect()
}

/// The error in Basalt's answer to this line.
fn fault(line: &Line, ours: Option<Answer>) -> Option<String> {
    let Step::Call(call) = &line.step else { return None };
    let (Some(theirs), Some(ours)) = (&line.answer, ours) else {
        return Some("has no recorded answer".to_owned());
    };
    if let Some(expected) = &line.ours {
        return (!line.is_known() || !compare::same(call.method, expected, &ours))
            .then(|| format!("expected {expected}\nBasalt {ours}"));
    }
    if compare::same(call.method, theirs, &ours) {
        let rule = line.differs.as_ref()?;
        return Some(format!("no longer differs by {rule}"));
    }
    let rule = explained::rule(call, theirs, &ours).map(|rule| rule.name.to_owned());
    (rule.is_none() || rule != line.differs).then(|| {
        format!(
            "HBase {theirs}\nBasalt {ours}\nrule {rule:?}, recorded {:?}",
            line.differs
        )
    })
}

#[test]
fn basalt_answers_as_hbase_did() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), BASALT_SETTINGS);
    let mut basalt = Basalt::connect(server.thrift).expect("a connection");
    let (mut calls, mut faults) = (0, Vec::new());
    for (run, (name, script)) in scripts().into_iter().enumerate() {
        let mut player = Player::new(&mut basalt, run);
        for (index, line) in script.lines.iter().enumerate() {
            calls += 1;
            let answer = match player.step(&line.step) {
                Ok(answer) => answer,
                Err(error) => {
                    faults.push(format!("{name}, step {index}: {error}"));
                    break;
                }
            };
            if let Some(fault) = fault(line, answer) {
                faults.push(format!("{name}, step {index}: {}\n{fault}", line.step));
                // Later differences may only be its consequences.
                break;
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(calls > 1000, "only {calls} calls: are the scripts there?");
    server.stop();
}

/// Every rule that excuses a difference has a script that shows it, and a place in docs/compatibility.md.
#[test]
fn every_rule_is_shown_and_documented() {
    let page = std::fs::read_to_string(workspace().join("docs/compatibility.md")).expect("the page");
    let scripts = scripts();
    for rule in explained::rules() {
        let shown = scripts
            .iter()
            .flat_map(|(_, script)| &script.lines)
            .any(|line| line.differs.as_deref() == Some(rule.name));
        assert!(shown, "no case shows {}", rule.name);
        assert!(
            page.contains(&format!("`{}`", rule.name)),
            "{} is not in docs/compatibility.md",
            rule.name
        );
    }
}

/// Known differences, which generated scripts avoid: each item of the list in docs/compatibility.md
/// names its case, and each such case is named there and shows a difference.
#[test]
fn known_differences_have_cases() {
    let page = std::fs::read_to_string(workspace().join("docs/compatibility.md")).expect("the page");
    let (_, list) = page.split_once("Known and not followed").expect("the list");
    let (list, _) = list.split_once("\n## ").expect("what follows the list");
    for item in list.split("\n- ").skip(1) {
        assert!(item.contains("`known_"), "no case: {item}");
    }
    let mut cases = scripts();
    cases.retain(|(name, _)| name.starts_with("known_"));
    for (name, script) in &cases {
        assert!(list.contains(&format!("`{name}`")), "{name} is not in the list");
        let mut known = script.lines.iter().filter(|line| line.is_known()).peekable();
        assert!(known.peek().is_some(), "{name} shows no difference");
        for line in known {
            let Step::Call(call) = &line.step else {
                panic!("{name}: {} is no call", line.step);
            };
            let (Some(theirs), Some(ours)) = (&line.answer, &line.ours) else {
                panic!("{name}: {} lacks an answer", line.step);
            };
            assert!(
                !compare::same(call.method, theirs, ours),
                "{name}: {} is the same",
                line.step
            );
        }
    }
}

/// A written script is read back unchanged.
#[test]
fn scripts_survive_a_round_trip() {
    for (name, script) in scripts() {
        let text = script.to_string();
        let again = Script::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.to_string(), text, "{name}");
    }
}

/// The text of generated calls, native ones too, is read as the same calls: else a script that a run keeps
/// could not be played.
#[test]
fn generated_scripts_survive_a_round_trip() {
    for apis in [Apis::Thrift, Apis::Native, Apis::Rest] {
        let text = (1..=20).map(|seed| generate::script(seed, 200, apis).to_string());
        for text in text {
            let again = Script::parse(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            assert_eq!(again.to_string(), text);
        }
    }
    let native = generate::script(1, 200, Apis::Native).to_string();
    for call in ["n.get(", "n.mutate(", "n.multi(", "n.scan(", "1.", "2."] {
        let calls = native.lines().filter(|line| line.starts_with(call));
        assert!(calls.count() > 3, "few calls {call}");
    }
    let rest: String = (1..=20)
        .map(|seed| generate::script(seed, 400, Apis::Rest).to_string())
        .collect();
    for method in basalt_calls::rest::service::SERVICE.methods {
        let call = format!("r.{}(", method.name);
        assert!(rest.contains(&call), "no call {call}");
    }
}

//! The alert rules for Prometheus: each has a test, a line in the documentation, and fires in its test.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use basalt_test_support::workspace;

use crate::queries::{Query, operands};
use crate::read;

/// A rule of grafana/alerts.yml.
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) expr: String,
}

/// All of them, from a file that is written as promtool and this expect: an expression is on one line, or on
/// the indented ones below.
pub(crate) fn rules() -> Vec<Rule> {
    let text = read("grafana/alerts.yml");
    let mut lines = text.lines().peekable();
    let mut rules: Vec<Rule> = Vec::new();
    while let Some(line) = lines.next() {
        if let Some((_, name)) = line.split_once("- alert: ") {
            rules.push(Rule {
                name: name.to_owned(),
                expr: String::new(),
            });
        } else if let Some((_, expr)) = line.split_once(" expr: ") {
            let rule = rules.last_mut().expect("a rule has its name first");
            expr.trim_start_matches(">-").clone_into(&mut rule.expr);
            while let Some(more) = lines.next_if(|line| line.starts_with("          ")) {
                rule.expr.push_str(more);
            }
        }
    }
    assert!(rules.len() > 10, "only {} rules", rules.len());
    rules
}

/// Both sides of the rules' comparisons, as queries that have a result whether a rule fires or not.
pub(crate) fn rule_queries() -> Vec<Query> {
    let of = |rule: &Rule| {
        let place = format!("alert {}", rule.name);
        operands(&rule.expr).into_iter().map(move |expr| Query {
            place: place.clone(),
            expr,
            legend: String::new(),
            chosen: false,
        })
    };
    rules().iter().flat_map(of).collect()
}

/// The rules as a file for Prometheus in which each fires as soon as its expression has a value.
pub(crate) fn rules_that_fire() -> String {
    let mut text = String::from("groups:\n  - name: basalt\n    rules:\n");
    for rule in rules() {
        let operand = operands(&rule.expr).swap_remove(0);
        writeln!(
            text,
            "      - alert: {}\n        expr: >-\n          {operand}",
            rule.name
        )
        .expect("a string takes everything");
    }
    text
}

/// The text behind `label` in the lines that have it, up to the end or a comma.
fn after<'t>(text: &'t str, label: &str) -> BTreeSet<&'t str> {
    let found = text.lines().filter_map(|line| line.split_once(label));
    found
        .map(|(_, name)| name.split(',').next().unwrap_or(name).trim())
        .collect()
}

#[test]
fn alerts_are_tested_and_documented() {
    let rules = read("grafana/alerts.yml");
    let alerts = after(&rules, "- alert: ");
    assert!(alerts.len() > 10, "{alerts:?}");
    assert_eq!(after(&read("grafana/alerts_test.yml"), "alertname: "), alerts);
    let page = read("docs/observing.md");
    for alert in alerts {
        assert!(
            page.contains(&format!("`{alert}`")),
            "{alert} is not in docs/observing.md"
        );
    }
}

/// Each older name of a metric is recorded from a metric that there is.
#[test]
fn older_names_are_recorded_from_present_ones() {
    let rules = read("grafana/old_names.yml");
    let page = read("docs/metrics.md");
    let (older, present) = (
        after(&rules, "record: basalt_thrift_"),
        after(&rules, "expr: basalt_"),
    );
    assert!(older.len() >= 10, "{older:?}");
    assert_eq!(older, present);
    for name in present {
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|of_histogram| name.strip_suffix(of_histogram))
            .unwrap_or(name);
        assert!(
            page.contains(&format!("`basalt_{name}")),
            "{name} is not in docs/metrics.md"
        );
    }
}

/// Each alert fires once, by the figures that its test makes up, and not before.
#[test]
fn every_alert_fires_once() {
    let run = |arguments: &[&str]| {
        Command::new("promtool")
            .args(arguments)
            .current_dir(workspace().join("grafana"))
            .output()
    };
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["check", "rules", "old_names.yml"],
        ["test", "rules", "alerts_test.yml"],
    ] {
        let output = match run(&arguments) {
            Ok(output) => output,
            Err(error) => {
                return println!(
                    "not run: the alert rules, since promtool does not start (Debian: prometheus): {error}"
                );
            }
        };
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

//! The alert rules for Prometheus: they name metrics that there are, each has a test, a line in the documentation, and fires in its test.

use std::collections::BTreeSet;
use std::process::Command;

use basalt_tests::workspace;

use crate::{declared, read, scrape_under_load};

/// What follows `label` in the lines that have it, up to the end or a comma.
fn after<'t>(text: &'t str, label: &str) -> BTreeSet<&'t str> {
    let found = text.lines().filter_map(|line| line.split_once(label));
    found
        .map(|(_, name)| name.split(',').next().unwrap_or(name).trim())
        .collect()
}

#[test]
fn alerts_name_metrics_and_are_tested_and_documented() {
    let rules = read("grafana/alerts.yml");
    let alerts = after(&rules, "- alert: ");
    assert!(alerts.len() > 10, "{alerts:?}");
    assert_eq!(after(&read("grafana/alerts_test.yml"), "alertname: "), alerts);
    let page = read("docs/operations.md");
    for alert in alerts {
        assert!(
            page.contains(&format!("`{alert}`")),
            "{alert} is not in docs/operations.md"
        );
    }
    let scrape = scrape_under_load();
    let declared = declared();
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    for word in rules
        .split(|c| !is_name(c))
        .filter(|word| word.starts_with("basalt_"))
    {
        let is_there = scrape.metric(word).is_some() || declared.iter().any(|(_, name)| name == word);
        assert!(is_there, "no metric is called {word}");
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

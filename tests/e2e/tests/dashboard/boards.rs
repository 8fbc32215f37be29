//! The dashboards' files, and properties of each beside its queries.

use std::collections::BTreeSet;

use basalt_test_support::workspace;
use serde_json::Value;

/// A dashboard.
pub(crate) struct Board {
    /// The name of its file.
    pub(crate) file: String,
    json: Value,
}

impl Board {
    /// The list that lies there. See `Value::pointer`.
    pub(crate) fn list(&self, path: &str) -> &[Value] {
        let found = self.json.pointer(path).and_then(Value::as_array);
        found.unwrap_or_else(|| panic!("{}: no list {path}", self.file))
    }

    /// Panels of the dashboard, without the headings.
    pub(crate) fn panels(&self) -> impl Iterator<Item = &Value> {
        self.list("/panels").iter().filter(|panel| panel["type"] != "row")
    }

    fn uid(&self) -> &str {
        self.json["uid"].as_str().expect("a dashboard has an id")
    }

    /// The names and patterns of the alerts whose firing it marks.
    fn alerts(&self) -> impl Iterator<Item = &str> {
        let expr = self.json["annotations"]["list"][0]["expr"]
            .as_str()
            .expect("a query");
        let (_, rest) = expr.split_once("alertname=~\"").expect("it names alerts");
        rest.split('"').next().expect("split gives one part").split('|')
    }
}

/// All of them.
pub(crate) fn boards() -> Vec<Board> {
    let mut boards = Vec::new();
    for entry in std::fs::read_dir(workspace().join("grafana/dashboards")).expect("the folder is there") {
        let entry = entry.expect("the folder can be read");
        let text = std::fs::read_to_string(entry.path()).expect("a dashboard can be read");
        let file = entry.file_name().to_string_lossy().into_owned();
        let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        boards.push(Board { file, json });
    }
    assert!(boards.len() >= 5, "only {} dashboards", boards.len());
    boards
}

/// Every panel has a description, a unit and a legend, and lets the data source be chosen; every
/// dashboard leads to the others, and marks the alerts that it explains.
#[test]
fn dashboards_are_described_and_lead_to_each_other() {
    let boards = boards();
    let ids: BTreeSet<&str> = boards.iter().map(Board::uid).collect();
    assert_eq!(ids.len(), boards.len(), "two dashboards have one id");
    let rules = crate::alerts::rules();
    let mut explained = BTreeSet::new();
    for board in &boards {
        let file = &board.file;
        let link = &board.list("/links")[0];
        assert_eq!(link["type"], "dashboards", "{file}");
        assert_eq!(link["tags"], board.json["tags"], "{file}: its links show others");
        assert!(link["includeVars"] == true && link["keepTime"] == true, "{file}");
        let mut panel_ids = BTreeSet::new();
        for panel in board.list("/panels") {
            assert!(
                panel_ids.insert(panel["id"].as_u64()),
                "{file}: two panels have one id"
            );
        }
        for panel in board.panels() {
            let title = panel["title"].as_str().expect("a title");
            let place = format!("{file}, {title}");
            let described = panel["description"]
                .as_str()
                .is_some_and(|text| text.ends_with('.'));
            assert!(described, "{place}: no description");
            assert!(
                panel["fieldConfig"]["defaults"]["unit"].is_string(),
                "{place}: no unit"
            );
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{place}");
            for target in panel["targets"].as_array().expect("targets") {
                assert_eq!(target["datasource"]["uid"], "${datasource}", "{place}");
                let has_legend = target["legendFormat"] != "";
                assert!(panel["type"] == "stat" || has_legend, "{place}: no legend");
            }
            for link in panel["links"].as_array().expect("links") {
                let url = link["url"].as_str().expect("an address");
                let target = url.strip_prefix("/d/").and_then(|rest| rest.split('?').next());
                let target = target.unwrap_or_else(|| panic!("{place}: {url}"));
                assert!(
                    ids.contains(target) && target != board.uid(),
                    "{place} leads to {target}"
                );
            }
        }
        for alert in board.alerts() {
            let is_rule = rules.iter().any(|rule| rule.name == alert);
            assert!(
                alert == "Basalt.*" || is_rule,
                "{file} marks {alert}, which is no rule"
            );
            explained.insert(alert);
        }
    }
    for rule in &rules {
        assert!(
            explained.contains(rule.name.as_str()),
            "{} is on no dashboard that explains it",
            rule.name
        );
    }
}

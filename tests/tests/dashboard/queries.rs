//! The queries of the dashboards, and what can be wrong with one.

use std::collections::BTreeSet;

use basalt_tests::workspace;
use promql_parser::label::Matchers;
use promql_parser::parser::{self, Expr, LabelModifier, VectorSelector};
use serde_json::Value;

use crate::scrape::{Scrape, TARGET_LABELS};

/// A query of a dashboard.
pub(crate) struct Query {
    /// Title of its panel.
    pub(crate) place: String,
    /// The query, its variables replaced.
    pub(crate) expr: String,
    /// Its legend, with `{{label}}` in it.
    pub(crate) legend: String,
}

/// Every query of every dashboard, those of variables too.
pub(crate) fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    for entry in std::fs::read_dir(workspace().join("grafana/dashboards")).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("a dashboard can be read");
        let dashboard: Value = serde_json::from_str(&text).expect("a dashboard is JSON");
        for variable in dashboard["templating"]["list"].as_array().expect("variables") {
            if variable["type"] == "query" {
                let name = variable["name"].as_str().expect("a name");
                let query = variable["query"]["query"].as_str().expect("a query");
                let inner = query
                    .strip_prefix("label_values(")
                    .and_then(|rest| rest.strip_suffix(')'));
                let (metric, label) = inner
                    .and_then(|inner| inner.rsplit_once(", "))
                    .expect("label_values");
                queries.push(Query {
                    place: format!("variable {name}"),
                    expr: format!("count by ({label}) ({})", replaced(metric)),
                    legend: format!("{{{{{label}}}}}"),
                });
            }
        }
        for panel in dashboard["panels"]
            .as_array()
            .expect("panels")
            .iter()
            .filter(|panel| panel["type"] != "row")
        {
            let title = panel["title"].as_str().expect("a title");
            assert!(
                panel["description"]
                    .as_str()
                    .is_some_and(|text| text.ends_with('.')),
                "{title}: no description"
            );
            assert!(
                panel["fieldConfig"]["defaults"]["unit"].is_string(),
                "{title}: no unit"
            );
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
            for target in panel["targets"].as_array().expect("targets") {
                assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
                let legend = target["legendFormat"].as_str().expect("a legend");
                assert!(
                    panel["type"] == "stat" || !legend.is_empty(),
                    "{title}: no legend"
                );
                let expr = target["expr"].as_str().expect("a query");
                queries.push(Query {
                    place: title.to_owned(),
                    expr: replaced(expr),
                    legend: legend.to_owned(),
                });
            }
        }
    }
    assert!(
        queries.len() > 40,
        "the dashboards have only {} queries",
        queries.len()
    );
    queries
}

/// The query with Grafana's variables replaced, as if everything were chosen.
fn replaced(expr: &str) -> String {
    let text = expr.replace("$__rate_interval", "1m");
    let text = ["$job", "$instance", "$table"]
        .iter()
        .fold(text, |text, name| text.replace(name, ".*"));
    assert!(!text.contains('$'), "an unknown variable: {text}");
    text
}

/// The labels that a legend shows.
pub(crate) fn legend_labels(legend: &str) -> impl Iterator<Item = &str> {
    legend
        .split("{{")
        .skip(1)
        .map(|rest| rest.split("}}").next().expect("split gives one part"))
}

/// What is wrong in an expression, and the selectors in it.
struct Checker<'a> {
    scrape: &'a Scrape,
    problems: Vec<String>,
    metrics: BTreeSet<String>,
}

impl Checker<'_> {
    fn selector(&mut self, selector: &VectorSelector) -> Vec<String> {
        let scrape = self.scrape;
        let Some(name) = &selector.name else {
            self.problems.push("a selector without a name".into());
            return Vec::new();
        };
        if !self.scrape.labels.contains_key(name) {
            self.problems.push(format!("no sample {name}"));
        }
        self.metrics.extend(self.scrape.metric(name).map(str::to_owned));
        let Matchers { matchers, .. } = &selector.matchers;
        for matcher in matchers.iter().filter(|matcher| !scrape.has(name, &matcher.name)) {
            self.problems
                .push(format!("{name} has no label {}", matcher.name));
        }
        for label in TARGET_LABELS {
            // The variable that offers jobs cannot depend on the chosen job.
            if !matchers.iter().any(|matcher| matcher.name == label) && name != "basalt_build_info" {
                self.problems
                    .push(format!("{name} is not limited to the chosen {label}"));
            }
        }
        vec![name.clone()]
    }

    /// Walks an expression; the samples it selects.
    fn walk(&mut self, expr: &Expr) -> Vec<String> {
        let scrape = self.scrape;
        match expr {
            Expr::VectorSelector(selector) => self.selector(selector),
            Expr::MatrixSelector(matrix) => self.selector(&matrix.vs),
            Expr::Paren(paren) => self.walk(&paren.expr),
            Expr::Unary(unary) => self.walk(&unary.expr),
            Expr::Subquery(subquery) => self.walk(&subquery.expr),
            Expr::Call(call) => call
                .args
                .args
                .iter()
                .flat_map(|argument| self.walk(argument))
                .collect(),
            Expr::Aggregate(aggregate) => {
                let samples = self.walk(&aggregate.expr);
                if let Some(LabelModifier::Include(labels) | LabelModifier::Exclude(labels)) =
                    &aggregate.modifier
                {
                    for label in &labels.labels {
                        // Strict: each of the metrics below must have it, or the sum is by something that is not there.
                        for sample in samples.iter().filter(|sample| !scrape.has(sample, label)) {
                            self.problems.push(format!("{sample} has no label {label}"));
                        }
                    }
                }
                samples
            }
            Expr::Binary(binary) => {
                let mut samples = self.walk(&binary.lhs);
                samples.extend(self.walk(&binary.rhs));
                let matching = binary
                    .modifier
                    .as_ref()
                    .and_then(|modifier| modifier.matching.as_ref());
                if let Some(LabelModifier::Include(labels) | LabelModifier::Exclude(labels)) = matching {
                    for label in labels
                        .labels
                        .iter()
                        .filter(|label| !samples.iter().any(|sample| scrape.has(sample, label)))
                    {
                        self.problems.push(format!("neither side has the label {label}"));
                    }
                }
                samples
            }
            Expr::NumberLiteral(_) | Expr::StringLiteral(_) => Vec::new(),
            Expr::Extension(_) => panic!("PromQL has no extensions"),
        }
    }
}

/// What is wrong with one query, and the metrics it uses.
pub(crate) fn check(scrape: &Scrape, expr: &str, legend: &str) -> (Vec<String>, BTreeSet<String>) {
    let mut checker = Checker {
        scrape,
        problems: Vec::new(),
        metrics: BTreeSet::new(),
    };
    match parser::parse(expr) {
        Ok(parsed) => {
            let samples = checker.walk(&parsed);
            for label in legend_labels(legend) {
                if !samples.iter().any(|sample| checker.scrape.has(sample, label)) {
                    checker
                        .problems
                        .push(format!("the legend shows {label}, which no metric has"));
                }
            }
        }
        Err(error) => checker.problems.push(error),
    }
    (checker.problems, checker.metrics)
}

//! The queries of the dashboards, and the checks of one.

use std::collections::BTreeSet;

use promql_parser::label::Matchers;
use promql_parser::parser::{self, Expr, LabelModifier, VectorSelector};

use crate::boards::Board;
use crate::scrape::{Scrape, TARGET_LABELS};

/// A query of a dashboard or of an alert rule.
pub(crate) struct Query {
    /// Where it is.
    pub(crate) place: String,
    /// The query, its variables replaced.
    pub(crate) expr: String,
    /// Legend of the query, with `{{label}}` in it.
    pub(crate) legend: String,
    /// Whether it must be limited to the servers that are chosen at the top of a dashboard.
    pub(crate) chosen: bool,
}

/// Every query of a dashboard, those of its variables and marks too.
pub(crate) fn queries(board: &Board) -> Vec<Query> {
    let query = |place: &str, expr: &str, legend: &str| Query {
        place: format!("{}, {place}", board.file),
        expr: replaced(expr),
        legend: legend.to_owned(),
        chosen: true,
    };
    let mut queries = Vec::new();
    for variable in board.list("/templating/list") {
        if variable["type"] == "query" {
            let name = variable["name"].as_str().expect("a name");
            let text = variable["query"]["query"].as_str().expect("a query");
            let inner = text
                .strip_prefix("label_values(")
                .and_then(|rest| rest.strip_suffix(')'));
            let (metric, label) = inner
                .and_then(|inner| inner.rsplit_once(", "))
                .expect("label_values");
            let expr = format!("count by ({label}) ({metric})");
            queries.push(query(
                &format!("variable {name}"),
                &expr,
                &format!("{{{{{label}}}}}"),
            ));
        }
    }
    for marks in board.list("/annotations/list") {
        let [expr, title, text] = ["expr", "titleFormat", "textFormat"].map(|key| marks[key].as_str());
        let legend = format!("{} {}", title.expect("a title"), text.expect("a text"));
        queries.push(query("marks", expr.expect("a query"), &legend));
    }
    for panel in board.panels() {
        let title = panel["title"].as_str().expect("a title");
        for target in panel["targets"].as_array().expect("targets") {
            let [expr, legend] = ["expr", "legendFormat"].map(|key| target[key].as_str());
            queries.push(query(title, expr.expect("a query"), legend.expect("a legend")));
        }
    }
    queries
}

/// The operands of an alert rule: the parts of its expression that have a value whether it fires or
/// not.
pub(crate) fn operands(expr: &str) -> Vec<String> {
    fn collect(expr: &Expr, found: &mut Vec<String>) {
        match expr {
            Expr::Paren(paren) => collect(&paren.expr, found),
            Expr::Binary(binary) if binary.op.is_comparison_operator() || binary.op.is_set_operator() => {
                collect(&binary.lhs, found);
                collect(&binary.rhs, found);
            }
            Expr::NumberLiteral(_) => {}
            expr => found.push(expr.to_string()),
        }
    }
    let parsed = parser::parse(expr).unwrap_or_else(|error| panic!("{error} in {expr}"));
    let mut found = Vec::new();
    collect(&parsed, &mut found);
    found
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

/// Errors in an expression, and the selectors in it.
struct Checker<'a> {
    scrape: &'a Scrape,
    chosen: bool,
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
        // The variable that offers jobs cannot depend on the chosen job, and rules may sum over jobs.
        let free = !self.chosen || name == "basalt_build_info" || name == "ALERTS";
        for label in TARGET_LABELS.iter().filter(|_| !free) {
            if !matchers.iter().any(|matcher| matcher.name == *label) {
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
                        // Strict: each of the metrics below must have it, or the sum is by something that is
                        // not there.
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

/// Errors in one query, and the metrics it uses.
pub(crate) fn check(scrape: &Scrape, query: &Query) -> (Vec<String>, BTreeSet<String>) {
    let mut checker = Checker {
        scrape,
        chosen: query.chosen,
        problems: Vec::new(),
        metrics: BTreeSet::new(),
    };
    match parser::parse(&query.expr) {
        Ok(parsed) => {
            let samples = checker.walk(&parsed);
            for label in legend_labels(&query.legend) {
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

//! The metrics of a server: the text of `/metrics`, parsed.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::parser::{self, Expr};

/// Labels that Prometheus adds to every series.
pub(crate) const TARGET_LABELS: [&str; 2] = ["job", "instance"];

/// Metrics that Prometheus makes itself, with their labels.
const MADE_BY_PROMETHEUS: [(&str, &[&str]); 2] =
    [("up", &[]), ("ALERTS", &["alertname", "alertstate", "severity"])];

/// Sample names (so a histogram's three) with their labels, and metric names with their types.
#[derive(Default)]
pub(crate) struct Scrape {
    pub(crate) labels: BTreeMap<String, BTreeSet<String>>,
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) help: BTreeSet<String>,
}

impl Scrape {
    pub(crate) fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        for (name, labels) in MADE_BY_PROMETHEUS {
            let labels = labels.iter().map(|label| (*label).to_owned());
            scrape.labels.insert(name.to_owned(), labels.collect());
        }
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                scrape.types.insert(name.to_owned(), kind.to_owned());
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                scrape
                    .help
                    .insert(rest.split(' ').next().expect("a name").to_owned());
            } else {
                // A sample without its value is a selector: the same parser reads both.
                let (series, _) = line.rsplit_once(' ').expect("a sample has a value");
                let Ok(Expr::VectorSelector(selector)) = parser::parse(series) else {
                    panic!("{line}")
                };
                let labels = scrape.labels.entry(selector.name.expect("a name")).or_default();
                labels.extend(selector.matchers.matchers.into_iter().map(|label| label.name));
            }
        }
        scrape
    }

    /// The metric that a sample belongs to: a histogram's samples have a suffix.
    pub(crate) fn metric<'a>(&self, sample: &'a str) -> Option<&'a str> {
        let histogram = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| sample.strip_suffix(suffix));
        let histogram =
            histogram.filter(|name| self.types.get(*name).is_some_and(|kind| kind == "histogram"));
        histogram.or_else(|| self.types.contains_key(sample).then_some(sample))
    }

    /// Whether a series of that sample has the label.
    pub(crate) fn has(&self, sample: &str, label: &str) -> bool {
        TARGET_LABELS.contains(&label)
            || self
                .labels
                .get(sample)
                .is_some_and(|labels| labels.contains(label))
    }

    /// The labels of a metric, without a histogram's `le`.
    pub(crate) fn labels_of(&self, metric: &str) -> BTreeSet<&str> {
        let samples = self
            .labels
            .iter()
            .filter(|(sample, _)| self.metric(sample) == Some(metric));
        samples
            .flat_map(|(_, labels)| labels)
            .map(String::as_str)
            .filter(|label| *label != "le")
            .collect()
    }
}

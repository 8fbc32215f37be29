//! The report of workloads that put claims about schemas to the test: `family`, `orders`, `twibase`.
//!
//! A part asks one question and has several ways to store the same data. Each way has figures; a
//! claim is judged by two of them and a rule ([`Finding`]), so that a verdict always follows from
//! measurements.

mod finding;
mod pages;

pub(crate) use finding::{Finding, Rule, Verdict};
pub(crate) use pages::{markdown, write};

use std::collections::BTreeMap;
use std::fmt::Display;

use basalt_load::load::Measured;
use basalt_load::load::latency::LatencyReport;
use basalt_load::report::Head;
use serde::Serialize;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LabReport {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// The run's question.
    pub(crate) title: &'static str,
    /// Settings shared by the parts, by their names on the command line.
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) parts: Vec<PartReport>,
}

/// One question.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PartReport {
    /// As on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Description of the part's setup.
    pub(crate) setup: String,
    /// The names of the figures, in the order of the table.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) ways: Vec<WayReport>,
    /// Whether the ways gave the same answers; `None` where they were not asked the same.
    pub(crate) equal: Option<bool>,
    /// Questions whose answers were compared.
    pub(crate) compared: u64,
    /// The first answer that was not that of the other way.
    pub(crate) difference: Option<String>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) notes: Vec<String>,
    /// Whether any way has latencies.
    pub(crate) has_questions: bool,
}

/// One way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WayReport {
    pub(crate) name: String,
    /// By name; one that the server does not tell is absent.
    pub(crate) figures: BTreeMap<&'static str, f64>,
    pub(crate) questions: Vec<QuestionReport>,
}

/// The latencies of one question, asked many times.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct QuestionReport {
    pub(crate) name: String,
    pub(crate) latency_seconds: LatencyReport,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
}

impl LabReport {
    /// A report without parts yet.
    pub(crate) fn new(head: Head, title: &'static str) -> LabReport {
        LabReport {
            head,
            title,
            settings: BTreeMap::new(),
            parts: Vec::new(),
        }
    }

    /// Adds a setting.
    pub(crate) fn set(&mut self, name: &str, value: impl Display) {
        self.settings.insert(name.to_owned(), value.to_string());
    }

    /// The first answer that differs between ways.
    pub(crate) fn difference(&self) -> Option<String> {
        self.parts
            .iter()
            .find_map(|part| Some(format!("{}: {}", part.name, part.difference.as_ref()?)))
    }
}

impl PartReport {
    /// A part without ways yet.
    pub(crate) fn new(name: &'static str, title: &'static str, setup: impl Into<String>) -> PartReport {
        PartReport {
            name,
            title,
            setup: setup.into(),
            columns: Vec::new(),
            ways: Vec::new(),
            equal: None,
            compared: 0,
            difference: None,
            findings: Vec::new(),
            notes: Vec::new(),
            has_questions: false,
        }
    }

    /// Adds a way; its figures' columns stand behind those that are there already.
    pub(crate) fn add(&mut self, way: Way) {
        for (name, _) in &way.figures {
            if !self.columns.contains(name) {
                self.columns.push(name);
            }
        }
        self.has_questions |= !way.questions.is_empty();
        self.ways.push(WayReport {
            name: way.name,
            figures: way
                .figures
                .into_iter()
                .filter_map(|(name, figure)| Some((name, figure?)))
                .collect(),
            questions: way.questions,
        });
    }

    /// Judges a claim by one figure of two ways.
    pub(crate) fn judge(&mut self, claim: &str, figure: &'static str, of: [&str; 2], rule: Rule) {
        let [first, second] = of;
        self.judge_figures(claim, (first, figure), (second, figure), rule);
    }

    /// Judges a claim by two figures, each a way and a name.
    pub(crate) fn judge_figures(
        &mut self,
        claim: &str,
        first: (&str, &'static str),
        second: (&str, &'static str),
        rule: Rule,
    ) {
        let finding = Finding::judge(claim, self.measure(first), self.measure(second), rule);
        self.findings.push(finding);
    }

    fn measure(&self, (way, figure): (&str, &'static str)) -> finding::Measure {
        let found = self.ways.iter().find(|found| found.name == way);
        finding::Measure {
            way: way.to_owned(),
            figure,
            value: found.and_then(|way| way.figures.get(figure).copied()),
        }
    }
}

/// A way while it is measured: figures in the order of the table.
#[derive(Debug)]
pub(crate) struct Way {
    name: String,
    figures: Vec<(&'static str, Option<f64>)>,
    questions: Vec<QuestionReport>,
}

impl Way {
    /// A way without figures yet.
    pub(crate) fn new(name: impl Into<String>) -> Way {
        Way {
            name: name.into(),
            figures: Vec::new(),
            questions: Vec::new(),
        }
    }

    /// Adds a figure; `None` if the server does not tell it.
    pub(crate) fn figure(&mut self, name: &'static str, value: impl Into<Option<f64>>) {
        self.figures.push((name, value.into()));
    }

    /// Adds the latencies of a question, and their median in milliseconds as a figure of this name.
    pub(crate) fn latency(&mut self, median: &'static str, question: &str, measured: &Measured) {
        let latency = measured.latencies().report();
        self.figure(median, latency.p50 * 1e3);
        self.questions.push(QuestionReport {
            name: question.to_owned(),
            latency_seconds: latency,
            errors: measured.failures.calls,
            first_error: measured.failures.first.clone(),
        });
    }
}

#[cfg(test)]
mod tests;

//! A claim, its measurement, and the verdict by a rule that is written beside it.

use basalt_load::report::figure;
use serde::Serialize;

/// When a claim counts as confirmed: the relation of the first figure to the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// At least this multiple of the second.
    AtLeast(f64),
    /// At most this multiple of the second.
    AtMost(f64),
}

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Verdict {
    #[serde(rename = "confirmed")]
    Confirmed,
    #[serde(rename = "not seen here")]
    NotSeenHere,
    #[serde(rename = "not measured")]
    NotMeasured,
}

impl Verdict {
    /// As in the JSON.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::NotSeenHere => "not seen here",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// One figure of one way.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) way: String,
    pub(crate) figure: &'static str,
    /// `None` if the server does not tell it.
    pub(crate) value: Option<f64>,
}

/// A claim and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) claim: String,
    pub(crate) measurement: String,
    pub(crate) rule: String,
    pub(crate) verdict: Verdict,
    /// The first figure divided by the second; `None` if one of them is missing or the second is 0.
    pub(crate) ratio: Option<f64>,
}

impl Finding {
    /// Decides a claim. Two figures of 0 show nothing and confirm nothing.
    #[expect(clippy::needless_pass_by_value, reason = "figures are made for this call")]
    pub(crate) fn judge(claim: &str, first: Measure, second: Measure, rule: Rule) -> Finding {
        let verdict = match (first.value, second.value) {
            (Some(first), Some(second)) if rule.holds(first, second) => Verdict::Confirmed,
            (Some(_), Some(_)) => Verdict::NotSeenHere,
            _ => Verdict::NotMeasured,
        };
        let values = first.value.zip(second.value);
        let ratio = values
            .filter(|(_, second)| *second != 0.0)
            .map(|(first, second)| first / second);
        let times = ratio.map_or_else(String::new, |ratio| format!(" ({} times)", figure(ratio)));
        let measurement = if first.figure == second.figure {
            let (first_text, second_text) = (first.text(), second.text());
            format!(
                "{}: {} {first_text}; {} {second_text}{times}",
                first.name(),
                first.way,
                second.way
            )
        } else {
            let one = |measure: &Measure| format!("{} of {} {}", measure.name(), measure.way, measure.text());
            format!("{}; {}{times}", one(&first), one(&second))
        };
        Finding {
            claim: claim.to_owned(),
            measurement,
            rule: rule.text(&first, &second),
            verdict,
            ratio,
        }
    }

    /// A claim that could not be put to the test.
    pub(crate) fn not_measured(claim: &str, why: impl Into<String>) -> Finding {
        Finding {
            claim: claim.to_owned(),
            measurement: why.into(),
            rule: String::new(),
            verdict: Verdict::NotMeasured,
            ratio: None,
        }
    }
}

impl Measure {
    fn name(&self) -> String {
        self.figure.replace('_', " ")
    }

    fn text(&self) -> String {
        self.value
            .map_or_else(|| "not told by this server".to_owned(), figure)
    }
}

impl Rule {
    fn holds(self, first: f64, second: f64) -> bool {
        if first == 0.0 && second == 0.0 {
            return false;
        }
        match self {
            Rule::AtLeast(times) => first >= second * times,
            Rule::AtMost(times) => first <= second * times,
        }
    }

    fn text(self, first: &Measure, second: &Measure) -> String {
        let (bound, times) = match self {
            Rule::AtLeast(times) => ("at least", times),
            Rule::AtMost(times) => ("at most", times),
        };
        let (first, second) = if first.figure == second.figure {
            (first.way.clone(), second.way.clone())
        } else {
            (first.name(), second.name())
        };
        format!("{first} is {bound} {times} times {second}")
    }
}

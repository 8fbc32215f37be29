//! The report of a model: a verdict for each pattern in each layout, and the layouts side by side.
//!
//! Verdicts follow from figures by the rules of [`judge`](Judged::judge), and the advice from verdicts
//! (`advice`).

use basalt_load::load::latency::LatencyReport;
use basalt_load::report::{Head, MeasuredReport, commas, figure};
use serde::Serialize;

use super::file::{Pattern, PatternKind};
use super::measure::Figures;
use super::split::Busiest;

/// Share of a rate that counts as reached: tasks end at different times.
const REACHED: f64 = 0.95;
/// Rows read for each returned from which a read wastes much, and from which it does not fit.
const WASTE_MUCH: f64 = 10.0;
const WASTE_MAX: f64 = 100.0;
/// Scans of a question that are many.
const SCANS_MANY: u64 = 64;
/// The busiest part's writes divided by the mean, from which it is hot.
const HOT: f64 = 2.0;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) title: String,
    pub(super) file: String,
    /// The result in a sentence or two.
    pub(super) result: String,
    /// Which layout to take, and its price.
    pub(super) advice: String,
    /// Says that there are no servers to spread over, and how to rehearse; empty in a rehearsal.
    pub(super) rehearse: String,
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) layouts: Vec<LayoutReport>,
    pub(super) tables: Vec<TableReport>,
    pub(super) patterns: Vec<PatternReport>,
}

/// A layout.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LayoutReport {
    pub(super) name: String,
    /// Patterns that fit, with those that fit with care.
    pub(super) fit: usize,
    /// Files with the code.
    pub(super) code: Vec<String>,
    pub(super) tables: Vec<LoadedReport>,
}

/// A table in a layout.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LoadedReport {
    pub(super) table: String,
    /// On the server.
    pub(super) full_name: String,
    pub(super) key: String,
    /// `None`: any length.
    pub(super) key_bytes: Option<usize>,
    pub(super) regions: usize,
    pub(super) rows_per_second: f64,
    /// Keys that an earlier row has, too, among those looked at.
    pub(super) collisions: u64,
    pub(super) keys_looked_at: u64,
}

/// A table of the model.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TableReport {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) rows_per_day: f64,
    /// Bytes of keys and cells after `keep_days`.
    pub(super) bytes_kept: f64,
    pub(super) keep_days: u64,
    pub(super) regions: u64,
    /// Rules of thumb that it breaks.
    pub(super) broken: Vec<BrokenReport>,
}

/// A rule of thumb.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct BrokenReport {
    pub(super) layout: String,
    pub(super) what: String,
    pub(super) rule: String,
}

/// A pattern.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PatternReport {
    pub(super) name: String,
    pub(super) table: String,
    pub(super) kind: &'static str,
    /// Wanted in a second; `None`: as many as are answered.
    pub(super) rate: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) is_important: bool,
    /// Numbers of the rows that answer the first question, the newest first; empty for writes.
    pub(super) example: Vec<u64>,
    /// By layout.
    pub(super) results: Vec<ResultReport>,
}

/// How a pattern fits a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum Verdict {
    #[serde(rename = "does not fit")]
    DoesNotFit,
    /// No operation fell due, so there are no figures; what is known without them is no obstacle.
    #[serde(rename = "not measured")]
    NotMeasured,
    #[serde(rename = "fits with care")]
    WithCare,
    #[serde(rename = "fits")]
    Fits,
}

impl Verdict {
    /// As in the JSON.
    pub(super) fn text(self) -> &'static str {
        match self {
            Verdict::Fits => "fits",
            Verdict::WithCare => "fits with care",
            Verdict::NotMeasured => "not measured",
            Verdict::DoesNotFit => "does not fit",
        }
    }
}

/// A pattern in a layout.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ResultReport {
    pub(super) layout: String,
    pub(super) verdict: Verdict,
    /// Why, if it does not simply fit.
    pub(super) reasons: Vec<String>,
    /// How it is answered.
    pub(super) plan: String,
    /// Rows written, or questions answered, in a second; `None` if it was not run.
    pub(super) per_second: Option<f64>,
    #[serde(flatten)]
    pub(super) measured: Option<MeasuredReport>,
    /// For each question.
    pub(super) scans: f64,
    pub(super) rows_read: f64,
    pub(super) rows_returned: f64,
    pub(super) bytes_read: f64,
    /// Share of a minute's new rows that go to the busiest part.
    pub(super) busiest_share: Option<f64>,
    /// `servers`, or `regions` where there is one server.
    pub(super) parts: &'static str,
    pub(super) parts_count: usize,
    /// Answers that were compared with the model.
    pub(super) checked: u64,
    pub(super) difference: Option<String>,
}

/// The figures that a result is judged by.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) pattern: &'a Pattern,
    /// Wanted in a second.
    pub(super) rate: Option<f64>,
    /// Time that the pattern ran.
    pub(super) seconds: u64,
    pub(super) layout: &'a str,
    pub(super) plan: String,
    /// Writes only.
    pub(super) busiest: Option<Busiest>,
    /// Whether parts are servers.
    pub(super) is_cluster: bool,
    /// Keys of the table that collide, and those looked at.
    pub(super) collisions: (u64, u64),
}

impl Judged<'_> {
    /// The verdict by the figures; without figures for a pattern that needs `scans` scans, too many to be
    /// run.
    pub(super) fn judge(self, figures: Option<&Figures>, scans: u64) -> ResultReport {
        let was_run = figures.is_some();
        let figures = figures.filter(|figures| !nothing_was_due(figures));
        let mut verdict = Verdict::Fits;
        let mut reasons = Vec::new();
        let mut found = |lower: Verdict, reason: String| {
            verdict = verdict.min(lower);
            reasons.push(reason);
        };
        let (colliding, looked_at) = self.collisions;
        if colliding > 0 {
            found(
                Verdict::DoesNotFit,
                format!("{colliding} of {looked_at} rows overwrite others, because their keys are equal"),
            );
        }
        let questions = figures.map_or(1.0, |figures| figures.measured.operations().max(1) as f64);
        let is_write = matches!(self.pattern.kind, PatternKind::Write { .. });
        let per_second = figures.map(|figures| {
            let count = if is_write {
                figures.measured.rows()
            } else {
                figures.measured.operations()
            };
            figures.measured.per_second(count)
        });
        let latency = figures.map(|figures| figures.measured.latencies().report());
        let unit = if is_write { "rows" } else { "questions" };
        match (per_second, self.rate) {
            (None, _) if was_run => found(
                Verdict::NotMeasured,
                format!(
                    "no operation fell due in {} s: raise --scale or --seconds",
                    self.seconds
                ),
            ),
            (None, _) => found(
                Verdict::DoesNotFit,
                format!("one question would take {} scans", commas(scans as f64)),
            ),
            (Some(reached), Some(rate)) if reached < rate * REACHED => found(
                Verdict::DoesNotFit,
                format!(
                    "it reaches {} of {} {unit} a second",
                    number(reached),
                    number(rate)
                ),
            ),
            _ => {}
        }
        if let (Some(latency), Some(bound)) = (&latency, self.pattern.p99_ms)
            && latency.p99 * 1e3 > bound
        {
            let p99 = figure(latency.p99 * 1e3);
            found(
                Verdict::DoesNotFit,
                format!("its p99 is {p99} ms, and {bound} ms were asked for"),
            );
        }
        let given_up: u64 = figures.map_or(0, |figures| {
            figures.measured.kinds.iter().map(|kind| kind.given_up).sum()
        });
        if given_up > 0 {
            found(Verdict::DoesNotFit, format!("{given_up} calls failed for good"));
        }
        let parts = if self.is_cluster { "servers" } else { "regions" };
        if let Some(busiest) = self.busiest
            && busiest.parts > 1
            && busiest.peak_to_mean() >= HOT
        {
            found(
                Verdict::WithCare,
                format!(
                    "one of {} {parts} takes {:.0} % of a minute's rows: it is as fast as one server, however many there are",
                    busiest.parts,
                    busiest.share * 100.0
                ),
            );
        }
        let rows_read = figures.map_or(0.0, |figures| figures.rows_read as f64 / questions);
        let rows_returned = figures.map_or(0.0, |figures| figures.rows_returned as f64 / questions);
        let waste = rows_read / rows_returned.max(1.0);
        if waste >= WASTE_MUCH {
            let lower = if waste >= WASTE_MAX {
                Verdict::DoesNotFit
            } else {
                Verdict::WithCare
            };
            found(
                lower,
                format!("it reads {} rows for each that it returns", commas(waste)),
            );
        }
        if scans > SCANS_MANY && figures.is_some() {
            found(Verdict::WithCare, format!("one question takes {scans} scans"));
        }
        let difference = figures.and_then(|figures| figures.difference.clone());
        if let Some(difference) = &difference {
            found(Verdict::DoesNotFit, difference.clone());
        }
        ResultReport {
            layout: self.layout.to_owned(),
            verdict,
            reasons,
            plan: self.plan,
            per_second,
            measured: figures.map(|figures| MeasuredReport::new(&figures.measured)),
            scans: figures.map_or(scans as f64, |figures| figures.scans as f64 / questions),
            rows_read,
            rows_returned,
            bytes_read: figures.map_or(0.0, |figures| figures.bytes_read as f64 / questions),
            busiest_share: self.busiest.map(|busiest| busiest.share),
            parts,
            parts_count: self.busiest.map_or(0, |busiest| busiest.parts),
            checked: figures.map_or(0, |figures| figures.checked),
            difference,
        }
    }
}

/// Whether the time was too short for the rate: no operation was carried out, and none was missed.
fn nothing_was_due(figures: &Figures) -> bool {
    let measured = &figures.measured;
    let given_up: u64 = measured.kinds.iter().map(|kind| kind.given_up).sum();
    measured.operations() + given_up + measured.not_begun == 0
}

impl ResultReport {
    /// Latencies; `None` if no operation was carried out.
    fn latency(&self) -> Option<&LatencyReport> {
        let latency = self.measured.as_ref().map(|measured| &measured.latency_seconds);
        latency.filter(|latency| latency.count > 0)
    }

    /// Median in milliseconds.
    pub(super) fn p50_ms(&self) -> Option<f64> {
        self.latency().map(|latency| latency.p50 * 1e3)
    }

    /// 99th percentile in milliseconds.
    pub(super) fn p99_ms(&self) -> Option<f64> {
        self.latency().map(|latency| latency.p99 * 1e3)
    }
}

/// A number with few digits: whole from 10 on.
pub(super) fn number(value: f64) -> String {
    if value >= 10.0 {
        commas(value)
    } else {
        figure(value)
    }
}

/// The result: how many patterns fit each layout, and the greatest difference between two.
pub(super) fn result(report: &Report) -> String {
    let count = report.patterns.len();
    let fits = report
        .layouts
        .iter()
        .map(|layout| format!("{} of {count} in {}", layout.fit, layout.name));
    let fits = format!("Patterns that fit: {}.", fits.collect::<Vec<_>>().join(", "));
    match greatest_difference(report) {
        Some(difference) => format!("{difference} {fits}"),
        None => fits,
    }
}

/// The pattern whose rates, or medians, differ most between two layouts.
fn greatest_difference(report: &Report) -> Option<String> {
    let mut greatest: Option<(f64, String)> = None;
    for pattern in &report.patterns {
        let rates = compared(pattern, ResultReport::rate_reached, |best, other| {
            let unit = if pattern.kind == "write" {
                "rows/s"
            } else {
                "answers/s"
            };
            (
                best.per_second.map_or_else(String::new, number) + " " + unit,
                other.per_second.map_or_else(String::new, number),
            )
        });
        let medians = compared(
            pattern,
            |result| result.p50_ms().map(|ms| 1.0 / ms.max(1e-6)),
            |best, other| {
                let ms = |result: &ResultReport| result.p50_ms().map_or_else(String::new, number);
                (ms(best) + " ms", ms(other))
            },
        );
        for (times, text) in [rates, medians].into_iter().flatten() {
            if greatest.as_ref().is_none_or(|(most, _)| times > *most) {
                greatest = Some((times, text));
            }
        }
    }
    greatest.filter(|(times, _)| *times >= 1.2).map(|(_, text)| text)
}

impl ResultReport {
    /// A rate that others can be compared with: none is a multiple of 0.
    fn rate_reached(&self) -> Option<f64> {
        self.per_second.filter(|rate| *rate > 0.0)
    }
}

/// The best and the worst layout of a pattern by a figure of which more is better, in words.
fn compared(
    pattern: &PatternReport,
    by: impl Fn(&ResultReport) -> Option<f64>,
    words: impl Fn(&ResultReport, &ResultReport) -> (String, String),
) -> Option<(f64, String)> {
    let known = || {
        pattern
            .results
            .iter()
            .filter_map(|result| Some((by(result)?, result)))
    };
    let (most, best) = known().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (least, worst) = known().min_by(|a, b| a.0.total_cmp(&b.0))?;
    if best.layout == worst.layout {
        return None;
    }
    let times = most / least.max(1e-9);
    let (best_text, worst_text) = words(best, worst);
    Some((
        times,
        format!(
            "{}: {best_text} in {} against {worst_text} in {}: {times:.1}x.",
            pattern.name, best.layout, worst.layout
        ),
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use basalt_load::report::REPORT_FORMAT;

    use super::super::advice::conclude;
    use super::*;

    pub(in crate::model) fn result(
        layout: &str,
        verdict: Verdict,
        per_second: f64,
        scans: f64,
    ) -> ResultReport {
        ResultReport {
            layout: layout.to_owned(),
            verdict,
            reasons: vec!["a reason".to_owned(); usize::from(verdict < Verdict::Fits)],
            plan: String::new(),
            per_second: Some(per_second),
            measured: None,
            scans,
            rows_read: 1.0,
            rows_returned: 1.0,
            bytes_read: 1.0,
            busiest_share: None,
            parts: "servers",
            parts_count: 2,
            checked: 1,
            difference: None,
        }
    }

    /// Writes are faster with a salt, and reads take more scans.
    pub(in crate::model) fn report(important: &str) -> Report {
        let layout = |name: &str| LayoutReport {
            name: name.to_owned(),
            fit: 0,
            code: Vec::new(),
            tables: Vec::new(),
        };
        let pattern = |name: &str, kind, results| PatternReport {
            name: name.to_owned(),
            table: "t".to_owned(),
            kind,
            rate: None,
            p99_ms: None,
            is_important: important.is_empty() || name == important,
            example: Vec::new(),
            results,
        };
        Report {
            head: Head {
                format: REPORT_FORMAT,
                workload: "model",
                tool: "basalt-bench 0.0.0",
                server: "Basalt 0.0.0".to_owned(),
                target: "127.0.0.1:9090".to_owned(),
                started_ms: 1,
            },
            title: "Model".to_owned(),
            file: "m.toml".to_owned(),
            result: String::new(),
            advice: String::new(),
            rehearse: String::new(),
            settings: Vec::new(),
            layouts: vec![layout("plain"), layout("salted")],
            tables: Vec::new(),
            patterns: vec![
                pattern(
                    "write",
                    "write",
                    vec![
                        result("plain", Verdict::DoesNotFit, 3_118.0, 0.0),
                        result("salted", Verdict::Fits, 24_866.0, 0.0),
                    ],
                ),
                pattern(
                    "read",
                    "read",
                    vec![
                        result("plain", Verdict::Fits, 10.0, 1.0),
                        result("salted", Verdict::WithCare, 10.0, 16.0),
                    ],
                ),
            ],
        }
    }

    #[test]
    fn the_result_comes_first_and_is_a_ratio() {
        let mut all = report("");
        conclude(&mut all);
        assert_eq!(
            all.result,
            "write: 24,866 rows/s in salted against 3,118 in plain: 8.0x. Patterns that fit: 1 of 2 in plain, 2 of 2 in salted."
        );
    }
}

//! The advice of a model's report: which layout to take, at what price, and what it does not solve.
//!
//! 1. A layout has points for each verdict. The patterns that were named as important count first, the others
//!    decide between layouts that are equal by those.
//! 2. Layouts with the most points are compared pattern by pattern: equal sums may hide that each is better
//!    for something else.
//!
//! Patterns that a layout has no figures for are left out for all.

#![expect(clippy::format_push_string, reason = "a few texts for people")]

use super::report::{PatternReport, Report, ResultReport, Verdict, number, result};

/// Fills in the result and the advice.
pub(super) fn conclude(report: &mut Report) {
    for (index, layout) in report.layouts.iter_mut().enumerate() {
        let results = report.patterns.iter().map(|pattern| &pattern.results[index]);
        layout.fit = results
            .filter(|result| result.verdict > Verdict::NotMeasured)
            .count();
    }
    report.result = result(report);
    report.advice = advice(report);
}

/// Which layout to take.
fn advice(report: &Report) -> String {
    let [_, _, ..] = &report.layouts[..] else {
        return one_layout(report);
    };
    let contest = Contest::of(report);
    let mut advice = contest.winner();
    if let [best] = contest.best[..] {
        let measured = contest.measured.iter();
        let prices = measured.filter_map(|pattern| price(pattern, best));
        let prices: Vec<String> = prices.collect();
        if !prices.is_empty() {
            advice += &format!(" Its price: {}.", prices.join("; "));
        }
    }
    let not_solved = contest.not_solved();
    if !not_solved.is_empty() {
        advice += &format!(" Not solved: {}.", not_solved.join("; "));
    }
    let not_measured = names(report.patterns.iter().filter(|pattern| !is_measured(pattern)));
    if !not_measured.is_empty() {
        advice += &format!(" Not measured: {not_measured}; raise --scale or --seconds.");
    }
    advice
}

/// The layouts side by side.
struct Contest<'a> {
    report: &'a Report,
    /// Patterns that every layout has figures for.
    measured: Vec<&'a PatternReport>,
    /// Whether some patterns were named as important, and not all of them.
    is_named: bool,
    /// Points of each layout: by the important patterns, then by the others.
    points: Vec<(usize, usize)>,
    /// The layouts with the most points, by index.
    best: Vec<usize>,
}

impl Contest<'_> {
    fn of(report: &Report) -> Contest<'_> {
        let measured: Vec<&PatternReport> = report
            .patterns
            .iter()
            .filter(|pattern| is_measured(pattern))
            .collect();
        let sum = |layout: usize, is_important: bool| -> usize {
            let patterns = measured
                .iter()
                .filter(|pattern| pattern.is_important == is_important);
            patterns
                .map(|pattern| points(pattern.results[layout].verdict))
                .sum()
        };
        let layouts = 0..report.layouts.len();
        let points: Vec<(usize, usize)> = layouts
            .clone()
            .map(|layout| (sum(layout, true), sum(layout, false)))
            .collect();
        let most = points.iter().max().copied().unwrap_or_default();
        Contest {
            report,
            is_named: report.patterns.iter().any(|pattern| !pattern.is_important),
            best: layouts.filter(|layout| points[*layout] == most).collect(),
            points,
            measured,
        }
    }

    fn name(&self, layout: usize) -> &str {
        &self.report.layouts[layout].name
    }

    fn names(&self, layouts: &[usize]) -> String {
        let names: Vec<&str> = layouts.iter().map(|layout| self.name(*layout)).collect();
        names.join(", ")
    }

    /// The important patterns in words.
    fn important(&self) -> String {
        let important = self.report.patterns.iter().filter(|pattern| pattern.is_important);
        format!("what matters to you ({})", names(important))
    }

    /// The first sentence or two.
    fn winner(&self) -> String {
        if self.measured.is_empty() {
            return "There is nothing to compare.".to_owned();
        }
        match self.best[..] {
            [best] => self.take(best),
            _ if self.is_same() => self.equal(),
            _ => self.neither(),
        }
    }

    /// One layout has the most points.
    fn take(&self, best: usize) -> String {
        let name = self.name(best);
        if !self.is_named {
            return format!(
                "Take {name}, judged by all patterns alike; --important names those that matter more."
            );
        }
        let is_rival = |layout: &usize| *layout != best && self.points[*layout].0 == self.points[best].0;
        let rivals: Vec<usize> = (0..self.points.len()).filter(is_rival).collect();
        if rivals.is_empty() {
            return format!("Take {name}, judged by {}.", self.important());
        }
        let better = self.measured.iter().copied().filter(|pattern| {
            let own = pattern.results[best].verdict;
            let is_better = |rival: &usize| own > pattern.results[*rival].verdict;
            !pattern.is_important && rivals.iter().any(is_better)
        });
        format!(
            "Take {name}. By {} it is equal to {}; the other patterns decide, where it is better for {}.",
            self.important(),
            self.names(&rivals),
            names(better)
        )
    }

    /// Whether the best layouts have the same verdict in every pattern.
    fn is_same(&self) -> bool {
        self.measured.iter().all(|pattern| {
            let mut verdicts = self.best.iter().map(|layout| pattern.results[*layout].verdict);
            let first = verdicts.next();
            verdicts.all(|verdict| Some(verdict) == first)
        })
    }

    fn equal(&self) -> String {
        if self.best.len() == self.points.len() {
            let also = if self.is_named {
                format!(", also in {}", self.important())
            } else {
                String::new()
            };
            return format!("The layouts get the same verdicts in all patterns{also}: take the simpler one.");
        }
        let by = if self.is_named {
            self.important()
        } else {
            "all patterns alike; --important names those that matter more".to_owned()
        };
        let best = self.names(&self.best);
        format!("Take the simplest of {best}, which get the same verdicts, judged by {by}.")
    }

    /// The best layouts have as many points, and other verdicts.
    fn neither(&self) -> String {
        let strengths = self.best.iter().enumerate().map(|(place, layout)| {
            let better = self.measured.iter().copied().filter(|pattern| {
                let verdicts = self.best.iter().map(|layout| pattern.results[*layout].verdict);
                Some(pattern.results[*layout].verdict) > verdicts.min()
            });
            let verb = if place == 0 { " is better" } else { "" };
            format!("{}{verb} for {}", self.name(*layout), names(better))
        });
        let strengths: Vec<String> = strengths.collect();
        let by = if self.is_named {
            format!(", by {} and by the other patterns", self.important())
        } else {
            String::new()
        };
        let wins = if self.best.len() == 2 {
            "Neither wins".to_owned()
        } else {
            format!("None of {} wins", self.names(&self.best))
        };
        format!("{wins}{by}: {}; --important decides.", strengths.join(", "))
    }

    /// Patterns that fit none of the best layouts, with the first reason.
    fn not_solved(&self) -> Vec<String> {
        let unsolved = self.report.patterns.iter().filter_map(|pattern| {
            let mut results = self.best.iter().map(|layout| &pattern.results[*layout]);
            let first = results.clone().next()?.reasons.first()?;
            results
                .all(|result| result.verdict == Verdict::DoesNotFit)
                .then(|| format!("{}: {first}", pattern.name))
        });
        unsolved.collect()
    }
}

/// The points of a verdict.
fn points(verdict: Verdict) -> usize {
    match verdict {
        Verdict::DoesNotFit | Verdict::NotMeasured => 0,
        Verdict::WithCare => 1,
        Verdict::Fits => 2,
    }
}

fn is_measured(pattern: &PatternReport) -> bool {
    let mut results = pattern.results.iter();
    results.all(|result| result.verdict != Verdict::NotMeasured)
}

/// The names of patterns, quoted.
fn names<'a>(patterns: impl Iterator<Item = &'a PatternReport>) -> String {
    let names = patterns.map(|pattern| format!("\"{}\"", pattern.name));
    names.collect::<Vec<_>>().join(", ")
}

/// The price of a layout in a pattern, compared with the best of the others.
fn price(pattern: &PatternReport, layout: usize) -> Option<String> {
    let own = &pattern.results[layout];
    if pattern.kind == "write" {
        let best = pattern.results.iter().map(|other| other.verdict).max()?;
        let first = own.reasons.first().filter(|_| best > own.verdict)?;
        return Some(format!("\"{}\": {first}", pattern.name));
    }
    let better = pattern
        .results
        .iter()
        .filter(|other| other.verdict > own.verdict || other.scans < own.scans);
    let better = better.min_by(|a, b| a.scans.total_cmp(&b.scans))?;
    let ms = |result: &ResultReport| {
        result
            .p50_ms()
            .map_or("-".to_owned(), |ms| format!("{} ms", number(ms)))
    };
    Some(format!(
        "\"{}\" takes {} scans and {}, against {} and {} in {}",
        pattern.name,
        number(own.scans),
        ms(own),
        number(better.scans),
        ms(better),
        better.layout
    ))
}

fn one_layout(report: &Report) -> String {
    let wrong = report.patterns.iter().filter_map(|pattern| {
        let result = pattern
            .results
            .first()
            .filter(|result| result.verdict < Verdict::Fits && is_measured(pattern))?;
        Some(format!("{}: {}", pattern.name, result.reasons.join(", ")))
    });
    let wrong: Vec<String> = wrong.collect();
    let not_measured = names(report.patterns.iter().filter(|pattern| !is_measured(pattern)));
    let advice = if wrong.is_empty() {
        "Every pattern that was measured fits.".to_owned()
    } else {
        format!("Try another layout beside this one, for: {}.", wrong.join("; "))
    };
    if not_measured.is_empty() {
        return advice;
    }
    format!("{advice} Not measured: {not_measured}; raise --scale or --seconds.")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{report, result};
    use super::*;
    use Verdict::{DoesNotFit, Fits, NotMeasured, WithCare};

    /// The advice on layouts `a`, `b` and so on with these verdicts for patterns, of which some are
    /// important.
    fn advised(patterns: &[(&str, &[Verdict])], important: &[&str]) -> String {
        let mut made = report("");
        let layouts: Vec<String> = (b'a'..)
            .take(patterns[0].1.len())
            .map(|name| char::from(name).to_string())
            .collect();
        let layout = made.layouts[0].clone();
        made.layouts = layouts
            .iter()
            .map(|name| super::super::report::LayoutReport {
                name: name.clone(),
                ..layout.clone()
            })
            .collect();
        let pattern = made.patterns[1].clone();
        let pattern = |(name, verdicts): &(&str, &[Verdict])| PatternReport {
            name: (*name).to_owned(),
            is_important: important.is_empty() || important.contains(name),
            results: layouts
                .iter()
                .zip(*verdicts)
                .map(|(layout, verdict)| result(layout, *verdict, 1.0, 1.0))
                .collect(),
            ..pattern.clone()
        };
        made.patterns = patterns.iter().map(pattern).collect();
        conclude(&mut made);
        made.advice
    }

    #[test]
    fn the_advice_depends_on_what_is_important() {
        let advised = |important: &str| {
            let mut report = report(important);
            conclude(&mut report);
            report.advice
        };
        let all = advised("");
        assert!(
            all.starts_with("Take salted, judged by all patterns alike"),
            "{all}"
        );
        assert!(
            all.contains("Its price: \"read\" takes 16 scans and -, against 1 and - in plain."),
            "{all}"
        );
        let read = advised("read");
        assert!(
            read.starts_with("Take plain, judged by what matters to you (\"read\")."),
            "{read}"
        );
        assert!(read.contains("Not solved: write: a reason."), "{read}");
    }

    #[test]
    fn layouts_with_the_same_verdicts_are_equal() {
        let patterns: [(&str, &[Verdict]); 2] = [("x", &[Fits, Fits]), ("y", &[DoesNotFit, DoesNotFit])];
        assert_eq!(
            advised(&patterns, &[]),
            "The layouts get the same verdicts in all patterns: take the simpler one. Not solved: y: a reason."
        );
        assert_eq!(
            advised(&patterns, &["x"]),
            "The layouts get the same verdicts in all patterns, also in what matters to you (\"x\"): take the simpler one. \
             Not solved: y: a reason."
        );
        let patterns: [(&str, &[Verdict]); 2] = [
            ("x", &[Fits, Fits, WithCare]),
            ("y", &[WithCare, WithCare, WithCare]),
        ];
        assert_eq!(
            advised(&patterns, &["x"]),
            "Take the simplest of a, b, which get the same verdicts, judged by what matters to you (\"x\")."
        );
    }

    /// As many points for other patterns: one that does not fit in one layout fits in the other.
    #[test]
    fn equal_sums_of_other_verdicts_are_no_tie() {
        let patterns: [(&str, &[Verdict]); 3] = [
            ("x", &[Fits, DoesNotFit]),
            ("y", &[DoesNotFit, Fits]),
            ("z", &[DoesNotFit, DoesNotFit]),
        ];
        assert_eq!(
            advised(&patterns, &[]),
            "Neither wins: a is better for \"x\", b for \"y\"; --important decides. Not solved: z: a reason."
        );
        assert_eq!(
            advised(&patterns, &["z"]),
            "Neither wins, by what matters to you (\"z\") and by the other patterns: a is better for \"x\", b for \"y\"; \
             --important decides. Not solved: z: a reason."
        );
        assert!(
            advised(&patterns, &["y"]).starts_with("Take b, judged by what matters to you (\"y\")."),
            "{}",
            advised(&patterns, &["y"])
        );
        let three: [(&str, &[Verdict]); 3] = [
            ("x", &[Fits, WithCare, WithCare]),
            ("y", &[WithCare, Fits, WithCare]),
            ("z", &[WithCare, WithCare, Fits]),
        ];
        assert_eq!(
            advised(&three, &[]),
            "None of a, b, c wins: a is better for \"x\", b for \"y\", c for \"z\"; --important decides."
        );
    }

    /// The important pattern is equal in both, so it is not what decided.
    #[test]
    fn others_decide_if_the_important_ones_are_equal() {
        let patterns: [(&str, &[Verdict]); 3] = [
            ("x", &[Fits, Fits]),
            ("y", &[WithCare, Fits]),
            ("z", &[Fits, Fits]),
        ];
        let advice = advised(&patterns, &["x"]);
        assert_eq!(
            advice,
            "Take b. By what matters to you (\"x\") it is equal to a; the other patterns decide, where it is better for \
             \"y\"."
        );
    }

    #[test]
    fn patterns_without_figures_decide_nothing() {
        let patterns: [(&str, &[Verdict]); 2] = [("x", &[NotMeasured, Fits]), ("y", &[Fits, WithCare])];
        let advice = advised(&patterns, &[]);
        assert!(advice.starts_with("Take a, "), "{advice}");
        assert!(
            advice.ends_with(" Not measured: \"x\"; raise --scale or --seconds."),
            "{advice}"
        );
        assert_eq!(
            advised(&[("x", &[NotMeasured, NotMeasured])], &[]),
            "There is nothing to compare. Not measured: \"x\"; raise --scale or --seconds."
        );
        assert_eq!(
            advised(&[("x", &[NotMeasured]), ("y", &[Fits])], &[]),
            "Every pattern that was measured fits. Not measured: \"x\"; raise --scale or --seconds."
        );
    }
}

//! Runs scripts on HBase and on Basalt and looks for differences.

use basalt_calls::Answer;

use super::script::{KNOWN, Line, Script, Step};
use super::shrink;
use super::target::Target;
use super::{compare, explained, play::Player};

/// Plays after which shrinking a difference stops with the shortest script so far.
const SHRINK_PLAYS_MAX: usize = 150;

/// Both servers, and how many scripts they have seen.
#[derive(Debug)]
pub struct Pair<H, B> {
    /// The one that is right.
    pub hbase: H,
    /// Ours.
    pub basalt: B,
    /// Whether a run goes on behind its first difference. Later differences may only be its
    /// consequences.
    pub go_on: bool,
    runs: usize,
}

/// A script with the answers of two servers.
#[derive(Debug)]
pub struct Run {
    /// The script with HBase's answers, and the rules by which Basalt's differed; without steps that failed
    /// on both servers.
    pub script: Script,
    /// The first step with a difference that no rule explains.
    pub difference: Option<Difference>,
    /// The steps behind it with differences, if the run went on.
    pub more: Vec<Difference>,
    /// Steps played to both.
    pub played: usize,
}

/// A difference that no rule explains.
#[derive(Debug)]
pub struct Difference {
    /// Where in [`Run::script`].
    pub step: usize,
    /// Basalt's answer.
    pub basalt: Answer,
}

impl Run {
    /// The kinds of the differing answers.
    fn kind(&self) -> Option<[&'static str; 2]> {
        let sort = |answer: &Answer| match answer {
            Answer::Success(_) => "success",
            Answer::Thrown(name, _) => *name,
            Answer::Application(_) => "application",
        };
        let difference = self.difference.as_ref()?;
        let theirs = self.script.lines.get(difference.step)?.answer.as_ref()?;
        Some([sort(theirs), sort(&difference.basalt)])
    }
}

impl<H: Target, B: Target> Pair<H, B> {
    /// Two servers.
    pub fn new(hbase: H, basalt: B) -> Self {
        Pair {
            hbase,
            basalt,
            go_on: false,
            runs: 0,
        }
    }

    /// Plays a script to both, step by step, up to the first difference or the end. Fails if a server does
    /// not answer.
    pub fn run(&mut self, script: &Script) -> Result<Run, String> {
        self.runs += 1;
        let mut hbase = Player::new(&mut self.hbase, self.runs);
        let mut basalt = Player::new(&mut self.basalt, self.runs);
        let mut run = Run {
            script: Script {
                comment: script.comment.clone(),
                lines: Vec::new(),
            },
            difference: None,
            more: Vec::new(),
            played: 0,
        };
        for (index, line) in script.lines.iter().enumerate() {
            let told = |who: &str, error: String| format!("{who} at step {index}, {}: {error}", line.step);
            let theirs = hbase.step(&line.step).map_err(|error| told("HBase", error));
            let ours = basalt.step(&line.step).map_err(|error| told("Basalt", error));
            run.played += 1;
            let (theirs, ours) = match (&line.step, theirs, ours) {
                (Step::Call(_), theirs, ours) => (theirs?, ours?),
                (_, Ok(_), Ok(_)) => (None, None),
                // Flushes and compactions of tables that are not there, splits of regions at their start: not
                // worth to be kept.
                (_, Err(_), Err(_)) => continue,
                (_, Err(error), _) | (_, _, Err(error)) => return Err(error),
            };
            let is_known = line.is_known();
            let mut line = Line {
                answer: theirs.clone(),
                ..Line::from(line.step.clone())
            };
            if let (Step::Call(call), Some(theirs), Some(ours)) = (&line.step, theirs, ours)
                && !compare::same(call.method, &theirs, &ours)
            {
                if is_known {
                    line.differs = Some(KNOWN.to_owned());
                    line.ours = Some(ours);
                } else if let Some(rule) = explained::rule(call, &theirs, &ours) {
                    line.differs = Some(rule.name.to_owned());
                } else {
                    let difference = Difference {
                        step: run.script.lines.len(),
                        basalt: ours,
                    };
                    if run.difference.is_none() {
                        run.difference = Some(difference);
                    } else {
                        run.more.push(difference);
                    }
                }
            }
            run.script.lines.push(line);
            if run.difference.is_some() && !self.go_on {
                break;
            }
        }
        Ok(run)
    }

    /// The shortest script found whose last step differs as the run's did (result or exception here
    /// and there), with HBase's answers, and Basalt's to the last step. `tidy` removes the remains
    /// of a play from HBase, which would otherwise get slower with each.
    pub fn shrunk(&mut self, run: &Run, mut tidy: impl FnMut(&mut H) -> Result<(), String>) -> Option<Run> {
        let step = run.difference.as_ref()?.step;
        let kind = run.kind();
        let mut best = None;
        let mut plays = 0;
        let script = shrink::prefix(&run.script, step);
        shrink::shrink(script, |candidate| {
            plays += 1;
            if plays > SHRINK_PLAYS_MAX || tidy(&mut self.hbase).is_err() {
                return false;
            }
            // A server that does not answer is another trouble than the one looked for.
            let Ok(run) = self.run(candidate) else {
                return false;
            };
            let whole = run.played == candidate.lines.len();
            let found = run.difference.as_ref();
            // Where a batch failed, HBase has written some of it and Basalt nothing: later answers
            // differ because of that.
            let diverged = run
                .script
                .lines
                .iter()
                .any(|line| line.differs.as_deref() == Some("batch-errors"));
            let is_last = found.is_some_and(|found| found.step + 1 == run.script.lines.len());
            let differs = !diverged && whole && is_last && run.kind() == kind;
            if differs {
                best = Some(run);
            }
            differs
        });
        best
    }
}

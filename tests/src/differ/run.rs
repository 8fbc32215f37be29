//! Runs scripts on HBase and on Basalt and looks for differences.

use crate::dynamic::Answer;

use super::script::{Line, Script, Step};
use super::shrink;
use super::target::Target;
use super::{compare, explained, play::Player};

/// Both servers, and how many scripts they have seen.
#[derive(Debug)]
pub struct Pair<H, B> {
    /// The one that is right.
    pub hbase: H,
    /// Ours.
    pub basalt: B,
    runs: usize,
}

/// What two servers said to one script.
#[derive(Debug)]
pub struct Run {
    /// The script with HBase's answers, and the rules by which Basalt's differed.
    pub script: Script,
    /// The first step with a difference that no rule explains.
    pub difference: Option<Difference>,
    /// Steps played to both.
    pub played: usize,
}

/// A difference that no rule explains.
#[derive(Debug)]
pub struct Difference {
    /// Where.
    pub step: usize,
    /// What Basalt said.
    pub basalt: Answer,
}

impl Run {
    /// What sort of answers differ.
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
            runs: 0,
        }
    }

    /// Plays a script to both, step by step, up to the first difference. Fails if a server does not answer.
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
            played: 0,
        };
        for (index, line) in script.lines.iter().enumerate() {
            let told = |who: &str, error: String| format!("{who} at step {index}, {}: {error}", line.step);
            let theirs = hbase.step(&line.step).map_err(|error| told("HBase", error));
            let ours = basalt.step(&line.step).map_err(|error| told("Basalt", error));
            // Flushes and compactions of tables that are not there fail on both.
            let (theirs, ours) = match (&line.step, theirs, ours) {
                (Step::Call(_), theirs, ours) => (theirs?, ours?),
                (_, Ok(_), Ok(_)) | (_, Err(_), Err(_)) => (None, None),
                (_, Err(error), _) | (_, _, Err(error)) => return Err(error),
            };
            run.played += 1;
            let mut line = Line {
                answer: theirs.clone(),
                ..Line::from(line.step.clone())
            };
            if let (Step::Call(call), Some(theirs), Some(ours)) = (&line.step, theirs, ours)
                && !compare::same(call.method, &theirs, &ours)
            {
                match explained::rule(call, &theirs, &ours) {
                    Some(rule) => line.differs = Some(rule.name.to_owned()),
                    None => {
                        run.difference = Some(Difference {
                            step: index,
                            basalt: ours,
                        });
                    }
                }
            }
            run.script.lines.push(line);
            if run.difference.is_some() {
                break;
            }
        }
        Ok(run)
    }

    /// The shortest script found whose last step differs as the run's did (result or exception here and there), with HBase's answers,
    /// and Basalt's to the last step.
    pub fn shrunk(&mut self, run: &Run) -> Option<Run> {
        let step = run.difference.as_ref()?.step;
        let kind = run.kind();
        let mut best = None;
        let script = shrink::prefix(&run.script, step);
        shrink::shrink(script, |candidate| {
            // A server that does not answer is another trouble than the one looked for.
            let Ok(run) = self.run(candidate) else {
                return false;
            };
            let last = candidate.lines.len() - 1;
            let found = run.difference.as_ref();
            // Where a batch failed, HBase has written some of it and Basalt nothing: what follows differs by that.
            let diverged = run
                .script
                .lines
                .iter()
                .any(|line| line.differs.as_deref() == Some("batch-errors"));
            let differs = !diverged && found.is_some_and(|found| found.step == last) && run.kind() == kind;
            if differs {
                best = Some(run);
            }
            differs
        });
        best
    }
}

//! Asks each way the same questions, and compares the answers.
//!
//! An answer is kept as a hash, 16 bytes a question, so that a million questions can be compared.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use basalt_load::error::{Error, Result};
use basalt_load::load::retry::{Failures, retried};
use basalt_load::load::{self, Measured, Operations, Outcome, Plan};
use basalt_load::session::Answer;
use basalt_load::target::TargetOptions;
use bytes::Bytes;

use super::caller::Caller;
use super::setup::{Lab, ServerCounts};
use crate::claims::{PartReport, Way};

/// One way to answer a question.
pub(crate) trait Question: Send + Sync + 'static {
    /// The answer to question `index`, in an order that is the same for every way.
    fn ask(&self, caller: &Caller, index: u64) -> impl Future<Output = Answer<Vec<Bytes>>> + Send;
}

/// Answers and figures of the questions to one way.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) measured: Measured,
    /// Hashes of the answers, by the question's number.
    answers: BTreeMap<u64, u64>,
    calls: u64,
    rows: u64,
    bytes: u64,
    /// `None` where the server does not tell.
    pub(crate) server: Option<ServerCounts>,
}

impl Asked {
    /// A total as a mean per question.
    pub(crate) fn each(&self, count: f64) -> f64 {
        count / (self.measured.operations().max(1) as f64)
    }

    pub(crate) fn calls_each(&self) -> f64 {
        self.each(self.calls as f64)
    }

    pub(crate) fn rows_each(&self) -> f64 {
        self.each(self.rows as f64)
    }

    pub(crate) fn bytes_each(&self) -> f64 {
        self.each(self.bytes as f64)
    }

    /// Rows that the server read for each question.
    pub(crate) fn rows_read_each(&self) -> Option<f64> {
        self.server.map(|server| self.each(server.rows_read))
    }

    /// Blocks that the server looked for in its cache, for each question.
    pub(crate) fn blocks_each(&self) -> Option<f64> {
        self.server.map(|server| self.each(server.blocks))
    }
}

struct Asking<Q> {
    target: TargetOptions,
    tables: Vec<String>,
    question: Q,
}

struct Worker {
    caller: Caller,
    answers: Vec<(u64, u64)>,
}

impl<Q: Question> Operations for Asking<Q> {
    type Worker = Worker;

    fn kinds(&self) -> Vec<String> {
        vec!["question".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<Worker> {
        Ok(Worker {
            caller: Caller::new(&self.target, &self.tables)?,
            answers: Vec::new(),
        })
    }

    async fn operate(&self, worker: &mut Worker, index: u64) -> Result<Option<Outcome>> {
        let mut failures = Failures::default();
        let caller = &worker.caller;
        let answer = retried(&mut failures, || self.question.ask(caller, index)).await;
        if let Some(answer) = &answer {
            worker.answers.push((index, hash(answer)));
        }
        let rows = answer.map(|answer| answer.len() as u64);
        Ok(Some(Outcome::of(0, rows, failures)))
    }
}

fn hash(answer: &[Bytes]) -> u64 {
    let mut hasher = DefaultHasher::new();
    answer.hash(&mut hasher);
    hasher.finish()
}

impl Lab {
    /// Asks questions of these tables, with the options' pace, threads and time.
    pub(crate) async fn ask<Q: Question>(
        &self,
        label: &str,
        tables: &[String],
        questions: u64,
        question: Q,
    ) -> Result<Asked> {
        let plan = self.options.load.plan(label, Some(questions));
        self.ask_by(plan, tables, question).await
    }

    /// Asks all of them, without a time limit: for questions that write rows for later ones. An
    /// error if one fails for good.
    pub(crate) async fn ask_all<Q: Question>(
        &self,
        label: &str,
        tables: &[String],
        questions: u64,
        question: Q,
    ) -> Result<Asked> {
        let plan = self.whole_plan(label, questions, 1);
        let asked = self.ask_by(plan, tables, question).await?;
        if asked.measured.operations() != questions {
            let first = asked.measured.failures.first.as_deref();
            return Err(Error::Different(format!(
                "{label}: {} of {questions} were done: {}",
                asked.measured.operations(),
                first.unwrap_or("the server gave no reason")
            )));
        }
        Ok(asked)
    }

    async fn ask_by<Q: Question>(&self, plan: Plan, tables: &[String], question: Q) -> Result<Asked> {
        let asking = Arc::new(Asking {
            target: self.options.load.target.clone(),
            tables: tables.to_vec(),
            question,
        });
        let before = self.counts(tables).await?;
        let (measured, workers) = load::run(plan, &asking).await?;
        let after = self.counts(tables).await?;
        let mut asked = Asked {
            measured,
            answers: BTreeMap::new(),
            calls: 0,
            rows: 0,
            bytes: 0,
            server: after.zip(before).map(|(after, before)| after.since(before)),
        };
        for worker in workers {
            let [calls, rows, bytes] = worker.caller.totals();
            asked.calls += calls;
            asked.rows += rows;
            asked.bytes += bytes;
            asked.answers.extend(worker.answers);
        }
        Ok(asked)
    }
}

/// Adds to a part whether two ways gave the same answers to the questions that both were asked.
pub(crate) fn compare(
    part: &mut PartReport,
    question: &str,
    (first, asked): (&str, &Asked),
    (second, other): (&str, &Asked),
) {
    let both = asked
        .answers
        .iter()
        .filter_map(|(index, answer)| Some((index, answer, other.answers.get(index)?)));
    let mut different = None;
    for (index, answer, other) in both {
        part.compared += 1;
        if answer != other && different.is_none() {
            different = Some(*index);
        }
    }
    part.equal = Some(part.equal.unwrap_or(true) && different.is_none());
    if let Some(index) = different {
        part.difference.get_or_insert_with(|| {
            format!("{first} and {second} answer question {index} ({question}) differently")
        });
    }
}

/// Adds the figures that every question has: median, calls, bytes and rows that the server read, each for one
/// question. `names` are those of the four figures.
pub(crate) fn describe(way: &mut Way, question: &str, names: [&'static str; 4], asked: &Asked) {
    let [median, calls, bytes, rows_read] = names;
    way.latency(median, question, &asked.measured);
    way.figure(calls, asked.calls_each());
    way.figure(bytes, asked.bytes_each());
    way.figure(rows_read, asked.rows_read_each());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answers: &[(u64, &'static str)]) -> Asked {
        Asked {
            measured: Measured::new(vec!["question".to_owned()]),
            answers: answers
                .iter()
                .map(|(index, text)| (*index, hash(&[Bytes::from(*text)])))
                .collect(),
            calls: 0,
            rows: 0,
            bytes: 0,
            server: None,
        }
    }

    #[test]
    fn ways_are_equal_where_both_were_asked() {
        let mut part = PartReport::new("p", "P?", "");
        let (one, same) = (
            asked(&[(0, "a"), (1, "b"), (2, "c")]),
            asked(&[(0, "a"), (2, "c")]),
        );
        compare(&mut part, "q", ("one", &one), ("same", &same));
        assert_eq!(
            (part.equal, part.compared, part.difference.clone()),
            (Some(true), 2, None)
        );
        let other = asked(&[(1, "b"), (2, "x")]);
        compare(&mut part, "q", ("one", &one), ("other", &other));
        assert_eq!((part.equal, part.compared), (Some(false), 4));
        let difference = part.difference.clone().unwrap();
        assert!(
            difference.contains("one and other answer question 2 (q)"),
            "{difference}"
        );
        compare(&mut part, "q", ("one", &one), ("same", &same));
        assert_eq!(part.equal, Some(false), "a difference stays");
    }
}

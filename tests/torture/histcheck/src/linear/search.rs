//! A search for an order of the calls of one piece, after Wing and Gong, with the memory that Lowe added.
//!
//! Invocations and returns stand in a list, by time. A call can be next if it was invoked before the first
//! return in the list. The search places one after the other and takes both of its entries out; when the
//! first return belongs to a call that could not be placed, it goes back and tries another.
//!
//! - Memory: a set of placed calls with the state behind them is explored once.
//! - A read that fits is placed for good: calls that can be placed later can be placed behind it,
//!   too.
//! - A call of unknown outcome whose end (the crash) is reached without a place did not take effect.

use std::collections::{HashMap, HashSet};

use super::Verdict;
use super::model::{Effect, apply};
use crate::history::{Call, Columns, Outcome};
use crate::notation;

/// The head of the list; no entry.
const HEAD: usize = 0;

/// The list of entries. Entry 0 is the head and, as a successor, the end.
struct Entries {
    /// By entry: the call, and whether this is its invocation.
    of: Vec<(usize, bool)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    /// By call: its two entries.
    invocation: Vec<usize>,
    end: Vec<usize>,
}

impl Entries {
    fn new(calls: &[&Call]) -> Self {
        let mut of: Vec<(usize, bool)> = (0..calls.len())
            .flat_map(|call| [(call, true), (call, false)])
            .collect();
        // At the same time invocations come first: such calls are concurrent.
        of.sort_by_key(|(call, invocation)| {
            let time = if *invocation {
                calls[*call].invoked
            } else {
                calls[*call].returned
            };
            (time, !invocation)
        });
        of.insert(HEAD, (usize::MAX, false));
        let count = of.len();
        let (mut invocation, mut end) = (vec![0; calls.len()], vec![0; calls.len()]);
        for (entry, (call, is_invocation)) in of.iter().enumerate().skip(1) {
            if *is_invocation {
                invocation[*call] = entry;
            } else {
                end[*call] = entry;
            }
        }
        Self {
            next: (0..count).map(|entry| (entry + 1) % count).collect(),
            previous: (0..count).map(|entry| (entry + count - 1) % count).collect(),
            of,
            invocation,
            end,
        }
    }

    fn first(&self) -> usize {
        self.next[HEAD]
    }

    fn take(&mut self, entry: usize) {
        let (previous, next) = (self.previous[entry], self.next[entry]);
        self.next[previous] = next;
        self.previous[next] = previous;
    }

    fn put_back(&mut self, entry: usize) {
        let (previous, next) = (self.previous[entry], self.next[entry]);
        self.next[previous] = entry;
        self.previous[next] = entry;
    }

    fn take_call(&mut self, call: usize) {
        self.take(self.invocation[call]);
        self.take(self.end[call]);
    }

    fn put_call_back(&mut self, call: usize) {
        self.put_back(self.end[call]);
        self.put_back(self.invocation[call]);
    }
}

/// States by number.
struct States {
    all: Vec<Columns>,
    numbers: HashMap<Columns, usize>,
}

impl States {
    fn number(&mut self, columns: Columns) -> usize {
        if let Some(number) = self.numbers.get(&columns) {
            return *number;
        }
        self.all.push(columns.clone());
        self.numbers.insert(columns, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// A call that was given a place, or none.
struct Step {
    call: usize,
    /// The state before it.
    before: usize,
    /// Whether something else can be tried instead.
    alternatives: bool,
}

/// Looks for an order that begins with these columns.
pub(super) fn decide(calls: &[&Call], initial: &Columns, steps_max: usize) -> Verdict {
    let mut entries = Entries::new(calls);
    let mut states = States {
        all: Vec::new(),
        numbers: HashMap::new(),
    };
    let mut state = states.number(initial.clone());
    let mut placed = vec![0u64; calls.len().div_ceil(64)];
    let mut seen: HashSet<(Box<[u64]>, usize)> = HashSet::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut stuck = Stuck::default();
    let mut entry = entries.first();
    for _ in 0..steps_max {
        if entry == HEAD {
            return Verdict::Right;
        }
        let (call, is_invocation) = entries.of[entry];
        let attempt = if is_invocation {
            match apply(&states.all[state], calls[call]) {
                Effect::Impossible => None,
                Effect::Same => Some((state, calls[call].outcome == Outcome::Unknown)),
                Effect::Changed(after) => Some((states.number(after), true)),
            }
        } else if calls[call].outcome == Outcome::Unknown {
            Some((state, false))
        } else {
            None
        };
        if let Some((after, alternatives)) = attempt {
            placed[call / 64] |= 1 << (call % 64);
            if seen.insert((placed.clone().into_boxed_slice(), after)) {
                steps.push(Step {
                    call,
                    before: state,
                    alternatives,
                });
                state = after;
                entries.take_call(call);
                entry = entries.first();
                continue;
            }
            placed[call / 64] &= !(1 << (call % 64));
        }
        if is_invocation {
            entry = entries.next[entry];
            continue;
        }
        stuck.note(steps.len(), call, state);
        // Back to the last step that had alternatives.
        loop {
            let Some(step) = steps.pop() else {
                return Verdict::Wrong(stuck.explain(calls, &states));
            };
            placed[step.call / 64] &= !(1 << (step.call % 64));
            entries.put_call_back(step.call);
            state = step.before;
            if step.alternatives {
                entry = entries.next[entries.invocation[step.call]];
                break;
            }
        }
    }
    Verdict::Undecided
}

/// Where the search came furthest.
#[derive(Default)]
struct Stuck {
    depth: usize,
    at: Option<(usize, usize)>,
}

impl Stuck {
    fn note(&mut self, depth: usize, call: usize, state: usize) {
        if depth >= self.depth {
            self.depth = depth;
            self.at = Some((call, state));
        }
    }

    fn explain(&self, calls: &[&Call], states: &States) -> String {
        let Some((call, state)) = self.at else {
            return "no order explains the calls".to_owned();
        };
        format!(
            "no order explains all {} calls; the furthest places {} and then, with columns [{}], has no place for: {}",
            calls.len(),
            self.depth,
            notation::print_columns(&states.all[state]),
            notation::print([calls[call]]).trim_end(),
        )
    }
}

//! Goal: the fuzzers' findings stay fixed. Method: every kept input of every target, and mutations
//! of them from a fixed seed. One test, since memory is counted for the whole process: no other
//! thread may work beside it.

use std::time::Instant;

use basalt_engine::fs::sim::SplitMix64;
use basalt_fuzz::{TARGETS, Target, corpus, mutate::mutated};

/// Mutations of each target.
const MUTATIONS: u64 = 3_000;

/// Names the input when its target panics.
struct InHand<'a> {
    target: &'a Target,
    what: String,
    bytes: &'a [u8],
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "target {}, {}: \"{}\"",
                self.target.name,
                self.what,
                self.bytes.escape_ascii()
            );
        }
    }
}

fn feed(target: &Target, what: impl Into<String>, bytes: &[u8]) {
    let _in_hand = InHand {
        target,
        what: what.into(),
        bytes,
    };
    (target.run)(bytes);
}

#[test]
fn every_target_holds_for_its_corpus_and_for_mutations_of_it() {
    for target in TARGETS {
        let began = Instant::now();
        let inputs = corpus::read(target).expect("a directory with the corpus");
        assert!(inputs.len() > 5, "{} has no corpus", target.name);
        for input in &inputs {
            feed(target, &input.name, &input.bytes);
        }
        let mut dice = SplitMix64::new(3);
        for number in 0..MUTATIONS {
            let pick = |dice: &mut SplitMix64| &inputs[dice.below(inputs.len() as u64) as usize];
            let (input, other) = (pick(&mut dice), pick(&mut dice));
            let bytes = mutated(&input.bytes, &other.bytes, target.longest_input, &mut dice);
            feed(target, format!("mutation {number} of {}", input.name), &bytes);
        }
        println!("{}: {} inputs, {:?}", target.name, inputs.len(), began.elapsed());
    }
}

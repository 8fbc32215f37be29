//! Differences that are meant, each with its reason. docs/compatibility.md lists them; anything else that differs is a defect.

use crate::dynamic::Answer;

use super::script::Call;

/// One kind of difference.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// How scripts and docs/compatibility.md call it.
    pub name: &'static str,
    /// What HBase does and what Basalt does instead.
    pub why: &'static str,
    applies: fn(&Call, &Answer, &Answer) -> bool,
}

/// All of them.
pub const RULES: &[Rule] = &[Rule {
    name: "declared-errors",
    why: "HBase answers bad input with INTERNAL_ERROR and no reason; Basalt throws what the method declares and says what is wrong",
    applies: |_, hbase, basalt| matches!((hbase, basalt), (Answer::Application(_), Answer::Thrown(..))),
}];

/// The rule by which HBase's and Basalt's answers to this call differ, if there is one.
pub fn rule(call: &Call, hbase: &Answer, basalt: &Answer) -> Option<&'static Rule> {
    RULES.iter().find(|rule| (rule.applies)(call, hbase, basalt))
}

//! Differences that are meant, each with its reason. docs/compatibility.md lists them; anything else that differs is a defect.

use crate::dynamic::{Answer, Value};

use super::compare;
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
pub const RULES: &[Rule] = &[
    Rule {
        name: "declared-errors",
        why: "HBase answers bad input with INTERNAL_ERROR and no reason; Basalt throws what the method declares and says what is wrong",
        applies: |_, hbase, basalt| matches!((hbase, basalt), (Answer::Application(_), Answer::Thrown(..))),
    },
    Rule {
        name: "batch-errors",
        why: "HBase's client library hides why a batch failed and says that it may be tried again; Basalt passes the reason on, and \
              canRetry is false where a retry cannot help",
        applies: |call, hbase, basalt| {
            BATCHES.contains(&call.method.name)
                && matches!((hbase, basalt), (Answer::Thrown(theirs, _), Answer::Thrown(ours, _)) if theirs == ours)
        },
    },
    Rule {
        name: "filter-errors",
        why: "HBase says of filters that cannot be read, and of comparators that meet bytes which they cannot read, that trying again may \
              help; Basalt says that it cannot",
        applies: |call, hbase, basalt| {
            has_filter(call) && says_retry(hbase) == Some(true) && says_retry(basalt) == Some(false)
        },
    },
    Rule {
        name: "nothing-to-return",
        why: "HBase's gateway fails where its own client library returns no result object (`existence_only`, `returnResults` false), in \
              writes after it has written; Basalt answers with an empty result",
        applies: |call, hbase, basalt| {
            let field = match call.method.name {
                "get" | "getMultiple" => "existence_only=true",
                "increment" | "append" => "returnResults=false",
                _ => return false,
            };
            matches!((hbase, basalt), (Answer::Application(_), Answer::Success(_)))
                && call.to_string().contains(field)
        },
    },
    Rule {
        name: "may-have-more",
        why: "in a scan with a batch, `partial` says in HBase that the row may go on, which cells that are not shown make true; in Basalt \
              that it does",
        applies: |call, hbase, basalt| without_partial(call, hbase) == without_partial(call, basalt),
    },
    Rule {
        name: "limit-of-pieces",
        why: "a scan with a batch and a limit that takes several requests (`caching`, regions) ends early or late in HBase, whose client \
              counts rows that come in pieces more than once or not at all; in Basalt the limit counts rows",
        applies: |call, hbase, basalt| {
            let text = call.to_string();
            let asked = ["batchSize=", "limit="].iter().all(|field| text.contains(field));
            let answers = (without_partial(call, hbase), without_partial(call, basalt));
            asked
                && matches!(answers, (Answer::Success(Value::List(theirs)), Answer::Success(Value::List(ours)))
                    if ours.starts_with(&theirs) || theirs.starts_with(&ours))
        },
    },
    Rule {
        name: "reversed-and-on-demand",
        why: "HBase refuses a reversed scan with a filter that makes families essential (SingleColumnValueFilter that wants its column); \
              Basalt serves it",
        applies: |_, hbase, basalt| {
            let text = "Reverse scan with loading CFs on demand is not supported";
            hbase.to_string().contains(text) && matches!(basalt, Answer::Success(_))
        },
    },
];

/// Methods behind which HBase's gateway uses its client library's batches.
const BATCHES: [&str; 14] = [
    "checkAndMutate",
    "deleteMultiple",
    "existsAll",
    "getMultiple",
    "getRows",
    "getRowsTs",
    "getRowsWithColumns",
    "getRowsWithColumnsTs",
    "mutateRow",
    "mutateRows",
    "mutateRowsTs",
    "mutateRowTs",
    "putMultiple",
    "incrementRows",
];

/// An answer without the field that says that a row goes on.
fn without_partial(call: &Call, answer: &Answer) -> Answer {
    let mut answer = compare::normal(call.method, answer);
    if let Answer::Success(value) = &mut answer {
        value.for_each_mut(&mut |value| {
            if let Value::Struct(fields) = value {
                fields.retain(|(name, _)| *name != "partial");
            }
        });
    }
    answer
}

/// What an exception says about trying again.
fn says_retry(answer: &Answer) -> Option<bool> {
    let Answer::Thrown(_, exception) = answer else {
        return None;
    };
    match exception.field("canRetry") {
        Some(Value::Bool(value)) => Some(*value),
        _ => None,
    }
}

/// Whether a read of this call has a filter.
fn has_filter(call: &Call) -> bool {
    let text = call.to_string();
    text.contains("filterString=") || text.contains("filterBytes=")
}

/// The rule by which HBase's and Basalt's answers to this call differ, if there is one.
pub fn rule(call: &Call, hbase: &Answer, basalt: &Answer) -> Option<&'static Rule> {
    RULES.iter().find(|rule| (rule.applies)(call, hbase, basalt))
}

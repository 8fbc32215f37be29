//! Intended differences, each with its reason. docs/compatibility.md lists them; any other
//! difference is a defect.

mod native_scan;
mod rest;

use basalt_calls::{Answer, Api, Value};

use super::compare;
use super::script::Call;
use native_scan::{
    differs_by_empty_ends, differs_by_start_rows, differs_by_tombstones, has_batch, has_range,
    is_native_scan, is_raw,
};

/// One kind of difference.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// How scripts and docs/compatibility.md call it.
    pub name: &'static str,
    /// HBase's behaviour, and Basalt's instead.
    pub why: &'static str,
    applies: fn(&Call, &Answer, &Answer) -> bool,
}

/// All of them.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(rest::RULES)
}

/// Those of Thrift and native RPC.
const RULES: &[Rule] = &[
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
              that it does. Over native RPC such cells at the end of a region make one more answer, without results",
        applies: |call, hbase, basalt| {
            let in_pieces = has_batch(call);
            if is_native_scan(call) && !in_pieces {
                return false;
            }
            let (theirs, ours) = (without_partial(call, hbase), without_partial(call, basalt));
            theirs == ours || (is_native_scan(call) && differs_by_empty_ends(&theirs, &ours, has_range(call)))
        },
    },
    Rule {
        name: "newer-files",
        why: "a scan with a time range reads here files that are newer than it for their tombstones, and stops at their rows: at the end of \
              a region, a native scan then has one more answer, without results; HBase leaves such files out",
        applies: |call, hbase, basalt| {
            let normal = |answer| compare::normal(call.method, answer);
            let (theirs, ours) = (normal(hbase), normal(basalt));
            is_native_scan(call) && has_range(call) && differs_by_empty_ends(&ours, &theirs, false)
        },
    },
    Rule {
        name: "kept-tombstones",
        why: "HBase's flushes and minor compactions seek past the versions of a column that are masked or too many, and drop the tombstones \
              behind them; Basalt keeps these, because they may mask cells of other files, and raw scans show them",
        applies: |call, hbase, basalt| {
            let normal = |answer| compare::normal(call.method, answer);
            is_native_scan(call) && is_raw(call) && differs_by_tombstones(&normal(hbase), &normal(basalt))
        },
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
        name: "missing-start-row",
        why: "a scan of named columns looks in HBase at its start row even if there is no such row, where a file has a ROWCOL bloom \
              filter, and metrics of native answers count it as scanned and filtered; Basalt counts rows that are there",
        applies: |call, hbase, basalt| {
            let counts = ["metrics=true", "qualifiers="];
            let text = call.to_string();
            is_native_scan(call)
                && counts.iter().all(|field| text.contains(field))
                && differs_by_start_rows(
                    &compare::normal(call.method, hbase),
                    &compare::normal(call.method, basalt),
                )
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

/// An exception's statement about a retry.
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
    let rules = if call.api == Api::Rest { rest::RULES } else { RULES };
    rules.iter().find(|rule| (rule.applies)(call, hbase, basalt))
}

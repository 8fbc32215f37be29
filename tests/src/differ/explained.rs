//! Differences that are meant, each with its reason. docs/compatibility.md lists them; anything else that
//! differs is a defect.

use crate::dynamic::{Answer, Api, Value};

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

fn is_native_scan(call: &Call) -> bool {
    call.api == Api::Native && call.method.name == "scan"
}

fn has_batch(call: &Call) -> bool {
    call.to_string().contains("batchSize=")
}

fn has_range(call: &Call) -> bool {
    let text = call.to_string();
    text.contains("timeRange=") || text.contains("familyRanges=")
}

/// Whether `longer` has, behind answers that are the last ones of their regions in `shorter`, one more
/// without results, and nothing else differs. With `either`, the other one may have such answers, too.
fn differs_by_empty_ends(longer: &Answer, shorter: &Answer, either: bool) -> bool {
    let (Answer::Success(Value::List(longer)), Answer::Success(Value::List(shorter))) = (longer, shorter) else {
        return false;
    };
    let (mut longer, mut shorter) = (longer.iter(), shorter.iter());
    loop {
        match (longer.next(), shorter.next()) {
            (None, None) => return true,
            (Some(left), Some(right)) if left == right => {}
            (Some(left), Some(right)) if goes_on(left) => {
                if !is_last_of(left, right, longer.next()) {
                    return false;
                }
            }
            (Some(left), Some(right)) if either => {
                if !is_last_of(right, left, shorter.next()) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Whether the region has more results behind this answer.
fn goes_on(answer: &Value) -> bool {
    answer.field("moreResultsInRegion") == Some(&true.into())
}

/// Whether `last` is `answer` but for the end of the region, which `end` shows.
fn is_last_of(answer: &Value, last: &Value, end: Option<&Value>) -> bool {
    let is_end = end.is_some_and(|end| {
        end.field("region") == answer.field("region")
            && end.field("results") == Some(&Value::List(Vec::new()))
            && end.field("moreResultsInRegion") == Some(&false.into())
            && end.field("exception").is_none()
    });
    let mut ended = answer.clone();
    set(&mut ended, "moreResultsInRegion", false.into());
    is_end && ended == *last
}

/// Whether the first answer of one region or more counts one row more in HBase, scanned and filtered,
/// and nothing else differs.
fn differs_by_start_rows(hbase: &Answer, basalt: &Answer) -> bool {
    let (Answer::Success(Value::List(theirs)), Answer::Success(Value::List(ours))) = (hbase, basalt) else {
        return false;
    };
    let mut region = None;
    theirs.len() == ours.len()
        && theirs.iter().zip(ours).all(|(theirs, ours)| {
            let is_first = region.replace(theirs.field("region")) != Some(theirs.field("region"));
            theirs == ours || (is_first && with_row_passed_over(ours).as_ref() == Some(theirs))
        })
}

/// An answer that counts one row more, without a result.
fn with_row_passed_over(answer: &Value) -> Option<Value> {
    let mut answer = answer.clone();
    for name in ["rowsScanned", "rowsFiltered"] {
        let Some(Value::Int(count)) = answer.field(name) else {
            return None;
        };
        let count = count + 1;
        set(&mut answer, name, count.into());
    }
    Some(answer)
}

#[expect(clippy::needless_pass_by_value, reason = "callers make it for this call")]
fn set(answer: &mut Value, name: &str, to: Value) {
    let Value::Struct(fields) = answer else { return };
    for (_, value) in fields.iter_mut().filter(|(field, _)| *field == name) {
        *value = to.clone();
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differ::script::{Script, Step};

    fn call(text: &str) -> Call {
        let mut script = Script::parse(&format!("{text}\n= void\n")).expect("a call");
        match script.lines.remove(0).step {
            Step::Call(call) => call,
            step => panic!("{step}"),
        }
    }

    /// An answer of a scan: region, results, `moreResultsInRegion`, rows scanned and filtered.
    fn fetched(region: i64, results: usize, more: bool, scanned: i64, filtered: i64) -> Value {
        let result = Value::Struct(vec![("cells", Value::List(Vec::new()))]);
        Value::Struct(vec![
            ("region", region.into()),
            ("results", vec![result; results].into()),
            ("moreResultsInRegion", more.into()),
            ("rowsScanned", scanned.into()),
            ("rowsFiltered", filtered.into()),
        ])
    }

    fn rule_of(call: &Call, hbase: Vec<Value>, basalt: Vec<Value>) -> Option<&'static str> {
        let answer = |answers: Vec<Value>| Answer::Success(answers.into());
        rule(call, &answer(hbase), &answer(basalt)).map(|rule| rule.name)
    }

    #[test]
    fn hidden_cells_make_an_empty_answer_in_scans_with_a_batch_only() {
        let batch = call(r#"n.scan(table="t", scan={batchSize=2}, rows=1, calls=9)"#);
        let plain = call(r#"n.scan(table="t", scan={}, rows=1, calls=9)"#);
        let hbase = || vec![fetched(0, 1, true, 0, 0), fetched(0, 0, false, 0, 0)];
        let basalt = || vec![fetched(0, 1, false, 0, 0)];
        assert_eq!(rule_of(&batch, hbase(), basalt()), Some("may-have-more"));
        assert_eq!(rule_of(&plain, hbase(), basalt()), None);
        assert_eq!(
            rule_of(&batch, basalt(), hbase()),
            None,
            "not the other way round"
        );
        let results = vec![fetched(0, 1, true, 0, 0), fetched(0, 1, false, 0, 0)];
        assert_eq!(rule_of(&batch, results, basalt()), None, "a result is missing");
        let regions = vec![fetched(0, 1, true, 0, 0), fetched(1, 0, false, 0, 0)];
        assert_eq!(rule_of(&batch, regions, basalt()), None, "another region");
        let both = || vec![fetched(1, 1, true, 0, 0), fetched(1, 0, false, 0, 0)];
        let (hbase, basalt) = ([hbase(), both()].concat(), [basalt(), both()].concat());
        assert_eq!(rule_of(&batch, hbase, basalt), Some("may-have-more"));
    }

    #[test]
    fn rows_of_newer_files_make_an_empty_answer_in_scans_with_a_time_range_only() {
        let ranged = call(r#"n.scan(table="t", scan={timeRange={from=1, to=9}}, rows=1, calls=9)"#);
        let both = call(
            r#"n.scan(table="t", scan={batchSize=2, familyRanges=[{family="f", range={from=1, to=9}}]}, rows=1, calls=9)"#,
        );
        let batch = call(r#"n.scan(table="t", scan={batchSize=2}, rows=1, calls=9)"#);
        let long = |region| vec![fetched(region, 1, true, 0, 0), fetched(region, 0, false, 0, 0)];
        let short = |region| vec![fetched(region, 1, false, 0, 0)];
        assert_eq!(rule_of(&ranged, short(0), long(0)), Some("newer-files"));
        assert_eq!(rule_of(&ranged, long(0), short(0)), None, "not the other way round");
        assert_eq!(rule_of(&both, short(0), long(0)), Some("may-have-more"));
        let one_each = || ([long(0), short(1)].concat(), [short(0), long(1)].concat());
        let (hbase, basalt) = one_each();
        assert_eq!(rule_of(&both, hbase, basalt), Some("may-have-more"));
        let (hbase, basalt) = one_each();
        assert_eq!(rule_of(&batch, hbase, basalt), None, "no time range");
        let results = vec![fetched(0, 1, true, 0, 0), fetched(0, 1, false, 0, 0)];
        assert_eq!(rule_of(&ranged, short(0), results), None, "a result more");
    }

    #[test]
    fn one_row_more_is_counted_in_the_first_answer_of_a_region_only() {
        let named = call(
            r#"n.scan(table="t", scan={columns=[{family="f", qualifiers=["a"]}]}, rows=1, calls=9, metrics=true)"#,
        );
        let whole =
            call(r#"n.scan(table="t", scan={columns=[{family="f"}]}, rows=1, calls=9, metrics=true)"#);
        let basalt = || vec![fetched(0, 1, true, 1, 0), fetched(0, 1, false, 2, 1)];
        let first = || vec![fetched(0, 1, true, 2, 1), fetched(0, 1, false, 2, 1)];
        assert_eq!(rule_of(&named, first(), basalt()), Some("missing-start-row"));
        assert_eq!(rule_of(&whole, first(), basalt()), None);
        let second = vec![fetched(0, 1, true, 1, 0), fetched(0, 1, false, 3, 2)];
        assert_eq!(rule_of(&named, second, basalt()), None);
        let two_more = vec![fetched(0, 1, true, 3, 2), fetched(0, 1, false, 2, 1)];
        assert_eq!(rule_of(&named, two_more, basalt()), None);
        let only_scanned = vec![fetched(0, 1, true, 2, 0), fetched(0, 1, false, 2, 1)];
        assert_eq!(rule_of(&named, only_scanned, basalt()), None);
    }
}

//! Differences between two answers of REST.

use basalt_calls::{Answer, Value};

use super::Rule;
use crate::script::Call;

/// The rules of REST.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "rest-status",
        why: "HBase answers malformed input and what is missing with 500 or 503, a disabled table with 500 or 404, and parameters that are no \
              numbers or not positive with 404; Basalt answers 400 or 404, 503, and 400",
        applies: |call, hbase, basalt| {
            let statuses = statuses(hbase, basalt);
            let wrong = matches!(statuses, Some((500 | 503, 400 | 404) | (500, 503)));
            let number = has_bad_number(call) && statuses == Some((404, 400));
            let disabled = statuses == Some((404, 503)) && is_of_disabled_table(basalt);
            (wrong || number || disabled) && is_failure(hbase) && is_failure(basalt)
        },
    },
    Rule {
        name: "rest-encoded-prefix",
        why: "a prefix in base64 before columns, `prefix*/columns?e=b64`, is an error 500 in HBase, which decodes the byte that it has added to the \
              prefix; Basalt reads the rows",
        applies: |call, hbase, _| {
            let prefix = argument(call, "path").and_then(|path| path.field("prefix"));
            call.method.name == "get"
                && prefix == Some(&true.into())
                && argument(call, "encoding").is_some()
                && status(hbase) == Some(500)
        },
    },
    Rule {
        name: "rest-increment-result",
        why: "HBase returns the cells of the request of an increment with `rr=true`, or fails with 500 behind the write where these lack a key or \
              column; Basalt returns the sums",
        applies: |call, hbase, basalt| {
            let returned = match statuses(hbase, basalt) {
                Some((200, 200)) => {
                    rows_as_sent(field(hbase, "rows")) == rows_as_sent(argument(call, "rows"))
                }
                Some((500, 200)) => true,
                _ => false,
            };
            returned
                && argument(call, "check") == Some(&"increment".into())
                && argument(call, "returns") == Some(&true.into())
        },
    },
    Rule {
        name: "rest-reversed-prefix",
        why: "a reversed stateless scan of a prefix begins in HBase at the prefix, and finds at most the row of that key; Basalt shows the rows of the \
              prefix, the last one first",
        applies: |call, hbase, basalt| {
            let prefix = argument(call, "prefix").filter(|prefix| **prefix != "".into());
            let only_prefix = |rows: &Value| match rows {
                Value::List(rows) => rows.iter().all(|row| row.field("key") == prefix),
                _ => false,
            };
            call.method.name == "scan"
                && prefix.is_some()
                && argument(call, "reversed") == Some(&true.into())
                && matches!(statuses(hbase, basalt), Some((200, 200)))
                && field(hbase, "rows").is_some_and(only_prefix)
        },
    },
    Rule {
        name: "rest-scanner-failure",
        why: "a scanner that fails looks in HBase as if it were at its end, 204; Basalt says what is wrong",
        applies: |call, hbase, basalt| {
            call.method.name == "getScanner"
                && matches!(statuses(hbase, basalt), Some((204, 400 | 404 | 503)))
        },
    },
];

/// The field of a reply or of the exception for another status.
fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a Value> {
    match answer {
        Answer::Success(value) | Answer::Thrown(_, value) => value.field(name),
        Answer::Application(_) => None,
    }
}

fn status(answer: &Answer) -> Option<i64> {
    match field(answer, "status") {
        Some(Value::Int(status)) => Some(*status),
        _ => None,
    }
}

/// The statuses of HBase and of Basalt.
fn statuses(hbase: &Answer, basalt: &Answer) -> Option<(i64, i64)> {
    Some((status(hbase)?, status(basalt)?))
}

fn is_failure(answer: &Answer) -> bool {
    matches!(answer, Answer::Thrown(..))
}

fn is_of_disabled_table(answer: &Answer) -> bool {
    matches!(field(answer, "message"), Some(Value::Bytes(text)) if text.ends_with(b" state is DISABLED"))
}

/// Whether a number of the call is not positive, or none at all.
fn has_bad_number(call: &Call) -> bool {
    let versions = argument(call, "versions");
    call.method.name == "send" || matches!(versions, Some(Value::Int(..=0)))
}

fn argument<'a>(call: &'a Call, name: &str) -> Option<&'a Value> {
    let found = call.args.iter().find(|(own, _)| *own == name);
    found.map(|(_, value)| value)
}

/// Rows without what a request may lack.
fn rows_as_sent(rows: Option<&Value>) -> Option<Value> {
    let mut rows = rows?.clone();
    rows.for_each_mut(&mut |value| {
        if let Value::Struct(fields) = value {
            fields.retain(|(name, _)| !matches!(*name, "key" | "column" | "timestamp"));
        }
    });
    Some(rows)
}

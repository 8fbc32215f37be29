//! Differences between two answers of REST.

use basalt_calls::{Answer, Value};

use super::Rule;
use crate::script::Call;

/// The rules of REST.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "rest-status",
        why: "HBase answers malformed input, missing families and missing namespaces with 500 or 503, which say that the server failed or that a \
              retry helps; Basalt with 400 and 404",
        applies: |_, hbase, basalt| {
            matches!(statuses(hbase, basalt), Some((500 | 503, 400 | 404)))
                && is_failure(hbase)
                && is_failure(basalt)
        },
    },
    Rule {
        name: "rest-increment-result",
        why: "HBase returns the cells of the request of an increment with `rr=true`; Basalt the sums",
        applies: |call, hbase, basalt| {
            is_check(call, "increment")
                && matches!(statuses(hbase, basalt), Some((200, 200)))
                && cells_without(hbase, &["key", "timestamp", "value"]).is_some()
        },
    },
    Rule {
        name: "rest-reversed-prefix",
        why: "a reversed stateless scan of a prefix begins in HBase at the prefix, and finds nothing; Basalt shows its rows, the last one first",
        applies: |call, hbase, basalt| {
            let asked = ["reversed=true", "r.scan("]
                .iter()
                .all(|part| call.to_string().contains(part));
            let empty = Some(Value::List(Vec::new()));
            asked
                && !call.to_string().contains("prefix=\"\"")
                && matches!(statuses(hbase, basalt), Some((200, 200)))
                && field(hbase, "rows").cloned() == empty
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

/// Whether a put has this parameter `check`.
fn is_check(call: &Call, check: &str) -> bool {
    let found = call.args.iter().find(|(name, _)| *name == "check");
    call.method.name == "put" && found.is_some_and(|(_, value)| *value == Value::bytes(check))
}

/// The rows of a reply without some fields of rows and cells.
fn cells_without(answer: &Answer, names: &[&str]) -> Option<Value> {
    let mut rows = field(answer, "rows")?.clone();
    rows.for_each_mut(&mut |value| {
        if let Value::Struct(fields) = value {
            fields.retain(|(name, _)| !names.contains(name));
        }
    });
    Some(rows)
}

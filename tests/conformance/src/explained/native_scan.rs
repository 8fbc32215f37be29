//! Differences between two answers to a native scan.

use basalt_calls::{Answer, Api, Value};

use crate::script::Call;

pub(super) fn is_native_scan(call: &Call) -> bool {
    call.api == Api::Native && call.method.name == "scan"
}

pub(super) fn has_batch(call: &Call) -> bool {
    call.to_string().contains("batchSize=")
}

pub(super) fn has_range(call: &Call) -> bool {
    let text = call.to_string();
    text.contains("timeRange=") || text.contains("familyRanges=")
}

pub(super) fn is_raw(call: &Call) -> bool {
    call.to_string().contains("_raw_")
}

/// Whether `longer` has, behind answers that are the last ones of their regions in `shorter`, one more
/// without results, and nothing else differs. With `either`, the other one may have such answers, too.
pub(super) fn differs_by_empty_ends(longer: &Answer, shorter: &Answer, either: bool) -> bool {
    let (Answer::Success(Value::List(longer)), Answer::Success(Value::List(shorter))) = (longer, shorter)
    else {
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
pub(super) fn differs_by_start_rows(hbase: &Answer, basalt: &Answer) -> bool {
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

/// Whether Basalt shows tombstones that HBase does not, and nothing else differs but where results and
/// answers end.
pub(super) fn differs_by_tombstones(hbase: &Answer, basalt: &Answer) -> bool {
    let (Some(theirs), Some(ours)) = (cells_of(hbase), cells_of(basalt)) else {
        return false;
    };
    let has_more = ours.len() > theirs.len();
    let mut theirs = theirs.into_iter().peekable();
    let all_known = ours
        .into_iter()
        .all(|cell| theirs.next_if_eq(&cell).is_some() || is_tombstone(cell.2));
    has_more && all_known && theirs.next().is_none()
}

/// Region, row and cell.
type Located<'a> = (Option<&'a Value>, Option<&'a Value>, &'a Value);

/// The cells of a scan, in their order; `None` if a call of it failed.
fn cells_of(answer: &Answer) -> Option<Vec<Located<'_>>> {
    let Answer::Success(Value::List(answers)) = answer else {
        return None;
    };
    let mut cells = Vec::new();
    for answer in answers {
        if answer.field("exception").is_some() {
            return None;
        }
        for result in list(answer, "results") {
            let of_result = list(result, "cells").iter();
            cells.extend(of_result.map(|cell| (answer.field("region"), result.field("row"), cell)));
        }
    }
    Some(cells)
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    match of.field(name) {
        Some(Value::List(values)) => values,
        _ => &[],
    }
}

fn is_tombstone(cell: &Value) -> bool {
    matches!(cell.field("type"), Some(Value::Int(8 | 10 | 12 | 14)))
}

#[cfg(test)]
mod tests {
    use super::super::rule;
    use super::*;
    use crate::script::{Script, Step};

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
        assert_eq!(
            rule_of(&ranged, long(0), short(0)),
            None,
            "not the other way round"
        );
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

    #[test]
    fn raw_scans_may_show_more_tombstones() {
        let raw =
            call(r#"n.scan(table="t", scan={attributes={"_raw_": "\xff"}, batchSize=1}, rows=1, calls=9)"#);
        let plain = call(r#"n.scan(table="t", scan={}, rows=1, calls=9)"#);
        let result = |cells: &[(i64, i64)]| {
            let cell = |(timestamp, code): &(i64, i64)| {
                Value::Struct(vec![("timestamp", (*timestamp).into()), ("type", (*code).into())])
            };
            let cells = cells.iter().map(cell).collect::<Vec<_>>();
            Value::Struct(vec![("row", "a".into()), ("cells", cells.into())])
        };
        let answer =
            |results: Vec<Value>| Value::Struct(vec![("region", 0_i64.into()), ("results", results.into())]);
        let hbase = || vec![answer(vec![result(&[(9, 4)])]), answer(vec![result(&[(5, 4)])])];
        let more = || {
            let first = answer(vec![result(&[(9, 4)]), result(&[(8, 12)])]);
            vec![first, answer(vec![result(&[(5, 4)])])]
        };
        assert_eq!(rule_of(&raw, hbase(), more()), Some("kept-tombstones"));
        assert_eq!(rule_of(&plain, hbase(), more()), None);
        assert_eq!(rule_of(&raw, more(), hbase()), None, "not the other way round");
        let put = vec![answer(vec![result(&[(9, 4), (7, 4), (5, 4)])])];
        assert_eq!(rule_of(&raw, hbase(), put), None, "a put more");
        let fewer = vec![answer(vec![result(&[(9, 4), (8, 12)])])];
        assert_eq!(rule_of(&raw, hbase(), fewer), None, "a put less");
    }
}

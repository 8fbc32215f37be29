use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor};
use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;
use crate::config::Config;
use crate::rig;

fn table(name: &str) -> TableName {
    TableName::parse(name.as_bytes()).unwrap()
}

fn call(api: Api, method: &'static str, name: &str) -> Call {
    Call {
        api,
        method,
        table: table(name),
        scan: None,
    }
}

fn armed(json: &str) -> Faults {
    let faults = Faults::new();
    faults.set(from_json(json.as_bytes()).unwrap());
    faults
}

#[test]
fn calls_meet_faults_in_the_order_of_the_list() {
    let faults = armed(
        r#"{"faults": [
            {"method": "Get", "fault": "region_too_busy", "calls": 2},
            {"method": "*", "fault": "drop_connection", "calls": 1, "table": "a"}
        ]}"#,
    );
    let get = |name| call(Api::Native, "Get", name);
    assert_eq!(faults.take(&call(Api::Thrift2, "put", "b")), None);
    assert_eq!(faults.take(&get("a")), Some(Kind::RegionTooBusy));
    assert_eq!(faults.list()[0].calls, 1);
    assert_eq!(faults.take(&get("b")), Some(Kind::RegionTooBusy));
    assert_eq!(faults.take(&get("b")), None);
    assert!(faults.are_armed());
    assert_eq!(faults.take(&get("a")), Some(Kind::DropConnection));
    assert!(!faults.are_armed() && faults.list().is_empty());
}

/// Goal: each kind has a count from the start, and a call that meets a fault adds one to its kind's.
#[test]
fn injected_faults_are_counted_by_kind() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        let faults = armed(
            r#"{"faults": [
                {"method": "Get", "fault": "drop_reply", "calls": 2},
                {"method": "Get", "fault": "delay", "calls": 1, "delay_ms": 5}
            ]}"#,
        );
        for _ in 0..4 {
            faults.take(&call(Api::Native, "Get", "a"));
        }
    });
    let text = recorder.handle().render();
    for kind in Kind::NAMES {
        let count = match kind {
            "drop_reply" => 2,
            "delay" => 1,
            _ => 0,
        };
        let line = format!("{}{{kind=\"{kind}\"}} {count}", names::FAULTS_INJECTED);
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
}

#[test]
fn system_tables_meet_only_faults_that_name_them() {
    let faults = armed(r#"{"faults": [{"method": "Scan", "fault": "region_too_busy", "calls": 1}]}"#);
    let meta = call(Api::Native, "Scan", "hbase:meta");
    assert_eq!(faults.take(&meta), None);
    faults.set(
        from_json(br#"{"faults": [{"method": "Scan", "fault": "move", "calls": 1, "table": "hbase:meta"}]}"#)
            .unwrap(),
    );
    assert_eq!(faults.take(&meta), None, "it is not between two results");
    faults.set(
        from_json(
            br#"{"faults": [{"method": "Scan", "fault": "drop_reply", "calls": 1, "table": "hbase:meta"}]}"#,
        )
        .unwrap(),
    );
    assert_eq!(faults.take(&meta), Some(Kind::DropReply));
}

/// A scan of table `t` that has reached this row.
fn scan_at(engine: &Arc<Engine>, row: &[u8]) -> Call {
    let mut call = call(Api::Thrift2, "getScannerRows", "t");
    call.scan = Some(ScanPosition {
        row: row.to_vec(),
        region: engine.region_of(&table("t"), row).unwrap(),
        engine: Arc::clone(engine),
    });
    call
}

#[test]
fn a_split_waits_for_a_scan_of_the_region_that_has_its_row() {
    let server = rig::server(Config::default());
    let engine = server.engine();
    let descriptor = TableDescriptor::new(table("t"), vec![FamilyDescriptor::new(b"f")]);
    engine.create_table(descriptor, vec![b"m".to_vec()]).unwrap();
    let at_p = r#"{"faults": [{"method": "Scan", "fault": "split", "calls": 1, "split_row": "p"}]}"#;
    let faults = armed(at_p);
    assert_eq!(faults.take(&call(Api::Thrift2, "getScannerRows", "t")), None);
    assert_eq!(faults.take(&scan_at(engine, b"a")), None);
    assert_eq!(
        faults.take(&scan_at(engine, b"n")),
        Some(Kind::Split(Some(b"p".to_vec())))
    );
    let at_start = armed(&at_p.replace("\"p\"", "\"m\""));
    assert_eq!(
        at_start.take(&scan_at(engine, b"n")),
        None,
        "a region begins there"
    );
}

/// A scan that reads rows in pieces may stand in a row that fills its region, and a row may be too long
/// for the start of a region: such scans do not meet the fault, and it stays armed.
#[test]
fn a_split_waits_for_a_region_that_can_be_split() {
    let server = rig::server(Config::default());
    let engine = server.engine();
    let mut descriptor = TableDescriptor::new(table("t"), vec![FamilyDescriptor::new(b"f")]);
    for (name, value) in [
        ("hbase.regionserver.region.split_restriction.type", "KeyPrefix"),
        ("hbase.regionserver.region.split_restriction.prefix_length", "3"),
    ] {
        descriptor.attributes.insert(name.into(), value.into());
    }
    let splits = [&b"m"[..], b"m\0", b"pre"].map(<[u8]>::to_vec);
    engine.create_table(descriptor, splits.to_vec()).unwrap();
    let faults = armed(r#"{"faults": [{"method": "Scan", "fault": "split", "calls": 2}]}"#);
    for unfit in [&b"m"[..], b"prefix", &vec![b'x'; 32_500]] {
        assert_eq!(
            faults.take(&scan_at(engine, unfit)),
            None,
            "{}",
            unfit.escape_ascii()
        );
    }
    assert_eq!(faults.list()[0].calls, 2);
    // Rows of other groups follow in their regions.
    assert_eq!(faults.take(&scan_at(engine, b"a")), Some(Kind::Split(None)));
    assert_eq!(faults.take(&scan_at(engine, b"quick")), Some(Kind::Split(None)));
}

#[test]
fn armed_faults_are_listed_as_they_were_given() {
    let given = r#"{"faults":[
        {"method":"Get","fault":"delay","calls":3,"table":"ns:t","delay_ms":200},
        {"method":"*","fault":"split","calls":1,"split_row":"m"},
        {"method":"scangetlist","fault":"move","calls":1}
    ]}"#
    .replace("scangetlist", "scannergetlist");
    let shown = to_json(&from_json(given.as_bytes()).unwrap());
    let expected: serde_json::Value =
        serde_json::from_str(&given.replace("scannergetlist", "scannerGetList")).unwrap();
    assert_eq!(shown, expected);
    assert_eq!(from_json(b"{\"faults\": []}"), Ok(Vec::new()));
}

#[test]
fn wrong_values_are_named_with_the_allowed_ones() {
    let wrong = |fault: &str| from_json(format!("{{\"faults\": [{fault}]}}").as_bytes()).unwrap_err();
    let with = |more: &str| wrong(&format!(r#"{{"method": "Get", "fault": "delay", {more}}}"#));
    for (error, words) in [
        (
            wrong(r#"{"fault": "delay", "calls": 1}"#),
            &["faults[0]", "`method`"][..],
        ),
        (wrong(r#"{"method": "Get", "calls": 1}"#), &["`fault`"]),
        (wrong(r#"{"method": "Get", "fault": "move"}"#), &["`calls`"]),
        (with("\"call\": 1"), &["`call`", "`calls`"]),
        (with("\"calls\": \"3\""), &["string \"3\""]),
        (
            with("\"calls\": 0, \"delay_ms\": 1"),
            &["calls is 0", "from 1 to 1000000"],
        ),
        (with("\"calls\": -3, \"delay_ms\": 1"), &["calls is -3"]),
        (with("\"calls\": 1000001, \"delay_ms\": 1"), &["calls is 1000001"]),
        (with("\"calls\": 1"), &["delay_ms is missing", "from 1 to 600000"]),
        (
            with("\"calls\": 1, \"delay_ms\": 600001"),
            &["delay_ms is 600001"],
        ),
        (
            with("\"calls\": 1, \"delay_ms\": 1, \"table\": \"a:b:c\""),
            &["table is \"a:b:c\""],
        ),
        (
            with("\"calls\": 1, \"delay_ms\": 1, \"split_row\": \"m\""),
            &["split_row", "split only"],
        ),
        (
            wrong(r#"{"method": "Get", "fault": "busy", "calls": 1}"#),
            &["fault is \"busy\"", "region_too_busy", "drop_reply", "move"],
        ),
        (
            wrong(r#"{"method": "gets", "fault": "delay", "calls": 1, "delay_ms": 1}"#),
            &["method is \"gets\"", "*, Get, Mutate, Multi, Scan", "putMultiple"],
        ),
        (
            wrong(r#"{"method": "put", "fault": "split", "calls": 1}"#),
            &["method is \"put\"", "getScannerRows"],
        ),
        (
            wrong(r#"{"method": "put", "fault": "move", "calls": 1, "delay_ms": 5}"#),
            &["delay_ms is for the fault delay only"],
        ),
    ] {
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {error}");
        }
    }
    for body in ["", "[]", "{}", "{\"faults\": 1}", "{\"faults\": [], \"more\": 1}"] {
        let error = from_json(body.as_bytes()).unwrap_err();
        assert!(error.contains("the body must be like {\"faults\": ["), "{error}");
    }
    let one = r#"{"method": "Get", "fault": "move", "calls": 1}"#;
    let many = format!(
        "{{\"faults\": [{}]}}",
        vec![one; given::FAULTS_MAX + 1].join(", ")
    );
    let error = from_json(many.as_bytes()).unwrap_err();
    assert!(
        error.contains("101 faults") && error.contains("at most 100"),
        "{error}"
    );
}

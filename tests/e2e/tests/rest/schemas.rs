//! Versions, tables, schemas, namespaces and the status of the cluster.

use super::Started;
use super::client::{JSON, PROTOBUF, Rest, TEXT, XML};

/// Checks 1 and 2.
#[test]
fn versions_and_tables_have_four_forms() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let version = rest.get("/version/cluster");
    assert_eq!(version.text(), r#"{"Version":"2.6.1"}"#);
    assert_eq!(version.header("content-type"), Some("application/json"));
    assert_eq!(version.header("cache-control"), Some("no-cache"));
    let xml = rest.ask("GET", "/version/cluster", XML, "");
    assert!(xml.text().ends_with("<ClusterVersion Version=\"2.6.1\"/>"));
    assert_eq!(rest.ask("GET", "/version/cluster", TEXT, "").text(), "2.6.1\n");
    assert_eq!(rest.ask("GET", "/version/cluster", PROTOBUF, "").status, 406);
    for path in ["/version", "/version/rest", "/version/"] {
        assert_eq!(rest.get(path).json()["REST"], "0.0.3", "{path}");
    }
    for (headers, kind, body) in [
        (JSON, "application/json", &br#"{"table":[{"name":"t"}]}"#[..]),
        (TEXT, "text/plain", b"t\n"),
        (PROTOBUF, "application/x-protobuf", b"\n\x01t"),
        ("", "text/plain", b"t\n"),
    ] {
        let tables = rest.ask("GET", "/", headers, "");
        assert_eq!((tables.status, tables.header("content-type")), (200, Some(kind)));
        assert_eq!(tables.body, body, "{headers}");
    }
    let tables = rest.ask("GET", "/", XML, "");
    assert!(
        tables
            .text()
            .ends_with("<TableList><table name=\"t\"/></TableList>")
    );
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("x-xss-protection", "1; mode=block"),
    ] {
        assert_eq!(tables.header(name), Some(value));
    }
    started.server.stop();
}

/// Checks 3 to 6.
#[test]
fn schemas_are_created_changed_replaced_and_dropped() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let xml = b"<TableSchema name='ignored'><ColumnSchema name='f' VERSIONS='2'/></TableSchema>";
    let created = rest.ask("PUT", "/u/schema", XML, xml);
    assert_eq!(created.status, 201);
    assert_eq!(created.header("location"), Some("http://127.0.0.1/u/schema"));
    let schema = rest.get("/u/schema").json();
    assert_eq!(schema["name"], "u");
    assert_eq!(
        (
            &schema["ColumnSchema"][0]["name"],
            &schema["ColumnSchema"][0]["VERSIONS"]
        ),
        (&"f".into(), &"2".into())
    );
    let protobuf = rest.ask("GET", "/u/schema", PROTOBUF, "").body;
    assert_eq!(rest.ask("PUT", "/w/schema", PROTOBUF, protobuf).status, 201);
    assert_eq!(
        rest.get("/w/schema").json()["ColumnSchema"],
        schema["ColumnSchema"]
    );

    let more = rest.ask("POST", "/t/schema", JSON, r#"{"ColumnSchema":[{"name":"h"}]}"#);
    assert_eq!(more.status, 200);
    let names = |rest: &mut Rest| -> Vec<String> {
        let schema = rest.get("/t/schema").json();
        let families = schema["ColumnSchema"].as_array().expect("a list").clone();
        families
            .iter()
            .map(|family| family["name"].as_str().expect("text").to_owned())
            .collect()
    };
    assert_eq!(names(rest), ["f", "g", "h"]);
    let whole = rest.ask(
        "PUT",
        "/t/schema",
        JSON,
        r#"{"ColumnSchema":[{"name":"f"},{"name":"h"}]}"#,
    );
    assert_eq!(whole.status, 201);
    assert_eq!(names(rest), ["f", "h"]);

    assert_eq!(rest.ask("GET", "/t/exists", "", "").status, 200);
    assert_eq!(rest.get("/t/regions").json()["Region"][0]["startKey"], "");
    for path in [
        "/missing/exists",
        "/missing/regions",
        "/missing/schema",
        "/a b/exists",
        "/missing",
    ] {
        let answer = rest.get(&path.replace(' ', "%20"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    assert_eq!(rest.ask("DELETE", "/t/schema", "", "").status, 200);
    assert_eq!(rest.ask("DELETE", "/t/schema", "", "").status, 404);
    let bad = rest.ask(
        "PUT",
        "/x/schema",
        JSON,
        r#"{"ColumnSchema":[{"name":"f","VERSIONS":"many"}]}"#,
    );
    assert_eq!(
        (bad.status, bad.text().lines().count()),
        (400, 1),
        "{}",
        bad.text()
    );
    started.server.stop();
}

#[test]
fn namespaces_have_hbases_statuses() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let created = rest.ask("POST", "/namespaces/n", JSON, r#"{"properties":{"k":"v"}}"#);
    assert_eq!(
        (created.status, created.header("location")),
        (201, Some("http://127.0.0.1/namespaces/n"))
    );
    assert_eq!(rest.get("/namespaces/n").text(), r#"{"properties":{"k":"v"}}"#);
    assert_eq!(rest.ask("POST", "/namespaces/n", "", "").status, 403);
    let changed = rest.ask("PUT", "/namespaces/n", XML, "<NamespaceProperties/>");
    assert_eq!(
        (changed.status, changed.text()),
        (200, "http://127.0.0.1/namespaces/n".to_owned())
    );
    assert_eq!(rest.get("/namespaces/n").text(), r#"{"properties":null}"#);
    assert_eq!(rest.ask("PUT", "/namespaces/missing", "", "").status, 403);
    assert_eq!(
        rest.ask("GET", "/namespaces", TEXT, "").text(),
        "default\nhbase\nn\n"
    );
    let table = rest.ask("PUT", "/n:t/schema", JSON, r#"{"ColumnSchema":[{"name":"f"}]}"#);
    assert_eq!(table.status, 201);
    assert_eq!(rest.ask("GET", "/namespaces/n/tables", TEXT, "").text(), "t\n");
    assert_eq!(rest.ask("DELETE", "/namespaces/n", "", "").status, 503);
    assert_eq!(rest.ask("DELETE", "/namespaces/default", "", "").status, 503);
    assert_eq!(rest.ask("DELETE", "/namespaces/missing", "", "").status, 404);
    assert_eq!(rest.get("/namespaces/missing").status, 404);
    assert_eq!(rest.ask("DELETE", "/n:t/schema", "", "").status, 200);
    assert_eq!(rest.ask("DELETE", "/namespaces/n", "", "").status, 200);
    started.server.stop();
}

#[test]
fn the_status_lists_the_server_and_its_regions() {
    let mut started = Started::new();
    let status = started.rest.get("/status/cluster").json();
    assert_eq!(status["DeadNodes"], serde_json::json!([]));
    let node = &status["LiveNodes"][0];
    assert_eq!(node["name"], started.server.thrift.to_string());
    assert_eq!(
        status["regions"],
        node["Region"].as_array().expect("a list").len()
    );
    for headers in [XML, TEXT, PROTOBUF] {
        assert_eq!(
            started.rest.ask("GET", "/status/cluster", headers, "").status,
            200
        );
    }
    started.server.stop();
}

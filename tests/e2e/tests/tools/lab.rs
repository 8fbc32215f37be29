//! The schema lab: `family`, `orders`, `twibase` and `report` of `basalt-bench`, and `basalt-twibase`, at
//! tiny sizes.
//!
//! Only claims that are judged by counts have a known verdict here: times depend on the machine's
//! other load.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use basalt_test_support::{Server, binary};
use serde_json::Value;

use super::{bench, report, text};

/// The part of that name, and whether its ways gave equal answers.
fn part<'a>(json: &'a Value, name: &str) -> &'a Value {
    let parts = json["parts"].as_array().expect("a list of parts");
    let found = parts.iter().find(|part| part["name"] == name);
    found.unwrap_or_else(|| panic!("no part {name} in {json}"))
}

/// A figure of a way of a part.
fn figure(part: &Value, way: &str, name: &str) -> f64 {
    let ways = part["ways"].as_array().expect("a list of ways");
    let found = ways.iter().find(|found| found["name"] == way);
    let found = found.and_then(|found| found["figures"][name].as_f64());
    found.unwrap_or_else(|| panic!("no {name} of {way} in {part}"))
}

/// Every finding has a claim, a measurement and a verdict, those of `confirmed` that one.
fn check_findings(json: &Value, confirmed: &[&str]) {
    let mut verdicts = BTreeMap::new();
    for part in json["parts"].as_array().expect("a list of parts") {
        let findings = part["findings"].as_array().expect("a list of findings");
        assert!(!findings.is_empty(), "{part}");
        for finding in findings {
            let word = |name: &str| finding[name].as_str().expect("a text").to_owned();
            let verdict = word("verdict");
            assert!(!word("measurement").is_empty(), "{finding}");
            if verdict != "not measured" {
                assert!(!word("rule").is_empty(), "{finding}");
            }
            verdicts.insert(word("claim"), verdict);
        }
    }
    for claim in confirmed {
        assert_eq!(
            verdicts.get(*claim).map(String::as_str),
            Some("confirmed"),
            "{claim}: {verdicts:?}"
        );
    }
}

/// Every setting of a family shows its effect in the server's counts, whichever interface asks.
#[test]
fn family_settings_show_in_the_servers_counts() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["block_cache.bytes=16777216"]);
    for api in ["thrift1", "thrift2"] {
        let out = dir.path().join(api);
        let small = [
            "family",
            "--api",
            api,
            "--rows",
            "4000",
            "--reads",
            "300",
            "--scans",
            "20",
            "--scan-rows",
            "500",
            "--ttl",
            "1",
            "--threads",
            "2",
            "--pollution-mib",
            "40",
        ];
        bench(&server, &small, &out);
        let (json, html) = report(&out);
        assert!(html.contains("Which bloom filter?"));
        check_findings(
            &json,
            &[
                "A range read looks up fewer blocks if they are large.",
                "A filter of rows keeps reads of rows that are not there away from the files.",
                "Only a filter of columns knows that a row does not have a column.",
                "A filter of columns does not help a get that names none.",
                "Blocks of an IN_MEMORY family stay in the cache when a scan reads more than fits it.",
                "Readers do not see expired cells, with or without a compaction.",
                "A major compaction frees the space of expired cells.",
                "Versions that are kept cost their space for good.",
                "ZSTD halves the space of text.",
                "Names are paid for in every cell on disk.",
                "On the wire, names are paid for whatever the encoding.",
                "Every flush writes a file for each family, however little is in it.",
                "A query for the small column alone reads fewer blocks if it has a family of its own.",
            ],
        );
        for name in [
            "block-size",
            "bloom",
            "in-memory",
            "versions",
            "compression",
            "names",
            "families",
        ] {
            let part = part(&json, name);
            assert_eq!(part["equal"], true, "{api} {part}");
            assert!(part["compared"].as_u64() > Some(0), "{api} {part}");
        }
        let bloom = part(&json, "bloom");
        assert!((figure(bloom, "ROW", "files") - 4.0).abs() < 0.1, "{bloom}");
        let ttl = part(&json, "ttl");
        assert!(
            (figure(ttl, "forever", "visible_rows") - 1_000.0).abs() < 0.1,
            "{ttl}"
        );
    }
    server.stop();
}

/// Each way to store a relation gives the same answers, and takes the calls that its layout needs.
#[test]
fn relations_are_the_same_however_they_are_stored() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for api in ["thrift1", "thrift2"] {
        let out = dir.path().join(api);
        let small = [
            "orders",
            "--api",
            api,
            "--rows",
            "600",
            "--courses",
            "50",
            "--questions",
            "200",
            "--threads",
            "2",
        ];
        bench(&server, &small, &out);
        let (json, _) = report(&out);
        check_findings(
            &json,
            &[
                "A relation that is stored in one direction only reads the whole table in the other.",
                "What is always read together belongs in one row: it saves a call.",
                "A nested order is placed with one call, and so atomically.",
                "A filter saves bytes on the wire and no work in the server: every row is read.",
            ],
        );
        for part in json["parts"].as_array().expect("a list") {
            assert_eq!(part["equal"], true, "{api} {part}");
        }
        let nested = part(&json, "one-to-many");
        for (way, calls) in [("two tables", 2.0), ("nested", 1.0)] {
            assert!(
                (figure(nested, way, "order_calls") - calls).abs() < 1e-9,
                "{nested}"
            );
        }
        let one_way = part(&json, "many-to-many");
        assert!(
            (figure(one_way, "relation, one way", "students_rows_read") - 3_000.0).abs() < 0.1,
            "{one_way}"
        );
    }
    server.stop();
}

/// Both feeds show the same twits; copies take a row for each follower. Either interface reads and writes the
/// same rows. No part makes a table that another one has kept.
#[test]
fn feeds_are_the_same_gathered_and_copied() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut rows_read = Vec::new();
    for api in ["thrift1", "thrift2"] {
        let out = dir.path().join(api);
        let prefix = format!("{api}_");
        let small = [
            "twibase",
            "--api",
            api,
            "--users",
            "60",
            "--following",
            "10",
            "--followers",
            "1500",
            "--twits",
            "400",
            "--celebrity-twits",
            "2",
            "--questions",
            "100",
            "--threads",
            "2",
            "--keep-tables",
            "--table-prefix",
            &prefix,
        ];
        bench(&server, &small, &out);
        let (json, _) = report(&out);
        check_findings(
            &json,
            &[
                "A get of the relation's key reads one row at most, a scan the whole list.",
                "In a wide row the column can be asked for, and only it is sent.",
                "A feed of copies is one short scan, a gathered one asks everyone who is followed.",
                "A celebrity's twit is thousands of writes: it is better gathered.",
            ],
        );
        for name in ["follows", "is-following", "feed"] {
            let part = part(&json, name);
            assert_eq!(part["equal"], true, "{api} {part}");
        }
        let feed = part(&json, "feed");
        // 1500 fans, a tenth of the users, and the twit itself.
        assert!(
            (figure(feed, "copied", "celebrity_rows") - 1_507.0).abs() < 0.1,
            "{api} {feed}"
        );
        // Thousandths of a row a feed, so that they compare as whole numbers.
        rows_read.push(
            ["gathered", "copied"].map(|way| (figure(feed, way, "feed_rows_read") * 1e3).round() as u64),
        );
    }
    assert_eq!(rows_read[0], rows_read[1], "Thrift 1 and Thrift 2");
    server.stop();
}

/// Rows written over one interface are read over the other: the terminal program over Thrift 2
/// finds the rows that the load generator wrote over Thrift 1.
#[test]
fn the_application_is_the_same_over_both_interfaces() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let small = [
        "twibase",
        "--api",
        "thrift1",
        "--parts",
        "feed",
        "--users",
        "20",
        "--following",
        "3",
        "--followers",
        "0",
        "--twits",
        "40",
        "--questions",
        "5",
        "--threads",
        "2",
        "--keep-tables",
    ];
    bench(&server, &small, &dir.path().join("report"));
    let ask = |arguments: &[&str]| {
        let output = twibase(&server, &[&["--prefix", "lab_twibase_"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}\n{output:?}");
        text(&output.stdout)
    };
    let feed = ask(&["feed", "user0000000"]);
    assert!(feed.contains(": Twit "), "{feed}");
    assert_eq!(feed, ask(&["feed", "user0000000", "--gathered"]));
    let shown = ask(&["show", "celebrity"]);
    assert!(
        shown.contains("full name: The Celebrity") && shown.contains("twits: 3"),
        "{shown}"
    );
    assert!(ask(&["follows", "user0000000", "celebrity"]).contains("yes"));
    let twits = ask(&["twits", "celebrity"]);
    assert!(twits.contains("My twit 2 #fame"), "{twits}");
    assert_eq!(twits, ask(&["tag", "fame"]));
    let taken = twibase(&server, &["--prefix", "lab_twibase_", "join", "celebrity"]);
    assert!(
        text(&taken.stderr).contains("the name celebrity is taken"),
        "{taken:?}"
    );
    server.stop();
}

/// One command runs everything and writes one page; it leaves no table behind.
#[test]
fn the_whole_lab_is_one_report() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let out = dir.path().join("report");
    for api in ["thrift1", "thrift2"] {
        let printed = bench(&server, &["report", "--size", "tiny", "--api", api], &out);
        assert!(printed.contains("claims confirmed"), "{printed}");
        let (json, _) = report(&out);
        let sections = json["sections"].as_array().expect("a list of sections");
        let names: Vec<_> = sections
            .iter()
            .filter_map(|section| section["name"].as_str())
            .collect();
        assert_eq!(
            names,
            ["hotspot", "ids", "family", "orders", "twibase", "pe", "ycsb"]
        );
        for section in sections {
            let command = section["command"].as_str().expect("a command");
            assert_eq!(command.contains(" --api thrift1"), api == "thrift1", "{command}");
        }
    }
    let (json, html) = report(&out);
    assert_eq!(
        (&json["workload"], &json["format"]),
        (&"report".into(), &2.into())
    );
    let sections = json["sections"].as_array().expect("a list of sections");
    for section in sections {
        let name = section["name"].as_str().expect("a name");
        assert_eq!(section["report"]["workload"], name, "{name}");
        let command = section["command"].as_str().expect("a command");
        assert!(command.starts_with(&format!("basalt-bench {name} ")), "{command}");
        assert!(
            html.contains(&format!("id=\"{name}\"")),
            "{name} is not on the page"
        );
    }
    let verdicts = json["verdicts"].as_array().expect("a list of verdicts");
    let count = |verdict: &str| {
        verdicts
            .iter()
            .filter(|found| found["verdict"] == verdict)
            .count() as u64
    };
    for (field, verdict) in [
        ("confirmed", "confirmed"),
        ("not_seen", "not seen here"),
        ("not_measured", "not measured"),
    ] {
        assert_eq!(json[field].as_u64(), Some(count(verdict)), "{field}");
    }
    let hot = verdicts.iter().find(|found| found["section"] == "hotspot");
    assert!(
        hot.is_some_and(|found| found["verdict"] == "confirmed"),
        "{hot:?}"
    );
    let markdown = std::fs::read_to_string(out.join("report.md")).expect("Markdown was written");
    assert!(markdown.contains("## Claims and verdicts") && markdown.contains("### Which bloom filter?"));
    let tables = Command::new(binary("basalt-shell"))
        .args(["--target", &server.thrift.to_string(), "-e", "list"])
        .output()
        .expect("the binary was built");
    assert!(!text(&tables.stdout).contains("report_"), "{tables:?}");
    server.stop();
}

/// Without a server the answer is one line.
#[test]
fn a_report_without_a_server_says_so() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let output = Command::new(binary("basalt-bench"))
        .args(["report", "--target", "127.0.0.1:1", "--out"])
        .arg(dir.path().join("report"))
        .output()
        .expect("the binary was built");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("no server answers at 127.0.0.1:1"), "{said}");
    assert!(!dir.path().join("report").exists(), "nothing is left behind");
}

fn twibase(server: &Server, arguments: &[&str]) -> Output {
    Command::new(binary("basalt-twibase"))
        .args(["--target", &server.thrift.to_string()])
        .args(arguments)
        .output()
        .expect("the binary was built")
}

/// A person uses the application from a terminal.
#[test]
fn twibase_works_from_a_terminal() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for (arguments, expected) in [
        (&["init", "--regions", "4"][..], "created 6 tables"),
        (
            &[
                "join",
                "ada",
                "--full-name",
                "Ada Lovelace",
                "--email",
                "ada@example.org",
            ],
            "ada joined",
        ),
        (&["join", "grace"], "grace joined"),
        (&["join", "tim"], "tim joined"),
        (&["follow", "grace", "ada"], "grace follows ada"),
        (&["follow", "tim", "ada"], "tim follows ada"),
        (&["follows", "grace", "ada"], "yes"),
        (&["follows", "ada", "grace"], "no"),
        (&["following", "grace"], "ada"),
        (
            &["post", "ada", "The engine weaves #Algebra"],
            "twit 1 of ada, 2 copies",
        ),
        (
            &["post", "ada", "Quietly", "--no-copies"],
            "twit 2 of ada, 0 copies",
        ),
        (&["feed", "grace"], "ada: The engine weaves #Algebra"),
        (&["feed", "grace", "--gathered"], "ada: Quietly"),
        (&["twits", "ada", "--limit", "1"], "ada: Quietly"),
        (&["tag", "algebra"], "ada: The engine weaves #Algebra"),
        (&["show", "ada"], "twits: 2"),
        (&["unfollow", "grace", "ada"], "grace does not follow ada"),
        (&["follows", "grace", "ada"], "no"),
        (&["followers", "ada"], "tim"),
        (&["drop"], "dropped the tables"),
    ] {
        let output = twibase(&server, arguments);
        assert!(output.status.success(), "{arguments:?}\n{output:?}");
        let printed = text(&output.stdout);
        assert!(printed.contains(expected), "{arguments:?}\nprinted\n{printed}");
    }
    server.stop();
}

/// The copied feed has the delivered twits, the gathered one everything, each newest first; bad
/// input is one line.
#[test]
fn twibase_refuses_what_does_not_fit() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for arguments in [
        &["init"][..],
        &["join", "ada"],
        &["join", "grace"],
        &["follow", "grace", "ada"],
    ] {
        assert!(twibase(&server, arguments).status.success(), "{arguments:?}");
    }
    for words in ["first", "second"] {
        assert!(twibase(&server, &["post", "ada", words]).status.success());
    }
    for feed in [&["feed", "grace"][..], &["feed", "grace", "--gathered"]] {
        let printed = text(&twibase(&server, feed).stdout);
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            lines.len() == 2 && lines[0].ends_with("second") && lines[1].ends_with("first"),
            "{feed:?}: {printed}"
        );
    }
    let long = "x".repeat(281);
    for (arguments, expected) in [
        (&["join", "ada"][..], "the name ada is taken"),
        (&["join", "a b"], "1 to 30 letters"),
        (&["post", "nobody", "text"], "no user with the name nobody"),
        (&["post", "ada", &long], "281 characters"),
        (&["follow", "grace", "nobody"], "no user with the name nobody"),
        (&["show", "nobody"], "no user with the name nobody"),
        (&["init"], "already exists"),
    ] {
        let output = twibase(&server, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}\n{output:?}");
        let said = text(&output.stderr);
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{arguments:?}: {said}"
        );
    }
    server.stop();
}

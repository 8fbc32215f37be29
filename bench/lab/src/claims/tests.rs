//! Verdict rules on given numbers, and that every form of the report shows them.

use basalt_load::report::REPORT_FORMAT;

use super::pages::html;
use super::*;

fn part(figures: [Option<f64>; 2]) -> PartReport {
    let mut part = PartReport::new("block-size", "Which block size?", "Two tables.");
    for (name, value) in ["4 KiB", "64 KiB"].into_iter().zip(figures) {
        let mut way = Way::new(name);
        way.figure("blocks_per_scan", value);
        way.figure("file_bytes", 2_000.0);
        part.add(way);
    }
    part
}

fn judged(figures: [Option<f64>; 2], rule: Rule) -> Finding {
    let mut part = part(figures);
    part.judge("a claim", "blocks_per_scan", ["4 KiB", "64 KiB"], rule);
    part.findings.remove(0)
}

#[test]
fn a_verdict_follows_from_the_numbers() {
    let verdict = |first, second, rule| judged([first, second], rule).verdict;
    let at_least = Rule::AtLeast(2.0);
    for (first, second, expected) in [
        (4.0, 2.0, Verdict::Confirmed),
        (3.9, 2.0, Verdict::NotSeenHere),
        (0.0, 0.0, Verdict::NotSeenHere),
        (1.0, 0.0, Verdict::Confirmed),
        (0.0, 1.0, Verdict::NotSeenHere),
    ] {
        assert_eq!(
            verdict(Some(first), Some(second), at_least),
            expected,
            "{first} {second}"
        );
    }
    let at_most = Rule::AtMost(0.5);
    for (first, second, expected) in [
        (1.0, 2.0, Verdict::Confirmed),
        (1.1, 2.0, Verdict::NotSeenHere),
        (0.0, 0.0, Verdict::NotSeenHere),
    ] {
        assert_eq!(
            verdict(Some(first), Some(second), at_most),
            expected,
            "{first} {second}"
        );
    }
    assert_eq!(verdict(None, Some(1.0), at_least), Verdict::NotMeasured);
    assert_eq!(verdict(Some(1.0), None, at_least), Verdict::NotMeasured);
}

#[test]
fn a_finding_shows_what_decided() {
    let found = judged([Some(30.0), Some(2.0)], Rule::AtLeast(2.0));
    assert_eq!(
        found.measurement,
        "blocks per scan: 4 KiB 30; 64 KiB 2 (15 times)"
    );
    assert_eq!(found.rule, "4 KiB is at least 2 times 64 KiB");
    assert_eq!(found.ratio.map(f64::to_bits), Some(15.0f64.to_bits()));
    let missing = judged([None, Some(2.0)], Rule::AtLeast(2.0));
    assert!(
        missing.measurement.contains("4 KiB not told by this server"),
        "{}",
        missing.measurement
    );
    let mut part = part([Some(3.0), Some(1.0)]);
    let first = ("4 KiB", "blocks_per_scan");
    part.judge_figures("another", first, ("4 KiB", "file_bytes"), Rule::AtMost(1.0));
    assert_eq!(
        (part.findings[0].measurement.as_str(), part.findings[0].verdict),
        (
            "blocks per scan of 4 KiB 3; file bytes of 4 KiB 2000 (0.00150 times)",
            Verdict::Confirmed
        )
    );
}

#[test]
fn every_form_shows_verdicts_and_what_is_missing() {
    let mut part = part([None, Some(2.0)]);
    part.judge(
        "small <blocks>",
        "blocks_per_scan",
        ["4 KiB", "64 KiB"],
        Rule::AtLeast(2.0),
    );
    part.difference = Some("question 3 differs".to_owned());
    let head = Head {
        format: REPORT_FORMAT,
        workload: "family",
        tool: "basalt-bench 0.0.0",
        server: "Basalt 0.0.0".to_owned(),
        target: "127.0.0.1:9090".to_owned(),
        started_ms: 1,
    };
    let mut report = LabReport::new(head, "What does a family's setting buy?");
    report.set("rows", 5);
    report.parts.push(part);
    assert_eq!(
        report.difference().as_deref(),
        Some("block-size: question 3 differs")
    );
    let html = html(&report).unwrap();
    assert!(
        html.contains("small &lt;blocks&gt;") && !html.contains("small <blocks>"),
        "claims are escaped"
    );
    assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
    for text in [html, markdown(&report)] {
        for shown in [
            "not measured",
            "not told by this server",
            "question 3 differs",
            "Which block size?",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }
    assert!(markdown(&report).contains("| 4 KiB | - | 2000 |"));
}

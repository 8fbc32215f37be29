//! Goal: consumers that are killed, and whose server is killed, have everything in the end.

use std::process::{Command, Stdio};

use basalt_test_support::workspace;

use super::*;

/// Puts numbered rows until it is stopped; the number of those that were acknowledged.
fn write(node: &Node, stop: &Arc<AtomicBool>, acknowledged: &Arc<AtomicU64>) -> std::thread::JoinHandle<()> {
    let (table, stop) = (node.cluster.table("t").expect("a name"), Arc::clone(stop));
    let (acknowledged, runtime) = (Arc::clone(acknowledged), Runtime::new().expect("a runtime"));
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let number = acknowledged.load(Ordering::Relaxed);
            let put = Put::new(format!("{number:08}").as_str()).cell("f", "q", "v".repeat(500));
            // One that is not answered is sent again.
            if runtime.block_on(table.put(put)).is_ok() {
                acknowledged.store(number + 1, Ordering::Relaxed);
            }
        }
    })
}

#[test]
fn every_row_arrives_in_order_over_kills_of_the_server() {
    let mut node = Node::start(&SMALL);
    node.create("t");
    assert_eq!(
        Stream::send(node.http, "PUT", "/changes/readers/r?tables=t", "").status,
        201
    );
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = write(&node, &stop, &acknowledged);
    let mut writer = Some(writer);
    let mut seen: BTreeMap<u64, String> = BTreeMap::new();
    let mut next = None;
    let mut last = None;
    for kills in 0..5 {
        let mut stream = match next {
            None => node.get("/changes?reader=r&bytes=escaped"),
            Some(next) => node.get(&format!("/changes?reader=r&bytes=escaped&from={next}")),
        };
        assert_eq!(stream.status, 200);
        let enough = 300 * (kills + 1);
        while let Some(object) = stream.next() {
            if object.get("row").is_some() {
                let known = seen.insert(position(&object), row(&object).to_owned());
                assert!(known.is_none_or(|known| known == row(&object)), "{object}");
                next = Some(position(&object) + 1);
                if last.as_deref() == Some(row(&object)) {
                    break;
                }
            }
            if seen.len() > enough {
                if kills < 4 {
                    break;
                }
                if let Some(writer) = writer.take() {
                    stop.store(true, Ordering::Relaxed);
                    writer.join().expect("the writer ends");
                    let rows = acknowledged.load(Ordering::Relaxed);
                    last = Some(format!("{:08}", rows - 1));
                    if seen.values().any(|seen| Some(seen) == last.as_ref()) {
                        break;
                    }
                }
            }
        }
        if kills < 4 {
            let moved = format!("/changes/readers/r?position={}", next.expect("a position"));
            assert_eq!(Stream::send(node.http, "POST", &moved, "").status, 200);
            node.kill_and_restart();
        }
    }
    // In the order of the writer; one that was sent again may stand twice in a row.
    let mut rows: Vec<_> = seen.into_values().collect();
    rows.dedup();
    let expected: Vec<_> = (0..rows.len()).map(|number| format!("{number:08}")).collect();
    assert_eq!(rows, expected);
    assert!(rows.len() as u64 >= acknowledged.load(Ordering::Relaxed));
}

/// The first program of docs/changes.md in a language.
fn program(language: &str) -> String {
    let page = std::fs::read_to_string(workspace().join("docs/changes.md")).expect("the page is there");
    let begin = format!("```{language}\n");
    let (_, behind) = page.split_once(&begin).expect("the page has a program");
    let (program, _) = behind.split_once("```").expect("the program ends");
    program.to_owned()
}

#[test]
fn the_python_program_of_the_page_keeps_up_over_kills_of_both() {
    let mut node = Node::start(&SMALL);
    let table = node.create("t");
    for number in 0..100 {
        node.put(&table, &format!("present-{number}"), "v");
    }
    let file = node.dir.path().join("rows.py");
    std::fs::write(&file, program("python")).expect("it is written");
    let database = node.dir.path().join("rows.db");
    let http = format!("http://{}", node.http);
    let consume = || {
        let arguments = [
            file.as_os_str(),
            http.as_ref(),
            "t".as_ref(),
            database.as_os_str(),
        ];
        let mut command = Command::new("python3");
        command.args(arguments).stderr(Stdio::null());
        command.spawn().expect("python3 is there")
    };
    let count = || {
        let words = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select count(*) from rows').fetchone()[0])";
        let output = Command::new("python3")
            .args(["-c", words])
            .arg(&database)
            .output()
            .expect("python3 is there");
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse::<u64>()
            .unwrap_or(0)
    };
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = write(&node, &stop, &acknowledged);
    let mut consumer = consume();
    for kills in 1..=3 {
        until("the consumer goes on", || count() > 100 + 50 * kills);
        consumer.kill().expect("it runs");
        consumer.wait().expect("it ends");
        node.kill_and_restart();
        consumer = consume();
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("the writer ends");
    node.run(table.delete(Delete::row("present-7")));
    let wanted = 99 + acknowledged.load(Ordering::Relaxed);
    until("the consumer has all rows", || {
        count() == wanted || count() == wanted + 1
    });
    consumer.kill().expect("it runs");
    consumer.wait().expect("it ends");
}

#[test]
fn the_java_program_of_the_page_counts_rows() {
    let node = Node::start(&[]);
    let table = node.create("t");
    for row in ["a", "b", "c"] {
        node.put(&table, row, "v");
    }
    let file = node.dir.path().join("Rows.java");
    std::fs::write(&file, program("java")).expect("it is written");
    let started = Command::new("java")
        .arg(&file)
        .args([format!("http://{}", node.http), "t".to_owned()])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut java) = started else {
        eprintln!("no Java: the program of the page was not run");
        return;
    };
    let mut lines = BufReader::new(java.stdout.take().expect("a pipe")).lines();
    let mut said = |text: &str| lines.any(|line| line.is_ok_and(|line| line == text));
    assert!(said("3 rows"));
    node.run(table.delete(Delete::row("b")));
    assert!(said("2 rows"));
    java.kill().expect("it runs");
    java.wait().expect("it ends");
}

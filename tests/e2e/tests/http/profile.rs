//! Profiles on demand: a profile that is taken under load names functions of ours, and each request that
//! cannot be served says why.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use basalt_idl::thrift2;
use basalt_test_support::Server;

use super::client::{Answer, Http};
use super::rows::{bytes, create, put_rows};

/// Stops the load when dropped, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Puts and scans until `stop` is set.
fn load(server: &Server, stop: &AtomicBool) {
    let mut http = Http::connect(server.http);
    while !stop.load(Ordering::Relaxed) {
        http.call("/thrift2", &put_rows("t", 0..500)).expect("good puts");
        let get = thrift2::args::GetScannerResults {
            table: bytes("t"),
            tscan: thrift2::TScan::default(),
            num_rows: 500,
        };
        assert_eq!(http.call("/thrift2", &get).expect("served").len(), 500);
    }
}

fn ask(server: &Server, method: &str, path: &str) -> Answer {
    Http::connect(server.http).ask(method, path, "", b"")
}

/// Goal: symbols resolve. The load goes on until the profile has been taken; a profile in
/// which this process got no processor time is asked for again.
#[test]
fn a_profile_under_load_names_our_functions() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["http.profiles=true"]);
    Http::connect(server.http)
        .call("/thrift2", &create("t"))
        .expect("a good table");
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| load(&server, &stop));
        let _stop = Stop(&stop);
        let names = |name: &[u8]| {
            for _ in 0..5 {
                let answer = ask(&server, "POST", "/debug/pprof/profile?seconds=2&frequency=499");
                if answer.status == 200 && answer.body.windows(name.len()).any(|part| part == name) {
                    return Ok(answer);
                }
                assert!(matches!(answer.status, 200 | 503), "{}", answer.text());
            }
            Err(format!("no {} in five profiles", String::from_utf8_lossy(name)))
        };
        let profile = names(b"basalt_engine::").expect("a profile");
        assert_eq!(profile.header("content-type"), Some("application/octet-stream"));
    });
    server.stop();
}

/// Every limit has its error: parameters, two at once, switched off. A stop does not wait for the end of a
/// profile.
#[test]
fn a_profile_that_cannot_be_taken_says_why() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["http.profiles=true"]);
    for (parameters, says) in [
        (
            "seconds=0",
            "seconds is \"0\", and must be a whole number from 1 to 300",
        ),
        ("seconds=301", "must be a whole number from 1 to 300"),
        (
            "frequency=1000",
            "frequency is \"1000\", and must be a whole number from 1 to 999",
        ),
        (
            "secs=3",
            "there is no parameter \"secs\": there are seconds and frequency",
        ),
    ] {
        let in_address = ask(&server, "POST", &format!("/debug/pprof/profile?{parameters}"));
        let origin = format!("Origin: http://{}\r\n", server.http);
        let as_form = Http::connect(server.http).ask_as(
            &server.http.to_string(),
            "POST",
            "/debug/pprof/profile",
            &origin,
            parameters.as_bytes(),
        );
        for answer in [in_address, as_form] {
            assert_eq!(answer.status, 400, "{parameters}: {}", answer.text());
            assert!(answer.text().contains(says), "{}", answer.text());
        }
    }
    let long = Http::connect(server.http).ask("POST", "/debug/pprof/profile", "", &[b'x'; 2_000]);
    assert_eq!(long.status, 400);
    assert!(long.text().contains("longer than 1024 bytes"), "{}", long.text());
    let got = ask(&server, "GET", "/debug/pprof/profile?seconds=300");
    assert_eq!((got.status, got.header("allow")), (405, Some("POST")));
    let page = ask(&server, "GET", "/threads").text();
    assert!(
        page.contains("action=\"/debug/pprof/profile\" method=\"post\""),
        "{page}"
    );

    // Two that last for longer than the server does: one of them comes too late.
    let (answers, come) = mpsc::channel();
    for _ in 0..2 {
        let (address, answers) = (server.http, answers.clone());
        std::thread::spawn(move || {
            let answer = Http::connect(address).ask("POST", "/debug/pprof/profile?seconds=300", "", b"");
            answers.send(answer)
        });
    }
    let refused = come.recv().expect("an answer");
    assert_eq!(refused.status, 409);
    assert!(refused.text().contains("one at a time"), "{}", refused.text());
    server.stop();
    let stopped = come.recv().expect("an answer");
    assert_eq!((stopped.status, &stopped.text()[..]), (503, "stopping\n"));

    // Profiles are off by default.
    let server = Server::start(&dir.path().join("data"), &[]);
    let answer = ask(&server, "POST", "/debug/pprof/profile");
    assert_eq!(answer.status, 403);
    assert!(
        answer.text().contains("http.profiles is false"),
        "{}",
        answer.text()
    );
    let page = ask(&server, "GET", "/threads");
    assert!(page.text().contains("Profiles are switched off"));
    server.stop();
}

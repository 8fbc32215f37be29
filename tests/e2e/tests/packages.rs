//! Packages that testers of HBase applications install, and the server's messages to systemd.
//!
//! `packages/NAME/test.sh PROGRAM` builds a package around a program, installs it, and runs its tests
//! and those of a sample project. Exit status 77 says that the machine lacks a tool; the test is then
//! not run. Packages that need a release build are tested by `packages/test.sh` alone.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use basalt_test_support::{binary, serve, signal, workspace};

/// Exit status of a test script on a machine that lacks a tool.
const NOT_RUN: i32 = 77;

/// Runs a package's tests with the program of this build.
fn test_package(name: &str) {
    let script = workspace().join("packages").join(name).join("test.sh");
    let output = Command::new(&script)
        .arg(binary("basalt"))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout);
    match output.status.code() {
        Some(0) => println!("{printed}"),
        Some(NOT_RUN) => println!("{}", printed.lines().last().unwrap_or("not run")),
        _ => panic!("{}:\n{printed}\n{}", output.status, text(&output.stderr)),
    }
}

#[test]
fn python_wheel_and_pytest_fixtures() {
    test_package("python");
}

#[test]
fn java_extension_and_sample() {
    test_package("java");
}

#[test]
fn go_module_and_sample() {
    test_package("go");
}

/// A server that was started as a service, and the socket on which its supervisor receives messages.
struct Service {
    process: Child,
    supervisor: UnixDatagram,
}

impl Service {
    fn start(dir: &Path, watchdog: Duration) -> Self {
        let path = dir.join("notify");
        let supervisor = UnixDatagram::bind(&path).expect("a free name");
        let limit = Some(Duration::from_mins(1));
        supervisor.set_read_timeout(limit).expect("a valid limit");
        let mut process = serve(&binary("basalt"), &dir.join("data"), &[""; 0])
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", watchdog.as_micros().to_string())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary was built");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("standard output is piped"))
            .read_line(&mut line)
            .expect("the server prints text");
        assert!(line.starts_with("basalt serves"), "{line:?}");
        Self { process, supervisor }
    }

    /// The next message; panics if none comes within a minute.
    fn message(&self) -> String {
        let mut bytes = [0; 256];
        let length = self.supervisor.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Receives messages until this one; panics if they end before.
    fn await_message(&self, wanted: &str) {
        while self.message() != wanted {}
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if the process has ended, which is their purpose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Goal: a unit of `Type=notify` with a watchdog works. Method: a socket in systemd's place.
#[test]
fn systemd_receives_ready_watchdog_and_stopping() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let mut service = Service::start(dir.path(), Duration::from_millis(100));
    service.await_message("READY=1");
    service.await_message("WATCHDOG=1");
    service.await_message("WATCHDOG=1");
    signal(service.process.id(), "TERM");
    service.await_message("STOPPING=1");
    let status = service.process.wait().expect("the process was started here");
    assert!(status.success(), "{status}");
}

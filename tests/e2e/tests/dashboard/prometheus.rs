//! A real Prometheus, if it is installed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::read;

/// A running Prometheus. Killed when dropped.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Starts with our scrape configuration, pointed at this server and hurried, and with these alert rules.
    /// `None` when it is not installed.
    pub(crate) fn start(dir: &Path, server: SocketAddr, rules: &str) -> Option<Self> {
        let ours = read("grafana/prometheus.yml");
        let adapted = ours
            .replace("127.0.0.1:9095", &server.to_string())
            .replace(": 5s", ": 1s");
        assert_eq!(
            adapted.matches(": 1s").count(),
            2,
            "the intervals are not where this test expects them"
        );
        assert!(
            adapted.contains(&format!("targets: [\"{server}\"]")),
            "nor is the target"
        );
        std::fs::write(dir.join("prometheus.yml"), adapted).expect("the folder is ours");
        std::fs::write(dir.join("alerts.yml"), rules).expect("the folder is ours");
        let started = Command::new("prometheus")
            .arg(format!("--config.file={}", dir.join("prometheus.yml").display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.join("prometheus").display()
            ))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => panic!("prometheus does not start: {error}"),
        };
        let log = BufReader::new(child.stderr.take().expect("standard error is piped"));
        let (lines, log_lines) = mpsc::channel();
        // Reads on after the address was found, or Prometheus would block on a full pipe.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                // The receiver is gone once the address is known.
                let _ = lines.send(line);
            }
        });
        let mut said = String::new();
        loop {
            let line = log_lines
                .recv_timeout(Duration::from_mins(1))
                .unwrap_or_else(|error| panic!("prometheus does not listen ({error}):\n{said}"));
            let address = line
                .split_once("Listening on")
                .and_then(|(_, rest)| rest.split_once("address="));
            if let Some((_, address)) = address {
                let address = address
                    .split_whitespace()
                    .next()
                    .and_then(|text| text.trim_matches('"').parse().ok());
                let address = address.unwrap_or_else(|| panic!("no address in {line}"));
                return Some(Self { child, address });
            }
            said.push_str(&line);
            said.push('\n');
        }
    }

    /// The result of a query now; the error's text when Prometheus refuses it.
    pub(crate) fn query(&self, expr: &str) -> Result<Vec<Value>, String> {
        use std::fmt::Write as _;
        let mut path = String::from("/api/v1/query?query=");
        for byte in expr.bytes() {
            if byte.is_ascii_alphanumeric() {
                path.push(byte.into());
            } else {
                write!(path, "%{byte:02X}").expect("a string takes everything");
            }
        }
        let mut socket = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        write!(socket, "GET {path} HTTP/1.0\r\nHost: prometheus\r\n\r\n")
            .map_err(|error| error.to_string())?;
        let mut answer = String::new();
        socket
            .read_to_string(&mut answer)
            .map_err(|error| error.to_string())?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .ok_or_else(|| format!("no answer: {answer}"))?;
        let body: Value = serde_json::from_str(body).map_err(|error| format!("{error}: {head}\n{body}"))?;
        if body["status"] != "success" {
            return Err(format!("{}", body["error"]));
        }
        Ok(body["data"]["result"].as_array().cloned().unwrap_or_default())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process was started here");
    }
}

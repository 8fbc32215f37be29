//! A headless Chromium, driven through its own pipe: the DevTools protocol, JSON messages that end with a
//! zero byte.
//!
//! Chromium reads from descriptor 3 and writes to 4; a shell connects our pipes to these. A thread
//! reads, so that every wait here has a timeout.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

/// Longest wait for an answer or an event.
const PATIENCE: Duration = Duration::from_mins(1);

/// Names of the program, in the order in which they are tried.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one page. Killed when dropped.
pub(crate) struct Chromium {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts it; `None`, with one line that says why, on a machine without it: the test is then not run.
    pub(crate) fn start() -> Option<Self> {
        let is_there = |name: &&&str| {
            let version = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            version.is_ok_and(|output| output.status.success())
        };
        let Some(name) = NAMES.iter().find(is_there) else {
            println!(
                "not run: pages in a browser, since none of {} is installed",
                NAMES.join(", ")
            );
            return None;
        };
        let profile = basalt_test_support::tempdir().expect("a temporary folder");
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null", "sh", name])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-extensions",
            ])
            .args([
                "--disable-background-networking",
                "--remote-debugging-pipe",
                "--hide-scrollbars",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh is everywhere");
        let commands = child.stdin.take().expect("standard input is piped");
        let mut output = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            commands,
            messages,
            session: None,
            last_id: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target, "flatten": true }),
        );
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method and returns its result.
    #[expect(clippy::needless_pass_by_value, reason = "parameters are made for this call")]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone().into();
        }
        let mut bytes = serde_json::to_vec(&message).expect("a value is JSON");
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser reads");
        loop {
            let answer = self.next();
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn next(&mut self) -> Value {
        self.messages
            .recv_timeout(PATIENCE)
            .expect("the browser answers within a minute")
    }

    /// Waits for an event of that name.
    fn wait_for(&mut self, event: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.events.iter().any(|seen| seen["method"] == event) {
            assert!(Instant::now() < deadline, "no {event} within a minute");
            let message = self.next();
            self.events.push(message);
        }
    }

    /// Loads a page and waits until it and its scripts have been run.
    pub(crate) fn open(&mut self, address: &str) {
        self.events.clear();
        let result = self.call("Page.navigate", json!({ "url": address }));
        assert!(result["errorText"].is_null(), "{address}: {result}");
        self.wait_for("Page.loadEventFired");
    }

    /// The value of an expression in the page; a promise is waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until the expression is true.
    pub(crate) fn wait_until(&mut self, expression: &str) {
        let wait = format!(
            "new Promise((done) => {{ const look = () => ({expression}) ? done(true) : setTimeout(look, 20); look(); }})"
        );
        assert_eq!(self.evaluate(&wait), true, "{expression}");
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let params = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// Presses a key that leads to another page, and waits for that.
    pub(crate) fn press_to_go(&mut self, key: &str, code: u32) {
        self.events.clear();
        self.press(key, code);
        self.wait_for("Page.frameNavigated");
    }

    /// Clicks on an element that leads to another page, and waits for the navigation.
    pub(crate) fn click_to_go(&mut self, selector: &str) {
        self.events.clear();
        self.evaluate(&format!("document.querySelector('{selector}').click()"));
        self.wait_for("Page.frameNavigated");
    }

    /// Shows pages in that colour scheme, in a window of that size.
    pub(crate) fn look(&mut self, scheme: &str, width: u32, height: u32) {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": feature }));
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// A screenshot of the page.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        let data = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = data["data"].as_str().expect("a picture in base64");
        let picture = base64::prelude::BASE64_STANDARD.decode(data).expect("base64");
        std::fs::write(file, picture).expect("the folder is there");
    }

    /// Errors that the page has reported since it was opened: exceptions, failed requests, breaches
    /// of the policy.
    pub(crate) fn errors(&self) -> Vec<String> {
        let is_error = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].contains(&event["params"]["type"].as_str().unwrap_or_default())
            }
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            _ => false,
        };
        self.events
            .iter()
            .filter(is_error)
            .map(|event| event["params"].to_string())
            .collect()
    }

    /// Addresses that the page has asked for since it was opened.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self
            .events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent");
        requests
            .filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned))
            .collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

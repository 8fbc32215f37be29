//! Backups in S3: the server of moto, a library that answers as S3 does, behind a proxy that fails.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use basalt_test_support::{Server, binary, moto, until};

use super::{Writer, text};

/// The S3 server. Killed when dropped.
struct S3 {
    child: Child,
    address: SocketAddr,
}

impl S3 {
    fn start() -> Option<Self> {
        let python = moto()?;
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let mut command = python.module("moto.server");
        command.args(["-H", "127.0.0.1", "-p", &address.port().to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("Python was started before");
        until("moto accepts connections", || TcpStream::connect(address).is_ok());
        Some(Self { child, address })
    }

    /// Makes a bucket.
    fn make_bucket(&self, name: &str) {
        let mut socket = TcpStream::connect(self.address).expect("moto is there");
        write!(
            socket,
            "PUT /{name} HTTP/1.0\r\nHost: {}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x\r\nContent-Length: 0\r\n\r\n",
            self.address
        )
        .expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(" 200 "), "{answer}");
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Forwards connections. Of every three that begin with the same request, the first is cut after a few bytes of the
/// request or the answer, and the second is answered with an error that can be retried.
fn faulty_proxy(to: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let faults = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&faults);
    let attempts = Arc::new(Mutex::new(HashMap::<Vec<u8>, u64>::new()));
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let Ok(mut client) = client else { return };
            let (counted, attempts) = (Arc::clone(&counted), Arc::clone(&attempts));
            std::thread::spawn(move || {
                let mut head = [0; 512];
                let Ok(length) = client.peek(&mut head) else {
                    return;
                };
                let line = head[..length]
                    .split(|byte| *byte == b'\r')
                    .next()
                    .unwrap_or_default();
                let attempt = {
                    let mut attempts = attempts.lock().expect("no thread panics");
                    let count = attempts.entry(line.to_vec()).or_default();
                    *count += 1;
                    *count - 1
                };
                let Ok(server) = TcpStream::connect(to) else {
                    return;
                };
                let half = |mut from: TcpStream, mut into: TcpStream, most: u64| {
                    // Errors are what the proxy is for.
                    let _ = std::io::copy(&mut (&mut from).take(most), &mut into);
                    let _ = into.shutdown(std::net::Shutdown::Both);
                    let _ = from.shutdown(std::net::Shutdown::Both);
                };
                let most = match attempt % 3 {
                    0 => 3000 + 997 * number as u64,
                    1 => {
                        counted.fetch_add(1, Ordering::Relaxed);
                        let mut ignored = [0; 1024];
                        let _ = client.read(&mut ignored);
                        let _ = client.write_all(
                            b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                        );
                        return;
                    }
                    _ => u64::MAX,
                };
                if most < u64::MAX {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                let (Ok(from), Ok(into)) = (client.try_clone(), server.try_clone()) else {
                    return;
                };
                std::thread::spawn(move || half(from, into, most));
                half(server, client, most);
            });
        }
    });
    (address, faults)
}

/// Goal: backup, list, verify, prune and restore work against an S3 server, also through a proxy that fails
/// two of three connections.
#[test]
fn backups_live_in_s3() {
    let Some(s3) = S3::start() else { return };
    s3.make_bucket("bucket");
    let (proxy, faults) = faulty_proxy(s3.address);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let mut rows = Vec::new();
    for (name, endpoint) in [("plain", s3.address), ("faulty", proxy)] {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{endpoint}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ];
        let url = format!("s3://bucket/{name}/below");
        let data = dir.path().join(name);
        let mut command = basalt_test_support::serve(&binary("basalt"), &data, &super::SMALL);
        command.envs(variables.clone());
        let server = Server::run_command(command).expect("the server starts");
        let from = server.http.to_string();
        let writer = Writer::start(&server);
        writer.wait_for(2500);
        let before = writer.acknowledged();
        let run = |words: &[&str]| {
            let mut command = super::basalt(words);
            let output = command.envs(variables.clone()).output().expect("started");
            let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "{words:?}: {shown}");
            shown
        };
        run(&super::backup_words(&url, &from));
        run(&super::backup_words(&url, &from));
        drop(writer);
        server.kill();
        assert_eq!(run(&["backups", "list", "--at", &url]).lines().count(), 2);
        assert!(run(&["backups", "verify", "--at", &url]).contains(" 0 problems"));
        assert!(run(&["backups", "prune", "--keep", "0s", "--at", &url]).contains("1 kept"));
        assert!(run(&["backups", "verify", "--at", &url]).contains("1 backups"));
        let restored = dir.path().join(format!("{name}-restored"));
        run(&[
            "restore",
            "--from",
            &url,
            "--data-dir",
            &restored.display().to_string(),
        ]);
        let found = super::numbered_rows(&restored);
        assert!(found >= before, "{before} {found}");
        rows.push(found);
    }
    assert!(faults.load(Ordering::Relaxed) > 10, "the proxy has failed");
    assert_eq!(rows.len(), 2);
}

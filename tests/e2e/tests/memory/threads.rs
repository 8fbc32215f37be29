//! Goal: where the system refuses threads, the server does all of its work with those that it has, or
//! refuses to start with a sentence. Method: the program as a user of its own, whose limit of processes is
//! 1 to 40 above what the idle server has; writes, reads, scans with filters, flushes, compactions and
//! splits under each limit.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use basalt_client::admin::{Admin, Compaction};
use basalt_client::{Client, ErrorKind, FamilySchema, Get, Put, Scan, Table, TableSchema};
use basalt_test_support::{Server, binary, until};

use crate::ALONE;

/// A user without other processes: the limit counts all of a user's.
const USER: &str = "61234";
/// Threads above those of the idle server.
const ABOVE: [u64; 7] = [1, 2, 3, 5, 10, 20, 40];
const CLIENTS: usize = 6;
const BATCHES: usize = 12;
const ROWS: usize = 100;
const VALUE_BYTES: usize = 1_000;

/// The program and a data directory where the user can reach them.
struct Place {
    dir: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let program = dir.path().join("basalt");
        std::fs::copy(binary("basalt"), &program).expect("the binary was built");
        for path in [dir.path(), &program] {
            let all = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(path, all).expect("the files are ours");
        }
        Self { dir, program }
    }

    fn start(&self, limit: u64) -> Result<Server, String> {
        let mut command = Command::new("setpriv");
        command.args([
            &format!("--reuid={USER}"),
            &format!("--regid={USER}"),
            "--clear-groups",
        ]);
        command.args(["prlimit", &format!("--nproc={limit}:{limit}")]);
        let data: &Path = &self.dir.path().join("data");
        Server::try_start_by(command, &self.program, data, &["memstore.flush_bytes=1MiB"])
    }
}

/// Whether processes of another user can be started here.
fn can_change_user() -> bool {
    let change = Command::new("setpriv")
        .args([
            &format!("--reuid={USER}"),
            "--clear-groups",
            "prlimit",
            "--nproc=10:10",
            "true",
        ])
        .output();
    change.is_ok_and(|output| output.status.success())
}

/// The most threads that a server has until their number has not grown for half a second: a start goes on
/// behind its first answers.
fn threads_at_rest(server: &Server) -> u64 {
    let (mut most, mut since) = (0, Instant::now());
    until("the number of threads stays", || {
        let threads = server.threads();
        if threads > most {
            (most, since) = (threads, Instant::now());
        }
        since.elapsed() > Duration::from_millis(500)
    });
    most
}

fn key(client: usize, row: usize) -> String {
    format!("{client}-{row:05}")
}

/// Writes, reads and scans; retries refused calls.
async fn work(address: String, number: usize) {
    let client = Client::connect(&address).await.expect("the server is there");
    let table = client.table("t").expect("a name");
    for batch in 0..BATCHES {
        let rows = batch * ROWS..(batch + 1) * ROWS;
        let puts = || {
            let value = |row: usize| vec![(number * 7 + row) as u8; VALUE_BYTES];
            rows.clone()
                .map(move |row| Put::new(key(number, row)).cell("f", "q", value(row)))
        };
        while let Err(error) = table.put_multiple(puts()).await {
            assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
        }
        let gets = rows.clone().map(|row| Get::new(key(number, row)));
        let found = table.get_multiple(gets).await.expect("read");
        assert!(found.iter().all(Option::is_some), "acknowledged rows are read");
        let scan = Scan::new()
            .prefix(format!("{number}-"))
            .filter("FirstKeyOnlyFilter()");
        let mut scanned = table.scan(scan).expect("a scan");
        let mut count = 0;
        while scanned.next().await.expect("scanned").is_some() {
            count += 1;
        }
        assert!(count >= rows.end, "{count} rows after {} were written", rows.end);
    }
}

async fn prepare(client: &Client) -> Table {
    let schema = TableSchema::new("t")
        .expect("a name")
        .family(FamilySchema::new("f"));
    client.create_table(schema).await.expect("created");
    client.table("t").expect("a name")
}

/// All kinds of work at once, then work on all files.
async fn load(server: &Server, is_first: bool) {
    let address = server.thrift.to_string();
    let client = Client::connect(&address).await.expect("the server is there");
    if is_first {
        prepare(&client).await;
    }
    let workers: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(work(address.clone(), number)))
        .collect();
    let admin = Admin::new(&client);
    for _ in 0..3 {
        admin.flush("t").await.expect("flushed");
    }
    for worker in workers {
        worker.await.expect("no panic");
    }
    admin.flush("t").await.expect("flushed");
    let whole = Compaction {
        major: true,
        wait: true,
        ..Compaction::default()
    };
    admin.compact("t", whole).await.expect("compacted");
    if is_first {
        let middle = key(CLIENTS / 2, 0).into_bytes().into();
        admin.split("t", Some(middle)).await.expect("split");
    }
    server.http_get("/metrics");
}

#[test]
fn a_server_works_with_the_threads_that_it_gets() {
    if !can_change_user() {
        println!(
            "not run: a limit of threads, which needs setpriv and prlimit and the right to change the user"
        );
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let server = place.start(1_000).expect("a thousand threads suffice");
    let idle = threads_at_rest(&server);
    server.stop();
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    for (number, above) in ABOVE.into_iter().enumerate() {
        let server = place
            .start(idle + above)
            .unwrap_or_else(|output| panic!("{above} above {idle}: {output}"));
        runtime.block_on(load(&server, number == 0));
        println!("{above} above {idle}: {} threads", server.threads());
        server.stop();
    }
    for limit in [1, idle / 2] {
        let output = place.start(limit).expect_err("too few threads");
        assert!(
            output.starts_with("exit status: 1\n") && output.contains("TasksMax="),
            "{limit} threads: {output}"
        );
    }
}

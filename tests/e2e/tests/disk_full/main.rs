//! The real server on a small file system that others fill up and make free again, under writers and readers.
//!
//! Each cycle: writers write (a batch is acknowledged or refused as a whole), readers read back the
//! acknowledged rows. The file system is filled to its last block. Every write is then refused by
//! name until it has space again, reads go on, and then writes are accepted by themselves. At the
//! end the server is killed while its disk is full, and started again.
//!
//! No time is judged, times are printed. `DISK_FULL_CYCLES=50 cargo test --workspace --test disk_full --
//! --nocapture` is where the figure in docs/decisions/0013-disk-full.md comes from.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use basalt_client::{Client, FamilySchema, Put, TableSchema};
use basalt_test_support::{Server, check};

mod load;
mod small_disk;

use load::{Event, Outcome, READERS, Shared, WRITERS, check_rows, read, write};
use small_disk::SmallDisk;

const MIB: u64 = 1 << 20;

/// Settings in proportion to a file system of 256 MiB.
const SETTINGS: &[&str] = &[
    "disk.reserve_bytes=33554432",
    "wal.segment_bytes=4194304",
    "memstore.flush_bytes=8388608",
    "memstore.total_bytes=33554432",
    "block_cache.bytes=16777216",
];

/// Acknowledged batches before the file system is filled, and reads while it is full.
const BATCHES_PER_CYCLE: usize = 300;
const READS_WHILE_FULL: u64 = 5_000;

/// The next event that `wanted` takes; longest time of any call so far goes into `longest`.
fn wait_for(
    events: &Receiver<Event>,
    longest: &mut Duration,
    shared: &Shared,
    wanted: impl Fn(&Event) -> bool,
) -> Event {
    loop {
        match events.recv_timeout(Duration::from_mins(1)) {
            Ok(event) => {
                *longest = event.took().max(*longest);
                if wanted(&event) {
                    return event;
                }
            }
            Err(error) => {
                let wrong = shared.wrong.lock().expect("no thread panics").clone();
                panic!("no such event within a minute: {error}; {wrong:?}");
            }
        }
    }
}

/// Waits for this many more reads; returns their rate per second.
fn read_rate(shared: &Shared, reads: u64) -> f64 {
    let (began, before) = (Instant::now(), shared.reads.load(Ordering::Acquire));
    loop {
        let done = shared.reads.load(Ordering::Acquire) - before;
        if done >= reads {
            return done as f64 / began.elapsed().as_secs_f64();
        }
        assert!(
            !shared.stopped() && began.elapsed() < Duration::from_mins(1),
            "reads do not go on: {:?}",
            shared.wrong.lock().expect("no thread panics")
        );
        std::thread::yield_now();
    }
}

/// Middle, 99th percentile and largest, in milliseconds.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!(
        "median {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

#[derive(Default)]
struct Measured {
    /// From the last free block to the first refusal.
    refused_after: Vec<Duration>,
    /// How long a refused call took.
    refusals: Vec<Duration>,
    /// From free space to the first acknowledged write.
    resumed_after: Vec<Duration>,
    reads_before: Vec<f64>,
    reads_while_full: Vec<f64>,
    longest_call: Duration,
}

impl Measured {
    fn print(self, cycles: usize) {
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        println!("{cycles} cycles");
        println!(
            "first refusal after the disk was full: {}",
            spread(self.refused_after)
        );
        println!("a refused call: {}", spread(self.refusals));
        println!(
            "first accepted write after space came back: {}",
            spread(self.resumed_after)
        );
        println!(
            "longest call of a writer: {:.0} ms",
            self.longest_call.as_secs_f64() * 1e3
        );
        println!(
            "reads per second: {:.0} beside writes, {:.0} while writes were refused",
            mean(&self.reads_before),
            mean(&self.reads_while_full)
        );
    }
}

fn cycle(
    disk: &mut SmallDisk,
    server: &Server,
    shared: &Shared,
    events: &Receiver<Event>,
    measured: &mut Measured,
) {
    for _ in 0..BATCHES_PER_CYCLE {
        wait_for(events, &mut measured.longest_call, shared, |event| {
            !event.is_refusal()
        });
    }
    measured.reads_before.push(read_rate(shared, READS_WHILE_FULL));

    // A flush or compaction that was under way may give space back when it ends, and then writes are rightly
    // accepted.
    while !fill_up(disk, server, shared, events, measured) {}

    let empty = Instant::now();
    disk.empty();
    let accepted = wait_for(events, &mut measured.longest_call, shared, |event| {
        !event.is_refusal() && event.began > empty
    });
    measured.resumed_after.push(accepted.ended - empty);
    assert_eq!(server.http_get("/readyz"), "ready\n");
}

/// Fills the file system and observes the server. False when it has made space for writes by
/// itself.
fn fill_up(
    disk: &mut SmallDisk,
    server: &Server,
    shared: &Shared,
    events: &Receiver<Event>,
    measured: &mut Measured,
) -> bool {
    let longest = &mut measured.longest_call;
    disk.fill();
    let full = Instant::now();
    let first = wait_for(events, longest, shared, |event| {
        event.is_refusal() && event.ended > full
    });
    measured.refused_after.push(first.ended - full);
    // The log may refuse before the disk was polled; from the next poll on all writes are refused.
    let suspended = |event: &Event| matches!(&event.outcome, Outcome::Refused(why) if why.contains("disk space: writes suspended: "));
    let refused = wait_for(events, longest, shared, suspended);
    measured.refusals.push(refused.took());
    let (metric, ready) = (
        server.metric("basalt_writes_suspended"),
        server.http_get("/readyz"),
    );
    let rate = read_rate(shared, READS_WHILE_FULL);
    for event in events.try_iter() {
        if event.is_refusal() {
            measured.refusals.push(event.took());
        } else if event.began > refused.ended {
            return false;
        }
    }
    measured.reads_while_full.push(rate);
    assert_eq!(metric, 1);
    assert!(
        ready.starts_with("ready for reads; disk space: writes suspended: "),
        "{ready}"
    );
    true
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let Some(mut disk) = SmallDisk::mount(256 * MIB) else {
        return;
    };
    let cycles =
        std::env::var("DISK_FULL_CYCLES").map_or(3, |text| text.parse().expect("a number of cycles"));
    let data = disk.root().join("data");
    let server = Server::start(&data, SETTINGS);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let shared = Arc::new(Shared::default());
    let (sender, events) = channel();
    let table_of = |server: &Server| {
        let address = server.thrift.to_string();
        async move {
            let client = Client::connect(&address).await.expect("a connection");
            (client.table("t").expect("a name"), client)
        }
    };
    let tasks: Vec<_> = runtime.block_on(async {
        let (table, client) = table_of(&server).await;
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new("f"));
        client.create_table(schema).await.expect("a table");
        let writers = (0..WRITERS)
            .map(|writer| tokio::spawn(write(table.clone(), writer, Arc::clone(&shared), sender.clone())));
        let readers =
            (0..READERS).map(|reader| tokio::spawn(read(table.clone(), reader, Arc::clone(&shared))));
        writers.chain(readers).collect()
    });
    let mut measured = Measured::default();
    for _ in 0..cycles {
        cycle(&mut disk, &server, &shared, &events, &mut measured);
    }

    // A kill while the disk is full.
    disk.fill();
    wait_for(&events, &mut measured.longest_call, &shared, Event::is_refusal);
    shared.stop.store(true, Ordering::Release);
    server.kill();
    runtime.block_on(async {
        for task in tasks {
            task.await.expect("no task panics");
        }
    });
    assert_eq!(*shared.wrong.lock().expect("no thread panics"), None);
    // The space that the log had preallocated is free for the start, and mostly enough.
    match Server::try_start(&data, SETTINGS) {
        Ok(server) => {
            runtime.block_on(async { check_rows(&table_of(&server).await.0, &shared).await });
            server.kill();
        }
        Err(refused) => assert!(refused.contains("space"), "{refused}"),
    }
    disk.empty();
    let server = Server::start(&data, SETTINGS);
    runtime.block_on(async {
        let (table, _client) = table_of(&server).await;
        check_rows(&table, &shared).await;
        table
            .put(Put::new("later").cell("f", "q", "v"))
            .await
            .expect("writes are accepted");
    });
    server.stop();
    let checked = check(&data);
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
    measured.print(cycles);
}

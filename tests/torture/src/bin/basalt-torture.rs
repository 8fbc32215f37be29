//! Kills the real server under load, again and again, and checks the surviving data: `cargo run
//! --release -p basalt-torture --bin basalt-torture -- --kills 1000 --seed 1`.
//!
//! With `--recovery-bytes` it measures instead how long the server takes to serve again with that much in its
//! log.
//!
//! Exit code 0: no violation. 1: a violation; the directory and the calls are kept, and named. 2: it could
//! not run.

use std::path::PathBuf;
use std::process::ExitCode;

use basalt_torture::{Figures, Options, Problem, recovery, run};
use clap::Parser;

/// Printed characters of a problem's explanation.
const EXPLANATION_CHARS: usize = 1000;

/// Kills a server under load and checks the surviving data.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often to kill.
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// For all random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The server's binary, instead of building this workspace's.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where to put the data; it is kept. By default a temporary directory, kept after a violation.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Longest time of load before a kill, in milliseconds.
    #[arg(long, default_value_t = 800)]
    life_ms: u64,
    /// Clients of linearizable rows.
    #[arg(long, default_value_t = 8)]
    row_clients: usize,
    /// Writers of AcidGuarantees; HBase has 50.
    #[arg(long, default_value_t = 6)]
    acid_writers: usize,
    /// Columns of each family of AcidGuarantees; HBase has 50.
    #[arg(long, default_value_t = 50)]
    acid_columns: usize,
    /// Nodes of one step of BigLinkedList; HBase has a million.
    #[arg(long, default_value_t = 100)]
    list_width: usize,
    /// Steps after which BigLinkedList closes its loops; HBase has 25.
    #[arg(long, default_value_t = 25)]
    list_wrap: usize,
    /// Nodes after which BigLinkedList begins anew.
    #[arg(long, default_value_t = 60_000)]
    list_nodes_max: usize,
    /// Lives after which everything is read.
    #[arg(long, default_value_t = 20)]
    full_look_every: u64,
    /// End with a kill, too, instead of SIGTERM: a program under ThreadSanitizer does not get
    /// signals while its main thread waits.
    #[arg(long)]
    kill_at_end: bool,
    /// Measures recovery from that many bytes of log instead.
    #[arg(long)]
    recovery_bytes: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let temporary = match tempfile::Builder::new().prefix("basalt-torture-").tempdir() {
        Ok(dir) => dir,
        Err(error) => {
            eprintln!("basalt-torture: {error}");
            return ExitCode::from(2);
        }
    };
    let dir = arguments
        .dir
        .clone()
        .unwrap_or_else(|| temporary.path().to_owned());
    if let Err(error) = std::fs::create_dir_all(&dir) {
        eprintln!("basalt-torture: {}: {error}", dir.display());
        return ExitCode::from(2);
    }
    let options = Options {
        kills: arguments.kills,
        seed: arguments.seed,
        binary: arguments.binary,
        life_ms: arguments.life_ms,
        row_clients: arguments.row_clients,
        acid_writers: arguments.acid_writers,
        acid_columns: arguments.acid_columns,
        list_width: arguments.list_width,
        list_wrap: arguments.list_wrap,
        list_nodes_max: arguments.list_nodes_max,
        full_look_every: arguments.full_look_every,
        kill_at_end: arguments.kill_at_end,
        progress: true,
        ..Options::new(&dir.join("data"))
    };
    let result = if let Some(bytes) = arguments.recovery_bytes {
        recovery::measure(&options, bytes, 5).map(|measured| {
            println!(
                "{} rows, {} bytes of log with what is preallocated; served after {:.0?}",
                measured.rows, measured.log_bytes, measured.took
            );
        })
    } else {
        let mut figures = Figures::default();
        let result = run(&options, &mut figures);
        println!("{figures}; {} violations", u8::from(result.is_err()));
        result
    };
    let Err(problem) = result else {
        return ExitCode::SUCCESS;
    };
    let kept = temporary.keep();
    explain(&problem, &dir, &kept);
    ExitCode::FAILURE
}

/// Explains a problem, and names the place of the rest.
fn explain(problem: &Problem, dir: &std::path::Path, kept: &std::path::Path) {
    // Values may be long; the file has all of it.
    let text: String = problem.to_string().chars().take(EXPLANATION_CHARS).collect();
    println!("VIOLATION in {text}");
    let calls = dir.join("violation.txt");
    match std::fs::write(&calls, format!("{problem}\n\n{}", problem.calls)) {
        Ok(()) => println!(
            "the calls are in {}, the data in {}",
            calls.display(),
            dir.join("data").display()
        ),
        Err(error) => println!("{}: {error}\n{}", calls.display(), problem.calls),
    }
    if kept != dir {
        // Nothing is in it.
        let _ = std::fs::remove_dir(kept);
    }
}

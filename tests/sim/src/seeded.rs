//! Known bugs, one at a time, each of which must be caught.
//!
//! A bug stands at its line in the engine or the server (`basalt_engine::seeded`); [`BUGS`]
//! describes it and lists the commands that catch it: arguments of `basalt-sim`, or of `cargo test`
//! for bugs that need threads, sockets or a damaged file of their own.
//!
//! 1. `basalt-sim` and the tests are built with the feature `seeded-bugs`, into a target folder of their own.
//! 2. Without a bug, no command may find anything.
//! 3. Each bug is switched on by its environment variable, and its commands run until one fails.
//!
//! A bug that no command finds is a violation, and a command that runs no test is one, too.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use basalt_engine::seeded::VARIABLE;

use super::bugs::{BUGS, Bug, Try};
use super::jobs::Report;

/// A name that no bug has, so that a run without a bug differs from one with a bug by nothing else. If the
/// variable alone made a command fail, each of its bugs would count as caught.
const NO_BUG: &str = "none";
/// The bugs, and the feature by which tests have programs built with them.
const FEATURES: &str = "basalt-engine/seeded-bugs,basalt-test-support/seeded-bugs";
/// Exit code of a program that does not understand its arguments.
const USAGE: i32 = 2;

/// The bugs to try, and how.
#[derive(Clone, Debug)]
pub struct Seeded {
    /// A part of the names of the bugs to try; empty for all.
    pub only: String,
    /// Threads of each try.
    pub jobs: usize,
}

impl fmt::Display for Try {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim(arguments) => f.write_str(arguments),
            Self::Test(arguments) => write!(f, "cargo test {arguments}"),
        }
    }
}

/// Tries the bugs; prints a line of a table for each.
pub fn try_all(seeded: &Seeded) -> Report {
    let began = Instant::now();
    let mut report = Report::default();
    if let Err(error) = catch_all(seeded, &mut report) {
        report.violations.push(error);
    }
    report.took = began.elapsed();
    report
}

fn catch_all(seeded: &Seeded, report: &mut Report) -> Result<(), String> {
    let rig = Rig::build(seeded.jobs)?;
    let bugs = || BUGS.iter().filter(|bug| bug.name.contains(&seeded.only));
    let commands: BTreeSet<&Try> = bugs().flat_map(|bug| bug.caught_by).collect();
    for command in commands {
        if rig.finds(command, NO_BUG)?.is_some() {
            return Err(format!("`{command}` finds something without any of the bugs"));
        }
    }
    println!("| bug | | caught by | seconds |\n| --- | --- | --- | --- |");
    for bug in bugs() {
        report.figures.add("bugs", 1);
        let Bug { name, what, .. } = bug;
        match rig.catch(bug) {
            Ok(Some((by, took))) => {
                println!("| {name} | {what} | `{by}` | {:.1} |", took.as_secs_f64());
                report.figures.add("bugs caught", 1);
            }
            Ok(None) => {
                println!("| {name} | {what} | **nothing** | |");
                report.violations.push(format!("{name} is not caught"));
            }
            Err(error) => {
                println!("| {name} | {what} | **not tried** | |");
                report.violations.push(format!("{name}: {error}"));
            }
        }
    }
    Ok(())
}

/// The command that caught a bug, and its time.
type Caught = Option<(&'static Try, Duration)>;

/// Programs that have all bugs, to be switched on.
struct Rig {
    target: PathBuf,
    jobs: usize,
}

impl Rig {
    fn build(jobs: usize) -> Result<Self, String> {
        let rig = Self {
            target: workspace().join("target").join("seeded"),
            jobs,
        };
        must(rig.cargo("build").args(["--quiet", "--bin", "basalt-sim"]))?;
        Ok(rig)
    }

    fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(workspace())
            .args([command, "--features", FEATURES, "--workspace"])
            .env("CARGO_TARGET_DIR", &self.target);
        cargo
    }

    fn catch(&self, bug: &'static Bug) -> Result<Caught, String> {
        for command in bug.caught_by {
            if let Some(took) = self.finds(command, bug.name)? {
                return Ok(Some((command, took)));
            }
        }
        Ok(None)
    }

    /// Runs a command with a bug, or without one for [`NO_BUG`]. Returns the time if it found a violation.
    fn finds(&self, command: &Try, bug: &str) -> Result<Option<Duration>, String> {
        let mut program = match command {
            Try::Sim(arguments) => {
                let mut program = Command::new(self.target.join("debug").join("basalt-sim"));
                program.args(["--violations", "1", "--jobs", &self.jobs.to_string()]);
                program.args(arguments.split(' '));
                program
            }
            Try::Test(arguments) => {
                let arguments = || arguments.split(' ');
                must(self.cargo("test").args(arguments()).arg("--no-run"))?;
                let mut program = self.cargo("test");
                program.args(arguments());
                program
            }
        };
        let began = Instant::now();
        let output = run(program.env(VARIABLE, bug))?;
        let took = began.elapsed();
        if !has_tried(command, &output) {
            return Err(format!(
                "`{command}`: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        Ok((!output.status.success()).then_some(took))
    }
}

/// Whether the command ran something. A name that no test has would find nothing, for ever.
fn has_tried(command: &Try, output: &Output) -> bool {
    match command {
        Try::Sim(_) => output.status.code() != Some(USAGE),
        Try::Test(_) => String::from_utf8_lossy(&output.stdout)
            .lines()
            .any(|line| line.starts_with("running ") && line != "running 0 tests"),
    }
}

fn run(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|error| format!("{command:?}: {error}"))
}

fn must(command: &mut Command) -> Result<Output, String> {
    let output = run(command)?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The folder of the workspace.
fn workspace() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .nth(2)
        .expect("this package is in `tests` of the workspace")
}

/// Names of the bugs that stand in the sources of the engine and the server.
pub fn in_sources() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["idl/types/src", "server/engine/src", "server/src"] {
        collect(&workspace().join(folder), &mut names);
    }
    names
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            collect(&path, names);
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source file");
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let mut parts = line.split("seeded::is_on(\"").skip(1);
            names.extend(
                parts
                    .by_ref()
                    .filter_map(|part| Some(part.split_once('"')?.0.to_owned())),
            );
        }
    }
}

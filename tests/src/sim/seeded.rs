//! Known bugs, put into a copy of the engine one at a time: each must be caught.
//!
//! A bug is a patch in `tests/seeded-bugs`. Before the patch itself stand lines of what it is, `bug: ...`, and of what must find it:
//! `try: ...` with the arguments of a `basalt-sim`, or `test: ...` with the arguments of a `cargo test`, for bugs that need threads,
//! sockets or a damaged file of their own. The workspace is copied to `target/seeded`, the patch applied, and what must find it built
//! there and run. A patch that cannot be applied or built is a failure of the whole, and so is a bug that is not caught. When all bugs
//! are tried, the commands are run without any of them first, and must find nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::jobs::Report;
use crate::workspace;

/// Exit code of a program that does not understand its arguments.
const USAGE: i32 = 2;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Seeded {
    /// Only bugs whose name has this in it.
    pub only: String,
    /// Threads of each try.
    pub jobs: usize,
}

/// A bug and what must find it.
#[derive(Clone, Debug)]
struct Bug {
    name: String,
    what: String,
    tries: Vec<Try>,
    patch: PathBuf,
}

/// What must find a bug; the arguments of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Try {
    /// `basalt-sim`.
    Sim(String),
    /// `cargo test`.
    Test(String),
}

impl Try {
    /// The line of a patch, if it is one.
    fn parse(line: &str) -> Option<Self> {
        let sim = line
            .strip_prefix("try: ")
            .map(|arguments| Self::Sim(arguments.to_owned()));
        sim.or_else(|| Some(Self::Test(line.strip_prefix("test: ")?.to_owned())))
    }
}

impl fmt::Display for Try {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim(arguments) => f.write_str(arguments),
            Self::Test(arguments) => write!(f, "cargo test {arguments}"),
        }
    }
}

/// Tries all bugs; prints a line of a table for each.
pub fn try_all(seeded: &Seeded) -> Report {
    let began = Instant::now();
    let mut report = Report::default();
    match catch_all(seeded, &mut report) {
        Ok(()) => {}
        Err(error) => report.violations.push(error),
    }
    report.took = began.elapsed();
    report
}

fn catch_all(seeded: &Seeded, report: &mut Report) -> Result<(), String> {
    let copy = workspace().join("target").join("seeded");
    copy_workspace(&copy.join("src"))?;
    let mut bugs = bugs()?;
    bugs.retain(|bug| bug.name.contains(&seeded.only));
    if seeded.only.is_empty() {
        let commands: BTreeSet<&Try> = bugs.iter().flat_map(|bug| &bug.tries).collect();
        for command in commands {
            if finds(&copy, command, seeded.jobs)?.is_some() {
                return Err(format!("`{command}` finds something without any of the bugs"));
            }
        }
    }
    println!("| bug | | caught by | seconds |\n| --- | --- | --- | --- |");
    for bug in bugs {
        let caught = try_one(&copy, &bug, seeded.jobs);
        report.figures.add("bugs", 1);
        match caught {
            Ok(Some((by, took))) => {
                println!(
                    "| {} | {} | `{by}` | {:.1} |",
                    bug.name,
                    bug.what,
                    took.as_secs_f64()
                );
                report.figures.add("bugs caught", 1);
            }
            Ok(None) => {
                println!("| {} | {} | **nothing** | |", bug.name, bug.what);
                report.violations.push(format!("{} is not caught", bug.name));
            }
            Err(error) => {
                println!("| {} | {} | **not tried** | |", bug.name, bug.what);
                report.violations.push(format!("{}: {error}", bug.name));
            }
        }
    }
    Ok(())
}

/// The number of bugs; an error that names the patches which cannot be applied to the workspace as it is.
pub fn check_patches() -> Result<usize, String> {
    let bugs = bugs()?;
    let mut broken = Vec::new();
    for bug in &bugs {
        let mut command = Command::new("git");
        command.current_dir(workspace()).args(["apply", "--check", "-C1"]);
        if let Err(error) = must(command.arg(&bug.patch)) {
            broken.push(format!("{}: {error}", bug.name));
        }
    }
    if broken.is_empty() {
        return Ok(bugs.len());
    }
    Err(broken.join("\n"))
}

/// The first of the commands that finds the bug, and the time that it took.
type Caught = Option<(Try, Duration)>;

fn try_one(copy: &Path, bug: &Bug, jobs: usize) -> Result<Caught, String> {
    let tree = copy.join("src");
    apply(&tree, &bug.patch, false)?;
    let caught = catch(copy, bug, jobs);
    apply(&tree, &bug.patch, true)?;
    caught
}

fn catch(copy: &Path, bug: &Bug, jobs: usize) -> Result<Caught, String> {
    for command in &bug.tries {
        if let Some(took) = finds(copy, command, jobs)? {
            return Ok(Some((command.clone(), took)));
        }
    }
    Ok(None)
}

/// Builds what a command runs, and runs it. The time that it took, not counting the build, if it found a violation.
fn finds(copy: &Path, command: &Try, jobs: usize) -> Result<Option<Duration>, String> {
    let mut program = match command {
        Try::Sim(arguments) => {
            let mut program = Command::new(build(copy)?);
            program.args(["--violations", "1", "--jobs", &jobs.to_string()]);
            program.args(arguments.split(' '));
            program
        }
        Try::Test(arguments) => {
            let test = || {
                let mut program = cargo(copy)?;
                program.arg("test").args(arguments.split(' '));
                Ok::<_, String>(program)
            };
            must(test()?.arg("--no-run"))?;
            test()?
        }
    };
    let began = Instant::now();
    let output = run(&mut program)?;
    let took = began.elapsed();
    let has_tried = match command {
        Try::Sim(_) => output.status.code() != Some(USAGE),
        // A name that no test has any more would find nothing, for ever.
        Try::Test(_) => String::from_utf8_lossy(&output.stdout)
            .lines()
            .any(|line| line.starts_with("running ") && line != "running 0 tests"),
    };
    if !has_tried {
        return Err(format!(
            "`{command}`: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok((!output.status.success()).then_some(took))
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

fn bugs() -> Result<Vec<Bug>, String> {
    let dir = workspace().join("tests").join("seeded-bugs");
    let text = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut bugs = Vec::new();
    for entry in fs::read_dir(&dir).map_err(text)? {
        let patch = entry.map_err(text)?.path();
        let Some(name) = patch
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".patch"))
        else {
            continue;
        };
        let contents = fs::read_to_string(&patch).map_err(text)?;
        let head = || contents.lines().take_while(|line| !line.starts_with("diff "));
        let bug = Bug {
            name: name.to_owned(),
            what: head().filter_map(|line| line.strip_prefix("bug: ")).collect(),
            tries: head().filter_map(Try::parse).collect(),
            patch: patch.clone(),
        };
        if bug.what.is_empty() || bug.tries.is_empty() {
            return Err(format!(
                "{} does not say what it is and what finds it",
                patch.display()
            ));
        }
        bugs.push(bug);
    }
    bugs.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(bugs)
}

/// Copies what git knows of, as it is now. Files that are the same already keep their times, so that little is built again.
fn copy_workspace(to: &Path) -> Result<(), String> {
    let listed = must(Command::new("git").current_dir(workspace()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let names = || {
        let names = listed.split('\0').filter(|name| !name.is_empty());
        names.filter(|name| workspace().join(name).is_file())
    };
    for name in names() {
        let (source, target) = (workspace().join(name), to.join(name));
        let text = |error: std::io::Error| format!("copying {name}: {error}");
        let contents = fs::read(&source).map_err(text)?;
        if fs::read(&target).is_ok_and(|there| there == contents) {
            continue;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(text)?;
        }
        fs::write(&target, contents).map_err(text)?;
    }
    let known: BTreeSet<PathBuf> = names().map(|name| to.join(name)).collect();
    remove_others(to, &known).map_err(|error| format!("{}: {error}", to.display()))
}

/// Removes what lies below a directory and is none of these files: what an earlier copy had.
fn remove_others(dir: &Path, known: &BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_others(&entry.path(), known)?;
        } else if !known.contains(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn apply(tree: &Path, patch: &Path, back: bool) -> Result<(), String> {
    let mut command = Command::new("git");
    // The copy lies below a repository and is none.
    command
        .current_dir(tree)
        .env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree))
        .args(["apply", "-C1"]);
    if back {
        command.arg("--reverse");
    }
    must(command.arg(patch)).map(drop)
}

/// Gives a new target folder what was built of other packages already, as second names of the same files.
fn take_over_dependencies(debug: &Path) -> Result<(), String> {
    let built = workspace().join("target").join("debug");
    for part in ["deps", "build", ".fingerprint"] {
        if built.join(part).is_dir() && !debug.join(part).exists() {
            fs::create_dir_all(debug).map_err(|error| format!("{}: {error}", debug.display()))?;
            must(Command::new("cp").arg("-al").arg(built.join(part)).arg(debug))?;
        }
    }
    Ok(())
}

/// A cargo that works in the copy.
fn cargo(copy: &Path) -> Result<Command, String> {
    let target = copy.join("target");
    take_over_dependencies(&target.join("debug"))?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(copy.join("src"))
        .env("CARGO_TARGET_DIR", &target);
    Ok(command)
}

fn build(copy: &Path) -> Result<PathBuf, String> {
    must(cargo(copy)?.args(["build", "--quiet", "--workspace", "--bin", "basalt-sim"]))?;
    Ok(copy.join("target").join("debug").join("basalt-sim"))
}

//! Runs every target in libFuzzer, one after the other, and prints a table of the runs.
//!
//! 1. The targets are built by a nightly compiler with the instrumentation that libFuzzer follows.
//!    Cargo calls this program instead of the compiler ([`compile`]), which knows what to instrument.
//! 2. Each runs for as many executions as asked for, from `tests/fuzz/corpus/<target>` and the inputs
//!    that earlier runs found. New inputs go to `tests/fuzz/libfuzzer/found/<target>`, its log and the
//!    input of a finding to `tests/fuzz/libfuzzer/artifacts/<target>`.
//! 3. The table is Markdown. A finding ends its target's run, and the program fails at the end.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use basalt_fuzz::{TARGETS, Target, corpus, directory};
use clap::Parser;

/// Packages whose coverage libFuzzer follows: ours, and the parsers that our own are built on. Everything
/// else would only be slower.
const FOLLOWED: [&str; 8] = [
    "basalt",
    "basalt-engine",
    "basalt-idl",
    "basalt-shell",
    "prost",
    "toml",
    "toml_parser",
    "winnow",
];

/// Makes the compiler count in every edge of the control flow, as `cargo fuzz` does. Comparisons are
/// not traced: that takes two thirds of the time.
const COUNTED: [&str; 4] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
];

/// Set for cargo: it calls this program with a compiler and its arguments.
const AS_COMPILER: &str = "BASALT_FUZZ_AS_COMPILER";

/// Run the fuzz targets in libFuzzer and print a table.
#[derive(Debug, Parser)]
struct CommandLine {
    /// Executions of each target.
    #[arg(long, default_value_t = 100_000)]
    executions: u64,
    /// Only these targets; may be given many times.
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Also with a sanitizer of the compiler, for example `address`; several times slower.
    #[arg(long, value_name = "NAME")]
    sanitizer: Option<String>,
}

/// Result of a run of a target.
struct Run {
    executions: u64,
    took: Duration,
    /// libFuzzer's `cov`: edges of the control flow that were reached.
    coverage: String,
    /// Inputs in the corpus at the end, each of which reached something of its own.
    inputs: String,
    /// Largest resident memory of the fuzzer's process, corpus included.
    peak_mib: String,
    findings: Vec<PathBuf>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if env::var_os(AS_COMPILER).is_some() {
        return compile();
    }
    let command_line = CommandLine::parse();
    let mut targets = Vec::new();
    for name in &command_line.targets {
        let found = TARGETS.iter().find(|target| target.name == name);
        targets.push(found.ok_or_else(|| format!("there is no target {name}"))?);
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    let binaries = build(command_line.sanitizer.as_deref())?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| target | executions | seconds | executions a second | coverage | corpus | peak MiB | findings |"
    )?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    let mut findings = Vec::new();
    for target in targets {
        let run = run(target, &binaries, command_line.executions)?;
        writeln!(
            out,
            "| `{}` | {} | {} | {:.0} | {} | {} | {} | {} |",
            target.name,
            run.executions,
            run.took.as_secs(),
            run.executions as f64 / run.took.as_secs_f64(),
            run.coverage,
            run.inputs,
            run.peak_mib,
            run.findings.len()
        )?;
        findings.extend(run.findings);
    }
    for path in &findings {
        writeln!(out, "finding: {}", path.display())?;
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The system that the compiler builds for. Naming it keeps the instrumentation out of build scripts.
fn host() -> Result<String, Box<dyn Error>> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc -vV names no host")?.to_owned())
}

/// Builds the targets; returns where the binaries are.
/// Runs the compiler with the arguments that cargo gives, and with [`COUNTED`] for the packages in
/// [`FOLLOWED`]. Their build scripts run during the build, without libFuzzer, so they are not
/// instrumented.
fn compile() -> Result<ExitCode, Box<dyn Error>> {
    let mut given = env::args_os().skip(1);
    let compiler = given.next().ok_or("no compiler is named")?;
    let arguments: Vec<OsString> = given.collect();
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let is_script = arguments
        .windows(2)
        .any(|pair| pair[0] == "--crate-name" && pair[1].to_string_lossy().starts_with("build_script"));
    let is_followed = FOLLOWED.contains(&package.as_str()) && !is_script;
    let counted = if is_followed { &COUNTED[..] } else { &[] };
    let status = Command::new(compiler).args(arguments).args(counted).status()?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn build(sanitizer: Option<&str>) -> Result<PathBuf, Box<dyn Error>> {
    let (libfuzzer, host) = (directory().join("libfuzzer"), host()?);
    let mut built = libfuzzer.join("target");
    let mut cargo = Command::new("cargo");
    cargo
        .args([
            "+nightly",
            "build",
            "--release",
            "--locked",
            "--bins",
            "--target",
            &host,
        ])
        .arg("--manifest-path")
        .arg(libfuzzer.join("Cargo.toml"))
        .env("RUSTC_WRAPPER", env::current_exe()?)
        .env(AS_COMPILER, "1");
    if let Some(name) = sanitizer {
        built = built.join(name);
        cargo.env("RUSTFLAGS", format!("-Zsanitizer={name}"));
    }
    let status = cargo
        .env("CARGO_TARGET_DIR", &built)
        // This program may itself be run by another cargo, whose compiler is not meant.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .status()?;
    if !status.success() {
        return Err(
            "the targets do not build; is a nightly compiler installed (rustup toolchain install nightly)?"
                .into(),
        );
    }
    Ok(built.join(host).join("release"))
}

fn run(target: &Target, binaries: &Path, executions: u64) -> Result<Run, Box<dyn Error>> {
    let libfuzzer = directory().join("libfuzzer");
    let (found, artifacts) = (libfuzzer.join("found"), libfuzzer.join("artifacts"));
    let (found, artifacts) = (found.join(target.name), artifacts.join(target.name));
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&artifacts)?;
    let log = artifacts.join("log");
    let began = Instant::now();
    let status = Command::new(binaries.join(target.name))
        .arg(format!("-runs={executions}"))
        .arg(format!("-max_len={}", target.longest_input))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([&found, &corpus::directory(target)])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log)?)
        .status()?;
    let took = began.elapsed();
    let text = fs::read_to_string(&log)?;
    let mut findings = Vec::new();
    if !status.success() {
        let written = text
            .lines()
            .filter_map(|line| line.split_once("Test unit written to "));
        findings.extend(written.map(|(_, path)| PathBuf::from(path)));
        if findings.is_empty() {
            findings.push(log);
        }
    }
    let executed = number_behind(&text, "stat::number_of_executed_units:").and_then(|text| text.parse().ok());
    Ok(Run {
        executions: executed.unwrap_or(0),
        took,
        coverage: number_behind(&text, "cov:").unwrap_or("?").to_owned(),
        inputs: number_behind(&text, "corp:").unwrap_or("?").to_owned(),
        peak_mib: number_behind(&text, "stat::peak_rss_mb:")
            .unwrap_or("?")
            .to_owned(),
        findings,
    })
}

/// The word behind the last `label` in libFuzzer's log, up to a slash.
fn number_behind<'a>(log: &'a str, label: &str) -> Option<&'a str> {
    let (_, behind) = log.rsplit_once(label)?;
    behind.split_whitespace().next()?.split('/').next()
}

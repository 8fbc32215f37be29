//! The differential tester: `cargo run -p basalt-conformance --bin basalt-differ -- --seeds 1..200 --steps
//! 500`.
//!
//! Starts a real HBase and Basalt, plays a script for each seed to both, shrinks differences and
//! prints them. `--keep DIR` keeps the scripts with HBase's answers. With files as arguments it
//! plays those instead of seeds.
//!
//! Exit code 0: no difference that is not explained. 1: differences. 2: it could not run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use basalt_conformance::generate::{self, Apis};
use basalt_conformance::run::{Pair, Run};
use basalt_conformance::script::{Script, Step};
use basalt_conformance::target::{BASALT_SETTINGS, Basalt, HBASE_SETTINGS, HBase};
use basalt_test_support::Oracle;
use basalt_test_support::Server;
use clap::Parser;

/// Compares Basalt with a real HBase.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seeds, as FIRST..LAST, both included.
    #[arg(long, default_value = "1..20", value_parser = seeds)]
    seeds: std::ops::RangeInclusive<u64>,
    /// Steps of each script.
    #[arg(long, default_value_t = 250)]
    steps: usize,
    /// `native`: most calls about data go over native RPC, the others over Thrift. `rest`: most calls go over
    /// REST, the others over Thrift.
    #[arg(long, value_enum, default_value_t = Api::Thrift)]
    api: Api,
    /// Scripts to play instead.
    scripts: Vec<PathBuf>,
    /// Where to write every script with HBase's answers.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Stop after this many differences.
    #[arg(long, default_value_t = 10)]
    differences_max: usize,
    /// Print differences as they are found, not shrunk.
    #[arg(long)]
    no_shrink: bool,
    /// Go on behind the first difference of a script, and print every one, not shrunk.
    #[arg(long)]
    go_on: bool,
    /// A running server to test, instead of starting one.
    #[arg(long, value_name = "HOST:PORT")]
    target: Option<std::net::SocketAddr>,
}

/// APIs of generated scripts, as arguments name them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Api {
    Thrift,
    Native,
    Rest,
}

impl From<Api> for Apis {
    fn from(api: Api) -> Self {
        match api {
            Api::Thrift => Apis::Thrift,
            Api::Native => Apis::Native,
            Api::Rest => Apis::Rest,
        }
    }
}

fn seeds(text: &str) -> Result<std::ops::RangeInclusive<u64>, String> {
    let parse = |number: &str| {
        number
            .parse::<u64>()
            .map_err(|error| format!("{number}: {error}"))
    };
    match text.split_once("..") {
        Some((first, last)) => Ok(parse(first)?..=parse(last)?),
        None => parse(text).map(|seed| seed..=seed),
    }
}

fn main() -> ExitCode {
    match compare(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("basalt-differ: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether there was no difference.
fn compare(arguments: &Arguments) -> Result<bool, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut oracle = Oracle::start_with(HBASE_SETTINGS).ok_or("there is no HBase to compare with")?;
    println!("HBase {}", oracle.version()?);
    let dir = tempfile::tempdir().map_err(text)?;
    let server = match arguments.target {
        Some(_) => None,
        None => Some(Server::start(&dir.path().join("data"), BASALT_SETTINGS)),
    };
    let target = arguments.target.or(server.as_ref().map(|server| server.thrift));
    let target = target.ok_or("no server")?;
    let hbase = HBase::connect(oracle).map_err(text)?;
    let basalt = Basalt::connect(target).map_err(text)?;
    let mut pair = Pair::new(hbase, basalt);
    pair.go_on = arguments.go_on;
    let (mut steps, mut scripts, mut differences) = (0, 0, 0);
    let mut explained = BTreeMap::<String, usize>::new();
    let mut methods = BTreeMap::<String, usize>::new();
    for (name, script) in sources(arguments)? {
        let run = pair.run(&script).map_err(|error| format!("{name}: {error}"))?;
        scripts += 1;
        steps += run.played;
        eprintln!("{name}: {} steps", run.played);
        for line in &run.script.lines {
            if let Step::Call(call) = &line.step {
                let method = format!("{}.{}", call.api.name(), call.method.name);
                *methods.entry(method).or_default() += 1;
            }
            if let Some(rule) = &line.differs {
                *explained.entry(rule.clone()).or_default() += 1;
            }
        }
        if let Some(dir) = &arguments.keep {
            std::fs::create_dir_all(dir).map_err(text)?;
            let file = dir.join(format!("{name}.script"));
            std::fs::write(file, run.script.to_string()).map_err(text)?;
        }
        if run.difference.is_some() {
            differences += 1;
            let shrunk = if arguments.no_shrink || arguments.go_on {
                None
            } else {
                println!(
                    "---- {name}: a difference in step {}; shrinking it",
                    run.script.lines.len()
                );
                pair.shrunk(&run, |hbase| hbase.oracle.drop_all())
            };
            if arguments.go_on {
                print_differences(&name, &run);
            } else {
                print_difference(&name, shrunk.as_ref().unwrap_or(&run));
            }
            if differences == arguments.differences_max {
                break;
            }
        }
        pair.hbase.oracle.drop_all()?;
    }
    println!("calls by method: {methods:?}");
    println!("explained differences: {explained:?}");
    println!("{scripts} scripts, {steps} steps, {differences} differences");
    Ok(differences == 0)
}

fn sources(arguments: &Arguments) -> Result<Vec<(String, Script)>, String> {
    if arguments.scripts.is_empty() {
        let name = match arguments.api {
            Api::Thrift => "seed",
            Api::Native => "native",
            Api::Rest => "rest",
        };
        let apis = arguments.api.into();
        let script = |seed| {
            let script = generate::script(seed, arguments.steps, apis);
            (format!("{name}-{seed}"), script)
        };
        return Ok(arguments.seeds.clone().map(script).collect());
    }
    let read = |path: &PathBuf| {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
        let script = Script::parse(&text).map_err(|error| told(&error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok((name.into_owned(), script))
    };
    arguments.scripts.iter().map(read).collect()
}

/// Every step that differs, with both answers.
fn print_differences(name: &str, run: &Run) {
    for difference in run.difference.iter().chain(&run.more) {
        let line = &run.script.lines[difference.step];
        println!("---- {name}, step {}", difference.step);
        if let Some(opening) = run.script.opening(difference.step) {
            println!("{}", opening.step);
        }
        println!("{}", line.step);
        if let Some(answer) = &line.answer {
            println!("HBase:  {answer}");
        }
        println!("Basalt: {}", difference.basalt);
    }
}

fn print_difference(name: &str, run: &Run) {
    let Some(difference) = &run.difference else { return };
    println!("---- {name}: HBase's answers, and Basalt's to the last step");
    let first = run.script.lines.len().saturating_sub(40);
    for line in &run.script.lines[first..] {
        println!("{}", line.step);
        if let Some(answer) = &line.answer {
            println!("{answer}");
        }
    }
    println!("Basalt: {}", difference.basalt);
}

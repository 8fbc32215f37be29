//! `report`: the whole schema lab as one report.
//!
//! Each section is a workload of this program, run by the command lines that the report shows, one after the
//! other. Its tables are named `report_...` and dropped afterwards. The overview in front lists every claim
//! with its verdict.

mod sections;

use std::ffi::OsString;
use std::time::Instant;

use basalt_load::data::DataOptions;
use basalt_load::error::{Error, Result};
use basalt_load::report::load::LoadReport;
use basalt_load::report::{self, Head, Section};
use basalt_load::tables::Tables;
use basalt_load::target::{Api, Target, TargetOptions};
use basalt_load::workload::{pe, ycsb};
use basalt_load::{note, say};
use clap::{Parser, ValueEnum as _};
use serde::Serialize;
use serde_json::Value;

use crate::claims::{self, Finding, LabReport, PartReport, Rule, Verdict, Way};
use crate::hotspot::design_report::{self, Important};
use crate::{Workload, family, hotspot, ids, orders, twibase};
use sections::{Run, SectionName, Size};

/// Run the whole schema lab and write one report.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    data: DataOptions,
    /// Sections to run, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "hotspot,ids,family,orders,twibase,pe,ycsb"
    )]
    sections: Vec<SectionName>,
    /// How much to run.
    #[arg(long, default_value = "small")]
    size: Size,
    /// Properties that the advice on row keys is judged by, as hotspot has it. Default: writes,range.
    #[arg(long, value_delimiter = ',')]
    important: Vec<Important>,
    /// Drop tables of the run's names (`report_...`) that exist already.
    #[arg(long)]
    replace_tables: bool,
    /// Where report.html, report.md and report.json go.
    #[arg(long, value_name = "DIR", default_value = "bench-report")]
    out: std::path::PathBuf,
}

/// The report: its data, which is also its JSON.
#[derive(Debug, Serialize)]
struct WholeReport {
    #[serde(flatten)]
    head: Head,
    /// The result in a sentence or two.
    result: String,
    seconds: f64,
    confirmed: usize,
    not_seen: usize,
    not_measured: usize,
    verdicts: Vec<VerdictReport>,
    /// The advice on row keys; empty without the section that gives it.
    advice: String,
    sections: Vec<SectionReport>,
}

/// A claim of any section.
#[derive(Debug, Serialize)]
struct VerdictReport {
    section: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

/// The report of a section.
#[derive(Debug, Serialize)]
struct SectionReport {
    name: &'static str,
    /// Repeats the section.
    command: String,
    seconds: f64,
    report: Value,
}

/// One section as it was measured.
enum Measured {
    Hotspot(Box<design_report::Report>),
    Load(LoadReport),
    Lab(LabReport),
}

impl Measured {
    fn section(&self, id: &str) -> Result<Section> {
        match self {
            Measured::Hotspot(report) => Section::new("hotspot", id, report),
            Measured::Load(report) => Section::new("load", id, report),
            Measured::Lab(report) => Section::new("lab", id, report),
        }
    }

    fn markdown(&self) -> String {
        match self {
            Measured::Hotspot(report) => design_report::markdown(report),
            Measured::Load(report) => report::load::markdown(report),
            Measured::Lab(report) => claims::markdown(report),
        }
    }

    fn json(&self) -> Result<Value> {
        let json = match self {
            Measured::Hotspot(report) => serde_json::to_value(report),
            Measured::Load(report) => serde_json::to_value(report),
            Measured::Lab(report) => serde_json::to_value(report),
        };
        json.map_err(|error| Error::Report(error.to_string()))
    }

    fn findings(&self) -> Vec<Finding> {
        match self {
            Measured::Hotspot(report) => key_findings(report),
            Measured::Load(_) => Vec::new(),
            Measured::Lab(report) => {
                let parts = report.parts.iter();
                parts.flat_map(|part| part.findings.iter().cloned()).collect()
            }
        }
    }

    /// Difference between read and written data.
    fn difference(&self) -> Option<String> {
        match self {
            Measured::Hotspot(report) => report
                .designs
                .iter()
                .find_map(design_report::DesignReport::difference),
            Measured::Load(_) => None,
            Measured::Lab(report) => report.difference(),
        }
    }
}

/// The command line of a section.
#[derive(Debug, Parser)]
#[command(name = "basalt-bench")]
struct CommandLine {
    #[command(subcommand)]
    workload: Workload,
}

/// Runs the sections and writes the report.
pub async fn run(arguments: Arguments) -> Result<()> {
    if arguments.target.security.asks_for_password() {
        return Err(Error::Usage(
            "report would ask for the password before each of its runs: give --password-file".to_owned(),
        ));
    }
    let target = Target::connect(&arguments.target, 1).await?;
    report::create_dir(&arguments.out)?;
    let head = Head::new("report", &target, &arguments.target);
    let started = Instant::now();
    let (mut measured, mut sections) = (Vec::new(), Vec::new());
    let runs: Vec<(SectionName, Run)> = runs(&arguments.sections, arguments.size).collect();
    for (place, (section, run)) in runs.iter().enumerate() {
        let words = command(*section, run, &arguments);
        let command = shell_line(&words);
        note!("[{}/{}] {command}", place + 1, runs.len());
        let section_started = Instant::now();
        let found = measure(&words).await?;
        let seconds = section_started.elapsed().as_secs_f64();
        note!("      {seconds:.1} s");
        drop_table(&target, run).await?;
        sections.push(SectionReport {
            name: run.name,
            command,
            seconds,
            report: found.json()?,
        });
        measured.push((run.name, found));
    }
    let verdicts = measured.iter().flat_map(|(section, found)| {
        let findings = found.findings().into_iter();
        findings.map(|finding| VerdictReport { section, finding })
    });
    let verdicts: Vec<VerdictReport> = verdicts.collect();
    let count = |verdict| {
        verdicts
            .iter()
            .filter(|found| found.finding.verdict == verdict)
            .count()
    };
    let (confirmed, not_seen) = (count(Verdict::Confirmed), count(Verdict::NotSeenHere));
    let of_keys = measured.iter().find_map(|(_, found)| match found {
        Measured::Hotspot(report) => Some(report.result.clone() + " "),
        _ => None,
    });
    let advice = measured.iter().find_map(|(_, found)| match found {
        Measured::Hotspot(report) => Some(report.advice.clone()),
        _ => None,
    });
    let whole = WholeReport {
        head,
        advice: advice.unwrap_or_default(),
        result: format!(
            "{}{confirmed} of {} claims that could be measured are confirmed.",
            of_keys.unwrap_or_default(),
            confirmed + not_seen
        ),
        seconds: started.elapsed().as_secs_f64(),
        confirmed,
        not_seen,
        not_measured: count(Verdict::NotMeasured),
        verdicts,
        sections,
    };
    write(&arguments, &whole, &measured)
}

/// The runs of these sections, in order.
fn runs(sections: &[SectionName], size: Size) -> impl Iterator<Item = (SectionName, Run)> {
    let runs_of = move |section: &SectionName| {
        let section = *section;
        section.runs(size).map(move |run| (section, run))
    };
    sections.iter().flat_map(runs_of)
}

/// The words of a run's command line.
fn command(section: SectionName, run: &Run, arguments: &Arguments) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["basalt-bench".into(), section.name().into()];
    words.extend(run.options.split_whitespace().map(OsString::from));
    words.extend(["--target".into(), OsString::from(&arguments.target.target)]);
    if arguments.target.api != Api::Thrift2 {
        words.extend(["--api", arguments.target.api.option()].map(OsString::from));
    }
    words.extend(arguments.target.security.words());
    if let Some(path) = &arguments.data.input {
        words.extend(["--input".into(), path.into()]);
    }
    if section == SectionName::Hotspot && !arguments.important.is_empty() {
        let names = arguments
            .important
            .iter()
            .filter_map(Important::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
        words.extend(["--important".into(), OsString::from(names.join(","))]);
    }
    if arguments.replace_tables {
        words.push("--replace-tables".into());
    }
    words
}

/// The command line as a shell takes it: quoted where a word has more than letters, digits and plain signs.
fn shell_line(words: &[OsString]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=.,:/+@".contains(c);
    let words = words.iter().map(|word| {
        let word = word.to_string_lossy();
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Carries out a run by its command line.
async fn measure(words: &[OsString]) -> Result<Measured> {
    let line = CommandLine::try_parse_from(words);
    let line = line.map_err(|error| Error::Usage(format!("{}: {error}", shell_line(words))))?;
    Ok(match line.workload {
        Workload::Hotspot(arguments) => Measured::Hotspot(Box::new(hotspot::measure(*arguments).await?)),
        Workload::Ids(arguments) => Measured::Load(ids::measure(*arguments).await?),
        Workload::Pe(arguments) => Measured::Load(pe::measure(*arguments).await?),
        Workload::Ycsb(arguments) => Measured::Load(ycsb::measure(*arguments).await?),
        Workload::Family(arguments) => Measured::Lab(family::measure(*arguments).await?),
        Workload::Orders(arguments) => Measured::Lab(orders::measure(*arguments).await?),
        Workload::Twibase(arguments) => Measured::Lab(twibase::measure(*arguments).await?),
    })
}

/// Drops the tables that a run keeps.
async fn drop_table(target: &Target, run: &Run) -> Result<()> {
    let tables = Tables {
        target,
        replace: false,
    };
    match run.table() {
        Some(table) if tables.exists(table).await? => tables.drop(table).await,
        _ => Ok(()),
    }
}

/// Findings about the row-key designs, by rules like those of the lab's claims.
fn key_findings(report: &design_report::Report) -> Vec<Finding> {
    let mut part = PartReport::new("keys", "", "");
    for design in &report.designs {
        let mut way = Way::new(design.name);
        way.figure("region_peak_to_mean", design.spread.region_peak_to_mean);
        way.figure("range_scans", design.range_read.range_scans as f64);
        way.figure(
            "bytes_read_per_byte_returned",
            design.range_read.range_bytes_read_per_byte_returned,
        );
        part.add(way);
    }
    let cases = [
        (
            "Row keys in the order of time make one hot region, a salt spreads them.",
            "region_peak_to_mean",
            ["sequential", "salted"],
            Rule::AtLeast(3.0),
        ),
        (
            "Reversed timestamps move the hot region and do not cure it.",
            "region_peak_to_mean",
            ["reversed-timestamp", "salted"],
            Rule::AtLeast(3.0),
        ),
        (
            "The salt is paid for with a scan for each bucket.",
            "range_scans",
            ["salted", "sequential"],
            Rule::AtLeast(8.0),
        ),
        (
            "A hash in front takes more scans than a salt.",
            "range_scans",
            ["hashed", "salted"],
            Rule::AtLeast(2.0),
        ),
        (
            "Without any order, a query for a time reads what it does not want.",
            "bytes_read_per_byte_returned",
            ["random", "sequential"],
            Rule::AtLeast(1.05),
        ),
    ];
    for (claim, figure, ways, rule) in cases {
        part.judge(claim, figure, ways, rule);
    }
    part.findings
}

fn write(arguments: &Arguments, whole: &WholeReport, measured: &[(&str, Measured)]) -> Result<()> {
    let title = format!("The schema lab on {}", whole.head.server);
    let sections: Result<Vec<Section>> = measured.iter().map(|(name, found)| found.section(name)).collect();
    let html = report::page(&title, Some(whole), &sections?)?;
    let markdown = markdown(&title, whole, measured);
    let files = report::write_all(&arguments.out, whole, &markdown, &html)?;
    say!(
        "{} claims confirmed, {} not seen here, {} not measured, in {:.0} seconds\n{files}",
        whole.confirmed,
        whole.not_seen,
        whole.not_measured,
        whole.seconds
    );
    if !whole.advice.is_empty() {
        say!("{}", whole.advice);
    }
    let different = measured
        .iter()
        .find_map(|(name, found)| Some(format!("{name}: {}", found.difference()?)));
    match different {
        Some(difference) => Err(Error::Different(difference)),
        None => Ok(()),
    }
}

fn markdown(title: &str, whole: &WholeReport, measured: &[(&str, Measured)]) -> String {
    let commands = whole.sections.iter().map(|section| {
        [
            section.name.to_owned(),
            format!("`{}`", section.command),
            format!("{:.1}", section.seconds),
        ]
    });
    let verdicts = whole.verdicts.iter().map(|found| {
        let finding = &found.finding;
        [
            finding.verdict.text().to_owned(),
            finding.claim.clone(),
            finding.measurement.clone(),
            found.section.to_owned(),
        ]
    });
    let mut out = format!(
        "# {title}\n\n**{}**\n\n{} at {}, measured by {}, {:.0} seconds in all.\n\n{}\n## Claims and verdicts\n\n{}",
        whole.result,
        whole.head.server,
        whole.head.target,
        whole.head.tool,
        whole.seconds,
        report::markdown_words(&["section", "command", "seconds"], commands),
        report::markdown_words(&["verdict", "claim", "measurement", "section"], verdicts),
    );
    if !whole.advice.is_empty() {
        out.extend(["\n## Advice\n\n", &whole.advice, "\n"]);
    }
    for (_, found) in measured {
        out.push('\n');
        // One level lower than where they stand alone.
        for line in found.markdown().lines() {
            if line.starts_with('#') {
                out.push('#');
            }
            out += line;
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use basalt_client::security::SecurityArguments;

    fn arguments(size: Size, api: Api, input: Option<&str>) -> Arguments {
        Arguments {
            target: TargetOptions {
                target: "127.0.0.1:1".to_owned(),
                api,
                security: SecurityArguments::default(),
            },
            data: DataOptions {
                input: input.map(Into::into),
            },
            sections: SectionName::value_variants().to_vec(),
            size,
            important: Vec::new(),
            replace_tables: true,
            out: "out".into(),
        }
    }

    /// A command that this program does not understand would be found after minutes only.
    #[test]
    fn every_section_is_a_command_of_this_program() {
        for api in [Api::Thrift1, Api::Thrift2] {
            for (size, input) in Size::value_variants()
                .iter()
                .flat_map(|size| [(*size, None), (*size, Some("my flights.parquet"))])
            {
                let arguments = arguments(size, api, input);
                for (section, run) in runs(&arguments.sections, size) {
                    let words = command(section, &run, &arguments);
                    let parsed = CommandLine::try_parse_from(&words);
                    let line = shell_line(&words);
                    assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                    assert!(line.contains("report_"), "tables of its own: {line}");
                    assert_eq!(line.contains("'my flights.parquet'"), input.is_some(), "{line}");
                    assert_eq!(line.contains(" --api thrift1"), api == Api::Thrift1, "{line}");
                }
            }
        }
    }

    /// The option reaches the section that has it, and no other.
    #[test]
    fn what_is_important_is_handed_on() {
        let mut arguments = arguments(Size::Tiny, Api::Thrift2, None);
        arguments.important = vec![Important::Range, Important::Rows];
        for (section, run) in runs(&arguments.sections, arguments.size) {
            let words = command(section, &run, &arguments);
            assert!(
                CommandLine::try_parse_from(&words).is_ok(),
                "{}",
                shell_line(&words)
            );
            let has_option = shell_line(&words).contains(" --important range,rows");
            assert_eq!(has_option, section == SectionName::Hotspot, "{}", run.name);
        }
        arguments.important.clear();
        let (section, run) = runs(&arguments.sections, arguments.size).next().unwrap();
        let line = shell_line(&command(section, &run, &arguments));
        assert!(!line.contains("--important"), "{line}");
    }

    /// Without `--sections` none is left out.
    #[test]
    fn all_sections_run_by_default() {
        #[derive(Parser)]
        struct Report {
            #[command(flatten)]
            arguments: Arguments,
        }
        let Report { arguments } = Report::try_parse_from(["report"]).unwrap();
        assert_eq!(arguments.sections, SectionName::value_variants());
    }

    /// Names are anchors of the page. The workloads that keep their table are those that say so.
    #[test]
    fn runs_have_names_and_tables_of_their_own() {
        for size in Size::value_variants() {
            let runs: Vec<_> = runs(SectionName::value_variants(), *size).collect();
            let unique = |names: Vec<&str>| names.len() == BTreeSet::from_iter(names).len();
            assert!(unique(runs.iter().map(|(_, run)| run.name).collect()));
            assert!(unique(runs.iter().filter_map(|(_, run)| run.table()).collect()));
            for (section, run) in runs {
                assert!(run.name.starts_with(section.name()), "{}", run.name);
                let keeps = matches!(section, SectionName::Pe | SectionName::Ycsb);
                assert_eq!(run.table().is_some(), keeps, "{}", run.name);
            }
        }
    }

    #[test]
    fn command_lines_are_quoted_for_a_shell() {
        let line = |words: &[&str]| shell_line(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(
            line(&["a", "--b=c/d.e", "127.0.0.1:1"]),
            "a --b=c/d.e 127.0.0.1:1"
        );
        assert_eq!(line(&["", "a b", "it's", "$x"]), r"'' 'a b' 'it'\''s' '$x'");
    }
}

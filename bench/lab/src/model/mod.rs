//! `model`: a schema of one's own, measured before it is built.
//!
//! A file says which tables there are, what their keys are made of in each of a few layouts, how rows are
//! written and read, and how often. For each layout:
//!
//! 1. Tables are created, split where the loaded rows are, and loaded (`data`, `split`).
//! 2. Memstores are flushed.
//! 3. Reads run one after the other at the model's rates, by the scans that the layout needs (`plan`); first
//!    answers are compared with the model (`measure`). Then writes run.
//! 4. Tables are dropped, unless they are to be kept.
//!
//! The report (`report`, `pages`) has a verdict for each pattern in each layout, and `advice`; `code` writes
//! what was measured as programs. `text` and `check` read the model (`file`), and say which line is wrong.

mod advice;
mod check;
mod code;
mod data;
mod file;
mod measure;
mod pages;
mod plan;
mod report;
mod split;
#[cfg(test)]
mod tests;
mod text;
mod time;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use basalt_client::{FamilySchema, TableSchema};
use basalt_load::error::{During, Error, Result};
use basalt_load::report::{Head, create_dir, write_all};
use basalt_load::session::Session;
use basalt_load::tables::{RegionPlace, Tables};
use basalt_load::target::{Target, TargetOptions, TargetSource};
use basalt_load::{note, say};
use basalt_types::schema::KEY_LAYOUT;
use basalt_types::schema::rules_of_thumb::{self, Broken, Contents};
use basalt_types::schema::{FamilyDescriptor, TableDescriptor, TableName};
use bytes::Bytes;

use self::code::{Layout, Made};
use self::data::Data;
use self::file::{Model, Pattern, PatternKind, Table};
use self::measure::{Figures, Pacing, Place, SCANS_AT_ONCE};
use self::plan::Plan;
use self::report::{
    BrokenReport, Judged, LayoutReport, LoadedReport, PatternReport, Report, ResultReport, TableReport,
};
use self::split::Busiest;
use crate::region_load::RegionMap;

/// Most scans of a question that are run.
const SCANS_MAX: u64 = 4_096;
/// Bytes of a cell besides key, family, qualifier and value: lengths, timestamp and type.
const CELL_BYTES: f64 = 20.0;

/// Measure a schema of your own: a file with tables, layouts of their keys, and access patterns with their
/// rates. Three examples are in bench/models; docs/schema-lab.md describes the file.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// The model, in TOML.
    file: PathBuf,
    // In front of the target, which takes its value out of what was parsed.
    #[command(flatten)]
    target_source: TargetSource,
    #[command(flatten)]
    target: TargetOptions,
    /// Start a server of its own that presents itself as the model's cluster (rehearsal.servers), and measure
    /// that: the program `basalt` that BASALT_PROGRAM names, that lies beside this one, or that is in PATH.
    #[arg(long)]
    rehearse: bool,
    /// Multiplies the model's rates and rows a day.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = positive)]
    scale: f64,
    /// Rows to load into each table, in place of the model's numbers.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=file::ROWS_MAX))]
    rows: Option<u64>,
    /// Seconds for each pattern in each layout.
    #[arg(long, default_value_t = 10, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Patterns that matter most: the advice is judged by them. May be given several times.
    #[arg(long, value_name = "PATTERN")]
    important: Vec<String>,
    /// Layouts to measure, in this order. Default: all of the model.
    #[arg(long, value_delimiter = ',', value_name = "LAYOUT")]
    layouts: Vec<String>,
    /// Tasks at once, each with connections of its own.
    #[arg(long, visible_alias = "connections", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// Seed of ids, values and questions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tables are named so, with table and layout behind.
    #[arg(long, default_value = "model_")]
    table_prefix: String,
    /// Leave the tables in place, for the code.
    #[arg(long)]
    keep_tables: bool,
    /// Drop tables of these names that exist already.
    #[arg(long)]
    replace_tables: bool,
    /// Where report.html, report.md, report.json and the code go.
    #[arg(long, value_name = "DIR", default_value = "bench-report")]
    out: PathBuf,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("a number above 0, up to 1000000".to_owned()),
    }
}

/// Runs the model, and writes and prints its report.
pub async fn run(arguments: Arguments) -> Result<()> {
    let model = check::read(&arguments.file)?;
    let model = chosen(model, &arguments)?;
    if arguments.rehearse {
        let address = &arguments.target.target;
        if let Some(ignored) = arguments.target_source.in_rehearsal(address)? {
            note!("{ignored}");
        }
        return Err(rehearse(&model));
    }
    create_dir(&arguments.out)?;
    let run = Run::prepare(arguments, model).await?;
    let report = run.measure().await?;
    let (markdown, html) = (pages::markdown(&report), pages::html(&report)?);
    let files = write_all(&run.arguments.out, &report, &markdown, &html)?;
    say!("{}\n{files}", pages::terminal(&report));
    let collides = |layout: &str| {
        let found = report.layouts.iter().find(|found| found.name == layout);
        found.is_some_and(|found| found.tables.iter().any(|table| table.collisions > 0))
    };
    let results = report.patterns.iter().flat_map(|pattern| {
        let results = pattern.results.iter();
        results.map(|result| (&pattern.name, result))
    });
    for (pattern, result) in results {
        // Rows that overwrite each other cannot be found, and the report says so.
        if let Some(difference) = result.difference.as_ref().filter(|_| !collides(&result.layout)) {
            let layout = &result.layout;
            return Err(Error::Different(format!("{pattern}, {layout}: {difference}")));
        }
    }
    Ok(())
}

/// The model with the layouts that were chosen. An error for names that it does not have.
fn chosen(mut model: Model, arguments: &Arguments) -> Result<Model> {
    let known = |names: Vec<&str>| names.join(", ");
    for name in &arguments.important {
        if model.patterns.iter().all(|pattern| pattern.name != *name) {
            return Err(Error::Usage(format!(
                "--important {name:?}: the model has no such pattern; it has {}",
                known(
                    model
                        .patterns
                        .iter()
                        .map(|pattern| pattern.name.as_str())
                        .collect()
                )
            )));
        }
    }
    if arguments.layouts.is_empty() {
        return Ok(model);
    }
    let mut places = Vec::new();
    for name in &arguments.layouts {
        let place = model.layouts.iter().position(|layout| layout == name);
        places.push(place.ok_or_else(|| {
            Error::Usage(format!(
                "--layouts {name}: the model has no such layout; it has {}",
                known(model.layouts.iter().map(String::as_str).collect())
            ))
        })?);
    }
    model.layouts.clone_from(&arguments.layouts);
    for table in &mut model.tables {
        table.keys = places.iter().map(|place| table.keys[*place].clone()).collect();
    }
    Ok(model)
}

/// The settings of the model's cluster.
fn rehearsal_settings(model: &Model) -> [String; 4] {
    let rehearsal = model.rehearsal;
    [
        "--set".to_owned(),
        format!("rehearsal.servers={}", rehearsal.servers),
        "--set".to_owned(),
        format!("rehearsal.requests_per_second={}", rehearsal.requests_per_second),
    ]
}

/// Variables of TLS and the login, which a server of its own has not.
const LOGIN_VARIABLES: [&str; 6] = [
    "BASALT_CLIENT_CA",
    "BASALT_CLIENT_CERTIFICATE",
    "BASALT_CLIENT_SERVER_NAME",
    "BASALT_PASSWORD_FILE",
    "BASALT_TOKEN_FILE",
    "BASALT_USER",
];

/// Replaces this process by a server that runs the same command against itself. Returns only if that fails.
fn rehearse(model: &Model) -> Error {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return Error::Usage(format!("--rehearse: this program cannot be found: {error}")),
    };
    let beside = own.with_file_name("basalt");
    let program = match std::env::var_os("BASALT_PROGRAM") {
        Some(program) if !program.is_empty() => PathBuf::from(program),
        _ if beside.is_file() => beside,
        _ => PathBuf::from("basalt"),
    };
    let arguments = std::env::args_os()
        .skip(1)
        .filter(|argument| argument != "--rehearse");
    let mut command = Command::new(&program);
    for variable in LOGIN_VARIABLES {
        command.env_remove(variable);
    }
    let error = command
        .arg("--ephemeral")
        .args(rehearsal_settings(model))
        .arg("--")
        .arg(own)
        .args(arguments)
        .exec();
    Error::Usage(format!(
        "--rehearse: {} cannot be started: {error}; set BASALT_PROGRAM to the program basalt",
        program.display()
    ))
}

/// A run of a model.
struct Run {
    arguments: Arguments,
    model: Arc<Model>,
    target: Target,
}

/// A layout with its loaded tables.
struct Loaded {
    places: Vec<Place>,
    made: Vec<Made>,
    /// By table: the server of each region, as a number.
    servers: Vec<Vec<usize>>,
    report: LayoutReport,
}

impl Run {
    async fn prepare(arguments: Arguments, model: Model) -> Result<Run> {
        let tasks = usize::try_from(arguments.threads).unwrap_or(1);
        Ok(Run {
            target: Target::connect(&arguments.target, tasks * SCANS_AT_ONCE + 1).await?,
            model: Arc::new(model),
            arguments,
        })
    }

    async fn measure(&self) -> Result<Report> {
        let mut report = self.report().await?;
        for (index, name) in self.model.layouts.iter().enumerate() {
            note!("layout {name}: loading");
            let loaded = self.load(index).await?;
            let order = [false, true].into_iter().flat_map(|writes| {
                let patterns = self.model.patterns.iter().enumerate();
                patterns
                    .filter(move |(_, pattern)| matches!(pattern.kind, PatternKind::Write { .. }) == writes)
            });
            for (place, pattern) in order {
                note!("layout {name}: {}", pattern.name);
                let result = self.result(&loaded, pattern).await?;
                report.patterns[place].results.push(result);
                let read = &loaded.places[pattern.table];
                if index == 0 && !matches!(pattern.kind, PatternKind::Write { .. }) {
                    let example = read.expected(pattern).remove(&0);
                    report.patterns[place].example = example.unwrap_or_default();
                }
            }
            report.layouts.push(self.finish(index, loaded).await?);
        }
        advice::conclude(&mut report);
        Ok(report)
    }

    /// The report before anything was measured.
    async fn report(&self) -> Result<Report> {
        let (model, arguments) = (&self.model, &self.arguments);
        let patterns = model.patterns.iter().map(|pattern| PatternReport {
            name: pattern.name.clone(),
            table: model.tables[pattern.table].name.clone(),
            kind: match pattern.kind {
                PatternKind::Write { .. } => "write",
                PatternKind::Get => "get",
                PatternKind::Read { .. } => "read",
            },
            rate: pattern.rate.map(|rate| rate * arguments.scale),
            p99_ms: pattern.p99_ms,
            is_important: arguments.important.is_empty() || arguments.important.contains(&pattern.name),
            example: Vec::new(),
            results: Vec::new(),
        });
        let mut tables = Vec::new();
        for index in 0..model.tables.len() {
            tables.push(self.table_report(index)?);
        }
        Ok(Report {
            head: Head::new("model", &self.target, &arguments.target),
            title: model.title.clone(),
            file: arguments.file.display().to_string(),
            result: String::new(),
            advice: String::new(),
            rehearse: self.proposal().await?,
            settings: vec![
                ("api", arguments.target.api.name().to_owned()),
                ("scale", arguments.scale.to_string()),
                ("seconds for each pattern", arguments.seconds.to_string()),
                ("threads", arguments.threads.to_string()),
                ("seed", arguments.seed.to_string()),
            ],
            layouts: Vec::new(),
            tables,
            patterns: patterns.collect(),
        })
    }

    /// The proposal of a rehearsal, for a process that has no servers to spread over; empty in a rehearsal
    /// and on a cluster.
    async fn proposal(&self) -> Result<String> {
        if !self.target.is_basalt {
            return Ok(String::new());
        }
        let status = self
            .target
            .admin
            .status()
            .await
            .during(|| "status of the server".to_owned())?;
        if status.rehearsal_servers.is_some() {
            return Ok(String::new());
        }
        Ok(format!(
            "One process has no servers to spread over: a hot region shares log and disk with all others here, so rates \
             do not show what a layout gains on a cluster. Rehearse {} servers: basalt-bench model {} --rehearse",
            self.model.rehearsal.servers,
            self.arguments.file.display()
        ))
    }

    fn rows(&self, table: &Table) -> u64 {
        self.arguments.rows.unwrap_or(table.rows)
    }

    /// Size of a table, and HBase's rules of thumb, by layout.
    fn table_report(&self, index: usize) -> Result<TableReport> {
        let (model, table) = (&self.model, &self.model.tables[index]);
        let rows_per_day = table.rows_per_day * self.arguments.scale;
        let mut broken: Vec<BrokenReport> = Vec::new();
        let mut bytes_kept = 0.0f64;
        for (key, layout) in table.keys.iter().zip(&model.layouts) {
            let bytes =
                row_bytes(table, key.layout.bytes().unwrap_or(32)) * rows_per_day * table.keep_days as f64;
            bytes_kept = bytes_kept.max(bytes);
            for found in broken_rules(table, &key.text, bytes)? {
                let found = BrokenReport {
                    layout: layout.clone(),
                    what: found.what,
                    rule: found.rule.to_owned(),
                };
                broken.push(found);
            }
        }
        Ok(TableReport {
            name: table.name.clone(),
            rows: self.rows(table),
            rows_per_day,
            bytes_kept,
            keep_days: table.keep_days,
            regions: table.regions,
            broken: once_if_in_all(&broken, model.layouts.len()),
        })
    }

    fn tables(&self) -> Tables<'_> {
        Tables {
            target: &self.target,
            replace: self.arguments.replace_tables,
        }
    }

    /// Creates and loads the tables of a layout.
    async fn load(&self, layout: usize) -> Result<Loaded> {
        let model = &self.model;
        let name = &model.layouts[layout];
        let mut loaded = Loaded {
            places: Vec::new(),
            made: Vec::new(),
            servers: Vec::new(),
            report: LayoutReport {
                name: name.clone(),
                fit: 0,
                code: Vec::new(),
                tables: Vec::new(),
            },
        };
        for table in &model.tables {
            let full_name = format!("{}{}_{name}", self.arguments.table_prefix, table.name);
            let data = Arc::new(Data::new(table, self.arguments.scale, self.arguments.seed));
            let (key, rows) = (&table.keys[layout], self.rows(table));
            let splits = split::points(&data, key, table, rows);
            let schema = schema(&full_name, table, &key.text)?;
            self.tables()
                .create_schema(&full_name, schema, splits.clone())
                .await?;
            let regions = self.tables().regions(&full_name).await?;
            let starts = regions.iter().map(|region| region.start_key.to_vec());
            let place = Place {
                session: Session::on(&self.target, &full_name)?,
                data: Arc::clone(&data),
                table: Arc::new(table.clone()),
                layout,
                rows,
                regions: Arc::new(RegionMap::new(starts.collect())),
            };
            let filled = place.load(self.arguments.threads).await?;
            self.tables().flush(&full_name).await?;
            let (collisions, keys_looked_at) = place.collisions();
            loaded.report.tables.push(LoadedReport {
                table: table.name.clone(),
                full_name: full_name.clone(),
                key: key.text.clone(),
                key_bytes: key.layout.bytes(),
                regions: regions.len(),
                rows_per_second: filled.measured.per_second(filled.measured.rows()),
                collisions,
                keys_looked_at,
            });
            loaded.servers.push(parts(&regions));
            loaded.places.push(place);
            loaded.made.push(Made {
                full_name,
                splits,
                data,
                rows,
            });
        }
        Ok(loaded)
    }

    /// Runs a pattern in a layout.
    async fn result(&self, loaded: &Loaded, pattern: &Pattern) -> Result<ResultReport> {
        let arguments = &self.arguments;
        let place = &loaded.places[pattern.table];
        let (key, servers) = (place.key(), &loaded.servers[pattern.table]);
        let plan = Plan::of(key, pattern, place.data.ms_per_row());
        let is_write = matches!(pattern.kind, PatternKind::Write { .. });
        let span_ms = match pattern.kind {
            PatternKind::Read { span_ms, .. } => span_ms.unwrap_or(1),
            _ => 1,
        };
        let scans = if matches!(pattern.kind, PatternKind::Read { .. }) {
            plan.scans(key, span_ms)
        } else {
            0
        };
        let figures: Option<Figures> = if scans > SCANS_MAX {
            None
        } else {
            let pacing = Pacing {
                threads: arguments.threads,
                duration: Duration::from_secs(arguments.seconds),
                scale: arguments.scale,
            };
            Some(place.run(pattern, pacing).await?)
        };
        let is_cluster = servers.iter().any(|server| *server > 0);
        let by_region: Vec<usize> = (0..servers.len()).collect();
        let parts = if is_cluster { servers } else { &by_region };
        let busiest: Option<Busiest> =
            is_write.then(|| split::busiest(&place.data, key, place.rows, &place.regions, parts));
        let table = &loaded.report.tables[pattern.table];
        let judged = Judged {
            pattern,
            rate: pattern.rate.map(|rate| rate * arguments.scale),
            seconds: arguments.seconds,
            layout: &loaded.report.name,
            plan: match pattern.kind {
                PatternKind::Write { .. } => String::new(),
                PatternKind::Get => "a get by the whole key".to_owned(),
                PatternKind::Read { .. } => plan.words(key, span_ms),
            },
            busiest,
            is_cluster,
            collisions: (table.collisions, table.keys_looked_at),
        };
        Ok(judged.judge(figures.as_ref(), scans))
    }

    /// Writes the code, and drops the tables unless they are to be kept.
    async fn finish(&self, index: usize, mut loaded: Loaded) -> Result<LayoutReport> {
        let name = &self.model.layouts[index];
        let layout = Layout {
            model: &self.model,
            name,
            index,
            tables: &loaded.made,
        };
        let class = code::java::class_name(name);
        let files = [
            (format!("{name}.rb"), code::shell::script(layout)),
            (format!("{name}_layout.py"), code::happybase::module(layout)),
            (format!("{class}.java"), code::java::class(layout)),
        ];
        for (file, text) in files {
            write(&self.arguments.out.join(&file), &text)?;
            loaded.report.code.push(file);
        }
        for table in &loaded.report.tables {
            if !self.arguments.keep_tables {
                self.tables().drop(&table.full_name).await?;
            }
        }
        Ok(loaded.report)
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

/// The server of each region, numbered from 0.
fn parts(regions: &[RegionPlace]) -> Vec<usize> {
    let mut servers: Vec<&str> = Vec::new();
    let mut numbers = Vec::new();
    for name in regions.iter().map(|region| region.server.as_str()) {
        let known = servers.iter().position(|server| *server == name);
        numbers.push(known.unwrap_or_else(|| {
            servers.push(name);
            servers.len() - 1
        }));
    }
    numbers
}

/// The table's schema for the server.
fn schema(full_name: &str, table: &Table, key: &str) -> Result<TableSchema> {
    let schema = TableSchema::new(full_name).during(|| format!("name of table {full_name}"))?;
    let schema = table.families.iter().fold(schema, |schema, family| {
        let mut made = FamilySchema::new(Bytes::from(family.name.clone()));
        if let Some(compression) = family.compression {
            made = made.compression(compression);
        }
        if let Some(versions) = family.versions {
            made = made.versions(i32::try_from(versions).unwrap_or(i32::MAX));
        }
        if let Some(seconds) = family.ttl_seconds {
            made = made.ttl_seconds(i32::try_from(seconds).unwrap_or(i32::MAX));
        }
        schema.family(made)
    });
    Ok(schema.attribute(KEY_LAYOUT, key))
}

/// Bytes of a row on disk before compression: each cell has the row's key and the names.
fn row_bytes(table: &Table, key_bytes: usize) -> f64 {
    let cell = |family: &file::Family, qualifier: usize, value: usize| {
        CELL_BYTES + (key_bytes + family.name.len() + qualifier + value) as f64
    };
    let families = table.families.iter().flat_map(|family| {
        let columns = family.columns.iter();
        columns.map(move |column| cell(family, column.len(), family.value_bytes))
    });
    let number = table
        .families
        .first()
        .map(|family| cell(family, data::NUMBER.len(), size_of::<u64>()));
    families.chain(number).sum()
}

/// HBase's rules of thumb that a table breaks with this key and size.
fn broken_rules(table: &Table, key: &str, bytes: f64) -> Result<Vec<Broken>> {
    let name = TableName::parse(table.name.as_bytes());
    let name = name.map_err(|error| Error::Usage(format!("tables.name = {:?}: {error}", table.name)))?;
    let families = table.families.iter();
    let families = families.map(|family| FamilyDescriptor::new(family.name.as_bytes()));
    let mut descriptor = TableDescriptor::new(name, families.collect());
    descriptor.attributes.insert(KEY_LAYOUT.into(), key.into());
    let regions = usize::try_from(table.regions).unwrap_or(usize::MAX);
    let largest = table.families.iter().map(|family| family.value_bytes).max();
    let contents = Contents {
        regions,
        bytes: bytes as u64,
        largest_region_bytes: (bytes / table.regions as f64) as u64,
        row_keys: None,
        largest_cell_bytes: largest.unwrap_or_default() as u64,
    };
    let mut broken = rules_of_thumb::of_descriptor(&descriptor, regions);
    broken.extend(rules_of_thumb::of_contents(&contents));
    Ok(broken)
}

/// A rule that every layout breaks stands once, without a layout.
fn once_if_in_all(broken: &[BrokenReport], layouts: usize) -> Vec<BrokenReport> {
    let mut out: Vec<BrokenReport> = Vec::new();
    for found in broken {
        let same = broken
            .iter()
            .filter(|other| (&other.what, &other.rule) == (&found.what, &found.rule));
        let mut found = found.clone();
        if same.count() == layouts {
            "every layout".clone_into(&mut found.layout);
        }
        if !out.contains(&found) {
            out.push(found);
        }
    }
    out
}

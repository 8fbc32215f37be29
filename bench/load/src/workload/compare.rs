//! `compare`: the figures of two reports side by side.
//!
//! Figures are the numbers of the two JSON files that stand in the same place: objects in lists (designs,
//! phases, kinds of operations, benchmarks) are matched by their names, so reports with different designs
//! share what both have. Lists of bare numbers and of unnamed things (timelines, percentiles, regions) are
//! plots and not compared.
//!
//! A ratio is the second report's figure divided by the first's. Where more is better or worse is known by
//! the figure's name; a difference within the tolerance is noise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::report::{figure, markdown_table, terminal_table};

/// Compare two reports figure by figure.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// The report.json to compare with, or the directory that it is in.
    a: PathBuf,
    /// The report.json to judge, or the directory that it is in.
    b: PathBuf,
    /// Only figures whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Differences up to this percentage are called equal.
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    tolerance: f64,
    /// Print Markdown.
    #[arg(long)]
    markdown: bool,
}

/// A number that both reports have.
#[derive(Debug, PartialEq)]
struct Figure {
    name: String,
    a: f64,
    b: f64,
}

/// Parts of a report that are no figures.
const NO_FIGURES: [&str; 3] = ["format", "started_ms", "settings"];

/// Prints the comparison.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    comparable(&a, &b)?;
    let wanted = |figure: &Figure| match &arguments.only {
        Some(only) => figure.name.contains(only.as_str()),
        None => true,
    };
    let figures: Vec<Figure> = figures(&a, &b).into_iter().filter(wanted).collect();
    if figures.is_empty() {
        return Err(Error::Usage(
            "the reports have no such figure in common".to_owned(),
        ));
    }
    let rows = figures.iter().map(|figure| figure.row(arguments.tolerance));
    if arguments.markdown {
        say!("{}", markdown_table(&COLUMNS, rows).trim_end());
    } else {
        say!("{}", terminal_table(&COLUMNS, rows));
    }
    for difference in settings_that_differ(&a, &b) {
        say!("{difference}");
    }
    Ok(())
}

fn read(path: &Path) -> Result<Value> {
    let path = if path.is_dir() {
        path.join("report.json")
    } else {
        path.to_owned()
    };
    let text = std::fs::read(&path).map_err(|source| Error::File {
        path: path.clone(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|error| Error::Input {
        path,
        what: error.to_string(),
    })
}

/// Fails for reports that mean different things.
fn comparable(a: &Value, b: &Value) -> Result<()> {
    for field in ["format", "workload"] {
        if a[field].is_null() || b[field].is_null() {
            return Err(Error::Usage(format!(
                "a file has no {field}, so it is no report of basalt-bench"
            )));
        }
        if a[field] != b[field] {
            return Err(Error::Usage(format!(
                "the reports differ in {field}: {} and {}",
                a[field], b[field]
            )));
        }
    }
    Ok(())
}

/// The numbers in the same place of both, in the order of the first.
fn figures(a: &Value, b: &Value) -> Vec<Figure> {
    let mut found = Vec::new();
    collect(a, b, String::new(), &mut found);
    found
}

fn collect(a: &Value, b: &Value, name: String, found: &mut Vec<Figure>) {
    let below = |part: &str| {
        if name.is_empty() {
            part.to_owned()
        } else {
            format!("{name} {part}")
        }
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            if let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) {
                found.push(Figure { name, a, b });
            }
        }
        (Value::Object(fields), Value::Object(_)) => {
            for (field, value) in fields {
                if !(name.is_empty() && NO_FIGURES.contains(&field.as_str())) {
                    collect(value, &b[field.as_str()], below(field), found);
                }
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            let named = named(right);
            for item in left {
                if let Some((part, other)) = name_of(item).and_then(|part| Some((part, named.get(part)?))) {
                    // The list's own name says no more than its items' names do.
                    let name = match name.rsplit_once(' ') {
                        Some((above, _)) => format!("{above} {part}"),
                        None => part.to_owned(),
                    };
                    collect(item, other, name, found);
                }
            }
        }
        _ => {}
    }
}

fn named(items: &[Value]) -> BTreeMap<&str, &Value> {
    items
        .iter()
        .filter_map(|item| Some((name_of(item)?, item)))
        .collect()
}

/// The name that identifies an item of a list.
fn name_of(item: &Value) -> Option<&str> {
    item["name"].as_str().or_else(|| item["benchmark"].as_str())
}

/// Whether more is better, by the last part of the name; `None` for counts of operations.
fn more_is_better(name: &str) -> Option<bool> {
    let last = name.rsplit(' ').next().unwrap_or(name);
    if last.ends_with("_per_second") || last.ends_with("_per_s") || last.ends_with("mb_per_s") {
        return Some(true);
    }
    let lower = [
        "latency_seconds",
        "seconds",
        "gini",
        "peak_to_mean",
        "busiest_share",
        "errors",
        "given_up",
        "rows_lost",
        "not_begun",
        "per_byte_returned",
        "micros_per_operation",
        "blocks_read",
        "bytes_per_row",
    ];
    let of_latency = name.contains("latency_seconds") && last != "count";
    (of_latency || lower.iter().any(|end| last.ends_with(end))).then_some(false)
}

/// The columns of the table.
const COLUMNS: [&str; 5] = ["figure", "A", "B", "B / A", "verdict"];

impl Figure {
    fn row(&self, tolerance_percent: f64) -> [String; 5] {
        let ratio = if self.a == 0.0 {
            if self.b == 0.0 { "1.00" } else { "-" }.to_owned()
        } else {
            format!("{:.2}", self.b / self.a)
        };
        [
            self.name.clone(),
            figure(self.a),
            figure(self.b),
            ratio,
            self.verdict(tolerance_percent).to_owned(),
        ]
    }

    fn verdict(&self, tolerance_percent: f64) -> &'static str {
        let Some(more_is_better) = more_is_better(&self.name) else {
            return "";
        };
        let difference = (self.b - self.a).abs();
        if difference <= self.a.abs() * tolerance_percent / 100.0 {
            "equal"
        } else if (self.b > self.a) == more_is_better {
            "better"
        } else {
            "worse"
        }
    }
}

/// Differences in settings: they may explain differences in figures.
fn settings_that_differ(a: &Value, b: &Value) -> Vec<String> {
    let empty = serde_json::Map::new();
    let (a, b) = (&a["settings"], &b["settings"]);
    let names = a.as_object().unwrap_or(&empty).keys();
    names
        .filter(|name| a[name.as_str()] != b[name.as_str()])
        .map(|name| {
            format!(
                "setting {name}: {} in A, {} in B",
                a[name.as_str()],
                b[name.as_str()]
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(rate: f64, p99: f64) -> Value {
        json!({
            "format": 2, "workload": "pe", "started_ms": rate, "settings": {"rows": rate},
            "phases": [
                {"name": "scan", "rows": 5, "timeline": {"rows_per_second": [1.0, 2.0]}},
                {"name": "randomRead", "ops_per_second": rate, "latency_seconds": {"count": 9, "p99": p99},
                 "kinds": [{"name": "get", "errors": 0}]},
            ],
        })
    }

    #[test]
    fn figures_in_the_same_place_are_compared() {
        let a = report(100.0, 0.004);
        let mut b = report(150.0, 0.006);
        b["phases"].as_array_mut().unwrap().swap(0, 1);
        let figures = figures(&a, &b);
        let rows: Vec<String> = figures.iter().map(|figure| figure.row(5.0).join(" ")).collect();
        assert_eq!(
            rows,
            [
                "scan rows 5 5 1.00 ",
                "randomRead get errors 0 0 1.00 equal",
                "randomRead latency_seconds count 9 9 1.00 ",
                "randomRead latency_seconds p99 0.00400 0.00600 1.50 worse",
                "randomRead ops_per_second 100 150 1.50 better",
            ]
        );
        assert_eq!(
            settings_that_differ(&a, &b),
            ["setting rows: 100.0 in A, 150.0 in B"]
        );
    }

    #[test]
    fn a_small_difference_is_noise() {
        let figure = |b| Figure {
            name: "x ops_per_second".to_owned(),
            a: 100.0,
            b,
        };
        assert_eq!(
            [104.0, 106.0, 94.0].map(|b| figure(b).verdict(5.0)),
            ["equal", "better", "worse"]
        );
        let from_nothing = Figure {
            name: "errors".to_owned(),
            a: 0.0,
            b: 3.0,
        };
        assert_eq!(from_nothing.row(5.0), ["errors", "0", "3", "-", "worse"]);
    }

    #[test]
    fn reports_of_different_things_are_refused() {
        let refused = |a: &Value, b: &Value| comparable(a, b).unwrap_err().to_string();
        let pe = report(1.0, 1.0);
        let mut other = pe.clone();
        other["workload"] = json!("ycsb");
        assert!(refused(&pe, &other).contains("\"pe\" and \"ycsb\""));
        assert!(refused(&pe, &json!({})).contains("no report of basalt-bench"));
    }
}

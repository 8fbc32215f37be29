//! The result of a run in a sentence, and advice by what the user named as important.
//!
//! On servers that share the load, real or rehearsed, writes are judged by rows a second. One process has no
//! servers to spread over, so there they are judged by the busiest region's share of a minute's writes, and
//! the report proposes a rehearsal.

#![expect(clippy::format_push_string, reason = "a few texts for people")]

use basalt_load::report::{commas, figure};
use clap::ValueEnum;
use serde::Serialize;

use super::{DesignReport, Report};

/// A property that a key can be chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Important {
    /// Writing rows in the order of time.
    Writes,
    /// Reading an hour or a day in order.
    Range,
    /// Reading single rows.
    Rows,
}

/// A figure of a design of which less is better.
struct Cost {
    value: f64,
    text: String,
}

/// Fills in result, advice and proposal. REQUIRES: at least one design.
pub(crate) fn conclude(report: &mut Report, is_basalt: bool) {
    let is_cluster = report
        .designs
        .iter()
        .any(|design| design.spread.server_writes.len() > 1);
    report.result = result(&report.designs, is_cluster);
    report.advice = advice(report, is_cluster);
    if !is_cluster && is_basalt {
        "One process has no servers to spread over: all regions share its log and its disk, so rows a second do not \
         show what spreading gains. To see that, rehearse a cluster: basalt serve --set rehearsal.servers=8 --set \
         rehearsal.requests_per_second=5000, and run this again."
            .clone_into(&mut report.rehearse);
    }
}

/// The best design against the worst, by what shows here.
fn result(designs: &[DesignReport], is_cluster: bool) -> String {
    if !is_cluster {
        let share = |design: &&DesignReport| design.spread.region_busiest_share;
        let least = designs.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
        let most = designs.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        let (Some(least), Some(most)) = (least, most) else {
            return String::new();
        };
        return format!(
            "With {} keys the busiest of {} regions takes {:.0} % of a minute's writes, with {} keys {:.0} %.",
            most.name,
            most.spread.region_writes.len(),
            share(&most) * 100.0,
            least.name,
            share(&least) * 100.0,
        );
    }
    let rate = |design: &&DesignReport| design.ingest_ops_per_second;
    let best = designs.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let worst = designs.iter().min_by(|a, b| rate(a).total_cmp(&rate(b)));
    let (Some(best), Some(worst)) = (best, worst) else {
        return String::new();
    };
    format!(
        "{} rows/s with {} keys against {} with {}: {:.1}x.",
        commas(rate(&best)),
        best.name,
        commas(rate(&worst)),
        worst.name,
        rate(&best) / rate(&worst).max(1e-9)
    )
}

/// The figure of a design for something important; `None` if it was not measured.
fn cost(design: &DesignReport, important: Important, is_cluster: bool, range: &str) -> Option<Cost> {
    let cost = match important {
        Important::Writes if is_cluster => Cost {
            value: 1.0 / design.ingest_ops_per_second.max(1e-9),
            text: format!("{} rows/s", commas(design.ingest_ops_per_second)),
        },
        Important::Writes => Cost {
            value: design.spread.region_busiest_share,
            text: format!(
                "the busiest region takes {:.0} % of a minute's writes",
                design.spread.region_busiest_share * 100.0
            ),
        },
        Important::Range => Cost {
            value: design.range_read.range_seconds,
            text: format!(
                "one {range} takes {} and {} ms",
                scans(design.range_read.range_scans),
                figure(design.range_read.range_seconds * 1e3)
            ),
        },
        Important::Rows => {
            let p50 = design.point_read_latency_seconds.as_ref()?.p50;
            Cost {
                value: p50,
                text: format!("one row takes {} ms", figure(p50 * 1e3)),
            }
        }
    };
    Some(cost)
}

fn scans(count: u64) -> String {
    if count == 1 {
        "one scan".to_owned()
    } else {
        format!("{count} scans")
    }
}

/// The design whose costs, each as a multiple of the least, have the smallest product.
fn advice(report: &Report, is_cluster: bool) -> String {
    let range = report.settings.range;
    let important = &report.important;
    let costs = |design: &DesignReport| -> Vec<Cost> {
        let costs = important
            .iter()
            .map(|important| cost(design, *important, is_cluster, range));
        costs.collect::<Option<_>>().unwrap_or_default()
    };
    let judged: Vec<(&DesignReport, Vec<Cost>)> = report
        .designs
        .iter()
        .map(|design| (design, costs(design)))
        .filter(|(_, costs)| !costs.is_empty())
        .collect();
    let product = |costs: &[Cost]| costs.iter().map(|cost| cost.value.max(1e-9)).product::<f64>();
    let best = judged
        .iter()
        .min_by(|a, b| product(&a.1).total_cmp(&product(&b.1)));
    let Some((design, costs)) = best else {
        return "Nothing that was named as important was measured.".to_owned();
    };
    let names = important.iter().map(|important| match important {
        Important::Writes => "writes".to_owned(),
        Important::Range => format!("reading one {range} in order"),
        Important::Rows => "reading single rows".to_owned(),
    });
    let names: Vec<String> = names.collect();
    let own: Vec<&str> = costs.iter().map(|cost| cost.text.as_str()).collect();
    let mut advice = format!(
        "If {} matter{}: {} keys ({}): {}.",
        names.join(" and "),
        if names.len() == 1 && !names[0].starts_with("writes") {
            "s"
        } else {
            ""
        },
        design.name,
        design.row_key,
        own.join(", ")
    );
    for (place, own) in costs.iter().enumerate() {
        let least = judged
            .iter()
            .min_by(|a, b| a.1[place].value.total_cmp(&b.1[place].value));
        if let Some((other, others)) = least
            && others[place].value * 1.1 < own.value
        {
            advice += &format!(" Best there is {}: {}.", other.name, others[place].text);
        }
    }
    advice + " --important names what matters to you: writes, range, rows."
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::hotspot::design_report::ServerLoad;

    /// A report in which both designs were written to two servers.
    fn rehearsed() -> Report {
        let mut report = sample();
        let load = |server: &str| ServerLoad {
            server: server.to_owned(),
            writes: 1,
        };
        for design in &mut report.designs {
            design.spread.server_writes = vec![load("a"), load("b")];
        }
        report.designs[0].ingest_ops_per_second = 3_118.0;
        report.designs[1].ingest_ops_per_second = 24_866.0;
        report.designs[1].name = "salted";
        report
    }

    #[test]
    fn the_result_of_a_rehearsal_is_a_ratio() {
        let mut report = rehearsed();
        conclude(&mut report, true);
        assert_eq!(
            report.result,
            "24,866 rows/s with salted keys against 3,118 with sequential: 8.0x."
        );
        assert_eq!(report.rehearse, "");
    }

    #[test]
    fn one_process_is_told_apart_from_a_cluster() {
        let mut report = sample();
        conclude(&mut report, true);
        assert_eq!(
            report.result,
            "With sequential keys the busiest of 2 regions takes 100 % of a minute's writes, with salted keys 50 %."
        );
        assert!(
            report.rehearse.contains("no servers to spread over"),
            "{}",
            report.rehearse
        );
        let mut other = sample();
        conclude(&mut other, false);
        assert_eq!(other.rehearse, "", "HBase has no rehearsal");
    }

    #[test]
    fn the_advice_depends_on_what_is_important() {
        let advised = |important: &[Important]| {
            let mut report = rehearsed();
            report.important = important.to_vec();
            conclude(&mut report, true);
            report.advice
        };
        let writes = advised(&[Important::Writes]);
        assert!(writes.starts_with("If writes matter: salted keys"), "{writes}");
        let range = advised(&[Important::Range]);
        assert!(
            range.starts_with("If reading one hour in order matters: sequential keys"),
            "{range}"
        );
        let both = advised(&[Important::Writes, Important::Range]);
        assert!(
            both.starts_with("If writes and reading one hour in order matter: salted keys"),
            "{both}"
        );
        assert!(
            both.contains("Best there is sequential: one hour takes one scan and 3.20 ms."),
            "{both}"
        );
    }
}

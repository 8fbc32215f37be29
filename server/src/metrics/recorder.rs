//! The recorder behind the macros of `metrics`, and its text for Prometheus.
//!
//! A *series* is one value with its labels; the series of one name are a *family*.
//!
//! 1. A macro looks a series up by name and labels, under the mutex, and returns a handle to its
//!    value. Hot paths resolve their handles once.
//! 2. A handle changes the value without the mutex.
//! 3. A scrape renders the families that have series, in the order of their names.
//!
//! Invariants: a series stays as long as its recorder, and a family has one type. A handle of another
//! type than its family's does nothing.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};
use parking_lot::Mutex;

use super::histogram::{Buckets, Counts};
use super::names;

/// All families by name. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<BTreeMap<String, Family>>>);

#[derive(Debug, Default)]
struct Family {
    help: String,
    series: Series,
}

/// The values of a family, by their labels as they are rendered.
#[derive(Debug, Default)]
enum Series {
    #[default]
    None,
    Counters(BTreeMap<String, Arc<AtomicU64>>),
    /// Bits of an f64.
    Gauges(BTreeMap<String, Arc<AtomicU64>>),
    Histograms(BTreeMap<String, Arc<Buckets>>),
}

impl Recorder {
    /// Everything that was recorded, in Prometheus' text format.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        for (name, family) in &*self.0.lock() {
            family.render(name, &mut text);
        }
        text
    }

    /// What `with` makes of the family of that name.
    fn family<T>(&self, name: &str, with: impl FnOnce(&mut Family) -> T) -> T {
        let mut families = self.0.lock();
        if let Some(family) = families.get_mut(name) {
            return with(family);
        }
        with(families.entry(name.to_owned()).or_default())
    }

    fn describe(&self, name: &KeyName, help: &SharedString) {
        self.family(name.as_str(), |family| family.help = help.to_string());
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_gauge(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_histogram(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> Counter {
        self.family(key.name(), |family| match family.series.counters() {
            Some(series) => Counter::from_arc(Arc::clone(series.entry(labels(key)).or_default())),
            None => Counter::noop(),
        })
    }

    fn register_gauge(&self, key: &Key, _metadata: &Metadata<'_>) -> Gauge {
        self.family(key.name(), |family| match family.series.gauges() {
            Some(series) => Gauge::from_arc(Arc::clone(series.entry(labels(key)).or_default())),
            None => Gauge::noop(),
        })
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        let buckets = || Arc::new(Buckets::new(names::buckets(key.name())));
        self.family(key.name(), |family| match family.series.histograms() {
            Some(series) => {
                Histogram::from_arc(Arc::clone(series.entry(labels(key)).or_insert_with(buckets)))
            }
            None => Histogram::noop(),
        })
    }
}

/// The labels of a series as Prometheus writes them, without the braces.
fn labels(key: &Key) -> String {
    let mut text = String::new();
    for label in key.labels() {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(label.key());
        text.push_str("=\"");
        for letter in label.value().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                letter => text.push(letter),
            }
        }
        text.push('"');
    }
    text
}

impl Series {
    fn counters(&mut self) -> Option<&mut BTreeMap<String, Arc<AtomicU64>>> {
        if let Self::None = self {
            *self = Self::Counters(BTreeMap::new());
        }
        match self {
            Self::Counters(series) => Some(series),
            _ => None,
        }
    }

    fn gauges(&mut self) -> Option<&mut BTreeMap<String, Arc<AtomicU64>>> {
        if let Self::None = self {
            *self = Self::Gauges(BTreeMap::new());
        }
        match self {
            Self::Gauges(series) => Some(series),
            _ => None,
        }
    }

    fn histograms(&mut self) -> Option<&mut BTreeMap<String, Arc<Buckets>>> {
        if let Self::None = self {
            *self = Self::Histograms(BTreeMap::new());
        }
        match self {
            Self::Histograms(series) => Some(series),
            _ => None,
        }
    }
}

impl Family {
    fn render(&self, name: &str, text: &mut String) {
        match &self.series {
            Series::None => {}
            Series::Counters(series) => {
                self.render_head(name, "counter", text);
                for (labels, value) in series {
                    line(text, name, labels, value.load(Ordering::Relaxed));
                }
            }
            Series::Gauges(series) => {
                self.render_head(name, "gauge", text);
                for (labels, value) in series {
                    line(text, name, labels, f64::from_bits(value.load(Ordering::Relaxed)));
                }
            }
            Series::Histograms(series) => {
                self.render_head(name, "histogram", text);
                for (labels, buckets) in series {
                    render_histogram(name, labels, &buckets.counts(), text);
                }
            }
        }
    }

    fn render_head(&self, name: &str, kind: &str, text: &mut String) {
        if !self.help.is_empty() {
            let help = self.help.replace('\\', "\\\\").replace('\n', "\\n");
            push(text, format_args!("# HELP {name} {help}\n"));
        }
        push(text, format_args!("# TYPE {name} {kind}\n"));
    }
}

fn render_histogram(name: &str, labels: &str, counts: &Counts, text: &mut String) {
    let comma = if labels.is_empty() { "" } else { "," };
    let bucket = format!("{name}_bucket");
    for (bound, count) in &counts.up_to {
        line(text, &bucket, &format!("{labels}{comma}le=\"{bound}\""), count);
    }
    line(text, &bucket, &format!("{labels}{comma}le=\"+Inf\""), counts.all);
    line(text, &format!("{name}_sum"), labels, counts.sum);
    line(text, &format!("{name}_count"), labels, counts.all);
}

/// A sample.
fn line(text: &mut String, name: &str, labels: &str, value: impl Display) {
    if labels.is_empty() {
        push(text, format_args!("{name} {value}\n"));
    } else {
        push(text, format_args!("{name}{{{labels}}} {value}\n"));
    }
}

fn push(text: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(words);
}

#[cfg(test)]
mod tests {
    use metrics::{counter, describe_counter, describe_gauge, gauge, histogram, with_local_recorder};

    use super::*;

    #[test]
    fn families_are_rendered_with_type_and_help() {
        let recorder = Recorder::default();
        with_local_recorder(&recorder, || {
            describe_counter!("b_total", "Two\nlines, one \\.");
            describe_gauge!("unused", "Never rendered.");
            counter!("b_total", "x" => "1", "y" => "a\"b\\c\nd").increment(2);
            counter!("b_total", "x" => "1", "y" => "a\"b\\c\nd").increment(3);
            counter!("b_total", "x" => "0", "y" => "").absolute(7);
            gauge!("a").set(1.5);
        });
        assert_eq!(
            recorder.render(),
            "# TYPE a gauge\na 1.5\n\
             # HELP b_total Two\\nlines, one \\\\.\n# TYPE b_total counter\n\
             b_total{x=\"0\",y=\"\"} 7\nb_total{x=\"1\",y=\"a\\\"b\\\\c\\nd\"} 5\n"
        );
    }

    /// A counter that follows another one never goes back, and handles of one series share its value.
    #[test]
    fn handles_share_a_series() {
        let recorder = Recorder::default();
        with_local_recorder(&recorder, || {
            let (one, other) = (counter!("c"), counter!("c"));
            one.absolute(5);
            other.absolute(3);
            other.increment(1);
            gauge!("g").increment(2.0);
            gauge!("g").decrement(0.5);
        });
        assert_eq!(
            recorder.render(),
            "# TYPE c counter\nc 6\n# TYPE g gauge\ng 1.5\n"
        );
    }

    #[test]
    fn a_name_has_one_type() {
        let recorder = Recorder::default();
        with_local_recorder(&recorder, || {
            counter!("c").increment(1);
            gauge!("c").set(9.0);
            histogram!("c").record(9.0);
        });
        assert_eq!(recorder.render(), "# TYPE c counter\nc 1\n");
    }

    #[test]
    fn a_histogram_has_its_buckets() {
        let recorder = Recorder::default();
        let name = names::WAL_GROUP_EDITS;
        with_local_recorder(&recorder, || {
            let edits = histogram!(name, "k" => "v");
            edits.record(2.0);
            edits.record(2.5);
            edits.record(1e9);
        });
        let text = recorder.render();
        for line in [
            format!("# TYPE {name} histogram"),
            format!("{name}_bucket{{k=\"v\",le=\"1\"}} 0"),
            format!("{name}_bucket{{k=\"v\",le=\"2\"}} 1"),
            format!("{name}_bucket{{k=\"v\",le=\"4\"}} 2"),
            format!("{name}_bucket{{k=\"v\",le=\"1024\"}} 2"),
            format!("{name}_bucket{{k=\"v\",le=\"+Inf\"}} 3"),
            format!("{name}_sum{{k=\"v\"}} 1000000004.5"),
            format!("{name}_count{{k=\"v\"}} 3"),
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
    }
}

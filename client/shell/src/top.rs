//! `top`: tables, regions and methods with their present rates, the busiest first.
//!
//! Rates are differences of two samples of counters that the server keeps anyway: those of regions,
//! and those of methods on its HTTP port. At a terminal the picture is drawn anew after each
//! interval and each key; elsewhere it is printed once.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use basalt_client::admin::RegionMetrics;

use super::arguments::Arguments;
use super::escape::printable;
use super::methods::{Counters, fetch};
use super::output::Field;
use super::session::{Outcome, Session};
use super::value::Value;
use super::{ShellError, ShellResult};

/// Lines of a picture that is printed once.
const LIMIT: usize = 20;
/// Lines of the screen that are not rows: a title, the keys, the header, and the cursor's line.
const LINES_AROUND: usize = 4;
/// Width of the columns with figures.
const FIGURE_WIDTH: usize = 11;
/// Clears the screen and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[J";
/// Ctrl-C and Ctrl-D, which leave the picture as `q` does.
const LEAVE: [u8; 3] = [b'q', 3, 4];

/// The rows of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Tables,
    Regions,
    Methods,
}

/// A column: its name in the picture, the name to sort by, and the key that does so.
type Column = (&'static str, &'static str, u8);

const OF_TABLES: &[Column] = &[
    ("REQUESTS/S", "requests", b'a'),
    ("READS/S", "reads", b'r'),
    ("WRITES/S", "writes", b'w'),
    ("BLOCKED/S", "blocked", b'b'),
    ("MEMSTORE MB", "memstore", b'm'),
    ("FILES", "files", b'f'),
    ("SIZE MB", "size", b's'),
];
const OF_METHODS: &[Column] = &[
    ("CALLS/S", "calls", b'c'),
    ("ERRORS/S", "errors", b'e'),
    ("MEAN MS", "mean", b'm'),
    ("TOTAL", "total", b't'),
];

impl View {
    const ALL: [(View, &'static str, u8); 3] = [
        (View::Tables, "tables", b'1'),
        (View::Regions, "regions", b'2'),
        (View::Methods, "methods", b'3'),
    ];

    fn name(self) -> &'static str {
        View::ALL[self as usize].1
    }

    fn columns(self) -> &'static [Column] {
        match self {
            View::Tables | View::Regions => OF_TABLES,
            View::Methods => OF_METHODS,
        }
    }
}

/// Counters at one time.
#[derive(Debug)]
struct Sample {
    at: Instant,
    counted: Counted,
}

#[derive(Debug)]
enum Counted {
    Regions(Vec<RegionMetrics>),
    Methods(BTreeMap<String, Counters>),
}

/// A line of the picture.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    figures: Vec<f64>,
}

/// A view, its order and its rows.
#[derive(Debug)]
struct Picture {
    view: View,
    /// The column to sort by; `None` is the name.
    sort: Option<usize>,
    interval: Duration,
    limit: usize,
    rows: Vec<Row>,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    Leave,
    OtherView,
    Nothing,
}

impl Session {
    pub(super) async fn top(&mut self, mut arguments: Arguments) -> Outcome {
        let (mut picture, is_once) = Picture::of_arguments(&mut arguments)?;
        let keys = self.keys.filter(|_| !is_once && self.output.is_table());
        let Some(open) = keys else {
            let before = self.sample(picture.view).await?;
            tokio::time::sleep(picture.interval).await;
            let after = self.sample(picture.view).await?;
            picture.rows = rows(picture.view, &before, &after);
            self.print_picture(&picture)?;
            return Ok(None);
        };
        let mut keys = open()?;
        let mut before = self.sample(picture.view).await?;
        loop {
            picture.limit = keys.lines().saturating_sub(LINES_AROUND).max(1);
            self.draw(&picture)?;
            match keys.next(picture.interval)? {
                None => {
                    let after = self.sample(picture.view).await?;
                    picture.rows = rows(picture.view, &before, &after);
                    before = after;
                }
                Some(key) => match picture.press(key) {
                    Pressed::Leave => return Ok(None),
                    Pressed::OtherView => before = self.sample(picture.view).await?,
                    Pressed::Nothing => {}
                },
            }
        }
    }

    async fn sample(&mut self, view: View) -> ShellResult<Sample> {
        let counted = match view {
            View::Tables | View::Regions => Counted::Regions(self.admin.regions(None).await?),
            View::Methods => Counted::Methods(self.methods().await?),
        };
        let at = Instant::now();
        Ok(Sample { at, counted })
    }

    async fn methods(&mut self) -> ShellResult<BTreeMap<String, Counters>> {
        let address = self.http_address().await?;
        let found = fetch(&address).await;
        found.map_err(|error| {
            ShellError::Refused(format!(
                "the HTTP port {address}, which counts methods, fails ({error}); --http HOST:PORT names another"
            ))
        })
    }

    /// The address of the HTTP port: as it was given, or the port that the server names on the
    /// target's host.
    async fn http_address(&mut self) -> ShellResult<String> {
        if let Some(address) = &self.client.http {
            return Ok(address.clone());
        }
        let port = self.cluster_status().await?.master_info_port();
        let target = self.client.thrift().pool().target();
        let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
        Ok(format!("{host}:{port}"))
    }

    /// Prints a picture once.
    fn print_picture(&mut self, picture: &Picture) -> ShellResult<()> {
        let rows = picture.sorted();
        if self.output.is_table() {
            self.output.note(&picture.header(self.output.width()))?;
            for row in rows.iter().take(picture.limit) {
                self.output.line(&picture.line(row, self.output.width()))?;
            }
            return self.print_count(rows.len());
        }
        for row in rows.iter().take(picture.limit) {
            let figures = picture.view.columns().iter().zip(&row.figures);
            let figures = figures.map(|((_, name, _), figure)| (*name, Value::Float(*figure)));
            let fields: Vec<Field> = std::iter::once(("name", Value::text(&row.name)))
                .chain(figures)
                .collect();
            self.output.record(&[], &fields)?;
        }
        Ok(())
    }

    /// Draws a picture on the cleared screen.
    fn draw(&mut self, picture: &Picture) -> ShellResult<()> {
        let width = self.output.width();
        let rows = picture.sorted();
        // In raw mode a newline does not return to the first column.
        let mut text = format!("{CLEAR}{}\r\n{}\r\n", picture.title(rows.len()), picture.keys());
        text.push_str(&picture.header(width));
        for row in rows.iter().take(picture.limit) {
            text.extend(["\r\n", &picture.line(row, width)]);
        }
        self.output.line(&(text + "\r"))?;
        Ok(self.output.flush()?)
    }
}

impl Picture {
    /// The picture that the arguments ask for, and whether it is printed once.
    fn of_arguments(arguments: &mut Arguments) -> ShellResult<(Picture, bool)> {
        let (mut view, mut is_once) = (View::Tables, false);
        while let Some(word) = arguments.optional_text("a view")? {
            match View::ALL.iter().find(|(_, name, _)| *name == word) {
                Some((named, ..)) => view = *named,
                None if ["--once", "once"].contains(&&word[..]) => is_once = true,
                None => {
                    let text = format!("'{word}' is none of tables, regions, methods and --once");
                    return Err(ShellError::Arguments(text));
                }
            }
        }
        let mut options = arguments.options()?;
        arguments.end()?;
        let sort = match options.text("SORT")? {
            Some(name) => sort_column(view, &name)?,
            None => Some(0),
        };
        let interval = match options.text("INTERVAL")? {
            Some(seconds) => interval(&seconds)?,
            None => Duration::from_secs(1),
        };
        let limit = options.integer("LIMIT")?.map(usize::try_from);
        let limit = limit.and_then(std::result::Result::ok).unwrap_or(LIMIT);
        is_once |= options.boolean("ONCE")?.unwrap_or_default();
        options.end(&["SORT", "INTERVAL", "LIMIT", "ONCE"])?;
        let picture = Picture {
            view,
            sort,
            interval,
            limit,
            rows: Vec::new(),
        };
        Ok((picture, is_once))
    }

    fn press(&mut self, key: u8) -> Pressed {
        if LEAVE.contains(&key) {
            return Pressed::Leave;
        }
        if let Some((view, ..)) = View::ALL.iter().find(|(.., known)| *known == key) {
            (self.view, self.sort) = (*view, Some(0));
            self.rows.clear();
            return Pressed::OtherView;
        }
        if key == b'n' {
            self.sort = None;
        }
        let column = self.view.columns().iter().position(|(.., known)| *known == key);
        self.sort = column.or(self.sort);
        Pressed::Nothing
    }

    /// The rows, the largest first, or by their names.
    fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(column) = self.sort {
            rows.sort_by(|a, b| b.figures[column].total_cmp(&a.figures[column]));
        }
        rows
    }

    fn title(&self, rows: usize) -> String {
        let by = self.sort.map_or("name", |column| self.view.columns()[column].1);
        let shown = rows.min(self.limit);
        let view = self.view.name();
        format!(
            "{view} by {by}, {shown} of {rows}, every {} s",
            self.interval.as_secs_f64()
        )
    }

    fn keys(&self) -> String {
        let views = View::ALL.iter().map(|(_, name, key)| (*name, *key));
        let columns = self.view.columns().iter().map(|(_, name, key)| (*name, *key));
        let keys = views.chain(columns).chain([("name", b'n'), ("quit", b'q')]);
        let keys: Vec<String> = keys
            .map(|(name, key)| format!("{} {name}", char::from(key)))
            .collect();
        keys.join("  ")
    }

    fn header(&self, width: usize) -> String {
        let names = self.view.columns().iter().map(|(name, ..)| (*name).to_owned());
        self.columns("NAME", names, width)
    }

    fn line(&self, row: &Row, width: usize) -> String {
        let figures = row.figures.iter().map(|figure| match figure {
            figure if figure.fract() == 0.0 || figure.abs() >= 1e6 => format!("{figure:.0}"),
            figure => format!("{figure:.1}"),
        });
        self.columns(&row.name, figures, width)
    }

    /// A line of at most `width` characters: the name, cut in the middle, and the figures.
    fn columns(&self, name: &str, figures: impl Iterator<Item = String>, width: usize) -> String {
        let figures_width = self.view.columns().len() * (FIGURE_WIDTH + 1);
        let name_width = width.saturating_sub(figures_width).max(12);
        let mut line = format!("{:name_width$}", shortened(name, name_width));
        for figure in figures {
            line.extend([" ", &format!("{figure:>FIGURE_WIDTH$}")]);
        }
        line
    }
}

/// A text without its middle, if it is longer than `width`.
fn shortened(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let end = (width - 2) / 2;
    let begin = width - 2 - end;
    let (begin, end) = (&letters[..begin], &letters[letters.len() - end..]);
    begin.iter().chain(&['.', '.']).chain(end).collect()
}

fn sort_column(view: View, name: &str) -> ShellResult<Option<usize>> {
    let columns = view.columns();
    match columns
        .iter()
        .position(|(_, known, _)| known.eq_ignore_ascii_case(name))
    {
        Some(column) => Ok(Some(column)),
        None if name.eq_ignore_ascii_case("name") => Ok(None),
        None => {
            let known: Vec<&str> = columns.iter().map(|(_, known, _)| *known).collect();
            let (view, known) = (view.name(), known.join(", "));
            Err(ShellError::Arguments(format!(
                "SORT is '{name}', which is none of {known} and name, the columns of {view}"
            )))
        }
    }
}

fn interval(seconds: &str) -> ShellResult<Duration> {
    let number = seconds
        .parse()
        .ok()
        .filter(|seconds| (0.1..=3600.0).contains(seconds));
    number.map(Duration::from_secs_f64).ok_or_else(|| {
        ShellError::Arguments(format!(
            "INTERVAL is '{seconds}', it must be from 0.1 to 3600 seconds"
        ))
    })
}

/// The rows of a view between two samples. Regions that the second one lacks have no row.
fn rows(view: View, before: &Sample, after: &Sample) -> Vec<Row> {
    let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-3);
    match (&before.counted, &after.counted) {
        (Counted::Regions(before), Counted::Regions(after)) => {
            let rows = region_rows(before, after, seconds);
            if view == View::Tables {
                by_table(rows)
            } else {
                by_region(rows)
            }
        }
        (Counted::Methods(before), Counted::Methods(after)) => method_rows(before, after, seconds),
        _ => Vec::new(),
    }
}

/// The figures of each region, with its table. Counters begin at zero in a new region.
fn region_rows<'r>(
    before: &[RegionMetrics],
    after: &'r [RegionMetrics],
    seconds: f64,
) -> impl Iterator<Item = (&'r RegionMetrics, Vec<f64>)> {
    let before: HashMap<&[u8], &RegionMetrics> = before
        .iter()
        .map(|region| (&region.region_name[..], region))
        .collect();
    let rows = after.iter().map(|region| {
        let earlier = before.get(&region.region_name[..]);
        let rate = |of: fn(&RegionMetrics) -> i64| {
            let earlier = earlier.map_or(0, |region| of(region));
            (of(region) - earlier).max(0) as f64 / seconds
        };
        let (reads, writes) = (
            rate(|region| region.read_requests),
            rate(|region| region.write_requests),
        );
        let megabytes = |bytes: i64| bytes as f64 / f64::from(1 << 20);
        let figures = vec![
            reads + writes,
            reads,
            writes,
            rate(|region| region.blocked_writes),
            megabytes(region.memstore_bytes),
            f64::from(region.store_files),
            megabytes(region.store_file_bytes),
        ];
        (region, figures)
    });
    rows.collect::<Vec<_>>().into_iter()
}

fn by_region<'r>(regions: impl Iterator<Item = (&'r RegionMetrics, Vec<f64>)>) -> Vec<Row> {
    let row = |(region, figures): (&RegionMetrics, Vec<f64>)| Row {
        name: printable(&region.region_name),
        figures,
    };
    regions.map(row).collect()
}

fn by_table<'r>(regions: impl Iterator<Item = (&'r RegionMetrics, Vec<f64>)>) -> Vec<Row> {
    let mut tables: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (region, figures) in regions {
        let sums = tables
            .entry(printable(&region.table_name))
            .or_insert_with(|| vec![0.0; figures.len()]);
        for (sum, figure) in sums.iter_mut().zip(figures) {
            *sum += figure;
        }
    }
    tables
        .into_iter()
        .map(|(name, figures)| Row { name, figures })
        .collect()
}

/// The methods that were ever called.
fn method_rows(
    before: &BTreeMap<String, Counters>,
    after: &BTreeMap<String, Counters>,
    seconds: f64,
) -> Vec<Row> {
    let called = after.iter().filter(|(_, counters)| counters.calls > 0.0);
    let rows = called.map(|(name, counters)| {
        let earlier = before.get(name).copied().unwrap_or_default();
        let calls = (counters.calls - earlier.calls).max(0.0);
        let time = (counters.seconds - earlier.seconds).max(0.0);
        let mean_ms = if calls > 0.0 { 1e3 * time / calls } else { 0.0 };
        let errors = (counters.errors - earlier.errors).max(0.0);
        Row {
            name: name.clone(),
            figures: vec![calls / seconds, errors / seconds, mean_ms, counters.calls],
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::command;

    fn region(table: &'static str, name: &'static str, reads: i64, writes: i64) -> RegionMetrics {
        RegionMetrics {
            table_name: table.into(),
            region_name: name.into(),
            read_requests: reads,
            write_requests: writes,
            store_file_bytes: 3 << 19,
            ..RegionMetrics::default()
        }
    }

    fn samples(before: Counted, after: Counted) -> [Sample; 2] {
        let at = Instant::now();
        let later = at + Duration::from_secs(2);
        [
            Sample { at, counted: before },
            Sample {
                at: later,
                counted: after,
            },
        ]
    }

    fn picture(text: &str) -> ShellResult<(Picture, bool)> {
        Picture::of_arguments(&mut Arguments::new("top", command(text).arguments))
    }

    /// Goal: rates are differences over the time between two samples; tables are sums of their
    /// regions.
    #[test]
    fn rates_are_differences() {
        let before = Counted::Regions(vec![region("t", "t,,1", 10, 0), region("u", "u,,1", 100, 0)]);
        let after = vec![
            region("t", "t,,1", 14, 2),
            region("t", "t,m,2", 6, 0),
            region("u", "u,,1", 5, 0),
        ];
        let [before, after] = samples(before, Counted::Regions(after));
        let found = rows(View::Regions, &before, &after);
        let rates: Vec<_> = found
            .iter()
            .map(|row| (&row.name[..], &row.figures[..3]))
            .collect();
        assert_eq!(
            rates,
            [
                ("t,,1", &[3.0, 2.0, 1.0][..]),
                ("t,m,2", &[3.0, 3.0, 0.0]),
                ("u,,1", &[0.0, 0.0, 0.0])
            ]
        );
        let found = rows(View::Tables, &before, &after);
        assert_eq!(found[0].name, "t");
        assert_eq!(found[0].figures, [6.0, 5.0, 1.0, 0.0, 0.0, 0.0, 3.0]);
    }

    #[test]
    fn methods_have_calls_errors_and_times() {
        let counters = |calls, errors, seconds| Counters {
            calls,
            errors,
            seconds,
        };
        let of = |name: &str, counters| BTreeMap::from([(name.to_owned(), counters)]);
        let before = of("native Get", counters(10.0, 0.0, 1.0));
        let mut after = of("native Get", counters(14.0, 2.0, 1.5));
        after.insert("native Scan".to_owned(), counters(0.0, 0.0, 0.0));
        let [before, after] = samples(Counted::Methods(before), Counted::Methods(after));
        let found = rows(View::Methods, &before, &after);
        assert_eq!(found.len(), 1, "a method that was never called has no row");
        assert_eq!(found[0].figures, [2.0, 1.0, 125.0, 14.0]);
    }

    /// Goal: keys choose the view and the column; the largest comes first.
    #[test]
    fn keys_sort_and_leave() {
        let (mut picture, is_once) = picture("top 'regions', SORT => 'reads'").unwrap();
        assert!(!is_once);
        let row = |name: &str, reads: f64, writes: f64| Row {
            name: name.to_owned(),
            figures: vec![reads + writes, reads, writes, 0.0, 0.0, 0.0, 0.0],
        };
        picture.rows = vec![row("a", 1.0, 5.0), row("b", 2.0, 0.5), row("c", 0.0, 9.0)];
        let order =
            |picture: &Picture| -> String { picture.sorted().iter().map(|row| &row.name[..]).collect() };
        assert_eq!(order(&picture), "bac");
        for (key, expected) in [
            (b'w', "cab"),
            (b'n', "abc"),
            (b'a', "cab"),
            (b'?', "cab"),
            (b'r', "bac"),
        ] {
            assert_eq!(picture.press(key), Pressed::Nothing);
            assert_eq!(order(&picture), expected, "{}", char::from(key));
        }
        assert_eq!(picture.title(3), "regions by reads, 3 of 3, every 1 s");
        assert!(
            picture
                .keys()
                .starts_with("1 tables  2 regions  3 methods  a requests  r reads")
        );
        assert_eq!(picture.press(b'3'), Pressed::OtherView);
        assert_eq!((picture.view, order(&picture)), (View::Methods, String::new()));
        for key in LEAVE {
            assert_eq!(picture.press(key), Pressed::Leave);
        }
    }

    #[test]
    fn lines_fit_the_screen() {
        let (picture, _) = picture("top").unwrap();
        let row = Row {
            name: "t,a long key in the middle,1700000000000.0123456789abcdef.".to_owned(),
            figures: vec![2_000_000.25, 0.25, 12.0, 0.0, 0.0, 0.0, 0.0],
        };
        let line = picture.line(&row, 110);
        assert_eq!(line.chars().count(), 110);
        assert!(
            line.starts_with("t,a long key..56789abcdef. ") && line.contains(" 2000000         0.2 "),
            "{line}"
        );
        assert_eq!(picture.header(110).chars().count(), 110);
    }

    #[test]
    fn arguments_are_checked() {
        for (text, once) in [
            ("top --once", true),
            ("top 'methods', ONCE => true", true),
            ("top INTERVAL => 0.5", false),
        ] {
            assert_eq!(picture(text).unwrap().1, once, "{text}");
        }
        for (text, why) in [
            ("top 'servers'", "none of tables, regions, methods"),
            ("top SORT => 'calls'", "none of requests, reads"),
            ("top INTERVAL => 0", "from 0.1 to 3600"),
            ("top SORTED => 'reads'", "unknown option SORTED"),
        ] {
            let error = picture(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}

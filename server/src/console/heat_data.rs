//! The key visualizer's picture as JSON: the data that the page draws, for other programs too.

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::{KeyLayout, TableName, escape};
use serde::Serialize;

use super::paging::Params;
use super::{Made, Refusal, table};
use crate::observe::heat::{Axis, Kind, Picture, Query};
use crate::server::Server;

/// Raised when a field changes its meaning.
const FORMAT: u32 = 1;

/// Most rows and columns of a picture: more than the lines of a screen, and an answer of about a
/// megabyte.
const ROWS_MAX: i64 = 512;
const COLUMNS_MAX: i64 = 720;

const ROWS: i64 = 192;
const COLUMNS: i64 = 360;

/// Number of regions from which a picture's rows are regions, unless keys are asked for.
const REGIONS_MIN: usize = 4;

/// Default length of the picture's past: an hour.
const BACK_MS: i64 = 3_600_000;

/// Most tables on the map of all tables, the busiest ones.
const TABLES_MAX: usize = 24;

/// A row of the grid.
#[derive(Debug, Serialize)]
struct Row {
    /// On a map of several tables: that of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    /// As HBase prints bytes.
    start: String,
    /// The start by the fields of the table's key layout, if it declares one.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_fields: Option<String>,
    /// Empty: the end of the table.
    end: String,
    /// Encoded name of the region that the first key is in.
    region: String,
    /// Regions that the row has keys of.
    regions: usize,
    /// Total traffic of the row.
    total: f64,
}

/// The answer.
#[derive(Debug, Serialize)]
pub(super) struct Data {
    format: u32,
    table: String,
    kind: &'static str,
    axis: &'static str,
    start: String,
    end: String,
    now_ms: u64,
    /// Start of the column that is not closed yet: before it nothing is added any more.
    open_ms: u64,
    from_ms: u64,
    step_ms: u64,
    columns: usize,
    rows: Vec<Row>,
    /// For every second, column after column.
    rates: Vec<f64>,
    /// Length of all columns with load, in seconds.
    load_seconds: f64,
}

/// Parameters of an address.
pub(super) struct Asked {
    pub(super) query: Query,
    /// The table's regions in key order.
    pub(super) regions: Vec<RegionInfo>,
    /// Whether the picture's time ends now.
    pub(super) follows: bool,
}

/// Reads the parameters `table`, `kind`, `axis`, `start`, `end`, `from`, `to`, `rows` and `columns`.
pub(super) fn asked(server: &Server, params: &Params) -> Made<Asked> {
    let heat = &server.load().heat;
    if !heat.is_on() {
        return Err(Refusal::NotFound(
            "The key visualizer is off: key_visualizer.bytes is 0.".to_owned(),
        ));
    }
    let name = params
        .get("table")
        .ok_or_else(|| Refusal::BadRequest("table is missing".to_owned()))?;
    let table = table::table_named(name)?;
    let regions = server.shown_regions(&table)?;
    let (start, end) = (params.key("start")?, params.key("end")?);
    if !end.is_empty() && end <= start {
        return Err(Refusal::BadRequest(
            "end must be a key after start, or be left out".to_owned(),
        ));
    }
    let now_ms = heat.now_ms();
    let (from, to) = (params.number("from")?, params.number("to")?);
    let from_ms = from_moment(from.unwrap_or(-BACK_MS), now_ms, heat.first_ms(&table));
    let to_ms = to.map_or(now_ms, |to| moment(to, now_ms)).saturating_add(1);
    if to_ms <= moment(from.unwrap_or(-BACK_MS), now_ms) {
        return Err(Refusal::BadRequest("to must be a time after from".to_owned()));
    }
    let from_ms = from_ms.min(to_ms - 1);
    let in_range = |region: &&RegionInfo| {
        (region.end.is_empty() || region.end > start) && (end.is_empty() || region.start < end)
    };
    let several = regions.iter().filter(in_range).count() >= REGIONS_MIN;
    let query = Query {
        table,
        kind: named(params, "kind", Kind::from_name, Kind::ALL[1])?,
        axis: named(
            params,
            "axis",
            Axis::from_name,
            if several { Axis::Regions } else { Axis::Keys },
        )?,
        start,
        end,
        from_ms,
        to_ms,
        rows_max: bounded(params, "rows", ROWS, ROWS_MAX)?,
        columns_max: bounded(params, "columns", COLUMNS, COLUMNS_MAX)?,
    };
    Ok(Asked {
        query,
        regions,
        follows: to.is_none(),
    })
}

impl Asked {
    /// The picture.
    pub(super) fn picture(&self, server: &Server) -> Picture {
        let boundaries: Vec<Vec<u8>> = self.regions.iter().map(|region| region.start.clone()).collect();
        server.load().heat.picture(&self.query, &boundaries)
    }

    /// The region of the row's first key, and the number of regions with keys in the row.
    pub(super) fn regions_of(&self, start: &[u8], end: &[u8]) -> (Option<&RegionInfo>, usize) {
        regions_of(&self.regions, start, end)
    }
}

/// The region of the first key, of regions in key order, and the number of those that have keys of the range.
fn regions_of<'a>(regions: &'a [RegionInfo], start: &[u8], end: &[u8]) -> (Option<&'a RegionInfo>, usize) {
    let after = regions.partition_point(|region| region.start.as_slice() <= start);
    let last = if end.is_empty() {
        regions.len()
    } else {
        regions.partition_point(|region| region.start.as_slice() < end)
    };
    let first = after.saturating_sub(1);
    (regions.get(first), last.saturating_sub(first))
}

/// Start of a picture. A start relative to now is moved up to the table's first load, because there
/// is nothing to show before it.
fn from_moment(from: i64, now_ms: u64, first_ms: u64) -> u64 {
    let asked = moment(from, now_ms);
    if from < 0 {
        asked.max(first_ms.min(now_ms))
    } else {
        asked
    }
}

/// A time in milliseconds since 1970, or before now when it is negative.
fn moment(ms: i64, now_ms: u64) -> u64 {
    match u64::try_from(ms) {
        Ok(ms) => ms.min(now_ms),
        Err(_) => now_ms.saturating_sub(ms.unsigned_abs()),
    }
}

fn named<T>(params: &Params, name: &str, from_name: fn(&str) -> Option<T>, default: T) -> Made<T> {
    let Some(text) = params.get(name) else {
        return Ok(default);
    };
    from_name(text).ok_or_else(|| Refusal::BadRequest(format!("{name} has the unknown value {text}")))
}

fn bounded(params: &Params, name: &str, default: i64, most: i64) -> Made<usize> {
    let number = params.number(name)?.unwrap_or(default);
    if (1..=most).contains(&number) {
        Ok(number as usize)
    } else {
        Err(Refusal::BadRequest(format!(
            "{name} is {number}, and must be from 1 to {most}"
        )))
    }
}

/// The answer to `/api/heat` without a table: the busiest tables, one below the other, with the same columns.
fn data_of_all(server: &Server, params: &Params) -> Made<Data> {
    let heat = &server.load().heat;
    if params.get("start").or(params.get("end")).is_some() {
        return Err(Refusal::BadRequest("start and end need a table".to_owned()));
    }
    let now_ms = heat.now_ms();
    let kind = named(params, "kind", Kind::from_name, Kind::ALL[1])?;
    let (rows, columns) = (
        bounded(params, "rows", ROWS, ROWS_MAX)?,
        bounded(params, "columns", COLUMNS, COLUMNS_MAX)?,
    );
    let mut tables: Vec<_> = heat.tables().into_iter().map(|(table, _)| table).collect();
    tables.retain(|table| !table.is_system() && server.shows_table(table));
    tables.truncate(TABLES_MAX.min(rows));
    let first_ms = tables
        .iter()
        .map(|table| heat.first_ms(table))
        .min()
        .unwrap_or(now_ms);
    let from_ms = from_moment(params.number("from")?.unwrap_or(-BACK_MS), now_ms, first_ms);
    let to_ms = params
        .number("to")?
        .map_or(now_ms, |to| moment(to, now_ms))
        .saturating_add(1);
    if to_ms <= from_ms {
        return Err(Refusal::BadRequest("to must be a time after from".to_owned()));
    }
    let query = |table: TableName| Query {
        table,
        kind,
        axis: Axis::Keys,
        start: Vec::new(),
        end: Vec::new(),
        from_ms,
        to_ms,
        rows_max: (rows / tables.len().max(1)).max(1),
        columns_max: columns,
    };
    let queries: Vec<Query> = tables.iter().cloned().map(query).collect();
    let pictures = heat.pictures(&queries, |table| server.boundaries(table));
    let mut data = Data {
        format: FORMAT,
        table: String::new(),
        kind: kind.as_str(),
        axis: Axis::Keys.as_str(),
        start: String::new(),
        end: String::new(),
        now_ms,
        open_ms: heat.open_ms(),
        from_ms: pictures.first().map_or(from_ms, |picture| picture.from_ms),
        step_ms: pictures
            .first()
            .map_or(to_ms - from_ms, |picture| picture.step_ms),
        columns: pictures.first().map_or(1, |picture| picture.columns),
        rows: Vec::new(),
        rates: Vec::new(),
        load_seconds: pictures
            .iter()
            .map(|picture| picture.load_seconds)
            .fold(0.0, f64::max),
    };
    for (query, picture) in queries.iter().zip(&pictures) {
        let regions = server.shown_regions(&query.table)?;
        let layout = layout_of(server, &query.table)?;
        for row in 0..picture.starts.len() {
            let (start, end) = picture.range(row, query);
            let (region, count) = regions_of(&regions, start, end);
            data.rows.push(Row {
                table: Some(query.table.to_string()),
                start: escape(start),
                start_fields: fields(layout.as_ref(), start),
                end: escape(end),
                region: region
                    .map(|region| region.encoded_name.clone())
                    .unwrap_or_default(),
                regions: count,
                total: three_digits(picture.totals[row]),
            });
        }
    }
    for column in 0..data.columns {
        for picture in &pictures {
            let height = picture.starts.len();
            let rates = &picture.rates[column * height..(column + 1) * height];
            data.rates
                .extend(rates.iter().map(|rate| three_digits(f64::from(*rate))));
        }
    }
    Ok(data)
}

/// The key layout that a table declares.
fn layout_of(server: &Server, table: &TableName) -> Result<Option<KeyLayout>, Refusal> {
    if !server.has_tables() {
        return Ok(None);
    }
    Ok(server.engine().describe_table(table)?.0.key_layout())
}

/// A key by the fields of its layout; `None` for the first key of a table.
fn fields(layout: Option<&KeyLayout>, key: &[u8]) -> Option<String> {
    let layout = layout.filter(|_| !key.is_empty())?;
    Some(layout.show(key).to_string())
}

/// The answer to `/api/heat`.
pub(super) fn data(server: &Server, params: &Params) -> Made<Data> {
    if params.get("table").is_none() && server.load().heat.is_on() {
        return data_of_all(server, params);
    }
    let asked = asked(server, params)?;
    let (picture, query) = (asked.picture(server), &asked.query);
    let layout = layout_of(server, &query.table)?;
    let row = |index: usize| {
        let (start, end) = picture.range(index, query);
        let (region, regions) = asked.regions_of(start, end);
        Row {
            table: None,
            start: escape(start),
            start_fields: fields(layout.as_ref(), start),
            end: escape(end),
            region: region
                .map(|region| region.encoded_name.clone())
                .unwrap_or_default(),
            regions,
            total: three_digits(picture.totals[index]),
        }
    };
    Ok(Data {
        format: FORMAT,
        table: query.table.to_string(),
        kind: query.kind.as_str(),
        axis: query.axis.as_str(),
        start: escape(&query.start),
        end: escape(&query.end),
        now_ms: server.load().heat.now_ms(),
        open_ms: server.load().heat.open_ms(),
        from_ms: picture.from_ms,
        step_ms: picture.step_ms,
        columns: picture.columns,
        rows: (0..picture.starts.len()).map(row).collect(),
        rates: picture
            .rates
            .iter()
            .map(|rate| three_digits(f64::from(*rate)))
            .collect(),
        load_seconds: picture.load_seconds,
    })
}

/// The number to three significant digits: a colour shows no more, and the answer is shorter.
fn three_digits(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return 0.0;
    }
    let unit = 10_f64.powi(number.abs().log10().floor() as i32 - 2);
    let rounded = (number / unit).round() * unit;
    // A power of ten below 1 is not exact: without this, 0.3 would be 0.30000000000000004.
    format!("{rounded:.12}").parse().unwrap_or(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, rounded) in [
            (0.0, "0.0"),
            (0.123_456, "0.123"),
            (0.3, "0.3"),
            (12_345.0, "12300.0"),
            (9.999, "10.0"),
        ] {
            assert_eq!(format!("{:?}", three_digits(number)), rounded);
        }
    }

    #[test]
    fn times_are_moments_or_back_from_now() {
        assert_eq!(moment(5, 1_000), 5);
        assert_eq!(moment(5_000, 1_000), 1_000);
        assert_eq!(moment(-300, 1_000), 700);
        assert_eq!(moment(i64::MIN, 1_000), 0);
    }

    #[test]
    fn a_picture_begins_with_the_first_load() {
        for (from, begins) in [
            (-3_600_000, 9_000_000),
            (-500_000, 9_500_000),
            (5, 5),
            (i64::MIN, 9_000_000),
        ] {
            assert_eq!(from_moment(from, 10_000_000, 9_000_000), begins, "{from}");
        }
        // The clock was set back: the first load is in the future.
        assert_eq!(from_moment(-1, 10, 20), 10);
    }
}

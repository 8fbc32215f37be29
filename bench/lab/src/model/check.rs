//! Reads a model, and checks every value of it. Each error names file, line, field, and the allowed values.

use std::collections::BTreeMap;
use std::path::Path;

use basalt_client::Compression;
use basalt_load::error::{Error, Result};
use basalt_load::load::choose::Distribution;
use basalt_types::schema::{KeyField, KeyLayout};
use clap::ValueEnum;
use toml::Spanned;

use super::file::{
    Family, Field, FieldKind, Key, LAYOUTS_MAX, Model, Pattern, PatternKind, ROWS_MAX, Rehearsal, Segment,
    Table, VALUE_BYTES_MAX,
};
use super::text::{FamilyText, FieldText, ModelText, PatternText, Source, TableText};
use super::time::{DAY_MS, TimeForm, unit_ms};

/// Reads and checks a file.
pub(super) fn read(path: &Path) -> Result<Model> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    parse(Source { path, text: &text })
}

/// Checks a text.
pub(super) fn parse(source: Source<'_>) -> Result<Model> {
    Checker { source }.model(source.parse()?)
}

struct Checker<'a> {
    source: Source<'a>,
}

impl Checker<'_> {
    fn model(&self, text: ModelText) -> Result<Model> {
        let layouts: Vec<String> = text
            .layouts
            .get_ref()
            .iter()
            .map(|name| name.get_ref().clone())
            .collect();
        if layouts.is_empty() || layouts.len() > LAYOUTS_MAX {
            let what = format!(
                "layouts: {} are named; a model has from 1 to {LAYOUTS_MAX}",
                layouts.len()
            );
            return Err(self.source.error(text.layouts.span(), what));
        }
        for name in text.layouts.get_ref() {
            self.name("layouts", name)?;
        }
        let mut fields = BTreeMap::new();
        for (name, field) in &text.fields {
            fields.insert(name.clone(), self.field(name, field)?);
        }
        let mut tables: Vec<Table> = Vec::new();
        for table in &text.tables {
            let table_checked = self.table(table.get_ref(), &layouts, &fields)?;
            if tables.iter().any(|other| other.name == table_checked.name) {
                let what = format!("tables.name: two tables are called {:?}", table_checked.name);
                return Err(self.source.error(table.get_ref().name.span(), what));
            }
            tables.push(table_checked);
        }
        let mut patterns: Vec<Pattern> = Vec::new();
        for pattern in &text.patterns {
            let checked = self.pattern(pattern.get_ref(), &tables)?;
            if let Some(other) = patterns
                .iter()
                .find(|other| other.function() == checked.function())
            {
                let what = format!(
                    "patterns.name: {:?} is too much like {:?}",
                    checked.name, other.name
                );
                return Err(self.source.error(pattern.get_ref().name.span(), what));
            }
            patterns.push(checked);
        }
        if tables.is_empty() || patterns.is_empty() {
            return Err(self
                .source
                .error(0..0, "a model has at least one table and one pattern"));
        }
        let rehearsal = match &text.rehearsal {
            None => Rehearsal {
                servers: 8,
                requests_per_second: 5_000,
            },
            Some(given) => Rehearsal {
                servers: self.source.number("rehearsal.servers", &given.servers, 2..65)?,
                requests_per_second: self.source.number(
                    "rehearsal.requests_per_second",
                    &given.requests_per_second,
                    1..1_000_000_001,
                )?,
            },
        };
        Ok(Model {
            title: text.title,
            layouts,
            rehearsal,
            tables,
            patterns,
        })
    }

    /// A name that becomes part of the names of tables, files and functions.
    fn name(&self, of: &str, name: &Spanned<String>) -> Result<String> {
        let text = name.get_ref();
        let is_plain = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
        };
        if text.starts_with(|first: char| first.is_ascii_lowercase()) && text.chars().all(is_plain) {
            return Ok(text.clone());
        }
        let what = format!("{of}: {text:?} must begin with a small letter, and have a-z, 0-9 and _ only");
        Err(self.source.error(name.span(), what))
    }

    fn field(&self, name: &str, text: &Spanned<FieldText>) -> Result<Field> {
        let (of, source) = (text.get_ref(), self.source);
        let kind = of.kind.get_ref().as_str();
        let named = |part: &str| format!("fields.{name}.{part}");
        let missing = |part: &str| source.error(text.span(), format!("{} is missing", named(part)));
        if name.starts_with("reversed_") {
            let what = format!("fields.{name}: a key says reversed_, its value has the name without it");
            return Err(source.error(text.span(), what));
        }
        let unused = |has: &str, parts: &[&str]| -> Result<()> {
            for part in parts {
                let part_named = named(part);
                match *part {
                    "unit" => source.unused(kind, &part_named, of.unit.as_ref(), has)?,
                    "format" => source.unused(kind, &part_named, of.format.as_ref(), has)?,
                    "count" => source.unused(kind, &part_named, of.count.as_ref(), has)?,
                    "skew" => source.unused(kind, &part_named, of.skew.as_ref(), has)?,
                    "text" => source.unused(kind, &part_named, of.text.as_ref(), has)?,
                    "buckets" => source.unused(kind, &part_named, of.buckets.as_ref(), has)?,
                    _ => source.unused(kind, &part_named, of.of.as_ref(), has)?,
                }
            }
            Ok(())
        };
        let is_text = of.text.as_ref().is_some_and(|text| *text.get_ref());
        let kind = match kind {
            "time" => {
                unused("unit or format", &["count", "skew", "text", "buckets", "of"])?;
                FieldKind::Time(match (&of.unit, &of.format) {
                    (Some(_), Some(format)) => {
                        let what = format!("{}: give unit (a number) or format (digits)", named("format"));
                        return Err(source.error(format.span(), what));
                    }
                    (None, Some(format)) => TimeForm::digits(format.get_ref()).map_err(|what| {
                        source.error(format.span(), format!("{}: {what}", named("format")))
                    })?,
                    (Some(unit), None) => TimeForm::Number {
                        unit_ms: unit_ms(unit.get_ref()).map_err(|what| {
                            source.error(unit.span(), format!("{}: {what}", named("unit")))
                        })?,
                    },
                    (None, None) => TimeForm::Number { unit_ms: 1 },
                })
            }
            "id" => {
                unused("count, skew and text", &["unit", "format", "buckets", "of"])?;
                let count = of.count.as_ref().ok_or_else(|| missing("count"))?;
                let allowed = [
                    Distribution::Uniform,
                    Distribution::Zipfian,
                    Distribution::Hotspot,
                    Distribution::Sequential,
                ];
                FieldKind::Id {
                    count: source.number(&named("count"), count, 1..1 << 62)?,
                    skew: self.skew(&named("skew"), of.skew.as_ref(), &allowed)?,
                }
            }
            "sequence" => {
                unused("text", &["unit", "format", "count", "skew", "buckets", "of"])?;
                FieldKind::Sequence
            }
            "salt" => {
                unused("buckets and of", &["unit", "format", "count", "skew", "text"])?;
                let buckets = of.buckets.as_ref().ok_or_else(|| missing("buckets"))?;
                let hashed = of.of.as_ref().ok_or_else(|| missing("of"))?;
                FieldKind::Salt {
                    buckets: u16::try_from(source.number(&named("buckets"), buckets, 1..257)?).unwrap_or(256),
                    of: hashed
                        .get_ref()
                        .iter()
                        .map(|name| name.get_ref().clone())
                        .collect(),
                }
            }
            other => {
                let what = format!(
                    "{} = {other:?}: allowed are time, id, sequence, salt",
                    named("kind")
                );
                return Err(source.error(of.kind.span(), what));
            }
        };
        Ok(Field { kind, is_text })
    }

    /// A distribution; uniform unless another is given.
    fn skew(
        &self,
        name: &str,
        value: Option<&Spanned<String>>,
        allowed: &[Distribution],
    ) -> Result<Distribution> {
        let Some(value) = value else {
            return Ok(Distribution::Uniform);
        };
        let found = Distribution::from_str(value.get_ref(), false).ok();
        found.filter(|found| allowed.contains(found)).ok_or_else(|| {
            let names = allowed.iter().filter_map(ValueEnum::to_possible_value);
            let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
            let what = format!("{name} = {:?}: allowed are {}", value.get_ref(), names.join(", "));
            self.source.error(value.span(), what)
        })
    }

    fn table(&self, text: &TableText, layouts: &[String], fields: &BTreeMap<String, Field>) -> Result<Table> {
        let source = self.source;
        let keep_days = match &text.keep_days {
            Some(days) => source.number("tables.keep_days", days, 1..20_001)?,
            None => 0,
        };
        let mut families = Vec::new();
        for family in &text.families {
            families.push(self.family(family.get_ref(), keep_days)?);
        }
        if families.is_empty() {
            return Err(source.error(text.name.span(), "tables.families: a table has at least one"));
        }
        Ok(Table {
            name: self.name("tables.name", &text.name)?,
            rows: source.number("tables.rows", &text.rows, 1..ROWS_MAX + 1)?,
            rows_per_day: source.positive("tables.rows_per_day", &text.rows_per_day)?,
            keep_days: if keep_days == 0 { 365 } else { keep_days },
            regions: source.number("tables.regions", &text.regions, 1..1_001)?,
            keys: self.keys(text, layouts, fields)?,
            families,
        })
    }

    fn family(&self, text: &FamilyText, keep_days: u64) -> Result<Family> {
        let source = self.source;
        let name = text.name.get_ref();
        let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            let what = format!("tables.families.name: {name:?} must have letters, digits and _ only");
            return Err(source.error(text.name.span(), what));
        }
        let columns = text.columns.get_ref();
        if let Some(wrong) = columns
            .iter()
            .find(|column| !column.chars().all(is_plain) || *column == "n")
        {
            let what = format!(
                "tables.families.columns: {wrong:?} must have letters, digits and _ only, and not be n, which has a \
                 row's number"
            );
            return Err(source.error(text.columns.span(), what));
        }
        let compression = match &text.compression {
            None => None,
            Some(given) => Some(Compression::from_name(given.get_ref()).ok_or_else(|| {
                let names: Vec<&str> = Compression::DESCRIPTOR
                    .values
                    .iter()
                    .map(|(name, _)| *name)
                    .collect();
                let what = format!(
                    "tables.families.compression = {:?}: allowed are {}",
                    given.get_ref(),
                    names.join(", ")
                );
                source.error(given.span(), what)
            })?),
        };
        let versions = match &text.versions {
            None => None,
            Some(given) => Some(source.number("tables.families.versions", given, 1..10_001)? as u32),
        };
        let ttl = u32::try_from(keep_days * DAY_MS / 1_000).unwrap_or(u32::MAX);
        Ok(Family {
            name: name.clone(),
            columns: columns.clone(),
            value_bytes: source.number(
                "tables.families.value_bytes",
                &text.value_bytes,
                0..VALUE_BYTES_MAX + 1,
            )? as usize,
            compression,
            versions,
            ttl_seconds: (ttl > 0).then_some(ttl),
        })
    }

    /// The key of each layout.
    fn keys(
        &self,
        text: &TableText,
        layouts: &[String],
        fields: &BTreeMap<String, Field>,
    ) -> Result<Vec<Key>> {
        let source = self.source;
        match (&text.key, &text.keys) {
            (Some(key), None) => {
                let key = self.key("tables.key", key, fields)?;
                Ok(vec![key; layouts.len()])
            }
            (None, Some(keys)) => {
                if let Some((name, key)) = keys.get_ref().iter().find(|(name, _)| !layouts.contains(name)) {
                    let what = format!(
                        "tables.keys.{name}: no such layout; there are {}",
                        layouts.join(", ")
                    );
                    return Err(source.error(key.span(), what));
                }
                let of_layout = |layout: &String| match keys.get_ref().get(layout) {
                    Some(key) => self.key(&format!("tables.keys.{layout}"), key, fields),
                    None => Err(source.error(
                        keys.span(),
                        format!(
                            "tables.keys.{layout} is missing: give one key for each layout, or key for all"
                        ),
                    )),
                };
                layouts.iter().map(of_layout).collect()
            }
            _ => Err(source.error(
                text.name.span(),
                "tables: give key, or keys with one for each layout",
            )),
        }
    }

    fn key(&self, name: &str, text: &Spanned<String>, fields: &BTreeMap<String, Field>) -> Result<Key> {
        let wrong = |what: String| {
            self.source
                .error(text.span(), format!("{name} = {:?}: {what}", text.get_ref()))
        };
        let layout = KeyLayout::parse(text.get_ref()).map_err(&wrong)?;
        let mut segments: Vec<Segment> = Vec::new();
        let mut offset = 0;
        for in_key in layout.fields() {
            let value = in_key.value_name();
            let Some(field) = fields.get(value) else {
                let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                return Err(wrong(format!(
                    "[fields] has no {value}; it has {}",
                    known.join(", ")
                )));
            };
            check_room(in_key, field).map_err(&wrong)?;
            segments.push(Segment {
                name: value.to_owned(),
                in_key: in_key.clone(),
                field: field.clone(),
                offset,
            });
            offset += in_key.bytes().unwrap_or_default();
        }
        for segment in &segments {
            if let FieldKind::Salt { of, .. } = &segment.field.kind {
                let is_hashed = |name: &&String| {
                    let found = segments.iter().find(|other| other.name == **name);
                    found.is_some_and(|found| !matches!(found.field.kind, FieldKind::Salt { .. }))
                };
                if of.is_empty() || !of.iter().all(|name| is_hashed(&name)) {
                    return Err(wrong(format!(
                        "{} is a salt of {}, which this key must have, too",
                        segment.name,
                        if of.is_empty() {
                            "nothing".to_owned()
                        } else {
                            of.join(", ")
                        }
                    )));
                }
            }
        }
        Ok(Key {
            text: text.get_ref().clone(),
            layout,
            segments,
        })
    }

    fn pattern(&self, text: &PatternText, tables: &[Table]) -> Result<Pattern> {
        let source = self.source;
        let name = text.name.get_ref();
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(source.error(
                text.name.span(),
                "patterns.name: a pattern needs words of one line",
            ));
        }
        let Some(table) = tables
            .iter()
            .position(|table| table.name == *text.table.get_ref())
        else {
            let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
            let what = format!(
                "patterns.table = {:?}: no such table; there are {}",
                text.table.get_ref(),
                names.join(", ")
            );
            return Err(source.error(text.table.span(), what));
        };
        let kind = self.pattern_kind(text, &tables[table])?;
        let allowed = Distribution::value_variants();
        Ok(Pattern {
            name: name.clone(),
            table,
            kind,
            rate: text
                .rate
                .as_ref()
                .map(|rate| source.positive("patterns.rate", rate))
                .transpose()?,
            p99_ms: text
                .p99_ms
                .as_ref()
                .map(|bound| source.positive("patterns.p99_ms", bound))
                .transpose()?,
            skew: self.skew("patterns.skew", text.skew.as_ref(), allowed)?,
        })
    }

    fn pattern_kind(&self, text: &PatternText, table: &Table) -> Result<PatternKind> {
        let source = self.source;
        let kind = text.kind.get_ref().as_str();
        match kind {
            "write" => {
                let has = "batch, rate and p99_ms";
                source.unused(kind, "patterns.skew", text.skew.as_ref(), has)?;
                source.unused(kind, "patterns.of", text.of.as_ref(), has)?;
                source.unused(kind, "patterns.span", text.span.as_ref(), has)?;
                source.unused(kind, "patterns.latest", text.latest.as_ref(), has)?;
                let batch = text.batch.as_ref();
                let batch = batch.map_or(Ok(100), |batch| {
                    source.number("patterns.batch", batch, 1..100_001)
                });
                Ok(PatternKind::Write { batch: batch? })
            }
            "get" => {
                let has = "skew, rate and p99_ms";
                source.unused(kind, "patterns.batch", text.batch.as_ref(), has)?;
                source.unused(kind, "patterns.of", text.of.as_ref(), has)?;
                source.unused(kind, "patterns.span", text.span.as_ref(), has)?;
                source.unused(kind, "patterns.latest", text.latest.as_ref(), has)?;
                Ok(PatternKind::Get)
            }
            "read" => {
                source.unused(
                    kind,
                    "patterns.batch",
                    text.batch.as_ref(),
                    "of, span, latest, skew, rate and p99_ms",
                )?;
                self.read(text, table)
            }
            other => {
                let what = format!("patterns.kind = {other:?}: allowed are write, get, read");
                Err(source.error(text.kind.span(), what))
            }
        }
    }

    fn read(&self, text: &PatternText, table: &Table) -> Result<PatternKind> {
        let source = self.source;
        let given = text.of.as_ref().map_or(&[][..], |of| of.get_ref());
        for name in given {
            let is_id = |key: &Key| {
                let found = key
                    .segments
                    .iter()
                    .find(|segment| segment.name == *name.get_ref());
                found.is_some_and(|found| {
                    matches!(found.field.kind, FieldKind::Id { .. } | FieldKind::Sequence)
                })
            };
            if let Some(key) = table.keys.iter().find(|key| !is_id(key)) {
                let what = format!(
                    "patterns.of: {:?} must be an id or a sequence in every key of {}, and is not in {:?}",
                    name.get_ref(),
                    table.name,
                    key.text
                );
                return Err(source.error(name.span(), what));
            }
        }
        let span_ms = match &text.span {
            None => None,
            Some(span) => {
                let span_ms = unit_ms(span.get_ref())
                    .map_err(|what| source.error(span.span(), format!("patterns.span: {what}")))?;
                let tells = |key: &Key| {
                    let mut times = key.segments.iter().filter_map(Segment::time);
                    times.any(|form| form.span_ms() <= span_ms)
                };
                if let Some(key) = table.keys.iter().find(|key| !tells(key)) {
                    let what = format!(
                        "patterns.span = {:?}: the key {:?} of {} has no time as exact as that",
                        span.get_ref(),
                        key.text,
                        table.name
                    );
                    return Err(source.error(span.span(), what));
                }
                Some(span_ms)
            }
        };
        if given.is_empty() && span_ms.is_none() && text.latest.is_none() {
            return Err(source.error(
                text.kind.span(),
                "patterns.kind = \"read\": it would read the whole table; give of, span or latest",
            ));
        }
        let latest = text.latest.as_ref();
        let latest = latest
            .map(|latest| source.number("patterns.latest", latest, 1..100_001))
            .transpose()?;
        Ok(PatternKind::Read {
            of: given.iter().map(|name| name.get_ref().clone()).collect(),
            span_ms,
            latest: latest.map(|latest| latest as u32),
        })
    }
}

/// Whether the values of a field fit the bytes that a key gives it.
fn check_room(in_key: &KeyField, field: &Field) -> std::result::Result<(), String> {
    let (name, bytes) = (in_key.name(), in_key.bytes());
    let most = match &field.kind {
        FieldKind::Time(form) => {
            if let Some(digits) = form.digits_len() {
                if in_key.is_reversed() {
                    return Err(format!("{name}: digits cannot be reversed; give the time a unit"));
                }
                return match bytes {
                    Some(bytes) if bytes != digits => Err(format!("{name} has {digits} digits, not {bytes}")),
                    _ => Ok(()),
                };
            }
            // The end of the year 2999.
            32_503_680_000_000 / form.span_ms()
        }
        FieldKind::Id { count, .. } => count - 1,
        FieldKind::Sequence => 0,
        FieldKind::Salt { buckets, .. } => u64::from(buckets - 1),
    };
    if field.is_text || bytes.is_none() {
        if in_key.is_reversed() {
            return Err(format!("{name}: text cannot be reversed; give it up to 8 bytes"));
        }
        if bytes.is_none() && matches!(field.kind, FieldKind::Salt { .. } | FieldKind::Time(_)) {
            return Err(format!(
                "{name}: only an id, a sequence or a time in digits can be the rest"
            ));
        }
        let digits = most.to_string().len();
        return match bytes {
            Some(bytes) if bytes < digits => {
                Err(format!("{name} needs {digits} digits, and has {bytes} bytes"))
            }
            _ => Ok(()),
        };
    }
    let greatest = in_key
        .greatest()
        .ok_or_else(|| format!("{name}: a number has from 1 to 8 bytes; say text = true for digits"))?;
    if most > greatest {
        return Err(format!("{name} goes up to {most}, and its bytes to {greatest}"));
    }
    Ok(())
}

//! Settings of compactions that a table or family has of its own.
//!
//! As in HBase a family's configuration counts before the table's options, and these before the server's
//! setting. An unreadable value is none: a table created without checks may have one.

use std::borrow::Cow;
use std::time::Duration;

use crate::options::Options;
use crate::schema::store_options::{
    BLOCKING_FILES, MAJOR_PERIOD_MS, MAX_FILES, MIN_BYTES, MIN_FILES, MIN_FILES_OLD, RATIO,
};
use crate::schema::{Attributes, FamilyDescriptor, TableDescriptor};

/// Settings of compactions.
const ALL: [&str; 7] = [
    BLOCKING_FILES,
    MAJOR_PERIOD_MS,
    MIN_FILES,
    MIN_FILES_OLD,
    MAX_FILES,
    MIN_BYTES,
    RATIO,
];

/// The server's settings of compactions with those that the family or the table has of its own.
pub(crate) fn options_of<'o>(
    table: &TableDescriptor,
    family: &FamilyDescriptor,
    options: &'o Options,
) -> Cow<'o, Options> {
    with_own(&[&family.configuration, &table.attributes], options)
}

fn with_own<'o>(own: &[&Attributes], options: &'o Options) -> Cow<'o, Options> {
    let has_own =
        |of: &&Attributes| !of.is_empty() && ALL.iter().any(|name| of.contains_key(name.as_bytes()));
    if !own.iter().any(has_own) {
        return Cow::Borrowed(options);
    }
    let text = |name: &str| {
        let mut values = own.iter().filter_map(|of| of.get(name.as_bytes()));
        values.find_map(|raw| std::str::from_utf8(raw).ok().map(str::trim))
    };
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    let count = |name: &str| usize::try_from(number(name)?).ok();
    let mut changed = options.clone();
    let set = |to: &mut usize, value: Option<usize>| *to = value.unwrap_or(*to);
    set(&mut changed.compaction_blocking_files, count(BLOCKING_FILES));
    set(
        &mut changed.compaction_min_files,
        count(MIN_FILES).or_else(|| count(MIN_FILES_OLD)),
    );
    set(&mut changed.compaction_max_files, count(MAX_FILES));
    if let Some(period) = number(MAJOR_PERIOD_MS) {
        changed.compaction_major_period = Duration::from_millis(period);
    }
    if let Some(bytes) = number(MIN_BYTES) {
        changed.compaction_min_bytes = bytes;
    }
    let ratio = text(RATIO).and_then(|text| text.parse::<f64>().ok());
    if let Some(ratio) = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
        changed.compaction_ratio = ratio;
    }
    Cow::Owned(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TableName;
    use crate::schema::store_options::MULTIPLIER;

    fn table() -> TableDescriptor {
        TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![FamilyDescriptor::new(b"f")])
    }

    #[test]
    fn a_table_without_own_settings_has_the_servers() {
        let options = Options::default();
        let table = table();
        assert!(matches!(
            options_of(&table, &table.families[0], &options),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_familys_settings_count_before_the_tables() {
        let options = Options::default();
        let mut table = table();
        for (name, value) in [
            (MULTIPLIER, "7"),
            (BLOCKING_FILES, "100"),
            (MAJOR_PERIOD_MS, "0"),
            (MIN_FILES_OLD, "4"),
            (MAX_FILES, "many"),
            (MIN_BYTES, "1000"),
            (RATIO, "2.5"),
        ] {
            table.attributes.insert(name.into(), value.into());
        }
        table.families[0]
            .configuration
            .insert(BLOCKING_FILES.into(), b"200".to_vec());
        table.families[0]
            .configuration
            .insert(MIN_FILES.into(), b"5".to_vec());
        assert_eq!(table.block_multiplier(), Some(7));
        let own = options_of(&table, &FamilyDescriptor::new(b"g"), &options);
        assert_eq!(
            (own.compaction_blocking_files, own.compaction_min_files),
            (100, 4)
        );
        assert_eq!(own.compaction_major_period, Duration::ZERO);
        assert_eq!(
            (
                own.compaction_max_files,
                own.compaction_min_bytes,
                own.compaction_ratio
            ),
            (options.compaction_max_files, 1000, 2.5)
        );
        let of_family = options_of(&table, &table.families[0], &options);
        assert_eq!(
            (
                of_family.compaction_blocking_files,
                of_family.compaction_min_files
            ),
            (200, 5)
        );
    }
}

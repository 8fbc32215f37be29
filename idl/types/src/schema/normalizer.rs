//! A table's options about the normalizer.

use std::time::Duration;

use super::family::parse_bool;
use super::{Attributes, TableDescriptor, parse_attribute};

/// Options of a table that the normalizer reads. An unreadable one has its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizerOptions {
    /// NORMALIZATION_ENABLED.
    pub enabled: bool,
    /// NORMALIZER_TARGET_REGION_SIZE_MB.
    pub target_mib: Option<u64>,
    /// NORMALIZER_TARGET_REGION_COUNT.
    pub target_regions: Option<u64>,
    /// Regions that a table must have before some are merged.
    pub merge_min_regions: usize,
    /// Regions that are younger are not merged.
    pub merge_min_age: Duration,
    /// Regions that are smaller are not merged.
    pub merge_min_mib: u64,
}

impl Default for NormalizerOptions {
    fn default() -> Self {
        Self {
            enabled: false,
            target_mib: None,
            target_regions: None,
            merge_min_regions: 3,
            merge_min_age: Duration::from_hours(3 * 24),
            merge_min_mib: 0,
        }
    }
}

impl TableDescriptor {
    /// The table's options about the normalizer.
    pub fn normalizer_options(&self) -> NormalizerOptions {
        let defaults = NormalizerOptions::default();
        let of = &self.attributes;
        let days = number(of, "hbase.normalizer.merge.min_region_age.days");
        let age = days.map(|days| Duration::from_hours(days.saturating_mul(24)));
        let target = number(of, "NORMALIZER_TARGET_REGION_SIZE_MB");
        let least = number(of, "hbase.normalizer.merge.min.region.count");
        NormalizerOptions {
            enabled: parse_bool(of, "NORMALIZATION_ENABLED", false),
            target_mib: target
                .or_else(|| number(of, "NORMALIZER_TARGET_REGION_SIZE"))
                .filter(|mib| *mib > 0),
            target_regions: number(of, "NORMALIZER_TARGET_REGION_COUNT").filter(|count| *count > 0),
            merge_min_regions: least
                .and_then(|count| usize::try_from(count).ok())
                .unwrap_or(defaults.merge_min_regions),
            merge_min_age: age.unwrap_or(defaults.merge_min_age),
            merge_min_mib: number(of, "hbase.normalizer.merge.min_region_size.mb")
                .unwrap_or(defaults.merge_min_mib),
        }
    }
}

fn number(of: &Attributes, option: &str) -> Option<u64> {
    let value = parse_attribute(of, option, -1_i64).ok()?;
    u64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::super::{FamilyDescriptor, TableName};
    use super::*;

    #[test]
    fn options_are_read_or_have_their_defaults() {
        let name = TableName::parse(b"t").unwrap();
        let mut table = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
        assert_eq!(table.normalizer_options(), NormalizerOptions::default());
        for (option, value) in [
            ("NORMALIZATION_ENABLED", "true"),
            ("NORMALIZER_TARGET_REGION_SIZE_MB", "7"),
            ("NORMALIZER_TARGET_REGION_COUNT", "-1"),
            ("hbase.normalizer.merge.min_region_age.days", "0"),
            ("hbase.normalizer.merge.min.region.count", "x"),
            ("hbase.normalizer.merge.min_region_size.mb", "2"),
        ] {
            table.attributes.insert(option.into(), value.into());
        }
        assert_eq!(
            table.normalizer_options(),
            NormalizerOptions {
                enabled: true,
                target_mib: Some(7),
                target_regions: None,
                merge_min_regions: 3,
                merge_min_age: Duration::ZERO,
                merge_min_mib: 2,
            }
        );
    }
}

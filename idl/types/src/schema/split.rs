//! When and where the regions of a table split, according to the table's options.
//!
//! Some options have two names: the table's own (`MAX_FILESIZE`) and that of the server's setting
//! (`hbase.hregion.max.filesize`). As in HBase a server's setting among a table's options holds for that
//! table, unless the table's own is there, too.

use super::{Attributes, TableName, family::parse_bool, insane, parse_attribute};
use crate::error::Result;

/// When a region of the table is large enough to be split (HBase: `RegionSplitPolicy` and its subclasses).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitPolicy {
    /// The only region of the table at the initial size, others at the maximal size.
    #[default]
    Stepping,
    /// At the maximal size.
    ConstantSize,
    /// At the initial size times the cube of the number of the table's regions, at most at the
    /// maximal size.
    IncreasingToUpperBound,
    /// As `IncreasingToUpperBound`; rows that begin with the same bytes stay together.
    KeyPrefix,
    /// As `IncreasingToUpperBound`; rows that are equal up to a delimiter stay together.
    DelimitedKeyPrefix,
    /// As `IncreasingToUpperBound`, and when many of its writes are refused.
    Busy,
    /// Never, not even on request.
    Disabled,
}

/// The package of HBase's policies.
const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.";

impl SplitPolicy {
    const CLASSES: [(&str, Self); 7] = [
        ("SteppingSplitPolicy", Self::Stepping),
        ("ConstantSizeRegionSplitPolicy", Self::ConstantSize),
        (
            "IncreasingToUpperBoundRegionSplitPolicy",
            Self::IncreasingToUpperBound,
        ),
        ("KeyPrefixRegionSplitPolicy", Self::KeyPrefix),
        ("DelimitedKeyPrefixRegionSplitPolicy", Self::DelimitedKeyPrefix),
        ("BusyRegionSplitPolicy", Self::Busy),
        ("DisabledRegionSplitPolicy", Self::Disabled),
    ];

    /// The policy of that Java class, whose package may be left out.
    pub fn from_class(class: &str) -> Option<Self> {
        let name = class.strip_prefix(PACKAGE).unwrap_or(class);
        Self::CLASSES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, policy)| *policy)
    }

    fn of(table: &TableName, attributes: &Attributes) -> Result<Self> {
        let named = ["SPLIT_POLICY", "hbase.regionserver.region.split.policy"]
            .into_iter()
            .find_map(|option| text(attributes, option).filter(|class| !class.is_empty()));
        match named {
            None => Ok(Self::default()),
            Some(class) => Self::from_class(&class).ok_or_else(|| {
                insane(format!(
                    "Unable to load configured region split policy '{class}' for table '{table}'"
                ))
            }),
        }
    }
}

/// Rows that a split keeps together: those that are equal in the part that decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RowGroup {
    /// Each row is a group of its own.
    #[default]
    Row,
    /// Rows with the same first bytes, this many, stay together.
    Prefix(usize),
    /// Rows with the same bytes before the first delimiter stay together; a row without one counts
    /// in full.
    Delimited(Vec<u8>),
}

impl RowGroup {
    fn prefix(length: Option<String>) -> Self {
        let length = length.and_then(|length| length.trim().parse().ok());
        length
            .filter(|length| *length > 0)
            .map_or(Self::Row, Self::Prefix)
    }

    fn delimited(delimiter: Option<String>) -> Self {
        delimiter
            .filter(|delimiter| !delimiter.is_empty())
            .map_or(Self::Row, |delimiter| Self::Delimited(delimiter.into_bytes()))
    }

    /// The part of the row that decides: the first row of its group, or a prefix that sorts before
    /// all rows of it.
    fn cut(&self, row: &mut Vec<u8>) {
        match self {
            Self::Row => {}
            Self::Prefix(length) => row.truncate(*length),
            Self::Delimited(delimiter) => {
                let at = row
                    .windows(delimiter.len())
                    .position(|window| window == delimiter.as_slice());
                row.truncate(at.unwrap_or(row.len()));
            }
        }
    }
}

/// When a region is so busy that it is split ([`SplitPolicy::Busy`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusyOptions {
    /// From this share of refused writes on.
    pub refused_share: f64,
    /// Not before it is that old, in milliseconds.
    pub age_min_ms: u64,
    /// The share is that of about this time, in milliseconds.
    pub window_ms: u64,
}

impl Default for BusyOptions {
    fn default() -> Self {
        Self {
            refused_share: 0.2,
            age_min_ms: 600_000,
            window_ms: 300_000,
        }
    }
}

/// A table's options about splits.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitOptions {
    /// When regions split.
    pub policy: SplitPolicy,
    /// `hbase.increasing.policy.initial.size`. `None`: twice the flush size.
    pub initial_bytes: Option<u64>,
    /// `hbase.hregion.max.filesize.jitter`: the maximal size differs between regions by up to half of this
    /// share up or down, so that regions of one size do not all split at once.
    pub jitter: f64,
    /// `hbase.hregion.split.overallfiles`: all stores of a region together count, not the largest one.
    pub sum_of_stores: bool,
    /// `hbase.busy.policy.*`
    pub busy: BusyOptions,
    /// Rows that a calculated split row keeps together.
    pub calculated: RowGroup,
    /// Rows that every split row keeps together (HBase: `RegionSplitRestriction`).
    pub restriction: RowGroup,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self {
            policy: SplitPolicy::default(),
            initial_bytes: None,
            jitter: 0.25,
            sum_of_stores: false,
            busy: BusyOptions::default(),
            calculated: RowGroup::Row,
            restriction: RowGroup::Row,
        }
    }
}

impl SplitOptions {
    /// Reads a table's options. Refuses an unknown policy and unreadable numbers; an invalid group
    /// of rows is a single row, as in HBase.
    pub(super) fn of(table: &TableName, attributes: &Attributes) -> Result<Self> {
        let defaults = Self::default();
        let policy = SplitPolicy::of(table, attributes)?;
        let option = |name| text(attributes, name);
        let calculated = match policy {
            SplitPolicy::KeyPrefix => RowGroup::prefix(
                option("KeyPrefixRegionSplitPolicy.prefix_length")
                    .or_else(|| option("prefix_split_key_policy.prefix_length")),
            ),
            SplitPolicy::DelimitedKeyPrefix => {
                RowGroup::delimited(option("DelimitedKeyPrefixRegionSplitPolicy.delimiter"))
            }
            _ => RowGroup::Row,
        };
        let restriction = match option("hbase.regionserver.region.split_restriction.type").as_deref() {
            Some("KeyPrefix") => RowGroup::prefix(option(
                "hbase.regionserver.region.split_restriction.prefix_length",
            )),
            Some("DelimitedKeyPrefix") => {
                RowGroup::delimited(option("hbase.regionserver.region.split_restriction.delimiter"))
            }
            _ => RowGroup::Row,
        };
        let jitter = parse_attribute(attributes, "hbase.hregion.max.filesize.jitter", defaults.jitter)?;
        Ok(Self {
            policy,
            initial_bytes: positive(attributes, "hbase.increasing.policy.initial.size")?,
            jitter: if jitter.is_finite() {
                jitter
            } else {
                defaults.jitter
            },
            sum_of_stores: parse_bool(attributes, "hbase.hregion.split.overallfiles", false),
            busy: BusyOptions::of(attributes)?,
            calculated,
            restriction,
        })
    }

    /// The split row to take for one that was calculated. Empty: there is none.
    pub fn calculated_row(&self, mut row: Vec<u8>) -> Vec<u8> {
        self.calculated.cut(&mut row);
        self.given_row(row)
    }

    /// The split row to take for one that was given. Empty: there is none.
    pub fn given_row(&self, mut row: Vec<u8>) -> Vec<u8> {
        self.restriction.cut(&mut row);
        row
    }
}

impl BusyOptions {
    fn of(attributes: &Attributes) -> Result<Self> {
        let defaults = Self::default();
        let share = parse_attribute(
            attributes,
            "hbase.busy.policy.blockedRequests",
            defaults.refused_share,
        )?;
        Ok(Self {
            refused_share: if (0.00001..=0.99999).contains(&share) {
                share
            } else {
                defaults.refused_share
            },
            age_min_ms: parse_attribute(attributes, "hbase.busy.policy.minAge", defaults.age_min_ms)?,
            window_ms: positive(attributes, "hbase.busy.policy.aggWindow")?.unwrap_or(defaults.window_ms),
        })
    }
}

/// An option's text, as Java reads it.
fn text(attributes: &Attributes, option: &str) -> Option<String> {
    attributes
        .get(option.as_bytes())
        .map(|raw| String::from_utf8_lossy(raw).into_owned())
}

/// A number that counts when it is above 0.
fn positive(attributes: &Attributes, option: &str) -> Result<Option<u64>> {
    let value = parse_attribute(attributes, option, -1_i64)?;
    Ok(u64::try_from(value).ok().filter(|value| *value > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Result<SplitOptions> {
        let attributes = pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        SplitOptions::of(&TableName::parse(b"t").unwrap(), &attributes)
    }

    #[test]
    fn policies_are_known_by_class_and_by_name() {
        for (name, policy) in SplitPolicy::CLASSES {
            for class in [name.to_owned(), format!("{PACKAGE}{name}")] {
                for option in ["SPLIT_POLICY", "hbase.regionserver.region.split.policy"] {
                    assert_eq!(options(&[(option, &class)]).unwrap().policy, policy);
                }
            }
        }
        assert_eq!(options(&[]).unwrap().policy, SplitPolicy::Stepping);
        assert_eq!(
            options(&[("SPLIT_POLICY", "")]).unwrap().policy,
            SplitPolicy::Stepping
        );
        let both = [
            ("SPLIT_POLICY", "DisabledRegionSplitPolicy"),
            ("hbase.regionserver.region.split.policy", "NoSuch"),
        ];
        assert_eq!(options(&both).unwrap().policy, SplitPolicy::Disabled);
        for unknown in ["NoSuch", "java.lang.String", "org.example.SteppingSplitPolicy"] {
            let error = options(&[("SPLIT_POLICY", unknown)]).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!(
                    "Unable to load configured region split policy '{unknown}' for table 't' Set hbase.table.sanity.checks to \
                     false"
                )),
                "{error}"
            );
        }
    }

    #[test]
    fn groups_of_rows_stay_together() {
        let cut = |pairs: &[(&str, &str)], row: &str| {
            let row = options(pairs).unwrap().calculated_row(row.into());
            String::from_utf8(row).unwrap()
        };
        let policy = |class: &'static str| ("SPLIT_POLICY", class);
        let length = |length: &'static str| ("KeyPrefixRegionSplitPolicy.prefix_length", length);
        let key_prefix = policy("KeyPrefixRegionSplitPolicy");
        assert_eq!(cut(&[key_prefix, length("3")], "abcdef"), "abc");
        assert_eq!(cut(&[key_prefix, length("3")], "ab"), "ab");
        for unclear in ["0", "-1", "x"] {
            assert_eq!(cut(&[key_prefix, length(unclear)], "abcdef"), "abcdef");
        }
        assert_eq!(
            cut(
                &[key_prefix, ("prefix_split_key_policy.prefix_length", "2")],
                "abcdef"
            ),
            "ab"
        );
        assert_eq!(cut(&[length("3")], "abcdef"), "abcdef", "another policy");
        let delimited = policy("DelimitedKeyPrefixRegionSplitPolicy");
        let delimiter = |text: &'static str| ("DelimitedKeyPrefixRegionSplitPolicy.delimiter", text);
        assert_eq!(cut(&[delimited, delimiter("__")], "u1__e__7"), "u1");
        assert_eq!(cut(&[delimited, delimiter("__")], "u1_e"), "u1_e");
        assert_eq!(cut(&[delimited, delimiter("__")], "__e"), "", "no split row");
        assert_eq!(cut(&[delimited, delimiter("")], "u1__e"), "u1__e");
        let restriction = [
            ("hbase.regionserver.region.split_restriction.type", "KeyPrefix"),
            ("hbase.regionserver.region.split_restriction.prefix_length", "2"),
        ];
        assert_eq!(cut(&restriction, "abcdef"), "ab");
        let given = options(&restriction).unwrap().given_row(b"abcdef".to_vec());
        assert_eq!(given, b"ab", "a restriction holds for rows that were given");
        let given = options(&[key_prefix, length("3")])
            .unwrap()
            .given_row(b"abcdef".to_vec());
        assert_eq!(given, b"abcdef", "a policy does not");
    }

    #[test]
    fn numbers_are_read_or_refused() {
        let read = options(&[
            ("hbase.increasing.policy.initial.size", "1000"),
            ("hbase.hregion.max.filesize.jitter", "0"),
            ("hbase.hregion.split.overallfiles", "true"),
            ("hbase.busy.policy.blockedRequests", "0.5"),
            ("hbase.busy.policy.minAge", "0"),
            ("hbase.busy.policy.aggWindow", "-1"),
        ])
        .unwrap();
        assert_eq!(
            (read.initial_bytes, read.jitter, read.sum_of_stores),
            (Some(1000), 0.0, true)
        );
        assert_eq!(
            read.busy,
            BusyOptions {
                refused_share: 0.5,
                age_min_ms: 0,
                ..BusyOptions::default()
            }
        );
        for option in [
            "hbase.increasing.policy.initial.size",
            "hbase.hregion.max.filesize.jitter",
            "hbase.busy.policy.minAge",
        ] {
            assert!(options(&[(option, "zz")]).is_err(), "{option}");
        }
    }
}

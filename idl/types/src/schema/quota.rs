//! Quotas of a namespace: the most tables and regions, as HBase has them among the namespace's properties.

use super::NamespaceDescriptor;
use crate::error::{Error, Result};

const MAX_TABLES: &str = "hbase.namespace.quota.maxtables";
const MAX_REGIONS: &str = "hbase.namespace.quota.maxregions";

impl NamespaceDescriptor {
    /// The most tables. An unreadable value is none: a database that is older than the check may have one.
    pub fn max_tables(&self) -> u64 {
        of(self, MAX_TABLES)
    }

    /// The most regions of all its tables together.
    pub fn max_regions(&self) -> u64 {
        of(self, MAX_REGIONS)
    }

    /// Refuses quotas that are no positive number; the texts are HBase's
    /// (`TableNamespaceManager.validateTableAndRegionCount`).
    pub(super) fn check_quotas(&self) -> Result<()> {
        for (property, short, what) in [
            (MAX_REGIONS, "max regions", "max region"),
            (MAX_TABLES, "max tables", "max tables"),
        ] {
            let value = parse(self, property).map_err(|value| {
                Error::DoNotRetry(format!(
                    "NumberFormatException while getting {short}. {property} of namespace {} is {value:?}",
                    self.name
                ))
            })?;
            if value.is_some_and(|value| value <= 0) {
                return Err(Error::Constraint(format!(
                    "The {what} quota for {} is less than or equal to zero.",
                    self.name
                )));
            }
        }
        Ok(())
    }
}

/// The number in a property; none if the property is missing or empty, the text if it is no number.
fn parse<'n>(
    namespace: &'n NamespaceDescriptor,
    property: &str,
) -> std::result::Result<Option<i64>, &'n str> {
    match namespace.configuration.get(property).map(String::as_str) {
        None | Some("") => Ok(None),
        Some(value) => value.parse().map(Some).map_err(|_| value),
    }
}

fn of(namespace: &NamespaceDescriptor, property: &str) -> u64 {
    let value = parse(namespace, property).ok().flatten();
    value
        .and_then(|value| u64::try_from(value).ok())
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(property: &str, value: &str) -> NamespaceDescriptor {
        NamespaceDescriptor {
            name: "ns".to_owned(),
            configuration: [(property.to_owned(), value.to_owned())].into(),
        }
    }

    #[test]
    fn quotas_are_positive_numbers() {
        for (property, text) in [
            (
                MAX_REGIONS,
                "The max region quota for ns is less than or equal to zero.",
            ),
            (
                MAX_TABLES,
                "The max tables quota for ns is less than or equal to zero.",
            ),
        ] {
            for value in ["0", "-1"] {
                let refused = namespace(property, value).check().unwrap_err();
                assert_eq!(refused.to_string(), text);
                assert!(matches!(refused, Error::Constraint(_)));
            }
            for value in ["many", " 5", "5 ", "1.5", "99999999999999999999"] {
                let refused = namespace(property, value).check().unwrap_err().to_string();
                assert!(
                    refused.starts_with("NumberFormatException while getting max"),
                    "{refused}"
                );
            }
            for value in ["", "5"] {
                namespace(property, value).check().unwrap();
            }
        }
        assert_eq!(namespace(MAX_REGIONS, "5").max_regions(), 5);
        assert_eq!(namespace(MAX_TABLES, "5").max_tables(), 5);
        assert_eq!(namespace(MAX_TABLES, "").max_tables(), u64::MAX);
    }
}

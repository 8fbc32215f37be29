//! Coprocessors that a table's options name.
//!
//! HBase's master refuses a table with a class that it cannot load. This server runs no code of users, so the
//! classes that it can load are those whose calls it answers itself.

use super::{TableDescriptor, insane};
use crate::error::Result;

/// The classes whose endpoints every region of this server has.
const SERVED: [&str; 2] = [
    "org.apache.hadoop.hbase.coprocessor.AggregateImplementation",
    "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
];

/// Names of HBase's settings that load coprocessors, which count for a table that has them among its options.
const CLASS_LISTS: [&str; 2] = [
    "hbase.coprocessor.region.classes",
    "hbase.coprocessor.user.region.classes",
];

/// A coprocessor as an option names it (HBase: `CP_HTD_ATTR_VALUE_PATTERN`).
#[derive(Debug, PartialEq, Eq)]
struct Coprocessor {
    class: String,
    is_priority_negative: bool,
}

impl TableDescriptor {
    /// Classes of coprocessors that the table's options name and this server does not run. An option that
    /// HBase would not understand names none.
    pub fn unknown_coprocessors(&self) -> Vec<String> {
        let classes = self.coprocessors().into_iter().map(|one| one.class);
        classes
            .filter(|class| !SERVED.contains(&class.as_str()))
            .collect()
    }

    /// Refuses coprocessors that this server does not run; the texts are HBase's
    /// (`RegionCoprocessorHost.testTableCoprocessorAttrs`).
    pub fn check_coprocessors(&self) -> Result<()> {
        if let Some(class) = self.unknown_coprocessors().first() {
            return Err(insane(format!("Class {class} cannot be loaded")));
        }
        Ok(())
    }

    /// Refuses a negative priority.
    pub(super) fn check_priorities(&self) -> Result<()> {
        let mut coprocessors = self.coprocessors().into_iter();
        match coprocessors.find(|one| one.is_priority_negative) {
            None => Ok(()),
            Some(Coprocessor { class, .. }) => Err(insane(format!(
                "Priority for coprocessor {class} cannot be less than 0"
            ))),
        }
    }

    fn coprocessors(&self) -> Vec<Coprocessor> {
        let mut found = Vec::new();
        for (name, value) in &self.attributes {
            let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            if is_coprocessor_option(name.trim()) {
                found.extend(coprocessor(value.trim()));
            } else if CLASS_LISTS.contains(&name.trim()) {
                let classes = value
                    .split(',')
                    .map(|one| one.split('|').next().unwrap_or_default());
                let classes = classes.map(str::trim).filter(|class| !class.is_empty());
                found.extend(classes.map(|class| Coprocessor {
                    class: class.to_owned(),
                    is_priority_negative: false,
                }));
            }
        }
        found
    }
}

/// Whether an option is `coprocessor$1`, with any number and in any case.
fn is_coprocessor_option(name: &str) -> bool {
    let Some((word, number)) = name.split_once('$') else {
        return false;
    };
    word.eq_ignore_ascii_case("coprocessor")
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The coprocessor in `path|class|priority|arguments`, where the last part may be missing, and the priority
/// empty.
fn coprocessor(value: &str) -> Option<Coprocessor> {
    let mut parts = value.splitn(4, '|');
    let (_path, class, priority) = (parts.next()?, parts.next()?.trim(), parts.next()?.trim());
    let digits = priority.strip_prefix('-').unwrap_or(priority);
    let is_understood = !class.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_understood.then(|| Coprocessor {
        class: class.to_owned(),
        is_priority_negative: priority.starts_with('-'),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{FamilyDescriptor, TableName};
    use super::*;

    fn table(option: &str, value: &str) -> TableDescriptor {
        let mut table =
            TableDescriptor::new(TableName::parse(b"t").unwrap(), vec![FamilyDescriptor::new(b"f")]);
        table.attributes.insert(option.into(), value.into());
        table
    }

    #[test]
    fn an_unknown_class_is_refused_as_in_hbase() {
        for (option, value) in [
            ("coprocessor$1", "|org.example.Observer|1001|"),
            (
                "Coprocessor$22",
                " hdfs:///a.jar | org.example.Observer | | a=1,b=2|3 ",
            ),
            ("coprocessor$1", "|org.example.Observer|"),
            (
                "hbase.coprocessor.region.classes",
                "org.apache.hadoop.hbase.coprocessor.AggregateImplementation, org.example.Observer|5",
            ),
            ("hbase.coprocessor.user.region.classes", "org.example.Observer"),
        ] {
            let refused = table(option, value).check_coprocessors().unwrap_err();
            assert_eq!(
                refused.to_string(),
                "Class org.example.Observer cannot be loaded Set hbase.table.sanity.checks to false at conf or \
                 table descriptor if you want to bypass sanity checks",
                "{option} => {value}"
            );
        }
    }

    #[test]
    fn endpoints_of_the_server_are_accepted() {
        for class in SERVED {
            let table = table("coprocessor$1", &format!("|{class}|536870911|"));
            table.check_coprocessors().unwrap();
            table.check().unwrap();
        }
    }

    /// HBase logs an option that it does not understand, and goes on without it.
    #[test]
    fn options_that_name_no_coprocessor_are_left_alone() {
        for (option, value) in [
            ("coprocessor", "|org.example.Observer|1001|"),
            ("coprocessor$", "|org.example.Observer|1001|"),
            ("coprocessor$x", "|org.example.Observer|1001|"),
            ("coprocessor$1", "org.example.Observer"),
            ("coprocessor$1", "|org.example.Observer|many|"),
            ("coprocessor$1", "| |1001|"),
            ("coprocessor$1", ""),
        ] {
            table(option, value).check_coprocessors().unwrap();
        }
    }

    #[test]
    fn a_negative_priority_is_refused() {
        let class = SERVED[0];
        let refused = table("coprocessor$1", &format!("|{class}|-1|"))
            .check()
            .unwrap_err();
        assert!(refused.to_string().starts_with(&format!(
            "Priority for coprocessor {class} cannot be less than 0 Set"
        )));
    }
}

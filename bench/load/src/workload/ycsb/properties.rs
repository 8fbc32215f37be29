//! YCSB's properties by its names, with its defaults.

use std::str::FromStr;

use clap::ValueEnum;

use super::Workload;
use crate::error::{Error, Result};
use crate::load::choose::{Distribution, Shape};

/// Parameters of a workload.
#[allow(clippy::struct_excessive_bools, reason = "they are properties of YCSB")]
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Properties {
    pub(super) record_count: u64,
    pub(super) operation_count: u64,
    pub(super) insert_start: u64,
    pub(super) read: f64,
    pub(super) update: f64,
    pub(super) insert: f64,
    pub(super) scan: f64,
    pub(super) read_modify_write: f64,
    pub(super) distribution: Distribution,
    pub(super) shape: Shape,
    pub(super) min_scan_length: u32,
    pub(super) max_scan_length: u32,
    pub(super) field_count: u32,
    pub(super) field_length: u32,
    pub(super) read_all_fields: bool,
    pub(super) write_all_fields: bool,
    pub(super) data_integrity: bool,
    pub(super) hashed: bool,
    pub(super) zero_padding: u32,
    pub(super) table: String,
    pub(super) column_family: String,
}

/// Limits, so that a slip of the finger does not ask for all memory.
const FIELDS_MAX: u32 = 10_000;
const FIELD_BYTES_MAX: u32 = 10_000_000;

impl Properties {
    /// The core workload's mix and the defaults.
    pub(super) fn of(workload: Workload) -> Properties {
        let plain = Properties {
            record_count: 1_000,
            operation_count: 1_000,
            insert_start: 0,
            read: 0.0,
            update: 0.0,
            insert: 0.0,
            scan: 0.0,
            read_modify_write: 0.0,
            distribution: Distribution::Zipfian,
            shape: Shape::default(),
            min_scan_length: 1,
            max_scan_length: 1_000,
            field_count: 10,
            field_length: 100,
            read_all_fields: true,
            write_all_fields: false,
            data_integrity: false,
            hashed: true,
            zero_padding: 1,
            table: "usertable".to_owned(),
            column_family: "family".to_owned(),
        };
        match workload {
            Workload::A => Properties {
                read: 0.5,
                update: 0.5,
                ..plain
            },
            Workload::B => Properties {
                read: 0.95,
                update: 0.05,
                ..plain
            },
            Workload::C => Properties { read: 1.0, ..plain },
            Workload::D => Properties {
                read: 0.95,
                insert: 0.05,
                distribution: Distribution::Latest,
                ..plain
            },
            Workload::E => Properties {
                scan: 0.95,
                insert: 0.05,
                max_scan_length: 100,
                ..plain
            },
            Workload::F => Properties {
                read: 0.5,
                read_modify_write: 0.5,
                ..plain
            },
        }
    }

    /// Sets `NAME=VALUE`.
    pub(super) fn set(&mut self, property: &str) -> Result<()> {
        let Some((name, value)) = property.split_once('=') else {
            return Err(Error::Usage(format!("property {property} is not NAME=VALUE")));
        };
        let (name, value) = (name.trim(), value.trim());
        match name {
            "recordcount" => self.record_count = parsed(name, value)?,
            "operationcount" => self.operation_count = parsed(name, value)?,
            "insertstart" => self.insert_start = parsed(name, value)?,
            "readproportion" => self.read = parsed(name, value)?,
            "updateproportion" => self.update = parsed(name, value)?,
            "insertproportion" => self.insert = parsed(name, value)?,
            "scanproportion" => self.scan = parsed(name, value)?,
            "readmodifywriteproportion" => self.read_modify_write = parsed(name, value)?,
            "requestdistribution" => {
                self.distribution = Distribution::from_str(value, true)
                    .map_err(|_| Error::Usage(format!("{name} {value} is not known")))?;
            }
            "hotspotdatafraction" => self.shape.hot.data_fraction = parsed(name, value)?,
            "hotspotopnfraction" => self.shape.hot.operation_fraction = parsed(name, value)?,
            "exponential.percentile" => self.shape.exponential.percentile = parsed(name, value)?,
            "exponential.frac" => self.shape.exponential.fraction = parsed(name, value)?,
            "minscanlength" => self.min_scan_length = parsed(name, value)?,
            "maxscanlength" => self.max_scan_length = parsed(name, value)?,
            "fieldcount" => self.field_count = parsed(name, value)?,
            "fieldlength" => self.field_length = parsed(name, value)?,
            "fieldlengthdistribution" => {
                if value != "constant" {
                    return Err(Error::Usage(format!(
                        "{name} {value} is not constant: all fields have one length"
                    )));
                }
            }
            "readallfields" => self.read_all_fields = parsed(name, value)?,
            "writeallfields" => self.write_all_fields = parsed(name, value)?,
            "dataintegrity" => self.data_integrity = parsed(name, value)?,
            "insertorder" => {
                self.hashed = match value {
                    "hashed" => true,
                    "ordered" => false,
                    _ => return Err(Error::Usage(format!("{name} {value} is not hashed or ordered"))),
                };
            }
            "zeropadding" => self.zero_padding = parsed(name, value)?,
            "table" => value.clone_into(&mut self.table),
            "columnfamily" => value.clone_into(&mut self.column_family),
            _ => return Err(Error::Usage(format!("property {name} is not known"))),
        }
        Ok(())
    }

    /// Fails if the properties cannot be run.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |text: String| Err(Error::Usage(text));
        let proportions = self.proportions();
        if proportions.iter().any(|share| !share.is_finite() || *share < 0.0)
            || proportions.iter().sum::<f64>() <= 0.0
        {
            return wrong(format!(
                "the proportions {proportions:?} are not shares of operations"
            ));
        }
        for (name, share) in [
            ("hotspotdatafraction", self.shape.hot.data_fraction),
            ("hotspotopnfraction", self.shape.hot.operation_fraction),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return wrong(format!("{name} {share} is not between 0 and 1"));
            }
        }
        let exponential = self.shape.exponential;
        if !(exponential.percentile > 0.0 && exponential.percentile < 100.0) {
            return wrong(format!(
                "exponential.percentile {} is not between 0 and 100",
                exponential.percentile
            ));
        }
        if !(exponential.fraction > 0.0 && exponential.fraction.is_finite()) {
            return wrong(format!(
                "exponential.frac {} is not a number above 0",
                exponential.fraction
            ));
        }
        if self.record_count == 0 {
            return wrong("recordcount is 0".to_owned());
        }
        if self.insert_start.checked_add(self.record_count).is_none() {
            return wrong("insertstart and recordcount are too large".to_owned());
        }
        if self.min_scan_length == 0 || self.min_scan_length > self.max_scan_length {
            return wrong(format!(
                "minscanlength {} is 0 or more than maxscanlength {}",
                self.min_scan_length, self.max_scan_length
            ));
        }
        if self.field_count == 0 || self.field_count > FIELDS_MAX {
            return wrong(format!(
                "fieldcount {} is not within 1..={FIELDS_MAX}",
                self.field_count
            ));
        }
        if self.field_length > FIELD_BYTES_MAX {
            return wrong(format!(
                "fieldlength {} is more than the limit of {FIELD_BYTES_MAX}",
                self.field_length
            ));
        }
        if self.zero_padding > 100 {
            return wrong(format!(
                "zeropadding {} is more than the limit of 100",
                self.zero_padding
            ));
        }
        Ok(())
    }

    /// Shares of read, update, insert, scan and read-modify-write.
    pub(super) fn proportions(&self) -> [f64; 5] {
        [
            self.read,
            self.update,
            self.insert,
            self.scan,
            self.read_modify_write,
        ]
    }

    /// All properties, for the report.
    pub(super) fn list(&self) -> Vec<(&'static str, String)> {
        vec![
            ("recordcount", self.record_count.to_string()),
            ("operationcount", self.operation_count.to_string()),
            ("insertstart", self.insert_start.to_string()),
            ("readproportion", self.read.to_string()),
            ("updateproportion", self.update.to_string()),
            ("insertproportion", self.insert.to_string()),
            ("scanproportion", self.scan.to_string()),
            ("readmodifywriteproportion", self.read_modify_write.to_string()),
            (
                "requestdistribution",
                format!("{:?}", self.distribution).to_lowercase(),
            ),
            ("maxscanlength", self.max_scan_length.to_string()),
            ("fieldcount", self.field_count.to_string()),
            ("fieldlength", self.field_length.to_string()),
            ("readallfields", self.read_all_fields.to_string()),
            ("writeallfields", self.write_all_fields.to_string()),
            ("dataintegrity", self.data_integrity.to_string()),
            (
                "insertorder",
                if self.hashed { "hashed" } else { "ordered" }.to_owned(),
            ),
            ("table", self.table.clone()),
            ("columnfamily", self.column_family.clone()),
        ]
    }
}

fn parsed<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value
        .parse()
        .map_err(|_| Error::Usage(format!("property {name} cannot be {value}")))
}

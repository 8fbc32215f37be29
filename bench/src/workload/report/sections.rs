//! The sections of the whole lab, and the options that each runs with.

use clap::ValueEnum;

use crate::target::Api;

/// The sections by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SectionName {
    /// Row-key designs.
    Hotspot,
    /// Unique ids as row keys.
    Ids,
    /// Settings of column families.
    Family,
    /// Ways to store relations.
    Orders,
    /// A Twitter-like application.
    Twibase,
    /// HBase's PerformanceEvaluation.
    Pe,
    /// YCSB.
    Ycsb,
}

/// How many rows and questions the sections have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Size {
    /// Seconds: for a look at the report.
    Tiny,
    /// Minutes.
    Small,
}

impl SectionName {
    pub(super) fn name(self) -> &'static str {
        match self {
            SectionName::Hotspot => "hotspot",
            SectionName::Ids => "ids",
            SectionName::Family => "family",
            SectionName::Orders => "orders",
            SectionName::Twibase => "twibase",
            SectionName::Pe => "pe",
            SectionName::Ycsb => "ycsb",
        }
    }

    /// Whether the workload has this interface.
    pub(super) fn speaks(self, api: Api) -> bool {
        self != SectionName::Hotspot || api == Api::Thrift2
    }

    /// The options of the workload, but for the server's.
    pub(super) fn options(self, size: Size) -> &'static str {
        match (self, size) {
            (SectionName::Hotspot, Size::Small) => {
                "--rows 40000 --range-reads 3 --point-reads 2000 --table-prefix report_"
            }
            (SectionName::Hotspot, Size::Tiny) => {
                "--rows 4000 --range-reads 1 --point-reads 100 --regions 4 --threads 2 --table-prefix report_"
            }
            (SectionName::Ids, Size::Small) => "--rows 40000 --table-prefix report_ids_",
            (SectionName::Ids, Size::Tiny) => {
                "--rows 2000 --regions 4 --threads 2 --table-prefix report_ids_"
            }
            (SectionName::Family | SectionName::Orders | SectionName::Twibase, Size::Small) => {
                "--threads 4 --table-prefix report_"
            }
            (SectionName::Family, Size::Tiny) => {
                "--rows 2000 --reads 200 --scans 20 --scan-rows 200 --ttl 1 --pollution-mib 0 --threads 2 --table-prefix report_"
            }
            (SectionName::Orders, Size::Tiny) => {
                "--rows 500 --courses 50 --questions 200 --threads 2 --table-prefix report_"
            }
            (SectionName::Twibase, Size::Tiny) => {
                "--users 50 --following 10 --followers 1000 --twits 100 --celebrity-twits 1 --questions 100 --threads 2 \
                 --table-prefix report_"
            }
            (SectionName::Pe, Size::Small) => {
                "sequentialWrite randomRead scan scanRange100 increment checkAndPut --nclients=4 --rows=3000 --presplit=4 \
                 --table=report_pe"
            }
            (SectionName::Pe, Size::Tiny) => {
                "sequentialWrite randomRead scan --nclients=2 --rows=200 --table=report_pe"
            }
            (SectionName::Ycsb, Size::Small) => {
                "a --records 20000 --operations 20000 --threads 4 -p table=report_ycsb"
            }
            (SectionName::Ycsb, Size::Tiny) => {
                "a --records 300 --operations 300 --threads 2 -p table=report_ycsb -p fieldlength=10"
            }
        }
    }
}

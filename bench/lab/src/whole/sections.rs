//! The sections of the whole lab, and the options that each runs with.

use clap::ValueEnum;

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

/// Size of the sections: rows and questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Size {
    /// Seconds: to see what the report looks like.
    Tiny,
    /// Minutes.
    Small,
    /// Five minutes and more: the sizes of each workload by itself.
    Full,
}

/// One run of a section's workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Unique name of its place in the report.
    pub(super) name: &'static str,
    /// The options of the workload, but for the server's.
    pub(super) options: &'static str,
}

impl Run {
    /// The table that it leaves behind: that of an option `table=`, which `pe` and `ycsb` have.
    pub(super) fn table(&self) -> Option<&'static str> {
        let (_, behind) = self.options.split_once("table=")?;
        behind.split_whitespace().next()
    }
}

impl SectionName {
    /// The workload's name.
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

    /// The runs of the section, in this order.
    pub(super) fn runs(self, size: Size) -> impl Iterator<Item = Run> {
        let runs = self.names_and_options(size).iter();
        runs.map(|(name, options)| Run { name, options })
    }

    fn names_and_options(self, size: Size) -> &'static [(&'static str, &'static str)] {
        match (self, size) {
            (SectionName::Hotspot, Size::Tiny) => &[(
                "hotspot",
                "--rows 4000 --range-reads 1 --point-reads 100 --regions 4 --threads 2 --table-prefix report_",
            )],
            (SectionName::Hotspot, Size::Small) => &[(
                "hotspot",
                "--rows 40000 --range-reads 3 --point-reads 2000 --table-prefix report_",
            )],
            (SectionName::Hotspot, Size::Full) => &[(
                "hotspot",
                "--rows 200000 --range-reads 3 --point-reads 2000 --table-prefix report_",
            )],
            (SectionName::Ids, Size::Tiny) => &[(
                "ids",
                "--rows 2000 --regions 4 --threads 2 --table-prefix report_ids_",
            )],
            (SectionName::Ids, Size::Small) => &[("ids", "--rows 40000 --table-prefix report_ids_")],
            (SectionName::Ids, Size::Full) => &[("ids", "--table-prefix report_ids_")],
            (SectionName::Family, Size::Tiny) => &[(
                "family",
                "--rows 2000 --reads 200 --scans 20 --scan-rows 200 --ttl 1 --pollution-mib 0 --threads 2 --table-prefix report_",
            )],
            (SectionName::Family, Size::Small) => &[("family", "--threads 4 --table-prefix report_")],
            (SectionName::Family, Size::Full) => &[("family", "--table-prefix report_")],
            (SectionName::Orders, Size::Tiny) => &[(
                "orders",
                "--rows 500 --courses 50 --questions 200 --threads 2 --table-prefix report_",
            )],
            (SectionName::Orders, Size::Small) => &[("orders", "--threads 4 --table-prefix report_")],
            (SectionName::Orders, Size::Full) => &[("orders", "--table-prefix report_")],
            (SectionName::Twibase, Size::Tiny) => &[(
                "twibase",
                "--users 50 --following 10 --followers 1000 --twits 100 --celebrity-twits 1 --questions 100 --threads 2 \
                 --table-prefix report_",
            )],
            (SectionName::Twibase, Size::Small) => &[("twibase", "--threads 4 --table-prefix report_")],
            (SectionName::Twibase, Size::Full) => &[
                ("twibase", "--table-prefix report_"),
                (
                    "twibase-million",
                    "--followers 1000000 --celebrity-twits 1 --parts feed --table-prefix report_",
                ),
            ],
            (SectionName::Pe, Size::Tiny) => &[(
                "pe",
                "sequentialWrite randomRead scan --nclients=2 --rows=200 --table=report_pe",
            )],
            (SectionName::Pe, Size::Small) => &[(
                "pe",
                "sequentialWrite randomRead scan scanRange100 increment checkAndPut --nclients=4 --rows=3000 --presplit=4 \
                 --table=report_pe",
            )],
            // Single writes wait for the disk, a scan with a filter reads all rows for each row, and a range
            // has a thousand: they have fewer rows, in tables of their own.
            (SectionName::Pe, Size::Full) => &[
                (
                    "pe",
                    "sequentialWrite randomWrite sequentialRead randomRead scan randomSeekScan --nclients=4 --rows=100000 \
                     --presplit=4 --table=report_pe",
                ),
                (
                    "pe-updates",
                    "sequentialWrite increment append checkAndPut checkAndMutate checkAndDelete randomDelete sequentialDelete \
                     --nclients=4 --rows=10000 --presplit=4 --table=report_pe_updates",
                ),
                (
                    "pe-scans",
                    "sequentialWrite scanRange10 scanRange100 scanRange1000 filterScan --nclients=4 --rows=1000 --presplit=4 \
                     --table=report_pe_scans",
                ),
            ],
            (SectionName::Ycsb, Size::Tiny) => &[(
                "ycsb",
                "a --records 300 --operations 300 --threads 2 -p table=report_ycsb -p fieldlength=10",
            )],
            (SectionName::Ycsb, Size::Small) => &[(
                "ycsb",
                "a --records 20000 --operations 20000 --threads 4 -p table=report_ycsb",
            )],
            (SectionName::Ycsb, Size::Full) => &[
                (
                    "ycsb-a",
                    "a --records 100000 --operations 100000 --threads 16 -p table=report_ycsb_a",
                ),
                (
                    "ycsb-b",
                    "b --records 100000 --operations 100000 --threads 16 -p table=report_ycsb_b",
                ),
                (
                    "ycsb-c",
                    "c --records 100000 --operations 100000 --threads 16 -p table=report_ycsb_c",
                ),
                (
                    "ycsb-d",
                    "d --records 100000 --operations 100000 --threads 16 -p table=report_ycsb_d",
                ),
                // An operation is a scan of fifty rows.
                (
                    "ycsb-e",
                    "e --records 100000 --operations 20000 --threads 16 -p table=report_ycsb_e",
                ),
                (
                    "ycsb-f",
                    "f --records 100000 --operations 100000 --threads 16 -p table=report_ycsb_f",
                ),
            ],
        }
    }
}

//! The commands by their names in PerformanceEvaluation.

use clap::ValueEnum;

use crate::session::Thrift2Only;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Command {
    /// Put every row of a client, in order.
    #[value(name = "sequentialWrite")]
    SequentialWrite,
    /// Put rows chosen at random.
    #[value(name = "randomWrite")]
    RandomWrite,
    /// Get every row of a client, in order.
    #[value(name = "sequentialRead")]
    SequentialRead,
    /// Get rows chosen at random.
    #[value(name = "randomRead")]
    RandomRead,
    /// One scan of each client's rows; each row is an operation.
    #[value(name = "scan")]
    Scan,
    /// Scans of 10 rows from a random one.
    #[value(name = "scanRange10")]
    ScanRange10,
    /// Scans of 100 rows from a random one.
    #[value(name = "scanRange100")]
    ScanRange100,
    /// Scans of 1000 rows from a random one.
    #[value(name = "scanRange1000")]
    ScanRange1000,
    /// Scans of 10000 rows from a random one.
    #[value(name = "scanRange10000")]
    ScanRange10000,
    /// Scans of up to 120 rows from a random one to the end, a hundredth as many as rows.
    #[value(name = "randomSeekScan")]
    RandomSeekScan,
    /// Scans of the whole table with a filter for a random value, one for each row: give few --rows.
    #[value(name = "filterScan")]
    FilterScan,
    /// Increment a counter in the rows that all clients share.
    #[value(name = "increment")]
    Increment,
    /// Append to a value in the rows that all clients share.
    #[value(name = "append")]
    Append,
    /// Put, then put again if the value is still there.
    #[value(name = "checkAndPut")]
    CheckAndPut,
    /// Put, then delete if the value is still there.
    #[value(name = "checkAndDelete")]
    CheckAndDelete,
    /// Put, then mutate the row if the value is still there.
    #[value(name = "checkAndMutate")]
    CheckAndMutate,
    /// Delete every row of a client, in order.
    #[value(name = "sequentialDelete", alias = "delete")]
    SequentialDelete,
    /// Delete rows chosen at random.
    #[value(name = "randomDelete")]
    RandomDelete,
}

impl Command {
    /// The name in PerformanceEvaluation.
    pub(super) fn name(self) -> &'static str {
        match self {
            Command::SequentialWrite => "sequentialWrite",
            Command::RandomWrite => "randomWrite",
            Command::SequentialRead => "sequentialRead",
            Command::RandomRead => "randomRead",
            Command::Scan => "scan",
            Command::ScanRange10 => "scanRange10",
            Command::ScanRange100 => "scanRange100",
            Command::ScanRange1000 => "scanRange1000",
            Command::ScanRange10000 => "scanRange10000",
            Command::RandomSeekScan => "randomSeekScan",
            Command::FilterScan => "filterScan",
            Command::Increment => "increment",
            Command::Append => "append",
            Command::CheckAndPut => "checkAndPut",
            Command::CheckAndDelete => "checkAndDelete",
            Command::CheckAndMutate => "checkAndMutate",
            Command::SequentialDelete => "sequentialDelete",
            Command::RandomDelete => "randomDelete",
        }
    }

    /// Whether it makes sense on an empty table.
    pub(super) fn writes(self) -> bool {
        !matches!(
            self,
            Command::SequentialRead
                | Command::RandomRead
                | Command::Scan
                | Command::RandomSeekScan
                | Command::FilterScan
        ) && self.range_rows().is_none()
    }

    /// Rows of a scan of fixed length.
    pub(super) fn range_rows(self) -> Option<u64> {
        match self {
            Command::ScanRange10 => Some(10),
            Command::ScanRange100 => Some(100),
            Command::ScanRange1000 => Some(1_000),
            Command::ScanRange10000 => Some(10_000),
            _ => None,
        }
    }

    /// The feature that it needs and Thrift 1 does not have.
    pub(super) fn thrift2_only(self) -> Option<Thrift2Only> {
        match self {
            Command::CheckAndDelete => Some(Thrift2Only::CheckAndDelete),
            Command::CheckAndMutate => Some(Thrift2Only::CheckAndMutate),
            _ => None,
        }
    }
}

//! The limits of one owner: requests and bytes, each for reads, for writes, and for both together.

use std::num::NonZeroU64;
use std::time::Duration;

use super::limiter::{Limiter, Ticks};

/// Unit of a limit: requests (`Number`) or bytes (`Size`), of writes, of reads, or of both (`Request`).
/// HBase: `ThrottleType`, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ThrottleType {
    RequestNumber = 1,
    RequestSize = 2,
    WriteNumber = 3,
    WriteSize = 4,
    ReadNumber = 5,
    ReadSize = 6,
}

impl ThrottleType {
    pub(crate) const ALL: [Self; 6] = [
        Self::RequestNumber,
        Self::RequestSize,
        Self::WriteNumber,
        Self::WriteSize,
        Self::ReadNumber,
        Self::ReadSize,
    ];

    /// HBase's name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::RequestNumber => "REQUEST_NUMBER",
            Self::RequestSize => "REQUEST_SIZE",
            Self::WriteNumber => "WRITE_NUMBER",
            Self::WriteSize => "WRITE_SIZE",
            Self::ReadNumber => "READ_NUMBER",
            Self::ReadSize => "READ_SIZE",
        }
    }

    /// HBase's text when the limit is reached (`RpcThrottlingException`); its clients look for
    /// these words.
    pub(crate) fn exceeded(self) -> &'static str {
        match self {
            Self::RequestNumber => "number of requests exceeded",
            Self::RequestSize => "request size limit exceeded",
            Self::WriteNumber => "number of write requests exceeded",
            Self::WriteSize => "write size limit exceeded",
            Self::ReadNumber => "number of read requests exceeded",
            Self::ReadSize => "read size limit exceeded",
        }
    }

    /// Whether it counts bytes.
    pub(crate) fn is_size(self) -> bool {
        matches!(self, Self::RequestSize | Self::WriteSize | Self::ReadSize)
    }
}

/// Cost of a call before it runs. A read's bytes are not known then: they are charged afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Rows to write, or actions of a batch.
    pub(crate) writes: u64,
    /// Bytes of their cells.
    pub(crate) write_bytes: u64,
    /// Rows to read, or fetches of a scan.
    pub(crate) reads: u64,
}

impl Cost {
    /// One row to read.
    pub(crate) const READ: Self = Self {
        writes: 0,
        write_bytes: 0,
        reads: 1,
    };

    /// One row to write with cells of this many bytes.
    pub(crate) fn write(bytes: u64) -> Self {
        Self {
            writes: 1,
            write_bytes: bytes,
            reads: 0,
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.write_bytes += other.write_bytes;
        self.reads += other.reads;
    }

    /// The amount that a limit of that type is charged; `None` when the limit is not for such
    /// calls.
    fn amount(self, kind: ThrottleType) -> Option<u64> {
        match kind {
            ThrottleType::RequestNumber => Some(self.writes + self.reads),
            ThrottleType::RequestSize => Some(self.write_bytes),
            ThrottleType::WriteNumber => (self.writes > 0).then_some(self.writes),
            ThrottleType::WriteSize => (self.writes > 0).then_some(self.write_bytes),
            ThrottleType::ReadNumber => (self.reads > 0).then_some(self.reads),
            ThrottleType::ReadSize => (self.reads > 0).then_some(0),
        }
    }
}

/// A limit as it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Number of requests or bytes
    pub(crate) amount: NonZeroU64,
    /// in each of these.
    pub(crate) unit: TimeUnit,
}

/// Time unit of a limit (HBase: `TimeUnit`, with its numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Seconds = 4,
    Minutes = 5,
    Hours = 6,
    Days = 7,
}

impl TimeUnit {
    pub(crate) const ALL: [Self; 4] = [Self::Seconds, Self::Minutes, Self::Hours, Self::Days];

    fn duration(self) -> Duration {
        match self {
            Self::Seconds => Duration::from_secs(1),
            Self::Minutes => Duration::from_mins(1),
            Self::Hours => Duration::from_hours(1),
            Self::Days => Duration::from_hours(24),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Seconds => "sec",
            Self::Minutes => "min",
            Self::Hours => "hour",
            Self::Days => "day",
        }
    }
}

impl Limit {
    /// A limit per second; `None` for 0, which means no limit in settings.
    pub(crate) fn per_second(amount: u64) -> Option<Self> {
        NonZeroU64::new(amount).map(|amount| Self {
            amount,
            unit: TimeUnit::Seconds,
        })
    }

    /// As HBase's shell writes a limit of that type: `10req/sec`, `10M/min`.
    pub(crate) fn text(self, kind: ThrottleType) -> String {
        let unit = self.unit.as_str();
        if !kind.is_size() {
            return format!("{}req/{unit}", self.amount);
        }
        let (mut amount, mut size) = (self.amount.get(), 0);
        while amount.is_multiple_of(1024) && size + 1 < SIZES.len() {
            amount /= 1024;
            size += 1;
        }
        format!("{amount}{}/{unit}", SIZES[size])
    }
}

/// HBase's units of size, each 1024 times the one before.
const SIZES: [&str; 6] = ["B", "K", "M", "G", "T", "P"];

/// All limits of one owner.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    limiters: Vec<(ThrottleType, Limit, Limiter)>,
}

/// A limit that a call has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) wait: Ticks,
    pub(crate) kind: ThrottleType,
    pub(crate) limit: Limit,
}

impl Throttle {
    /// These limits, all unused.
    pub(crate) fn new(limits: impl IntoIterator<Item = (ThrottleType, Limit)>) -> Self {
        Self {
            limiters: limits
                .into_iter()
                .map(|(kind, limit)| (kind, limit, Limiter::new(limit.amount, limit.unit.duration())))
                .collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.limiters.is_empty()
    }

    /// The limit with the longest wait for such a call, if it has to wait at all.
    pub(crate) fn reached(&self, cost: Cost, now: Ticks) -> Option<Reached> {
        let waits = self.limiters.iter().filter_map(|(kind, limit, limiter)| {
            let wait = limiter.wait(cost.amount(*kind)?, now);
            (wait > Ticks::default()).then_some(Reached {
                wait,
                kind: *kind,
                limit: *limit,
            })
        });
        waits.max_by_key(|reached| reached.wait)
    }

    /// Takes the tokens for a cost; returns the wait for them.
    pub(crate) fn take(&self, cost: Cost, now: Ticks) -> Ticks {
        let waits = self
            .limiters
            .iter()
            .filter_map(|(kind, _, limiter)| Some(limiter.take(cost.amount(*kind)?, now)));
        waits.max().unwrap_or_default()
    }

    /// Charges bytes that were read; calls that come later wait for them.
    pub(crate) fn take_read_bytes(&self, bytes: u64, now: Ticks) {
        for (kind, _, limiter) in &self.limiters {
            if matches!(kind, ThrottleType::RequestSize | ThrottleType::ReadSize) {
                limiter.take(bytes, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(amount: u64, unit: TimeUnit) -> Limit {
        let amount = NonZeroU64::new(amount).unwrap();
        Limit { amount, unit }
    }

    fn throttle(kind: ThrottleType, amount: u64) -> Throttle {
        Throttle::new([(kind, limit(amount, TimeUnit::Seconds))])
    }

    /// Goal: each type counts what its name says. Method: the costs that have to wait, of three,
    /// when its bucket holds one.
    #[test]
    fn each_type_counts_its_own() {
        let costs = [
            Cost::write(50),
            Cost::READ,
            Cost {
                writes: 1,
                reads: 1,
                write_bytes: 50,
            },
        ];
        for (kind, expected) in [
            (ThrottleType::RequestNumber, [true, true, true]),
            (ThrottleType::RequestSize, [true, false, true]),
            (ThrottleType::WriteNumber, [true, false, true]),
            (ThrottleType::WriteSize, [true, false, true]),
            (ThrottleType::ReadNumber, [false, true, true]),
            (ThrottleType::ReadSize, [false, false, false]),
        ] {
            let waits = costs.map(|cost| {
                let throttle = throttle(kind, 1);
                throttle.take(cost, Ticks::default());
                throttle.take(cost, Ticks::default()) > Ticks::default()
            });
            // A read takes no bytes before it runs, but waits for bytes that writes owe.
            assert_eq!(waits, expected, "{kind:?}");
        }
    }

    #[test]
    fn bytes_that_were_read_hold_back_later_reads() {
        for kind in [ThrottleType::ReadSize, ThrottleType::RequestSize] {
            let throttle = throttle(kind, 100);
            assert_eq!(throttle.take(Cost::READ, Ticks::default()), Ticks::default());
            throttle.take_read_bytes(300, Ticks::default());
            let reached = throttle.reached(Cost::READ, Ticks::default()).expect("in debt");
            assert_eq!(
                (reached.wait.duration(), reached.kind),
                (Duration::from_secs(2), kind)
            );
        }
        let throttle = throttle(ThrottleType::WriteSize, 100);
        throttle.take_read_bytes(300, Ticks::default());
        assert_eq!(throttle.reached(Cost::write(100), Ticks::default()), None);
    }

    #[test]
    fn the_longest_wait_counts() {
        let throttle = Throttle::new([
            (ThrottleType::RequestNumber, limit(10, TimeUnit::Seconds)),
            (ThrottleType::WriteNumber, limit(10, TimeUnit::Minutes)),
        ]);
        let cost = Cost {
            writes: 10,
            ..Cost::default()
        };
        assert_eq!(throttle.take(cost, Ticks::default()), Ticks::default());
        let reached = throttle.reached(cost, Ticks::default()).expect("both are empty");
        assert_eq!(
            (reached.kind, reached.wait.duration()),
            (ThrottleType::WriteNumber, Duration::from_mins(1))
        );
        assert_eq!(
            throttle.take(cost, Ticks::default()).duration(),
            Duration::from_mins(1)
        );
        assert!(Throttle::default().is_empty() && !throttle.is_empty());
    }

    #[test]
    fn limits_read_as_in_hbases_shell() {
        for (amount, unit, kind, text) in [
            (10, TimeUnit::Seconds, ThrottleType::RequestNumber, "10req/sec"),
            (2048, TimeUnit::Minutes, ThrottleType::WriteNumber, "2048req/min"),
            (10 << 20, TimeUnit::Hours, ThrottleType::ReadSize, "10M/hour"),
            (1000, TimeUnit::Days, ThrottleType::WriteSize, "1000B/day"),
            (3 << 50, TimeUnit::Seconds, ThrottleType::RequestSize, "3P/sec"),
            (1 << 63, TimeUnit::Seconds, ThrottleType::RequestSize, "8192P/sec"),
        ] {
            assert_eq!(limit(amount, unit).text(kind), text);
        }
    }
}

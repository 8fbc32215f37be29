//! A scan over all regions of its range, as Java's client makes it.
//!
//! 1. The first call to a region opens a scanner and fetches. The next ones fetch until an answer
//!    says that the region or the scan is done.
//! 2. The next region begins where the last one ended (reversed: before its first row).
//! 3. A scanner that is still open in the end is closed.
//!
//! The result has each answer of a fetch.

use basalt_idl::native::messages::{Scan, ScanRequest, ScanResponse};

use crate::Value;
use crate::connection::NoAnswer;

use super::Outcome;
use super::connection::{Connection, Reply};
use super::regions::{Region, Regions};
use super::request;
use super::response::{CellsIn, record};
use super::service::{ClientKind, Probe};
use crate::fields::Fields;

/// Calls of a scan, whatever a script says.
const CALLS_MAX: u32 = 1000;

/// A scan that is being made.
#[derive(Debug)]
struct Run<'a> {
    connection: &'a mut Connection,
    /// Fields that all requests share.
    request: ScanRequest,
    scan: Scan,
    probe: Probe,
    /// `next_call_seq` of the next call about the open scanner.
    sequence: u64,
    calls_left: u32,
    /// Rows that the scan may still return, if it has a limit.
    limit: Option<u32>,
    answers: Vec<Value>,
}

/// The step after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Fetch { scanner: Option<u64> },
    Region,
    End { scanner: Option<u64> },
}

/// Makes a scan. An exception of the first call is the exception of the scan.
pub(super) fn call(connection: &mut Connection, regions: &Regions, args: Fields<'_>) -> Outcome {
    let probe = args.u32("probe")?.unwrap_or_default() as usize;
    let probe = Probe::ALL.get(probe).ok_or_else(|| args.wrong("probe"))?;
    let partials = args.flag("partials")?;
    let mut run = Run {
        connection,
        request: ScanRequest {
            number_of_rows: args.u32("rows")?,
            client_handles_partials: partials,
            client_handles_heartbeats: partials,
            track_scan_metrics: args.flag("metrics")?,
            ..ScanRequest::default()
        },
        scan: request::scan(args.message("scan")?)?,
        probe: *probe,
        sequence: 0,
        calls_left: args.u32("calls")?.unwrap_or(CALLS_MAX).min(CALLS_MAX),
        limit: args.u32("limit")?,
        answers: Vec::new(),
    };
    run.regions(regions)?;
    match run.answers.as_mut_slice() {
        [only] if only.field("exception").is_some() => {
            let exception = only.field("exception").cloned();
            Ok(Err(exception.expect("checked above")))
        }
        _ => Ok(Ok(run.answers.into())),
    }
}

impl Run<'_> {
    fn regions(&mut self, regions: &Regions) -> Result<(), NoAnswer> {
        let mut region = first_region(&self.scan, regions);
        for index in 0.. {
            let next = self.region(index, region)?;
            match next {
                Next::Region if self.calls_left > 0 && !ends_in(&self.scan, region) => {
                    region = self.step(region, regions);
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Moves the scan behind a region; the region that comes next.
    fn step<'r>(&mut self, region: &Region, regions: &'r Regions) -> &'r Region {
        let is_reversed = self.scan.reversed();
        let start = if is_reversed { &region.start } else { &region.end };
        self.scan.start_row = Some(start.clone());
        self.scan.include_start_row = Some(!is_reversed);
        first_region(&self.scan, regions)
    }

    /// Fetches from one region.
    fn region(&mut self, index: i64, region: &Region) -> Result<Next, NoAnswer> {
        self.sequence = 0;
        let mut request = ScanRequest {
            region: Some(region.specifier()),
            scan: Some(self.scan.clone()),
            ..self.request.clone()
        };
        loop {
            request.limit_of_rows = self.limit;
            let next = self.fetch(index, &request)?;
            let Next::Fetch { scanner } = next else {
                return self.close(next);
            };
            if !self.probe(index, scanner)? {
                return Ok(Next::End { scanner: None });
            }
            request = self.next_request(scanner);
        }
    }

    /// The next call about a scanner.
    fn next_request(&mut self, scanner: Option<u64>) -> ScanRequest {
        let request = ScanRequest {
            scanner_id: scanner,
            next_call_seq: Some(self.sequence),
            ..self.request.clone()
        };
        self.sequence += 1;
        request
    }

    /// Carries out the script's probe. Returns whether the scan goes on.
    fn probe(&mut self, index: i64, scanner: Option<u64>) -> Result<bool, NoAnswer> {
        match std::mem::replace(&mut self.probe, Probe::None) {
            Probe::None => return Ok(true),
            Probe::Renew => {
                let mut renew = self.next_request(scanner);
                renew.renew = Some(true);
                self.fetch(index, &renew)?;
                return Ok(true);
            }
            Probe::WrongSequence => self.sequence += 7,
            Probe::UseAfterClose => drop(self.close(Next::End { scanner })?),
        }
        let request = self.next_request(scanner);
        self.fetch(index, &request)?;
        self.close(Next::End { scanner })?;
        Ok(false)
    }

    /// Makes a call and keeps its answer.
    fn fetch(&mut self, index: i64, request: &ScanRequest) -> Result<Next, NoAnswer> {
        self.calls_left = self.calls_left.saturating_sub(1);
        let reply = self.connection.call::<ScanResponse>("Scan", request, b"")?;
        let (answer, block) = match reply {
            Reply::Success(answer, block) => (answer, block),
            Reply::Exception(exception) => {
                self.answers.push(record([
                    ("region", Some(index.into())),
                    ("results", Some(Value::List(Vec::new()))),
                    ("exception", Some(exception)),
                ]));
                return Ok(Next::End { scanner: None });
            }
        };
        let mut cells = CellsIn::new("Scan", &block);
        let results = cells.results(&answer, self.connection.kind() == ClientKind::Bare)?;
        cells.end()?;
        let rows = results
            .iter()
            .filter(|result| result.field("partial").is_none())
            .count();
        self.limit = self.limit.map(|limit| limit.saturating_sub(rows as u32));
        self.answers.push(fetched(index, &answer, results));
        Ok(self.next(&answer, request.scanner_id))
    }

    fn next(&self, answer: &ScanResponse, scanner: Option<u64>) -> Next {
        let scanner = answer.scanner_id.or(scanner);
        let is_done = answer.more_results == Some(false) || self.limit == Some(0);
        if is_done || (self.calls_left == 0 && answer.more_results_in_region != Some(false)) {
            return Next::End { scanner };
        }
        match answer.more_results_in_region {
            Some(false) => Next::Region,
            _ => Next::Fetch { scanner },
        }
    }

    /// Closes the scanner of a scan that ended. The answer says nothing about the scan: a server may
    /// have closed the scanner itself.
    fn close(&mut self, next: Next) -> Result<Next, NoAnswer> {
        if let Next::End {
            scanner: Some(scanner),
        } = next
        {
            let request = ScanRequest {
                scanner_id: Some(scanner),
                number_of_rows: Some(0),
                close_scanner: Some(true),
                ..ScanRequest::default()
            };
            self.connection.call::<ScanResponse>("Scan", &request, b"")?;
        }
        Ok(next)
    }
}

/// The region in which a scan begins.
fn first_region<'r>(scan: &Scan, regions: &'r Regions) -> &'r Region {
    let start = scan.start_row();
    let before = scan.reversed() && (start.is_empty() || !scan.include_start_row());
    if before {
        regions.before(start)
    } else {
        regions.serving(start)
    }
}

/// Whether no row of the scan comes behind this region.
fn ends_in(scan: &Scan, region: &Region) -> bool {
    let stop = scan.stop_row();
    if scan.reversed() {
        return region.start.is_empty() || (!stop.is_empty() && &region.start[..] <= stop);
    }
    let past = &region.end[..] > stop || (&region.end[..] == stop && !scan.include_stop_row());
    region.end.is_empty() || (!stop.is_empty() && past)
}

fn fetched(index: i64, answer: &ScanResponse, results: Vec<Value>) -> Value {
    let cursor = answer.cursor.as_ref().map(|cursor| Value::bytes(cursor.row()));
    let metrics = answer.scan_metrics.as_ref();
    let metric = |name: &str| {
        let metric = metrics?.metrics.iter().find(|metric| metric.name() == name)?;
        Some(Value::Int(metric.value()))
    };
    record([
        ("region", Some(index.into())),
        ("open", answer.scanner_id.map(|_| true.into())),
        ("results", Some(results.into())),
        ("moreResults", answer.more_results.map(Value::Bool)),
        (
            "moreResultsInRegion",
            answer.more_results_in_region.map(Value::Bool),
        ),
        (
            "heartbeat",
            answer.heartbeat_message.filter(|flag| *flag).map(Value::Bool),
        ),
        ("cursor", cursor),
        ("rowsScanned", metric("ROWS_SCANNED")),
        ("rowsFiltered", metric("ROWS_FILTERED")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(start: &str, stop: &str, reversed: bool, inclusive: bool) -> Scan {
        Scan {
            start_row: Some(start.to_owned().into()),
            stop_row: Some(stop.to_owned().into()),
            reversed: Some(reversed),
            include_start_row: Some(inclusive),
            include_stop_row: Some(inclusive),
            ..Scan::default()
        }
    }

    #[test]
    fn scans_begin_in_the_region_of_their_first_row() {
        let regions = Regions::split_at(&["b", "d"]);
        let begin = |start, reversed, inclusive| {
            let scan = scan(start, "", reversed, inclusive);
            first_region(&scan, &regions).start.clone()
        };
        assert_eq!(begin("", false, true), "");
        assert_eq!(begin("b", false, true), "b");
        assert_eq!(begin("c", false, false), "b");
        assert_eq!(begin("", true, true), "d");
        assert_eq!(begin("d", true, true), "d");
        assert_eq!(begin("d", true, false), "b", "the rows before d");
        assert_eq!(begin("da", true, false), "d");
    }

    #[test]
    fn scans_end_in_the_region_of_their_last_row() {
        let regions = Regions::split_at(&["b", "d"]);
        let ends = |row: &str, stop, reversed, inclusive| {
            let scan = scan("", stop, reversed, inclusive);
            ends_in(&scan, regions.serving(row.as_bytes()))
        };
        assert!(!ends("a", "", false, true));
        assert!(ends("d", "", false, true), "the last region");
        assert!(ends("a", "b", false, false), "b is in the next region");
        assert!(!ends("a", "b", false, true));
        assert!(ends("b", "c", false, true));
        assert!(ends("a", "", true, true), "the first region");
        assert!(!ends("d", "", true, true));
        assert!(ends("d", "d", true, true));
        assert!(!ends("d", "c", true, true));
    }
}

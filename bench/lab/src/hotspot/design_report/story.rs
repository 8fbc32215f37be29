//! Benefit and cost of each design, in a sentence each, with the figures of the run.

use super::DesignReport;

/// Fills in both sentences of every design. `range` is the length of the range read, `hour` or
/// `day`.
pub(crate) fn tell(designs: &mut [DesignReport], range: &str) {
    let plain = designs.iter().find(|design| design.name == "sequential");
    let plain_seconds = plain.map(|design| design.range_read.range_seconds);
    for design in designs {
        let teller = Teller {
            design,
            range,
            plain_seconds,
        };
        let (bought, cost) = teller.sentences();
        (design.bought, design.cost) = (bought, cost);
    }
}

struct Teller<'a> {
    design: &'a DesignReport,
    range: &'a str,
    /// Time of the read with sequential keys.
    plain_seconds: Option<f64>,
}

impl Teller<'_> {
    fn sentences(&self) -> (String, String) {
        let (spread, read, heat) = (self.spread(), self.read(), self.heat());
        let article = if self.range == "hour" { "an" } else { "a" };
        let range = self.range;
        match self.design.name {
            "sequential" => (format!("Time order: {read}."), heat),
            "salted" | "hashed" => (
                spread,
                format!("Time order is kept within a prefix only: {read}."),
            ),
            "reversed" => (
                spread,
                format!("Neighbours in time lie apart, so no scan finds {article} {range}: {read}."),
            ),
            "random" => (
                format!("{spread} Keys cannot be guessed, and writers need not agree on them."),
                format!("A key says nothing about its row: {read}."),
            ),
            "reversed-timestamp" => (format!("The newest rows come first in a scan: {read}."), heat),
            "partitioned-id" => (
                format!("{spread} A key has 8 bytes and time order within each of 64 partitions."),
                format!("A query for a time asks every partition: {read}."),
            ),
            "minute" => (
                format!(
                    "Regions take turns, minute by minute (peak to mean {:.2} in sum), and a minute lies together.",
                    self.design.spread.region_peak_to_mean
                ),
                format!(
                    "{:.0} % of a minute's writes still go to one region, and each minute needs a scan: {read}{}.",
                    self.design.spread.region_busiest_share * 100.0,
                    self.increments(),
                ),
            ),
            _ => (spread, format!("Reading back: {read}.")),
        }
    }

    fn spread(&self) -> String {
        format!(
            "Writes fall on {} regions alike (peak to mean {:.2}).",
            self.design.spread.region_writes.len(),
            self.design.spread.region_peak_to_mean
        )
    }

    fn heat(&self) -> String {
        format!(
            "One region takes {:.0} % of a minute's writes: the table is as fast as one server.",
            self.design.spread.region_busiest_share * 100.0
        )
    }

    /// The cost of the read, and how it compares.
    fn read(&self) -> String {
        let read = &self.design.range_read;
        let scans = if read.range_scans == 1 {
            "one scan".to_owned()
        } else {
            format!("{} scans", read.range_scans)
        };
        let waste = if read.range_bytes_read_per_byte_returned > 1.5 {
            format!(
                " of the whole table ({:.0} bytes read for one that was wanted)",
                read.range_bytes_read_per_byte_returned
            )
        } else {
            String::new()
        };
        let compared = match self.plain_seconds {
            Some(plain) if plain > 0.0 && self.design.name != "sequential" => {
                format!(
                    ", {:.1} times the sequential design's",
                    read.range_seconds / plain
                )
            }
            _ => String::new(),
        };
        let range = self.range;
        let milliseconds = read.range_seconds * 1e3;
        format!("one {range} takes {scans}{waste} and {milliseconds:.1} ms{compared}")
    }

    fn increments(&self) -> String {
        match self.design.sequence_increments {
            0 => String::new(),
            increments => format!("; numbering took {increments} increments of a counter"),
        }
    }
}

//! Rows by slot of time.

use std::time::Duration;

use serde::Serialize;

/// A slot.
const SLOT: Duration = Duration::from_millis(250);

/// Acknowledged rows by slot of time since the start.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    slots: Vec<u64>,
}

/// Throughput over time.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineReport {
    pub(crate) slot_seconds: f64,
    pub(crate) rows_per_second: Vec<f64>,
}

impl Timeline {
    /// Adds rows that were acknowledged at this time since the start.
    pub fn add(&mut self, at: Duration, rows: u64) {
        let slot = usize::try_from(at.as_millis() / SLOT.as_millis()).unwrap_or(usize::MAX);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += rows;
    }

    pub(crate) fn add_all(&mut self, other: &Timeline) {
        if self.slots.len() < other.slots.len() {
            self.slots.resize(other.slots.len(), 0);
        }
        for (to, from) in self.slots.iter_mut().zip(&other.slots) {
            *to += from;
        }
    }

    /// The throughput of the slots that are over.
    pub fn report(&self) -> TimelineReport {
        // The last slot is not over, so its rate would be too small.
        let full = self.slots.len().saturating_sub(1);
        let full = full.max(usize::from(!self.slots.is_empty()));
        let slots = self.slots[..full].iter();
        TimelineReport {
            slot_seconds: SLOT.as_secs_f64(),
            rows_per_second: slots.map(|rows| *rows as f64 / SLOT.as_secs_f64()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_add_up_and_the_last_slot_is_left_out() {
        let at = Duration::from_millis;
        let (mut one, mut other) = (Timeline::default(), Timeline::default());
        one.add(at(0), 3);
        other.add(at(249), 1);
        other.add(at(250), 2);
        other.add(at(500), 9);
        one.add_all(&other);
        assert_eq!(one.report().rows_per_second, [16.0, 8.0]);
        assert!(Timeline::default().report().rows_per_second.is_empty());
    }
}

//! How many of a region's writes are refused, for the split policy that asks (HBase:
//! `BusyRegionSplitPolicy`).

use parking_lot::Mutex;

/// Watches a region's counters from the first look on.
#[derive(Debug, Default)]
pub(crate) struct BusyRate {
    watch: Mutex<Option<Watch>>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    /// Monotonic milliseconds of the first look.
    began_ms: u64,
    /// Start of the present window, and the counters at that time.
    window_ms: u64,
    writes: u64,
    refused: u64,
    /// The share in the window before.
    before: f64,
}

/// Result of one observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Busyness {
    /// Refused writes as a share of the writes that went through, in about one window. 0 until a window has
    /// passed.
    pub refused_share: f64,
    /// Milliseconds since the first look.
    pub age_ms: u64,
}

impl BusyRate {
    /// Evaluates the counters, which only grow. Within a window the share is that of this and of
    /// the last one, weighted by time.
    pub(crate) fn look(&self, now_ms: u64, writes: u64, refused: u64, window_ms: u64) -> Busyness {
        let mut watch = self.watch.lock();
        let watch = watch.get_or_insert(Watch {
            began_ms: now_ms,
            window_ms: now_ms,
            writes,
            refused,
            before: 0.0,
        });
        let share = ratio(refused - watch.refused, writes - watch.writes);
        let (age_ms, in_window_ms) = (now_ms - watch.began_ms, now_ms - watch.window_ms);
        let refused_share = if in_window_ms >= window_ms {
            *watch = Watch {
                window_ms: now_ms,
                writes,
                refused,
                before: share,
                ..*watch
            };
            share
        } else if age_ms >= window_ms {
            let weight = in_window_ms as f64 / window_ms as f64;
            (1.0 - weight) * watch.before + weight * share
        } else {
            0.0
        };
        Busyness {
            refused_share,
            age_ms,
        }
    }
}

fn ratio(refused: u64, writes: u64) -> f64 {
    if refused == 0 {
        return 0.0;
    }
    refused as f64 / writes.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_of_about_one_window() {
        let rate = BusyRate::default();
        let percent = |now_ms, writes, refused| {
            let look = rate.look(now_ms, writes, refused, 100);
            (look.refused_share * 100.0).round() as u64
        };
        assert_eq!(percent(1_000, 50, 40), 0, "what was before does not count");
        assert_eq!(percent(1_050, 60, 50), 0, "no window has passed");
        assert_eq!(percent(1_100, 70, 50), 50);
        assert_eq!(
            percent(1_150, 170, 50),
            25,
            "half of the window before, half of this one"
        );
        assert_eq!(percent(1_200, 170, 50), 0);
        assert_eq!(percent(1_300, 170, 60), 1000, "nothing went through");
        assert_eq!(rate.look(1_301, 170, 60, 100).age_ms, 301);
    }
}

//! The limit of bytes per second.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lets bytes pass at a rate. Shared by all transfers of a piece of work.
#[derive(Debug)]
pub(crate) struct Limit {
    /// 0: none.
    bytes_per_second: u64,
    /// When the bytes that were let pass are through.
    free_at: Mutex<Option<Instant>>,
}

impl Limit {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            free_at: Mutex::new(None),
        }
    }

    /// Returns when this many bytes may be transferred.
    pub(crate) async fn pass(&self, bytes: u64) {
        if self.bytes_per_second == 0 {
            return;
        }
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let begin = {
            let mut free_at = self.free_at.lock();
            let now = Instant::now();
            let begin = free_at.map_or(now, |free_at| free_at.max(now));
            *free_at = Some(begin + takes);
            begin
        };
        tokio::time::sleep_until(begin).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_pass_at_the_rate() {
        let limit = Limit::new(1000);
        let began = Instant::now();
        for _ in 0..11 {
            limit.pass(500).await;
        }
        assert_eq!(began.elapsed().as_secs(), 5);
        Limit::new(0).pass(u64::MAX).await;
    }
}

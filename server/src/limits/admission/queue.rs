//! The queue of calls for a bounded number of permits: first come, first served.
//!
//! Invariant: a call waits only while all permits are taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// A call's right to run. Dropping it lets the next call run.
pub(crate) type Permit = OwnedSemaphorePermit;

/// The permits, and the number of calls that wait for one.
#[derive(Debug)]
pub(super) struct Queue {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    max_wait: Option<Duration>,
}

/// The call has waited for the longest time that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Queue {
    /// A queue for `permits` permits. A call that has waited for `max_wait` is refused; `None`: no call is.
    pub(super) fn new(permits: usize, max_wait: Option<Duration>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            waiting: AtomicUsize::new(0),
            max_wait,
        }
    }

    /// Number of calls that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a permit.
    pub(super) async fn permit(&self) -> Result<Permit, TooLong> {
        if let Some(permit) = self.free() {
            return Ok(permit);
        }
        match self.max_wait {
            None => Ok(self.wait().await),
            Some(max_wait) => timeout(max_wait, self.wait()).await.map_err(|_| TooLong),
        }
    }

    /// Waits for a permit of a call that has been served in part: it is never refused.
    pub(super) async fn permit_again(&self) -> Permit {
        match self.free() {
            Some(permit) => permit,
            None => self.wait().await,
        }
    }

    /// A permit that no call waits for.
    fn free(&self) -> Option<Permit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    async fn wait(&self) -> Permit {
        let _waiting = Waiting::enter(&self.waiting);
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.expect("the semaphore is never closed")
    }
}

/// Counts a call or a reservation that waits, until it is dropped.
pub(super) struct Waiting<'a> {
    count: &'a AtomicUsize,
    /// Number of others that waited when this one began.
    pub(super) before: usize,
}

impl<'a> Waiting<'a> {
    pub(super) fn enter(count: &'a AtomicUsize) -> Self {
        let before = count.fetch_add(1, Ordering::SeqCst);
        Self { count, before }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const MAX_WAIT: Duration = Duration::from_millis(300);

    fn poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Option<F::Output> {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn free(queue: &Queue) -> usize {
        queue.permits.available_permits()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_served_in_their_order() {
        for max_wait in [None, Some(MAX_WAIT)] {
            let queue = Queue::new(1, max_wait);
            let permit = queue.permit().await.unwrap();
            let (mut first, mut second) = (pin!(queue.permit()), pin!(queue.permit()));
            assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
            assert_eq!(queue.len(), 2);
            tokio::time::advance(MAX_WAIT / 2).await;
            drop(permit);
            assert!(poll(&mut second).is_none());
            let permit = poll(&mut first).unwrap().unwrap();
            assert_eq!(queue.len(), 1);
            drop(permit);
            drop(poll(&mut second).unwrap().unwrap());
            assert_eq!((queue.len(), free(&queue)), (0, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_too_long_is_refused() {
        let queue = Queue::new(1, Some(MAX_WAIT));
        let permit = queue.permit().await.unwrap();
        assert_eq!(queue.permit().await.unwrap_err(), TooLong);
        assert_eq!(queue.len(), 0);
        drop(permit);
        assert_eq!(free(&queue), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_a_call_waits_for_ever() {
        let queue = Queue::new(1, None);
        let permit = queue.permit().await.unwrap();
        let mut next = pin!(queue.permit());
        assert!(poll(&mut next).is_none());
        tokio::time::advance(MAX_WAIT * 10).await;
        assert!(poll(&mut next).is_none());
        drop(permit);
        drop(poll(&mut next).unwrap().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_served_in_part_is_not_refused() {
        let queue = Queue::new(1, Some(MAX_WAIT));
        let permit = queue.permit().await.unwrap();
        let mut again = pin!(queue.permit_again());
        assert!(poll(&mut again).is_none());
        tokio::time::advance(MAX_WAIT * 10).await;
        assert!(poll(&mut again).is_none());
        drop(permit);
        drop(again.await);
    }

    /// A permit is never lost, whenever the call that would get it goes away.
    #[tokio::test(start_paused = true)]
    async fn the_permit_of_a_call_that_is_gone_goes_to_the_next() {
        let queue = Queue::new(1, Some(MAX_WAIT));
        let permit = queue.permit().await.unwrap();
        let mut last = pin!(queue.permit());
        {
            // Gone before its turn.
            let mut gone = pin!(queue.permit());
            assert!(poll(&mut gone).is_none());
        }
        {
            // Gone when its turn has come, and before it knows.
            let mut gone = pin!(queue.permit());
            assert!(poll(&mut gone).is_none() && poll(&mut last).is_none());
            drop(permit);
        }
        let permit = poll(&mut last).unwrap().unwrap();
        // Its turn comes when its time is over.
        let mut late = pin!(queue.permit());
        assert!(poll(&mut late).is_none());
        tokio::time::advance(MAX_WAIT).await;
        drop(permit);
        drop(late.await.unwrap());
        assert_eq!((queue.len(), free(&queue)), (0, 1));
    }
}

//! The line: data calls that wait for one of the pool's threads, and who of them is next.
//!
//! A line is first come, first served as long as everybody in it will be served in time. When the oldest call
//! has waited for half of what the line allows, more is asked for than the server can do: whoever is served,
//! others are refused. Then the newest is next, so that those who are served are served soon. First come,
//! first served would have each of them wait for nearly as long as is allowed. (Adaptive LIFO: Maurer, "Fail
//! at Scale", ACM Queue 2015; HBase's call queue of type `codel` does the same, HBASE-15136.) When the load
//! falls, the line empties from its end, and is in order again.
//!
//! Invariant: somebody waits only while all places are taken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// The places, and who waits for one.
#[derive(Debug)]
pub(super) struct Line {
    state: Mutex<State>,
    max_wait: Option<Duration>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// By their numbers, which ascend.
    waiting: BTreeMap<u64, Waiting>,
    next_number: u64,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    turn: oneshot::Sender<Place>,
}

/// A place on the pool. Dropping it is the next one's turn.
#[derive(Debug)]
pub(crate) struct Place {
    /// `None` only while it is handed on.
    line: Option<Arc<Line>>,
}

/// It has waited too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Line {
    /// So many places, all free. Whoever has waited for `max_wait` is refused; `None`: nobody is, and it is
    /// always first come, first served.
    pub(super) fn new(places: usize, max_wait: Option<Duration>) -> Arc<Line> {
        Arc::new(Line {
            state: Mutex::new(State {
                free: places,
                waiting: BTreeMap::new(),
                next_number: 0,
            }),
            max_wait,
        })
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// A place, when it is this call's turn.
    pub(super) async fn place(self: &Arc<Self>) -> Result<Place, TooLong> {
        let mut turn = match self.enter() {
            Ok(place) => return Ok(place),
            Err(turn) => turn,
        };
        let Some(max_wait) = self.max_wait else {
            return Ok(turn.comes().await);
        };
        if let Ok(place) = timeout(max_wait, turn.comes()).await {
            return Ok(place);
        }
        // It may have come at this moment.
        turn.leave().ok_or(TooLong)
    }

    /// The same for a call that has been served in part: it is never refused.
    pub(super) async fn place_again(self: &Arc<Self>) -> Place {
        match self.enter() {
            Ok(place) => place,
            Err(mut turn) => turn.comes().await,
        }
    }

    /// Takes a free place, or the end of the line.
    fn enter(self: &Arc<Self>) -> Result<Place, Turn<'_>> {
        let mut state = self.state.lock();
        if let Some(free) = state.free.checked_sub(1) {
            state.free = free;
            return Ok(Place {
                line: Some(Arc::clone(self)),
            });
        }
        let number = state.next_number;
        state.next_number += 1;
        let (turn, comes) = oneshot::channel();
        let since = Instant::now();
        state.waiting.insert(number, Waiting { since, turn });
        Err(Turn {
            line: self,
            number,
            comes,
        })
    }

    /// Gives a place back: whose turn it is now; `None` when nobody waits, and the place is free.
    fn next(&self) -> Option<oneshot::Sender<Place>> {
        let mut state = self.state.lock();
        let Some((_, oldest)) = state.waiting.first_key_value() else {
            state.free += 1;
            return None;
        };
        let is_long = self
            .max_wait
            .is_some_and(|max_wait| oldest.since.elapsed() > max_wait / 2);
        let next = if is_long {
            state.waiting.pop_last()
        } else {
            state.waiting.pop_first()
        };
        next.map(|(_, waiting)| waiting.turn)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(line) = self.line.take() else { return };
        while let Some(turn) = line.next() {
            let place = Place {
                line: Some(Arc::clone(&line)),
            };
            match turn.send(place) {
                Ok(()) => return,
                // Gone meanwhile: the next one's turn, without coming here again for this place.
                Err(mut place) => place.line = None,
            }
        }
    }
}

/// A call's presence in the line.
struct Turn<'a> {
    line: &'a Arc<Line>,
    number: u64,
    comes: oneshot::Receiver<Place>,
}

impl Turn<'_> {
    async fn comes(&mut self) -> Place {
        let place = (&mut self.comes).await;
        place.expect("who takes a call out of the line sends it its place")
    }

    /// Leaves the line; the place, if the turn has come already.
    fn leave(mut self) -> Option<Place> {
        self.comes.close();
        self.comes.try_recv().ok()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Not there if its turn has come. A place that has been sent and not received goes on with the
        // receiver, dropped after this.
        self.line.state.lock().waiting.remove(&self.number);
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

    #[tokio::test(start_paused = true)]
    async fn a_short_line_is_first_come_first_served() {
        let line = Line::new(1, Some(MAX_WAIT));
        let place = line.place().await.unwrap();
        let (mut first, mut second) = (pin!(line.place()), pin!(line.place()));
        assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
        assert_eq!(line.len(), 2);
        tokio::time::advance(MAX_WAIT / 2).await;
        drop(place);
        assert!(poll(&mut second).is_none());
        let place = poll(&mut first).unwrap().unwrap();
        assert_eq!(line.len(), 1);
        drop(place);
        poll(&mut second).unwrap().unwrap();
        assert_eq!((line.len(), line.state.lock().free), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_long_line_the_newest_is_next_and_the_oldest_is_refused() {
        let line = Line::new(1, Some(MAX_WAIT));
        let place = line.place().await.unwrap();
        let (mut first, mut second) = (pin!(line.place()), pin!(line.place()));
        assert!(poll(&mut first).is_none());
        tokio::time::advance(MAX_WAIT / 2 + Duration::from_millis(1)).await;
        assert!(poll(&mut second).is_none());
        drop(place);
        let place = poll(&mut second).unwrap().unwrap();
        assert!(poll(&mut first).is_none());
        assert_eq!(first.await.unwrap_err(), TooLong);
        assert_eq!(line.len(), 0);
        drop(place);
        assert_eq!(line.state.lock().free, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_the_oldest_is_always_next() {
        let line = Line::new(1, None);
        let place = line.place().await.unwrap();
        let (mut first, mut second) = (pin!(line.place()), pin!(line.place()));
        assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
        tokio::time::advance(MAX_WAIT * 10).await;
        drop(place);
        assert!(poll(&mut second).is_none());
        poll(&mut first).unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_been_served_in_part_is_not_refused() {
        let line = Line::new(1, Some(MAX_WAIT));
        let place = line.place().await.unwrap();
        let mut again = pin!(line.place_again());
        assert!(poll(&mut again).is_none());
        tokio::time::advance(MAX_WAIT * 10).await;
        assert!(poll(&mut again).is_none());
        drop(place);
        again.await;
    }

    /// A place is never lost, whenever the one whose turn it is goes away.
    #[tokio::test(start_paused = true)]
    async fn the_place_of_one_who_is_gone_is_the_next_ones() {
        let line = Line::new(1, Some(MAX_WAIT));
        let place = line.place().await.unwrap();
        let mut last = pin!(line.place());
        {
            // Gone before its turn.
            let mut gone = pin!(line.place());
            assert!(poll(&mut gone).is_none());
        }
        {
            // Gone when its turn has come, and before it knows.
            let mut gone = pin!(line.place());
            assert!(poll(&mut gone).is_none() && poll(&mut last).is_none());
            drop(place);
        }
        let place = poll(&mut last).unwrap().unwrap();
        // Its turn comes when its time is over.
        let mut late = pin!(line.place());
        assert!(poll(&mut late).is_none());
        tokio::time::advance(MAX_WAIT).await;
        drop(place);
        late.await.unwrap();
        assert_eq!((line.len(), line.state.lock().free), (0, 1));
    }
}

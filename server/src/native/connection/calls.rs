//! The calls of a connection that are in flight.
//!
//! A call begins in the task of its connection. Most are answered by their first poll; the others
//! stay in that task's set until the log, the disk or a lock lets them go on. So a hundred calls that
//! arrive together cost no switch of tasks, and their responses leave in one write.
//!
//! A call that may compute for long has a task of its own if other calls of the connection would
//! wait for it: clients send the calls of all their threads over one connection. A scan or a batch of
//! up to [`BATCH_HERE`] has one only when the calls that arrived with it have taken [`LONG_HERE`]
//! already: the part of a scan before the pool is bounded itself (`service::scans`), and a task would
//! write each response alone.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use basalt_idl::native::frame::Request;
use basalt_idl::native::messages::ClientServiceMethod;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinSet;

use super::answer::{Running, answer, unknown_method};
use super::output::Response;
use super::{Connection, MemoryPermit};
use crate::native::arrived::Arrived;
use crate::native::peer::Method;

/// Time after which the calls that arrived together run no further scan or batch in the task of their
/// connection.
const LONG_HERE: Duration = Duration::from_micros(500);
/// Largest batch, in bytes, that runs in the task of its connection: some hundred puts.
const BATCH_HERE: usize = 64 << 10;

/// Calls in flight.
#[derive(Default)]
pub(super) struct Calls {
    /// A call of the connection's task that was alone when it began. It needs no set, which would cost
    /// it an allocation and a waker of its own.
    alone: Option<Running>,
    /// The other calls of the connection's task.
    here: FuturesUnordered<Running>,
    /// Those with a task of their own.
    apart: JoinSet<Option<Response>>,
    /// Whether calls were added to `here` since [`Self::are_new`] was asked.
    new: bool,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        usize::from(self.alone.is_some()) + self.here.len() + self.apart.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.alone.is_none() && self.here.is_empty() && self.apart.is_empty()
    }

    /// Whether calls have begun and were not answered, since this was asked last.
    pub(super) fn are_new(&mut self) -> bool {
        std::mem::take(&mut self.new)
    }

    /// Begins a call, and polls it once unless it has a task of its own. Returns the response, if it
    /// is ready. `permit` is the memory of the request, `has_next` whether a further call has arrived.
    pub(super) async fn begin(
        &mut self,
        connection: &Arc<Connection>,
        request: Request,
        permit: MemoryPermit,
        arrived: Instant,
        has_next: bool,
    ) -> Option<Response> {
        let Some(method) = Method::find(connection.peer.service, request.header.method()) else {
            return Some(unknown_method(connection, &request.header, permit));
        };
        let call = Arrived::new(request, arrived, self.len());
        let others_wait = has_next || !self.is_empty();
        let is_apart = others_wait && may_take_long(method, &call);
        let mut call = answer(Arc::clone(connection), method, call, permit);
        if is_apart {
            self.apart.spawn(call);
            return None;
        }
        match poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Ready(response) => response,
            Poll::Pending => {
                if others_wait {
                    self.here.push(call);
                } else {
                    self.alone = Some(call);
                }
                self.new = true;
                None
            }
        }
    }

    /// Waits until a call has ended. REQUIRES: there is one.
    pub(super) async fn next(&mut self) -> Option<Response> {
        tokio::select! {
            biased;
            response = end_of(&mut self.alone) => response,
            Some(response) = self.here.next() => response,
            // A task is lost only when the runtime is going down. A panic in it has ended the process already
            // in a release build.
            Some(joined) = self.apart.join_next() => joined.unwrap_or_default(),
        }
    }

    /// Lets the calls run to their ends without a connection: a write that has begun is completed.
    pub(super) fn detach(mut self) {
        self.apart.detach_all();
        if let Some(call) = self.alone {
            tokio::spawn(call);
        }
        if !self.here.is_empty() {
            tokio::spawn(self.here.for_each(|_| std::future::ready(())));
        }
    }
}

/// Waits until the call has ended, and removes it; never ends if there is none.
async fn end_of(call: &mut Option<Running>) -> Option<Response> {
    let response = poll_fn(|context| match call {
        Some(call) => call.as_mut().poll(context),
        None => Poll::Pending,
    })
    .await;
    *call = None;
    response
}

/// Whether a call may keep its thread for longer than a get or a put of one row.
fn may_take_long(method: Method, call: &Arrived) -> bool {
    let Method::Client(method) = method else {
        return true;
    };
    match method {
        ClientServiceMethod::Get | ClientServiceMethod::Mutate => false,
        ClientServiceMethod::Scan => call.at.elapsed() > LONG_HERE,
        ClientServiceMethod::Multi => {
            call.parameter.len() + call.cells.len() > BATCH_HERE || call.at.elapsed() > LONG_HERE
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::{Receiver, Sender, channel};

    use super::*;

    /// A call that ends when it is told to, and says so.
    struct Told {
        tell: Sender<()>,
        ended: Receiver<()>,
    }

    fn call() -> (Running, Told) {
        let ((tell, told), (end, ended)) = (channel(), channel());
        let call = Box::pin(async move {
            told.await.expect("it is told");
            end.send(()).expect("the test waits for it");
            None
        });
        (call, Told { tell, ended })
    }

    /// A call that was alone when it began, and one that was not.
    fn two() -> (Calls, [Told; 2]) {
        let ((alone, of_alone), (other, of_other)) = (call(), call());
        let calls = Calls {
            alone: Some(alone),
            ..Calls::default()
        };
        calls.here.push(other);
        (calls, [of_alone, of_other])
    }

    #[tokio::test]
    async fn calls_end_in_the_order_in_which_they_are_ready() {
        for alone_is_first in [true, false] {
            let (mut calls, mut told) = two();
            if !alone_is_first {
                told.reverse();
            }
            for (Told { tell, mut ended }, left) in told.into_iter().zip([1, 0]) {
                tell.send(()).unwrap();
                assert!(calls.next().await.is_none());
                ended.try_recv().expect("this one has ended");
                assert_eq!((calls.len(), calls.is_empty()), (left, left == 0));
            }
        }
    }

    #[tokio::test]
    async fn calls_without_a_connection_run_to_their_ends() {
        let (calls, told) = two();
        calls.detach();
        for Told { tell, ended } in told {
            tell.send(()).unwrap();
            ended.await.expect("it has run");
        }
    }
}

//! Waking up when something is due.
//!
//! The runtime's own timers have a resolution of milliseconds, too coarse here. An alarm is a timer
//! of the system (timerfd_create(2)), precise to some tens of microseconds: a file descriptor that
//! becomes readable when the timer fires, for which tokio waits as for a pipe.

use std::io;
use std::time::{Duration, Instant};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::net::unix::pipe::Receiver;

/// A timer of one task. It belongs to the runtime that made it.
#[derive(Debug)]
pub(super) struct Alarm(Receiver);

impl Alarm {
    pub(super) fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Unchecked: it is no pipe.
        Ok(Alarm(Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Waits until then, not at all if that is past. Returns when it is.
    pub(super) async fn until(&self, due: Instant) -> io::Result<Instant> {
        loop {
            let now = Instant::now();
            let Some(wait) = due.checked_duration_since(now).filter(|wait| !wait.is_zero()) else {
                return Ok(now);
            };
            self.wait(wait).await?;
        }
    }

    /// Waits so long. REQUIRES: not for no time, which would be no timer.
    async fn wait(&self, time: Duration) -> io::Result<()> {
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: time.try_into().map_err(io::Error::other)?,
        };
        rustix::time::timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        loop {
            self.0.readable().await?;
            match self.0.try_read(&mut [0; 8]) {
                // The readiness was that of an earlier alarm.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an alarm is never early, and can be set again, also after a dropped wait.
    /// Method: short waits, one of them dropped.
    #[tokio::test]
    async fn it_rings_when_it_is_due() {
        let alarm = Alarm::new().unwrap();
        let began = Instant::now();
        assert!(alarm.until(began).await.unwrap() >= began);
        for wait in [1, 300, 2_000] {
            let due = Instant::now() + Duration::from_micros(wait);
            assert!(alarm.until(due).await.unwrap() >= due);
            let given_up = alarm.until(due + Duration::from_hours(1));
            tokio::select! {
                biased;
                rung = given_up => panic!("an hour early: {rung:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
}

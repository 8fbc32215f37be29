//! A bounded set of connections to one server.
//!
//! A semaphore has one permit for each connection that may exist. A caller waits for a permit, but
//! no longer than the limit, and then takes the idle connection used last, or opens one. On drop, a
//! connection that is still usable goes back to the idle list before its permit is released, so a
//! waiter finds it there.
//!
//! Idle connections are closed after [`PoolOptions::idle_max`]: HBase closes a connection that was
//! silent for 60 s, and a call sent into that close would fail without saying whether it was
//! carried out.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::connection::{Connection, ConnectionOptions};
use crate::error::{Error, Result};

/// Limits of a pool: connections, their idle time, and the wait for one.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Most connections, busy and idle. Default 16.
    pub connections_max: usize,
    /// Longest time a caller waits for a connection when all are busy. Default 10 s.
    pub wait_max: Duration,
    /// Longest time a connection may sit idle and still be used. Default 30 s.
    pub idle_max: Duration,
    /// For each connection.
    pub connection: ConnectionOptions,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            connections_max: 16,
            wait_max: Duration::from_secs(10),
            idle_max: Duration::from_secs(30),
            connection: ConnectionOptions::default(),
        }
    }
}

/// A bounded set of connections to one server. Clones share it.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    target: String,
    options: PoolOptions,
    /// One permit for each connection that may exist.
    permits: Arc<Semaphore>,
    /// Usable when put here, the one used last at the end. Never locked across an await.
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection on loan. Goes back to the pool when dropped, unless it broke.
#[derive(Debug)]
pub struct Pooled {
    /// Some until drop.
    connection: Option<Connection>,
    pool: Pool,
    /// Given back after the connection: fields are dropped after `drop` ran.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    /// A pool for `target`, a `host:port`. Connects when first used.
    pub fn new(target: impl Into<String>, options: PoolOptions) -> Result<Pool> {
        if options.connections_max == 0 || options.connections_max > Semaphore::MAX_PERMITS {
            let text = format!(
                "a pool needs at least one connection and at most {}",
                Semaphore::MAX_PERMITS
            );
            return Err(Error::InvalidRequest(text));
        }
        Ok(Pool {
            shared: Arc::new(Shared {
                target: target.into(),
                permits: Arc::new(Semaphore::new(options.connections_max)),
                options,
                idle: Mutex::new(Vec::new()),
            }),
        })
    }

    /// The address as given.
    pub fn target(&self) -> &str {
        &self.shared.target
    }

    /// Idle connections at this moment.
    pub fn idle_count(&self) -> usize {
        self.idle().len()
    }

    /// An idle connection, or a new one.
    pub async fn acquire(&self) -> Result<Pooled> {
        let permit = self.permit().await?;
        match self.take_idle() {
            Some(connection) => Ok(self.lend(connection, Some(permit))),
            None => self.open(Some(permit)).await,
        }
    }

    /// A new connection. An event that broke one idle connection, mostly a restart of the server,
    /// broke the others as well, so they are closed.
    pub async fn acquire_new(&self) -> Result<Pooled> {
        let permit = self.permit().await?;
        self.idle().clear();
        self.open(Some(permit)).await
    }

    /// A connection for a scan, which keeps it to its end, since a server may let only the
    /// connection that opened a scanner fetch from it. It is not counted against the pool's limit
    /// and never waited for: merged scans wait for each other's rows, and a reader of rows may make
    /// other calls in between, so a wait could be for ever.
    pub async fn acquire_for_scan(&self) -> Result<Pooled> {
        match self.take_idle() {
            Some(connection) => Ok(self.lend(connection, None)),
            None => self.open(None).await,
        }
    }

    /// As [`Self::acquire_for_scan`], but a new one, as [`Self::acquire_new`].
    pub async fn acquire_new_for_scan(&self) -> Result<Pooled> {
        self.idle().clear();
        self.open(None).await
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        let limit = self.shared.options.wait_max;
        let waiting = timeout(limit, Arc::clone(&self.shared.permits).acquire_owned());
        match waiting.await {
            Ok(permit) => Ok(permit.expect("the semaphore of a pool is never closed")),
            Err(_) => Err(Error::PoolBusy {
                target: self.shared.target.clone(),
                connections: self.shared.options.connections_max,
                waited: limit,
            }),
        }
    }

    async fn open(&self, permit: Option<OwnedSemaphorePermit>) -> Result<Pooled> {
        let options = self.shared.options.connection.clone();
        let connection = Connection::open(&self.shared.target, options).await?;
        Ok(self.lend(connection, permit))
    }

    fn lend(&self, connection: Connection, permit: Option<OwnedSemaphorePermit>) -> Pooled {
        Pooled {
            connection: Some(connection),
            pool: self.clone(),
            _permit: permit,
        }
    }

    /// The connection used last that is still good. Those used before it are older still.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle();
        while let Some(Idle {
            mut connection,
            since,
        }) = idle.pop()
        {
            if since.elapsed() > self.shared.options.idle_max {
                idle.clear();
            } else if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        // The list is whole after every statement under the lock, so a panic elsewhere did not harm it.
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Pooled {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("taken only by drop")
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("taken only by drop")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let mut idle = self.pool.idle();
        // Connections of scans come on top of the pool's own; no more are kept than the pool may have.
        if connection.is_usable() && idle.len() < self.pool.shared.options.connections_max {
            let since = Instant::now();
            idle.push(Idle { connection, since });
        }
    }
}

//! The connections of a cluster: one for each server and service, opened when first needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::{Instant, timeout_at};

use super::connection::{Connection, Service};
use super::look_ups::{Failed, Turn};
use super::options::ClusterOptions;
use crate::error::{CONNECTING, Error, Result};

/// The connections of a cluster.
#[derive(Debug)]
pub(super) struct Connections {
    options: Arc<ClusterOptions>,
    slots: Mutex<Slots>,
}

/// By address and service.
type Slots = HashMap<(Arc<str>, Service), Arc<Slot>>;

#[derive(Debug, Default)]
struct Slot {
    current: Mutex<Option<Connection>>,
    /// Held while a connection is opened, so that callers share one, or its failure.
    opening: tokio::sync::Mutex<Option<Failed>>,
}

impl Connections {
    pub(super) fn new(options: Arc<ClusterOptions>) -> Connections {
        Connections {
            options,
            slots: Mutex::default(),
        }
    }

    /// The connection to a service of a server, opened if there is none.
    pub(super) async fn get(
        &self,
        target: &Arc<str>,
        service: Service,
        deadline: Instant,
    ) -> Result<Connection> {
        let slot = self.slot(target, service);
        if let Some(connection) = slot.usable() {
            return Ok(connection);
        }
        let began = Instant::now();
        let opening = self.open(&slot, target, service);
        timeout_at(deadline, opening).await.unwrap_or_else(|_| {
            Err(Error::Timeout {
                what: CONNECTING,
                target: target.to_string(),
                limit: deadline.saturating_duration_since(began),
            })
        })
    }

    fn slot(&self, target: &Arc<str>, service: Service) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry((Arc::clone(target), service)).or_default();
        Arc::clone(slot)
    }

    async fn open(&self, slot: &Slot, target: &Arc<str>, service: Service) -> Result<Connection> {
        let turn = Turn::of(&slot.opening).await;
        if let Some(connection) = slot.usable() {
            return Ok(connection);
        }
        turn.check()?;
        let opened = Connection::open(Arc::clone(target), service, &self.options).await;
        let Ok(connection) = &opened else {
            turn.end(&opened);
            return opened;
        };
        *slot.lock() = Some(connection.clone());
        turn.end(&opened);
        opened
    }
}

impl Slot {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Connection>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, if it is usable. One that is not is dropped, which closes its socket.
    fn usable(&self) -> Option<Connection> {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|connection| !connection.is_usable()) {
            *current = None;
        }
        current.clone()
    }
}

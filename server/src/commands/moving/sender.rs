//! Sends cells to the other cluster as a replication source does: timestamps, types and tags stay, and each
//! edit says that it has passed this cluster, so that no peer sends it back.
//!
//! A call that fails is repeated, at another server if there is one: an edit that is applied twice has the
//! effect of one.

use std::cell::{Cell as Shared, RefCell};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use basalt_client::native::{ServerName, Shipment, ShippedEdit};
use basalt_client::{Cell, CellKind, Row};
use basalt_idl::native::cells::{CellType, WireCell};
use tokio::time::{Instant, sleep, sleep_until};

use super::Failure;
use super::side::Side;

/// Attempts of a call.
const ATTEMPTS: u32 = 10;

/// Longest time of a call.
const CALL: Duration = Duration::from_mins(2);

/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Bytes of cells after which a call is sent.
pub(super) const CALL_BYTES: usize = 4 << 20;

/// Sends to the servers of a cluster in turn.
pub(super) struct Sender<'a> {
    to: &'a Side,
    table: &'a str,
    /// The id of the cluster from which the cells come.
    origin: [u8; 16],
    servers: RefCell<Vec<ServerName>>,
    next: Shared<usize>,
    pace: Pace,
}

/// Keeps a rate over all calls.
#[derive(Debug)]
struct Pace {
    /// Bytes per second; `None`: no limit.
    rate: Option<u64>,
    began: Instant,
    bytes: Shared<u64>,
}

/// Edits of one region that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Parcel {
    shipment: Shipment,
    block: Vec<u8>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(to: &'a Side, table: &'a str, origin: [u8; 16], rate: Option<u64>) -> Self {
        Self {
            to,
            table,
            origin,
            servers: RefCell::default(),
            next: Shared::new(0),
            pace: Pace {
                rate,
                began: Instant::now(),
                bytes: Shared::new(0),
            },
        }
    }

    /// Appends a row, or a piece of one, as an edit of a region.
    pub(super) fn add(&self, parcel: &mut Parcel, region: &[u8], row: &Row) {
        parcel.block.clear();
        let mut families: Vec<&[u8]> = Vec::new();
        for cell in &row.cells {
            wire(&row.key, cell).encode(&mut parcel.block);
            if !families.contains(&&cell.family[..]) {
                families.push(&cell.family);
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        parcel.shipment.push(&ShippedEdit {
            table: self.table,
            region,
            sequence: 0,
            write_time_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            clusters: &[self.origin],
            families: &families,
            cells: u32::try_from(row.cells.len()).unwrap_or(u32::MAX),
            block: &parcel.block,
        });
    }

    /// Sends a parcel. Returns the bytes of its cells when they are durable there.
    pub(super) async fn send(&self, parcel: Parcel) -> Result<u64, Failure> {
        let shipment = parcel.shipment;
        if shipment.edits() == 0 {
            return Ok(0);
        }
        let bytes = shipment.bytes() as u64;
        self.pace.wait(bytes).await;
        let mut attempt = 1;
        loop {
            match self.attempt(&shipment).await {
                Ok(()) => return Ok(bytes),
                Err(error) if attempt == ATTEMPTS => {
                    return Err(format!(
                        "the other cluster refuses cells of table {} after {ATTEMPTS} attempts: {error}",
                        self.table
                    )
                    .into());
                }
                Err(_) => {
                    self.servers.borrow_mut().clear();
                    sleep(PAUSE_MAX.min(Duration::from_millis(200) * attempt * attempt)).await;
                    attempt += 1;
                }
            }
        }
    }

    async fn attempt(&self, shipment: &Shipment) -> Result<(), Failure> {
        let server = self.server().await?;
        Ok(self.to.cluster.ship(&server, shipment, CALL).await?)
    }

    /// The next server.
    async fn server(&self) -> Result<ServerName, Failure> {
        let known = self.known();
        if let Some(server) = known {
            return Ok(server);
        }
        *self.servers.borrow_mut() = self.to.servers().await?;
        self.known()
            .ok_or_else(|| "the other cluster has no region servers".into())
    }

    fn known(&self) -> Option<ServerName> {
        let servers = self.servers.borrow();
        let at = self.next.replace(self.next.get().wrapping_add(1));
        servers.get(at.checked_rem(servers.len())?).cloned()
    }
}

impl Parcel {
    /// Bytes of its cells.
    pub(super) fn bytes(&self) -> usize {
        self.shipment.bytes()
    }
}

impl Pace {
    /// Waits until the rate allows `bytes` more.
    async fn wait(&self, bytes: u64) {
        let before = self.bytes.replace(self.bytes.get() + bytes);
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(before as f64 / rate.max(1) as f64);
            sleep_until(self.began + due).await;
        }
    }
}

fn wire<'a>(row: &'a [u8], cell: &'a Cell) -> WireCell<'a> {
    WireCell {
        row,
        family: &cell.family,
        qualifier: &cell.qualifier,
        timestamp: cell.timestamp,
        cell_type: match cell.kind {
            CellKind::Put => CellType::Put,
            CellKind::Delete => CellType::Delete,
            CellKind::DeleteFamilyVersion => CellType::DeleteFamilyVersion,
            CellKind::DeleteColumn => CellType::DeleteColumn,
            CellKind::DeleteFamily => CellType::DeleteFamily,
        },
        value: &cell.value,
        tags: &cell.tags,
    }
}

/// A cluster's id as bytes. Fails for one that is no UUID.
pub(super) fn id_bytes(text: &str) -> Result<[u8; 16], Failure> {
    let digits: String = text.trim().split('-').collect();
    let number = u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|_| digits.len() == 32);
    match number {
        Some(number) => Ok(number.to_be_bytes()),
        None => Err(format!("the id of this cluster, {text:?}, is no UUID").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_kept_over_all_calls() {
        let pace = Pace {
            rate: Some(1_000),
            began: Instant::now(),
            bytes: Shared::new(0),
        };
        for (bytes, seconds) in [(2_000, 0), (1_000, 2), (1, 3)] {
            pace.wait(bytes).await;
            assert_eq!(pace.began.elapsed().as_secs(), seconds, "{bytes}");
        }
    }

    #[test]
    fn ids_are_uuids() {
        let id = id_bytes("01020304-0506-0708-090a-0b0c0d0e0f10").unwrap();
        assert_eq!((id[0], id[15]), (1, 16));
        assert!(id_bytes("x").unwrap_err().to_string().contains("\"x\""));
    }
}

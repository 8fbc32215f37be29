//! Increments and appends over native RPC with nonces, which are repeated: at once now and then, and
//! after each kill if there was no answer. Each must be applied once.
//!
//! Each client has rows of its own, so it knows their expected values, but for the one operation
//! that the kill has interrupted. A look reads the rows, repeats the last operation of each, and
//! reads again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use basalt_client::{Client, Get};
use basalt_histcheck::once::{self, Operation, State};
use basalt_idl::native::messages::mutation_proto::column_value::QualifierValue;
use basalt_idl::native::messages::mutation_proto::{ColumnValue, MutationType};
use basalt_idl::native::messages::{
    Action, MultiRequest, MultiResponse, MutateRequest, MutateResponse, MutationProto, RegionAction,
    RegionSpecifier,
};
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::Problem;
use super::calls::{Ended, Findings};
use super::life::{BREATH, Life, Tasks, columns};
use super::native::{CHANGED, Native, TABLE};
use super::report::Figures;

const NAME: &str = "nonces";
const CLIENTS: usize = 2;
const ROWS: usize = 5;
/// Texts are appended to until they are so long.
const TEXT_BYTES_MAX: usize = 2_000;
/// How often a look repeats an operation.
const REPEATS: usize = 2;

/// An operation with its nonce.
#[derive(Clone, Debug)]
struct Sent {
    nonce: u64,
    operation: Operation,
    /// In a batch, not alone.
    in_batch: bool,
}

#[derive(Clone, Debug, Default)]
struct Row {
    /// After all acknowledged operations.
    known: State,
    /// The last operation that was sent.
    last: Option<Sent>,
    /// Whether it was acknowledged.
    acknowledged: bool,
}

impl Row {
    /// The operation of which nothing is known.
    fn pending(&self) -> Option<&Operation> {
        let last = self.last.as_ref().filter(|_| !self.acknowledged);
        last.map(|sent| &sent.operation)
    }

    /// The last operation was acknowledged, for the first time or once more.
    fn acknowledge(&mut self) {
        if let Some(operation) = self.pending() {
            self.known = self.known.after(operation);
        }
        self.acknowledged = true;
    }
}

/// The knowledge of one client.
#[derive(Debug, Default)]
struct Known {
    rows: [Row; ROWS],
    nonces: u64,
}

#[derive(Debug, Default)]
pub(super) struct Nonces {
    clients: Arc<[Mutex<Known>; CLIENTS]>,
    /// Operations that were acknowledged since the last look, and repeats of acknowledged ones.
    operations: Arc<AtomicU64>,
    repeats: Arc<AtomicU64>,
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(client: usize, row: usize) -> Bytes {
    format!("nonces-{client}-{row}").into()
}

impl Nonces {
    pub(super) fn start(&self, life: &Arc<Life>, tasks: &mut Tasks) {
        for number in 0..CLIENTS {
            let (life, clients) = (Arc::clone(life), Arc::clone(&self.clients));
            let (operations, repeats) = (Arc::clone(&self.operations), Arc::clone(&self.repeats));
            tasks.spawn_blocking(move || {
                let Some(native) = Native::connect(life.address(), NAME, &life.findings) else {
                    return;
                };
                let random = life.random(700 + number as u64);
                let mut writer = Writer {
                    native,
                    number,
                    known: &clients[number],
                };
                // `None`: the server is gone, as is usual at the end of a life.
                let _ = writer.write(&life, random, &operations, &repeats);
            });
        }
    }

    /// Reads every row, repeats its last operation, and reads again.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        address: SocketAddr,
        findings: &Arc<Findings>,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        let gone = || Problem::new(NAME, "the server is gone");
        for number in 0..CLIENTS {
            let mut writer = Writer {
                native: Native::connect(address, NAME, findings).ok_or_else(gone)?,
                number,
                known: &self.clients[number],
            };
            for row in 0..ROWS {
                check(client, &key(number, row), &writer.row(row)).await?;
                for _ in 0..REPEATS {
                    writer.send(row).ok_or_else(gone)?;
                    check(client, &key(number, row), &writer.row(row)).await?;
                }
            }
        }
        figures.operations += (CLIENTS * ROWS) as u64 + self.operations.swap(0, Ordering::Relaxed);
        figures.repeats += (CLIENTS * ROWS * REPEATS) as u64 + self.repeats.swap(0, Ordering::Relaxed);
        Ok(())
    }
}

/// Compares a row with its client's knowledge.
async fn check(client: &Client, key: &Bytes, known: &Row) -> Result<(), Problem> {
    let table = client.table(TABLE).expect("a well-formed name");
    let found = table.get(Get::new(key)).await;
    let found = columns(found.map_err(|error| Problem::new(NAME, format!("cannot be read: {error}")))?);
    let sum = found
        .get(&b"f:n"[..])
        .map_or(Ok([0; 8]), |value| value[..].try_into());
    let sum = sum.map_err(|_| Problem::new(NAME, "a counter has no eight bytes"))?;
    let state = State {
        sum: i64::from_be_bytes(sum),
        text: found.get(&b"f:s"[..]).cloned().unwrap_or_default(),
    };
    once::check(key, &known.known, known.pending(), &state)
        .map(drop)
        .map_err(|violation| Problem::of(NAME, violation))
}

/// One client in one life.
struct Writer<'a> {
    native: Native,
    number: usize,
    known: &'a Mutex<Known>,
}

impl Writer<'_> {
    /// Makes operations until the server is gone.
    fn write(
        &mut self,
        life: &Life,
        mut random: SmallRng,
        operations: &AtomicU64,
        repeats: &AtomicU64,
    ) -> Option<()> {
        // The interrupted operations come first: nothing may come between it and its repeat.
        for row in 0..ROWS {
            self.send(row)?;
        }
        while !life.stopped() {
            let row = random.random_range(0..ROWS);
            self.draw(row, &mut random);
            self.send(row)?;
            operations.fetch_add(1, Ordering::Relaxed);
            if random.random_bool(0.3) {
                self.send(row)?;
                repeats.fetch_add(1, Ordering::Relaxed);
            }
        }
        Some(())
    }

    fn row(&self, row: usize) -> Row {
        locked(self.known).rows[row].clone()
    }

    /// Draws the next operation of a row.
    fn draw(&self, row: usize, random: &mut SmallRng) {
        let mut known = locked(self.known);
        known.nonces += 1;
        let nonce = known.nonces;
        let row = &mut known.rows[row];
        // Long texts would only make everything slower.
        let operation = if row.known.text.len() > TEXT_BYTES_MAX || random.random_bool(0.5) {
            Operation::Add(random.random_range(1..100))
        } else {
            Operation::Append(format!("+{nonce}").into())
        };
        row.last = Some(Sent {
            nonce,
            operation,
            in_batch: random.random_bool(0.3),
        });
        row.acknowledged = false;
    }

    /// Sends the last operation of a row, for the first time or once more, until it is not refused.
    /// `None` if the server is gone.
    fn send(&mut self, row: usize) -> Option<()> {
        let Some(sent) = self.row(row).last else {
            return Some(());
        };
        loop {
            match self.send_once(&key(self.number, row), &sent) {
                Ended::Done(()) => break,
                Ended::Refused => std::thread::sleep(BREATH),
                Ended::Gone => return None,
            }
        }
        locked(self.known).rows[row].acknowledge();
        Some(())
    }

    fn send_once(&mut self, key: &Bytes, sent: &Sent) -> Ended<()> {
        let region = self.native.region(key, &[]);
        region.and_then(|(region, _)| {
            let mutation = mutation(key, sent);
            let nonce_group = Some(self.number as u64 + 1);
            if sent.in_batch {
                let request = batch(region, mutation, nonce_group);
                let answer = self.native.call("Multi", &request);
                return answer.and_then(|answer| self.of_batch(answer));
            }
            let request = MutateRequest {
                region,
                mutation,
                nonce_group,
                ..MutateRequest::default()
            };
            let answer = self.native.call::<MutateResponse>("Mutate", &request);
            answer.and_then(|_| Ended::Done(()))
        })
    }

    /// The outcome of the only action of a batch.
    fn of_batch(&mut self, answer: MultiResponse) -> Ended<()> {
        let Some(group) = answer.region_action_result.into_iter().next() else {
            return self.native.found("a batch has no result".to_owned());
        };
        let action = group.result_or_exception.into_iter().next();
        let of_action = action.and_then(|action| action.exception);
        match group.exception.or(of_action.map(|pair| *pair)) {
            None => Ended::Done(()),
            Some(exception) if exception.name.ends_with(".DoNotRetryIOException") => self.native.found(
                format!("the server answered {}: {:?}", exception.name, exception.value),
            ),
            Some(_) => {
                self.native.evict_regions();
                Ended::Refused
            }
        }
    }
}

/// A batch of one mutation.
fn batch(region: RegionSpecifier, mutation: MutationProto, nonce_group: Option<u64>) -> MultiRequest {
    let action = Action {
        index: Some(0),
        mutation: Some(Box::new(mutation)),
        ..Action::default()
    };
    MultiRequest {
        region_action: vec![RegionAction {
            region,
            action: vec![action],
            ..RegionAction::default()
        }],
        nonce_group,
        ..MultiRequest::default()
    }
}

fn mutation(key: &Bytes, sent: &Sent) -> MutationProto {
    let (mutate_type, qualifier, value) = match &sent.operation {
        Operation::Add(amount) => {
            let amount = Bytes::copy_from_slice(&amount.to_be_bytes());
            (MutationType::Increment, "n", amount)
        }
        Operation::Append(piece) => (MutationType::Append, "s", piece.clone()),
    };
    let value = QualifierValue {
        qualifier: Some(Bytes::from_static(qualifier.as_bytes())),
        value: Some(value),
        ..QualifierValue::default()
    };
    MutationProto {
        row: Some(key.clone()),
        mutate_type: Some(mutate_type.into()),
        column_value: vec![ColumnValue {
            family: Bytes::from_static(CHANGED.as_bytes()),
            qualifier_value: vec![value],
        }],
        nonce: Some(sent.nonce),
        ..MutationProto::default()
    }
}

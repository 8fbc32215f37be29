//! Accounts in the columns of one row, in two families: every read must find the same sum.
//!
//! Transfers go two ways, both atomic on the row: an increment of two accounts by opposite amounts, and a
//! checkAndMutate that sets two accounts if the row's version is the one that was read. Each also moves the
//! version on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_client::{Check, Client, Error, Get, Increment, Put, RowMutations, Scan, Table};
use basalt_histcheck::{Columns, Violation, bank};
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::Problem;
use super::calls::{Ended, ended};
use super::life::{BREATH, Life, Tasks, columns, parts, small_table};
use super::perform::{number, numbered};
use super::report::Figures;

pub(super) const NAME: &str = "bank";
const FAMILIES: [&str; 2] = ["a", "b"];
const ACCOUNTS_EACH: usize = 8;
const ROWS: usize = 6;
const WRITERS: u64 = 2;
const SUM: i64 = 1000 * (FAMILIES.len() * ACCOUNTS_EACH) as i64;
const VERSION: &str = "a:version";

#[derive(Debug, Default)]
pub(super) struct Bank {
    /// Reads that were checked.
    reads: Arc<AtomicU64>,
}

fn key(number: usize) -> Bytes {
    format!("bank-{number}").into()
}

fn check(row: &Bytes, mut columns: Columns) -> Result<(), Violation> {
    columns.remove(VERSION.as_bytes());
    bank::check(row, &columns, FAMILIES.len() * ACCOUNTS_EACH, SUM)
}

impl Bank {
    pub(super) async fn prepare(&self, client: &Client, random: &mut SmallRng) -> Result<(), Error> {
        client.create_table(small_table(NAME, &FAMILIES, random)).await?;
        let table = client.table(NAME)?;
        for row in 0..ROWS {
            let mut put = Put::new(key(row)).cell("a", "version", number(0));
            for account in numbered(&FAMILIES, ACCOUNTS_EACH) {
                let (family, qualifier) = parts(&account);
                put = put.cell(family, qualifier, number(1000));
            }
            loop {
                match table.put(put.clone()).await {
                    Err(Error::Server { can_retry: true, .. }) => tokio::time::sleep(BREATH).await,
                    other => break other?,
                }
            }
        }
        Ok(())
    }

    pub(super) fn start(&self, life: &Arc<Life>, tasks: &mut Tasks) {
        for number in 0..WRITERS {
            tasks.spawn(write(
                Arc::clone(life),
                life.client(number),
                life.random(200 + number),
            ));
        }
        tasks.spawn(read(
            Arc::clone(life),
            life.client(WRITERS),
            Arc::clone(&self.reads),
        ));
    }

    pub(super) async fn look(&mut self, client: &Client, figures: &mut Figures) -> Result<(), Problem> {
        let table = client.table(NAME).expect("a well-formed name");
        for row in 0..ROWS {
            let found = table.get(Get::new(key(row))).await;
            let found = found.map_err(|error| Problem::new(NAME, format!("cannot be read: {error}")))?;
            check(&key(row), columns(found)).map_err(|violation| Problem::of(NAME, violation))?;
        }
        figures.operations += ROWS as u64 + self.reads.swap(0, Ordering::Relaxed);
        Ok(())
    }
}

async fn write(life: Arc<Life>, client: Client, mut random: SmallRng) {
    let table = client.table(NAME).expect("a well-formed name");
    let accounts = numbered(&FAMILIES, ACCOUNTS_EACH);
    loop {
        let row = key(random.random_range(0..ROWS));
        let from = random.random_range(0..accounts.len());
        let to = (from + random.random_range(1..accounts.len())) % accounts.len();
        let (from, to) = (&accounts[from], &accounts[to]);
        let amount = random.random_range(1..100);
        let result = if random.random_bool(0.5) {
            let ((family, qualifier), (to_family, to_qualifier)) = (parts(from), parts(to));
            let increment = Increment::new(&row)
                .column(family, qualifier, -amount)
                .column(to_family, to_qualifier, amount)
                .column("a", "version", 1);
            table.increment(increment).await.map(drop)
        } else {
            transfer(&table, &row, from, to, amount).await
        };
        match ended(NAME, &life.findings, result) {
            Ended::Done(()) => {}
            Ended::Refused => tokio::time::sleep(BREATH).await,
            Ended::Gone => return,
        }
    }
}

/// Moves the amount unless another client changes the accounts in between.
async fn transfer(table: &Table, row: &Bytes, from: &Bytes, to: &Bytes, amount: i64) -> Result<(), Error> {
    let found = columns(table.get(Get::new(row)).await?);
    // Missing accounts are detected by readers.
    let held = |column: &[u8]| {
        let bytes = found
            .get(column)
            .and_then(|value| <[u8; 8]>::try_from(&value[..]).ok());
        bytes.map_or(0, i64::from_be_bytes)
    };
    let version = held(VERSION.as_bytes());
    let ((family, qualifier), (to_family, to_qualifier)) = (parts(from), parts(to));
    let put = Put::new(row)
        .cell(family, qualifier, number(held(from) - amount))
        .cell("a", "version", number(version + 1));
    let other = Put::new(row).cell(to_family, to_qualifier, number(held(to) + amount));
    let check = Check::equal("a", "version", number(version));
    let mutations = RowMutations::new(row).put(put).put(other);
    table.check_and_mutate(check, mutations).await.map(drop)
}

async fn read(life: Arc<Life>, client: Client, reads: Arc<AtomicU64>) {
    let table = client.table(NAME).expect("a well-formed name");
    let mut random = life.random(300);
    loop {
        let result = if random.random_bool(0.7) {
            let row = key(random.random_range(0..ROWS));
            table
                .get(Get::new(&row))
                .await
                .map(|found| vec![(row, columns(found))])
        } else {
            scan(&table).await
        };
        let rows = match ended(NAME, &life.findings, result) {
            Ended::Done(rows) => rows,
            Ended::Refused => continue,
            Ended::Gone => return,
        };
        for (row, columns) in rows {
            reads.fetch_add(1, Ordering::Relaxed);
            if let Err(violation) = check(&row, columns) {
                return life.found(Problem::of(NAME, violation));
            }
        }
    }
}

async fn scan(table: &Table) -> Result<Vec<(Bytes, Columns)>, Error> {
    let rows = table.scan(Scan::new().rows_per_fetch(2))?.collect().await?;
    let row = |row: basalt_client::Row| (row.key.clone(), columns(Some(row)));
    Ok(rows.into_iter().map(row).collect())
}

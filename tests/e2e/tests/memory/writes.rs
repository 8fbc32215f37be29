//! Goal: a small message that makes many bytes of cells is refused before these are made, takes nothing
//! from others, and leaves no row that cannot be read. Method: puts, deletes, increments and checked puts of
//! thousands of empty cells with the longest row key, on a server with a small budget.

use std::sync::PoisonError;

use basalt_client::{Client, Delete, Error, Get, Put, Table};

use crate::{ALLOWANCE_BYTES, ALONE, BUDGET_BYTES, start};

const CELLS: usize = 7_000;
const ROW_BYTES: usize = 32_700;

fn row(number: usize) -> Vec<u8> {
    let mut row = format!("{number}-").into_bytes();
    row.resize(ROW_BYTES, b'k');
    row
}

fn qualifiers() -> impl Iterator<Item = String> {
    (0..CELLS).map(|cell| cell.to_string())
}

fn put(number: usize) -> Put {
    qualifiers().fold(Put::new(row(number)), |put, qualifier| {
        put.cell("f", qualifier, "")
    })
}

fn refused(what: &str, outcome: Result<(), Error>) {
    let error = outcome.expect_err(what).to_string();
    assert!(
        error.contains("requests.memory_bytes") || error.contains("row.max_bytes"),
        "{what}: {error}"
    );
}

async fn writes(table: &Table, number: usize) {
    refused("a put", table.put(put(number)).await);
    refused("puts", table.put_multiple([put(number)]).await);
    let delete = qualifiers().fold(Delete::columns(row(number)), |delete, qualifier| {
        delete.column("f", qualifier)
    });
    refused("a delete", table.delete(delete).await);
    let small = table.get(Get::new("small")).await.expect("not refused");
    assert!(small.is_some(), "other rows are served");
    let large = table.get(Get::new(row(number))).await.expect("it can be read");
    assert!(large.is_none(), "nothing of it was written");
}

#[test]
fn a_small_put_of_long_keys_is_refused_before_its_cells_are_made() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    let (server, client) = runtime.block_on(start(dir.path()));
    runtime.block_on(async {
        let table = client.table("t").expect("a name");
        table
            .put(Put::new("small").cell("f", "q", "v"))
            .await
            .expect("written");
        let mut writers = Vec::new();
        for number in 0..4 {
            let client = Client::connect(&server.thrift.to_string())
                .await
                .expect("the server is there");
            let table = client.table("t").expect("a name");
            writers.push(tokio::spawn(async move { writes(&table, number).await }));
        }
        for writer in writers {
            writer.await.expect("no panic");
        }
    });
    let peak = server.peak_resident_bytes();
    println!(
        "peak {} MiB of a budget of {} MiB",
        peak >> 20,
        BUDGET_BYTES >> 20
    );
    assert!(
        peak <= BUDGET_BYTES + ALLOWANCE_BYTES,
        "{peak} bytes of a budget of {BUDGET_BYTES}"
    );
    server.stop();
}

//! Conditional writes: a batch fills a theatre's seats, then readers book them. A booking checks
//! and writes in one step, so that of two for the same seat one fails.
//!
//! `cargo run -p basalt-client --example check_and_mutate [HOST:PORT]`; without an address, 127.0.0.1:9090.

use basalt_client::{
    Check, Client, CompareOperator, Delete, FamilySchema, Get, Put, Result, RowMutations, Table, TableSchema,
};

const TABLE: &str = "example_check_and_mutate";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let target = std::env::args().nth(1);
    let client = Client::connect(target.as_deref().unwrap_or("127.0.0.1:9090")).await?;
    client
        .create_table(TableSchema::new(TABLE)?.family(FamilySchema::new("f")))
        .await?;
    let seats = client.table(TABLE)?;

    // One call for all seats. Each row is atomic, the batch is not: after an error some may be written.
    let free = (1..=3).map(|seat| {
        Put::new(format!("seat-{seat}"))
            .cell("f", "price", "40")
            .cell("f", "free", "yes")
    });
    seats.put_multiple(free).await?;

    for (name, seat) in [("ada", 1), ("grace", 1), ("grace", 2)] {
        let outcome = if book(&seats, seat, name).await? {
            "booked"
        } else {
            "taken"
        };
        println!("seat {seat} for {name}: {outcome}");
    }

    // An absent column is a condition, too, and so is an order: the given value stands on the left.
    let unsold = Check::absent("f", "booked_by");
    let discount = Put::new("seat-3").cell("f", "price", "20");
    println!(
        "discount for an unsold seat: {}",
        seats.check_and_put(unsold, discount).await?
    );
    let dearer = Check::compare("f", "price", CompareOperator::LESS, "30");
    let removal = Delete::row("seat-3");
    println!(
        "removed if dearer than 30: {}",
        seats.check_and_delete(dearer, removal).await?
    );

    let found = seats
        .get_multiple((1..=3).map(|seat| Get::new(format!("seat-{seat}"))))
        .await?;
    for (seat, row) in (1..).zip(found) {
        let booked_by = row.as_ref().and_then(|row| row.value("f", "booked_by"));
        println!(
            "seat {seat}: {}",
            booked_by.map_or("free".into(), |name| String::from_utf8_lossy(name))
        );
    }

    client.disable_table(TABLE).await?;
    client.drop_table(TABLE).await
}

/// Books a seat if it is free: the check, the put and the delete are one step.
async fn book(seats: &Table, seat: u32, name: &str) -> Result<bool> {
    let row = format!("seat-{seat}");
    let changes = RowMutations::new(&row)
        .put(Put::new(&row).cell("f", "booked_by", name))
        .delete(Delete::columns(&row).column("f", "free"));
    seats
        .check_and_mutate(Check::equal("f", "free", "yes"), changes)
        .await
}

//! Order and items.
//!
//! ```text
//! two tables   orders: o00000001  i:customer, i:state      items: o00000001l00000002  i:product, i:count
//! nested       o00000001  i:customer, i:state  r:l00000002:product, r:l00000002:count
//! ```

use basalt_client::FamilySchema;
use basalt_load::data::Data;
use basalt_load::error::Result;
use basalt_load::load::choose::fnv_hash;
use basalt_load::session::{Answer, Column, RowCells, RowScan};
use bytes::Bytes;

use super::{INFO, RELATED, ROWS_PER_FETCH, Run, cell, chosen, key, row};
use crate::claims::{PartReport, Rule, Way};
use crate::{Asked, Caller, Question, compare, describe};

const HEAD: [&str; 2] = ["customer", "state"];
const ITEM: [&str; 2] = ["count", "product"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// The order with all of its items.
    Whole,
    /// Only the order.
    Head,
    /// One item of the order.
    Item,
}

/// How orders and items are stored, and how many there are.
#[derive(Clone, Debug)]
struct Shop {
    nested: bool,
    orders: u64,
    /// Items of an order.
    items: u64,
    data: Data,
}

struct Read {
    shop: Shop,
    asks: Asks,
}

/// Writes order `index`.
struct Place {
    shop: Shop,
}

fn head_cells(order: u64) -> Vec<(Column, Bytes)> {
    let hash = fnv_hash(order);
    let values = [
        format!("Customer {}", hash % 10_000),
        format!("state {}", hash % 4),
    ];
    let cells = HEAD.into_iter().zip(values);
    cells
        .map(|(qualifier, value)| cell(INFO, qualifier, value))
        .collect()
}

/// The values of an item, in the order of [`ITEM`].
fn item_values(data: &Data, order: u64, item: u64) -> [Bytes; 2] {
    let hash = fnv_hash(order * 1_000 + item);
    let product = hash % 5_000;
    let product = data.text(product, || format!("product {product}"));
    [format!("{}", hash % 9 + 1), product].map(Bytes::from)
}

fn nested_qualifier(item: u64, part: &str) -> Bytes {
    Bytes::from([&key('l', item)[..], b":", part.as_bytes()].concat())
}

fn item_key(order: u64, item: u64) -> Bytes {
    Bytes::from([&key('o', order)[..], &key('l', item)].concat())
}

impl Shop {
    /// The rows of an order, for each of the tables.
    fn rows(&self, order: u64) -> Vec<Vec<RowCells>> {
        let mut head = head_cells(order);
        if self.nested {
            for item in 0..self.items {
                let parts = ITEM.into_iter().zip(item_values(&self.data, order, item));
                head.extend(parts.map(|(part, value)| cell(RELATED, nested_qualifier(item, part), value)));
            }
            return vec![vec![row(key('o', order), head)]];
        }
        let items = (0..self.items).map(|item| {
            let parts = ITEM.into_iter().zip(item_values(&self.data, order, item));
            let cells = parts.map(|(part, value)| cell(INFO, part, value)).collect();
            row(item_key(order, item), cells)
        });
        vec![vec![row(key('o', order), head)], items.collect()]
    }
}

impl Question for Place {
    async fn ask(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        for (table, rows) in self.shop.rows(index).iter().enumerate() {
            caller.put(table, rows).await?;
        }
        Ok(vec![key('o', index)])
    }
}

impl Question for Read {
    async fn ask(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        let order = chosen(index, self.shop.orders);
        let item = index % self.shop.items;
        let of = [key('o', order)];
        let nested = self.shop.nested;
        let rows = match self.asks {
            Asks::Whole if nested => caller.get(0, &of, &[]).await?,
            Asks::Whole => {
                let mut rows = caller.get(0, &of, &[]).await?;
                let [of] = of;
                rows.extend(caller.scan(1, &RowScan::prefix(of, ROWS_PER_FETCH)).await?);
                rows
            }
            Asks::Head => {
                let columns = HEAD.map(|part| Column::new(INFO, part));
                caller.get(0, &of, &columns).await?
            }
            Asks::Item if nested => {
                let columns = ITEM.map(|part| Column::new(RELATED, nested_qualifier(item, part)));
                caller.get(0, &of, &columns).await?
            }
            Asks::Item => caller.get(1, &[item_key(order, item)], &[]).await?,
        };
        let cells = rows.into_iter().flat_map(|row| row.cells);
        Ok(cells.map(|cell| cell.value).collect())
    }
}

impl Run {
    pub(super) async fn one_to_many(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "one-to-many",
            "One to many: order and items",
            format!(
                "{} orders of {} items are placed one by one, as rows of two tables and as one row with the items in a family \
                 of its own. Asked are whole orders, orders without items, and single items.",
                arguments.rows, arguments.relations
            ),
        );
        let (two, nested) = ("two tables", "nested");
        let mut first: Option<[Asked; 3]> = None;
        for (is_nested, name) in [(false, two), (true, nested)] {
            let shop = Shop {
                nested: is_nested,
                orders: arguments.rows,
                items: arguments.relations,
                data: lab.data.clone(),
            };
            let names: &[&str] = if is_nested {
                &["orders_nested"]
            } else {
                &["orders", "items"]
            };
            let mut tables = Vec::new();
            for table in names {
                let families = vec![FamilySchema::new(INFO), FamilySchema::new(RELATED)];
                tables.push(lab.create(table, families, true).await?);
            }
            let placed = lab
                .ask_all(
                    &format!("{name}: orders placed"),
                    &tables,
                    arguments.rows,
                    Place { shop: shop.clone() },
                )
                .await?;
            for table in &tables {
                lab.settle(table).await?;
            }
            let label = |what: &str| format!("{name}: {what}");
            let read = |asks| Read {
                shop: shop.clone(),
                asks,
            };
            let questions = arguments.questions;
            let whole = lab
                .ask(&label("whole orders"), &tables, questions, read(Asks::Whole))
                .await?;
            let head = lab
                .ask(&label("heads"), &tables, questions, read(Asks::Head))
                .await?;
            let item = lab
                .ask(&label("items"), &tables, questions, read(Asks::Item))
                .await?;
            let mut way = Way::new(name);
            way.latency("place_p50_ms", "place an order", &placed.measured);
            way.figure("place_calls", placed.calls_each());
            way.figure("place_bytes", placed.bytes_each());
            describe(
                &mut way,
                "whole order",
                ["order_p50_ms", "order_calls", "order_bytes", "order_rows_read"],
                &whole,
            );
            way.latency("head_p50_ms", "order without items", &head.measured);
            way.figure("head_bytes", head.bytes_each());
            way.latency("item_p50_ms", "one item", &item.measured);
            way.figure("item_bytes", item.bytes_each());
            let sizes = lab.sizes(&tables).await?;
            way.figure("file_bytes", sizes.map(|sizes| sizes.file_bytes));
            part.add(way);
            if let Some(others) = &first {
                let names = ["whole order", "order without items", "one item"];
                for ((question, other), asked) in names.iter().zip(others).zip([&whole, &head, &item]) {
                    compare(&mut part, question, (two, other), (nested, asked));
                }
            }
            first = Some([whole, head, item]);
            lab.drop_tables(&tables).await?;
        }
        let cases = [
            (
                "A nested order is placed with one call, and so atomically.",
                "place_calls",
                Rule::AtLeast(1.9),
            ),
            (
                "A nested order is placed in less time.",
                "place_p50_ms",
                Rule::AtLeast(1.3),
            ),
            (
                "A whole order is read with one call if it is nested.",
                "order_calls",
                Rule::AtLeast(1.9),
            ),
            (
                "A whole order is read in less time if it is nested.",
                "order_p50_ms",
                Rule::AtLeast(1.3),
            ),
            (
                "The order without its items costs the same either way, since they are in another family.",
                "head_bytes",
                Rule::AtLeast(0.95),
            ),
        ];
        for (claim, figure, rule) in cases {
            part.judge(claim, figure, [two, nested], rule);
        }
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_hold_the_same_values_in_the_same_order() {
        let values = |nested, data| {
            let shop = Shop {
                nested,
                orders: 9,
                items: 3,
                data,
            };
            let rows = shop.rows(4).into_iter().flatten();
            rows.flat_map(|row| row.cells)
                .map(|(_, value)| value)
                .collect::<Vec<_>>()
        };
        for data in [Data::generated(), Data::small_file()] {
            let nested = values(true, data.clone());
            assert_eq!(nested, values(false, data.clone()));
            assert_eq!(nested.len(), 8);
            let flights = nested.iter().filter(|value| value.starts_with(b"2001-01-01T"));
            assert_eq!(flights.count(), if data.is_flights() { 3 } else { 0 });
        }
        assert!(
            HEAD.is_sorted() && ITEM.is_sorted(),
            "reads return columns sorted"
        );
        assert_eq!(item_key(1, 2), &b"o00000001l00000002"[..]);
        assert_eq!(nested_qualifier(2, "count"), &b"l00000002:count"[..]);
    }
}

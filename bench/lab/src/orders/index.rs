//! Orders of a city that are in a state, newest first: a query with two conditions and an order.
//!
//! ```text
//! orders      o00000001  i:city, i:state, i:day, i:total
//! index       city | 0 | state | 0 | MAX - day (4 bytes) | o00000001  i:k = o00000001          and, if covering, i:total
//! ```
//!
//! The conditions stand in front of the key, each with an end of its own so that none is the
//! beginning of another; the sort key follows them.

use basalt_client::FamilySchema;
use basalt_load::data::Data;
use basalt_load::error::Result;
use basalt_load::load::choose::fnv_hash;
use basalt_load::session::{Answer, Column, RowCells, RowScan};
use bytes::Bytes;

use super::{INFO, ROWS_PER_FETCH, Run, cell, chosen, describe_writing, key, row};
use crate::claims::{PartReport, Rule, Way};
use crate::{Asked, Caller, Question, compare, describe};

/// Cities and states: each pair has its share of the orders.
const CITIES: u64 = 20;
const STATES: [&str; 5] = ["cancelled", "packed", "received", "returned", "shipped"];
const DAYS: u32 = 365;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    /// No index: a scan with a filter.
    Filter,
    /// The index gives keys, and the orders are read.
    Index,
    /// The index has all requested columns.
    Covering,
}

/// An order, a function of its number.
struct Order {
    city: String,
    state: &'static str,
    day: u32,
    total: Bytes,
}

fn city(number: u64) -> String {
    format!("City {:02}", number % CITIES)
}

fn state(number: u64) -> &'static str {
    STATES[(number % STATES.len() as u64) as usize]
}

impl Order {
    fn of(data: &Data, number: u64) -> Order {
        let hash = fnv_hash(number);
        Order {
            city: city(hash),
            state: state(hash / CITIES),
            day: (hash / 1_000 % u64::from(DAYS)) as u32,
            total: Bytes::from(data.text(number, || format!("{}.00", hash % 500))),
        }
    }
}

/// All index rows of a city and a state begin so.
fn index_prefix(city: &str, state: &str) -> Vec<u8> {
    [city.as_bytes(), b"\0", state.as_bytes(), b"\0"].concat()
}

/// The newest day first.
fn index_key(order: &Order, number: u64) -> Bytes {
    let mut key_bytes = index_prefix(&order.city, order.state);
    key_bytes.extend((u32::MAX - order.day).to_be_bytes());
    key_bytes.extend(&key('o', number)[..]);
    Bytes::from(key_bytes)
}

fn order_row(data: &Data, number: u64) -> RowCells {
    let order = Order::of(data, number);
    let cells = vec![
        cell(INFO, "city", order.city),
        cell(INFO, "day", order.day.to_be_bytes().to_vec()),
        cell(INFO, "state", order.state),
        cell(INFO, "total", order.total),
    ];
    row(key('o', number), cells)
}

fn index_row(data: &Data, covering: bool, number: u64) -> RowCells {
    let order = Order::of(data, number);
    let mut cells = vec![cell(INFO, "k", key('o', number))];
    let index = index_key(&order, number);
    if covering {
        cells.push(cell(INFO, "total", order.total));
    }
    row(index, cells)
}

/// Keys and totals of the orders of a city in a state, newest first.
struct OrdersOf {
    stored: Stored,
}

impl OrdersOf {
    async fn by_filter(caller: &Caller, city: &str, state: &str) -> Answer<Vec<(u32, Bytes, Bytes)>> {
        let is = |column: &str, value: &str| {
            format!("SingleColumnValueFilter('{INFO}', '{column}', =, 'binary:{value}', true, true)")
        };
        let scan = RowScan {
            rows_per_fetch: ROWS_PER_FETCH,
            filter: Some(format!("{} AND {}", is("city", city), is("state", state))),
            ..RowScan::default()
        };
        let mut found = Vec::new();
        for order in caller.scan(0, &scan).await? {
            let day = order.value(INFO, "day").and_then(|day| day[..].try_into().ok());
            let total = order.value(INFO, "total").cloned().unwrap_or_default();
            found.push((u32::from_be_bytes(day.unwrap_or_default()), order.key, total));
        }
        // The filter returns them by key.
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        Ok(found)
    }
}

impl Question for OrdersOf {
    async fn ask(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        let pair = chosen(index, CITIES * STATES.len() as u64);
        let (city, state) = (city(pair), state(pair / CITIES));
        if self.stored == Stored::Filter {
            let found = OrdersOf::by_filter(caller, &city, state).await?;
            return Ok(found
                .into_iter()
                .flat_map(|(_, key, total)| [key, total])
                .collect());
        }
        let prefix = RowScan::prefix(index_prefix(&city, state), ROWS_PER_FETCH);
        let entries = caller.scan(1, &prefix).await?;
        let keys: Vec<Bytes> = entries
            .iter()
            .filter_map(|entry| entry.value(INFO, "k").cloned())
            .collect();
        let totals: Vec<Bytes> = if self.stored == Stored::Covering {
            let totals = entries.iter().map(|entry| entry.value(INFO, "total"));
            totals.map(|total| total.cloned().unwrap_or_default()).collect()
        } else if keys.is_empty() {
            Vec::new()
        } else {
            let orders = caller.get(0, &keys, &[Column::new(INFO, "total")]).await?;
            let totals = orders.iter().map(|order| order.value(INFO, "total"));
            totals.map(|total| total.cloned().unwrap_or_default()).collect()
        };
        Ok(keys
            .into_iter()
            .zip(totals)
            .flat_map(|(key, total)| [key, total])
            .collect())
    }
}

impl Run {
    pub(super) async fn index(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let orders = arguments.rows;
        let pairs = CITIES * STATES.len() as u64;
        let mut part = PartReport::new(
            "index",
            "A query with two conditions and an order",
            format!(
                "{orders} orders. Asked are keys and totals of the orders of a city in a state, newest first; each of the \
                 {pairs} pairs has its share. By a scan of the table with a filter that the server applies; by an index table \
                 of city, state and reversed day, and the orders that it names; and by an index table that holds the totals too."
            ),
        );
        let (filter, plain, covering) = ("scan with filter", "index", "covering index");
        let mut first: Option<Asked> = None;
        for (stored, name, table) in [
            (Stored::Filter, filter, None),
            (Stored::Index, plain, Some("by_city_index")),
            (Stored::Covering, covering, Some("by_city_covering")),
        ] {
            let families = || vec![FamilySchema::new(INFO)];
            let mut tables = vec![
                lab.create(&format!("orders_{}", name.replace(' ', "_")), families(), true)
                    .await?,
            ];
            let data = lab.data.clone();
            let order = move |number| order_row(&data, number);
            let mut filled = lab.fill(&tables[0], orders, false, order).await?;
            if let Some(table) = table {
                let index = lab.create(table, families(), true).await?;
                let data = lab.data.clone();
                let entry = move |number| index_row(&data, stored == Stored::Covering, number);
                filled = filled.and(lab.fill(&index, orders, false, entry).await?);
                tables.push(index);
            }
            for table in &tables {
                lab.settle(table).await?;
            }
            let questions = match stored {
                Stored::Filter => self.few_questions(),
                _ => arguments.questions,
            };
            let asked = lab.ask(name, &tables, questions, OrdersOf { stored }).await?;
            let mut way = Way::new(name);
            describe(
                &mut way,
                "orders of a city in a state",
                ["query_p50_ms", "query_calls", "query_bytes", "query_rows_read"],
                &asked,
            );
            describe_writing(&mut way, filled, orders);
            let sizes = lab.sizes(&tables).await?;
            way.figure("file_bytes", sizes.map(|sizes| sizes.file_bytes));
            part.add(way);
            if let Some(first) = &first {
                compare(&mut part, "query", (filter, first), (name, &asked));
            } else {
                first = Some(asked);
            }
            lab.drop_tables(&tables).await?;
        }
        part.judge(
            "A filter saves bytes on the wire and no work in the server: every row is read.",
            "query_rows_read",
            [filter, plain],
            Rule::AtLeast(10.0),
        );
        part.judge(
            "An index table answers faster.",
            "query_p50_ms",
            [filter, plain],
            Rule::AtLeast(2.0),
        );
        part.judge(
            "An index that holds what is asked for saves the second call, and its time.",
            "query_p50_ms",
            [plain, covering],
            Rule::AtLeast(1.2),
        );
        part.judge(
            "With an index each order is written twice.",
            "written_bytes_each",
            [plain, filter],
            Rule::AtLeast(1.3),
        );
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_sorts_by_city_state_and_newest_day() {
        let order = |city: &str, state, day| Order {
            city: city.to_owned(),
            state,
            day,
            total: Bytes::new(),
        };
        let keys = [
            index_key(&order("City 01", "packed", 9), 3),
            index_key(&order("City 01", "packed", 8), 1),
            index_key(&order("City 01", "packed", 8), 2),
            index_key(&order("City 01", "received", 99), 1),
            index_key(&order("City 010", "packed", 99), 1),
        ];
        assert!(keys.is_sorted(), "{keys:?}");
        let prefix = index_prefix("City 01", "packed");
        let inside = keys.iter().filter(|key| key.starts_with(&prefix)).count();
        assert_eq!(inside, 3, "no other city or state begins so");
    }

    /// Flights change stored values, and not the rows that are found.
    #[test]
    fn only_totals_are_flights() {
        let (made, flights) = (Data::generated(), Data::small_file());
        let [made, of_flights] = [made, flights.clone()].map(|data| index_row(&data, true, 8));
        assert_eq!(
            (&made.key, &made.cells[0]),
            (&of_flights.key, &of_flights.cells[0])
        );
        assert_eq!(of_flights.cells[1].1, flights.text(8, String::new));
        assert_ne!(made.cells[1], of_flights.cells[1]);
    }
}

//! Person and card.
//!
//! ```text
//! two tables   persons: p00000001  i:name, i:card = k00000777      cards: k00000777  i:number, i:owner = p00000001
//! one table    p00000001  i:name, r:card = k00000777, r:number
//! ```

use basalt_client::FamilySchema;
use basalt_load::data::Data;
use basalt_load::error::Result;
use basalt_load::session::{Answer, RowCells, RowScan};
use bytes::Bytes;

use super::{INFO, RELATED, ROWS_PER_FETCH, Run, cell, chosen, describe_writing, key, row};
use crate::claims::{PartReport, Rule, Way};
use crate::{Asked, Caller, Question, compare, describe};

/// Added to a person's number, so that a card's key does not give its owner away.
const CARD_OFFSET: u64 = 50_000_000;

fn card_of(person: u64) -> Bytes {
    key('k', person + CARD_OFFSET)
}

fn name(data: &Data, person: u64) -> Bytes {
    Bytes::from(data.text(person, || format!("Person {person}")))
}

fn number(person: u64) -> Bytes {
    Bytes::from(format!(
        "4000 {:012}",
        person.wrapping_mul(7_919) % 1_000_000_000_000
    ))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// Name and card number of a person.
    CardOf,
    /// The name of a card's owner.
    OwnerOf,
}

struct Card {
    two_tables: bool,
    asks: Asks,
    persons: u64,
}

impl Question for Card {
    async fn ask(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        let person = chosen(index, self.persons);
        let mut found = Vec::new();
        match (self.asks, self.two_tables) {
            (Asks::CardOf, true) => {
                for person in caller.get(0, &[key('p', person)], &[]).await? {
                    found.extend(person.value(INFO, "name").cloned());
                    let card: Vec<Bytes> = person.value(INFO, "card").cloned().into_iter().collect();
                    for card in caller.get(1, &card, &[]).await? {
                        found.extend(card.value(INFO, "number").cloned());
                    }
                }
            }
            (Asks::CardOf, false) => {
                for person in caller.get(0, &[key('p', person)], &[]).await? {
                    found.extend(person.value(INFO, "name").cloned());
                    found.extend(person.value(RELATED, "number").cloned());
                }
            }
            (Asks::OwnerOf, true) => {
                for card in caller.get(1, &[card_of(person)], &[]).await? {
                    let owner: Vec<Bytes> = card.value(INFO, "owner").cloned().into_iter().collect();
                    for owner in caller.get(0, &owner, &[]).await? {
                        found.extend(owner.value(INFO, "name").cloned());
                    }
                }
            }
            (Asks::OwnerOf, false) => {
                let card = String::from_utf8_lossy(&card_of(person)).into_owned();
                let scan = RowScan {
                    rows_per_fetch: ROWS_PER_FETCH,
                    filter: Some(format!(
                        "SingleColumnValueFilter('{RELATED}', 'card', =, 'binary:{card}', true, true)"
                    )),
                    ..RowScan::default()
                };
                for person in caller.scan(0, &scan).await? {
                    found.extend(person.value(INFO, "name").cloned());
                }
            }
        }
        Ok(found)
    }
}

impl Run {
    pub(super) async fn one_to_one(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let persons = arguments.rows;
        let mut part = PartReport::new(
            "one-to-one",
            "One to one: person and card",
            format!(
                "{persons} persons have a card each, in a table of persons and one of cards that name each other, and in one \
                 table. Asked are the card of a person and the owner of a card."
            ),
        );
        let (two, one) = ("two tables", "one table");
        let mut first: Option<[Asked; 2]> = None;
        for (two_tables, way_name) in [(true, two), (false, one)] {
            let names: &[&str] = if two_tables {
                &["persons", "cards"]
            } else {
                &["persons_with_cards"]
            };
            let mut tables = Vec::new();
            for table in names {
                let families = vec![FamilySchema::new(INFO), FamilySchema::new(RELATED)];
                tables.push(lab.create(table, families, true).await?);
            }
            let data = lab.data.clone();
            let person = move |number| person_row(&data, two_tables, number);
            let mut filled = lab.fill(&tables[0], persons, false, person).await?;
            if let Some(cards) = tables.get(1) {
                filled = filled.and(lab.fill(cards, persons, false, card_row).await?);
            }
            for table in &tables {
                lab.settle(table).await?;
            }
            let ask = |asks| Card {
                two_tables,
                asks,
                persons,
            };
            let label = |what: &str| format!("{way_name}: {what}");
            let cards = lab
                .ask(
                    &label("card of a person"),
                    &tables,
                    arguments.questions,
                    ask(Asks::CardOf),
                )
                .await?;
            let questions = if two_tables {
                arguments.questions
            } else {
                self.few_questions()
            };
            let owners = lab
                .ask(&label("owner of a card"), &tables, questions, ask(Asks::OwnerOf))
                .await?;
            let mut way = Way::new(way_name);
            describe(
                &mut way,
                "card of a person",
                ["card_p50_ms", "card_calls", "card_bytes", "card_rows_read"],
                &cards,
            );
            describe(
                &mut way,
                "owner of a card",
                ["owner_p50_ms", "owner_calls", "owner_bytes", "owner_rows_read"],
                &owners,
            );
            describe_writing(&mut way, filled, persons);
            part.add(way);
            if let Some([other_cards, other_owners]) = &first {
                compare(&mut part, "card of a person", (two, other_cards), (one, &cards));
                compare(&mut part, "owner of a card", (two, other_owners), (one, &owners));
            }
            first = Some([cards, owners]);
            lab.drop_tables(&tables).await?;
        }
        part.judge(
            "What is always read together belongs in one row: it saves a call.",
            "card_calls",
            [two, one],
            Rule::AtLeast(1.9),
        );
        part.judge(
            "One row is read in less time than two that name each other.",
            "card_p50_ms",
            [two, one],
            Rule::AtLeast(1.5),
        );
        part.judge(
            "One row is written with fewer bytes than two.",
            "written_bytes_each",
            [two, one],
            Rule::AtLeast(1.2),
        );
        part.judge(
            "The way back, from card to person, then reads the whole table.",
            "owner_rows_read",
            [one, two],
            Rule::AtLeast(10.0),
        );
        Ok(part)
    }
}

fn person_row(data: &Data, two_tables: bool, person: u64) -> RowCells {
    let mut cells = vec![cell(INFO, "name", name(data, person))];
    if two_tables {
        cells.push(cell(INFO, "card", card_of(person)));
    } else {
        cells.push(cell(RELATED, "card", card_of(person)));
        cells.push(cell(RELATED, "number", number(person)));
    }
    row(key('p', person), cells)
}

fn card_row(person: u64) -> RowCells {
    let cells = vec![
        cell(INFO, "number", number(person)),
        cell(INFO, "owner", key('p', person)),
    ];
    row(card_of(person), cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_name_each_other() {
        let data = Data::small_file();
        let (person, card) = (person_row(&data, true, 7), card_row(7));
        assert_eq!(person.cells[1].1, card.key);
        assert_eq!(card.cells[1].1, person.key);
        assert_eq!(person_row(&data, false, 7).cells[2].1, card.cells[0].1);
        assert_eq!(person.cells[0].1, data.text(7, String::new));
    }
}

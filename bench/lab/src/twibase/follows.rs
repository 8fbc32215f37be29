//! Wide against tall rows, and two ways to check whether A follows B.
//!
//! ```text
//! tall   follows, followedBy    MD5(A) MD5(B)  f:n = B
//! wide   follows_wide           MD5(A)         f:MD5(B) = B ...        followedBy_wide for the celebrity
//! ```

use basalt_client::FamilySchema;
use basalt_load::error::Result;
use basalt_load::load::choose::fnv_hash;
use basalt_load::session::{Answer, Column, RowCells, RowScan};
use basalt_twibase::FAMILY;
use basalt_twibase::keys::{Hash, hash, relation};
use basalt_twibase::store::Store;
use bytes::Bytes;

use super::Run;
use super::population::{CELEBRITY, Population, user};
use crate::claims::{PartReport, Rule, Way};
use crate::{Caller, Question, compare, describe};

/// Where the tables stand in a caller's list: the wide ones behind tall `follows` and `followedBy`.
const FOLLOWS: usize = 0;
const FOLLOWED_BY: usize = 1;
const FOLLOWS_WIDE: usize = 2;
const FOLLOWED_BY_WIDE: usize = 3;
/// Cells of one put of a wide row.
const CELLS_PER_PUT: usize = 500;
/// Followers of a page.
const PAGE: u32 = 100;
/// Rows fetched by one call of a scan.
const ROWS_PER_FETCH: i32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// The names that a user follows.
    List,
    /// A page in the middle of the celebrity's followers.
    Page,
    /// Whether A follows B, asked for exactly that.
    IsFollowing,
    /// Whether A follows B, by reading the whole list of A.
    IsInList,
}

struct Relations {
    population: Population,
    wide: bool,
    asks: Asks,
    /// The celebrity's followers in the order of keys, for pages.
    fans: Vec<Hash>,
}

fn bytes(hash: Hash) -> Bytes {
    Bytes::copy_from_slice(&hash)
}

impl Relations {
    /// A, whether he follows B, and B: yes and no in turn.
    fn pair(&self, index: u64) -> (String, String) {
        let number = (fnv_hash(index) % u64::from(self.population.users)) as u32;
        let followed = self.population.followed_by_user(number);
        let other = if index.is_multiple_of(2) {
            let place = index / 2 % (followed.len() as u64).max(1);
            followed.get(place as usize).cloned().unwrap_or_default()
        } else {
            format!("nobody{index}")
        };
        (user(number), other)
    }

    /// The list of a user: keys of those he follows and their names.
    async fn list(&self, caller: &Caller, of: Hash) -> Answer<Vec<(Bytes, Bytes)>> {
        let mut found = Vec::new();
        if self.wide {
            for row in caller.get(FOLLOWS_WIDE, &[bytes(of)], &[]).await? {
                found.extend(row.cells.into_iter().map(|cell| (cell.qualifier, cell.value)));
            }
        } else {
            let scan = RowScan::prefix(bytes(of), ROWS_PER_FETCH);
            for row in caller.scan(FOLLOWS, &scan).await? {
                let key = row.key.slice(of.len().min(row.key.len())..);
                let names = row.cells.into_iter().map(|cell| cell.value);
                found.extend(names.map(|name| (key.clone(), name)));
            }
        }
        Ok(found)
    }

    async fn page(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        // Pages of the third quarter, so that many followers are before them.
        let half = self.fans.len() / 2;
        let first = half + (fnv_hash(index) % (half / 2).max(1) as u64) as usize;
        let celebrity = hash(CELEBRITY);
        let scan = if self.wide {
            RowScan {
                filter: Some(format!("ColumnPaginationFilter({PAGE}, {first})")),
                ..RowScan::prefix(bytes(celebrity), 1)
            }
        } else {
            let from = self.fans.get(first).copied().unwrap_or_default();
            RowScan {
                start: Bytes::from(relation(celebrity, from)),
                limit: Some(PAGE),
                ..RowScan::prefix(bytes(celebrity), PAGE as i32)
            }
        };
        let table = if self.wide { FOLLOWED_BY_WIDE } else { FOLLOWED_BY };
        let rows = caller.scan(table, &scan).await?;
        let cells = rows.into_iter().flat_map(|row| row.cells);
        Ok(cells.map(|cell| cell.value).collect())
    }

    async fn is_following(&self, caller: &Caller, index: u64) -> Answer<bool> {
        let (one, other) = self.pair(index);
        let (one, other) = (hash(&one), hash(&other));
        if self.asks == Asks::IsInList {
            let list = self.list(caller, one).await?;
            return Ok(list.iter().any(|(key, _)| key == &other[..]));
        }
        let found = if self.wide {
            let column = Column::new(FAMILY, bytes(other));
            caller.get(FOLLOWS_WIDE, &[bytes(one)], &[column]).await?
        } else {
            let key = Bytes::from(relation(one, other));
            caller.get(FOLLOWS, &[key], &[]).await?
        };
        Ok(!found.is_empty())
    }
}

impl Question for Relations {
    async fn ask(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        match self.asks {
            Asks::List => {
                let number = (fnv_hash(index) % u64::from(self.population.users)) as u32;
                let found = self.list(caller, hash(&user(number))).await?;
                Ok(found.into_iter().map(|(_, name)| name).collect())
            }
            Asks::Page => self.page(caller, index).await,
            Asks::IsFollowing | Asks::IsInList => {
                let follows = self.is_following(caller, index).await?;
                Ok(vec![Bytes::from_static(if follows { b"yes" } else { b"no" })])
            }
        }
    }
}

impl<S: Store> Run<S> {
    /// The celebrity's followers, keys and names, in the order of keys.
    fn fans(&self) -> Vec<(Hash, String)> {
        let fans = self.population.fans_of_celebrity();
        let mut fans: Vec<(Hash, String)> = fans.map(|name| (hash(&name), name)).collect();
        fans.sort_unstable();
        fans
    }

    /// Makes and fills the wide tables, `follows` and `followedBy`.
    pub(super) async fn make_wide_tables(&self) -> Result<Vec<String>> {
        let (lab, population) = (&self.lab, self.population);
        let families = || vec![FamilySchema::new(FAMILY)];
        let follows = lab.create("follows_wide", families(), true).await?;
        let row = move |number: u64| {
            let number = number as u32;
            let followed = population.followed_by_user(number).into_iter();
            RowCells {
                key: bytes(hash(&user(number))),
                cells: followed
                    .map(|name| (Column::new(FAMILY, bytes(hash(&name))), Bytes::from(name)))
                    .collect(),
            }
        };
        lab.fill(&follows, u64::from(population.users), false, row)
            .await?;
        let followed_by = lab.create("followedBy_wide", families(), true).await?;
        let puts: Vec<RowCells> = self
            .fans()
            .chunks(CELLS_PER_PUT)
            .map(|fans| {
                let cell = |(key, name): &(Hash, String)| {
                    (Column::new(FAMILY, bytes(*key)), Bytes::from(name.clone()))
                };
                RowCells {
                    key: bytes(hash(CELEBRITY)),
                    cells: fans.iter().map(cell).collect(),
                }
            })
            .collect();
        let count = puts.len() as u64;
        let put = move |number: u64| puts[usize::try_from(number).unwrap_or_default()].clone();
        lab.fill(&followed_by, count, false, put).await?;
        for table in [&follows, &followed_by] {
            lab.settle(table).await?;
        }
        Ok(vec![follows, followed_by])
    }

    /// Tall and wide tables in the order of the constants.
    fn relation_tables(&self) -> Vec<String> {
        let tall = self.tables[2..=3].iter();
        tall.chain(&self.wide_tables).cloned().collect()
    }

    pub(super) async fn follows(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "follows",
            "Who follows whom: wide or tall?",
            format!(
                "{} users follow {} others each; the celebrity has {} followers. A wide row has a column for each relation, \
                 a tall table a row. Asked are whole lists, and pages of {PAGE} in the second half of the celebrity's followers.",
                arguments.users,
                arguments.following,
                self.population.fans_of_celebrity().count()
            ),
        );
        let (wide, tall) = ("wide", "tall");
        let tables = self.relation_tables();
        let keys: Vec<Hash> = self.fans().into_iter().map(|(key, _)| key).collect();
        let mut asked = Vec::new();
        for (is_wide, name, places) in [
            (true, wide, [FOLLOWS_WIDE, FOLLOWED_BY_WIDE]),
            (false, tall, [FOLLOWS, FOLLOWED_BY]),
        ] {
            let ask = |asks| Relations {
                population: self.population,
                wide: is_wide,
                asks,
                fans: keys.clone(),
            };
            let questions = arguments.questions;
            let lists = lab
                .ask(&format!("{name}: lists"), &tables, questions, ask(Asks::List))
                .await?;
            let pages = lab
                .ask(
                    &format!("{name}: pages"),
                    &tables,
                    questions.div_ceil(10),
                    ask(Asks::Page),
                )
                .await?;
            let mut way = Way::new(name);
            describe(
                &mut way,
                "list",
                ["list_p50_ms", "list_calls", "list_bytes", "list_rows_read"],
                &lists,
            );
            way.latency("page_p50_ms", "page of followers", &pages.measured);
            way.figure("blocks_per_page", pages.blocks_each());
            let own = places.map(|place| tables[place].clone());
            let sizes = lab.sizes(&own[..1]).await?;
            way.figure("follows_file_bytes", sizes.map(|sizes| sizes.file_bytes));
            part.add(way);
            asked.push((lists, pages));
        }
        if let [(wide_lists, wide_pages), (tall_lists, tall_pages)] = &asked[..] {
            compare(&mut part, "list", (wide, wide_lists), (tall, tall_lists));
            compare(&mut part, "page", (wide, wide_pages), (tall, tall_pages));
        }
        let cases = [
            (
                "A short list is read faster from a wide row.",
                "list_p50_ms",
                [tall, wide],
                Rule::AtLeast(1.2),
            ),
            (
                "A list comes with fewer bytes from a wide row, since the row key is sent once.",
                "list_bytes",
                [tall, wide],
                Rule::AtLeast(1.1),
            ),
            (
                "A page deep in a long list is found faster in a tall table, where it has a key to start from.",
                "page_p50_ms",
                [wide, tall],
                Rule::AtLeast(2.0),
            ),
            (
                "For a page deep in a wide row, everything before it is read.",
                "blocks_per_page",
                [wide, tall],
                Rule::AtLeast(2.0),
            ),
        ];
        for (claim, figure, ways, rule) in cases {
            part.judge(claim, figure, ways, rule);
        }
        part.notes.push(
            "A region is split between rows and never within one: a wide row grows on one server until it does not fit, a \
             tall table does not."
                .to_owned(),
        );
        Ok(part)
    }

    pub(super) async fn is_following(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let mut part = PartReport::new(
            "is-following",
            "Does A follow B?",
            format!(
                "Asked of users who follow {} others, yes and no in turn: by the key or column of the relation, and by \
                 reading the whole list.",
                arguments.following
            ),
        );
        let tables = self.relation_tables();
        let mut first = None;
        let ways = [
            ("tall, get", false, Asks::IsFollowing),
            ("tall, scan", false, Asks::IsInList),
            ("wide, get of a column", true, Asks::IsFollowing),
            ("wide, whole row", true, Asks::IsInList),
        ];
        for (name, wide, asks) in ways {
            let relations = Relations {
                population: self.population,
                wide,
                asks,
                fans: Vec::new(),
            };
            let asked = lab.ask(name, &tables, arguments.questions, relations).await?;
            let mut way = Way::new(name);
            describe(
                &mut way,
                "is following",
                ["p50_ms", "calls", "bytes", "rows_read"],
                &asked,
            );
            part.add(way);
            if let Some(first) = &first {
                compare(&mut part, "is following", ("tall, get", first), (name, &asked));
            } else {
                first = Some(asked);
            }
        }
        let cases = [
            (
                "A get of the relation's key reads one row at most, a scan the whole list.",
                "rows_read",
                ["tall, scan", "tall, get"],
                Rule::AtLeast(5.0),
            ),
            (
                "A get of the relation's key is faster than a scan of the list.",
                "p50_ms",
                ["tall, scan", "tall, get"],
                Rule::AtLeast(1.5),
            ),
            (
                "In a wide row the column can be asked for, and only it is sent.",
                "bytes",
                ["wide, whole row", "wide, get of a column"],
                Rule::AtLeast(5.0),
            ),
            (
                "A get of one column of a wide row is as fast as the get of a tall table.",
                "p50_ms",
                ["wide, get of a column", "tall, get"],
                Rule::AtMost(1.3),
            ),
        ];
        for (claim, figure, ways, rule) in cases {
            part.judge(claim, figure, ways, rule);
        }
        Ok(part)
    }
}

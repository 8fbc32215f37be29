//! Parameters of a page's address: which part of a list, in which order.

use std::collections::HashMap;

use maud::{Markup, html};

use super::{Refusal, show};

/// Rows of a list on one page.
pub(super) const PAGE_ROWS: usize = 100;

/// Where a page is, and with which parameters.
#[derive(Debug)]
pub(super) struct Params {
    path: String,
    given: HashMap<String, String>,
}

/// A column that a list can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// As the address has it.
    pub(super) name: &'static str,
    /// Heading of the column.
    pub(super) heading: &'static str,
    /// Whether it has numbers: these are sorted the greatest first, and stand right.
    pub(super) is_number: bool,
}

/// A column of texts.
pub(super) const fn text(name: &'static str, heading: &'static str) -> Column {
    Column {
        name,
        heading,
        is_number: false,
    }
}

/// A column of numbers.
pub(super) const fn number(name: &'static str, heading: &'static str) -> Column {
    Column {
        name,
        heading,
        is_number: true,
    }
}

impl Params {
    pub(super) fn new(path: &str, given: HashMap<String, String>) -> Self {
        Self {
            path: path.to_owned(),
            given,
        }
    }

    /// A parameter; empty ones count as not given.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.given
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// A parameter that is a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| Refusal::BadRequest(format!("{name} is no whole number: {text}")))
        };
        self.get(name).map(parse).transpose()
    }

    /// A parameter that is a row key as it is printed; empty when it is not given.
    pub(super) fn key(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        show::parse_key(name, self.get(name).unwrap_or_default())
    }

    /// The column to sort by: `sort`, or the first.
    pub(super) fn sort(&self, columns: &'static [Column]) -> Result<&'static Column, Refusal> {
        let Some(name) = self.get("sort") else {
            return Ok(&columns[0]);
        };
        columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<&str> = columns.iter().map(|column| column.name).collect();
            Refusal::BadRequest(format!("sort is {name}, which is none of {}", known.join(", ")))
        })
    }

    /// Number of the requested page of a list, from 1 on.
    pub(super) fn page(&self) -> Result<usize, Refusal> {
        let page = self.number("page")?.unwrap_or(1);
        usize::try_from(page)
            .ok()
            .filter(|page| *page >= 1)
            .ok_or_else(|| Refusal::BadRequest(format!("page is {page}, and must be at least 1")))
    }

    /// This address with some parameters changed.
    pub(super) fn with(&self, changes: &[(&str, &str)]) -> String {
        let mut all: Vec<(&str, &str)> = self
            .given
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name))
            .chain(changes.iter().copied())
            .collect();
        all.sort_unstable();
        show::link(&self.path, &all)
    }

    /// The head of a table, with a link to sort by each column.
    pub(super) fn head(&self, columns: &'static [Column], sorted: &Column) -> Markup {
        html! {
            thead { tr {
                @for column in columns {
                    @let order = if column.is_number { "descending" } else { "ascending" };
                    th scope="col" class=[column.is_number.then_some("n")] aria-sort=[(column == sorted).then_some(order)] {
                        a href=(self.with(&[("sort", column.name), ("page", "")])) { (column.heading) }
                    }
                }
            } }
        }
    }
}

/// The part of a list that is on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) page: usize,
    pub(super) pages: usize,
    pub(super) first: usize,
    /// One past the last.
    pub(super) end: usize,
    pub(super) all: usize,
}

impl Part {
    /// The page that is asked for, of `all` rows. There is always a first page.
    pub(super) fn of(params: &Params, all: usize) -> Result<Self, Refusal> {
        let page = params.page()?;
        let pages = all.div_ceil(PAGE_ROWS).max(1);
        if page > pages {
            return Err(Refusal::NotFound(format!(
                "There is no page {page}: the last one is {pages}."
            )));
        }
        let first = (page - 1) * PAGE_ROWS;
        Ok(Self {
            page,
            pages,
            first,
            end: all.min(first + PAGE_ROWS),
            all,
        })
    }

    /// Links to the other pages; nothing when there are none.
    pub(super) fn links(&self, params: &Params, what: &str) -> Markup {
        let to = |page: usize| params.with(&[("page", &page.to_string())]);
        html! {
            @if self.pages > 1 {
                nav.pages aria-label=(format!("Pages of {what}")) {
                    span {
                        (show::count(self.first as u64 + 1)) " to " (show::count(self.end as u64)) " of " (show::count(self.all as u64))
                        " " (what)
                    }
                    @if self.page > 1 {
                        a href=(to(1)) { "first" } " "
                        a rel="prev" href=(to(self.page - 1)) { "previous" }
                    }
                    @if self.page < self.pages {
                        a rel="next" href=(to(self.page + 1)) { "next" } " "
                        a href=(to(self.pages)) { "last" }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(given: &[(&str, &str)]) -> Params {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Params::new("/tables/t", given.collect())
    }

    #[test]
    fn a_list_is_cut_into_pages() {
        let part = |page: &str, all| Part::of(&params(&[("page", page)]), all);
        let cut = |page, all| {
            part(page, all)
                .map(|part| (part.first, part.end, part.pages))
                .ok()
        };
        assert_eq!(cut("1", 0), Some((0, 0, 1)));
        assert_eq!(cut("", 100), Some((0, 100, 1)));
        assert_eq!(cut("2", 101), Some((100, 101, 2)));
        assert_eq!(cut("100", 10_000), Some((9_900, 10_000, 100)));
        assert!(matches!(part("3", 101), Err(Refusal::NotFound(_))));
        for wrong in ["0", "-1", "x", "1.5", "99999999999999999999"] {
            assert!(matches!(part(wrong, 101), Err(Refusal::BadRequest(_))), "{wrong}");
        }
    }

    #[test]
    fn addresses_keep_the_other_parameters() {
        const COLUMNS: &[Column] = &[text("key", "Key"), number("size", "Size")];
        let params = params(&[("sort", "reads"), ("page", "3"), ("x", "&<")]);
        assert_eq!(
            params.with(&[("page", "4")]),
            "/tables/t?page=4&sort=reads&x=%26%3C"
        );
        assert_eq!(
            params.with(&[("sort", "size"), ("page", "")]),
            "/tables/t?sort=size&x=%26%3C"
        );
        assert!(matches!(params.sort(COLUMNS), Err(Refusal::BadRequest(why)) if why.contains("key, size")));
    }
}

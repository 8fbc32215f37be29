//! The examples behave as their comments say.

#[path = "../examples/address_book.rs"]
#[expect(dead_code, reason = "the test calls `run` instead of `main`")]
mod address_book;
#[path = "../examples/page_views.rs"]
#[expect(dead_code, reason = "the test calls `run` instead of `main`")]
mod page_views;

#[test]
fn the_address_book_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        address_book::run(&dir.path().join("data")).unwrap(),
        [
            "lovelace is Ada",
            "Margaret: added",
            "Maggie: taken",
            "liskov lives in Boston",
            "lovelace lives in London",
            "1 in Boston",
        ]
    );
}

#[test]
fn page_views_survive_an_engine_that_was_not_closed() {
    let dir = tempfile::tempdir().unwrap();
    let totals = page_views::run(&dir.path().join("data")).unwrap();
    assert_eq!(totals, [("/about".to_owned(), 501), ("/index".to_owned(), 500)]);
}

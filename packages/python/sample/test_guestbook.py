"""Five tests of the guest book. Each gets an empty server of its own from pytest-basalt."""

import pytest
from guestbook import GuestBook


@pytest.fixture
def book(basalt):
    return GuestBook.create(basalt)


def test_newest_entries_come_first(book):
    for millis, name in [(1_000, "ada"), (3_000, "grace"), (2_000, "mary")]:
        assert book.sign("home", millis, name, "hello")
    assert [name for name, _ in book.latest("home", 2)] == ["grace", "mary"]


def test_books_are_apart(book):
    book.sign("home", 1_000, "ada", "hello")
    book.sign("homework", 2_000, "mary", "done")
    assert book.latest("home", 10) == [("ada", "hello")]


def test_one_entry_for_each_time(book):
    assert book.sign("home", 1_000, "ada", "first")
    assert not book.sign("home", 1_000, "mary", "second")
    assert book.latest("home", 10) == [("ada", "first")]


def test_visits_are_counted(book):
    assert [book.visit("home") for _ in range(3)] == [1, 2, 3]
    assert book.visit("other") == 1


def test_erase_removes_entries_and_keeps_visits(book):
    for millis in range(5):
        book.sign("home", millis, "ada", "hello")
    book.visit("home")
    assert book.erase("home") == 5
    assert book.latest("home", 10) == []
    assert book.visit("home") == 2

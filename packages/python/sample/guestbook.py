"""A small application on HBase: a guest book with the newest entries first and a counter of visits."""

import happybase

NEWEST = 2**63 - 1


class GuestBook:
    """Entries of many books in one table; a row key is the book's name and the reversed time."""

    def __init__(self, connection: happybase.Connection):
        self._table = connection.table("guestbook")

    @staticmethod
    def create(connection: happybase.Connection) -> "GuestBook":
        """Creates the table: entries keep one version, visits are counted."""
        connection.create_table("guestbook", {"entry": {"max_versions": 1}, "count": {}})
        return GuestBook(connection)

    def sign(self, book: str, millis: int, name: str, text: str) -> bool:
        """Adds an entry. False if the book has one of that time already."""
        row = f"{book}/{NEWEST - millis:019d}".encode()
        if self._table.row(row):
            return False
        self._table.put(row, {b"entry:name": name.encode(), b"entry:text": text.encode()})
        return True

    def latest(self, book: str, limit: int) -> list:
        """The newest entries as pairs of name and text."""
        rows = self._table.scan(row_prefix=f"{book}/".encode(), limit=limit, columns=[b"entry"])
        return [(data[b"entry:name"].decode(), data[b"entry:text"].decode()) for _, data in rows]

    def visit(self, book: str) -> int:
        """Counts a visit and returns the number of visits."""
        return self._table.counter_inc(f"{book}!".encode(), b"count:visits")

    def erase(self, book: str) -> int:
        """Removes a book's entries in one batch and returns their number."""
        keys = [key for key, _ in self._table.scan(row_prefix=f"{book}/".encode())]
        with self._table.batch() as batch:
            for key in keys:
                batch.delete(key)
        return len(keys)

"""The two kinds of servers behind a connection: one that a test run owns, and one that runs already.

Both have `host`, `port`, `table_prefix` and `clear()`, which is what the fixture `basalt` uses. A server of
one's own is emptied as a whole. On a running server only tables with the prefix are dropped, since the others
may hold the user's data, or belong to another worker of pytest-xdist.
"""

import os
from typing import Optional

import basalt_server
import happybase


def worker() -> Optional[str]:
    """The name of this pytest-xdist worker, such as `gw0`; None in an ordinary run."""
    return os.environ.get("PYTEST_XDIST_WORKER")


class OwnedServer:
    """A server that this worker started. Attributes are those of `basalt_server.Server`."""

    table_prefix = None

    def __init__(self, server: basalt_server.Server):
        self._server = server

    def __getattr__(self, name: str):
        return getattr(self._server, name)

    def clear(self) -> None:
        """Drops everything."""
        self._server.reset()


class RunningServer:
    """A server that runs already and is not stopped."""

    def __init__(self, host: str, port: int, prefix: str):
        self.host = host
        self.port = port
        self.table_prefix = f"{prefix}_{worker()}" if worker() else prefix

    def connect(self, **options) -> happybase.Connection:
        """A connection that sees only the tables with the prefix."""
        return happybase.Connection(self.host, self.port, table_prefix=self.table_prefix, **options)

    def clear(self) -> None:
        """Drops the tables with the prefix."""
        connection = self.connect()
        try:
            for table in connection.tables():
                connection.delete_table(table, disable=connection.is_table_enabled(table))
        finally:
            connection.close()

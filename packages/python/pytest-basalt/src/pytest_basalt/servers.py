"""The two kinds of servers behind a connection: one that a test run owns, and one that runs already.

Both have `host`, `port`, `table_prefix` and `clear()`, which the fixture `basalt` uses. A server of
one's own is emptied as a whole. On a running server only tables with the prefix are dropped, since the others
may hold the user's data, or belong to another worker of pytest-xdist.
"""

import os
from functools import partial
from typing import Callable, Mapping, Optional
from unittest import mock

import basalt_server
import happybase
import happybase.connection
from thriftpy2.transport import TSSLSocket


def worker() -> Optional[str]:
    """The name of this pytest-xdist worker, such as `gw0`; None in an ordinary run."""
    return os.environ.get("PYTEST_XDIST_WORKER")


class _SecureConnection(happybase.Connection):
    """A connection that is encrypted, and logs in with a certificate."""

    def __init__(self, *args, security: basalt_server.Security, **options):
        self._security = security
        super().__init__(*args, **options)

    def _refresh_thrift_client(self):
        # HappyBase takes the class of its socket from its module, and has no argument for it.
        socket = partial(TSSLSocket, ssl_context=self._security.ssl_context())
        with mock.patch.object(happybase.connection, "TSocket", socket):
            super()._refresh_thrift_client()


def connect(server, **options) -> happybase.Connection:
    """A connection to one of the servers below. `options` are arguments of happybase.Connection."""
    options = {"table_prefix": server.table_prefix, **options}
    security = getattr(server, "security", None)
    if security is None:
        return happybase.Connection(server.host, server.port, **options)
    return _SecureConnection(server.host, server.port, security=security, **options)


Load = Callable[[happybase.Connection], None]


def _fill(server, load: Load, options: Mapping[str, object]) -> None:
    """Calls `load` with a connection of its own."""
    connection = connect(server, **options)
    try:
        load(connection)
    finally:
        connection.close()


class OwnedServer:
    """A server that this worker started. Attributes are those of `basalt_server.Server`."""

    table_prefix = None

    def __init__(self, server: basalt_server.Server):
        self._server = server
        self._template: Optional[Load] = None

    def __getattr__(self, name: str):
        return getattr(self._server, name)

    def clear(self, load: Optional[Load] = None, **options) -> None:
        """Drops everything; with `load`, returns to the tables that it has made."""
        if load is not None and load is self._template:
            self._server.post("/test/reset", {"template": True})
            return
        self._server.reset()
        self._template = None
        if load is not None:
            _fill(self, load, options)
            self._server.post("/test/template")
            self._template = load


class RunningServer:
    """A server that runs already and is not stopped."""

    security = None

    def __init__(self, host: str, port: int, prefix: str):
        self.host = host
        self.port = port
        self.table_prefix = f"{prefix}_{worker()}" if worker() else prefix

    def connect(self, **options) -> happybase.Connection:
        """A connection that sees only the tables with the prefix."""
        return happybase.Connection(self.host, self.port, table_prefix=self.table_prefix, **options)

    def clear(self, load: Optional[Load] = None, **options) -> None:
        """Drops the tables with the prefix, and fills them anew: a running server has no template."""
        connection = self.connect()
        try:
            for table in connection.tables():
                connection.delete_table(table, disable=connection.is_table_enabled(table))
        finally:
            connection.close()
        if load is not None:
            _fill(self, load, options)

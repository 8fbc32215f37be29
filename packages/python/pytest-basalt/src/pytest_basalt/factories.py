"""Makes fixtures, for projects that need other ones than the plugin's.

    from pytest_basalt import factories

    small_proc = factories.basalt_proc({"memstore.flush_bytes": 1048576})
    small = factories.basalt("small_proc")
    library = factories.basalt(load=fill_library)  # fill_library(connection) runs once
"""

from typing import Callable, Iterable, Mapping, Optional, Union

import basalt_server
import happybase
import pytest

from pytest_basalt.servers import OwnedServer, RunningServer, connect


def basalt_proc(settings: Union[Mapping[str, object], Iterable[str]] = (), secure: bool = False):
    """A session fixture: an ephemeral server on free ports with these settings. To a `secure` one connections are
    encrypted, and log in as its superuser."""

    @pytest.fixture(scope="session")
    def process(pytestconfig):
        """An ephemeral HBase-compatible server on free ports, for the whole run."""
        with basalt_server.start(settings, _option(pytestconfig, "program"), secure) as server:
            yield OwnedServer(server)

    return process


def basalt_noproc(host: Optional[str] = None, port: Optional[int] = None, prefix: Optional[str] = None):
    """A session fixture: the running server at that address, by default that of the options."""

    @pytest.fixture(scope="session")
    def running(pytestconfig):
        """The HBase-compatible server that runs already, at --basalt-host and --basalt-port."""
        return RunningServer(
            host or _option(pytestconfig, "host"),
            int(port or _option(pytestconfig, "port")),
            prefix or _option(pytestconfig, "prefix"),
        )

    return running


def basalt(process: str = "basalt_proc", load: Optional[Callable[[happybase.Connection], None]] = None, **options):
    """A function fixture: a HappyBase connection to the emptied server of the fixture `process`. `load` is called once
    with a connection, to create and fill tables; before each test the server returns to them, which takes milliseconds.
    `options` are arguments of happybase.Connection."""

    @pytest.fixture
    def connection(request):
        """A connected happybase.Connection to an HBase-compatible server that is empty, or has the loaded tables."""
        server = request.getfixturevalue(process)
        server.clear(load, **options)
        client = connect(server, **options)
        yield client
        client.close()

    return connection


def _option(config: pytest.Config, name: str) -> Optional[str]:
    """An option of the command line, else of the ini file, else its default."""
    return config.getoption(f"basalt_{name}") or config.getini(f"basalt_{name}")

"""The plugin that pytest loads: options, and the three fixtures with their default arguments."""

from pytest_basalt import factories

basalt_proc = factories.basalt_proc()
basalt_noproc = factories.basalt_noproc()
basalt = factories.basalt("basalt_proc")

# Options, their meaning and default. Each is also a setting of the ini file: basalt_host for --basalt-host.
OPTIONS = [
    ("program", "program to run instead of the installed `basalt`", None),
    ("host", "host of the running server of basalt_noproc", "127.0.0.1"),
    ("port", "port of the running server of basalt_noproc", "9090"),
    ("prefix", "prefix of the tables on the running server; others are not touched", "pytest"),
]


def pytest_addoption(parser):
    """Adds the options; the command line comes before the ini file."""
    group = parser.getgroup("basalt", "Basalt, an HBase-compatible server")
    for name, meaning, default in OPTIONS:
        group.addoption(f"--basalt-{name}", dest=f"basalt_{name}", help=meaning)
        parser.addini(f"basalt_{name}", meaning, default=default)

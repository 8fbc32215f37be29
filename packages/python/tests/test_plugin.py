"""The fixtures of pytest-basalt, each in a pytest of its own."""

import basalt_server
import happybase
import pytest


def test_each_test_gets_an_empty_server(pytester):
    pytester.makepyfile(
        """
        def test_first(basalt):
            basalt.create_table("kept", {"f": {}})
            basalt.table("kept").put(b"row", {b"f:q": b"v"})
            assert basalt.tables() == [b"kept"]

        def test_second(basalt, basalt_proc):
            assert basalt.tables() == []
            assert basalt_proc.port > 0
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=2)


def test_workers_of_xdist_have_servers_of_their_own(pytester):
    pytester.makepyfile(
        """
        import pathlib, pytest

        @pytest.mark.parametrize("number", range(8))
        def test_same_table_name(basalt, basalt_proc, number):
            basalt.create_table("same", {"f": {}})
            assert basalt.tables() == [b"same"]
            pathlib.Path(f"port-{basalt_proc.port}").touch()
        """
    )
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=8)
    assert len(list(pytester.path.glob("port-*"))) == 2


def test_settings_reach_a_server_of_a_factory(pytester):
    pytester.makepyfile(
        """
        import happybase, pytest
        from pytest_basalt import factories

        small_proc = factories.basalt_proc({"row.cell_max_bytes": 1000})
        small = factories.basalt("small_proc")

        def test_limit(small):
            small.create_table("t", {"f": {}})
            with pytest.raises(Exception, match="exceeds limit of 1000 bytes"):
                small.table("t").put(b"row", {b"f:q": b"v" * 2000})
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_data_is_loaded_once_and_is_there_in_each_test(pytester):
    pytester.makepyfile(
        """
        from pytest_basalt import factories

        loaded = []

        def fill(connection):
            loaded.append(connection)
            connection.create_table("books", {"f": {}})
            connection.table("books").put(b"one", {b"f:q": b"v"})

        library = factories.basalt(load=fill)

        def check(library):
            assert library.tables() == [b"books"]
            assert [key for key, _ in library.table("books").scan()] == [b"one"]
            library.table("books").delete(b"one")
            library.table("books").put(b"two", {b"f:q": b"v"})
            library.create_table("other", {"f": {}})

        def test_first(library):
            check(library)

        def test_second(library):
            check(library)
            assert len(loaded) == 1

        def test_an_empty_server(basalt):
            assert basalt.tables() == []

        def test_last(library):
            check(library)
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=4)


def test_fixtures_say_what_they_are(pytester):
    printed = pytester.runpytest_subprocess("--fixtures").stdout.str()
    for words in ["empty, or has the loaded tables", "ephemeral HBase-compatible server", "--basalt-host and --basalt-port"]:
        assert words in printed


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_running_server_keeps_tables_of_others(pytester, workers):
    pytester.makepyfile(
        """
        import pytest
        from pytest_basalt import factories

        running = factories.basalt("basalt_noproc")

        @pytest.mark.parametrize("number", range(4))
        def test_same_table_name(running, number):
            assert running.tables() == []
            running.create_table("same", {"f": {}})
        """
    )
    with basalt_server.start() as server:
        connection = happybase.Connection(server.host, server.port)
        connection.create_table("production", {"f": {}})
        arguments = ["--basalt-host", server.host, "--basalt-port", str(server.port), "-n", workers]
        pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=4)
        tables = connection.tables()
        connection.close()
    own = [b"pytest_gw0_same", b"pytest_gw1_same"] if workers == "2" else [b"pytest_same"]
    assert tables == [b"production", *own]


def test_a_missing_program_is_named(pytester):
    pytester.makepyfile("def test_any(basalt): pass")
    result = pytester.runpytest_subprocess("--basalt-program", "/nowhere/basalt")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*/nowhere/basalt does not run here*"])

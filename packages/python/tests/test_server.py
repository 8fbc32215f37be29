"""The module basalt_server: start, reset, stop, and errors that name what is wrong."""

import os
import signal
from pathlib import Path

import basalt_server
import happybase
import pytest
from Hbase_thrift import IOError as HBaseError
from pytest_basalt import servers


def test_the_installed_program_is_found_without_a_variable():
    program = basalt_server.program()
    assert program.name == "basalt"
    assert os.access(program, os.X_OK)


def test_a_variable_that_names_no_program_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("BASALT_PROGRAM", str(tmp_path))
    with pytest.raises(basalt_server.BasaltError, match="BASALT_PROGRAM=.* is not an executable file"):
        basalt_server.program()


def test_an_unsupported_machine_is_named(monkeypatch):
    monkeypatch.delenv("BASALT_PROGRAM", raising=False)
    monkeypatch.setattr("basalt_server._program._installed", lambda: iter([Path("/nowhere/basalt")]))
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(basalt_server.BasaltError, match="this is .* on riscv64"):
        basalt_server.program()


def test_two_servers_run_beside_each_other_and_are_emptied():
    with basalt_server.start() as one, basalt_server.start() as other:
        assert one.port != other.port
        connection = happybase.Connection(one.host, one.port)
        connection.create_table("t", {"f": {}})
        one.reset()
        assert connection.tables() == []
        connection.close()


def test_calls_meet_faults():
    with basalt_server.start() as server:
        connection = happybase.Connection(server.host, server.port)
        connection.create_table("t", {"f": {}})
        table = connection.table("t")
        fault = {"method": "mutateRows", "fault": "region_too_busy", "calls": 1, "table": "t"}
        assert server.faults(fault) == [fault]
        with pytest.raises(HBaseError, match="RegionTooBusyException"):
            table.put(b"row", {b"f:q": b"v"})
        assert server.faults_left() == []
        table.put(b"row", {b"f:q": b"v"})
        server.faults(fault)
        server.faults()
        table.put(b"row", {b"f:q": b"v"})
        with pytest.raises(basalt_server.BasaltError, match="400.*must be one of"):
            server.faults({**fault, "method": "gett"})
        connection.close()


def test_nothing_is_left_after_a_stop():
    server = basalt_server.start()
    data_dir = Path(server.data_dir)
    assert data_dir.is_dir()
    server.stop()
    server.stop()
    assert not data_dir.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_a_wrong_setting_is_reported_with_the_servers_own_words():
    with pytest.raises(basalt_server.BasaltError, match="memstore.flush_byte"):
        basalt_server.start({"memstore.flush_byte": 1})


def test_a_killed_server_is_reported():
    server = basalt_server.start()
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(basalt_server.BasaltError, match="ended with status -9"):
        server.stop()


def test_a_secure_server_knows_who_calls():
    with basalt_server.start(secure=True) as server:
        with pytest.raises(HBaseError) as refused:
            happybase.Connection(server.host, server.port).tables()
        assert b"Authentication is required" in refused.value.message
        connection = servers.connect(servers.OwnedServer(server))
        connection.create_table("t", {"f": {}})
        connection.table("t").put(b"r", {b"f:q": b"v"})
        connection.close()
        server.reset()
        connection = servers.connect(servers.OwnedServer(server))
        assert connection.tables() == []
        connection.close()

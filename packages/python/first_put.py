"""The first put and get after an installation of the wheels."""

import basalt_server
import happybase

with basalt_server.start() as server:
    connection = happybase.Connection(server.host, server.port)
    connection.create_table("t", {"f": {}})
    table = connection.table("t")
    table.put(b"row", {b"f:q": b"first"})
    assert table.row(b"row") == {b"f:q": b"first"}
    connection.close()

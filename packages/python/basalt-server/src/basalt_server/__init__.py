"""Basalt for Python: the path of its program, and servers that a test owns.

`program()` finds the installed program. `start()` runs it with `--ephemeral`: an empty server on free ports
whose data is removed when it stops. Both raise `BasaltError` with the reason and the remedy.
"""

from basalt_server._program import BasaltError, program
from basalt_server._server import Security, Server, start

__all__ = ["BasaltError", "Security", "Server", "program", "start"]

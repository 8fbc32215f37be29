"""Finds the program `basalt` that the wheel installed."""

import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Iterator


class BasaltError(RuntimeError):
    """The server is missing, did not start, or refused a request. The message has the reason."""


def program() -> Path:
    """The program `basalt`: the one that the variable BASALT_PROGRAM names, else the installed one."""
    named = os.environ.get("BASALT_PROGRAM")
    candidates = [Path(named)] if named else list(_installed())
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    if named:
        raise BasaltError(f"BASALT_PROGRAM={named} is not an executable file")
    raise BasaltError(
        f"no program `basalt` in {', '.join(str(path.parent) for path in candidates)}. Wheels of basalt-server "
        f"exist for Linux on x86_64 and aarch64; this is {platform.system()} on {platform.machine()}. "
        "Set BASALT_PROGRAM to a program that runs here."
    )


def _installed() -> Iterator[Path]:
    """Where pip may have put the program, in the order of preference."""
    yield Path(sysconfig.get_path("scripts")) / "basalt"
    yield Path(sys.prefix) / "bin" / "basalt"
    yield Path(sysconfig.get_path("scripts", scheme=_user_scheme())) / "basalt"
    # pip install --target DIR puts packages into DIR and programs into DIR/bin.
    yield Path(__file__).resolve().parent.parent / "bin" / "basalt"


def _user_scheme() -> str:
    """The scheme of pip install --user."""
    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    return "posix_user"

"""Prints start time, memory at rest and time of a reset of a program `basalt`: figures.py [PROGRAM]

The median of 21 starts of an ephemeral server, from the call that starts the process to its line on standard output,
when it accepts calls. Memory is the resident size one second later, without a client. A reset removes ten tables, which
the program `basalt-shell` beside it has created.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

STARTS = 21
RESETS = 11
TABLES = 10


def start(program):
    """One start: milliseconds until calls are accepted, and the resident KiB a second later."""
    begin = time.monotonic()
    server = subprocess.Popen([program, "serve", "--ephemeral"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        json.loads(server.stdout.readline())
        took = (time.monotonic() - begin) * 1000
        time.sleep(1)
        status = Path(f"/proc/{server.pid}/status").read_text()
        (resident,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")]
    finally:
        server.terminate()
        server.wait()
    return took, resident


def resets(program):
    """Milliseconds that each reset of a server with ten tables takes."""
    shell = Path(program).resolve().with_name("basalt-shell")
    create = [word for number in range(TABLES) for word in ("-e", f"create 't{number}', 'f'")]
    server = subprocess.Popen([program, "serve", "--ephemeral"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    took = []
    try:
        addresses = json.loads(server.stdout.readline())
        for _ in range(RESETS):
            subprocess.run([shell, "--target", addresses["listen"], *create], check=True, stdout=subprocess.DEVNULL)
            request = urllib.request.Request(f"http://{addresses['http']}/test/reset", data=b"")
            begin = time.monotonic()
            removed = json.loads(urllib.request.urlopen(request).read())
            took.append((time.monotonic() - begin) * 1000)
            assert removed["tables"] == TABLES, removed
    finally:
        server.terminate()
        server.wait()
    return took


def main(program):
    """Measures and prints one line for each figure."""
    results = [start(program) for _ in range(STARTS)]
    times, sizes = zip(*results)
    print(f"program: {Path(program).stat().st_size / 1e6:.1f} MB")
    print(f"start: {statistics.median(times):.0f} ms (median of {STARTS}, {min(times):.0f} to {max(times):.0f})")
    print(f"memory at rest: {statistics.median(sizes) / 1024:.1f} MiB (median of {STARTS})")
    times = resets(program)
    print(f"reset: {statistics.median(times):.1f} ms (median of {RESETS}, {min(times):.1f} to {max(times):.1f})")


default = Path(__file__).resolve().parent.parent / "target" / "dist" / os.uname().machine / "basalt"
main(sys.argv[1] if len(sys.argv) > 1 else str(default))

#!/usr/bin/env python3
"""REST beside HBase's REST server: gets and puts of one value, by wrk, in turns on the same machine.

    apt-get install wrk
    cargo build --release -p basalt && cargo build -p basalt-conformance --bin hbase-oracle
    bench/rest.py --rounds 5

1. `hbase-oracle --for-load` starts HBase with its own numbers of threads, a heap of 4 GiB and its REST server in the same
   process; Basalt starts with default settings. Both keep their data in a directory of the disk that is removed at the end.
2. Each gets a table with one family and --rows rows of 100 bytes, by PUTs of 1,000 rows.
3. Each serves --warm-up seconds of gets and of puts that do not count: the JVM compiles meanwhile.
4. In each round each server is asked for --seconds of gets, then of puts, of random rows over --connections connections; the
   other one is idle. wrk and the server share the processors.

An answer that is not 200 ends the run with an error. Prints a table of medians and of ratios by round."""

import argparse
import base64
import contextlib
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from machine import machine

ROOT = Path(__file__).resolve().parent.parent
BATCH = 1_000
VALUE = "v" * 100
WRK = """
wrk.headers["Accept"] = "application/octet-stream"
wrk.headers["Content-Type"] = "application/octet-stream"
function init(args) math.randomseed(tonumber(args[1])) end
function request()
  local path = string.format("/t/row%%08d/f:q", math.random(0, %d - 1))
  return wrk.format("%s", path, nil, %s)
end
"""


def ask(address, method, path, body):
    asked = urllib.request.Request(f"http://{address}{path}", data=json.dumps(body).encode(), method=method,
                                   headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        answer.read()


def fill(address, rows):
    """Makes the table and its rows."""
    ask(address, "PUT", "/t/schema", {"name": "t", "ColumnSchema": [{"name": "f"}]})
    code = lambda text: base64.b64encode(text.encode()).decode()
    for first in range(0, rows, BATCH):
        cells = [{"key": code(f"row{row:08}"), "Cell": [{"column": code("f:q"), "$": code(VALUE)}]}
                 for row in range(first, min(first + BATCH, rows))]
        ask(address, "PUT", "/t/many", {"Row": cells})


def play(options, scratch, address, method, seconds, seed):
    """Requests per second, and the 99th percentile in milliseconds."""
    script = scratch / f"{method}.lua"
    script.write_text(WRK % (options.rows, method, "nil" if method == "GET" else json.dumps(VALUE)))
    command = ["wrk", "--threads", "1", "--connections", str(options.connections), "--duration", f"{seconds}s", "--timeout", "10s",
               "--latency", "--script", str(script), f"http://{address}", "--", str(seed)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if wrong := re.search(r"(Non-2xx.*|Socket errors.*)", said):
        sys.exit(f"{method} at {address}: {wrong.group(1)}\n{said}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()
    return rate, float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


@contextlib.contextmanager
def running(command, pattern):
    """A server, and the address in the line that the pattern finds; ended with its input or by a signal."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for line in process.stdout:
            if found := re.search(pattern, line):
                yield found.group(1)
                return
        sys.exit(f"{command[0]} ended before it said where it listens")
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="of each timed phase")
    parser.add_argument("--warm-up", type=int, default=60, help="seconds of each kind of call before the first round")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--dir", help="where the databases go (default: a new directory of the system)")
    parser.add_argument("--basalt", default=str(ROOT / "target" / "release" / "basalt"))
    parser.add_argument("--oracle", default=str(ROOT / "target" / "debug" / "hbase-oracle"))
    options = parser.parse_args()
    for program in ("wrk", options.basalt, options.oracle):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not there; the beginning of this file says what makes it")
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rest-", dir=options.dir)))
        serve = [options.basalt, "serve", "--data-dir", str(scratch / "data"), "--listen", "127.0.0.1:0", "--http-listen",
                 "127.0.0.1:0"]
        addresses = {
            "HBase": stack.enter_context(running([options.oracle, "--for-load"], r"^REST\s+on (\S+)")),
            "Basalt": stack.enter_context(running(serve, r"^basalt serves HBase clients on (\S+)")),
        }
        for address in addresses.values():
            fill(address, options.rows)
            for method in ("GET", "PUT"):
                play(options, scratch, address, method, options.warm_up, 0)
        measured = {}
        for number in range(1, options.rounds + 1):
            for method in ("GET", "PUT"):
                for name, address in addresses.items():
                    found = play(options, scratch, address, method, options.seconds, number)
                    measured.setdefault((method, name), []).append(found)
                    print(f"round {number}: {method} {name} {found[0]:.0f}/s, p99 {found[1]:.2f} ms", file=sys.stderr, flush=True)
    print(f"Medians of {options.rounds} rounds of {options.seconds} s, {options.connections} connections, values of {len(VALUE)} bytes. "
          f"{machine()}.\n")
    print("| call | HBase's REST server | p99 | Basalt | p99 | ratio (least to most) |")
    print("|---|---|---|---|---|---|")
    for method in ("GET", "PUT"):
        theirs, ours = measured[method, "HBase"], measured[method, "Basalt"]
        ratios = [our[0] / their[0] for our, their in zip(ours, theirs, strict=True)]
        middle = lambda runs, at: statistics.median(run[at] for run in runs)
        print(f"| {method} | {middle(theirs, 0):,.0f}/s | {middle(theirs, 1):.1f} ms | {middle(ours, 0):,.0f}/s | {middle(ours, 1):.1f} ms "
              f"| {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}) |")


if __name__ == "__main__":
    main()

"""A load on table `t` of the Thrift server at argv[1]:argv[2], until the file argv[3] appears; then a comparison.

Failed calls are repeated. The last line is JSON: rows whose last acknowledged value is missing or wrong, the counter, the
increments that were acknowledged and those that failed, and the texts of the errors."""
import json
import os
import re
import sys
import threading
import time

import happybase

host, port, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
THREADS = 4
lock = threading.Lock()
acknowledged = {}
figures = {"puts": 0, "gets": 0, "scans": 0, "batches": 0, "counted": 0, "uncertain": 0}
errors = set()
failures = []


class Caller:
    """A connection that is opened again after errors of the transport."""

    def __init__(self):
        self.connection = None

    def table(self):
        if self.connection is None:
            self.connection = happybase.Connection(host, port, timeout=60_000)
        return self.connection.table("t")

    def call(self, name, work, repeat=True):
        """The result of `work`. It is repeated until it succeeds, or once if `repeat` is false."""
        while True:
            try:
                result = work(self.table())
                with lock:
                    figures[name] += 1
                return result
            except Exception as error:
                text = getattr(error, "message", None) or repr(error)
                if isinstance(text, bytes):
                    text = text.decode(errors="replace")
                with lock:
                    errors.add(re.sub(r"[0-9]+", "N", text)[:300])
                if type(error).__module__.startswith("thriftpy2.transport") or isinstance(error, OSError):
                    self.connection = None
                if not repeat:
                    return None
                time.sleep(0.1)


def work(number):
    caller, step = Caller(), 0
    while not os.path.exists(stop):
        step += 1
        key = b"row-%d-%d-%d" % (step % 4, number, step % 50)
        value = b"%d" % step
        caller.call("puts", lambda table: table.put(key, {b"f:q": value}))
        with lock:
            acknowledged[key] = value
        found = caller.call("gets", lambda table: table.row(key))
        if found != {b"f:q": value}:
            failures.append((key, value, found))
        if caller.call("counted", lambda table: table.counter_inc(b"counter", b"f:c"), repeat=False) is None:
            with lock:
                figures["uncertain"] += 1
        if step % 10 == 0:
            rows = {b"batch-%d-%d" % (number, row): b"%d" % step for row in range(20)}

            def send(table):
                with table.batch() as batch:
                    for row, content in rows.items():
                        batch.put(row, {b"f:q": content})

            caller.call("batches", send)
            with lock:
                acknowledged.update(rows)
        if step % 25 == 0:
            prefix = b"batch-%d-" % number
            found = caller.call("scans", lambda table: list(table.scan(row_prefix=prefix, batch_size=5)))
            if [row for row, _ in found] != sorted(b"batch-%d-%d" % (number, row) for row in range(20)):
                failures.append((prefix, found))


def guarded(number):
    try:
        work(number)
    except BaseException as error:
        failures.append((number, repr(error)))


threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
last = Caller()
rows = last.call("scans", lambda table: {row: data.get(b"f:q") for row, data in table.scan()})
figures["missing"] = sum(1 for row in acknowledged if row not in rows)
figures["wrong"] = sum(1 for row, value in acknowledged.items() if rows.get(row, value) != value) + len(failures)
figures["counter"] = last.call("gets", lambda table: table.counter_get(b"counter", b"f:c"))
figures["errors"] = sorted(errors)
figures["failures"] = [repr(failure) for failure in failures[:5]]
print(json.dumps(figures))

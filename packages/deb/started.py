"""Starts the service by its unit's command line, as systemd would, and writes or reads a row: started.py put|get.

User, working directory, command and watchdog come from the unit. The notifications are received on a socket of
this program: READY=1 before the first call, WATCHDOG=1 twice, STOPPING=1 at the end.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

UNIT = "/lib/systemd/system/basalt.service"
LIMIT = 60


def unit():
    """The unit's settings; of those given more than once, the last."""
    with open(UNIT) as file:
        return dict(re.findall(r"^(\w+)=(.*)$", file.read(), re.MULTILINE))


def await_message(notify, wanted):
    """Receives messages until `wanted` is among them."""
    deadline = time.monotonic() + LIMIT
    while True:
        notify.settimeout(max(0.001, deadline - time.monotonic()))
        if notify.recv(4096).decode() == wanted:
            return


def shell(command):
    """What basalt-shell prints for one command."""
    done = subprocess.run(["basalt-shell", "-e", command], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def main(action):
    """Starts, calls, stops; an assertion or an exception ends it with an error."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    settings = unit()
    assert settings["Type"] == "notify"
    path = "/run/notify"
    if os.path.exists(path):
        os.unlink(path)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(path)
    os.chmod(path, 0o777)
    environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
    user = ["setpriv", f"--reuid={settings['User']}", f"--regid={settings['Group']}", "--init-groups"]
    begin = time.monotonic()
    log = tempfile.TemporaryFile()
    service = subprocess.Popen(
        user + settings["ExecStart"].split(),
        cwd=settings["WorkingDirectory"],
        env=environment,
        umask=0o027,
        stdout=log,
        stderr=log,
    )
    try:
        await_message(notify, "READY=1")
        subprocess.run(["basalt", "health"], check=True, timeout=LIMIT)
        if action == "put":
            shell("create 't', 'f'")
            shell("put 't', 'row', 'f:q', 'kept'")
        answer = shell("get 't', 'row'")
        assert "kept" in answer, answer
        print(f"{action}: {(time.monotonic() - begin) * 1000:.0f} ms from the start to the row")
        await_message(notify, "WATCHDOG=1")
        await_message(notify, "WATCHDOG=1")
        service.send_signal(signal.SIGTERM)
        await_message(notify, "STOPPING=1")
        assert service.wait(LIMIT) == 0
    except BaseException:
        log.seek(0)
        sys.stderr.write(log.read().decode(errors="replace"))
        raise
    finally:
        service.kill()
        service.wait()


main(sys.argv[1])

"""Runs the root file system of an image as a container engine would: run_root.py IMAGE.json ROOT.

User, variables, command and health check come from the image's configuration. The root is mounted read-only with /data
writable. Called in mount and network namespaces of its own.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

LIMIT = 60


def run(*command, **options):
    """Runs a command that must succeed; returns its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def mount(root):
    """Mounts the root read-only, with a writable /data, and /dev and /proc as a container engine adds them."""
    run("mount", "--make-rprivate", "/")
    for name in ["dev", "proc"]:
        os.makedirs(f"{root}/{name}", exist_ok=True)
    run("mount", "--bind", root, root)
    run("mount", "--rbind", "/dev", f"{root}/dev")
    run("mount", "-t", "proc", "proc", f"{root}/proc")
    run("mount", "--bind", f"{root}/data", f"{root}/data")
    run("mount", "-o", "remount,ro,bind", root)
    run("ip", "link", "set", "lo", "up")


def check(config):
    """The parts of the configuration that users rely on."""
    assert config["User"] == "65532:65532", config["User"]
    assert "/data" in config["Volumes"], config["Volumes"]
    assert set(config["ExposedPorts"]) == {"9090/tcp", "9095/tcp"}, config["ExposedPorts"]
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/basalt", "health"], config["Healthcheck"]


def main(image, root):
    """Starts, checks health, writes; starts again, reads."""
    with open(image) as file:
        config = json.load(file)["Docker"]["config"]
    check(config)
    mount(root)
    environment = dict(pair.split("=", 1) for pair in config["Env"])

    def inside(*command):
        return [shutil.which("chroot"), f"--userspec={config['User']}", root, *command]

    def healthy():
        health = config["Healthcheck"]["Test"][1:]
        return subprocess.run(inside(*health), env=environment, capture_output=True).returncode == 0

    def shell(command):
        login = ["--token", "/data/security/admin.token"]
        return run(*inside("/usr/bin/basalt-shell", *login, "-e", command), env=environment)

    def stranger():
        command = inside("/usr/bin/basalt-shell", "-e", "list")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
        return done.stdout + done.stderr

    assert not healthy(), "healthy before it runs"
    for start in ["first", "second"]:
        begin = time.monotonic()
        server = subprocess.Popen(
            inside(*config["Entrypoint"], *config["Cmd"]), env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            line = server.stdout.readline()
            assert line, f"it ended with {server.wait(LIMIT)}"
            assert healthy(), line
            if start == "first":
                shell("create 't', 'f'")
                shell("put 't', 'row', 'f:q', 'kept'")
            assert "kept" in shell("get 't', 'row'")
            assert "Authentication is required" in stranger(), stranger()
            print(f"{start} start: {(time.monotonic() - begin) * 1000:.0f} ms to the row")
            server.send_signal(signal.SIGTERM)
            assert server.wait(LIMIT) == 0
        finally:
            server.kill()
            server.wait()
    owner = {os.stat(os.path.join(root, "data", name)).st_uid for name in os.listdir(os.path.join(root, "data"))}
    assert 65532 in owner, owner


main(*sys.argv[1:])

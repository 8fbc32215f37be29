"""Times packages from nothing to the first put and get: packages/first_put.py [PACKAGE]...

PACKAGE is archive, image, wheel or deb; by default all. They are taken from target/dist, where packages/*/build.sh
puts them, and installed where nothing else is:

- archive, image: an empty directory with /dev/urandom is the root of a chroot, without a shell and without a library;
- wheel: a new virtual environment; pip also fetches HappyBase and pytest, as it does for a user;
- deb: a Debian of debootstrap's smallest variant, made beforehand and kept in target/packages/debian; apt also fetches
  adduser.

Prints a table in Markdown: the time to unpack or install the package, and the time from the start of the server to
the end of the first put and get by a client that the package brings. Needs root, for chroot.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIST = HERE.parent / "target" / "dist"
DEBIAN = HERE.parent / "target" / "packages" / "debian"
PROCESSOR = os.uname().machine
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[PROCESSOR]
FREE_PORTS = {"BASALT_SERVER_LISTEN": "127.0.0.1:0", "BASALT_HTTP_LISTEN": "127.0.0.1:0"}
COMMANDS = ["create 't', 'f'", "put 't', 'row', 'f:q', 'first'", "get 't', 'row'"]
LIMIT = 300


class Missing(Exception):
    """A package or a tool that is not there, and how to get it."""


def run(*command, **options):
    """Runs a command that must succeed; returns its standard output."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def made(pattern, remedy):
    """The one package in target/dist with a name like this."""
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "nothing"
        raise Missing(f"{DIST}/{pattern} must be one file, and is {names}: {remedy}")
    return found[0]


def first_row(serve, shell, environment):
    """Starts a server, then writes and reads a row with the shell."""
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(serve, env={**environment, **FREE_PORTS}, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            line = server.stdout.readline()
            address = re.search(r"Thrift on (\S+) and", line)
            if not address:
                log.seek(0)
                raise RuntimeError(f"{serve} did not start: {line}{log.read().decode()}")
            answer = run(*shell, "--target", address.group(1), *[word for text in COMMANDS for word in ("-e", text)])
            assert "value=first" in answer, answer
        finally:
            server.terminate()
            server.wait(LIMIT)


def add_urandom(root):
    """Adds the only device that the server reads."""
    (root / "dev").mkdir(exist_ok=True)
    node = root / "dev" / "urandom"
    os.mknod(node, stat.S_IFCHR, os.makedev(1, 9))
    node.chmod(0o666)


def archive(empty):
    """The archive's programs in a root of their own."""
    file = made(f"basalt-*-linux-{PROCESSOR}.tar.gz", f"packages/dist/build.sh {PROCESSOR} makes it")
    yield file
    run("tar", "--extract", "--strip-components=1", "--file", file, "--directory", empty)
    add_urandom(empty)
    yield
    programs = ["chroot", str(empty), "/bin/basalt"], ["chroot", str(empty), "/bin/basalt-shell"]
    first_row([*programs[0], "serve", "--data-dir", "/data"], programs[1], {"PATH": os.environ["PATH"]})


def image(empty):
    """The image's root, user and variables, as a container engine uses them."""
    file = made(f"image/{ARCHITECTURE}.tar", "packages/image/build.sh makes it")
    yield file
    run("tar", "--extract", "--same-owner", "--file", file, "--directory", empty)
    add_urandom(empty)
    yield
    recipe = (HERE / "image" / "Dockerfile").read_text()
    variables = dict(re.findall(r"^(?:ENV|   ) (\w+)=(\S+)", recipe, re.MULTILINE))
    user = re.search(r"^USER (\S+)", recipe, re.MULTILINE).group(1)
    inside = [shutil.which("chroot"), f"--userspec={user}", str(empty)]
    first_row([*inside, "/usr/bin/basalt", "serve"], [*inside, "/usr/bin/basalt-shell"], variables)


def wheel(empty):
    """`pip install` of both wheels; the client is HappyBase, on which pytest-basalt depends."""
    remedy = "packages/python/build.sh makes it"
    file = made(f"wheels/basalt_server-*{PROCESSOR}.whl", remedy)
    fixtures = made("wheels/pytest_basalt-*.whl", remedy)
    yield file
    run(sys.executable, "-m", "venv", empty / "venv")
    python = empty / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-cache-dir", file, fixtures)
    yield
    run(python, HERE / "python" / "first_put.py", cwd=empty, env={"PATH": os.environ["PATH"]})


def debian():
    """The root of a Debian with nothing optional."""
    if not (DEBIAN / "etc" / "debian_version").exists():
        if not shutil.which("debootstrap"):
            raise Missing("debootstrap is not installed (Debian: debootstrap)")
        unfinished = DEBIAN.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        DEBIAN.parent.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", "stable", unfinished)
        run("/usr/sbin/chroot", unfinished, "apt-get", "update")
        unfinished.rename(DEBIAN)
    return DEBIAN


def deb(empty):
    """`apt install` of the package; the server is the unit's command line as the unit's user."""
    file = made(f"basalt_*_{ARCHITECTURE}.deb", f"packages/deb/build.sh {PROCESSOR} makes it")
    run("cp", "--archive", f"{debian()}/.", empty)
    shutil.copy(file, empty)
    yield file
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", f"/{file.name}"]
    run("/usr/sbin/chroot", empty, *install, env=environment)
    yield
    unit = (empty / "lib/systemd/system/basalt.service").read_text()
    command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE).group(1).split()
    inside = ["/usr/sbin/chroot", "--userspec=basalt:basalt", str(empty)]
    first_row([*inside, *command], [*inside, "/usr/bin/basalt-shell"], environment)


PACKAGES = {"archive": archive, "image": image, "wheel": wheel, "deb": deb}


def timed(package):
    """A row of the table."""
    # A folder for temporary files is private; the users of image and package must get through.
    with tempfile.TemporaryDirectory() as below:
        os.chmod(below, 0o755)
        empty = Path(below) / "empty"
        empty.mkdir()
        steps = package(empty)
        file = next(steps)
        times = [time.monotonic()]
        next(steps)
        times.append(time.monotonic())
        assert next(steps, "done") == "done"
        times.append(time.monotonic())
    install, row = (round((end - begin) * 1000) for begin, end in zip(times, times[1:]))
    return f"| {package.__name__} | {file.stat().st_size / 1e6:.1f} MB | {install} ms | {row} ms | {install + row} ms |"


def main(names):
    """Prints a row for each package; ends with 1 if one is missing."""
    print("| package | size | installed in | first put and get after | together |\n|---|---|---|---|---|")
    missing = []
    for name in names or PACKAGES:
        try:
            print(timed(PACKAGES[name]), flush=True)
        except Missing as error:
            missing.append(f"{name}: {error}")
    if missing:
        sys.exit("\n".join(missing))


if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - set(PACKAGES):
        sys.exit(f"no package {', '.join(unknown)}: there are {', '.join(PACKAGES)}")
    main(sys.argv[1:])

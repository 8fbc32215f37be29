"""A server that a test owns: started empty on free ports, removed with its data when it stops.

Life of a `Server`: `start()` runs `basalt serve --ephemeral` and returns once the server has printed its line
of JSON, which comes when it accepts calls. `reset()` empties it. `stop()` ends it and waits for its exit.
The log goes to a temporary file, because an unread pipe would block the server.
"""

import json
import os
import selectors
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from basalt_server._program import BasaltError, program

# Longest wait for the server's first line and for its exit, in seconds.
START_TIMEOUT = 60.0
STOP_TIMEOUT = 60.0

# Requests to the server's HTTP port must not pass through a proxy of the environment.
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Security:
    """How clients log in at a server that was started with `secure=True`. All are paths but the user's name."""

    user: str
    """The superuser."""
    ca: str
    """Certificate of the authority, for clients to trust."""
    certificate: str
    """Certificate and key of the user, as PEM."""
    token: str
    """Token as a file of Hadoop, for HADOOP_TOKEN_FILE_LOCATION of Java clients."""
    token_text: str
    """The same token as text: a password, or what follows `Authorization: Bearer`."""

    def bearer(self) -> str:
        """The header `Authorization` of HTTP requests."""
        return f"Bearer {Path(self.token_text).read_text().strip()}"

    def ssl_context(self) -> ssl.SSLContext:
        """For clients that encrypt, and log in with the certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.certificate)
        return context


class Server:
    """A running ephemeral server. Use `start()` to get one, `with` or `stop()` to end it."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: IO[bytes]):
        self._process = process
        self._log = log
        line = self._first_line()
        self.host, self.port = _address(line["listen"])
        self.http: str = line["http"]
        self.data_dir: str = line["data_dir"]
        self.pid: int = line["pid"]
        security = line.get("security")
        self.security: Optional[Security] = Security(**security) if security else None

    def reset(self) -> None:
        """Drops all user tables and namespaces, clears faults, and sets a moved clock back. With
        `post("/test/reset", {"keep_clock": True})` the clock stays."""
        self.post("/test/reset")

    def faults(self, *faults: Mapping[str, object]) -> List[Dict[str, object]]:
        """Lets the next calls of data methods meet these faults instead of the present ones; without arguments,
        clears them. A fault is like `{"method": "Get", "fault": "region_too_busy", "calls": 3}`; the server's
        documentation has the methods and faults. Returns what is armed."""
        return json.loads(self.post("/test/faults", {"faults": list(faults)}))["faults"]

    def faults_left(self) -> List[Dict[str, object]]:
        """The faults that are still armed, each with the calls that are left."""
        return json.loads(self._send("/test/faults", None))["faults"]

    def post(self, path: str, body: Optional[Mapping[str, object]] = None) -> bytes:
        """Posts JSON to the server's HTTP port and returns the answer."""
        return self._send(path, json.dumps(body or {}).encode())

    def _send(self, path: str, data: Optional[bytes]) -> bytes:
        """Posts the data, or else gets the path."""
        url = f"{self._url()}{path}"
        headers = {"Content-Type": "application/json"}
        if self.security:
            headers["Authorization"] = self.security.bearer()
        request = urllib.request.Request(url, data, headers)
        try:
            with _HTTP.open(request, timeout=START_TIMEOUT) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            reason = error.read().decode(errors="replace").strip()
            raise BasaltError(f"{url}: {error.code} {error.reason}: {reason}") from error
        except OSError as error:
            raise BasaltError(f"{url}: {error}\n{self.log()}") from error

    def log(self) -> str:
        """What the server has logged so far."""
        return Path(self._log.name).read_text(errors="replace")

    def stop(self) -> None:
        """Ends the server and waits until it is gone. Does nothing when called again."""
        if self._log.closed:
            return
        self._process.terminate()
        try:
            status = self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        log = self.log()
        self._close()
        if status != 0:
            raise BasaltError(f"the server ended with status {status}:\n{log}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _url(self) -> str:
        return self.http.rstrip("/") if "://" in self.http else f"http://{self.http}"

    def _first_line(self) -> Mapping[str, object]:
        """The line of JSON that the server prints when it accepts calls."""
        line = _read_line(self._process.stdout, time.monotonic() + START_TIMEOUT)
        try:
            return json.loads(line)
        except ValueError:
            self._process.kill()
            status = self._process.wait()
            log = self.log()
            self._close()
            raise BasaltError(f"the server did not start (status {status}):\n{line}{log}") from None

    def _close(self) -> None:
        self._process.stdout.close()
        self._log.close()


def start(
    settings: Union[Mapping[str, object], Iterable[str]] = (),
    executable: Optional[str] = None,
    secure: bool = False,
) -> Server:
    """Starts an empty server on free ports. `settings` are settings of `basalt serve --set`, as a dictionary
    or as `KEY=VALUE`; `executable` is the program to run instead of the installed one. A `secure` server has
    a certificate, and its users must log in: `Server.security` says how."""
    pairs = settings.items() if isinstance(settings, Mapping) else (text.split("=", 1) for text in settings)
    command = [str(executable or program()), "serve", "--ephemeral"] + ["--secure"] * secure
    for key, value in pairs:
        command += ["--set", f"{key}={_toml(value)}"]
    log = tempfile.NamedTemporaryFile(prefix="basalt-", suffix=".log")
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
        )
    except OSError as error:
        log.close()
        raise BasaltError(f"{command[0]} does not run here: {error}") from error
    return Server(process, log)


def _toml(value: object) -> str:
    """A setting's value on the command line: TOML spells true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _address(text: str) -> Tuple[str, int]:
    """Splits `127.0.0.1:9090` and `[::1]:9090`."""
    host, port = text.rsplit(":", 1)
    return host.strip("[]"), int(port)


def _read_line(stream: IO[bytes], deadline: float) -> str:
    """The stream's first line, or less of it at the stream's end or at the deadline."""
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not line.endswith(b"\n") and selector.select(max(0.0, deadline - time.monotonic())):
            arrived = os.read(stream.fileno(), 4096)
            if not arrived:
                break
            line += arrived
    return line.decode(errors="replace")

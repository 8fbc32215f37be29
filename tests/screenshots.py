#!/usr/bin/env python3
"""Takes the pictures of docs/pages.md: each page of the HTTP port, light, dark, and 400 pixels wide.

    cargo build --release -p basalt -p basalt-bench -p basalt-shell
    tests/screenshots.py [--programs target/release] [--out docs/pictures] [--only NAME,...] [--assets FOLDER]

1. Starts a server in a temporary folder, and a second one that rehearses a cluster.
2. Fills both for two minutes with basalt-bench and basalt-shell: sequential and salted keys, a hot row, scans that
   read much and return little, deleted rows; a light load goes on while the pictures are taken.
3. Takes the pictures in a headless Chromium, and checks each page: no error in the console, no wider than its window,
   a contrast of at least 4.5 to 1. A page that fails is named, and the exit code is 1.

Pictures go to `pages/NAME-LOOK.png` and `incident-*.png` below the folder. With pngquant they have a palette, which
makes them a third of the size. `--assets server/src/console/assets` shows style sheet and scripts as they are in the
tree, without a build. Needs Chromium.
"""

import argparse
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Color scheme, width, height of the window, and the largest height of a picture.
LOOKS = {
    "light": ("light", 1280, 900, 1400),
    "dark": ("dark", 1280, 900, 1400),
    "narrow": ("light", 400, 800, 1600),
    "narrow-dark": ("dark", 400, 800, 1600),
}
# No picture of these: they are only checked.
CHECKED_ONLY = ("narrow-dark",)
# The hot row, and a filter that few rows of table orders pass.
HOT_ROW = "7-total"
FILTER = "SingleColumnValueFilter('f', 'state', =, 'binary:open', true, true)"

# Texts with a contrast of less than 4.5 to 1, or 3 to 1 where they are large, as WCAG 2.2 asks for.
LOW_CONTRAST = """(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => channels(color).slice(0, 3).map((value) => value / 255)
    .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (channels(color)[3] !== 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = new Set();
  for (const element of document.querySelectorAll('body *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || element.closest('svg, script, .skip') || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const [high, low] = [luminance(style.color), luminance(ground(element))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) {
      found.add(`${element.tagName.toLowerCase()} "${element.textContent.trim().slice(0, 40)}": ${ratio.toFixed(1)}`);
    }
  }
  return [...found];
})()"""

# Names of this machine, which are not to be seen: RENAMED is filled with a list of [name, text in its place].
RENAME = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const [name, text] of RENAMED) {
      if (walker.currentNode.data.includes(name)) walker.currentNode.data = walker.currentNode.data.replace(name, text);
    }
  }
})()"""


class Chromium:
    """A headless browser with one page, driven by the DevTools protocol through its pipe (descriptors 3 and 4)."""

    def __init__(self, program, profile, assets):
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"]
        options += ["--disable-background-networking", "--remote-debugging-pipe", "--hide-scrollbars"]
        pipes = ["sh", "-c", 'exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null', "sh"]
        command = [*pipes, program, *options, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.assets, self.session, self.last_id, self.events = assets, None, 0, []
        self.renamed = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        if assets:
            self.call("Fetch.enable", patterns=[{"urlPattern": "*/assets/*"}])

    def send(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        return self.last_id

    def receive(self):
        """The next message; requests of assets are answered from the folder."""
        data = bytearray()
        while (byte := self.process.stdout.read(1)) != b"\0":
            if not byte:
                sys.exit("the browser has ended")
            data += byte
        message = json.loads(data)
        if message.get("method") == "Fetch.requestPaused":
            self.answer_asset(message["params"])
        return message

    def answer_asset(self, paused):
        file = self.assets / paused["request"]["url"].rsplit("/", 1)[1]
        kinds = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
        headers = [{"name": "Content-Type", "value": kinds[file.suffix]}]
        body = base64.b64encode(file.read_bytes()).decode()
        answer = {"requestId": paused["requestId"], "responseCode": 200, "responseHeaders": headers, "body": body}
        self.send("Fetch.fulfillRequest", **answer)

    def call(self, method, **params):
        number = self.send(method, **params)
        while (message := self.receive()).get("id") != number:
            self.events.append(message)
        if "error" in message:
            sys.exit(f"{method}: {message['error']}")
        return message["result"]

    def open(self, address):
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_until(self, expression):
        look = f"const look = () => ({expression}) ? done(true) : setTimeout(look, 50); look();"
        self.evaluate(f"new Promise((done) => {{ {look} }})")

    def look(self, scheme, width, height):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def picture(self, file, width, height):
        self.evaluate(RENAME.replace("RENAMED", json.dumps(self.renamed)))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))
        if shutil.which("pngquant"):
            palette = ["pngquant", "--force", "--ext", ".png", "--speed", "1", "--nofs", "128", "--", str(file)]
            subprocess.run(palette, check=True)

    def errors(self):
        errors = [event for event in self.events if event.get("method") == "Runtime.exceptionThrown"]
        logged = [event for event in self.events if event.get("method") == "Log.entryAdded"]
        errors += [event for event in logged if event["params"]["entry"]["level"] == "error"]
        return [json.dumps(event["params"])[:300] for event in errors]

    def close(self):
        self.process.kill()
        self.process.wait()


class Server:
    """A server in a folder, on free ports; ended by SIGTERM."""

    def __init__(self, programs, folder, settings):
        self.programs = programs
        command = [programs / "basalt", "serve", "--data-dir", folder, "--listen", "127.0.0.1:0"]
        command += ["--http-listen", "127.0.0.1:0"]
        for setting in settings:
            command += ["--set", setting]
        self.log = open(f"{folder}.log", "w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        self.listen, self.origin = self.addresses()

    def addresses(self):
        """The address for clients and that of the pages, from the line that says where the server listens."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"clients on (\S+) and HTTP on (\S+)/", Path(self.log.name).read_text())
            if found:
                return found.groups()
            time.sleep(0.05)
        sys.exit(f"the server does not start:\n{Path(self.log.name).read_text()}")

    def bench(self, *arguments):
        """Starts the load generator."""
        command = [self.programs / "basalt-bench", arguments[0], "--target", self.listen, *arguments[1:]]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def start_shell(self, script):
        """Starts the shell with a script."""
        command = [self.programs / "basalt-shell", "--target", self.listen, "-n", script]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def shell(self, *lines):
        """Runs lines of the shell."""
        command = [self.programs / "basalt-shell", "--target", self.listen, "-n", "-"]
        done = subprocess.run(command, input="\n".join(lines), text=True, capture_output=True)
        if done.returncode:
            sys.exit(f"the shell: {done.stdout[-2000:]}{done.stderr}")

    def close(self):
        self.process.terminate()
        self.process.wait()


def finish(*loads):
    for load in loads:
        _, errors = load.communicate()
        if load.returncode:
            sys.exit(f"basalt-bench: {errors.decode()}")


def orders(numbers):
    """Lines of the shell: orders, each 50th of which stays open, and a total that each of them changes. Now and then
    they look for open orders."""
    for number in numbers:
        if number % 3000 == 2999:
            yield f"""scan 'orders', FILTER => "{FILTER}", LIMIT => 1000"""
        state = "open" if number % 50 == 0 else "done"
        yield f"put 'orders', '{number % 16:x}-order-{number:06}', 'f:state', '{state}'"
        yield f"incr 'orders', '{HOT_ROW}', 'f:n', 1"


def fill(server, out, seconds):
    """The load of the pages. Returns the loads that go on."""
    splits = ", ".join(f"'{digit:x}'" for digit in range(1, 16))
    server.shell(f"create 'orders', 'f', SPLITS => [{splits}]", "create 'queue', 'f'")
    # YCSB's keys follow Zipf's law: few rows take most reads.
    load = ("ycsb", "b", "--presplit", "8", "--records", "20000", "--threads", "4", "--out", out / "ycsb")
    finish(server.bench(*load, "--phase", "load"))
    steady = server.bench(*load, "--phase", "run", "--rate", "500", "--duration", "900")
    queue = [f"put 'queue', 'job-{number:06}', 'f:q', '{'x' * 40}'" for number in range(4_000)]
    queue += [f"deleteall 'queue', 'job-{number:06}'" for number in range(3_500)]
    server.shell(*queue, "flush 'queue'", "scan 'queue', LIMIT => 5")
    designs = ("hotspot", "--designs", "sequential,salted", "--keep-tables", "--table-prefix", "flights_")
    rates = ("--rows", "10000000", "--rate", "2000", "--duration", str(seconds // 2), "--point-reads", "2000")
    flights = server.bench(*designs, *rates, "--out", out / "hotspot")
    server.shell(*orders(range(30_000)), "flush 'orders'")
    finish(flights)
    server.shell("flush 'flights_sequential'", "flush 'flights_salted'", "flush 'usertable'")
    server.shell("major_compact 'orders'", "compact 'usertable'")
    script = out / "orders"
    script.write_text("\n".join(orders(range(30_000, 400_000))))
    return steady, server.start_shell(script)


def first_link(browser, origin, address, part):
    """The first link of a page whose address has this part."""
    browser.open(f"{origin}{address}")
    links = browser.evaluate("[...document.querySelectorAll('main a')].map((link) => link.getAttribute('href'))")
    return next(link for link in links if part in link)


def pages(browser, server, rehearsal):
    """Names and addresses."""
    region = first_link(browser, server.origin, "/tables/flights_salted?sort=size", "/regions/")
    file = first_link(browser, server.origin, region, "/files/")
    own = {
        "overview": "/",
        "tables": "/tables",
        "table": "/tables/orders",
        "rows": "/tables/orders/rows?rows=10",
        "findings": "/findings",
        "region": region,
        "file": file,
        "cache": "/cache",
        "jobs": "/jobs",
        "slow": "/slow",
        "settings": "/settings",
        "threads": "/threads",
        "heat": "/heat?from=-900000",
        "heat-sequential": "/heat?table=flights_sequential&from=-900000&axis=keys",
        "heat-salted": "/heat?table=flights_salted&from=-900000",
    }
    return {name: f"{server.origin}{address}" for name, address in own.items()} | {"rehearsal": f"{rehearsal.origin}/"}


def flaws(browser):
    """What is wrong with the page that is open."""
    found = []
    # The main part scrolls by itself, so the document does not say that it is too wide.
    for part in ("documentElement", "querySelector('main')"):
        wide = browser.evaluate(f"document.{part}.scrollWidth - document.{part}.clientWidth")
        found += [f"{wide} pixels wider than its window"] if wide > 0 else []
    found += [f"low contrast: {text}" for text in browser.evaluate(LOW_CONTRAST)]
    return found + browser.errors()


def take(browser, wanted, out):
    """Takes all pictures, and returns the flaws."""
    found = []
    for look, (scheme, width, height, height_max) in LOOKS.items():
        browser.look(scheme, width, height)
        for name, address in wanted.items():
            browser.open(address)
            if "/heat" in address:
                browser.wait_until("document.getElementById('heat').dataset.loaded === 'true'")
            found += [f"{name}-{look}: {flaw}" for flaw in flaws(browser)]
            if look not in CHECKED_ONLY:
                tall = browser.evaluate("document.documentElement.scrollHeight")
                browser.picture(out / f"{name}-{look}.png", width, min(tall, height_max))
    return found


def take_incident(browser, origin, out):
    """The answers to the questions of an incident (docs/observing.md)."""
    browser.look("light", 1280, 900)
    for name, address in {"overview": "/", "hot-rows": "/tables/orders", "slow": "/slow"}.items():
        browser.open(f"{origin}{address}")
        browser.picture(out / f"incident-{name}.png", 1280, 1000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", help="folder of the programs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/pictures", help="folder for the pictures")
    parser.add_argument("--only", help="names of pages, with commas")
    parser.add_argument("--assets", type=Path, help="folder of the style sheet and scripts to show")
    parser.add_argument("--seconds", type=int, default=120, help="length of the load before the pictures")
    arguments = parser.parse_args()
    program = next((name for name in BROWSERS if shutil.which(name)), None)
    if program is None:
        print("not run: none of", ", ".join(BROWSERS), "is installed")
        return 77
    (arguments.out / "pages").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        settings = ["http.profiles=true", "slow_log.threshold_ms=10", "wal.sync=os"]
        server = Server(arguments.programs, folder / "basalt", settings)
        stack.callback(server.close)
        settings = ["rehearsal.servers=4", "rehearsal.requests_per_second=2000"]
        rehearsal = Server(arguments.programs, folder / "rehearsal", settings)
        stack.callback(rehearsal.close)
        for load in fill(server, folder, arguments.seconds):
            stack.callback(load.kill)
        sequential = ("hotspot", "--designs", "sequential", "--rows", "10000000", "--duration", "600")
        held_back = rehearsal.bench(*sequential, "--out", folder / "rehearsed")
        stack.callback(held_back.kill)
        time.sleep(20)
        browser = Chromium(program, folder / "profile", arguments.assets)
        stack.callback(browser.close)
        browser.renamed = [[name, "/var/lib"], [f"{os.uname().nodename}, process", "db1, process"]]
        wanted = pages(browser, server, rehearsal)
        if arguments.only:
            wanted = {name: wanted[name] for name in arguments.only.split(",")}
        else:
            take_incident(browser, server.origin, arguments.out)
        found = take(browser, wanted, arguments.out / "pages")
    size = sum(file.stat().st_size for file in (arguments.out / "pages").glob("*.png"))
    print(f"{len(wanted)} pages, {size / 1e6:.1f} MB of pictures")
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())

#!/usr/bin/env python3
"""Counts the public items of basalt-engine, and fails if there are too many or one has no documentation.

    tests/public_items.py [--features server,internals,sim] [--list] [--max 200]

The count is of what rustdoc sees: modules, structs, enums, traits, functions, constants and type
aliases that can be named from outside, their inherent methods and constants, and the items of
traits. Fields, variants, re-exports of an item that is counted already, and implementations of
traits are not counted. A re-export from basalt-types, the words that engine, server and client share, counts as
one item; that crate has its own documentation, which the compiler demands.

rustdoc's JSON is unstable, so the script lets the stable compiler write it (RUSTC_BOOTSTRAP=1).
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# `crate_id` of items of the documented crate.
OWN = 0


def document(features):
    """Writes rustdoc's JSON and returns it."""
    command = ["cargo", "rustdoc", "--locked", "--quiet", "-p", "basalt-engine", "--lib"]
    if features:
        command += ["--features", features]
    command += ["--", "-Z", "unstable-options", "--output-format", "json",]
    environment = dict(os.environ, RUSTC_BOOTSTRAP="1")
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return json.loads((target / "doc" / "basalt_engine.json").read_text())


class Counter:
    def __init__(self, crate):
        self.index = crate["index"]
        self.seen = set()
        self.items = []

    def get(self, number):
        return self.index.get(str(number))

    def add(self, item, kind, path):
        self.items.append((kind, path, bool(item["docs"])))

    def visit(self, number, path):
        item = self.get(number)
        if item is None or item["crate_id"] != OWN:
            return
        (kind, inner), = item["inner"].items()
        if kind == "use":
            target = inner["id"]
            if inner["is_glob"]:
                for child in self.get(target)["inner"]["module"]["items"]:
                    self.visit(child, path)
            elif self.get(target) is not None and self.get(target)["crate_id"] == OWN:
                self.visit(target, path)
            elif not inner["is_glob"]:
                self.items.append(("re-export", "::".join([*path, inner["name"]]), True))
            return
        if number in self.seen:
            return
        self.seen.add(number)
        name = path + [item["name"]]
        shown = "::".join(name)
        self.add(item, kind, shown)
        if kind == "module":
            for child in inner["items"]:
                self.visit(child, name)
        elif kind in ("struct", "enum", "union"):
            for block in map(self.get, inner["impls"]):
                if block is not None and block["inner"]["impl"]["trait"] is None:
                    self.members(block["inner"]["impl"]["items"], shown, only_public=True)
        elif kind == "trait":
            self.members(inner["items"], shown, only_public=False)

    def members(self, numbers, path, only_public):
        for item in map(self.get, numbers):
            if item is not None and (not only_public or item["visibility"] == "public"):
                self.add(item, "member", f"{path}::{item['name']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", default="")
    parser.add_argument("--list", action="store_true", help="print every item")
    parser.add_argument("--max", type=int, default=200)
    arguments = parser.parse_args()
    crate = document(arguments.features)
    counter = Counter(crate)
    for number in counter.get(crate["root"])["inner"]["module"]["items"]:
        counter.visit(number, [])
    if arguments.list:
        for kind, path, _ in sorted(counter.items, key=lambda item: item[1]):
            print(f"{kind:10} {path}")
    kinds = collections.Counter(kind for kind, _, _ in counter.items)
    print(f"{len(counter.items)} public items:", ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    undocumented = [path for _, path, documented in counter.items if not documented]
    for path in undocumented:
        print(f"{path} has no documentation")
    if not counter.items:
        print("rustdoc's JSON has no items: its format has changed")
    if len(counter.items) > arguments.max:
        print(f"more than {arguments.max}")
    sys.exit(bool(undocumented) or not 0 < len(counter.items) <= arguments.max)


if __name__ == "__main__":
    main()

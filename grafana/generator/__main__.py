#!/usr/bin/env python3
"""Writes the Grafana dashboards: one JSON file for each module that is listed in BOARDS.

    python3 grafana/generator              write them into grafana/dashboards
    python3 grafana/generator --out DIR    write them into DIR

Needs Python 3 and nothing else. The JSON is committed, so nobody who only uses the dashboards runs this. A test
(tests/e2e/tests/dashboard/) fails when the committed files are not what this writes, when a query names a metric or a label that
the server does not have or has no result under load, and when a metric is on no dashboard without a reason.

  queries.py   words that PromQL is made of
  panels.py    kinds of panels
  board.py     what is around the panels: variables, links, alerts, places on the page
  the others   one dashboard each: a list of rows of panels
"""

import argparse
import json
import pathlib

import cache
import clients
import engine
import overview
import regions
from board import dashboard

BOARDS = [overview, regions, engine, cache, clients]


def main():
    parser = argparse.ArgumentParser(prog="generator", description="Writes the Grafana dashboards.")
    committed = pathlib.Path(__file__).resolve().parent.parent / "dashboards"
    parser.add_argument("--out", type=pathlib.Path, default=committed, help="the folder, which must be there")
    out = parser.parse_args().out
    for board in BOARDS:
        text = json.dumps(dashboard(board), indent=2) + "\n"
        (out / f"{board.__name__}.json").write_text(text)


if __name__ == "__main__":
    main()

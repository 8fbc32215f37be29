"""Compares an unpacked archive's licence texts with its SBOMs: every crate of an SBOM must have a licence text."""

import json
import re
import sys
from pathlib import Path


def components(sbom):
    """Name and version of the crates from a registry that an SBOM lists."""
    for component in json.loads(sbom.read_text())["components"]:
        if component["purl"].startswith("pkg:cargo/") and "download_url=file" not in component["purl"]:
            yield component["name"], component["version"]


def main(archive):
    """Prints the crates without a licence text and fails if there are any."""
    texts = (archive / "THIRD-PARTY-LICENSES.txt").read_text()
    licensed = set(re.findall(r"^  (\S+) (\S+)", texts, re.MULTILINE))
    listed = {crate for sbom in archive.glob("sbom/*.cdx.json") for crate in components(sbom)}
    missing = sorted(listed - licensed)
    if not listed or missing:
        sys.exit(f"FAILED: of {len(listed)} crates in the SBOMs these have no licence text: {missing}")
    print(f"{archive.name}: licence texts of all {len(listed)} crates")


main(Path(sys.argv[1]))

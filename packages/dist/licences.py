"""Compares an unpacked archive's licence texts and SBOMs with the crates in the programs according to cargo.

`cargo tree` is the reference: SBOMs may list more, such as crates of features that only tests switch on.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def contained(processor):
    """Name and version of the crates of a registry that the programs contain."""
    packages = [word for name in ["basalt", "basalt-shell", "basalt-bench"] for word in ["--package", name]]
    target = ["--target", f"{processor}-unknown-linux-musl"]
    command = ["cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}", *packages, *target]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    # A crate of the workspace has its path behind its version.
    return {tuple(line.split(" v", 1)) for line in lines if re.fullmatch(r"\S+ v[^ ()]+", line)}


def main(archive):
    """Fails with the crates that have no licence text or are in no SBOM."""
    processor = archive.name.rsplit("-", 1)[1]
    texts = (archive / "THIRD-PARTY-LICENSES.txt").read_text()
    licensed = set(re.findall(r"^  (\S+) (\S+)", texts, re.MULTILINE))
    sboms = [json.loads(path.read_text()) for path in archive.glob("sbom/*.cdx.json")]
    listed = {(component["name"], component["version"]) for sbom in sboms for component in sbom["components"]}
    crates = contained(processor)
    for kind, found in [("licence text", licensed), ("entry in an SBOM", listed)]:
        if missing := sorted(crates - found):
            sys.exit(f"FAILED: of {len(crates)} crates these have no {kind}: {missing}")
    print(f"{archive.name}: licence texts and SBOM entries of all {len(crates)} crates")


main(Path(sys.argv[1]))

"""Checks that the files which a compose file mounts are in the repository: check_compose.py FILE."""

import re
import sys
from pathlib import Path

compose = Path(sys.argv[1])
mounts = re.findall(r"^\s+- (\.\S*?):/", compose.read_text(), re.MULTILINE)
missing = [mount for mount in mounts if not (compose.parent / mount).exists()]
assert len(mounts) >= 5, mounts
assert not missing, f"{compose} mounts what is not there: {missing}"

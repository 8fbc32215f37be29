"""What the figures of these scripts are of."""

import platform
import re
from pathlib import Path


def machine():
    """The number of processors and their model, as far as the system tells."""
    model = platform.processor() or platform.machine()
    try:
        cpus = Path("/proc/cpuinfo").read_text()
        model = re.search(r"model name\s*:\s*(.*)", cpus).group(1)
        count = len(re.findall(r"^processor\s*:", cpus, re.M))
        return f"{count} x {model}"
    except (OSError, AttributeError):
        return model

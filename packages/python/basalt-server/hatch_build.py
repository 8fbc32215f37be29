"""Adds the program that BASALT_BINARY names to the wheel and gives the wheel its platform tag.

The tag follows the program: a static one runs on every Linux of its processor, so its wheel is tagged for
manylinux and musllinux. A dynamically linked program gets the tag `linux_<processor>`, which package indexes
refuse and which pip installs on a machine like the one that built it.
"""

import os
import struct
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# e_machine in the ELF header, and the processor's name in wheel tags.
PROCESSORS = {62: "x86_64", 183: "aarch64"}

PT_INTERP = 3


def platform_tag(program):
    """The wheel's platform tag for an ELF program; raises ValueError for any other file."""
    data = Path(program).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{program} is not a 64-bit little-endian ELF program")
    (machine,) = struct.unpack_from("<H", data, 18)
    processor = PROCESSORS.get(machine)
    if processor is None:
        raise ValueError(f"{program} is for ELF machine {machine}; known are {PROCESSORS}")
    if is_static(data):
        return f"manylinux_2_17_{processor}.manylinux2014_{processor}.musllinux_1_1_{processor}"
    return f"linux_{processor}"


def is_static(data):
    """Whether the program has no segment that names a dynamic loader."""
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    kinds = [struct.unpack_from("<I", data, offset + size * i)[0] for i in range(count)]
    return PT_INTERP not in kinds


class CustomBuildHook(BuildHookInterface):
    """Called by hatchling once for each wheel."""

    def initialize(self, version, build_data):
        """Adds program and tag. An editable install has no program: BASALT_PROGRAM names one."""
        if version == "editable":
            return
        program = os.environ.get("BASALT_BINARY")
        if not program:
            raise RuntimeError(
                "BASALT_BINARY is not set: it names the program `basalt` to pack, for example target/dist/basalt. "
                "To install a ready wheel instead, use pip install --only-binary basalt-server basalt-server."
            )
        build_data["shared_scripts"][os.path.abspath(program)] = "basalt"
        build_data["tag"] = f"py3-none-{platform_tag(program)}"
        build_data["pure_python"] = False

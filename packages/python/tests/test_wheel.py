"""The wheel's platform tag follows the program, and a wrong program is refused."""

import importlib.util
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent / "basalt-server"


def hatch_build():
    spec = importlib.util.spec_from_file_location("hatch_build", PROJECT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elf(machine, segments):
    """The headers of an ELF program for this machine with segments of these kinds."""
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, len(segments)) + bytes(6)
    return header + b"".join(struct.pack("<I", kind) + bytes(52) for kind in segments)


@pytest.mark.parametrize(
    "machine, segments, tag",
    [
        (62, [1, 3], "linux_x86_64"),
        (183, [1, 3], "linux_aarch64"),
        (62, [1, 1], "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"),
        (183, [1], "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"),
    ],
)
def test_tag(tmp_path, machine, segments, tag):
    program = tmp_path / "basalt"
    program.write_bytes(elf(machine, segments))
    assert hatch_build().platform_tag(program) == tag


@pytest.mark.parametrize(
    "content, message", [(b"#!/bin/sh\n", "not a 64-bit"), (elf(8, [1]), "for ELF machine 8")]
)
def test_other_files_are_refused(tmp_path, content, message):
    program = tmp_path / "basalt"
    program.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        hatch_build().platform_tag(program)


def pip(*arguments, **environment):
    command = [sys.executable, "-m", "pip", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_build_without_a_program_says_what_to_set(tmp_path):
    code, text = pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, PROJECT, BASALT_BINARY="")
    assert code != 0
    assert "BASALT_BINARY is not set" in text


def test_pip_refuses_a_wheel_of_another_platform(tmp_path):
    program = tmp_path / "basalt"
    program.write_bytes(elf(183 if os.uname().machine != "aarch64" else 62, [1]))
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path]
    code, text = pip("wheel", *options, PROJECT, BASALT_BINARY=str(program))
    assert code == 0, text
    (wheel,) = tmp_path.glob("*.whl")
    code, text = pip("install", "--no-deps", wheel)
    assert code != 0
    assert "is not a supported wheel on this platform" in text

#!/usr/bin/env bash
# Tests the Python packages with the program of the first argument, in the environment target/packages/python:
# builds the wheels, installs them, and runs the packages' own tests and the sample, alone and under pytest-xdist.
set -euo pipefail
program=$(realpath "${1:?the program basalt}")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
made=$here/../../target/packages/python

need python3
mkdir -p "$made/wheels"
if ! [ -x "$made/venv/bin/python" ]; then
  python3 -m venv "$made/venv" || not_run "python3 cannot make an environment"
fi
pip() { "$made/venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install --requirement "$here/requirements.txt" || not_run "pip cannot install $here/requirements.txt"

# Debug information would make the wheel tenfold as large.
packed=$made/basalt
strip_debug "$program" "$packed"
rm -f "$made"/wheels/*
BASALT_BINARY=$packed pip wheel --no-deps --no-build-isolation --wheel-dir "$made/wheels" "$here/basalt-server"
pip wheel --no-deps --no-build-isolation --wheel-dir "$made/wheels" "$here/pytest-basalt"
ls -s --block-size=1024 "$made/wheels"

# build.sh packs the program that BASALT_BINARY names, and makes the same wheels.
PATH=$made/venv/bin:$PATH PIP_NO_BUILD_ISOLATION=0 BASALT_BINARY=$packed WHEELS=$made/built "$here/build.sh"
"$made/venv/bin/python" - "$packed" "$made"/built/basalt_server-*.whl <<'END' || fail "build.sh packs another program"
import sys, zipfile
program, (wheel,) = open(sys.argv[1], "rb").read(), sys.argv[2:]
files = zipfile.ZipFile(wheel)
packed = [files.read(name) for name in files.namelist() if name.endswith("scripts/basalt")]
sys.exit(packed != [program])
END

# From the wheels to the first put and get, in an empty directory.
unset BASALT_PROGRAM
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
start=$(date +%s%N)
pip install --force-reinstall --no-deps "$made"/wheels/*.whl
(cd "$empty" && "$made/venv/bin/python" "$here/first_put.py")
echo "from the wheels to the first put and get: $(ms_since "$start") ms"

pytest() { (cd "$1" && shift && "$made/venv/bin/python" -m pytest -q -p no:cacheprovider "$@"); }
start=$(date +%s%N)
pytest "$here/sample"
echo "start, five tests and stop, with Python: $(ms_since "$start") ms"
pytest "$here/sample" -n 2
pytest "$here/tests"

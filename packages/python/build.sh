#!/usr/bin/env bash
# Makes the wheels: packages/python/build.sh [PROCESSOR]...
#
# PROCESSOR is x86_64 or aarch64; without one, those whose program packages/dist/build.sh has built. With BASALT_BINARY=PROGRAM
# that program is packed, for this machine's processor or the one that is named. The wheels are in WHEELS, or in
# target/dist/wheels: basalt-server once for each processor, and pytest-basalt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dist=$(cd "$here/../.." && pwd)/target/dist
wheels=${WHEELS:-$dist/wheels}
processors=("$@")
if [ -n "${BASALT_BINARY:-}" ]; then
  [ -x "$BASALT_BINARY" ] || { echo "BASALT_BINARY: no program $BASALT_BINARY" >&2; exit 1; }
  given=$(realpath "$BASALT_BINARY")
  [ ${#processors[@]} -gt 0 ] || processors=("$(uname -m)")
  [ ${#processors[@]} = 1 ] || { echo "BASALT_BINARY is the program of one PROCESSOR, not of ${processors[*]}" >&2; exit 1; }
elif [ ${#processors[@]} = 0 ]; then
  for processor in x86_64 aarch64; do
    [ ! -x "$dist/$processor/basalt" ] || processors+=("$processor")
  done
fi
[ ${#processors[@]} -gt 0 ] || { echo "no programs in $dist: packages/dist/build.sh makes them" >&2; exit 1; }

wheel() { python3 -m pip --quiet --disable-pip-version-check wheel --no-deps --wheel-dir "$wheels" "$1"; }
rm -rf "$wheels"
for processor in "${processors[@]}"; do
  BASALT_BINARY=${given:-$dist/$processor/basalt} wheel "$here/basalt-server"
done
wheel "$here/pytest-basalt"
ls "$wheels"

#!/usr/bin/env bash
# Makes the wheels: packages/python/build.sh [PROCESSOR]...
#
# PROCESSOR is x86_64 or aarch64; without one, those whose program packages/dist/build.sh has built. The wheels are in
# target/dist/wheels: basalt-server once for each processor, and pytest-basalt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dist=$(cd "$here/../.." && pwd)/target/dist
processors=("$@")
if [ ${#processors[@]} = 0 ]; then
  for processor in x86_64 aarch64; do
    [ ! -x "$dist/$processor/basalt" ] || processors+=("$processor")
  done
fi
[ ${#processors[@]} -gt 0 ] || { echo "no programs in $dist: packages/dist/build.sh makes them" >&2; exit 1; }

wheel() { python3 -m pip --quiet --disable-pip-version-check wheel --no-deps --wheel-dir "$dist/wheels" "$1"; }
rm -rf "$dist/wheels"
for processor in "${processors[@]}"; do
  BASALT_BINARY=$dist/$processor/basalt wheel "$here/basalt-server"
done
wheel "$here/pytest-basalt"
ls "$dist/wheels"

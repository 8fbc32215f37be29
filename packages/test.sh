#!/usr/bin/env bash
# Tests one package: packages/test.sh NAME [PROGRAM]
#
# NAME is a folder beside this script, or `all`. PROGRAM is the `basalt` to pack and test; by default the one
# of target/dist for this processor, which packages/dist/build.sh makes. Exit status 77 means that this machine
# lacks a tool; the last line says which.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=${1:?usage: packages/test.sh NAME [PROGRAM]}
program=${2:-$here/../target/dist/$(uname -m)/basalt}
[ -x "$program" ] || { echo "no program $program: packages/dist/build.sh makes it"; exit 77; }
program=$(realpath "$program")

if [ "$name" != all ]; then
  exec "$here/$name/test.sh" "$program"
fi
failed=0
for script in "$here"/*/test.sh; do
  name=$(basename "$(dirname "$script")")
  printf '\n== %s\n' "$name"
  status=0
  "$script" "$program" || status=$?
  case $status in
    0) echo "$name: passed" ;;
    77) echo "$name: not run" ;;
    *) echo "$name: failed"; failed=1 ;;
  esac
done
exit $failed

#!/usr/bin/env bash
# Tests the image with the programs beside the first argument: builds it with buildah, checks its configuration, and runs
# its root file system by chroot as the image's user, read-only but for /data. Dynamically linked programs of a test
# build do not run in an image without libraries, so they are refused here.
#
# It happens in mount and network namespaces of the test's own. That needs root.
set -euo pipefail
program=$(realpath "${1:?the program basalt}")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
[ "$(id -u)" = 0 ] || not_run "only root can mount"
need buildah unshare chroot python3 readelf ip
! readelf --wide --program-headers "$program" | grep -q INTERP || not_run "$program is not static: packages/dist/build.sh makes static ones"
[ -x "$(dirname "$program")/basalt-shell" ] || not_run "no program $(dirname "$program")/basalt-shell"

work=$(mktemp -d)
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot CONTAINERS_STORAGE_CONF=$work/storage.conf
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work/graph" "$work/run" >"$work/storage.conf"
cleanup() { rm -rf "$work"; }
trap cleanup EXIT
mkdir -p "$work/programs/$(uname -m)"
cp "$program" "$(dirname "$program")/basalt-shell" "$work/programs/$(uname -m)"
BUILDER=buildah "$here/build.sh" basalt:test "$work/programs" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
buildah inspect --type image basalt:test >"$work/image.json"
container=$(buildah from --pull-never basalt:test)
root=$(buildah mount "$container")
echo "image: $(du -sh "$root" | cut -f1)"
unshare --mount --net python3 "$here/run_root.py" "$work/image.json" "$root"

# The compose file's own files are there, and its variables are settings.
python3 "$here/check_compose.py" "$here/compose.yml"
echo "image: built, configured, ran as its user, healthy, kept its data over a restart"

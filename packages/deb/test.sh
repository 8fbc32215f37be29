#!/usr/bin/env bash
# Tests the Debian package with the programs beside the first argument: installs, starts by the unit's command line,
# upgrades, removes and purges it.
#
# All that happens in a copy of this machine's root: an overlay in mount and network namespaces of the test's
# own, so that neither files nor ports of the machine are touched. That needs root and Debian.
set -euo pipefail
program=$(realpath "${1:?the program basalt}")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
[ "$(id -u)" = 0 ] || not_run "only root can mount"
need dpkg-deb lintian unshare chroot setpriv python3 systemd-analyze readelf
unshare --mount --net true 2>/dev/null || not_run "this machine allows no namespaces"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/programs"
for name in basalt basalt-shell; do
  [ -x "$(dirname "$program")/$name" ] || not_run "no program $(dirname "$program")/$name"
  strip -o "$work/programs/$name" "$(dirname "$program")/$name" 2>/dev/null || cp "$(dirname "$program")/$name" "$work/programs"
done
first=$("$here/build.sh" "$(uname -m)" "$work/programs" 0.0.1 | tail -1)
second=$("$here/build.sh" "$(uname -m)" "$work/programs" 0.0.2 | tail -1)
mv "$first" "$second" "$work"
# Errors and warnings fail; files/lintian-overrides has the exceptions, each with its reason.
lintian --allow-root --tag-display-limit 0 --fail-on error,warning "$work"/*_0.0.1_*.deb
for name in basalt basalt-shell; do
  page=$(dpkg-deb --fsys-tarfile "$work"/*_0.0.1_*.deb | tar -xO "./usr/share/man/man1/$name.1.gz" | gunzip)
  for heading in ENVIRONMENT FILES "EXIT STATUS" EXAMPLES; do
    grep -q "^\.SH \"\?$heading" <<<"$page" || fail "the man page $name(1) has no $heading"
  done
done

unshare --mount --net "$here/in_copy.sh" "$work" "$here"
echo "deb: installed, started, upgraded, removed, purged"

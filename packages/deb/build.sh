#!/usr/bin/env bash
# Makes a Debian package: packages/deb/build.sh [PROCESSOR [PROGRAMS [VERSION]]]
#
# PROCESSOR is x86_64 or aarch64, by default this machine's. PROGRAMS is the folder with basalt, basalt-shell and
# (if there) basalt-bench, by default target/dist/PROCESSOR. These, or for another processor those of
# target/dist for this machine, print completions, man pages and the example configuration.
# The last line on standard output is the package's file.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
root=$(cd "$here/../.." && pwd)
processor=${1:-$(uname -m)}
programs=${2:-$root/target/dist/$processor}
version=${3:-$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)}
case $processor in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) echo "no Debian architecture for $processor" >&2; exit 2 ;;
esac
native=$programs
[ "$processor" = "$(uname -m)" ] || native=$root/target/dist/$(uname -m)
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

# The address of those who make the package: it must be one that others can write to.
maintainer=${DEB_MAINTAINER:-The Basalt project <basalt-server@users.noreply.github.com>}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
put() { install -D -m "$1" "$2" "$tree/$3"; }

for program in basalt basalt-shell; do
  [ -e "$programs/$program" ] || fail "no program $programs/$program"
done
for program in basalt basalt-shell basalt-bench; do
  [ ! -e "$programs/$program" ] || put 755 "$programs/$program" "usr/bin/$program"
done
put 644 "$here/files/basalt.service" lib/systemd/system/basalt.service
put 644 "$here/files/basalt.toml" etc/basalt/basalt.toml

install -d "$tree/usr/share/doc/basalt/examples"
help_files "$native" "$tree/usr/share" zsh/vendor-completions
gzip -9n "$tree"/usr/share/man/man1/*
(cd / && env -i "$native/basalt" config print) >"$tree/usr/share/doc/basalt/examples/basalt.toml"
put 644 "$here/files/copyright" usr/share/doc/basalt/copyright
put 644 "$here/files/lintian-overrides" usr/share/lintian/overrides/basalt
gzip -9nc "$root/CHANGELOG.md" >"$tree/usr/share/doc/basalt/CHANGELOG.md.gz"
# Debian's form, which names the version and its time.
gzip -9nc >"$tree/usr/share/doc/basalt/changelog.gz" <<CHANGELOG
basalt ($version) unstable; urgency=medium

  * Version $version: CHANGELOG.md.gz has the changes.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
CHANGELOG
# Licences of what the programs contain, if packages/dist/build.sh has collected them.
licences=$root/target/dist/common/THIRD-PARTY-LICENSES.txt
[ ! -e "$licences" ] || gzip -9nc "$licences" >"$tree/usr/share/doc/basalt/third-party.txt.gz"

install -d "$tree/DEBIAN"
for script in postinst prerm postrm; do put 755 "$here/files/$script" "DEBIAN/$script"; done
echo /etc/basalt/basalt.toml >"$tree/DEBIAN/conffiles"
(cd "$tree" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
# Static programs need no library; those of a test build need the C library.
depends="adduser, init-system-helpers (>= 1.54)"
if readelf --wide --program-headers "$programs/basalt" 2>/dev/null | grep -q INTERP; then depends="libc6, libgcc-s1, $depends"; fi
cat >"$tree/DEBIAN/control" <<CONTROL
Package: basalt
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Section: database
Priority: optional
Depends: $depends
Installed-Size: $(du -sk --apparent-size "$tree" | cut -f1)
Description: single-node wide-column server for Apache HBase clients
 Basalt is one program that Apache HBase's clients talk to unmodified: the Java
 client and the HBase shell by the native protocol, HappyBase and other clients
 by Thrift. It keeps its data in HBase's file format.
 .
 This package has the server with its systemd unit, the shell basalt-shell and
 the load generator basalt-bench.
CONTROL

package=$root/target/dist/basalt_${version}_$architecture.deb
mkdir -p "$(dirname "$package")"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$package" >&2
echo "$package"

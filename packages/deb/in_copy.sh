#!/usr/bin/env bash
# The part of test.sh in namespaces of its own: in_copy.sh WORK HERE, with two versions of the package in WORK.
set -euo pipefail
work=$1
here=$2
fail() { echo "FAILED: $*" >&2; exit 1; }

mount --make-rprivate /
mkdir "$work/copy"
mount -t tmpfs tmpfs "$work/copy"
mkdir "$work"/copy/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/copy/upper,workdir=$work/copy/work" "$work/copy/root"
root=$work/copy/root
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
mount --rbind /dev "$root/dev"
cp "$work"/*.deb "$here/started.py" "$root/tmp"
package() { echo "/tmp/basalt_$1_$(dpkg --print-architecture).deb"; }
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
dpkg_run() { in_root dpkg --force-confold "$@" >"$work/log" 2>&1 || fail "dpkg $*: $(cat "$work/log")"; }
started() { in_root python3 /tmp/started.py "$@"; }

begin=$(date +%s%N)
in_root apt-get install --yes --quiet "$(package 0.0.1)" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
echo "installed in $((($(date +%s%N) - begin) / 1000000)) ms"
in_root getent passwd basalt >/dev/null || fail "no user basalt"
[ "$(in_root stat -c '%U:%G %a' /var/lib/basalt)" = "basalt:basalt 750" ] || fail "the data directory's owner"
in_root test -e /etc/systemd/system/multi-user.target.wants/basalt.service || fail "the unit is not enabled"
for program in basalt basalt-shell; do
  for file in "man/man1/$program.1.gz" "bash-completion/completions/$program" "zsh/vendor-completions/_$program" \
    "fish/vendor_completions.d/$program.fish"; do
    in_root test -s "/usr/share/$file" || fail "/usr/share/$file is missing"
  done
done
in_root test -s /usr/share/doc/basalt/copyright || fail "the licences are missing"
in_root basalt --version
in_root basalt config check --config /etc/basalt/basalt.toml >/dev/null || fail "the configuration is refused"

# Ignores the unit files of other packages.
verdict=$(in_root systemd-analyze verify /lib/systemd/system/basalt.service 2>&1 | grep -F basalt || true)
[ -z "$verdict" ] || fail "systemd-analyze verify: $verdict"
in_root systemd-analyze security --offline=true --threshold=20 /lib/systemd/system/basalt.service >"$work/log" || fail "$(cat "$work/log")"
tail -1 "$work/log"

# The unit's command line, with a notification socket as systemd has one.
started put
echo '# changed by an administrator' >>"$root/etc/basalt/basalt.toml"
dpkg_run --install "$(package 0.0.2)"
in_root dpkg-query --show basalt | grep -q "0\.0\.2$" || fail "no upgrade"
grep -q administrator "$root/etc/basalt/basalt.toml" || fail "the upgrade lost a change of the configuration"
started get

dpkg_run --remove basalt
in_root test ! -e /usr/bin/basalt || fail "the program is left after a removal"
in_root test -e /etc/basalt/basalt.toml || fail "a removal deleted the configuration"
dpkg_run --purge basalt
in_root test ! -e /etc/basalt/basalt.toml || fail "a purge left the configuration"
[ -n "$(ls -A "$root/var/lib/basalt")" ] || fail "a purge deleted data"

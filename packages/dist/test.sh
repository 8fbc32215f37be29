#!/usr/bin/env bash
# Tests the archives in target/dist: contents of each; the native one from nothing to the first put and get.
# The program of the first argument is not used: the archives have theirs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
dist=$here/../../target/dist

[ -f "$dist/SHA256SUMS" ] || not_run "there are no archives: packages/dist/build.sh makes them"
need readelf:binutils
work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

(cd "$dist" && sha256sum --check --quiet SHA256SUMS) || fail "checksums"

# Static, stripped, for this processor.
check_program() {
  local program=$1 machine=$2 headers
  headers=$(readelf --wide --file-header --program-headers --section-headers "$program")
  grep -q "Machine:.*$machine" <<<"$headers" || fail "$program is not for $machine"
  ! grep -q INTERP <<<"$headers" || fail "$program needs a dynamic loader"
  ! grep -q '\.debug_' <<<"$headers" || fail "$program has debug information"
  ! grep -q '\.symtab' <<<"$headers" || fail "$program is not stripped"
}

check_contents() {
  local dir=$1 machine=$2 program file
  for program in basalt basalt-shell basalt-bench; do
    check_program "$dir/bin/$program" "$machine"
    for file in "man/man1/$program.1" "bash-completion/completions/$program" "zsh/site-functions/_$program" \
      "fish/vendor_completions.d/$program.fish"; do
      [ -s "$dir/share/$file" ] || fail "$dir/share/$file is missing or empty"
    done
  done
  for file in README.md LICENSE CHANGELOG.md etc/basalt.toml share/man/man1/basalt-serve.1 \
    sbom/basalt.cdx.json sbom/basalt-shell.cdx.json sbom/basalt-bench.cdx.json THIRD-PARTY-LICENSES.txt; do
    [ -s "$dir/$file" ] || fail "$dir/$file is missing or empty"
  done
  python3 "$here/licences.py" "$dir"
}

for archive in "$dist"/basalt-*-linux-*.tar.gz; do
  name=$(basename "$archive" .tar.gz)
  tar -C "$work" -xzf "$archive"
  case $name in
    *-x86_64) check_contents "$work/$name" "X86-64" ;;
    *-aarch64) check_contents "$work/$name" "AArch64" ;;
    *) fail "an archive for an unknown processor: $name" ;;
  esac
  echo "$name: $(du -h "$archive" | cut -f1), basalt $(du -h "$work/$name/bin/basalt" | cut -f1)"
done

native=$(echo "$dist"/basalt-*-linux-"$(uname -m)".tar.gz)
[ -f "$native" ] || not_run "there is no archive for $(uname -m)"
mkdir "$work/empty"
cd "$work/empty"
# A program may start children, but needs nothing of the environment.
basalt() { env -i "$PWD/$(basename "$native" .tar.gz)/bin/$1" "${@:2}"; }

begin=$(date +%s%N)
tar -xzf "$native"
mkfifo first_line
env -i "$PWD/$(basename "$native" .tar.gz)/bin/basalt" serve --ephemeral >first_line 2>log &
server=$!
read -r line <first_line
listen=$(sed -n 's/.*"listen": *"\([^"]*\)".*/\1/p' <<<"$line")
answer=$(basalt basalt-shell --target "$listen" -e "create 't', 'f'" -e "put 't', 'row', 'f:q', 'first'" -e "get 't', 'row'")
end=$(date +%s%N)
grep -q "value=first" <<<"$answer" || fail "the get did not find the put: $answer"
echo "from the archive to the first put and get: $(((end - begin) / 1000000)) ms"

# Bad input gets a message that names it.
refused() {
  local expected=$1 output
  shift
  if output=$("$@" 2>&1); then fail "$* was accepted"; fi
  grep -q "$expected" <<<"$output" || fail "$* does not say $expected: $output"
}
program=$PWD/$(basename "$native" .tar.gz)/bin/basalt
refused "another process has it" env -i "$program" serve --data-dir other --listen "$listen" --http-listen 127.0.0.1:0

kill -TERM "$server"
wait "$server" || fail "a clean stop ended with status $?: $(cat log)"
server=

commit=$(git -C "$here" rev-parse --short=7 HEAD)
said=$(basalt basalt --version)
echo "$said"
grep -Eq "^basalt [0-9]+\.[0-9]+\.[0-9]+.*[0-9a-f]{7}" <<<"$said" || fail "--version names no commit: $said"
grep -q "$commit" <<<"$said" || echo "note: the archive was built from another commit than $commit"

# The example configuration is one that the server takes.
basalt basalt config check --config "$PWD/$(basename "$native" .tar.gz)/etc/basalt.toml" >/dev/null || fail "etc/basalt.toml is refused"

refused BASALT_TYPO env -i BASALT_TYPO=1 "$program" serve --ephemeral
refused "neither empty nor a Basalt database" env -i "$program" serve --data-dir /etc --thrift-listen 127.0.0.1:0 --http-listen 127.0.0.1:0

#!/usr/bin/env bash
# Tests the archives in target/dist: contents of each, and from nothing to the first put and get, in an emulator if need be.
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

# The programs of the archive that is unpacked here, with an empty environment: run PROGRAM [ARGUMENT]...
emulator=()
run() { env -i "${emulator[@]}" "$PWD/$name/bin/$1" "${@:2}"; }

# Unpacks an archive in an empty directory, serves, writes and reads a row. The server is left running.
first_row() {
  local archive=$1 begin line answer
  name=$(basename "$archive" .tar.gz)
  mkdir "$work/empty-$name"
  cd "$work/empty-$name"
  begin=$(date +%s%N)
  tar -xzf "$archive"
  mkfifo first_line
  env -i "${emulator[@]}" "$PWD/$name/bin/basalt" serve --ephemeral >first_line 2>log &
  server=$!
  read -r line <first_line || fail "$name: no server: $(cat log)"
  listen=$(sed -n 's/.*"listen": *"\([^"]*\)".*/\1/p' <<<"$line")
  answer=$(run basalt-shell --target "$listen" -e "create 't', 'f'" -e "put 't', 'row', 'f:q', 'first'" -e "get 't', 'row'")
  grep -q "value=first" <<<"$answer" || fail "$name: the get did not find the put: $answer"
  echo "from $name to the first put and get: $(ms_since "$begin") ms${emulator[0]:+, by ${emulator[0]}}"
  run basalt health --http "$(sed -n 's/.*"http": *"\([^"]*\)".*/\1/p' <<<"$line")" >/dev/null || fail "$name: not healthy"
}

stop() {
  kill -TERM "$server"
  wait "$server" || fail "$name: a clean stop ended with status $?: $(cat log)"
  server=
}

# The version with the commit, and the example configuration, which the server takes.
answers() {
  local commit said
  commit=$(git -C "$here" rev-parse --short=7 HEAD)
  said=$(run basalt --version)
  echo "$said"
  grep -Eq "^basalt [0-9]+\.[0-9]+\.[0-9]+.*[0-9a-f]{7}" <<<"$said" || fail "$name: --version names no commit: $said"
  grep -q "$commit" <<<"$said" || echo "note: the archive was built from another commit than $commit"
  run basalt config print | cmp - "$name/etc/basalt.toml" || fail "$name: config print is not etc/basalt.toml"
  run basalt config check --config "$PWD/$name/etc/basalt.toml" >/dev/null || fail "$name: etc/basalt.toml is refused"
}

# An archive of another processor, by an emulator.
for archive in "$dist"/basalt-*-linux-*.tar.gz; do
  processor=${archive##*-}
  processor=${processor%.tar.gz}
  [ "$processor" != "$(uname -m)" ] || continue
  if ! emulator=("$(command -v "qemu-$processor")"); then
    echo "not run: $(basename "$archive"), since qemu-$processor is not installed (Debian: qemu-user)"
    continue
  fi
  first_row "$archive"
  stop
  answers
done
emulator=()

native=$(echo "$dist"/basalt-*-linux-"$(uname -m)".tar.gz)
[ -f "$native" ] || not_run "there is no archive for $(uname -m)"
first_row "$native"

# Bad input gets a message that names it.
refused() {
  local expected=$1 output
  shift
  if output=$("$@" 2>&1); then fail "$* was accepted"; fi
  grep -q "$expected" <<<"$output" || fail "$* does not say $expected: $output"
}
program=$PWD/$name/bin/basalt
refused "another process has it" env -i "$program" serve --data-dir other --listen "$listen" --http-listen 127.0.0.1:0
stop
answers
refused BASALT_TYPO env -i BASALT_TYPO=1 "$program" serve --ephemeral
refused "neither empty nor a Basalt database" env -i "$program" serve --data-dir /etc --listen 127.0.0.1:0 --http-listen 127.0.0.1:0

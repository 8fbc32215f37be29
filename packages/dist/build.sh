#!/usr/bin/env bash
# Builds archives for Linux: packages/dist/build.sh [--system-libc] [PROCESSOR]...
#
# PROCESSOR is x86_64 or aarch64; without one, both. In target/dist:
#   PROCESSOR/                                programs, for the other packages
#   basalt-VERSION-linux-PROCESSOR.tar.gz     programs and all that belongs to them
#   SHA256SUMS                                of the archives
#
# 1. Tools are installed into target/dist/tools, once.
# 2. cargo-zigbuild compiles and links with musl, so that programs run on any Linux of their processor.
#    With --system-libc, cargo and the system's linker link statically with the system's C library instead:
#    for machines without rustup's musl targets. It works only for the machine's own processor.
# 3. The native programs print completions and man pages, the same for all processors.
# 4. Archives are reproducible: names in order, the commit's time, no owner.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packages/lib.sh
. packages/lib.sh
export CARGO_INCREMENTAL=0
dist=$PWD/target/dist
tools=$dist/tools
programs=(basalt basalt-shell basalt-bench)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

libc=musl
processors=()
for argument in "$@"; do
  case $argument in
    --system-libc) libc=system ;;
    x86_64 | aarch64) processors+=("$argument") ;;
    *) echo "usage: $0 [--system-libc] [x86_64|aarch64]..." >&2; exit 2 ;;
  esac
done
[ ${#processors[@]} -gt 0 ] || processors=(x86_64 aarch64)

step() { printf '\n== %s (%s)\n' "$*" "$(date -u +%H:%M:%S)"; }

# A tool of crates.io, unless that version is there. Optimized, since cargo-about compares hundreds of texts with all
# licences: without, that takes more processor time than the build saves.
cargo_tool() {
  local name=$1 tool_version=$2
  shift 2
  grep -qs "\"$name $tool_version " "$tools/.crates.toml" ||
    CARGO_TARGET_DIR=$tools/target CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
      cargo install --quiet --locked --force --root "$tools" "$name@$tool_version" "$@"
}

install_tools() {
  step "tools"
  mkdir -p "$tools"
  cargo_tool cargo-about 0.9.3 --features cli
  cargo_tool cargo-cyclonedx 0.5.9
  rm -rf "$tools/target"
  [ "$libc" = system ] && return
  [ -x "$tools/venv/bin/python" ] || python3 -m venv "$tools/venv"
  "$tools/venv/bin/python" -m pip install --quiet --requirement packages/dist/requirements.txt
}

# Compiles the programs for a processor into target/dist/PROCESSOR.
compile() {
  local processor=$1 target arguments=(--profile dist --locked -p basalt -p basalt-shell -p basalt-bench)
  local variables=("PATH=$tools/venv/bin:$PATH")
  for program in "${programs[@]}"; do arguments+=(--bin "$program"); done
  step "programs for $processor"
  if [ "$libc" = system ]; then
    [ "$processor" = "$(uname -m)" ] || { echo "--system-libc cannot compile for $processor on $(uname -m)" >&2; exit 1; }
    target=$processor-unknown-linux-gnu
    RUSTFLAGS="-C target-feature=+crt-static" cargo build "${arguments[@]}" --target "$target"
  else
    target=$processor-unknown-linux-musl
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target" || {
      echo "Rust has no standard library for $target here: rustup target add $target" >&2
      exit 1
    }
    # jemalloc's page size is fixed when it is compiled; arm64 kernels use pages of up to 64 KiB.
    [ "$processor" != aarch64 ] || variables+=(JEMALLOC_SYS_WITH_LG_PAGE=16)
    env "${variables[@]}" "$tools/venv/bin/cargo-zigbuild" zigbuild "${arguments[@]}" --target "$target"
  fi
  mkdir -p "$dist/$processor"
  for program in "${programs[@]}"; do
    install -m 755 "target/$target/dist/$program" "$dist/$processor/$program"
  done
}

# Writes the files that are the same for all processors into target/dist/common, with this machine's programs.
common() {
  local native common=$dist/common
  native=$dist/$(uname -m)
  step "completions, man pages, example configuration, licences, SBOM"
  [ -x "$native/basalt" ] || { echo "$native/basalt prints completions and man pages: build $(uname -m) first" >&2; exit 1; }
  rm -rf "$common"
  mkdir -p "$common/etc"
  help_files "$native" "$common/share" zsh/site-functions
  (cd / && env -i "$native/basalt" config print) >"$common/etc/basalt.toml"
  cp README.md LICENSE CHANGELOG.md "$common"
  PATH="$tools/bin:$PATH" cargo about --color never generate --fail --locked \
    --config packages/dist/about.toml --workspace --output-file "$common/THIRD-PARTY-LICENSES.txt" packages/dist/about.hbs
  sbom "$common/sbom"
}

# One SBOM for each program. cargo-cyclonedx writes one beside the manifest of each member of the workspace.
sbom() {
  local into=$1 crate
  mkdir -p "$into"
  PATH="$tools/bin:$PATH" cargo cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps --override-filename basalt-sbom
  for crate in server:basalt client/shell:basalt-shell bench:basalt-bench; do
    # The names of local crates have the path of this folder.
    sed "s#$PWD/*##g" "${crate%%:*}/basalt-sbom.json" >"$into/${crate#*:}.cdx.json"
  done
  find . -name basalt-sbom.json -not -path "./target/*" -delete
}

archive() {
  local processor=$1 name=basalt-$version-linux-$1
  step "$name.tar.gz"
  rm -rf "${dist:?}/$name"
  mkdir -p "$dist/$name/bin"
  cp "$dist/$processor"/basalt* "$dist/$name/bin"
  cp -r "$dist/common/." "$dist/$name"
  tar -C "$dist" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
    gzip -9n >"$dist/$name.tar.gz"
  rm -rf "${dist:?}/$name"
}

install_tools
for processor in "${processors[@]}"; do compile "$processor"; done
common
for processor in "${processors[@]}"; do archive "$processor"; done
(cd "$dist" && sha256sum basalt-*.tar.gz | tee SHA256SUMS)

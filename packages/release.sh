#!/usr/bin/env bash
# Makes all files of a release: packages/release.sh [--system-libc] [PROCESSOR]...
#
# PROCESSOR is x86_64 or aarch64; without one, both. In target/dist/release:
#   basalt-VERSION-linux-PROCESSOR.tar.gz   archives with programs, completions, man pages, licence texts, SBOMs
#   basalt_VERSION_ARCHITECTURE.deb         Debian packages
#   *.whl                                   Python wheels
#   basalt-*.jar                            Java artifacts
#   basalttest-VERSION.zip                  the Go module, as a proxy of Go serves it
#   PROGRAM-VERSION.cdx.json                SBOM of each program (CycloneDX)
#   SHA256SUMS                              of all of these
#
# The image is no file: packages/image/build.sh makes it of the programs that this script leaves in target/dist.
# --system-libc: see packages/dist/build.sh. A missing tool ends the script before anything is built, with status 77.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/lib.sh"
root=$(cd "$here/.." && pwd)
cd "$root"
dist=$root/target/dist
release=$dist/release
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

processors=()
for argument in "$@"; do
  case $argument in
    --system-libc) ;;
    x86_64 | aarch64) processors+=("$argument") ;;
    *) echo "usage: $0 [--system-libc] [x86_64|aarch64]..." >&2; exit 2 ;;
  esac
done
[ ${#processors[@]} -gt 0 ] || processors=(x86_64 aarch64)

need cargo python3 git dpkg-deb:dpkg readelf:binutils mvn:maven java:default-jdk
python3 -m pip --version >/dev/null 2>&1 || not_run "python3 has no pip (Debian: python3-pip)"

# Versions that are written in several places must agree before hours are spent.
check_versions() {
  local file found
  while read -r file found; do
    [ "$found" = "$version" ] || fail "$file has version $found, and Cargo.toml $version"
  done < <(
    echo "packages/java/pom.xml $(sed -n 's:.*<revision>\(.*\)</revision>.*:\1:p' packages/java/pom.xml)"
    for file in packages/python/*/pyproject.toml; do
      grep -q '^version = ' "$file" && echo "$file $(sed -n 's/^version = "\(.*\)"/\1/p' "$file" | head -1)"
    done
  )
}

# The module in the form of Go's proxies: each file below PATH@VERSION, with a fixed time, so that two builds are equal.
go_module() {
  local path
  path=$(sed -n 's/^module //p' packages/go/basalttest/go.mod)
  python3 - "$path@v$version" packages/go/basalttest "$release/basalttest-$version.zip" <<'END'
import sys
import zipfile
from pathlib import Path

prefix, folder, into = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
    files = [file for file in folder.rglob("*") if file.is_file()] + [Path("LICENSE")]
    for file in sorted(files):
        name = file.relative_to(folder) if folder in file.parents else file
        archive.writestr(zipfile.ZipInfo(f"{prefix}/{name}"), file.read_bytes())
END
}

java_artifacts() {
  local modules=:basalt-server,:basalt-junit5,:basalt-testcontainers processor
  for processor in "${processors[@]}"; do
    case $processor in
      x86_64) modules+=,:basalt-binaries-linux-amd64 ;;
      aarch64) modules+=,:basalt-binaries-linux-arm64 ;;
    esac
  done
  (cd packages/java && mvn -B -q package -DskipTests -Dbasalt.dist="$dist" -pl "$modules" -am)
  find "$root/target/packages/java" -maxdepth 2 -name "basalt-*-$version.jar" -exec cp {} "$release" \;
}

check_versions
packages/dist/build.sh "$@"
rm -rf "$release"
mkdir -p "$release"
for processor in "${processors[@]}"; do
  cp "$dist/basalt-$version-linux-$processor.tar.gz" "$release"
  cp "$(packages/deb/build.sh "$processor" | tail -1)" "$release"
done
for program in basalt basalt-shell basalt-bench; do
  cp "$dist/common/sbom/$program.cdx.json" "$release/$program-$version.cdx.json"
done
packages/python/build.sh "${processors[@]}"
cp "$dist"/wheels/*.whl "$release"
java_artifacts
go_module
(cd "$release" && sha256sum -- * >"$dist/SHA256SUMS.release" && mv "$dist/SHA256SUMS.release" SHA256SUMS)
ls -l "$release"

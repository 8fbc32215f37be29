#!/usr/bin/env bash
# Builds the image: packages/image/build.sh [TAG [PROGRAMS]]
#
# TAG is by default basalt:VERSION; several processors make a manifest of that name. PROGRAMS is a folder with
# PROCESSOR/basalt and PROCESSOR/basalt-shell, by default target/dist. BUILDER is docker, podman or buildah, by default
# the first that works here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tag=${1:-basalt:$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)}
programs=${2:-$root/target/dist}
context=$root/target/dist/image

SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)

# The root file system of an architecture as an archive: programs, names of the user, /tmp, and /data, which is the user's.
archive() {
  local files=$1 options=(--sort=name --numeric-owner --mtime="@$SOURCE_DATE_EPOCH")
  tar -C "$files" "${options[@]}" --owner=0 --group=0 -cf "$files.tar" etc tmp usr
  tar -C "$files" "${options[@]}" --owner=65532 --group=65532 -rf "$files.tar" data
}

rm -rf "$context"
platforms=()
for pair in x86_64:amd64 aarch64:arm64; do
  processor=${pair%%:*}
  architecture=${pair#*:}
  [ -x "$programs/$processor/basalt" ] || continue
  files=$context/$architecture
  mkdir -p "$files"/{data,etc,tmp,usr/bin}
  chmod 750 "$files/data"
  chmod 1777 "$files/tmp"
  echo "basalt:x:65532:65532:Basalt:/data:/sbin/nologin" >"$files/etc/passwd"
  echo "basalt:x:65532:" >"$files/etc/group"
  install -m 755 "$programs/$processor/basalt" "$programs/$processor/basalt-shell" "$files/usr/bin"
  archive "$files"
  rm -rf "$files"
  platforms+=("$architecture")
done
[ ${#platforms[@]} -gt 0 ] || { echo "no programs in $programs: packages/dist/build.sh makes them" >&2; exit 1; }

works() {
  case $1 in
    docker) docker info >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null ;;
  esac
}
builder=${BUILDER:-}
for candidate in docker podman buildah; do
  [ -n "$builder" ] || ! works "$candidate" || builder=$candidate
done
[ -n "$builder" ] || { echo "none of docker, podman, buildah works here" >&2; exit 77; }

for architecture in "${platforms[@]}"; do
  arguments=(--platform "linux/$architecture" --build-arg "TARGETARCH=$architecture" --file "$here/Dockerfile")
  name=$tag
  [ ${#platforms[@]} = 1 ] || name=$tag-$architecture
  # Health checks are part of Docker's format only.
  case $builder in
    docker) docker build "${arguments[@]}" --tag "$name" "$context" ;;
    *) "$builder" build "${arguments[@]}" --format docker --tag "$name" "$context" ;;
  esac
  echo "$name"
done

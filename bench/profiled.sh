#!/usr/bin/env bash
# Compiles the programs for what they do under load (profile-guided optimization): bench/profiled.sh COMMAND...
#
# COMMAND compiles basalt and basalt-bench for this processor, with the system's linker, and names its target:
#   bench/profiled.sh cargo build --profile perf -p basalt -p basalt-bench --target x86_64-unknown-linux-gnu
#
# 1. COMMAND compiles programs that count what they run, into target/pgo.
# 2. A server answers calls, is killed, recovers, and answers again; then the engine's benchmarks run by themselves.
#    Code that is not run here is compiled to be small instead of fast, so each thing that should be fast has a line here.
#    Calls have the most time: beside much more of the engine, the compiler takes them for rare.
# 3. COMMAND compiles the programs again, with the counts as a profile. They are where COMMAND leaves them.
#
# The profile fits only programs of the same profile and target: the names of functions have a hash of these. Its own name
# has a hash of its contents, since cargo compiles again only for other options.
#
# Takes rustup's component llvm-tools, which is installed if it is missing, and three minutes more than compiling twice.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: $0 COMMAND..." >&2; exit 2; }
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0
pgo=$PWD/target/pgo
counting=$pgo/$(sha256sum <<<"$*" | cut -c1-16)
counts=$counting/counts
work=$counting/work
tools=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
flags=${RUSTFLAGS:-}

step() { printf '\n== %s (%s)\n' "$*" "$(date -u +%H:%M:%S)"; }

server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

# Starts the server on the data in $work, on ports that are free, and sets `listen` to its address.
serve() {
  local line
  rm -f "$work/first_line"
  mkfifo "$work/first_line"
  "$programs/basalt" serve --set "data.dir=$work/data" --set wal.sync=os --set server.listen=127.0.0.1:0 \
    --set http.listen=127.0.0.1:0 >"$work/first_line" 2>>"$work/log" &
  server=$!
  read -r line <"$work/first_line" || { echo "no server: $(cat "$work/log")" >&2; exit 1; }
  listen=$(sed -n 's/.* on \([0-9.:]*\) and HTTP .*/\1/p' <<<"$line")
}

# Ends the server with a signal. After TERM it writes its counts.
end() {
  kill -s "$1" "$server"
  wait "$server" || [ "$1" = KILL ]
  server=
}

bench() { "$programs/basalt-bench" "$@" >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }; }

calls() { bench roundtrip --target "$listen" --echo tokio --rounds 1 --replace-tables --connections 64 "$@"; }

[ -x "$tools/llvm-profdata" ] || rustup component add llvm-tools
step "programs that count"
rm -rf "$counts" "$work"
mkdir -p "$work"
CARGO_TARGET_DIR=$counting/target RUSTFLAGS="$flags -Cprofile-generate=$counts" "$@"
programs=$(dirname "$(find "$counting/target" -mindepth 3 -maxdepth 3 -name basalt -type f)")
export LLVM_PROFILE_FILE=$counts/%p-%m.profraw

step "calls"
serve
calls --api native --inflight 16 --seconds 1
end KILL
serve
calls --api native --inflight 16 --seconds 4
calls --api native --seconds 2
for pipeline in 1 16; do
  calls --api thrift2 --calls get,put,put-batch,increment,scan --pipeline "$pipeline" --seconds 1
done
for api in thrift1 thrift2 native; do
  for workload in a e f; do
    bench ycsb "$workload" --api "$api" --target "$listen" --threads 16 --records 20000 --operations 20000 --replace-tables
  done
done
end TERM

step "engine"
benchmarks=fillseq,readseq,fillrandom,overwrite,readrandom,readmissing,multireadrandom,seekrandom,readwhilewriting,readreverse,compact
for compression in none snappy; do
  bench engine --db "$work/db" --num 100000 --benchmarks "$benchmarks" --bloom-bits 10 --seek-nexts 100 --reads 20000 \
    --compression "$compression"
done
unset LLVM_PROFILE_FILE

step "programs with the profile"
"$tools/llvm-profdata" merge -o "$counting/new" "$counts"/*.profraw
profile=$pgo/$(sha256sum "$counting/new" | cut -c1-16).profdata
mv "$counting/new" "$profile"
RUSTFLAGS="$flags -Cprofile-use=$profile" "$@"

#!/usr/bin/env bash
# Tests the Go module with the program of the first argument: its own tests, then the sample's, in a copy in
# target/packages/go that has the code which the Thrift compiler generates.
set -euo pipefail
program=$(realpath "${1:?the program basalt}")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
made=$(realpath -m "$here/../../target/packages/go")
need go thrift:thrift-compiler
export BASALT_PROGRAM=$program GOFLAGS=-buildvcs=false

rm -rf "$made"
mkdir -p "$made"
cp -r "$here/basalttest" "$here/sample" "$made"
cd "$made/basalttest"
[ -z "$(gofmt -l . ../sample)" ] || { echo "gofmt would change: $(gofmt -l . ../sample)"; exit 1; }
go vet ./...
go test -count=1 ./...

cd "$made/sample"
thrift -nowarn --gen go:skip_remote,package_prefix=basalt/sample/ -out . "$here/../../idl/thrift2/hbase.thrift"
go mod download 2>"$made/log" || not_run "go cannot fetch Apache Thrift: $(tail -1 "$made/log")"
go vet .
go test -c -o sample.test .
begin=$(date +%s%N)
./sample.test -test.count=1 -test.v >"$made/log" 2>&1 || { cat "$made/log"; exit 1; }
[ "$(grep -c '^--- PASS' "$made/log")" = 5 ] || { cat "$made/log"; exit 1; }
echo "start, five tests and stop, with Go: $(ms_since "$begin") ms"

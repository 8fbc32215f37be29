#!/usr/bin/env bash
# Tests the Go module with the program of the first argument: its own tests, then the sample's, in a copy in
# target/packages/go that has the code which the Thrift compiler generates.
set -euo pipefail
program=$(realpath "${1:?the program basalt}")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
made=$(realpath -m "$here/../../target/packages/go")
need go git thrift:thrift-compiler
export BASALT_PROGRAM=$program GOFLAGS=-buildvcs=false

rm -rf "$made"
mkdir -p "$made"
cp -r "$here/basalttest" "$here/sample" "$made"
cd "$made/basalttest"
[ -z "$(gofmt -l . ../sample)" ] || { echo "gofmt would change: $(gofmt -l . ../sample)"; exit 1; }
go vet ./...
go test -count=1 ./...

# An application elsewhere gets the module by its path and version from a repository with the tag of a release; git
# finds the repository here instead of at its address.
path=$(sed -n 's/^module //p' go.mod)
folder=packages/go/basalttest
version=v$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -1)
mkdir -p "$made/repository/packages/go" "$made/elsewhere"
cp -r "$here/basalttest" "$made/repository/packages/go"
cp "$here/../../LICENSE" "$made/repository"
git -C "$made/repository" init -q
git -C "$made/repository" add .
git -C "$made/repository" -c user.name=test -c user.email=test@localhost commit -q -m release
git -C "$made/repository" tag "$folder/$version"
cd "$made/elsewhere"
cat >go.mod <<END
module elsewhere

go 1.21
END
cat >app_test.go <<END
package elsewhere

import (
	"testing"

	"$path"
)

func TestStart(t *testing.T) { basalttest.Start(t).Reset(t) }
END
(
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$made/repository.insteadOf GIT_CONFIG_VALUE_0=https://${path%"/$folder"}
  export GOPROXY=direct GONOSUMDB="$path" GOMODCACHE=$made/modules GOTOOLCHAIN=local GOFLAGS="-modcacherw -buildvcs=false"
  go get "$path@$version" 2>"$made/log" || { cat "$made/log"; fail "go get $path@$version"; }
  go test -count=1 ./...
)
echo "an application elsewhere gets $path@$version"

cd "$made/sample"
thrift -nowarn --gen go:skip_remote,package_prefix=basalt/sample/ -out . "$here/../../idl/thrift2/hbase.thrift"
go mod download 2>"$made/log" || not_run "go cannot fetch Apache Thrift: $(tail -1 "$made/log")"
go vet .
go test -c -o sample.test .
begin=$(date +%s%N)
./sample.test -test.count=1 -test.v >"$made/log" 2>&1 || { cat "$made/log"; exit 1; }
[ "$(grep -c '^--- PASS' "$made/log")" = 5 ] || { cat "$made/log"; exit 1; }
echo "start, five tests and stop, with Go: $(ms_since "$begin") ms"

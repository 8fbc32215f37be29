#!/usr/bin/env bash
# Names the repository in the path of the Go module: packages/go/set_path.sh github.com/OWNER/NAME
#
# `go get` fetches a module from the repository that its path begins with, so a repository that has moved, or a fork that
# publishes the module, needs another path. Changes go.mod, the sample and the README.
set -euo pipefail
repository=${1:?usage: $0 github.com/OWNER/NAME}
cd "$(dirname "$0")"
before=$(sed -n 's:^module \(.*\)/packages/go/basalttest$:\1:p' basalttest/go.mod)
sed -i "s:$before/packages/go/basalttest:$repository/packages/go/basalttest:" \
  basalttest/go.mod sample/go.mod sample/guestbook_test.go README.md

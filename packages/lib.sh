# Functions of packages/NAME/test.sh.
# shellcheck shell=bash

# Ends a test with status 77, which means that this machine lacks something.
not_run() { echo "not run: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }

# Ends the test as not run unless these tools are installed, each TOOL or TOOL:PACKAGE of Debian.
need() {
  local tool package
  for tool in "$@"; do
    package=${tool#*:}
    tool=${tool%%:*}
    [ "$package" = "$tool" ] && package="" || package=" (Debian: $package)"
    command -v "$tool" >/dev/null || not_run "$tool is not installed$package"
  done
}

# Copies a program without its debug information: strip_debug FROM TO.
strip_debug() { strip --strip-debug -o "$2" "$1" 2>/dev/null || cp "$1" "$2"; }

# Milliseconds since a time in nanoseconds, as of date +%s%N.
ms_since() { echo "$((($(date +%s%N) - $1) / 1000000))"; }

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

# Writes completions and man pages of the programs in a folder: help_files PROGRAMS SHARE ZSH. SHARE is the folder share of an
# installation, ZSH the name of zsh's folder in it.
help_files() {
  local programs=$1 share=$2 zsh=$3 name dashes
  install -d "$share"/{man/man1,bash-completion/completions,fish/vendor_completions.d} "$share/$zsh"
  for name in basalt basalt-shell basalt-bench; do
    [ -x "$programs/$name" ] || continue
    # They are options of the shell, whose first word is a script.
    dashes=""
    [ "$name" != basalt-shell ] || dashes=--
    "$programs/$name" "${dashes}completions" bash >"$share/bash-completion/completions/$name"
    "$programs/$name" "${dashes}completions" zsh >"$share/$zsh/_$name"
    "$programs/$name" "${dashes}completions" fish >"$share/fish/vendor_completions.d/$name.fish"
    "$programs/$name" "${dashes}man" "$share/man/man1"
  done
}

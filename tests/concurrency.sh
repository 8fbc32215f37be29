#!/usr/bin/env bash
# The concurrency checks: loom, Miri, ThreadSanitizer. `tests/concurrency.sh [loom|miri|tsan]...`, all three without arguments.
#
# Each has a target directory of its own, since each builds with flags of its own. Miri and ThreadSanitizer need a nightly compiler
# with the components miri and rust-src. docs/testing.md says what each one shows.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')

# The real code of group commit, memstore, region versions and block cache, in every order of its threads' steps.
loom() {
    CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" \
        cargo test -p basalt-engine --lib ::loom_ -- --nocapture
}

# The modules with `unsafe` (memstore/index, arena.rs, memory.rs, prefetch.rs) through all tests of the memstore: with Stacked Borrows and several
# orders of threads, and with Tree Borrows.
miri() {
    CARGO_TARGET_DIR=target/miri MIRIFLAGS="-Zmiri-many-seeds=0..${MIRI_SEEDS:-8}" \
        cargo +nightly miri test -p basalt-engine --lib memstore::
    CARGO_TARGET_DIR=target/miri MIRIFLAGS="-Zmiri-tree-borrows" \
        cargo +nightly miri test -p basalt-engine --lib memstore::
}

# The tests of the engine and of the server, with real threads, and the program itself: clients of
# all kinds beside flushes, compactions, splits and kills. Suppressed reports are tokio's, with the
# reason in the file.
tsan() {
    local options="halt_on_error=1 exitcode=66"
    (
        export CARGO_TARGET_DIR=target/tsan RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS=$options
        cargo +nightly test -Zbuild-std --target "$host" -p basalt-engine --lib --test engine
        cargo +nightly test -Zbuild-std --target "$host" -p basalt --no-default-features --features thrift --lib --bins
        cargo +nightly build -Zbuild-std --target "$host" -p basalt --no-default-features --features thrift --bins
    )
    TSAN_OPTIONS="$options suppressions=$PWD/tests/tsan-suppressions.txt" \
        cargo run --release -p basalt-torture --bin basalt-torture -- \
        --binary "target/tsan/$host/debug/basalt" --kills "${TSAN_KILLS:-100}" --kill-at-end
}

for check in "${@:-loom miri tsan}"; do
    for one in $check; do
        case $one in
        loom | miri | tsan) echo "== $one" && "$one" ;;
        *) echo "unknown check: $one (loom, miri, tsan)" >&2 && exit 2 ;;
        esac
    done
done

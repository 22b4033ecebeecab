#!/usr/bin/env bash
# Real request traces in pools of 1, 5, 20 and 100 % of their working set: hit rates, which must be what a least recently
# used cache made of std's collections gives. The first thousand requests of each trace run in a debug build as well, with its
# assertions, and must give the same digests; the whole of them would take minutes there.
set -euo pipefail
cd "$(dirname "$0")/.."
export KVF_DATA="${KVF_DATA:-$PWD/../shared/data}"
target="${CARGO_TARGET_DIR:-$PWD/target}"
prefix=1000
cargo build -q --release -p kvfolio-examples --bin kvf-traces
cargo build -q -p kvfolio-examples --bin kvf-traces
work="$target/traces"
mkdir -p "$work"

"$target/release/kvf-traces" | tee "$work/all"
if grep -q '^0 passed' "$work/all"; then
    exit
fi
for build in release debug; do
    "$target/$build/kvf-traces" --requests "$prefix" >"$work/$build"
done
if ! diff "$work/release" "$work/debug"; then
    echo "debug and release builds differ"
    exit 1
fi
echo "the first $prefix requests of each give the same in a debug build"

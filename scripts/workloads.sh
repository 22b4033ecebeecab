#!/usr/bin/env bash
# Workloads through the Rust interface, and then through the C interface by bench/run.c: hits, evictions and digests must be
# equal. Without a trace below KVF_DATA, W6 is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh cc
target="${CARGO_TARGET_DIR:-$PWD/target}"
work="$target/workloads"
mkdir -p "$work"
cargo build -q --release -p kvfolio-examples --bin kvf-workloads
cargo run -q -p xtask -- capi >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
${CC:-cc} -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -Iinclude bench/run.c "$target/capi/libkvfolio.a" -o "$work/run"

RUNS="${RUNS:-2}" "$target/release/kvf-workloads" | tee "$work/rust"
passed=0 skipped=0
for name in W1 W2 W3 W4 W5 W6; do
    is=$(awk -v name="$name" '$1 == name && NF == 6 { print $3, $4, $6 }' "$work/rust")
    if [ -z "$is" ]; then
        skipped=$((skipped + 1))
        continue
    fi
    "$target/release/kvf-workloads" "$name" --write "$work"
    c=$("$work/run" "$work/$name.kvw" | awk '{ print $2, $3, $4 }')
    rm "$work/$name.kvw"
    [ "$is" = "$c" ] || { echo "$name: $is in Rust, $c in C"; exit 1; }
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed, $skipped skipped: the same through the C interface"
[ "$skipped" -eq 0 ] || [ "${CI:-}" != true ]

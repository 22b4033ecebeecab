#!/usr/bin/env bash
# Instructions that each call takes as a cache grows: cached siblings from a hundred to a million, leaves, pages from 4k
# to 64k, live sequences, tokens of a sequence. Fails when a call takes more than 1.1 times what it takes at the smallest
# size of its axis. Calls are those of examples/rust/growth/calls.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh valgrind
source scripts/callgrind.sh
target="${CARGO_TARGET_DIR:-$PWD/target}"
work="$target/growth"
mkdir -p "$work"
cargo build -q --release -p kvfolio-examples --bin kvf-growth

passed=0 failed=0
# axis NAME SIZE...: prints a table and compares.
axis() {
    local name=$1 size
    shift
    for size in "$@"; do
        instructions 'kvf_growth::calls::*' "$target/release/kvf-growth" "$name" "$size" >"$work/$size"
        [ "$(wc -l <"$work/$size")" -eq 16 ] || { echo "not 16 calls:" "$(cat "$work/$size")" >&2; return 1; }
    done
    printf '\n%-18s' "$name"
    printf '%12s' "$@"
    printf '   growth\n'
    local call first now most
    while read -r call first; do
        printf '%-18s' "$call"
        most=0
        for size in "$@"; do
            now=$(awk -v call="$call" '$1 == call { print $2 }' "$work/$size")
            printf '%12d' "$((now / 16))"
            [ "$now" -le "$most" ] || most=$now
        done
        printf '%9s' "$(awk -v a="$most" -v b="$first" 'BEGIN { printf "%.2f", a / b }')"
        if [ $((most * 10)) -le $((first * 11)) ]; then
            passed=$((passed + 1))
            echo
        else
            failed=$((failed + 1))
            echo "  FAIL"
        fi
    done <"$work/$1"
}

echo "instructions per call, mean of 16"
axis siblings 100 10000 1000000
# Leaves in groups of ten; from a thousand on, since an index that is almost empty evicts 10 % faster.
axis leaves 1000 10000 100000
axis pages 4096 65536
axis sequences 64 16384
axis length 4096 65536
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

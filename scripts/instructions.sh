#!/usr/bin/env bash
# Instructions of workloads W1 to W5 and of single calls, beside those in bench/instructions.txt. Fails when one is more than
# 3 % above. `instructions.sh --write` writes the file: in the change that explains why.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh valgrind
source scripts/callgrind.sh
target="${CARGO_TARGET_DIR:-$PWD/target}"
work="$target/instructions"
baseline=bench/instructions.txt
mkdir -p "$work"
cargo build -q --release -p kvfolio-examples

for name in W1 W2 W3 W4 W5; do
    count=$(RUNS=1 instructions 'kvfolio_examples::manager::operate' "$target/release/kvf-workloads" "$name")
    [ -n "$count" ] || { echo "$name: nothing was counted" >&2; exit 1; }
    echo "$name ${count##* }"
done >"$work/now"
instructions 'kvf_growth::calls::*' "$target/release/kvf-growth" siblings 10000 | sed 's/^/call-/' >>"$work/now"

if [ "${1:-}" = --write ]; then
    cp "$work/now" "$baseline"
    exit
fi
printf '%-24s%14s%14s%8s\n' "" now baseline ratio
awk '
    NR == FNR { known[$1] = $2; next }
    {
        seen[$1] = 1
        if (!($1 in known)) { printf "%-24s%14d  not in the baseline\n", $1, $2; failed++; next }
        ratio = $2 / known[$1]
        word = ratio > 1.03 ? "FAIL" : ratio < 0.97 ? "better: --write" : ""
        printf "%-24s%14d%14d%8.3f  %s\n", $1, $2, known[$1], ratio, word
        if (ratio > 1.03) failed++; else passed++
    }
    END {
        for (name in known) if (!(name in seen)) { print name ": not counted"; failed++ }
        printf "%d passed, %d failed\n", passed, failed
        exit failed > 0
    }' "$baseline" "$work/now"

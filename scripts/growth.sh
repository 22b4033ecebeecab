#!/usr/bin/env bash
# Instructions per evicted page at 10^2, 10^4 and 10^6 leaves. Fails when one is above 1.1 times the first.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh valgrind
cargo build -q --release -p kvfolio-examples --bin kvf-growth

count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect='*evict_measured*' target/release/kvf-growth "$1" 2>&1 |
        sed -n 's/.*Collected : //p'
}

first=
for leaves in 100 10000 1000000; do
    instructions=$(count "$leaves")
    [ -n "$first" ] || first=$instructions
    echo "$leaves leaves: $((instructions / 16)) instructions per evicted page"
    if [ $((instructions * 10)) -gt $((first * 11)) ]; then
        echo "eviction grows with the number of leaves"
        exit 1
    fi
done
echo "1 passed, 0 failed"

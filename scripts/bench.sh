#!/usr/bin/env bash
# Builds and runs the comparison with other managers: `bench.sh [W1 .. W6]... [operations]`, see bench/README.md.
# The peers come from their registry and take minutes to build, once.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh cc
target="${CARGO_TARGET_DIR:-$PWD/target}"
programs="$target/bench"
mkdir -p "$programs"
cargo run -q -p xtask -- capi >/dev/null
for program in run calls; do
    ${CC:-cc} -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -Iinclude "bench/$program.c" "$target/capi/libkvfolio.a" \
        -o "$programs/$program"
done
CARGO_TARGET_DIR="$target/peers" cargo build -q --release --locked --manifest-path bench/Cargo.toml
"$target/peers/release/kvf-bench" "$programs" "$@"

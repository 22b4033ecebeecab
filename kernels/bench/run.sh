#!/usr/bin/env bash
# Speed of encoding and decoding rows: see quant.c. `run.sh cache` or `run.sh memory` for one size.
# `run.sh attention [ROUNDS]`: of decode attention over quantised pages, see attention.rs.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" = attention ]; then exec cargo bench -q -p kvfolio-kernels --bench attention -- "${@:2}"; fi
target="${CARGO_TARGET_DIR:-target}"
out=build/kernels-bench
mkdir -p "$out"
cargo rustc -q -p kvfolio-kernels --profile capi --crate-type staticlib -- --cfg kvf_capi
wide=(); [ "$(uname -m)" != x86_64 ] || wide=(-mavx2 -mf16c)
flags=(-O3 -Wall -Wextra -Iinclude -fno-math-errno)
cc "${flags[@]}" -DSUFFIX=_plain -c kernels/bench/blocks.c -o "$out/plain.o"
cc "${flags[@]}" "${wide[@]}" -DSUFFIX=_avx2 -c kernels/bench/blocks.c -o "$out/avx2.o"
cc "${flags[@]}" kernels/bench/quant.c "$out/plain.o" "$out/avx2.o" "$target/capi/libkvfolio_kernels.a" -lm -o "$out/quant"
"$out/quant" "$@"

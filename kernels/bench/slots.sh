#!/usr/bin/env bash
# What holes and scores cost on top of decode attention: see slots.c.
set -euo pipefail
cd "$(dirname "$0")/../.."
target="${CARGO_TARGET_DIR:-target}"
out=build/kernels-bench
mkdir -p "$out"
cargo rustc -q -p kvfolio-kernels --profile capi --crate-type staticlib -- --cfg kvf_capi
cc -O2 -Wall -Wextra -Iinclude kernels/bench/slots.c "$target/capi/libkvfolio_kernels.a" -lm -o "$out/slots"
"$out/slots"

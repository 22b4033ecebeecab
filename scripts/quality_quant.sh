#!/bin/sh
# What each format of keys and values costs SmolLM2-135M, beside reference figures: two windows of 1,024 tokens, the
# passkey, and a window of 512 tokens in chunks of 64 and of 1, whose logits must be equal. Half an hour on two cores;
# arguments go to kvf-quality instead: scripts/quality_quant.sh --windows S --rows int8,kivi2
set -eu
cd "$(dirname "$0")/.."
export KVF_DATA="${KVF_DATA:-$PWD/../shared/data}"

scripts/fetch_model.sh >/dev/null
make -s -C examples/c all
[ $# -eq 0 ] || exec build/c/kvf-quality "$@"
build/c/kvf-quality --windows WP --passkey
build/c/kvf-quality --windows S --chunks 64,1

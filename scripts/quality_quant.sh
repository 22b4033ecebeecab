#!/bin/sh
# What each format of keys and values costs SmolLM2-135M, beside reference figures: two windows of 1,024 tokens, the
# passkey, and a window of 512 tokens in chunks of 64 and of 1, whose logits must be equal. Half an hour on two cores;
# arguments go to kvf-quality instead: scripts/quality_quant.sh --windows S --rows int8,kivi2
#
# Without the texts (KVF_DATA) or the model it says that it is skipped; with CI=true that is a failure.
set -eu
cd "$(dirname "$0")/.."
export KVF_DATA="${KVF_DATA:-$PWD/../shared/data}"

if [ -d "$KVF_DATA" ] || [ "${CI:-}" = true ]; then scripts/fetch_model.sh >/dev/null; fi
make -s -C examples/c all
if [ $# -gt 0 ]; then set -- "$*"; else set -- '--windows WP --passkey' '--windows S --chunks 64,1'; fi
printf 'build/c/kvf-quality %s\n' "$@" | scripts/run_checks.sh

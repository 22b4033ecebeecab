#!/bin/sh
# Learns which tokens SmolLM2-135M can do without: records what its heads pay attention to in one text (PEP 827), trains
# networks on that, and judges them on another (wikitext2-test), beside other policies. Fails where the learned policy loses
# as much there as chance with the first tokens protected.
#
#     scripts/learn.sh [TOKENS]     of each text, 1,024 by default
#
# build/learn/weights is for `kvf-chat --evict learned --evict-weights` and `kvf-evict --weights`. Without the texts
# (KVF_DATA) or the model it says that it is skipped and ends with 77.
set -eu
cd "$(dirname "$0")/.."
export KVF_DATA="${KVF_DATA:-$PWD/../shared/data}"
tokens=${1:-1024}
out=build/learn
[ "$tokens" = 1024 ] || out=build/learn-$tokens
model=${KVF_MODEL:-.cache/SmolLM2-135M-Instruct.Q4_1.gguf}

if [ -d "$KVF_DATA" ] || [ "${CI:-}" = true ]; then scripts/fetch_model.sh >/dev/null; fi
if [ ! -d "$KVF_DATA" ] || [ ! -f "$model" ]; then
    echo "skipped: learn: no $KVF_DATA or no $model"
    exit 77
fi
make -s -C examples/c all
mkdir -p $out
kvf="cargo run -q --release -p kvfolio-examples --bin kvf --"
build/c/kvf-record --text "$KVF_DATA/text/pep-0827.txt" --tokens "$tokens" --out $out/train.attention
build/c/kvf-record --text "$KVF_DATA/text/wikitext2-test.txt" --tokens "$tokens" --out $out/judge.attention
$kvf train --recording $out/train.attention --out $out/weights
$kvf judge --recording $out/judge.attention --weights $out/weights --check

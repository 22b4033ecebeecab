#!/bin/sh
# What evicting tokens costs SmolLM2-135M, beside reference figures: budgets of 25 % and 50 % on two windows of 1,024
# tokens and on the passkey, then the passkey with the tokens that state it pinned; the learned policy with weights that
# scripts/learn.sh makes. Half an hour on two cores; arguments go to kvf-evict instead:
# scripts/quality_evict.sh --windows S --budgets 25 --rows sinks,h2o
#
# Without the texts (KVF_DATA) or the model it says that it is skipped; with CI=true that is a failure.
set -eu
cd "$(dirname "$0")/.."
export KVF_DATA="${KVF_DATA:-$PWD/../shared/data}"

if [ -d "$KVF_DATA" ] || [ "${CI:-}" = true ]; then scripts/fetch_model.sh >/dev/null; fi
make -s -C examples/c all
if [ $# -gt 0 ]; then
    set -- "$*"
else
    weights=build/learn/weights
    [ -f $weights ] || [ ! -d "$KVF_DATA" ] || scripts/learn.sh
    set -- "--windows WPK --weights $weights" "--pin --weights $weights"
fi
printf 'build/c/kvf-evict %s\n' "$@" | scripts/run_checks.sh

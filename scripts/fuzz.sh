#!/usr/bin/env bash
# Fuzzes with libFuzzer on stable Rust: `fuzz.sh`, or `fuzz.sh NAME...` of
#
#   c         kvf_fuzz_one over the C archive, under sanitizers: plain C for other people's harnesses
#   lockstep  the model, the Rust API and the C ABI in lock step
#
# FUZZ_SECONDS (15) is the time of each, FUZZ_SEED (1) the seed of its chances. They begin with the case files and
# guided programs in their byte form. With CI=true each run begins afresh; else what was found stays in
# target/fuzz/corpus. A target fails at its first violation, and when it reaches less of the code than its floor. See
# tests/FUZZING.md.
set -uo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh cc clang asan-clang fuzzer || exit 1
host=$(rustc -vV | sed -n 's/^host: //p')
target="${CARGO_TARGET_DIR:-$PWD/target}"
work="$target/fuzz"
mkdir -p "$work/found"
source scripts/gate.sh

# Edges that a run must reach in the instrumented code: the library, and with `lockstep` the tests too.
declare -A floor=([c]=2500 [lockstep]=8500)

strict="-std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude"
sanitize="-g -O2 -fsanitize=address,undefined -fno-sanitize-recover=all"
# What cargo-fuzz asks of a nightly compiler, in options that a stable one has.
coverage="-Cpasses=sancov-module -Ccodegen-units=1"
for option in level=3 inline-8bit-counters pc-table trace-compares; do
    coverage+=" -Cllvm-args=-sanitizer-coverage-$option"
done

# With a target named, build scripts and macros are not instrumented.
archive() {
    RUSTFLAGS="$coverage" cargo rustc -q -p kvfolio-ffi --profile fuzz --crate-type staticlib --target "$host" \
        --target-dir "$work" -- --cfg kvf_capi
}
# The harness itself is not instrumented: what counts is the library's code.
build_c() {
    local source objects=()
    archive || return
    for source in tests/fuzz/kvf_fuzz*.c tests/fuzz/libfuzzer.c; do
        objects+=("$work/$(basename "$source" .c).o")
        clang $strict $sanitize -c "$source" -o "${objects[-1]}" || return
    done
    clang $sanitize -fsanitize=fuzzer "${objects[@]}" "$work/$host/fuzz/libkvfolio_ffi.a" -o "$work/c"
}
build_lockstep() {
    CUSTOM_LIBFUZZER_PATH=$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a") RUSTFLAGS="$coverage" \
        cargo build -q --locked --release --manifest-path tests/fuzz/Cargo.toml --bin lockstep --target "$host" \
        --target-dir "$work" && cp "$work/$host/release/lockstep" "$work/lockstep"
}

# The C harness reads the same scenarios as everything else: after each seed its digest is that of kvf-replay.
same_digests() {
    cargo run -q -p xtask -- capi >/dev/null || return
    gcc $strict -O2 tests/fuzz/kvf_fuzz*.c tests/fuzz/replay.c "$target/capi/libkvfolio.a" -o "$work/replay" || return
    "$work/replay" "$work"/seeds/* | awk '$1 != "skip"' | sort -k 3 >"$work/c.digests" || return
    cargo run -q --release -p kvfolio-tests --bin kvf-replay -- "$work"/seeds/* >"$work/all.verdicts" || return
    awk '$1 == "pass" { print $1, $3, $4 }' "$work/all.verdicts" | sort -k 3 |
        join -1 3 -2 3 -o 1.1,1.2,1.3 - "$work/c.digests" | cmp - "$work/c.digests" &&
        [ "$(wc -l <"$work/c.digests")" -gt 250 ]
}

# Each lie of liar.c, and what the harness must say to it.
declare -A lies=(
    [digest]="changes nothing" [close]="a closed sequence is stale"
    [drop]="no page is used once everything is given back" [lookup]="a match finds what a lookup found"
    [slots]="no two tokens share a slot" [tail]="the rest of a dense row"
)
build_liar() {
    gcc $strict -O2 -Wl,--wrap=kvf_{cache_digest,seq_close,prefix_drop,prefix_lookup,table_slots,table_dense} \
        tests/fuzz/kvf_fuzz*.c tests/fuzz/replay.c tests/fuzz/liar.c "$target/capi/libkvfolio.a" -o "$work/liar"
}
notices() {
    "$work/liar" "$work"/seeds/* >"$work/liar.log" || return # without a lie it is the library
    fails env KVF_LIE="$1" "$work/liar" "$work"/seeds/* >"$work/liar.log" && grep -q "$2" "$work/liar.log"
}

# fuzz NAME: one run; shows edges and runs, and on a violation the input and how to shorten it.
fuzz() {
    local name=$1 corpus="$work/corpus/$1" edges
    [ "${CI:-}" != true ] || rm -rf "$corpus"
    mkdir -p "$corpus"
    if ! "$work/$name" -seed="${FUZZ_SEED:-1}" -max_total_time="${FUZZ_SECONDS:-15}" -max_len=1024 -entropic=0 \
        -print_final_stats=1 -artifact_prefix="$work/found/$name-" "$corpus" "$work/seeds" >"$work/$name.log" 2>&1; then
        grep -E 'VIOLATED|panicked|ERROR|SUMMARY|Test unit written' -A 40 "$work/$name.log"
        echo "to shorten it: cargo run --release -p kvfolio-tests --bin kvf-replay -- --minimise FILE"
        return 1
    fi
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$work/$name.log" | tail -n 1)
    echo "$edges edges, at least ${floor[$name]}; runs:" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")"
    [ "${edges:-0}" -ge "${floor[$name]}" ]
}

names=("$@")
[ ${#names[@]} -gt 0 ] || names=(c lockstep)
rm -rf "$work/seeds"
gate "seeds" cargo run -q --release -p kvfolio-tests --bin kvf-seeds -- "$work/seeds" || { summary; exit 1; }
gate "the C harness reads what the others read" same_digests
gate "a library that lies builds" build_liar
for lie in "${!lies[@]}"; do gate "the C harness notices a lie: $lie" notices "$lie" "${lies[$lie]}"; done
for name in "${names[@]}"; do
    gate "$name builds" "build_$name" || continue
    gate "$name" fuzz "$name" && sed 's/^/      /' "$work/log"
done
summary

#!/usr/bin/env bash
# All tests: `test.sh` runs every step, `test.sh STEP...` those named. Prints the time of each step; stops at the first
# that fails. Without the reference data (KVF_DATA) or with other tools missing, steps say what they skip; with CI=true
# that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
export KVF_DATA="${KVF_DATA:-$PWD/../shared/data}"

tools() { scripts/tools.sh cc g++ clang clang++ asan-clang valgrind nm make python3 pip fuzzer patch; }
style() {
    cargo fmt --all --check
    # Two packages apart from the workspace.
    cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
    cargo fmt --check --manifest-path bench/Cargo.toml
    cargo clippy -q --workspace --all-targets --all-features -- -D warnings
}
docs() { RUSTDOCFLAGS="-D warnings" cargo doc -q --no-deps --all-features -p kvfolio -p kvfolio-ffi -p kvfolio-kernels; }
unit() {
    cargo test -q -p kvfolio-ffi -p kvfolio-kernels -p kvfolio-examples
    cargo test -q --release -p kvfolio-tests
    cargo test -q -p kvfolio --all-features --doc
    cargo test -q --release -p kvfolio --all-features --lib --tests
}
# The keys of pages that committed vectors hold, once more by Python.
keys() {
    local packages=target/python
    if ! python3 -m pip install -q --root-user-action ignore --target "$packages" xxhash; then
        [ "${CI:-}" != true ] || return 1
        echo "skipped: keys: no xxhash for Python"
        return 0
    fi
    PYTHONPATH="$packages" python3 cache-core/tests/vectors/keychain.py | cmp - cache-core/tests/vectors/keychain.json
    echo "keys of pages: Python gives the vectors"
}
cases() { cargo run -q --release -p kvfolio-tests --bin kvf-replay -- tests/cases/*.kvt; }
soak() { cargo run -q --release -p kvfolio-tests --bin kvf-soak; }
# Without an index: the same cases and random programs, with ids of 32 bits and of 16; both must end with the same digests.
noindex() {
    cargo test -q --release -p kvfolio --no-default-features --features alloc,narrow --lib --tests
    local build lines=target/noindex
    mkdir -p "$lines"
    for build in wide narrow; do
        local run=(cargo run -q --release -p kvfolio-tests --no-default-features)
        [ $build = wide ] || run+=(--features narrow)
        "${run[@]}" --bin kvf-replay -- tests/cases/*.kvt >"$lines/$build"
        "${run[@]}" --bin kvf-soak -- --ops 4000 | sed 's/ *[0-9.]* s / /' >>"$lines/$build"
    done
    grep ' passed, ' "$lines/narrow"
    # What narrow ids cannot number is skipped there.
    ! grep '^pass' "$lines/narrow" | grep -vxFf "$lines/wide"
}
gates() { scripts/gates.sh; }
fuzz() { scripts/fuzz.sh; }
faults() { scripts/faults.sh rotating; }
package() { scripts/package.sh; }
firmware() { scripts/firmware.sh; }
kernels() {
    cargo rustc -q -p kvfolio-kernels --profile capi --crate-type staticlib -- --cfg kvf_capi
    mkdir -p build/kernels
    local flags="-Wall -Wextra -Wpedantic -Werror -Iinclude -fsanitize=address,undefined -fno-sanitize-recover"
    gcc -std=c99 $flags kernels/tests/kernels_c_test.c target/capi/libkvfolio_kernels.a -lm -o build/kernels/c99
    g++ -std=c++11 -x c++ $flags kernels/tests/kernels_c_test.c -x none target/capi/libkvfolio_kernels.a -lm \
        -o build/kernels/cxx11
    build/kernels/c99
    build/kernels/cxx11
    if nm target/capi/libkvfolio_kernels.a 2>/dev/null | grep -q panicking; then
        echo "the kernels' archive can panic" >&2
        return 1
    fi
}
engine() {
    if [ -d "$KVF_DATA" ] || [ "${CI:-}" = true ]; then scripts/fetch_model.sh >/dev/null; fi
    make -s -C examples/c check
}
growth() { scripts/growth.sh; }
traces() { scripts/traces.sh; }
instructions() { scripts/instructions.sh; }
workloads() { scripts/workloads.sh; }

if [ "${CI:-}" = true ] && [ ! -d "$KVF_DATA" ]; then
    echo "KVF_DATA=$KVF_DATA does not exist" >&2
    exit 1
fi
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(
    tools style docs unit keys cases soak noindex gates fuzz faults package firmware kernels engine growth instructions
    workloads traces
)
for step in "${steps[@]}"; do
    echo "=== $step"
    start=$SECONDS
    "$step"
    echo "--- $step: $((SECONDS - start)) s"
done
echo "${#steps[@]} passed, 0 failed"

#!/usr/bin/env bash
# Gates of the library without an operating system: the firmware of examples/firmware does the same on three emulated
# processors as on this machine, and is not larger than SIZES.md says.
#
#   scripts/firmware.sh           builds, runs, compares
#   scripts/firmware.sh --write   writes the sizes, once all else holds
set -uo pipefail # no -e: it would not hold inside a gate
cd "$(dirname "$0")/.."
scripts/tools.sh cc clang ld.lld-19 nm python3 core-sources qemu-system-arm qemu-system-riscv32 || exit 1
export KVF_DATA="${KVF_DATA:-$PWD/../shared/data}"
traces="$KVF_DATA/traces/mooncake_fast25_conversation_trace.jsonl"
requests=1000 trace_pages=16384 # of the trace, and PAGES of trace.c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source scripts/gate.sh
source scripts/symbols.sh
target="${CARGO_TARGET_DIR:-$PWD/target}"
folder=examples/firmware
triples="thumbv7em-none-eabihf thumbv8m.main-none-eabihf riscv32imac-unknown-none-elf"
builds="small narrow full" # without the index, so with 16-bit ids, and with it; none with feature "layout" or "evict"
c="-std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude"

# Debian's own compiler carries the sources of core, and must not be mixed with rustup's.
bare_cargo() {
    local rustc cargo
    rustc=$(command -p -v rustc) cargo=$(command -p -v cargo)
    env -u RUSTUP_TOOLCHAIN RUSTC="$rustc" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target/bare" \
        "$cargo" "$1" -q -p kvfolio-ffi --profile capi-small -Zbuild-std=core "${@:2}"
}
features() {
    case $1 in
        small) echo --no-default-features ;;
        narrow) echo --no-default-features --features narrow ;;
        full) echo --no-default-features --features index ;;
    esac
}
# All targets at once, so that each core of this machine has something to do; archives come one by one.
dependencies() { bare_cargo build $(printf -- '--target %s ' $triples); }
archive() {
    bare_cargo rustc --target "$2" --crate-type staticlib $(features "$1") -- --cfg kvf_capi &&
        cp "$target/bare/$2/capi-small/libkvfolio_ffi.a" "$work/$1-$2.a"
}

# board TRIPLE: what the program is compiled for, and what runs it.
board() {
    case $1 in
        thumbv7em-*) cpu="--target=armv7em-none-eabihf -mcpu=cortex-m4" machine=mps2-an386 ;;
        thumbv8m.main-*) cpu="--target=armv8m.main-none-eabihf -mcpu=cortex-m33" machine=mps2-an505 ;;
        riscv32imac-*) cpu="--target=riscv32-unknown-none-elf -march=rv32imac -mabi=ilp32" machine=virt ;;
    esac
    case $machine in
        virt) emulator="qemu-system-riscv32 -bios none" ;;
        *) emulator=qemu-system-arm ;;
    esac
}

indexed() { [ "$1" = full ] && echo 1 || echo 0; }
# program BUILD TRIPLE NAME "SOURCES" FLAGS...
program() {
    local build=$1 triple=$2 name=$3 sources
    sources=$(printf "$folder/%s.c " start semihosting memory $4)
    board "$triple"
    clang $cpu $c -Os -ffreestanding -fno-builtin -ffunction-sections -fdata-sections -DINDEXED="$(indexed "$build")" \
        "${@:5}" -nostdlib --ld-path="$(command -v ld.lld-19)" -Wl,--gc-sections -Wl,-L,$folder -Wl,-T,$folder/$machine.ld \
        $sources "$work/$build-$triple.a" -o "$work/$name"
}
firmware() { program "$1" "$2" "$3" "firmware stream text stack" "${@:4}"; }
minimal() { program "$1" "$2" "$3" minimal; }
trace() { program full "$1" "$2" "trace trace_main text" -I"$folder" "$work/trace-data.c"; }
# emulate TRIPLE NAME: what it prints goes to NAME.out.
emulate() {
    board "$1"
    timeout 60 $emulator -M $machine -display none -serial none -monitor none -chardev stdio,id=out \
        -semihosting-config enable=on,target=native,chardev=out -kernel "$work/$2" </dev/null >"$work/$2.out"
}
operations() { grep '^op ' "$work/$1" && [ "$(grep -c '^op ' "$work/$1")" -eq 10 ]; }
same_operations() { operations "$1" >"$work/a" && operations "$2" >"$work/b" && diff "$work/a" "$work/b"; }
other_operations() { operations "$1" >"$work/a" && operations "$2" >"$work/b" && ! cmp -s "$work/a" "$work/b"; }

# host LIBRARY: the program on this machine.
host() {
    cc $c -O2 $folder/{host,stream,text,stack}.c "$target/$1/libkvfolio.a" -o "$work/$1" || return
    local build
    for build in $builds; do "$work/$1" 1 "$(indexed $build)" >"$work/$1-$build.out" || return; done
}

# facts BUILD TRIPLE: the numbers of SIZES.md.
facts() {
    own_object "$work/$1-$2.a" || return
    size "$work/own.o" | awk -v of="$2 $1" 'NR == 2 { print of, "archive", $1 }'
    size "$work/$1-$2" | awk -v of="$2 $1" 'NR == 2 { print of, "text", $1; print of, "data", $2; print of, "bss", $3 }'
    size "$work/$1-$2-minimal" | awk -v of="$2 $1" 'NR == 2 { print of, "minimal", $1 }'
    sed -n "s/^memory /$2 $1 memory /p" "$work/$1-$2.out"
    sed -n "s/^stack /$2 $1 /p" "$work/$1-$2-stack.out"
}

gate "the libraries for this machine build" cargo run -q -p xtask -- capi || { summary; exit 1; }
gate "the same with checks" cargo run -q -p xtask -- capi --check || { summary; exit 1; }
for library in capi capi-check; do gate "the stream runs here, $library" host $library; done
for build in $builds; do
    gate "with checks and without do the same, $build" same_operations capi-$build.out capi-check-$build.out
done
"$work/capi" 2 1 >"$work/other.out"
gate "another seed is told apart" other_operations capi-full.out other.out

gate "core builds for the targets" dependencies || { summary; exit 1; }
for triple in $triples; do
    for build in $builds; do
        name=$build-$triple
        gate "$name: the archive builds" archive $build $triple || continue
        gate "$name: no panic symbol" empty panics "$work/$name.a"
        gate "$name: no float helper" empty floats "$work/$name.a"
        gate "$name: needs but memory functions and integer helpers" empty others "$work/$name.a"
        gate "$name: the firmware builds" firmware $build $triple $name -DSEED=1 || continue
        gate "$name: runs" emulate $triple $name
        gate "$name: does what this machine does" same_operations capi-$build.out $name.out
        gate "$name: builds with its stack painted" firmware $build $triple $name-stack -DSEED=1 -DMEASURE_STACK || continue
        gate "$name: runs so" emulate $triple $name-stack
        gate "$name: and does the same" same_operations capi-$build.out $name-stack.out
        gate "$name: the least that decodes builds" minimal $build $triple $name-minimal || continue
        gate "$name: and runs" emulate $triple $name-minimal
        facts $build $triple >>"$work/facts"
    done
done
# The beginning of a real trace, in 4 MB of RAM; the last digest is that of a Rust program with a cache of its own kind beside it.
trace_data() { python3 $folder/trace.py "$traces" $requests >"$work/trace-data.c"; }
trace_host() {
    cc $c -I$folder -O2 -DTRACE_HOST $folder/{trace,trace_main,text}.c "$work/trace-data.c" "$target/$1/libkvfolio.a" \
        -o "$work/$1-trace" && "$work/$1-trace" >"$work/$1-trace.out"
}
trace_rust() {
    local last
    last=$(awk 'END { print $NF }' "$work/capi-trace.out")
    cargo run -q --release -p kvfolio-examples --bin kvf-traces -- --requests $requests --pages $trace_pages >"$work/rust" &&
        grep -q "^ .* $trace_pages .* $last\$" "$work/rust"
}
same_trace() { [ "$(wc -l <"$work/$1-trace.out")" -eq 10 ] && diff "$work/capi-trace.out" "$work/$1-trace.out"; }
if [ -f "$traces" ]; then
    gate "$requests requests of a trace become C" trace_data
    for library in capi capi-check; do gate "they are served here, $library" trace_host $library; done
    gate "with checks and without the same" same_trace capi-check
    gate "and in Rust" trace_rust
    for triple in $triples; do
        gate "$triple: the trace builds" trace $triple $triple-trace || continue
        gate "$triple: runs" emulate $triple $triple-trace
        gate "$triple: does what this machine does" same_trace $triple
    done
elif [ "${CI:-}" = true ]; then
    gate "$traces is there" false
else
    skipped=1
    echo "skip  a trace on bare metal: $traces is not there"
fi
# A program whose stream cannot run says why and ends with 1: here the library has no index, and is asked for one.
refused() { ! emulate "$1" "$2" && grep -qx 'kvf_cache_required_size: KVF_ERR_CONFIG' "$work/$2.out"; }
for triple in $triples; do
    gate "$triple: a firmware that must fail builds" firmware small "$triple" wrong -DSEED=1 -UINDEXED -DINDEXED=1
    gate "$triple: and fails" refused "$triple" wrong
done
triple=${triples%% *}
gate "a firmware with another seed builds" firmware full $triple other -DSEED=2
gate "it runs" emulate $triple other
gate "and is told apart" other_operations capi-full.out other.out

if [ "${1:-}" = --write ]; then
    gate "sizes are written" python3 $folder/sizes.py --write $folder/SIZES.md "$work/facts"
else
    awk '{ print $1, $2, $3, int($4 * 1.06) + 1 }' "$work/facts" >"$work/grown"
    gate "growth is noticed" fails python3 $folder/sizes.py $folder/SIZES.md "$work/grown"
    gate "sizes are at most 5 % above those of SIZES.md" python3 $folder/sizes.py $folder/SIZES.md "$work/facts"
fi
summary

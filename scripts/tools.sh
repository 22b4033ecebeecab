#!/usr/bin/env bash
# Makes sure that tools are there: `tools.sh NAME...`. Installs Debian packages when root, else names the one command.
#
# With CI=true, and for everyone, a tool that cannot be had is a failure.
set -euo pipefail

declare -A package=(
    [cc]=gcc [gcc]=gcc [g++]=g++ [clang]=clang [clang++]=clang [valgrind]=valgrind [nm]=binutils [python3]=python3
    [pip]=python3-pip [make]=make [asan-clang]=libclang-rt-14-dev [fuzzer]=libclang-rt-14-dev [patch]=patch
    [ld.lld-19]=lld-19
    [cmake]=cmake [pkg-config]=pkg-config
    [qemu-system-arm]=qemu-system-arm [qemu-system-riscv32]=qemu-system-misc
    [core-sources]="rustc-web cargo-web rust-web-src"
)

has() {
    case $1 in
        pip) python3 -m pip --version >/dev/null 2>&1 ;;
        asan-clang) compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-x86_64.a' >/dev/null ;;
        fuzzer) [ -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")" ] ;;
        core-sources) # of the system's own Rust: rustup's has none
            local rustc
            rustc=$(command -p -v rustc) && [ -d "$("$rustc" --print sysroot)/lib/rustlib/src/rust/library/core" ]
            ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing=()
for tool in "$@"; do
    has "$tool" || missing+=(${package[$tool]:-$tool})
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
    echo "missing tools; on Debian or Ubuntu type: sudo apt-get install -y ${missing[*]}" >&2
    exit 1
fi
for tool in "$@"; do
    has "$tool" || { echo "tools: $tool is still missing" >&2; exit 1; }
done
